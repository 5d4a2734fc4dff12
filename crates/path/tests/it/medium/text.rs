//! The reference page has what the media say of themselves.

use crate::page;
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
    page::holds("scenario.md", [START, END], &tables());
}
