//! Datagrams of flows with ways of their own (`from_each`), drawn by chance: other access lines, distances and directions, over
//! a shared medium or lines alone, with and without other datagrams.

use crate::drawn_media::{Draws, Near, judge, medium};
use trunkline_model::predictions;
use trunkline_scenario::Scenario;

/// A line from `a` to `b`.
fn line(draws: &mut Draws, [a, b]: [&str; 2], rate: f64) -> String {
    let rate = draws.scale(rate / 20.0, rate * 3.0).round();
    let delay = draws.scale(10.0, 5e6).round();
    let one = format!("{{ rate = \"{rate}bit/s\", delay = \"{delay}ns\" }}");
    format!("[[link]]\nbetween = [\"{a}\", \"{b}\"]\nforward = {one}\nbackward = {one}\n")
}

/// The senders h0, h1, … and the receiver `d`, each at the medium or behind a line; at times a sender is behind the receiver's.
/// Without a medium all lines meet in a node.
fn places(draws: &mut Draws, senders: u64, (medium, rate): (&str, f64)) -> String {
    let mut text: String = (0..senders).map(|it| format!("[[host]]\nname = \"h{it}\"\n")).collect();
    text += "[[host]]\nname = \"d\"\n[[host]]\nname = \"e\"\n";
    if medium.is_empty() {
        text += "[[node]]\nname = \"middle\"\n";
        let hosts = (0..senders).map(|it| format!("h{it}")).chain(["d".into(), "e".into()]);
        return hosts.fold(text, |text, it| text + &line(draws, [&it, "middle"], rate));
    }
    let mut stations = vec!["\"e\"".to_string()];
    let behind = draws.below(3) == 0;
    if behind {
        text += &format!("[[node]]\nname = \"gd\"\n{}", line(draws, ["d", "gd"], rate));
    }
    stations.push(if behind { "\"gd\"".into() } else { "\"d\"".into() });
    for it in 0..senders {
        let (host, gateway) = (format!("h{it}"), format!("g{it}"));
        match draws.below(6) {
            0 if behind => text += &line(draws, [&host, "gd"], rate),
            0..3 => {
                text += &format!(
                    "[[node]]\nname = \"{gateway}\"\n{}",
                    line(draws, [&host, &gateway], rate)
                );
                stations.push(format!("\"{gateway}\""));
            }
            _ => stations.push(format!("\"{host}\"")),
        }
    }
    text + &format!("[[medium]]\nname = \"m\"\nstations = [{}]\n{medium}", stations.join(", "))
}

fn scenario(draws: &mut Draws) -> (String, Option<Scenario>) {
    let (medium, rate, delay) = match draws.below(4) {
        0 => (String::new(), draws.scale(1e5, 1e8), 0.0),
        _ => medium(draws),
    };
    let senders = 2 + draws.below(5);
    let places = places(draws, senders, (&medium, rate));
    let count = if draws.below(5) == 0 { senders + draws.below(senders + 1) } else { senders };
    let size = draws.scale(1.0, 1400.0).round();
    let is_full = draws.below(4) == 0;
    let load = if is_full { draws.scale(0.5, 3.0) } else { draws.scale(0.005, 0.7) };
    let each = (rate * load / count as f64).round();
    let cycles = 100.0 * (delay + 1e-3) * count as f64;
    let least = if medium.contains("wideband") { 20.0 } else { cycles };
    let seconds = (600.0 * size * 8.0 / each).max(least);
    let each = each.min(2e4 * size * 8.0 / seconds).max(1.0).round();
    let names: Vec<String> = (0..senders).map(|it| format!("\"h{it}\"")).collect();
    let stagger = if draws.below(3) == 0 { draws.below(5_000) } else { 0 };
    let transport = draws.one(&[
        "\"datagram\"",
        "\"datagram\"",
        "\"udp\"",
        "{ kind = \"urp\", block = 2000, outstanding = 7, packet = 0 }",
    ]);
    let end = (seconds * 1e6).round();
    let mut text = format!(
        "stop_after = \"2h\"\nsamples = \"all\"\n{places}[[traffic]]\nname = \"t\"\nkind = \"paced\"\nfrom_each = [{}]\ncount = {count}\nto = \"d\"\nsize = {size}\nrate = \"{each}bit/s\"\nduration = \"{end}us\"\nstagger = \"{stagger}us\"\ntransport = {transport}\n",
        names.join(", ")
    );
    if draws.below(4) == 0 {
        let other = draws.scale(each / 2.0, each * 2.0).round();
        text += &format!(
            "[[traffic]]\nname = \"u\"\nkind = \"paced\"\nfrom = \"e\"\nto = \"{}\"\nsize = {size}\nrate = \"{other}bit/s\"\nduration = \"{end}us\"\n",
            draws.one(&["h0", "d"])
        );
    }
    let cells = Scenario::parse(&text, "drawn.toml");
    (text, cells.ok().and_then(|cells| cells.into_iter().next()))
}

#[test]
fn no_figure_of_flows_with_ways_of_their_own_is_silently_wrong() {
    for seed in [20_261_128] {
        let (mut draws, mut counts, mut silent) = (Draws(seed), [0; 5], Vec::new());
        while counts.iter().sum::<usize>() < 150 {
            let (text, Some(scenario)) = scenario(&mut draws) else { continue };
            let Ok(found) = predictions(&scenario) else { continue };
            let Ok(run) = trunkline_sim::run(&scenario) else { continue };
            for (near, told) in judge(&found, &run) {
                counts[near as usize] += 1;
                if near == Near::Silent {
                    silent.push(format!("{told}\n{text}"));
                }
            }
        }
        println!("{seed}: no figure, 1 %, 5 %, told, silent: {counts:?}");
        for it in silent.iter().take(12) {
            println!("SILENT {it}\n");
        }
        assert!(silent.is_empty(), "{} of {counts:?}", silent.len());
        let figures = counts[Near::Percent as usize] + counts[Near::Told as usize];
        assert!(figures > 40, "{counts:?}");
    }
}
