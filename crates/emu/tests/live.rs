//! Scenarios on real hosts. Where namespaces are not permitted the tests say so and do nothing.

use std::sync::{Mutex, PoisonError};
use trunkline_core::{Cause, Span};
use trunkline_emu::{Options, run};
use trunkline_engine::{NoteKind, Run, check};
use trunkline_measure::Sample;
use trunkline_scenario::{Network, Scenario};
use trunkline_skip::{installed, skipped};

/// Runs on a machine of few processors would make each other late: one test at a time.
static TURN: Mutex<()> = Mutex::new(());

/// What may be added to the middle delay, beyond what is booked to hosts and emulator, in a run that is VALID,
const CLOSE: Span = Span::from_millis(2);
/// and to the middle delay of any run: no machine at work explains more.
const SLACK: Span = Span::from_millis(40);

fn scenario(text: &str) -> Scenario {
    let mut cells = Scenario::parse(&format!("name = 'test'\n{text}"), "test.toml").unwrap();
    cells.remove(0)
}

/// The run of a scenario, or a message and nothing where there is no permission. Whatever it is, it keeps
/// the laws.
fn emulated(text: &str) -> Option<Run> {
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let run = match run(&Network::of(&scenario(text)).unwrap(), &Options::default()) {
        Err(error) if error.is_permission() => {
            skipped(error);
            return None;
        }
        result => result.unwrap(),
    };
    assert_eq!(check(&run), [], "{run:#?}");
    for reason in run.invalid() {
        eprintln!("INVALID, which these tests can bear: {reason}");
    }
    let accuracy = run.accuracy.as_ref().unwrap();
    assert!(accuracy.frames_out > 0 && accuracy.lateness.count == accuracy.frames_out);
    assert_eq!(accuracy.dropped_by_emulator, 0);
    Some(run)
}

fn booked(run: &Run, sample: &Sample, place: &str, cause: Cause) -> Span {
    let place = run.places.iter().position(|name| name == place).unwrap() as u32;
    let own = sample.steps.iter().filter(|step| step.place == place && step.cause == cause);
    own.map(|step| step.span).sum()
}

/// Checks the delays of the only traffic: none is less than `least`, and the middle one is close to that. What is
/// booked to the path alone may be less: a host writes the later frames of a message while the line sends the first.
fn delays(run: &Run, least: Span) {
    let fastest = run.traffic[0].samples.iter().map(Sample::delay).min().unwrap();
    assert!(fastest >= least, "{fastest} is faster than {least}");
    let middle = |delay: &dyn Fn(&Sample) -> Span| {
        let mut delays: Vec<Span> = run.traffic[0].samples.iter().map(delay).collect();
        delays.sort_unstable();
        delays[delays.len() / 2]
    };
    // An outside program's samples are not taken apart.
    let apart = run.traffic[0].samples[0].steps.iter().any(|step| step.cause == Cause::Propagate);
    let on_path = |sample: &Sample| {
        let counts = |cause| !apart || !matches!(cause, Cause::Host | Cause::Emulator);
        let own = sample.steps.iter().filter(|step| counts(step.cause));
        own.map(|step| step.span).sum::<Span>()
    };
    let (all, on_path) = (middle(&Sample::delay), middle(&on_path));
    assert!(all < least + SLACK, "{all} is far beyond {least}: {:?}", run.doubts());
    let valid = run.invalid().next().is_none();
    assert!(!valid || on_path < least + CLOSE, "{on_path} on a path of {least}");
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
    delays(&run, Span::from_micros(20_800));
    for sample in &traffic.samples {
        assert_eq!(booked(&run, sample, "a>b", Cause::Propagate), Span::from_millis(20));
        assert_eq!(booked(&run, sample, "a>b", Cause::Transmit), Span::from_micros(800));
    }
    assert_eq!(run.links[0].counts.entered, 100);
    assert_eq!(run.links[0].counts.entered_bytes, 100_000);
}

const HOSTS: &str = "stop_after = '5s'\n[[host]]\nname = 'a'\n[[host]]\nname = 'b'\n";

fn echo(from: &str, to: &str, more: &str) -> String {
    format!(
        "[[traffic]]\nname = 't'\nkind = 'interactive'\nfrom = '{from}'\nto = '{to}'\n\
         sizes = [64]\nrepeat = 20\n{more}\n"
    )
}

