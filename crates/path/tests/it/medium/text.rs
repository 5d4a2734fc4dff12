//! The reference page has what the media say of themselves.

use trunkline_path::discipline::Key;
use trunkline_path::medium::KINDS;

const START: &str =
    "<!-- media: BLESS=1 cargo test -p trunkline-path --test it writes these tables -->";
const END: &str = "<!-- end of media -->";

fn tables() -> String {
    let about = KINDS.iter().map(|kind| format!("| `{}` | {} |\n", kind.name, kind.about()));
    let keys =
        KINDS.iter().flat_map(|kind| kind.keys().into_iter().map(|key| row(kind.name, &key)));
    format!(
        "| kind | what, and its source |\n|---|---|\n{}\n\
         | key | of | value | default | range | what |\n|---|---|---|---|---|---|\n{}",
        about.collect::<String>(),
        keys.collect::<String>(),
    )
}

fn row(kind: &str, key: &Key) -> String {
    let default = key.default.as_ref().map_or(String::new(), |default| format!("`{default}`"));
    let range = key.range.as_ref().map_or(String::new(), |(low, high)| format!("{low} to {high}"));
    format!("| `{}` | `{kind}` | {} | {default} | {range} | {} |\n", key.name, key.unit, key.help)
}

#[test]
fn the_reference_page_has_what_the_media_say() {
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/scenario.md");
    let text = std::fs::read_to_string(page).unwrap();
    let [before, rest] = text.split(START).collect::<Vec<_>>()[..] else { panic!("no '{START}'") };
    let (_, after) = rest.split_once(END).unwrap();
    let wanted = format!("{before}{START}\n\n{}\n{END}{after}", tables());
    if std::env::var_os("BLESS").is_some() {
        std::fs::write(page, &wanted).unwrap();
    }
    assert!(
        std::fs::read_to_string(page).unwrap() == wanted,
        "docs/scenario.md is old: see its comment"
    );
}
