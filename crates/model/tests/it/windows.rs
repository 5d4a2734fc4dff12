//! Short messages and transfers: what waits for what, by hand.

use crate::common::build::*;
use crate::media::nanos;
use trunkline_core::{Rate, Size, Span};
use trunkline_model::{Figure, What, predictions};
use trunkline_path::LinkSpec;
use trunkline_scenario::{Listed, Scenario, TcpSettings, Transport, Workload};
use trunkline_transport::protocol::{Values, named};

fn transfer(net: &Scenario, bytes: u64) -> Span {
    predictions(net).unwrap().find("file", bytes, What::Transfer).unwrap().value.time().unwrap()
}

/// 8 Mbit/s and 50 ms each way, with blocks of 1000 bytes in one packet.
fn far(bytes: u64, write: u32) -> Scenario {
    let mut net = pair(&link(8_000_000, Span::from_millis(50)));
    let file = Workload::Bulk { bytes: Size::from_bytes(bytes), repeat: 1, write, confirm: true };
    net.traffic.push(traffic("file", ("a", "b"), file, &urp(1000, 3, 0)));
    net
}

#[test]
fn blocks_wait_for_whole_windows_only() {
    // A block of 1004 bytes and its ECHO; the empty message of 4 bytes, ECHO and answer of 4 + 4.
    let (block, answered) = (Span::from_micros(1004), Span::from_micros(101_005));
    let confirmation = Span::from_micros(100_000 + 4 + 1 + 8);
    for (blocks, windows, more) in [(1, 0, 1), (2, 0, 2), (3, 1, 0), (4, 1, 1), (11, 3, 2)] {
        let by_hand = answered.scaled(windows, 1) + block.scaled(more, 1) + confirmation;
        for write in [1000, 2000, 50_000] {
            let ours = transfer(&far(blocks * 1000, write), blocks * 1000);
            let off = ours.abs_diff(by_hand);
            assert!(off < Span::from_nanos(100), "{blocks} blocks: {ours}, {by_hand} by hand");
        }
    }
}

/// The last block of a message waits at each line for a longer one ahead of it.
#[test]
fn a_short_last_block_does_not_overtake() {
    let line = link(8_000_000, Span::ZERO);
    let wires = vec![wire("a", "n", &line), wire("n", "b", &line)];
    let mut net = scenario(vec![host("a"), host("b")], &["n"], wires);
    net.traffic.push(traffic("talk", ("a", "b"), echo(&[1500]), &urp(1000, 7, 0)));
    let found = predictions(&net).unwrap();
    let ours = found.find("talk", 1500, What::RoundTrip).unwrap().value.time().unwrap();
    // Blocks of 1004 and 504 bytes over two lines, there and back; behind one ECHO, of which the first goes ahead of the
    // answer on both lines: the first block leaves the second line after 2008 us, the second after 504 more.
    let one_way = Span::from_micros(2 * 1004 + 504);
    let echoes = Span::from_micros(2);
    assert!(ours.abs_diff(one_way.scaled(2, 1)) <= echoes, "{ours}");
}

/// Store and forward: of ten frames over four equal lines the last is there after (10 + 4 − 1) times that of one on a line,
/// and the empty message behind it does not overtake it.
#[test]
fn the_last_frame_passes_every_line() {
    let hops = |transport: &Transport, delay: Span| {
        let line = link(10_000_000, delay);
        let between = [("a", "l"), ("l", "m"), ("m", "n"), ("n", "b")];
        let wires = between.map(|(from, to)| wire(from, to, &line)).to_vec();
        let mut net = scenario(vec![host("a"), host("b")], &["l", "m", "n"], wires);
        let bytes = Size::from_bytes(10_000);
        let file = Workload::Bulk { bytes, repeat: 1, write: 1000, confirm: true };
        net.traffic.push(traffic("file", ("a", "b"), file, transport));
        transfer(&net, 10_000)
    };
    let entry = named("go-back-n").unwrap();
    let values = Values::parse(entry.name, entry.keys, "frame=1000,frames=20,timeout=1s").unwrap();
    let frames = Transport::Listed(Listed { entry, values });
    // Frames of 1008 bytes, the empty message's of 8 and its answer's of 12; 2 ms of distance a line.
    let bits = |bytes: f64| bytes * 0.8e-6;
    let by_hand = bits(13.0 * 1008.0 + 8.0 + 4.0 * 12.0) + 16e-3;
    let ours = hops(&frames, Span::from_millis(2)).as_secs_f64();
    assert!((ours / by_hand - 1.0).abs() < 0.002, "{ours} s, {by_hand} by hand");
    // A window of seven blocks that does not fill the lines: the answer to the fourth lets the last go.
    let answered = bits(4.0 * 1004.0 + 4.0) + 16e-3;
    let by_hand = answered + bits(3.0 * 1004.0) + bits(3.0 * 1004.0 + 4.0 + 4.0 * 9.0) + 16e-3;
    let ours = hops(&urp(1000, 7, 0), Span::from_millis(2)).as_secs_f64();
    assert!((ours / by_hand - 1.0).abs() < 0.002, "{ours} s, {by_hand} by hand");
}

