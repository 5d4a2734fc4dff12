//! Scenarios on shared media drawn by chance: what formulas say of them is near the simulator, or a note says how far it may
//! be, or they say nothing.

use crate::media::nanos;
use trunkline_engine::{Note, NoteKind, Run};
use trunkline_model::{Figure, Predictions, What, predictions};
use trunkline_scenario::Scenario;

/// SplitMix64.
pub(crate) struct Draws(pub u64);

impl Draws {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut it = self.0;
        it = (it ^ (it >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        it = (it ^ (it >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        it ^ (it >> 31)
    }

    pub fn below(&mut self, most: u64) -> u64 {
        self.next() % most
    }

    pub fn one<'a, T: ?Sized>(&mut self, of: &[&'a T]) -> &'a T {
        of[self.below(of.len() as u64) as usize]
    }

    /// Evenly on a scale of ratios.
    pub fn scale(&mut self, least: f64, most: f64) -> f64 {
        let part = (self.next() >> 11) as f64 / (1u64 << 53) as f64;
        least * (most / least).powf(part)
    }
}

/// A medium, its rate in bits a second, and its delay in seconds.
pub(crate) fn medium(draws: &mut Draws) -> (String, f64, f64) {
    let kinds = ["half-duplex", "csma-cd", "token-ring", "fddi", "bus", "wideband", "leaf-spine"];
    let kind = draws.one(&kinds);
    let rate = match kind {
        "wideband" => 2_316_305.0,
        "fddi" => 100e6,
        "csma-cd" => 10e6,
        _ => draws.scale(1e6, 1e9).round(),
    };
    let slowest = if kind == "csma-cd" { 20e3 } else { 2e6 };
    let delay = draws.scale(10.0, slowest).round();
    let mut text = format!("kind = \"{kind}\"\nrate = \"{rate}bit/s\"\ndelay = \"{delay}ns\"\n");
    if kind != "wideband" && draws.below(2) == 0 {
        text += "framing = \"ethernet\"\n";
    }
    text += &match kind {
        "half-duplex" => format!("turnaround = \"{}us\"\n", draws.below(200)),
        "token-ring" => format!(
            "hold = \"{}us\"\nearly_release = {}\nstation_latency = \"{}ns\"\n",
            draws.below(1_000),
            draws.below(2) == 0,
            draws.below(3000)
        ),
        "fddi" => format!("ttrt = \"{}us\"\n", 4000 + draws.below(100_000)),
        "bus" => format!(
            "overhead = \"{}ns\"\nburst = {}\norder = \"{}\"\n",
            draws.below(5000),
            64 + draws.below(4000),
            draws.one(&["listed", "turns"])
        ),
        "leaf-spine" => format!(
            "hosts_per_leaf = {}\nflow = \"{}\"\nswitch_latency = \"{}ns\"\nbuffer = \"{}KiB\"\n",
            1 + draws.below(4),
            draws.one(&["credit", "pause", "drop"]),
            draws.below(3000),
            64 + draws.below(400)
        ),
        _ => String::new(),
    };
    (text, rate, delay / 1e9)
}

