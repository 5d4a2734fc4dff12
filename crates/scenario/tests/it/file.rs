//! Scenario files: what they say is what comes out.

use trunkline_core::{Rate, Size, Span};
use trunkline_path::discipline::RoundRobinSettings;
use trunkline_path::{DisciplineSpec, Framing, Limit};
use trunkline_scenario::{
    Cost, Echo, Network, ProtocolPlace, Reply, Scenario, Split, Start, Transport, Workload,
};

pub fn parse(text: &str) -> Vec<Scenario> {
    Scenario::parse(text, "folder/test.toml").unwrap_or_else(|error| panic!("{error}"))
}

pub fn one(text: &str) -> Scenario {
    let mut cells = parse(text);
    assert_eq!(cells.len(), 1);
    cells.remove(0)
}

/// The example of the design.
pub const DESIGN: &str = r#"
seed = 7
[[host]]
name = "coma"
[[host]]
name = "tempel"

[[link]]
between = ["coma", "tempel"]
rate = "1.544Mbit/s"
framing = "t1-lapd"
delay = "12ms"
discipline = { kind = "round-robin", quantum = 64 }

[[traffic]]
name = "background"
kind = "bulk"
from = "coma"
to = "tempel"
count = 4
transport = { kind = "urp", block = 1024, outstanding = 7 }

[[traffic]]
name = "keystrokes"
kind = "interactive"
from = "coma"
to = "tempel"
sizes = [1, 64, 512]
repeat = 300
start_after = "background:1MB"
transport = { kind = "urp" }
"#;

#[test]
fn the_example_of_the_design() {
    let scenario = one(DESIGN);
    assert_eq!((scenario.name.as_str(), scenario.seed.0), ("test", 7));
    assert_eq!((scenario.stop_after, scenario.sample_backlog), (Span::from_secs(3600), None));
    let link = &scenario.links[0];
    assert_eq!((link.name.as_str(), &link.forward), ("coma-tempel", &link.backward));
    assert_eq!(
        (link.forward.framing, link.forward.delay),
        (Framing::T1_LAPD, Span::from_millis(12))
    );
    // The default queue holds 250 ms of the rate but at least 64 KiB, as on the command line.
    let limit = Limit::Bytes(64 << 10);
    let discipline = DisciplineSpec::from(RoundRobinSettings { quantum: 64, limit });
    assert_eq!(link.forward.discipline, discipline);
    let [background, keystrokes] = scenario.traffic.as_slice() else { panic!() };
    assert_eq!((background.count, &background.until), (4, &None));
    let Transport::Urp(urp) = &*background.transport else { panic!() };
    assert_eq!(
        (urp.block, urp.outstanding, urp.packet, urp.profile.as_str()),
        (1024, 7, 16, "trunkline")
    );
    assert_eq!(background.reply_transport, background.transport);
    let megabyte = Size::from_bytes(1_000_000);
    assert_eq!(keystrokes.start, Start::AfterBytes("background".into(), megabyte));
    let sizes = vec![1, 64, 512];
    let work = Workload::Interactive { sizes, repeat: 300, reply: Reply::Echo, every: Span::ZERO };
    assert_eq!(keystrokes.workload, work);
    let bulk = Workload::Bulk { bytes: megabyte, repeat: 1, write: 1024, confirm: true };
    assert_eq!(background.workload, bulk);
}

#[test]
fn what_accompanies_another_traffic_has_no_end_of_its_own() {
    let repeat = |keys: &str| {
        let scenario = one(&with(DESIGN, "count = 4", &format!("until = 'keystrokes'\n{keys}")));
        let Workload::Bulk { repeat, .. } = scenario.traffic[0].workload else { panic!() };
        repeat
    };
    assert_eq!((repeat(""), repeat("repeat = 9")), (u32::MAX, 9));
}

pub const HOSTS: &str = r#"
name = "Datakit"
about = "Two hosts and a node."
stop_after = "60s"
sample_backlog = "10ms"

[processor.vax8550]
write = { fixed = "0.3ms", per_byte = "2us" }
read = "0.2ms"
disturbance = { probability = "5%", mean = "2ms" }

