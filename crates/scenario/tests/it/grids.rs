//! Grids: complete and in order, each cell with the values that its name says.

use crate::file::{DESIGN, HOSTS, parse, with};
use trunkline_core::Span;
use trunkline_path::discipline::RoundRobinSettings;
use trunkline_path::{DisciplineSpec, Framing, Limit};
use trunkline_scenario::Scenario;

fn coordinates(scenario: &Scenario) -> Vec<String> {
    scenario.cell.iter().map(|(key, value)| format!("{key}={value}")).collect()
}

#[test]
fn a_grid_has_every_combination_the_first_axis_slowest() {
    let text = with(DESIGN, "rate = \"1.544Mbit/s\"", "rate = [\"1mbit\", \"10mbit\"]");
    let text = with(&text, "count = 4", "count = [1, 4, 9]");
    let cells = parse(&text);
    let found: Vec<String> = cells.iter().map(|cell| coordinates(cell).join(" ")).collect();
    let expected =
        [("1mbit", 1), ("1mbit", 4), ("1mbit", 9), ("10mbit", 1), ("10mbit", 4), ("10mbit", 9)]
            .map(|(rate, count)| {
                format!("link.coma-tempel.rate={rate} traffic.background.count={count}")
            });
    assert_eq!(found, expected);
    for (cell, rate) in cells.iter().zip([1, 1, 1, 10, 10, 10]) {
        assert_eq!(cell.links[0].forward.rate.unwrap().bits_per_second(), rate * 1_000_000);
    }
    assert_eq!(
        cells.iter().map(|cell| cell.traffic[0].count).collect::<Vec<_>>(),
        [1, 4, 9, 1, 4, 9]
    );
}

#[test]
fn tables_are_told_apart_by_what_differs_and_may_hold_axes() {
    let urp = "transport = [{ kind = 'urp', block = 64, outstanding = 1 }, { kind = 'urp', block = 64, outstanding = [2, 7] }]";
    let text = with(DESIGN, "transport = { kind = \"urp\", block = 1024, outstanding = 7 }", urp);
    let cells: Vec<Vec<String>> = parse(&text).iter().map(coordinates).collect();
    let key = "traffic.background.transport";
    assert_eq!(
        cells,
        [
            vec![format!("{key}=outstanding=1")],
            vec![format!("{key}=outstanding=[2, 7]"), format!("{key}.outstanding=2")],
            vec![format!("{key}=outstanding=[2, 7]"), format!("{key}.outstanding=7")],
        ]
    );
}

#[test]
fn lists_are_axes_only_as_lists_of_lists() {
    let text = with(DESIGN, "sizes = [1, 64, 512]", "sizes = [[1, 64], [512]]");
    let text = with(&text, "seed = 7", "seed = [1, 2]");
    let cells: Vec<Vec<String>> = parse(&text).iter().map(coordinates).collect();
    assert_eq!(cells.len(), 4);
    assert_eq!(cells[1], ["seed=1", "traffic.keystrokes.sizes=[512]"]);
    let text =
        with(DESIGN, "discipline = { kind", "forward.delay = ['1ms', '2ms']\ndiscipline = { kind");
    let forward: Vec<Span> = parse(&text).iter().map(|cell| cell.links[0].forward.delay).collect();
    assert_eq!(forward, [Span::from_millis(1), Span::from_millis(2)]);
}

#[test]
fn modules_and_interfaces_are_axes() {
    let text = with(HOSTS, "requests = 1", "requests = [1, 'unlimited']");
    let text = with(&text, "module = \"fifo\"", "module = ['fifo', 'rr']");
    let text = with(
        &text,
        "[module.fifo]",
        "[module.rr]\ndiscipline = 'round-robin:limit=9kB'\n[module.fifo]",
    );
    let cells = parse(&text);
    assert_eq!(coordinates(&cells[3]), ["interface.kmc.requests=unlimited", "link.t1.module=rr"]);
    assert_eq!(cells[3].hosts[0].interface.requests, None);
    let limit = Limit::Bytes(9000);
    let expected = DisciplineSpec::from(RoundRobinSettings { quantum: 64, limit });
    assert_eq!(cells[3].links[1].forward.discipline, expected);
}

#[test]
fn no_costs_no_limit_and_no_module_have_names_for_grids() {
    let text = with(HOSTS, "interface = \"kmc\"", "interface = ['kmc', 'ideal']");
    let text = with(&text, "processor = \"vax8550\"", "processor = 'ideal'");
    let cells = parse(&with(&text, "module = \"fifo\"", "module = ['fifo', 'none']"));
    let interfaces: Vec<&str> =
        cells.iter().map(|cell| cell.hosts[0].interface.name.as_str()).collect();
    assert_eq!(interfaces, ["kmc", "kmc", "ideal", "ideal"]);
    assert_eq!(cells[0].hosts[0].processor, Default::default());
    let framings: Vec<Framing> = cells.iter().map(|cell| cell.links[1].forward.framing).collect();
    assert_eq!(framings, [Framing::T1_LAPD, Framing::None, Framing::T1_LAPD, Framing::None]);
}
