//! Traffic over shared media: what binds is found, and what a step promises is what the change brings.

use crate::bound::{group, is_bound};
use trunkline_explain::{Binding, Constraint, explain, text};
use trunkline_scenario::Scenario;
use trunkline_sim::Simulator;

/// Four hosts on a medium with these keys; `it` goes from `a` to `b`, what else there is stands in `others`.
fn scenario(medium: &str, traffic: &str, others: &str) -> Scenario {
    let hosts: String =
        ["a", "b", "c", "d"].map(|it| format!("[[host]]\nname = '{it}'\n")).concat();
    let text = format!(
        "{hosts}[[medium]]\nname = 'shared'\nstations = ['a', 'b', 'c', 'd']\n{medium}\n\
         [[traffic]]\nname = 'it'\nfrom = 'a'\nto = 'b'\n{traffic}\n{others}\n"
    );
    match Scenario::parse(&text, "media.toml") {
        Ok(mut cells) => cells.remove(0),
        Err(error) => panic!("{error}\n{text}"),
    }
}

const SMALL: &str = "kind = 'bulk'\nbytes = '300kB'\nwrite = 1000\n\
                     transport = { kind = 'selective-repeat', frame = 1000, frames = 40 }";

#[test]
fn a_turnaround_is_what_turns_cost() {
    let on = |medium: &str| scenario(&format!("{medium}\nrate = '10Mbit/s'"), SMALL, "");
    is_bound(
        &on("kind = 'half-duplex'\nturnaround = '5ms'"),
        Constraint::Turns,
        &on("kind = 'bus'\norder = 'turns'"),
    );
}

#[test]
fn a_ring_without_early_release_costs_its_length_for_each_frame() {
    let on = |medium: &str| scenario(&format!("{medium}\nrate = '100Mbit/s'"), SMALL, "");
    is_bound(
        &on("kind = 'token-ring'\nhold = '0s'\ndelay = '2ms'"),
        Constraint::Turns,
        &on("kind = 'bus'\norder = 'turns'\ndelay = '1ms'"),
    );
}

#[test]
fn a_slow_medium_is_found() {
    let on = |rate: &str| scenario(&format!("kind = 'fddi'\nrate = '{rate}'"), SMALL, "");
    is_bound(&on("2Mbit/s"), Constraint::MediumRate, &on("20Mbit/s"));
}

#[test]
fn a_wideband_channel_so_many_times_as_fast_has_as_many_times_the_datagrams() {
    let datagrams = "kind = 'paced'\nsize = 1400\nrate = '4Mbit/s'\nduration = '30s'";
    let on = |keys: &str| scenario(&format!("kind = 'wideband'\n{keys}"), datagrams, "");
    let explanation = explain(&on("rate = '3.05Mbit/s'\nlimit = '8MB'"), &Simulator).unwrap();
    let group = group(&explanation);
    assert_eq!(group.binds, Binding::One(Constraint::MediumRate), "{}", text(&explanation));
    let steps = &group.relaxing(Constraint::MediumRate).unwrap().steps;
    let twice = steps[0].figure.bytes_per_second / group.figure().bytes_per_second;
    assert!((1.8..2.2).contains(&twice), "{twice}: {}", text(&explanation));
}

#[test]
fn who_else_is_on_the_medium_is_found() {
    let echoes =
        "kind = 'interactive'\nsizes = [60]\nrepeat = 60\nevery = '100ms'\ntransport = 'urp'";
    let others = "[[traffic]]\nname = 'others'\nkind = 'greedy'\nfrom = 'c'\nto = 'd'\ncount = 3\nuntil = 'it'\n\
                  transport = { kind = 'tcp', window = '64KiB' }";
    let on = |others: &str| scenario("kind = 'csma-cd'\nrate = '10Mbit/s'", echoes, others);
    is_bound(&on(others), Constraint::Queue, &on(""));
}