[interface.kmc]
protocol = "board"
split = [{ below = 512, piece = 64 }, { piece = 1024 }]
requests = 1
send_block = { per_byte = "3us" }
half_duplex = true
programmed = "1us"
memory = "2KiB"
receive_buffer = 64
echo = "consumption"

[[host]]
name = "a"
processor = "vax8550"
interface = "kmc"
[[host]]
name = "b"
[[node]]
name = "n"
backplane = "8Mbit/s"

[module.fifo]
discipline = "fifo"
limit = "32KiB"
output-buffer = "1KiB"
framing = "t1-lapd"

[[link]]
name = "access"
between = ["a", "n"]
rate = "10Mbit/s"
[[link]]
name = "t1"
between = ["n", "b"]
module = "fifo"
rate = "1.544Mbit/s"
loss = 0.01
bit-errors = 1e-7
backward = { limit = "500kB", delay = "3ms", loss = 0 }

[[traffic]]
name = "x"
kind = "interactive"
from_each = ["a", "b"]
to = "b"
via = ["n"]
sizes = ["1KiB"]
reply = 4
transport = { kind = "urp", outstanding = 1 }
reply_transport = { block = 64 }
start_after = "y"
[[traffic]]
name = "y"
kind = "paced"
from = "a"
to = "b"
size = 1000
rate = "500kbit/s"
start = "5s"
"#;

#[test]
fn hosts_interfaces_and_modules() {
    // A host that sends to itself over a node goes there and back.
    let scenario = one(HOSTS);
    assert_eq!(
        (scenario.name.as_str(), scenario.about.as_str()),
        ("Datakit", "Two hosts and a node.")
    );
    assert_eq!(scenario.sample_backlog, Some(Span::from_millis(10)));
    let (a, b) = (&scenario.hosts[0], &scenario.hosts[1]);
    let write = Cost { fixed: Span::from_micros(300), per_byte: Span::from_micros(2) };
    let read = Cost { fixed: Span::from_micros(200), per_byte: Span::ZERO };
    assert_eq!((a.processor.write, a.processor.read), (write, read));
    let disturbance = a.processor.disturbance.unwrap();
    assert!((disturbance.probability - 0.05).abs() < 1e-12);
    assert_eq!(a.interface.name, "kmc");
    assert_eq!((a.interface.protocol, a.interface.echo), (ProtocolPlace::Board, Echo::Consumption));
    let split = [Split { below: Some(512), piece: 64 }, Split { below: None, piece: 1024 }];
    assert_eq!((a.interface.split.as_slice(), a.interface.requests), (&split[..], Some(1)));
    assert_eq!(a.interface.memory, Some(Size::from_bytes(2048)));
    assert_eq!((b.processor.clone(), b.interface.clone()), Default::default());
    assert_eq!(scenario.nodes[0].backplane, Some(Rate::from_bits_per_second(8_000_000)));
    let t1 = &scenario.links[1];
    assert_eq!(t1.forward.discipline, DisciplineSpec::fifo(Limit::Bytes(32 << 10)));
    assert_eq!(t1.backward.discipline, DisciplineSpec::fifo(Limit::Bytes(500_000)));
    assert_eq!((t1.forward.delay, t1.backward.delay), (Span::ZERO, Span::from_millis(3)));
    assert_eq!(t1.backward.output_buffer, Size::from_bytes(1024));
    assert_eq!(t1.forward.impairments.loss.to_string(), "1%");
    assert_eq!(t1.backward.impairments.loss, Default::default());
    assert_eq!(t1.forward.impairments.bit_errors, "1e-7".parse().unwrap());
}

#[test]
fn traffic_in_all_its_forms() {
    let scenario = one(HOSTS);
    let [x, y] = scenario.traffic.as_slice() else { panic!() };
    assert_eq!((x.from.as_str(), x.source(1)), ("a", "b"));
    assert!(
        matches!(&x.workload, Workload::Interactive { sizes, reply: Reply::Bytes(4), .. } if sizes == &[1024])
    );
    let (Transport::Urp(there), Transport::Urp(back)) = (&*x.transport, &*x.reply_transport) else {
        panic!()
    };
    assert_eq!((there.block, there.outstanding), (256, 1));
    assert_eq!((back.block, back.outstanding), (64, 1), "what is left out is as in transport");
    assert_eq!(x.start, Start::AfterEnd("y".into()));
    assert_eq!((&*y.transport, &y.start), (&Transport::Datagram, &Start::At(Span::from_secs(5))));
    let rate = Rate::from_bits_per_second(500_000);
    assert_eq!(y.workload, Workload::Paced { size: 1000, rate, duration: Span::from_secs(10) });
}

