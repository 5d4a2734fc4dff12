//! Attacks a server whose key is in `TRUNKLINE_KEY`, a thousand connections a second of each kind, and asks it 20
//! times meanwhile: `siege ADDRESS [PORT]`. Prints for each attack how many were tried and served; ends with
//! status 1 if one was not.
//!
//! With `siege ADDRESS PORT FROM` the attacks come from that address of this host, else from the client's own.

mod attack;

use attack::{Attack, Siege, attacks};
use std::net::{IpAddr, SocketAddr};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::thread;
use std::time::{Duration, Instant};
use trunkline_handshake::Initiator;
use trunkline_probe::Key;
use trunkline_probe::client::{Connection, Target};
use trunkline_probe::wire::PORT;
use trunkline_probe::wire::keys::CONTROL;

/// Times that a client asks under each attack.
const TRIES: usize = 20;

type Failed = Box<dyn std::error::Error>;

fn main() -> ExitCode {
    match run() {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("siege: {error}");
            ExitCode::from(2)
        }
    }
}

fn run() -> Result<bool, Failed> {
    let mut arguments = std::env::args().skip(1);
    let host: IpAddr = arguments.next().ok_or("siege ADDRESS [PORT [FROM]]")?.parse()?;
    let port: u16 = arguments.next().map_or(Ok(PORT), |port| port.parse())?;
    let from: Vec<IpAddr> =
        arguments.next().map(|from| from.parse()).transpose()?.into_iter().collect();
    let key = Key::find(None)?.ok_or("the server's key is wanted in TRUNKLINE_KEY")?;
    let target = Target { host: host.to_string(), port, key: Some(key.clone()) };
    let (_, overheard) = Initiator::begin(Some(&key), CONTROL, &[])?;
    let mut survived = true;
    for attack in attacks(&from, &overheard) {
        survived &= withstood(SocketAddr::new(host, port), &target, &attack);
    }
    Ok(survived)
}

fn withstood(at: SocketAddr, target: &Target, attack: &Attack) -> bool {
    let siege = Siege::begin(at, attack);
    // It is under way before anybody asks.
    thread::sleep(Duration::from_secs(1));
    let (mut served, mut longest) = (0, Duration::ZERO);
    for _ in 0..TRIES {
        let began = Instant::now();
        let asked = Connection::open(target, &Arc::new(AtomicBool::new(false)))
            .and_then(|connection| connection.host());
        longest = longest.max(began.elapsed());
        match asked {
            Ok(_) => served += 1,
            Err(error) => eprintln!("not served: {error}"),
        }
    }
    println!(
        "{}: {served} of {TRIES} served, the slowest after {} ms; {} connections of the attack",
        attack.name,
        longest.as_millis(),
        siege.made()
    );
    served == TRIES
}
