//! Pages of the docs whose tables are written from what the code says of itself.

/// Holds the page `name` of the docs against `tables`, which stand between two marks there; writes it anew if the
/// variable BLESS is set.
pub fn holds(name: &str, [start, end]: [&str; 2], tables: &str) {
    let page = format!("{}/../../docs/{name}", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(&page).unwrap();
    let [before, rest] = text.split(start).collect::<Vec<_>>()[..] else { panic!("no '{start}'") };
    let (_, after) = rest.split_once(end).unwrap();
    let wanted = format!("{before}{start}\n\n{tables}\n{end}{after}");
    if std::env::var_os("BLESS").is_some() {
        std::fs::write(&page, &wanted).unwrap();
    }
    let now = std::fs::read_to_string(&page).unwrap();
    assert!(now == wanted, "docs/{name} is old: see its comment");
}
