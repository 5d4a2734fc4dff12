//! Scenarios on real hosts. Where namespaces are not permitted the tests say so and do nothing.

use std::sync::{Mutex, PoisonError};
use trunkline_core::{Cause, Span};
use trunkline_measure::{Run, Sample, TrafficRun, check};
use trunkline_scenario::Scenario;
use trunkline_testbed::{Options, run};

/// Runs on a machine of few processors would make each other late: one test at a time.
static TURN: Mutex<()> = Mutex::new(());

/// What an overloaded machine may add to any delay: these tests are of what is counted and booked, and of
/// delays that cannot be shorter than arithmetic says.
const SLACK: Span = Span::from_millis(40);

fn scenario(text: &str) -> Scenario {
    let mut cells = Scenario::parse(&format!("name = 'test'\n{text}"), "test.toml").unwrap();
    cells.remove(0)
}

/// The run of a scenario, or a message and nothing where there is no permission. Whatever it is, it keeps
/// the laws.
fn emulated(text: &str) -> Option<Run> {
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let run = match run(&scenario(text), &Options { attempts: 1, ..Options::default() }) {
        Err(error) if error.is_permission() => {
            eprintln!("SKIPPED: {error}");
            return None;
        }
        result => result.unwrap(),
    };
    assert_eq!(check(&run), [], "{run:#?}");
    for reason in &run.invalid {
        eprintln!("INVALID, which these tests can bear: {reason}");
    }
    let accuracy = run.accuracy.as_ref().unwrap();
    assert!(accuracy.frames_out > 0 && accuracy.lateness.count == accuracy.frames_out);
    assert_eq!(accuracy.dropped_by_emulator, 0);
    Some(run)
}

fn booked(run: &Run, sample: &Sample, place: &str, cause: Cause) -> Span {
    let place = run.places.iter().position(|name| name == place).unwrap() as u16;
    let own = sample.steps.iter().filter(|step| step.place == place && step.cause == cause);
    own.map(|step| step.span).sum()
}

/// No sample is faster than `least`, and the median no slower than it by more than the slack.
fn delays(traffic: &TrafficRun, least: Span) {
    let mut delays: Vec<Span> = traffic.samples.iter().map(Sample::delay).collect();
    delays.sort_unstable();
    assert!(delays[0] >= least, "{} is faster than {least}", delays[0]);
    let median = delays[delays.len() / 2];
    assert!(median < least + SLACK, "{median} is far beyond {least}");
}

#[test]
fn paced_datagrams_over_one_link() {
    let Some(run) = emulated(
        "stop_after = '4s'\n[[host]]\nname = 'a'\n[[host]]\nname = 'b'\n\
         [[link]]\nbetween = ['a', 'b']\nrate = '10Mbit/s'\ndelay = '20ms'\n\
         [[traffic]]\nname = 't'\nkind = 'paced'\nfrom = 'a'\nto = 'b'\nsize = 972\n\
         rate = '777600bit/s'\nduration = '1s'\ntransport = 'udp'\n",
    ) else {
        return;
    };
    let traffic = &run.traffic[0];
    assert_eq!((traffic.packets.sent, traffic.packets.dropped), (100, 0));
    assert_eq!(traffic.samples.len(), 100);
    // 1000 bytes with their headers at 10 Mbit/s take 800 us.
    delays(traffic, Span::from_micros(20_800));
    for sample in &traffic.samples {
        assert_eq!(booked(&run, sample, "a>b", Cause::Propagate), Span::from_millis(20));
        assert_eq!(booked(&run, sample, "a>b", Cause::Transmit), Span::from_micros(800));
    }
    assert_eq!(run.links[0].counts.entered, 100);
    assert_eq!(run.links[0].counts.entered_bytes, 100_000);
}
