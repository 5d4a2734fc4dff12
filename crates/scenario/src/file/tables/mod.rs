//! Every table of a scenario file with its keys.

mod clusters;
mod hosts;
mod links;
mod traffic;

pub(super) use hosts::{INTERFACE, PROCESSOR};
#[cfg(test)]
pub(super) use links::DIRECTION;
#[cfg(test)]
pub(super) use traffic::TRANSPORT;

use super::schema::Form::{Elements, Fixed, Named, One};
use super::schema::Need::{Default, Optional};
use super::schema::{Form, Key, Kind, Need, Table};
use clusters::{CLUSTER, COSTS};
use hosts::{HOST, NODE};
use links::{LINK, MEDIUM, MODULE};
use traffic::TRAFFIC;
use trunkline_core::Span;

const HOUR: Span = Span::from_secs(3600);
const WEEK: Span = Span::from_secs(7 * 24 * 3600);
const INSTANT: Span = Span::from_nanos(1);

/// A length of time that may be zero.
const SPAN: Kind = Kind::Span(Span::ZERO, HOUR);
/// A length of time that may not.
const SOME_SPAN: Kind = Kind::Span(INSTANT, WEEK);

const fn key(name: &'static str, form: Form, need: Need, help: &'static str) -> Key {
    Key { name, form, need, help, only: &[] }
}

/// The file.
pub(super) static FILE: Table = Table {
    kinds: None,
    title: "the file",
    help: "A scenario: hosts, nodes, links, media and traffic, or clusters.",
    groups: &[&[
        key(
            "name",
            Fixed(Kind::Text),
            Optional,
            "What reports call it; the file's stem if left out",
        ),
        key("about", Fixed(Kind::Text), Default(""), "One or more sentences for the report"),
        key("seed", One(Kind::Whole(0, i64::MAX as u64)), Default("1"), "Seed of all randomness"),
        key("stop_after", One(SOME_SPAN), Default("60min"), "Latest end, in the time of the run"),
        key(
            "sample_backlog",
            One(Kind::Span(Span::from_micros(1), HOUR)),
            Optional,
            "Sample what waits at every link this often, for a chart of queue depth",
        ),
        key(
            "samples",
            One(Kind::Or(&Kind::Word(&["all", "none"]), &Kind::Whole(1, u32::MAX as u64))),
            Default("100000"),
            "Samples kept of each traffic; figures are of all",
        ),
        key(
            "mtu",
            One(Kind::Size(68, 65_535)),
            Default("1500"),
            "Largest network-layer packet of TCP and of outside programs",
        ),
        key("host", Elements(&HOST), Optional, "End systems; these or a cluster"),
        key("node", Elements(&NODE), Optional, "Switches"),
        key(
            "link",
            Elements(&LINK),
            Optional,
            "What connects two hosts or nodes; this or a medium",
        ),
        key("medium", Elements(&MEDIUM), Optional, "What several hosts or nodes share"),
        key("traffic", Elements(&TRAFFIC), Optional, "What is sent; this or a cluster"),
        key("cluster", Elements(&CLUSTER), Optional, "Nodes that run one program among themselves"),
        key("processor", Named(&PROCESSOR), Optional, "What operations cost hosts"),
        key("interface", Named(&INTERFACE), Optional, "Boards between hosts and the network"),
        key("costs", Named(&COSTS), Optional, "What operations cost nodes of clusters"),
        key("module", Named(&MODULE), Optional, "Ends of trunks"),
    ]],
};

#[cfg(test)]
mod tests {
    use super::super::schema::Need::Required;
    use super::*;

    /// The tables that a table leads to, itself first.
    fn reachable(table: &'static Table, found: &mut Vec<&'static Table>) {
        if found.iter().any(|known| known.title == table.title) {
            return;
        }
        found.push(table);
        table.keys().filter_map(|key| key.form.table()).for_each(|table| reachable(table, found));
    }