/// Little's law: as many transfers as there are connections are always under way.
#[test]
fn transfers_that_begin_again_take_their_bytes_over_their_share() {
    let payload = 1448.0 / 1500.0 * 10e6 / 8.0;
    let tcp = TcpSettings { profile: "trunkline".into(), ..TcpSettings::default() };
    for (bytes, count) in [(20_000u64, 3u32), (20_000, 8), (200_000, 3), (2_000_000, 8)] {
        let mut net = pair(&link(10_000_000, Span::from_millis(10)));
        let (repeat, write) = (20, 8192);
        let file = Workload::Bulk { bytes: Size::from_bytes(bytes), repeat, write, confirm: true };
        net.traffic.push(traffic("file", ("a", "b"), file, &Transport::Tcp(tcp.clone())));
        net.traffic[0].count = count;
        let by_hand = f64::from(count) * bytes as f64 / payload;
        let alone = 0.02 + bytes as f64 / payload;
        let ours = transfer(&net, bytes).as_secs_f64();
        assert!((ours / by_hand.max(alone) - 1.0).abs() < 0.02, "{count} x {bytes}: {ours}");
    }
}

/// CoDel's target is no buffer that overflows: bursts pass, and the range of simulated throughputs is told.
#[test]
fn a_queue_that_is_kept_to_a_target_lets_bursts_pass() {
    for discipline in ["codel", "pie"] {
        let discipline = discipline.parse().unwrap();
        let mut net = pair(&LinkSpec { discipline, ..link(3_000_000, Span::from_millis(50)) });
        let (second, write) = (Span::from_secs(1), 16_384);
        let greedy =
            Workload::Greedy { duration: second, warm_up: second, interval: second, write };
        let tcp = TcpSettings { profile: "trunkline".into(), ..TcpSettings::default() };
        net.traffic.push(traffic("one", ("a", "b"), greedy, &Transport::Tcp(tcp)));
        let notes = predictions(&net).unwrap().notes;
        let told = |words: &str| notes.iter().any(|note| note.text.contains(words));
        assert!(told("0.85 to 1.33") && !told("upper bound"), "{notes:?}");
    }
}

/// One download by Linux's TCP over this line.
fn download(line: &LinkSpec) -> Scenario {
    let mut net = pair(line);
    let (second, write) = (Span::from_secs(1), 16_384);
    let greedy = Workload::Greedy { duration: second, warm_up: second, interval: second, write };
    let tcp = TcpSettings { profile: "linux".into(), ..TcpSettings::default() };
    net.traffic.push(traffic("download", ("a", "b"), greedy, &Transport::Tcp(tcp)));
    net
}

/// Served in turn with nobody else, a connection fills the queue as it would without turns: the simulator has 10.0 MB/s of
/// 12.1 before 100 kB of deficit round robin.
#[test]
fn a_connection_alone_fills_a_fair_queue() {
    let rate = |discipline: &str| {
        let discipline = discipline.parse().unwrap();
        let net = download(&LinkSpec { discipline, ..link(100_000_000, Span::from_millis(30)) });
        let found = predictions(&net).unwrap();
        found.list.iter().find(|p| p.what == What::Throughput).unwrap().value
    };
    for fair in ["drr:limit=100kB", "sfq:limit=100kB"] {
        assert_eq!(rate(fair), rate("fifo:limit=100kB"), "{fair}");
    }
    assert_eq!(rate("fq-codel"), rate("codel"));
}