/// The traffic of `stations` stations.
fn traffic(draws: &mut Draws, stations: u64, (rate, delay): (f64, f64), is_slow: bool) -> String {
    let size = draws.scale(1.0, 1400.0).round();
    let common = |name: u64| {
        format!(
            "[[traffic]]\nname = \"t{name}\"\nfrom = \"h{name}\"\nto = \"h{}\"\n",
            (name + 1) % stations
        )
    };
    let transports = [
        "\"tcp\"",
        "\"urp\"",
        "{ kind = \"urp\", block = 1024, outstanding = 4, packet = 0 }",
        "\"stop-and-wait\"",
    ];
    let transport = draws.one(&transports);
    match draws.below(6) {
        0 | 1 => {
            let every = if draws.below(2) == 0 { 0 } else { 50_000 + draws.below(5_000_000) };
            let repeat = 30 + draws.below(100);
            format!(
                "{}kind = \"interactive\"\nsizes = [{size}]\nreply = {}\nrepeat = {repeat}\nevery = \"{every}us\"\ntransport = {transport}\n",
                common(0),
                1 + draws.below(1400)
            )
        }
        2 => format!(
            "{}kind = \"bulk\"\nbytes = \"{}kB\"\nwrite = 4096\ntransport = {transport}\n",
            common(0),
            10 + draws.below(500)
        ),
        kind => {
            let senders = if kind == 3 { 1 } else { 1 + draws.below(stations) };
            let load = draws.scale(0.01, 3.0) / senders as f64;
            let frames = 300.0 * (1.0 + (draws.below(6) as f64));
            (0..senders)
                .map(|station| {
                    let each = (rate * load * draws.scale(0.9, 1.1)).max(100.0).round();
                    // A hundred cycles of stations that wait for each other, but no more datagrams than a test has time for.
                    let cycles = 100.0 * (delay + 1e-3) * senders as f64;
                    let seconds = (frames * size * 8.0 / each).max(if is_slow { 20.0 } else { cycles });
                    let each = each.min(2e4 * size * 8.0 / seconds).max(1.0).round();
                    format!(
                        "{}kind = \"paced\"\nsize = {size}\nrate = \"{each}bit/s\"\nduration = \"{}us\"\n",
                        common(station),
                        (seconds * 1e6).round()
                    )
                })
                .collect()
        }
    }
}

fn scenario(draws: &mut Draws) -> (String, Option<Scenario>) {
    let (medium, rate, delay) = medium(draws);
    let stations = 2 + draws.scale(1.0, 40.0) as u64;
    let traffic = traffic(draws, stations, (rate, delay), medium.contains("wideband"));
    let hosts: String = (0..stations).map(|it| format!("[[host]]\nname = \"h{it}\"\n")).collect();
    let names: Vec<String> = (0..stations).map(|it| format!("\"h{it}\"")).collect();
    let text = format!(
        "stop_after = \"2h\"\nsamples = \"all\"\n{hosts}[[medium]]\nname = \"m\"\nstations = [{}]\n{medium}{traffic}",
        names.join(", ")
    );
    let cells = Scenario::parse(&text, "drawn.toml").ok();
    (text, cells.and_then(|cells| cells.into_iter().next()))
}

/// How near a figure is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Near {
    NoFigure,
    Percent,
    FivePercent,
    Told,
    Silent,
}

/// What the simulator has for a figure.
fn seen(run: &Run, traffic: &str, what: What) -> Option<f64> {
    let own = run.traffic.iter().find(|it| it.name == traffic)?;
    let spans: Vec<f64> =
        own.samples.iter().map(|it| it.end.since(it.start).as_nanos() as f64).collect();
    let mean = |of: &[f64]| (!of.is_empty()).then(|| of.iter().sum::<f64>() / of.len() as f64);
    match what {
        What::Delay | What::Transfer => mean(&spans),
        What::RoundTrip => mean(&spans[spans.len().min(3)..]),
        What::DelayAtMost => spans.iter().copied().reduce(f64::max),
        // What comes while all stations still send, the first third apart.
        What::Throughput if own.samples.iter().next().is_some_and(|it| it.size > 0) => {
            let all =
                run.traffic.iter().map(|it| it.samples.iter().map(|s| s.start.as_nanos()).max());
            let end = all.flatten().min()? as f64;
            let came = own.samples.iter().map(|it| (it.end.as_nanos() as f64, it.size));
            let bytes: u64 =
                came.filter(|&(at, _)| at > end / 3.0 && at <= end).map(|(_, size)| size).sum();
            let flows = own.samples.iter().map(|it| it.flow).max()? + 1;
            Some(bytes as f64 * 1e9 / (end * 2.0 / 3.0) / f64::from(flows))
        }
        _ => None,
    }
}