/// One text in place of another.
pub fn with(base: &str, from: &str, to: &str) -> String {
    assert!(base.contains(from), "{from}");
    base.replacen(from, to, 1)
}

#[test]
fn a_direction_wins_over_the_link_and_the_link_over_module_and_preset() {
    let link = |keys: &str| {
        let text = with(HOSTS, "rate = \"10Mbit/s\"", keys);
        one(&text).links[0].clone()
    };
    let wire = link("preset = 't1-1989'\nmodule = 'fifo'\nlimit = '9kB'\nforward.limit = '1p'");
    assert_eq!(wire.forward.rate.unwrap().to_string(), "1.544Mbit/s");
    assert_eq!(wire.forward.discipline.limit(), Limit::Packets(1));
    assert_eq!(wire.backward.discipline.limit(), Limit::Bytes(9000));
    let wire = link("preset = 'dsl'\nlimit = '9kB'\nbackward.discipline = 'drr:limit=7p'");
    assert_eq!(wire.forward.rate.unwrap().to_string(), "1Mbit/s", "forward is up");
    assert_eq!(wire.backward.discipline.limit(), Limit::Packets(7), "the more special limit");
}

#[test]
fn a_trunk_board_has_a_processor() {
    let board =
        "processor = { input_fifo = '4kB', output_per_byte = '1231.25ns', output_first = true }";
    let text = with(HOSTS, "limit = \"32KiB\"", board);
    let text = with(&text, "delay = \"3ms\"", "processor = 'none', framing = 'datakit'");
    let t1 = &one(&text).links[1];
    let processor = t1.forward.processor.unwrap();
    assert_eq!(processor.input_fifo, Size::from_bytes(4000));
    assert_eq!(
        (processor.input_per_byte.as_picos(), processor.output_per_byte.as_picos()),
        (0, 1_231_250)
    );
    assert!(processor.output_first);
    assert_eq!((t1.backward.processor, t1.backward.framing), (None, Framing::Datakit));
}

#[test]
fn files_are_found_beside_the_scenario() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("lost"), "0 0 1\n").unwrap();
    std::fs::write(folder.path().join("line"), "1\n2\n").unwrap();
    std::fs::write(folder.path().join("steps"), "0s delay=1ms; 5s loss=trace:lost").unwrap();
    let keys = "loss = 'trace:lost'\ntrace = 'line'\nschedule = 'steps'\n";
    let file = folder.path().join("x.toml");
    std::fs::write(&file, with(HOSTS, "rate = \"10Mbit/s\"", keys)).unwrap();
    let cells = Scenario::read(&file).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(cells[0].links[0].forward.trace, Some(vec![1, 2]));
    assert!(Scenario::read(folder.path().join("none")).unwrap_err().to_string().contains("none"));
}

/// A connection with hosts and links of its own takes some 600 bytes: thousands are no reason to refuse a file, and what is
/// looked up for each is not looked for among all.
#[test]
fn a_dumbbell_of_ten_thousand_pairs_is_read() {
    let mut text = String::from(
        "[[node]]\nname = 'left'\n[[node]]\nname = 'right'\n\
         [[link]]\nname = 'trunk'\nbetween = ['left', 'right']\n",
    );
    for pair in 0..10_000 {
        text += &format!(
            "[[host]]\nname = 's{pair}'\n[[host]]\nname = 'r{pair}'\n\
             [[link]]\nname = 'a{pair}'\nbetween = ['s{pair}', 'left']\n\
             [[link]]\nname = 'b{pair}'\nbetween = ['right', 'r{pair}']\n\
             [[traffic]]\nname = 't{pair}'\nkind = 'greedy'\nfrom = 's{pair}'\nto = 'r{pair}'\n\
             duration = '1s'\ntransport = 'tcp'\n"
        );
    }
    assert!(text.len() > 1 << 20);
    let scenario = one(&text);
    assert_eq!((scenario.hosts.len(), scenario.traffic.len()), (20_000, 10_000));
    let network = Network::of(&scenario).unwrap();
    let way = network.way(7, 0);
    let names: Vec<String> = way.there.iter().map(|it| network.lanes()[it.lane].name()).collect();
    assert_eq!(names, ["s7>left", "left>right", "right>r7"]);
}

