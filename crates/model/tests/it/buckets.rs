//! Messages and datagrams through token buckets, drawn by chance, against the simulator.

use crate::drawn_media::Draws;
use trunkline_measure::TrafficRun;
use trunkline_model::{Figure, Predictions, What, predictions};
use trunkline_scenario::{Scenario, Workload};

/// Hosts `a` and `b` with a node between, lines of these keys, and traffic of these.
fn scenario(lines: [&str; 2], traffic: &str) -> Scenario {
    let [first, second] = lines;
    let text = format!(
        "samples = \"all\"\nstop_after = \"2h\"\nhost = [{{ name = \"a\" }}, {{ name = \"b\" }}]\nnode = [{{ name = \"n\" }}]\n[[link]]\nbetween = [\"a\", \"n\"]\n{first}\n[[link]]\nbetween = [\"n\", \"b\"]\n{second}\n[[traffic]]\nname = \"t\"\nfrom = \"a\"\nto = \"b\"\n{traffic}\n"
    );
    let cells = Scenario::parse(&text, "buckets.toml");
    cells.unwrap_or_else(|error| panic!("{error}\n{text}")).remove(0)
}

fn line(draws: &mut Draws) -> String {
    let rate = draws.scale(1e5, 1e8).round();
    let delay = draws.scale(1e3, 1e8).round();
    let framing = if draws.below(3) == 0 { "ethernet" } else { "none" };
    let token = draws.scale(2e4, 5e7).round();
    let burst = draws.scale(600.0, 6e4).round();
    let mode = if draws.below(4) == 0 { "police" } else { "shape" };
    let rate = match draws.below(6) {
        0 => "unlimited".into(),
        _ => format!("{rate}bit/s"),
    };
    let bucket = match draws.below(3) {
        0 => "limit = \"1MB\"".into(),
        _ => format!(
            "discipline = \"token-bucket:rate={token}bit/s,burst={burst},mode={mode},limit=1MB\""
        ),
    };
    format!("rate = \"{rate}\"\ndelay = \"{delay}ns\"\nframing = \"{framing}\"\n{bucket}")
}

fn interactive(draws: &mut Draws) -> String {
    let size = draws.scale(1.0, 3000.0).round();
    let every = match draws.below(2) {
        0 => 0.0,
        _ => draws.scale(1e4, 5e6).round(),
    };
    let transport = draws.one(&[
        "\"tcp\"",
        "\"urp\"",
        "{ kind = \"urp\", block = 1400, outstanding = 4, packet = 0, timeout = \"20s\" }",
        "{ kind = \"tcp\", profile = \"trunkline\", delayed_ack = \"0s\" }",
    ]);
    format!(
        "kind = \"interactive\"\nsizes = [{size}]\nreply = {}\nrepeat = {}\nevery = \"{every}us\"\ntransport = {transport}",
        1 + draws.below(1400),
        200 + draws.below(1500)
    )
}

fn paced(draws: &mut Draws) -> String {
    let size = draws.scale(10.0, 1400.0).round();
    let rate = draws.scale(5e3, 2e7).round();
    let seconds = draws.scale(300.0, 6e3) * size * 8.0 / rate;
    let count = if draws.below(3) == 0 { 2 + draws.below(20) } else { 1 };
    format!(
        "kind = \"paced\"\nsize = {size}\nrate = \"{rate}bit/s\"\nduration = \"{}us\"\ncount = {count}\ntransport = \"{}\"",
        (seconds * 1e6).round(),
        draws.one(&["udp", "datagram"])
    )
}

/// The figure that the traffic would measure, in seconds, and what it carries, in bytes per second, if formulas know that.
fn foretold(found: &Predictions) -> Option<(f64, Option<f64>)> {
    let time = found.list.iter().find(|it| it.what.is_measured())?.value.time()?.as_secs_f64();
    let rate = found.list.iter().find_map(|it| match it.value {
        Figure::Rate(rate) if it.what == What::Throughput => Some(rate.bytes_per_second() as f64),
        _ => None,
    });
    Some((time, rate))
}

/// The median of the delays, and the mean.
fn seen(run: &TrafficRun) -> Option<[f64; 2]> {
    let mut times: Vec<f64> = run.samples.iter().map(|it| it.delay().as_secs_f64()).collect();
    times.sort_by(f64::total_cmp);
    let middle = *times.get(times.len() / 2)?;
    Some([middle, times.iter().sum::<f64>() / times.len() as f64])
}

fn seconds(scenario: &Scenario) -> f64 {
    match scenario.traffic[0].workload {
        Workload::Paced { duration, .. } => duration.as_secs_f64(),
        _ => panic!("no datagrams"),
    }
}