#[test]
fn two_hops_and_a_backplane_add_up() {
    let Some(run) = emulated(&format!(
        "{HOSTS}[[node]]\nname = 'n'\nbackplane = '8Mbit/s'\n\
         [[link]]\nbetween = ['a', 'n']\nrate = '1Mbit/s'\ndelay = '10ms'\n\
         [[link]]\nbetween = ['n', 'b']\nrate = '2Mbit/s'\ndelay = '5ms'\n\
         [[traffic]]\nname = 't'\nkind = 'paced'\nfrom = 'a'\nto = 'b'\nsize = 64\n\
         rate = '51200bit/s'\nduration = '1s'\ntransport = 'datagram'\n"
    )) else {
        return;
    };
    // 64 bytes: 512 and 256 us, and 4 packets of 22.5 us on the backplane.
    delays(&run, Span::from_micros(15_000 + 512 + 256 + 90));
    for sample in &run.traffic[0].samples {
        assert_eq!(booked(&run, sample, "n", Cause::Transmit), Span::from_micros(90));
        assert_eq!(booked(&run, sample, "a>n", Cause::Propagate), Span::from_millis(10));
        assert_eq!(booked(&run, sample, "n>b", Cause::Transmit), Span::from_micros(256));
    }
    assert_eq!(run.traffic[0].packets.delivered, 100);
}

#[test]
fn each_direction_has_its_own_delay() {
    let Some(run) = emulated(&format!(
        "{HOSTS}[[link]]\nbetween = ['a', 'b']\nforward = {{ delay = '3ms' }}\n\
         backward = {{ delay = '12ms' }}\n{}",
        echo("a", "b", "transport = 'urp'")
    )) else {
        return;
    };
    delays(&run, Span::from_millis(15));
    for sample in &run.traffic[0].samples {
        assert_eq!(booked(&run, sample, "a>b", Cause::Propagate), Span::from_millis(3));
        assert_eq!(booked(&run, sample, "b>a", Cause::Propagate), Span::from_millis(12));
    }
}

#[test]
fn a_loop_leads_back_to_its_host() {
    let Some(run) = emulated(&format!(
        "{HOSTS}[[node]]\nname = 'n'\n[[node]]\nname = 'm'\n\
         [[link]]\nbetween = ['a', 'n']\ndelay = '2ms'\n\
         [[link]]\nname = 't1'\nbetween = ['n', 'm']\nrate = '1.544Mbit/s'\nframing = 't1-lapd'\n\
         [[link]]\nbetween = ['n', 'b']\n{}",
        echo("a", "a", "via = ['n', 'm', 'n']\ntransport = 'urp'")
    )) else {
        return;
    };
    delays(&run, Span::from_millis(8));
    // Both directions of the loop cross each link both ways.
    let samples = &run.traffic[0].samples;
    assert_eq!(booked(&run, &samples[0], "a>n", Cause::Propagate), Span::from_millis(4));
    assert!(run.links.iter().take(4).all(|link| link.counts.delivered > 0));
    assert_eq!(run.links[4].counts.delivered, 0);
}

#[test]
fn round_robin_shares_a_trunk_among_three_channels() {
    let Some(run) = emulated(&format!(
        "{HOSTS}[[link]]\nbetween = ['a', 'b']\nrate = '1Mbit/s'\ndelay = '2ms'\n\
         discipline = {{ kind = 'round-robin', quantum = 64 }}\n\
         [[traffic]]\nname = 'bulk'\nkind = 'bulk'\nfrom = 'a'\nto = 'b'\nbytes = '40kB'\nrepeat = 2\n\
         count = 3\ntransport = {{ kind = 'urp', block = 1024, outstanding = 7 }}\n"
    )) else {
        return;
    };
    let bulk = &run.traffic[0];
    assert_eq!(bulk.samples.len(), 6);
    assert!(bulk.delivered_bytes >= 240_000, "{}", bulk.delivered_bytes);
    // The line carries all of it in no less than 1.92 s, and one transfer that is alone in 0.32.
    let last = bulk.samples.iter().map(|sample| sample.end).max().unwrap();
    let first = bulk.samples.iter().map(|sample| sample.start).min().unwrap();
    assert!(last.since(first) >= Span::from_millis(1920), "{}", last.since(first));
    // Three channels with a third each: 40 kB take about a second, the last ones less, when others have ended.
    let mut took: Vec<f64> = bulk.samples.iter().map(|it| it.delay().as_secs_f64()).collect();
    took.sort_by(f64::total_cmp);
    assert!(took[0] > 0.32 && (0.8..1.6).contains(&took[3]), "{took:?}: {:?}", run.doubts());
    assert!(bulk.packets.dropped == 0 && bulk.block_count >= 240);
    assert!(run.links[0].queueing.as_ref().unwrap().count() == run.links[0].counts.delivered);
}