#[test]
fn the_example_of_the_reference_page() {
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/scenario.md");
    let page = std::fs::read_to_string(page).unwrap();
    let example = page.split("```toml\n").nth(1).unwrap().split("```").next().unwrap();
    let scenario = one(example);
    assert_eq!(
        (scenario.traffic.len(), scenario.traffic[0].until.as_deref()),
        (2, Some("keystrokes"))
    );
}

#[test]
fn the_newer_disciplines_have_tables_too() {
    for (table, text) in [
        ("kind = \"codel\", ecn = true, ce_threshold = \"1ms\"", "codel:ecn=true,ce_threshold=1ms"),
        ("kind = \"fq-codel\", ecn = false", "fq-codel:ecn=false"),
        (
            "kind = \"pie\", alpha = 0.25, beta = 2, burst = \"0s\", mark_below = \"20%\"",
            "pie:alpha=0.25,beta=2,burst=0s,mark_below=20%",
        ),
        (
            "kind = \"dualpi2\", update = \"8ms\", coupling = 4, step = \"2ms\", scheduler = \"ts-fifo\", \
             shift = \"9ms\", classic = \"20%\"",
            "dualpi2:update=8ms,coupling=4,step=2ms,scheduler=ts-fifo,shift=9ms,classic=20%",
        ),
        (
            "kind = \"sfq\", buckets = 9, perturb = \"1s\", limit = \"9p\"",
            "sfq:buckets=9,perturb=1s,limit=9p",
        ),
    ] {
        let found = with(DESIGN, "kind = \"round-robin\", quantum = 64", table);
        let expected = DisciplineSpec::parse(text, Limit::Bytes(64 << 10)).unwrap();
        assert_eq!(one(&found).links[0].forward.discipline, expected);
        let short =
            with(DESIGN, "{ kind = \"round-robin\", quantum = 64 }", &format!("\"{text}\""));
        assert_eq!(one(&short).links[0].forward.discipline, expected);
    }
}

#[test]
fn what_names_no_transport_speaks_tcp_as_linux_does() {
    let text = |transport: &str| {
        format!(
            "[[host]]\nname = 'a'\n[[host]]\nname = 'b'\n[[link]]\nbetween = ['a', 'b']\n\
             rate = '100Mbit/s'\ndelay = '20ms'\n[[traffic]]\nname = 'file'\nkind = 'bulk'\n\
             from = 'a'\nto = 'b'\n{transport}\n"
        )
    };
    let spoken = |transport| {
        let cells = Scenario::parse(&text(transport), "t.toml").unwrap();
        (*cells[0].traffic[0].transport).clone()
    };
    for transport in ["", "transport = 'tcp'", "transport = { congestion = 'cubic' }"] {
        let Transport::Tcp(tcp) = spoken(transport) else { panic!("{:?}", spoken(transport)) };
        assert_eq!((tcp.profile.as_str(), tcp.congestion()), ("linux", "cubic"), "{transport}");
    }
    let reno = spoken("transport = { profile = 'bsd-reno', window = '16KiB' }");
    assert_eq!(reno.to_string(), "tcp reno (bsd-reno), window 16384 B");
    assert_eq!(spoken("transport = 'urp'").to_string(), "urp 3 x 256 B");
    assert_eq!(spoken("").to_string(), "tcp cubic");
    // A key of another protocol names the remedy.
    let wrong = Scenario::parse(&text("transport = { block = 1024 }"), "t.toml").unwrap_err();
    assert!(wrong.to_string().contains("kind = \"urp\""), "{wrong}");
}

