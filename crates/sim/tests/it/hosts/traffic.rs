//! Workloads: when they start, what they repeat, when they end.

use crate::hosts::support::{FREE, at, life, pair, run, scenario, spent, tenths, traffic};
use trunkline_core::{Span, Time};
use trunkline_engine::Run;
use trunkline_measure::SenderState;
use trunkline_scenario::Scenario;

/// A message of 1 byte (5 envelopes) and its echo, behind its ECHO.
const KEY: u64 = 2 * (400 + 50_000) + 80;

fn keys(more: &str) -> String {
    let text = "[[traffic]]\nname = \"keys\"\nkind = \"interactive\"\nfrom = \"a\"\nto = \"b\"\n\
                sizes = [1]\ntransport = { kind = 'urp', packet = 0 }\n";
    format!("{text}{more}\n")
}

fn starts(run: &Run, name: &str) -> Vec<(u32, Time)> {
    traffic(run, name).samples.iter().map(|sample| (sample.flow, sample.start)).collect()
}

/// Messages are meant to start every 7 ms, which is less than they take: they start late, and the lateness
/// is known.
#[test]
fn what_is_meant_to_start_early_starts_when_it_can() {
    let run = run(&pair(&format!("{FREE}{}", keys("every = \"7ms\"\nrepeat = 3"))));
    let samples = &traffic(&run, "keys").samples;
    // From the second on a message is behind the ECHO of the answer before it.
    for (sample, (meant, start)) in samples.iter().zip([(0, 0), (7, KEY), (14, 2 * KEY + 80)]) {
        assert_eq!(sample.intended, at(Span::from_millis(meant)));
        assert_eq!(sample.start, at(tenths(start)));
    }
    let slow = crate::hosts::support::run(&pair(&format!(
        "{FREE}{}",
        keys("every = \"50ms\"\nrepeat = 3")
    )));
    let samples = &traffic(&slow, "keys").samples;
    assert!(samples.iter().all(|sample| sample.start == sample.intended));
    assert_eq!(slow.ended, at(Span::from_millis(100) + tenths(KEY)));
    // Until the ECHO comes its window of three blocks is open: it only waits.
    let waited = spent(traffic(&slow, "keys"), 0, SenderState::Application);
    assert_eq!(waited, slow.ended - Time::ZERO);
}

#[test]
fn sizes_follow_each_other() {
    let run = run(&pair(&format!("{FREE}{}", keys("repeat = 2").replace("[1]", "[1, 64, 7]"))));
    let sizes: Vec<(u64, u32)> =
        traffic(&run, "keys").samples.iter().map(|sample| (sample.size, sample.index)).collect();
    assert_eq!(sizes, [(1, 0), (1, 1), (64, 0), (64, 1), (7, 0), (7, 1)]);
    assert_eq!(life(traffic(&run, "keys"), 0), run.ended - Time::ZERO);
}

#[test]
fn flows_start_one_after_the_other() {
    let staggered = keys("count = 3\nstagger = \"20ms\"\nstart = \"1ms\"");
    let run = run(&pair(&format!("{FREE}{staggered}")));
    let ms = |ms| at(Span::from_millis(ms));
    assert_eq!(starts(&run, "keys"), [(0, ms(1)), (1, ms(21)), (2, ms(41))]);
}

#[test]
fn flows_are_spread_over_hosts() {
    let text = format!(
        "[[host]]\nname = \"c\"\n[[link]]\nbetween = [\"c\", \"b\"]\ndelay = \"1ms\"\n{}",
        keys("count = 3").replace("from = \"a\"", "from_each = [\"a\", \"c\"]")
    );
    let run = run(&pair(&format!("{FREE}{text}")));
    let delays: Vec<Span> = traffic(&run, "keys").samples.iter().map(|it| it.delay()).collect();
    assert_eq!(delays[1], Span::from_millis(2), "over the link of c");
    assert!(delays[0] >= tenths(KEY) && delays[2] >= tenths(KEY));
}