/// A call does not wait behind a download that a fair queue serves in turn with it: the simulator has 20.6 ms for a round trip of
/// 20.3, and 23.0 with CoDel's one queue for both.
#[test]
fn a_call_does_not_wait_behind_what_is_served_in_turn() {
    let predicted = |discipline: &str| {
        let discipline = discipline.parse().unwrap();
        let mut net = download(&LinkSpec { discipline, ..link(10_000_000, Span::from_millis(10)) });
        let tcp = net.traffic[0].transport.clone();
        net.traffic.push(traffic("call", ("a", "b"), echo(&[160]), &tcp));
        let found = predictions(&net).unwrap();
        found.find("call", 160, What::RoundTrip).map(|it| it.value.time().unwrap())
    };
    assert!(predicted("codel").unwrap() > Span::from_millis(24));
    for fair in ["fq-codel", "drr:limit=100kB", "sfq:limit=100kB"] {
        assert_eq!(predicted(fair), None, "{fair}");
    }
}

/// Of 20 kB no more than 16 ms of a line of 10 Mbit/s can wait, whatever its buffer holds; half of it in the mean.
#[test]
fn a_call_waits_for_no_more_than_a_transfer_has() {
    let predicted = |discipline: &str, bytes| {
        let discipline = discipline.parse().unwrap();
        let mut net =
            download(&LinkSpec { discipline, ..link(10_000_000, Span::from_micros(100)) });
        net.traffic[0].workload = Workload::Bulk {
            bytes: Size::from_bytes(bytes),
            repeat: 1,
            write: 1460,
            confirm: true,
        };
        let tcp = net.traffic[0].transport.clone();
        net.traffic.push(traffic("call", ("a", "b"), echo(&[160]), &tcp));
        let found = predictions(&net).unwrap();
        let queues = [What::MeanQueue, What::StandingQueue];
        let queue = found.list.iter().any(|it| queues.contains(&it.what));
        (found.find("call", 160, What::RoundTrip).unwrap().value.time().unwrap(), queue)
    };
    for discipline in ["fifo:limit=200kB", "fifo:limit=100MB"] {
        let (short, told) = predicted(discipline, 20_000);
        assert!(short > Span::from_millis(8) && short < Span::from_millis(9) && !told, "{short}");
        let (long, told) = predicted(discipline, 20_000_000);
        assert!(long > Span::from_millis(100) && told, "{long}");
    }
}

/// 4000 bytes at 500 kbit/s stand in the queue for 66 ms, which CoDel drops from; the simulator has 2.8 s for a round trip of
/// 0.14 without losses.
#[test]
fn messages_that_fill_a_queue_are_told() {
    let told = |discipline: &str, transport: &Transport| {
        let discipline = discipline.parse().unwrap();
        let mut net = pair(&LinkSpec { discipline, ..link(500_000, Span::from_millis(1)) });
        net.traffic.push(traffic("talk", ("a", "b"), echo(&[4000]), transport));
        let notes = predictions(&net).unwrap().notes;
        notes.iter().any(|note| note.text.contains("left out"))
    };
    let tcp = Transport::Tcp(TcpSettings { profile: "linux".into(), ..TcpSettings::default() });
    for transport in [urp(512, 7, 0), tcp] {
        assert!(told("fq-codel", &transport));
        assert!(told("fifo:limit=2000B", &transport));
        assert!(!told("fifo:limit=64KiB", &transport));
    }
}

/// A tooth of 15 s is no steady state in a test of a minute: the simulator is a fifth below.
#[test]
fn a_test_of_a_few_saw_teeth_is_told() {
    let told = |bits| {
        let discipline = "fifo:limit=20kB".parse().unwrap();
        let mut net = pair(&LinkSpec { discipline, ..link(bits, Span::from_millis(30)) });
        let minute = Span::from_secs(60);
        let timed = Workload::TimedTransfer { sizes: vec![8000], duration: minute };
        let profile = "linux".into();
        let congestion = Some("reno".into());
        let tcp = TcpSettings { profile, congestion, ..TcpSettings::default() };
        net.traffic.push(traffic("one", ("a", "b"), timed, &Transport::Tcp(tcp)));
        let notes = predictions(&net).unwrap().notes;
        notes.iter().any(|note| note.text.contains("the long run"))
    };
    assert!(told(100_000_000));
    assert!(!told(2_000_000));
}