/// Whether a note tells how far a figure may be off, and it is no further.
fn covers(text: &str, (formula, seen): (f64, f64)) -> bool {
    let after = |before: &str| {
        let (_, rest) = text.split_once(before)?;
        Some(nanos(rest.split([' ', ':', ',']).next()?))
    };
    if text.contains("half of") {
        return after("half of ").is_some_and(|phase| (formula - seen).abs() <= phase / 2.0 + 50.0);
    }
    if let Some((_, rest)) = text.split_once("mean delay is between ") {
        let mut ends = rest
            .split([' ', ':', ','])
            .filter(|word| word.starts_with(|it: char| it.is_ascii_digit()));
        let mut end = || ends.next().map(nanos);
        return matches!((end(), end()), (Some(least), Some(most)) if least - 50.0 <= seen && seen <= most + 50.0);
    }
    if text.contains("may take up to ") {
        return after("may take up to ").is_some_and(|turns| (formula - seen).abs() <= turns);
    }
    let estimates =
        ["stations of the formula know", "an equal part", "a frame begun is sent whole"];
    estimates.iter().any(|it| text.contains(it))
}

pub(crate) fn judge(found: &Predictions, run: &Run) -> Vec<(Near, String)> {
    let mut all = Vec::new();
    for figure in &found.list {
        let is_transfer =
            found.list.iter().any(|it| it.traffic == figure.traffic && it.what == What::Transfer);
        if is_transfer && figure.what == What::Throughput {
            continue;
        }
        let Some(seen) = seen(run, &figure.traffic, figure.what) else { continue };
        let formula = match figure.value {
            Figure::Time(span) => span.as_nanos() as f64,
            Figure::Rate(rate) => rate.millibytes_per_second() as f64 / 1e3,
            _ => continue,
        };
        let own =
            |note: &&Note| format!("{:?}", note.about).contains(&format!("\"{}\"", figure.traffic));
        let assumed = |note: &&Note| note.kind == NoteKind::Assumed;
        let mut notes = found.notes.iter().filter(own).filter(assumed);
        let note = notes.find(|note| covers(&note.text, (formula, seen)));
        let off = (formula / seen - 1.0).abs();
        let near = match figure.what {
            What::DelayAtMost if seen <= formula + 500.0 => Near::Told,
            What::DelayAtMost => Near::Silent,
            _ if off <= 0.01 || (formula - seen).abs() <= 50.0 => Near::Percent,
            _ if note.is_some() => Near::Told,
            _ if off <= 0.05 => Near::FivePercent,
            _ => Near::Silent,
        };
        all.push((
            near,
            format!(
                "{} {:?}: {formula} for {seen}, {:?}",
                figure.traffic,
                figure.what,
                note.map(|it| &it.text)
            ),
        ));
    }
    if all.is_empty() {
        all.push((Near::NoFigure, String::new()));
    }
    all
}

/// Draws scenarios; counts figures of each kind, and gives those that are silently wrong.
fn drawn(seed: u64, count: usize) -> ([usize; 5], Vec<String>) {
    let mut draws = Draws(seed);
    let (mut counts, mut silent, mut made) = ([0; 5], Vec::new(), 0);
    while made < count {
        let (text, Some(scenario)) = scenario(&mut draws) else { continue };
        let Ok(found) = predictions(&scenario) else { continue };
        let Ok(run) = trunkline_sim::run(&scenario) else { continue };
        made += 1;
        let worst = judge(&found, &run);
        for (near, told) in &worst {
            counts[*near as usize] += 1;
            if *near == Near::Silent {
                silent.push(format!("{told}\n{text}"));
            }
        }
    }
    (counts, silent)
}

#[test]
fn no_figure_is_silently_wrong() {
    for seed in [20_261_127, 7] {
        let (counts, silent) = drawn(seed, 50);
        println!("{seed}: no figure, 1 %, 5 %, told, silent: {counts:?}");
        for it in silent.iter().take(12) {
            println!("SILENT {it}\n");
        }
        assert_eq!(counts[Near::Silent as usize], 0, "{}", silent[0]);
        assert!(counts[Near::Percent as usize] > 25, "{counts:?}");
    }
}