/// The way of Hawley's interactive test: a loop that comes back to its host over the same interface.
#[test]
fn a_loop_crosses_every_backplane_both_ways() {
    let backplane = "backplane = \"8Mbit/s\"\n";
    let text = format!(
        "[[host]]\nname = \"a\"\n[[node]]\nname = \"n\"\n{backplane}[[node]]\nname = \"m\"\n{backplane}\
         [[link]]\nbetween = [\"a\", \"n\"]\ndelay = \"1ms\"\n[[link]]\nbetween = [\"n\", \"m\"]\n\
         delay = \"2ms\"\n{}",
        keys("").replace("to = \"b\"", "to = \"a\"\nvia = [\"n\", \"m\", \"n\"]")
    );
    let run = run(&text);
    let delay = traffic(&run, "keys").samples[0].delay();
    // Each way: out, across n, to m, across m, back to n, across n, in; 180 bits at each backplane.
    let across = Span::from_nanos(180 * 125);
    let one_way = Span::from_millis(6) + across.scaled(3, 1);
    assert_eq!(delay, one_way.scaled(2, 1) + across, "the answer is behind the ECHO once");
}

/// Each packet of an unsteady host leaves later by what is drawn for its flow and for itself, up to so much in all.
#[test]
fn packets_of_an_unsteady_host_leave_later() {
    let steady = scenario(&pair(&format!("{FREE}{}", keys("repeat = 20"))));
    let mut unsteady = steady.clone();
    unsteady.hosts[0].processor.unsteady = Span::from_millis(1);
    let delays = |scenario: &Scenario| -> Vec<Span> {
        let run = trunkline_sim::run(scenario).unwrap();
        traffic(&run, "keys").samples.iter().map(|it| it.delay()).collect()
    };
    let (before, after) = (delays(&steady), delays(&unsteady));
    let later: Vec<Span> = std::iter::zip(&before, &after).map(|(a, b)| *b - *a).collect();
    assert!(later.iter().all(|it| *it <= Span::from_millis(1)), "{later:?}");
    assert!(later.iter().any(|it| !it.is_zero()), "{later:?}");
}

const BULK: &str = "[[traffic]]\nname = \"bulk\"\nkind = \"bulk\"\nfrom = \"a\"\nto = \"b\"\n\
                    bytes = \"2kB\"\ntransport = { kind = \"urp\", packet = 0 }\n";

/// Traffic that accompanies another ends with it, though a third goes on.
#[test]
fn company_ends_when_what_it_accompanies_ends() {
    let keys = keys("repeat = 20\nstart_after = \"bulk:4kB\"");
    let third = BULK.replace("bulk", "third").replace("kind = \"third\"", "kind = \"bulk\"");
    let text = format!("{FREE}{BULK}until = \"keys\"\n{keys}{third}repeat = 60\n");
    let run = run(&pair(&text));
    let [bulk, keys, third] = ["bulk", "keys", "third"].map(|name| traffic(&run, name));
    let end = keys.samples.last().unwrap().end;
    assert_eq!((keys.samples.len(), third.samples.len()), (20, 60));
    assert!(run.ended > end + Span::from_secs(1), "the third goes on");
    assert!(
        bulk.samples.len() > 3 && bulk.samples.last().unwrap().end < end + Span::from_millis(500)
    );
    // Its application took one more step at most: the transfer under way is not finished.
    assert!(bulk.delivered_bytes < third.delivered_bytes);
    assert!(life(bulk, 0) >= end - Time::ZERO && life(bulk, 0) < run.ended - Time::ZERO);
    assert_eq!(run.notes, []);
}