#[test]
fn a_greedy_connection_of_the_kernel_fills_the_line() {
    let Some(run) = emulated(&format!(
        "sample_backlog = '10ms'\n{HOSTS}[[link]]\nbetween = ['a', 'b']\nrate = '10Mbit/s'\ndelay = '10ms'\n\
         discipline = {{ kind = 'fifo', limit = '60kB' }}\n\
         [[traffic]]\nname = 't'\nkind = 'greedy'\nfrom = 'a'\nto = 'b'\nduration = '3s'\n\
         warm_up = '1s'\ninterval = '500ms'\n\
         transport = {{ kind = 'tcp', congestion = 'reno', profile = 'linux' }}\n"
    )) else {
        return;
    };
    let tcp = &run.traffic[0];
    assert!(tcp.amounts && tcp.samples.len() >= 3, "{}", tcp.samples.len());
    let rate = tcp.samples.iter().map(Sample::rate).sum::<f64>() / tcp.samples.len() as f64 * 8.0;
    // 1448 of 1500 bytes are the user's.
    assert!((6.0e6..9.66e6).contains(&rate), "{rate}");
    assert!(run.links[0].counts.entered_bytes > tcp.delivered_bytes);
    let frames = tcp.block_count;
    assert!(frames > 1000 && tcp.blocks.iter().any(|step| step.cause == Cause::Transmit));
    assert!(!run.links[0].backlog.is_empty());
}

/// What the kernel has left in its send buffer goes nowhere when the flow's time is up.
#[test]
fn a_greedy_connection_sends_no_longer_than_its_time() {
    let Some(run) = emulated(&format!(
        "{HOSTS}[[link]]\nbetween = ['a', 'b']\nrate = '1Mbit/s'\ndelay = '10ms'\n\
         discipline = {{ kind = 'fifo', limit = '30kB' }}\n\
         [[traffic]]\nname = 't'\nkind = 'greedy'\nfrom = 'a'\nto = 'b'\nduration = '2s'\nwarm_up = '0s'\n\
         write = '64KiB'\ntransport = {{ kind = 'tcp', profile = 'linux' }}\n"
    )) else {
        return;
    };
    let tcp = &run.traffic[0];
    // Two seconds of the line, and its queue, which was full by then.
    let most = 250_000 + 30_000;
    let delivered = run.links[0].counts.delivered_bytes;
    assert!((200_000..most).contains(&delivered), "{delivered} of {most}");
    assert!(tcp.delivered_bytes < delivered && tcp.packets.holds(), "{:?}", tcp.packets);
    let total = tcp.total_rate(0).unwrap();
    assert!(total <= 125_000.0 * 1448.0 / 1500.0 + 2.0 * 1448.0, "{total} B/s");
}

#[test]
fn what_is_lost_is_counted() {
    let Some(run) = emulated(&format!(
        "{HOSTS}[[link]]\nbetween = ['a', 'b']\nrate = '20Mbit/s'\ndelay = '5ms'\nloss = '10%'\n\
         [[traffic]]\nname = 't'\nkind = 'paced'\nfrom = 'a'\nto = 'b'\nsize = 200\n\
         rate = '800kbit/s'\nduration = '2s'\ntransport = 'datagram'\n"
    )) else {
        return;
    };
    let traffic = &run.traffic[0];
    assert_eq!(traffic.packets.sent, 1000);
    assert!((50..160).contains(&traffic.packets.dropped), "{:?}", traffic.packets);
    assert_eq!(traffic.samples.len() as u64, traffic.packets.delivered);
    assert_eq!(run.links[0].counts.dropped(), traffic.packets.dropped);
    delays(&run, Span::from_micros(5080));
}

/// A traffic that `commands` make; what the other engines would run is beside the point.
fn program(commands: &str) -> String {
    format!(
        "{HOSTS}[[link]]\nbetween = ['a', 'b']\nrate = '10Mbit/s'\ndelay = '15ms'\nlimit = '64KiB'\n\
         [[traffic]]\nname = 't'\nkind = 'greedy'\nfrom = 'a'\nto = 'b'\nduration = '2s'\n\
         transport = {{ kind = 'tcp', profile = 'linux', congestion = 'reno' }}\n{commands}\n"
    )
}