#[test]
fn what_passes_token_buckets_takes_as_long_as_simulated() {
    let mut draws = Draws(20_261_128);
    let (mut errors, mut refused, mut policed, mut far) = (Vec::new(), 0, 0, Vec::new());
    while errors.len() < 300 {
        let (one, two) = (line(&mut draws), line(&mut draws));
        let traffic = if draws.below(2) == 0 { interactive(&mut draws) } else { paced(&mut draws) };
        if !(one.contains("token") || two.contains("token")) {
            continue;
        }
        let scenario = scenario([&one, &two], &traffic);
        let found = predictions(&scenario).unwrap();
        let Some((time, rate)) = foretold(&found) else {
            refused += 1;
            assert!(refused < 400, "most are said to have no formula: {found:?}");
            continue;
        };
        let run = trunkline_sim::run(&scenario).unwrap();
        let Some([middle, mean]) = seen(&run.traffic[0]) else { continue };
        let own = if traffic.contains("paced") { mean } else { middle };
        let error = (time / own).ln();
        let list: Vec<_> = found.list.iter().map(|it| (it.what, it.value)).collect();
        let case = format!(
            "{error:.4}: {time} {middle} {mean} {list:?} {:?}\n{one}\n{two}\n{traffic}\n",
            found.notes
        );
        if error.abs() > 0.001 {
            far.push(case.clone());
        }
        if let Some(rate) = rate {
            let own = run.traffic[0].delivered_bytes as f64 / seconds(&scenario);
            if (rate / own).ln().abs() > 0.01 {
                far.push(format!("carried {rate} {own}: {case}"));
            }
            policed += 1;
        }
        errors.push(error);
    }
    let mean = errors.iter().map(|it| it.abs()).sum::<f64>() / errors.len() as f64;
    let worst = errors.iter().fold(0.0f64, |worst, it| worst.max(it.abs()));
    println!(
        "{} cases, {refused} refused, {policed} policed: mean |ln| {mean:.5}, worst {worst:.4}",
        errors.len()
    );
    far.iter().take(8).for_each(|it| println!("{it}"));
    assert!(far.is_empty(), "{}", far.len());
}

/// What comes through a policer that is asked for more than its rate: its burst, and what the rate gives.
#[test]
fn a_policer_lets_its_burst_and_its_rate_pass() {
    let mut draws = Draws(20_261_129);
    for _ in 0..60 {
        let size = draws.scale(50.0, 1400.0).round();
        let cap = draws.scale(1e5, 1e7).round();
        let over = draws.scale(1.02, 20.0);
        let burst = draws.scale(1500.0, 2e5).round();
        let line = format!(
            "rate = \"1Gbit/s\"\ndelay = \"5ms\"\ndiscipline = \"token-bucket:rate={cap}bit/s,burst={burst},mode=police\""
        );
        let micros = (draws.scale(50.0, 5e3) * size * 8e6 / (cap * over)).round();
        let traffic = format!(
            "kind = \"paced\"\nsize = {size}\nrate = \"{}bit/s\"\nduration = \"{micros}us\"",
            (cap * over).round()
        );
        let scenario = scenario([&line, "rate = \"1Gbit/s\""], &traffic);
        let found = predictions(&scenario).unwrap();
        let case = format!("{found:?}\n{line}\n{traffic}");
        let (time, rate) = foretold(&found).unwrap_or_else(|| panic!("{case}"));
        let run = trunkline_sim::run(&scenario).unwrap();
        let [seen, _] = seen(&run.traffic[0]).unwrap();
        assert!((time / seen - 1.0).abs() < 1e-6, "{time} {seen} {case}");
        let rate = rate.unwrap_or_else(|| panic!("{case}"));
        let carried = rate * seconds(&scenario) / size;
        let delivered = run.traffic[0].delivered_bytes as f64 / size;
        assert!(
            (carried - delivered).abs() < 1.0 + 0.002 * delivered,
            "{carried} {delivered} {case}"
        );
        let told = trunkline_model::predict(&scenario).unwrap().traffic[0].courses[0].bytes as f64;
        assert!(
            (told / size - delivered).abs() < 1.0 + 0.002 * delivered,
            "{told} {delivered} {case}"
        );
    }
}

