//! libFuzzer over any one body: `TRUNKLINE_FUZZ_TARGET` names it. One program, so that a target more costs no
//! build more.
#![no_main]

use std::process::exit;
use std::sync::OnceLock;
use trunkline_fuzz::{BODIES, Body};

static BODY: OnceLock<Body> = OnceLock::new();

libfuzzer_sys::fuzz_target!(|data: &[u8]| BODY.get_or_init(chosen)(data));

fn chosen() -> Body {
    let name = std::env::var("TRUNKLINE_FUZZ_TARGET").unwrap_or_default();
    let found = BODIES.iter().find(|(known, _)| *known == name);
    found.map(|(_, body)| *body).unwrap_or_else(|| {
        let names: Vec<&str> = BODIES.iter().map(|(name, _)| *name).collect();
        eprintln!(
            "TRUNKLINE_FUZZ_TARGET={name}: there is no such target; use {}",
            names.join(", ")
        );
        exit(2)
    })
}