#[test]
fn a_window_is_found_on_a_medium_too() {
    let urp = |outstanding: u8| {
        let transport = format!("{{ kind = 'urp', block = 1024, outstanding = {outstanding} }}");
        let traffic =
            format!("kind = 'bulk'\nbytes = '200kB'\nwrite = 16384\ntransport = {transport}");
        scenario(
            "kind = 'token-ring'\nrate = '16Mbit/s'\ndelay = '80ms'\nearly_release = true",
            &traffic,
            "",
        )
    };
    let explanation = explain(&urp(1), &Simulator).unwrap();
    let group = group(&explanation);
    assert_eq!(group.binds, Binding::One(Constraint::Window), "{}", text(&explanation));
    let seven =
        group.relaxing(Constraint::Window).unwrap().steps.iter().find(|it| it.to == "7168 B");
    let after = explain(&urp(7), &Simulator).unwrap();
    let brings = after.traffic("it").unwrap().groups[0].figure().seconds;
    assert!((seven.unwrap().figure.seconds / brings - 1.0).abs() < 0.01);
}

/// With half as many flows again time-outs drive them so far apart that those that are left are as fast as all at once before a queue
/// that holds them.
#[test]
fn the_buffers_of_switches_are_found() {
    let senders = "kind = 'bulk'\ncount = 8\nbytes = '200kB'\nrepeat = 3";
    let on = |buffer: &str| {
        let keys = format!(
            "kind = 'leaf-spine'\nrate = '1Gbit/s'\nflow = 'drop'\nlimit = '64MiB'\nbuffer = '{buffer}'"
        );
        scenario(&keys, senders, "").clone()
    };
    let mut it = on("6kB");
    // Three leaves send to one.
    it.traffic[0].from_each = vec!["a".into(), "c".into(), "d".into()];
    let mut then = on("1GiB");
    then.traffic[0].from_each = it.traffic[0].from_each.clone();
    is_bound(&it, Constraint::QueueLimit, &then);
}

#[test]
fn a_rate_at_which_collisions_would_be_missed_is_not_tried() {
    let medium = "kind = 'csma-cd'\nrate = '10Mbit/s'\ndelay = '12us'";
    let explanation = explain(&scenario(medium, SMALL, ""), &Simulator).unwrap();
    let steps = &group(&explanation).relaxing(Constraint::MediumRate).expect("a rate").steps;
    let names: Vec<&str> = steps.iter().map(|step| step.to.as_str()).collect();
    assert_eq!(names, ["2 times"]);
    assert!(explanation.notes.is_empty(), "{:?}", explanation.notes);
}

/// The ladder ends where the run shows that it may; it went on to 64 MiB.
#[test]
fn windows_on_a_medium_are_no_larger_than_they_need_be() {
    let bulk = "kind = 'bulk'\nbytes = '300kB'\nwrite = 1000\ntransport = 'stop-and-wait'";
    let steps = |medium: &str| {
        let explanation = explain(&scenario(medium, bulk, ""), &Simulator).unwrap();
        let window = group(&explanation).relaxing(Constraint::Window).expect("a window").clone();
        window.steps.last().expect("a step").to.clone()
    };
    assert_eq!(steps("kind = 'bus'\nrate = '4Mbit/s'"), "selective-repeat of 4");
    assert_eq!(steps("kind = 'wideband'\nrate = '3.05Mbit/s'"), "selective-repeat of 1024");
}

#[test]
fn a_long_medium_is_told_as_distance() {
    let echoes = "kind = 'interactive'\nsizes = [60]\nrepeat = 20\ntransport = 'urp'";
    let on = |delay: &str| {
        scenario(
            &format!("kind = 'bus'\norder = 'turns'\nrate = '10Mbit/s'\ndelay = '{delay}'"),
            echoes,
            "",
        )
    };
    is_bound(&on("40ms"), Constraint::Distance, &on("40us"));
}