/// What follows accompanying traffic starts when that has been stopped.
#[test]
fn traffic_may_follow_company() {
    let follower = keys("start_after = \"bulk\"").replace("\"keys\"", "\"late\"");
    let text = format!("{FREE}{BULK}until = \"keys\"\n{}{follower}", keys("repeat = 5"));
    let run = run(&pair(&text));
    let [keys, late] = ["keys", "late"].map(|name| traffic(&run, name));
    assert_eq!(late.samples.len(), 1);
    assert!(late.samples[0].start >= keys.samples[4].end);
}

/// Company of company ends with it, and what never started does not start.
#[test]
fn company_of_company_ends_too() {
    let far = BULK.replace("\"bulk\"\nkind", "\"far\"\nkind");
    let never = BULK.replace("\"bulk\"\nkind", "\"never\"\nkind");
    let text = format!(
        "{FREE}{BULK}until = \"keys\"\n{far}until = \"bulk\"\n\
         {never}until = \"keys\"\nstart = \"1min\"\n{}{}",
        keys("repeat = 5"),
        keys("start = \"2s\"").replace("\"keys\"", "\"late\"")
    );
    let run = run(&pair(&text));
    assert!(traffic(&run, "far").samples.len() > 1);
    assert!(
        traffic(&run, "never").samples.is_empty() && traffic(&run, "never").sender[0].is_empty()
    );
    let bulk_end = traffic(&run, "far").samples.last().unwrap().end;
    assert!(bulk_end < at(Span::from_secs(2)), "it ended long before the last message: {bulk_end}");
}

/// `trafgen` ends with its last write's return, `dkxload` after a time, `push` with the confirmation.
#[test]
fn every_workload_ends() {
    let kinds = [
        ("bulk", "bytes = \"3kB\"\nconfirm = false\nrepeat = 2", 2),
        ("push", "bytes = \"3kB\"\nstore = \"1ms\"\nrepeat = 2", 2),
        ("timed-echo", "sizes = [1, 64]\nduration = \"1s\"", 2 * 90),
        ("timed-transfer", "sizes = [100, 2000]\nduration = \"1s\"", 2 * 30),
        ("paced", "size = 100\nrate = \"8kbit/s\"\nduration = \"1s\"", 10),
    ];
    for (kind, more, least) in kinds {
        let transport = if kind == "paced" { "udp" } else { "urp" };
        let text = format!(
            "[[traffic]]\nname = \"t\"\nkind = \"{kind}\"\nfrom = \"a\"\nto = \"b\"\n{more}\n\
             transport = \"{transport}\"\n"
        );
        let run = run(&pair(&format!("{FREE}{text}")));
        let samples = traffic(&run, "t").samples.len();
        assert!(samples >= least, "{kind}: {samples}");
        assert_eq!(run.notes, [], "{kind}");
    }
}

/// Times in queues are recorded wherever there can be a queue, backlogs where the scenario asks for them.
#[test]
fn queues_are_recorded() {
    let quiet = run(&pair(&format!("{FREE}{BULK}")));
    assert!(quiet.links.iter().all(|link| link.queueing.is_some() && link.backlog.is_empty()));
    let watched = run(&format!("sample_backlog = \"1ms\"\n{}", pair(&format!("{FREE}{BULK}"))));
    let [there, back] = &watched.links[..] else { panic!("two directions") };
    let queueing = there.queueing.as_ref().unwrap();
    assert_eq!(queueing.count(), there.counts.delivered);
    // Three blocks of 260 envelopes leave at once: the third waits for two.
    assert_eq!(queueing.percentiles().max.as_micros_f64().round(), 2.0 * 2080.0);
    assert!(there.backlog.iter().any(|&(_, bytes)| bytes >= 260));
    assert_eq!(there.backlog.len(), back.backlog.len());
    assert!(std::iter::zip(0.., &there.backlog).all(|(ms, it)| it.0 == at(Span::from_millis(ms))));
    assert_eq!(watched.traffic, quiet.traffic, "watching changes nothing");
}