/// Windows of the textbook protocols through a shaper: its rate, or a window in the round trip of the lines behind it.
#[test]
fn windows_have_the_rate_of_a_shaper_or_their_own() {
    let mut draws = Draws(20_261_130);
    let mut errors = Vec::new();
    while errors.len() < 120 {
        let frames = 1 + draws.below(40);
        let transport = match draws.below(3) {
            0 => "kind = \"stop-and-wait\"".to_string(),
            1 => format!("kind = \"go-back-n\", frames = {frames}"),
            _ => format!("kind = \"selective-repeat\", frames = {frames}"),
        };
        let (cap, over) = (draws.scale(1e5, 1e7).round(), draws.scale(1.1, 100.0));
        let burst = draws.scale(1100.0, 2e4).round();
        let delay = draws.scale(1e3, 1e8).round();
        let line = format!(
            "rate = \"{}bit/s\"\ndelay = \"{delay}ns\"\ndiscipline = \"token-bucket:rate={cap}bit/s,burst={burst},limit=1MB\"",
            (cap * over).round()
        );
        let kilobytes = 20.0 + draws.scale(8.0, 40.0) * burst / 1e3;
        let traffic = format!(
            "kind = \"bulk\"\nbytes = \"{}kB\"\nwrite = 1000\ntransport = {{ {transport}, frame = 1000, timeout = \"20s\" }}",
            kilobytes.round()
        );
        let other = format!("rate = \"{}bit/s\"", (cap * draws.scale(0.3, 50.0)).round());
        let scenario = scenario([&line, &other], &traffic);
        let found = predictions(&scenario).unwrap();
        let Some((time, _)) = foretold(&found) else { panic!("{found:?}\n{line}\n{traffic}") };
        let run = trunkline_sim::run(&scenario).unwrap();
        let [took, _] = seen(&run.traffic[0]).unwrap();
        // The burst goes at once, which a note tells.
        let early = f64::from(burst as u32) * 8.0 / cap;
        let case = format!("{time} {took} {early}: {:?}\n{line}\n{other}\n{traffic}", found.notes);
        assert!(time - took < early + 0.01 * took && took < 1.01 * time, "{case}");
        errors.push((time / took).ln().abs());
    }
    let worst = errors.iter().fold(0.0f64, |worst, &it| worst.max(it));
    println!(
        "windows: mean {:.5}, worst {worst:.4}",
        errors.iter().sum::<f64>() / errors.len() as f64
    );
}

/// Messages beside connections that fill a shaper wait for their queue, as in front of a line of its rate.
#[test]
fn messages_beside_transfers_wait_in_a_shapers_queue() {
    let of = |rate: u64, places: u32, shaped: bool| {
        let line = match shaped {
            true => format!(
                "rate = \"100Mbit/s\"\ndelay = \"10ms\"\ndiscipline = \"token-bucket:rate={rate}bit/s,burst=5000,limit={places}p\""
            ),
            false => format!("rate = \"{rate}bit/s\"\ndelay = \"10ms\"\nlimit = \"{places}p\""),
        };
        let traffic = "kind = \"interactive\"\nsizes = [300]\nrepeat = 300\nevery = \"371ms\"\n[[traffic]]\nname = \"f\"\nfrom = \"a\"\nto = \"b\"\nkind = \"greedy\"\nduration = \"110s\"\ncount = 2\n";
        let scenario = scenario([&line, "rate = \"1Gbit/s\""], traffic);
        let found = predictions(&scenario).unwrap();
        let ours = found.find("t", 300, What::RoundTrip).unwrap_or_else(|| panic!("{found:?}"));
        let run = trunkline_sim::run(&scenario).unwrap();
        (ours.value.time().unwrap().as_secs_f64(), seen(&run.traffic[0]).unwrap()[0])
    };
    for (rate, places) in [(1_000_000, 40), (5_000_000, 60), (20_000_000, 100)] {
        let [(ours, seen), (line, before)] = [true, false].map(|shaped| of(rate, places, shaped));
        let case = format!("{rate}: {ours} {seen}, before a line {line} {before}");
        assert!((ours / line - 1.0).abs() < 0.01 && (seen / before - 1.0).abs() < 0.1, "{case}");
        assert!((ours / seen - 1.0).abs() < 0.15, "{case}");
    }
}

/// Datagrams of one instant pass a policer if its burst has room for them, and wait for each other; of more some are dropped.
#[test]
fn a_policers_burst_has_room_for_datagrams_of_one_instant() {
    let policer =
        "rate = \"10Mbit/s\"\ndiscipline = \"token-bucket:rate=1Mbit/s,burst=3000,mode=police\"";
    for (count, passes) in [(7, true), (8, false)] {
        let traffic = format!(
            "kind = \"paced\"\nsize = 400\nrate = \"100kbit/s\"\ncount = {count}\nduration = \"20s\""
        );
        let scenario = scenario([policer, "rate = \"1Gbit/s\""], &traffic);
        let found = predictions(&scenario).unwrap();
        let run = trunkline_sim::run(&scenario).unwrap();
        assert_eq!(run.traffic[0].packets.dropped == 0, passes, "{count}");
        let ours = foretold(&found).map(|(time, _)| time);
        assert_eq!(ours.is_some(), passes, "{found:?}");
        let [_, mean] = seen(&run.traffic[0]).unwrap();
        assert!(ours.is_none_or(|ours| (ours / mean - 1.0).abs() < 1e-6), "{ours:?} {mean}");
    }
}