/// Three datagrams of 528 bytes at once, in turn 64 bytes of each: all wait for eight pieces of the two others, and for none
/// to two of the last ones. The simulator has 12.9 ms, where the first of them is a piece ahead; one after the other 10.5.
#[test]
fn datagrams_in_turn_wait_for_each_others_pieces() {
    let discipline = "round-robin:quantum=64,limit=20kB".parse().unwrap();
    let mut net = pair(&LinkSpec { discipline, ..link(1_544_000, Span::from_millis(5)) });
    let rate = Rate::from_bits_per_second(50_000);
    let paced = Workload::Paced { size: 500, rate, duration: Span::from_secs(20) };
    net.traffic.push(traffic("voice", ("a", "b"), paced, &Transport::Udp));
    net.traffic[0].count = 3;
    let found = predictions(&net).unwrap();
    let ours = found.find("voice", 500, What::Delay).unwrap().value.time().unwrap().as_secs_f64();
    let bytes = 528.0 + 2.0 * 8.0 * 64.0 + 16.0;
    let by_hand = 5e-3 + bytes * 8.0 / 1.544e6;
    assert!((ours / by_hand - 1.0).abs() < 0.001, "{ours} s, {by_hand} by hand");
}

/// Losses are a matter of chance, and a note tells what four transfers in five take.
#[test]
fn the_range_that_losses_make_holds_four_transfers_in_five() {
    for (transport, percent, kib) in [
        ("kind = \"go-back-n\", frames = 8, rate = \"1Mbit/s\"", 2, 64),
        ("kind = \"go-back-n\", frames = 4, rate = \"1Mbit/s\"", 5, 400),
        ("kind = \"stop-and-wait\"", 4, 100),
        ("kind = \"stop-and-wait\"", 1, 200),
    ] {
        let text = |seed: u32| {
            format!(
                "seed = {seed}\nhost = [{{ name = \"a\" }}, {{ name = \"b\" }}]\n[[link]]\nbetween = [\"a\", \"b\"]\nrate = \"1Mbit/s\"\ndelay = \"10ms\"\nforward = {{ loss = \"{percent}%\" }}\n[[traffic]]\nname = \"file\"\nkind = \"bulk\"\nfrom = \"a\"\nto = \"b\"\nbytes = \"{kib}KiB\"\ntransport = {{ {transport}, timeout = \"200ms\" }}\n"
            )
        };
        let scenario = |seed| Scenario::parse(&text(seed), "chance.toml").unwrap().remove(0);
        let found = predictions(&scenario(1)).unwrap();
        let told = "four in five transfers take ";
        let note = found.notes.iter().find_map(|it| Some(it.text.split_once(told)?.1.to_string()));
        let note = note.unwrap_or_else(|| panic!("{found:?}"));
        let (least, most) = note.split_once(" to ").unwrap();
        let range = nanos(least)..=nanos(most);
        let took = |seed| {
            let run = trunkline_sim::run(&scenario(seed)).unwrap();
            run.traffic[0].samples.iter().next().unwrap().delay().as_nanos() as f64
        };
        let within = (1..=200).filter(|&seed| range.contains(&took(seed))).count();
        assert!((150..=190).contains(&within), "{transport}, {note}: {within} of 200");
    }
}

/// Small writes leave much of a window of a few segments: of one that holds less than five, two may be used.
#[test]
fn small_writes_in_a_small_window_are_told() {
    for (profile, mtu, window, write) in [
        ("trunkline", 576, 2609, 462),
        ("trunkline", 1500, 7142, 1283),
        ("bsd-reno", 576, 2632, 449),
    ] {
        let text = format!(
            "mtu = {mtu}\n[[host]]\nname = 'a'\n[[host]]\nname = 'b'\n[[link]]\nbetween = ['a', 'b']\nrate = '1Gbit/s'\ndelay = '10ms'\n[[traffic]]\nname = 't'\nkind = 'greedy'\nfrom = 'a'\nto = 'b'\nwrite = {write}\nduration = '10s'\ntransport = {{ kind = 'tcp', profile = '{profile}', window = {window} }}\n"
        );
        let scenario = Scenario::parse(&text, "small.toml").unwrap().remove(0);
        let found = predictions(&scenario).unwrap();
        let told = found.notes.iter().any(|note| note.text.contains("up to two and a half times"));
        let less = found.notes.iter().any(|note| note.text.contains("a fifth lower"));
        assert!(told && !less, "{:?}", found.notes);
        let formula = found.list.iter().find_map(|it| match it.value {
            Figure::Rate(rate) if it.what == What::Throughput => Some(rate.bytes_per_second()),
            _ => None,
        });
        // What comes in the second before the first interval is not counted.
        let run = trunkline_sim::run(&scenario).unwrap();
        let seen = run.traffic[0].samples.iter().map(|it| it.size).sum::<u64>() as f64 / 9.0;
        let faster = formula.unwrap() as f64 / seen;
        assert!((2.0..2.5).contains(&faster), "{profile} {window}: {faster}");
    }
}