#[test]
fn udp_datagrams_travel_whole() {
    let parsed = |size: u32, mtu: u32| {
        let text = format!(
            "mtu = {mtu}\n[[host]]\nname = 'a'\n[[host]]\nname = 'b'\n[[link]]\nbetween = ['a', 'b']\n\
             [[traffic]]\nname = 'x'\nkind = 'paced'\nfrom = 'a'\nto = 'b'\nsize = {size}\nrate = '1Mbit/s'\n\
             transport = 'udp'\n"
        );
        Scenario::parse(&text, "t.toml").map_err(|error| error.to_string())
    };
    for (size, mtu) in [(1472, 1500), (65_507, 65_535), (8972, 9000)] {
        assert!(parsed(size, mtu).is_ok(), "{size} {mtu}");
    }
    for (size, mtu, words) in [
        (1473, 1500, "at most 1472, or a larger mtu"),
        (65_507, 65_534, "fragments"),
        (65_508, 65_535, "UDP carries at most 65507 bytes"),
        (16 << 20, 1500, "UDP carries at most 65507 bytes"),
    ] {
        let told = parsed(size, mtu).unwrap_err();
        assert!(told.contains("traffic.x.size") && told.contains(words), "{told}");
    }
}

/// Each key that another one caps, or that does nothing, has its line; the same file without it has none.
#[test]
fn what_has_no_effect_is_remarked() {
    let text = |top: &str, host: &str, link: &str, traffic: &str| {
        format!(
            "{top}\n[[host]]\nname = 'a'\n{host}\n[[host]]\nname = 'b'\n[[host]]\nname = 'c'\n\
             [[node]]\nname = 'n'\n[[link]]\nname = 'l'\nbetween = ['a', 'n']\n{link}\n\
             [[link]]\nbetween = ['n', 'b']\n[[link]]\nbetween = ['c', 'n']\n\
             [[traffic]]\nname = 'x'\nto = 'b'\n{traffic}\n"
        )
    };
    let bulk = "kind = 'bulk'\nfrom = 'a'";
    let board = "[interface.i]\nsplit = [{ piece = 64 }]\nprotocol = 'board'\n[processor.p]\n";
    let paid = format!("{board}control = '1ms'\n").replace("split = [{ piece = 64 }]\n", "");
    let cases = [
        (
            "",
            "",
            "",
            format!("{bulk}\ntransport = {{ kind = 'urp', block = 2048 }}"),
            "traffic.x.transport.block = 2048 is capped to 1024, the bytes of a system write: give write = 2048",
        ),
        (
            board,
            "interface = 'i'",
            "",
            format!("{bulk}\ntransport = {{ kind = 'urp', block = 256 }}"),
            "traffic.x.transport.block = 256 is capped to 64, the bytes of a request: interface.i.split",
        ),
        (
            "",
            "",
            "",
            format!("{bulk}\ntransport = {{ kind = 'urp', packet = 300 }}"),
            "traffic.x.transport.packet = 300 is capped to 260",
        ),
        (
            "",
            "",
            "",
            format!("{bulk}\ntransport = {{ window = '1MiB', window_scaling = false }}"),
            "traffic.x.transport.window = 1048576 is capped to 65535",
        ),
        (
            "",
            "",
            "",
            format!("{bulk}\ntransport = {{ profile = 'bsd-reno', window = '1MiB' }}"),
            "traffic.x.transport.window = 1048576 is capped to 65535",
        ),
        (
            "",
            "",
            "",
            format!("{bulk}\ntransport = {{ congestion = 'dctcp', ecn = false }}"),
            "traffic.x.transport.ecn = false has no effect: dctcp always asks for marks",
        ),
        (
            "",
            "",
            "rate = '1Mbit/s'\ndiscipline = 'token-bucket:rate=500kbit/s,burst=999'",
            bulk.into(),
            "traffic.x.transport: no packet of 1500 bytes passes the discipline of l, whose buckets hold 999",
        ),
        (
            "",
            "",
            "rate = '1Mbit/s'\ndiscipline = 'token-bucket:rate=500kbit/s,peak=1Mbit/s,mtu=1000'",
            "kind = 'paced'\nfrom = 'a'\nsize = 1000\nrate = '1kbit/s'\ntransport = 'udp'".into(),
            "traffic.x.transport: no packet of 1028 bytes passes the discipline of l, whose buckets hold 1000",
        ),
        (
            "",
            "",
            "",
            format!("{bulk}\ntransport = {{ window = 500 }}"),
            "traffic.x.transport.window = 500 is raised to a segment, 1460",
        ),
        (
            "",
            "",
            "",
            "kind = 'bulk'\nfrom_each = ['a', 'c']".into(),
            "traffic.x.from_each names 2 hosts for count = 1: 'c'",
        ),
        (
            "",
            "",
            "",
            format!("{bulk}\nstagger = '1s'"),
            "traffic.x.stagger = 1s has no effect on one flow",
        ),
        ("", "", "", format!("{bulk}\nband = 0"), "traffic.x.band = 0 has no effect"),
        (
            "",
            "",
            "",
            "kind = 'greedy'\nfrom = 'a'\nduration = '2s'\nwarm_up = '1500ms'".into(),
            "traffic.x.duration = 2s leaves no whole interval of 1s",
        ),
        (
            "",
            "",
            "discipline = 'drr'",
            bulk.into(),
            "link.l.discipline has no effect: without a rate",
        ),
        (
            "",
            "",
            "rate = '1Mbit/s'\ndiscipline = 'token-bucket:rate=900kbit/s,mtu=1500'",
            bulk.into(),
            "link.l.discipline: mtu has no effect without a peak",
        ),
        (
            "",
            "",
            "rate = '1Mbit/s'\nforward = { discipline = 'dualpi2:shift=9ms' }",
            bulk.into(),
            "link.l.forward.discipline: shift has no effect with scheduler = wrr",
        ),
        (
            "",
            "",
            "rate = '1Mbit/s'\ndiscipline = 'dualpi2:classic=20%,scheduler=ts-fifo'",
            bulk.into(),
            "link.l.discipline: classic has no effect with scheduler = ts-fifo",
        ),
        (
            "",
            "",
            "rate = '1Mbit/s'\ndiscipline = 'token-bucket:rate=1Mbit/s'",
            bulk.into(),
            "link.l.discipline has no effect: its rate of 1Mbit/s is not below that of the line, 1Mbit/s",
        ),
        (
            "",
            "",
            "rate = '1Mbit/s'\ndiscipline = 'pie:ecn=false,mark_below=5%'",
            bulk.into(),
            "link.l.discipline: mark_below has no effect with ecn = false",
        ),
        (
            "",
            "",
            "rate = '1Mbit/s'\ndiscipline = 'gather:count=20,limit=10p'",
            bulk.into(),
            "link.l.discipline: count is above limit",
        ),
        (
            "",
            "",
            "rate = '1Mbit/s'\ndiscipline = 'sfq:buckets=1,perturb=9s'",
            bulk.into(),
            "link.l.discipline: perturb has no effect on one bucket",
        ),
        (
            "",
            "",
            "rate = '1Mbit/s'\ndiscipline = 'fq-codel:limit=1500'",
            bulk.into(),
            "link.l.discipline: limit is not above mtu",
        ),
        (
            paid.as_str(),
            "processor = 'p'\ninterface = 'i'",
            "",
            bulk.into(),
            "host.a.processor: send_block",
        ),
    ];
    for (top, host, link, traffic, expected) in &cases {
        let found = one(&text(top, host, link, traffic)).remarks();
        assert!(
            found.len() == 1 && found[0].to_string().starts_with(expected),
            "{expected}\n{found:#?}"
        );
    }
    let sound = [
        (
            "",
            format!(
                "{bulk}\nwrite = 4096\ntransport = {{ kind = 'urp', block = 4096, packet = 4096 }}"
            ),
        ),
        ("", format!("{bulk}\ntransport = {{ window = '1MiB' }}\nstagger = '1s'\ncount = 2")),
        ("discipline = 'priority'\nrate = '1Mbit/s'", format!("{bulk}\nband = 0")),
        (
            "rate = '1Mbit/s'\ndiscipline = 'token-bucket:rate=500kbit/s,burst=1000'",
            "kind = 'paced'\nfrom = 'a'\nsize = 1000\nrate = '1kbit/s'".into(),
        ),
        ("", "kind = 'greedy'\nfrom = 'a'\nduration = '3s'".into()),
    ];
    for (link, traffic) in &sound {
        assert_eq!(one(&text("", "", link, traffic)).remarks(), [], "{traffic}");
    }
}