#[test]
fn ping_measures_the_round_trip() {
    if !installed(&["ping"]) {
        return;
    }
    let Some(run) = emulated(&program("command = 'ping -c 10 -i 0.1 -s 56 {peer}'")) else {
        return;
    };
    let ping = &run.traffic[0];
    assert_eq!((ping.samples.len(), ping.packets.sent, ping.packets.delivered), (10, 20, 20));
    // 84 bytes with their headers take 67.2 us each way. Ping prints three digits.
    delays(&run, Span::from_micros(30_100));
    assert_eq!(run.links[0].counts.entered_bytes, 840);
}

#[test]
fn iperf3_fills_the_line() {
    if !installed(&["iperf3"]) {
        return;
    }
    let commands = "command = 'iperf3 -c {peer} -p {port} -t 2 -i 0.5 -C reno -J'\n\
                    server = 'iperf3 -s -1 -p {port}'";
    let Some(run) = emulated(&program(commands)) else { return };
    let iperf = &run.traffic[0];
    assert!(!iperf.samples.is_empty(), "{:?}", run.notes);
    assert!((500_000..2_500_000).contains(&iperf.delivered_bytes), "{}", iperf.delivered_bytes);
    assert!(iperf.packets.sent > 500 && iperf.block_count > 300);
    let propagate = iperf.blocks.iter().find(|step| step.cause == Cause::Propagate).unwrap();
    assert_eq!(propagate.span, Span::from_millis(15).scaled(iperf.block_count, 1));
}

#[test]
fn a_run_can_be_broken_off() {
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let cancel = std::sync::atomic::AtomicBool::new(false);
    let progress = |_: &trunkline_emu::Progress| {
        cancel.store(true, std::sync::atomic::Ordering::Relaxed);
    };
    let text = program("").replace("'2s'", "'200s'").replace("'5s'", "'300s'");
    let options =
        Options { cancel: Some(&cancel), progress: Some(&progress), ..Options::default() };
    match run(&Network::of(&scenario(&text)).unwrap(), &options) {
        Err(error) if error.is_permission() => skipped(error),
        result => assert_eq!(result.unwrap_err().to_string(), "broken off"),
    }
}

/// Every protocol of the list on real sockets, over a path that loses: all arrives, once and in order.
#[test]
fn listed_protocols_move_everything_over_a_path_that_loses() {
    for entry in trunkline_transport::protocol::PROTOCOLS {
        let name = entry.name;
        let Some(run) = emulated(&format!(
            "stop_after = '60s'\n[[host]]\nname = 'a'\n[[host]]\nname = 'b'\n\
             [[link]]\nbetween = ['a', 'b']\nrate = '10Mbit/s'\ndelay = '3ms'\nloss = '3%'\nduplicate = '2%'\n\
             [[traffic]]\nname = 't'\nkind = 'bulk'\nfrom = 'a'\nto = 'b'\nbytes = '40kB'\nrepeat = 8\n\
             transport = {{ kind = '{name}', frame = 700 }}\n"
        )) else {
            return;
        };
        let traffic = &run.traffic[0];
        assert_eq!(traffic.delivered_bytes, 8 * (40_000 + 4), "{name}: {:?}", run.notes);
        assert!(traffic.retransmissions > 0 && traffic.samples.len() == 8, "{name}");
        assert!(
            !run.notes.iter().any(|note| note.kind == NoteKind::Failed),
            "{name}: {:?}",
            run.notes
        );
        let recovered = traffic.blocks.iter().filter(|step| step.cause == Cause::Recover);
        let waited: Span = recovered.map(|step| step.span).sum();
        assert!(!waited.is_zero(), "{name}: losses are waited for");
    }
}