/// Who names no transport gets what programs on Linux get, not a window of 768 bytes: 50 MB in 40 ms of round
/// trip reach at least half of the line.
#[test]
fn a_transfer_that_names_no_transport_fills_its_line() {
    let text = "[[host]]\nname = 'a'\n[[host]]\nname = 'b'\n[[link]]\nbetween = ['a', 'b']\n\
                rate = '100Mbit/s'\ndelay = '20ms'\n[[traffic]]\nname = 'file'\nkind = 'bulk'\n\
                from = 'a'\nto = 'b'\nbytes = '50MB'\n";
    let rate = run(text).traffic[0].samples[0].rate() * 8.0;
    assert!(rate > 50e6 && rate < 100e6, "{rate} bit/s");
}

/// A run of many hosts has more places than 16 bits count, and each step still names its own.
#[test]
fn the_places_of_many_hosts_are_told_apart() {
    let hosts = 11_000;
    let mut text = String::from("[processor.cpu]\nread = \"1ms\"\n[[node]]\nname = \"middle\"\n");
    for host in 0..hosts {
        text += &format!(
            "[[host]]\nname = \"h{host}\"\nprocessor = \"cpu\"\n\
             [[link]]\nname = \"l{host}\"\nbetween = [\"h{host}\", \"middle\"]\nrate = \"1Mbit/s\"\n"
        );
    }
    let last = hosts - 1;
    text += &format!(
        "[[traffic]]\nname = \"t\"\nkind = \"interactive\"\nfrom = \"h0\"\nto = \"h{last}\"\n\
         sizes = [100]\ntransport = \"urp\"\n"
    );
    let run = run(&text);
    assert!(run.places.len() > 1 << 16);
    let steps = &traffic(&run, "t").samples[0].steps;
    let named: Vec<&str> =
        steps.iter().map(|step| run.places[step.place as usize].as_str()).collect();
    assert!(named.contains(&format!("h{last} processor").as_str()), "{named:?}");
    let known = ["h0", &format!("h{last}"), "middle"];
    let own = |name: &&str| {
        known.iter().any(|it| name.starts_with(&format!("{it} ")) || name.contains('>'))
    };
    assert!(named.iter().all(own), "{named:?}");
}

/// In character mode 300 bytes are 256 and a number, which is echoed before the other 44 go with the end of the
/// message; the answer of 4 bytes waits for nothing. An octet takes 8 us, a packet 5 ms.
#[test]
fn characters_wait_for_the_echo_of_a_number() {
    let text = "[[traffic]]\nname = \"t\"\nkind = \"interactive\"\nfrom = \"a\"\nto = \"b\"\nsizes = [300]\n\
                reply = 4\nrepeat = 2\ntransport = { kind = 'urp', mode = 'character', packet = 0 }\n";
    let run = run(&pair(&format!("{FREE}{text}")));
    let ways = 50_000 * 4;
    let round = tenths(ways + 80 * (257 + 1 + 45 + 5));
    // The second message has a number behind its first 212 bytes.
    assert!(run.traffic[0].samples.iter().all(|sample| sample.end - sample.start == round));
    assert_eq!(traffic(&run, "t").delivered_bytes, 2 * 304);
}

/// Nothing is repaired: the message ends where its end comes, and what has not come is missing from it.
#[test]
fn characters_that_are_lost_stay_lost() {
    let text = pair(&format!(
        "{FREE}[[traffic]]\nname = \"t\"\nkind = \"bulk\"\nfrom = \"a\"\nto = \"b\"\nbytes = 100000\nconfirm = false\n\
         transport = {{ kind = 'urp', mode = 'character' }}\n"
    ));
    let lossy = text.replace("delay", "loss = \"2%\"\ndelay");
    let run = run(&lossy);
    let run = traffic(&run, "t");
    assert!(run.packets.dropped > 0 && run.retransmissions == 0);
    // The flow ends with the last write's return, when 4096 bytes may be unsent.
    assert!((90_000..99_000).contains(&run.delivered_bytes), "{}", run.delivered_bytes);
}