    /// The rows of the reference page under the heading of a table, subheadings of another excluded.
    fn section(page: &str, title: &str) -> String {
        let heading = |line: &str| line.starts_with('#');
        let mut lines = page.lines().skip_while(|line| {
            !heading(line) || !line.trim_start_matches(['#', ' ']).eq_ignore_ascii_case(title)
        });
        assert!(lines.next().is_some(), "the page has no heading '{title}'");
        let rows =
            lines.take_while(|line| !heading(line) || line.contains("What the applications"));
        rows.filter(|line| line.starts_with('|')).collect::<Vec<_>>().join("\n")
    }

    #[test]
    fn the_reference_page_has_every_key_with_its_default() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/scenario.md");
        let page = std::fs::read_to_string(path).unwrap();
        let mut tables = Vec::new();
        reachable(&FILE, &mut tables);
        assert_eq!(tables.len(), 20);
        // A direction and a module have keys of a link, which are described there. Those of disciplines are in
        // docs/path.md, which is held against them in their own room.
        let elsewhere = ["a direction", "[module.NAME]", "a discipline"];
        let described = |table: &&Table| !elsewhere.contains(&table.title);
        for table in tables.into_iter().filter(described) {
            let rows = section(&page, table.title);
            // The keys of media are described once.
            let own = table.groups.iter().flat_map(|group| group.iter());
            let keys: Vec<_> = match table.title {
                "[[cluster]]" => own.filter(|key| !MEDIUM.names().contains(&key.name)).collect(),
                _ => table.keys().collect(),
            };
            for key in keys {
                // Several kinds may have a key of one name, each with a row of its own.
                let named = format!("| `{}` |", key.name);
                let rows: Vec<&str> = rows.lines().filter(|row| row.starts_with(&named)).collect();
                assert!(!rows.is_empty(), "{} has no row '{}'", table.title, key.name);
                let says = |text: &str| rows.iter().any(|row| row.contains(text));
                match key.need {
                    Default("") | Optional => {}
                    Default(text) => assert!(says(&format!("`{text}`")), "{rows:?}"),
                    Required => assert!(says("required"), "{rows:?}"),
                }
            }
        }
    }

    #[test]
    fn the_reference_page_has_every_congestion_controller() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/scenario.md");
        let page = std::fs::read_to_string(path).unwrap();
        for kind in trunkline_transport::tcp::congestion::Algorithm::ALL {
            let entry = kind.entry();
            let kernel = entry.kernel.map_or_else(|| "none".into(), |module| format!("`{module}`"));
            let formulas = if entry.law.is_some() { "yes" } else { "none" };
            let row = format!(
                "| `{}` | {} | {} | {formulas} | {kernel} |",
                entry.name, entry.about, entry.source
            );
            assert!(page.contains(&row), "docs/scenario.md lacks the row\n{row}");
        }
    }

    #[test]
    fn the_reference_page_has_every_test_of_a_cluster_with_its_keys() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/scenario.md");
        let page = std::fs::read_to_string(path).unwrap();
        let rows = section(&page, "a test");
        for test in trunkline_cluster::TESTS {
            let row = format!("| `{}` | ", test.name);
            assert!(rows.lines().any(|it| it.starts_with(&row)), "docs/scenario.md lacks {row}");
            for key in test.keys {
                let (named, of) = (format!("| `{}` |", key.name), format!("`{}`", test.name));
                let has = rows
                    .lines()
                    .any(|it| it.starts_with(&named) && it.contains(&of) && it.contains(key.help));
                assert!(has, "docs/scenario.md lacks {named} … {of} … {}", key.help);
            }
        }
    }

    #[test]
    fn no_table_has_a_key_twice() {
        let mut tables = Vec::new();
        reachable(&FILE, &mut tables);
        for table in tables {
            // Kinds that stand elsewhere may use a name in their own sense.
            let groups = table.groups.iter().flat_map(|group| group.iter());
            let mut names: Vec<&str> = groups.map(|key| key.name).collect();
            let count = names.len();
            names.sort_unstable();
            names.dedup();
            assert_eq!(names.len(), count, "{}", table.title);
        }
    }
}