/// Characters on real sockets: all arrives with the ends of its messages, and a number waits for its echo, so that
/// 512 bytes of which 256 may go unechoed take two round trips of 20 ms.
#[test]
fn characters_go_over_real_sockets() {
    for (mode, round_trips) in [("character", 2), ("block", 1)] {
        let Some(run) = emulated(&format!(
            "{HOSTS}[[link]]\nbetween = ['a', 'b']\nrate = '10Mbit/s'\ndelay = '10ms'\n\
             [[traffic]]\nname = 't'\nkind = 'interactive'\nfrom = 'a'\nto = 'b'\nsizes = [512]\nreply = 8\nrepeat = 10\n\
             transport = {{ kind = 'urp', mode = '{mode}' }}\nreply_transport = {{ mode = 'block' }}\n"
        )) else {
            return;
        };
        let traffic = &run.traffic[0];
        assert_eq!(traffic.delivered_bytes, 10 * 520, "{:?}", run.notes);
        assert_eq!(traffic.samples.len(), 10);
        // 520 envelopes at 0.8 us, and the controls.
        let least = Span::from_millis(20 * round_trips) + Span::from_nanos(520 * 800);
        delays(&run, least);
        assert!(!run.notes.iter().any(|note| note.kind == NoteKind::Failed), "{:?}", run.notes);
    }
}

/// Stop-and-wait over real sockets takes a round trip for each frame.
#[test]
fn stop_and_wait_takes_a_round_trip_for_each_frame() {
    let Some(run) = emulated(&format!(
        "{HOSTS}[[link]]\nbetween = ['a', 'b']\nrate = '10Mbit/s'\ndelay = '10ms'\n\
         [[traffic]]\nname = 't'\nkind = 'interactive'\nfrom = 'a'\nto = 'b'\nsizes = [3000]\nreply = 8\nrepeat = 20\n\
         transport = {{ kind = 'stop-and-wait', frame = 1000, timeout = '2s' }}\n"
    )) else {
        return;
    };
    // Three frames and the reply: three round trips of 20 ms, 1008 and 8 bytes, and the reply's frame after the third.
    let frame = Span::from_nanos(1008 * 800);
    let small = Span::from_nanos(8 * 800);
    let frames = (frame + small + Span::from_millis(20)).scaled(2, 1);
    delays(&run, frames + frame + Span::from_millis(20) + small.scaled(2, 1));
    for sample in &run.traffic[0].samples {
        assert!(sample.booked(Cause::Window) >= Span::from_millis(40));
    }
}

/// Three hosts on one channel of 2 Mbit/s and a fourth behind a node and a link: datagrams and a connection take turns on
/// it, every wait is booked, and each station has its counts.
#[test]
fn hosts_share_a_medium() {
    let Some(run) = emulated(
        "stop_after = '20s'\n[[host]]\nname = 'a'\n[[host]]\nname = 'b'\n[[host]]\nname = 'c'\n[[host]]\nname = 'far'\n\
         [[node]]\nname = 'n'\n[[medium]]\nname = 'lan'\nkind = 'half-duplex'\nstations = ['a', 'b', 'c', 'n']\n\
         rate = '2Mbit/s'\ndelay = '5ms'\nturnaround = '1ms'\n\
         [[link]]\nbetween = ['n', 'far']\ndelay = '3ms'\n\
         [[traffic]]\nname = 'echoes'\nkind = 'interactive'\nfrom = 'a'\nto = 'far'\nsizes = [100]\nrepeat = 20\nevery = '100ms'\n\
         transport = { kind = 'urp', block = 256, packet = 0 }\n\
         [[traffic]]\nname = 'file'\nkind = 'bulk'\nfrom = 'b'\nto = 'c'\nbytes = '100kB'\nuntil = 'echoes'\n",
    ) else {
        return;
    };
    let names: Vec<&str> = run.links.iter().map(|link| &*link.name).collect();
    assert_eq!(names, ["n>far", "far>n", "a>lan", "b>lan", "c>lan", "n>lan"]);
    let counts = |name: &str| run.links.iter().find(|link| link.name == name).unwrap().counts;
    assert!(counts("a>lan").delivered >= 20 && counts("n>lan").delivered >= 20);
    assert!(counts("b>lan").delivered > 70 && counts("c>lan").delivered > 30);
    // Over the medium and the link and back.
    let least = Span::from_millis(16);
    let sample = &run.traffic[0].samples[10];
    assert!(sample.end - sample.start >= least, "{sample:?}");
    for (place, way) in [("a>lan", 5), ("n>lan", 5), ("n>far", 3), ("far>n", 3)] {
        assert_eq!(
            booked(&run, sample, place, Cause::Propagate),
            Span::from_millis(way),
            "{place}"
        );
    }
    assert!(run.traffic[1].delivered_bytes > 100_000);
}
