//! Wrong scenario files: each gets one line that names file, line, key, what was found, and what is allowed.

use trunkline_scenario::Scenario;

/// A file with nothing wrong in it. The tests exchange one text for another.
const GOOD: &str = r#"name = "t1"
stop_after = "60s"
[processor.vax]
write = { fixed = "0.3ms", per_byte = "2us" }
disturbance = { probability = "5%", mean = "2ms" }
[interface.kmc]
protocol = "board"
split = [{ below = 512, piece = 64 }, { piece = 1024 }]
requests = 1
[[host]]
name = "a"
processor = "vax"
interface = "kmc"
[[host]]
name = "b"
[[node]]
name = "n"
[module.fifo]
discipline = "fifo"
[[link]]
name = "access"
between = ["a", "n"]
[[link]]
name = "trunk"
between = ["n", "b"]
module = "fifo"
rate = "1.544Mbit/s"
delay = "5ms"
loss = "1%"
[[traffic]]
name = "load"
kind = "bulk"
from = "a"
to = "b"
bytes = "1MB"
count = 4
transport = { kind = "urp", block = 1024, outstanding = 7 }
[[traffic]]
name = "keys"
kind = "interactive"
from = "a"
to = "b"
via = ["n"]
sizes = [1, 64]
repeat = 300
start_after = "load:1kB"
"#;

#[test]
fn the_good_file_is_good() {
    assert_eq!(Scenario::parse(GOOD, "t1.toml").unwrap().len(), 1);
}

#[test]
fn every_kind_of_wrong_file_gets_its_line() {
    let mut differences = String::new();
    for (from, to, expected) in WRONG {
        assert!(GOOD.contains(from), "{from}");
        let found = match Scenario::parse(&GOOD.replacen(from, to, 1), "t1.toml") {
            Ok(_) => "nothing wrong".into(),
            Err(error) => error.to_string(),
        };
        assert!(!found.contains('\n'), "{found}");
        if found != *expected {
            differences += &format!("{from:?} -> {to:?}\n   found {found}\nexpected {expected}\n");
        }
    }
    assert!(differences.is_empty(), "\n{differences}");
}

#[test]
fn there_are_as_many_kinds_as_promised() {
    let complaints: std::collections::BTreeSet<&str> = WRONG.iter().map(|wrong| wrong.2).collect();
    assert_eq!(complaints.len(), WRONG.len(), "no complaint twice");
    assert!(WRONG.len() >= 40);
}

/// A key with a hundred and one values.
fn axis(key: &str) -> String {
    let values: Vec<String> = (1..=101).map(|value| value.to_string()).collect();
    format!("{key} = [{}]", values.join(", "))
}

#[test]
fn a_grid_has_an_end() {
    let text = GOOD.replacen("stop_after = \"60s\"", &axis("seed"), 1);
    assert_eq!(Scenario::parse(&text, "x").unwrap().len(), 101);
    let text = text.replacen("count = 4", &axis("count"), 1);
    assert_eq!(
        Scenario::parse(&text, "t1.toml").unwrap_err().to_string(),
        "t1.toml:2: seed: found a grid of 10201 cells by seed, traffic.load.count: at most 10000 are allowed"
    );
}

#[test]
fn an_empty_file_and_no_file() {
    let complaint = Scenario::parse("", "t1.toml").unwrap_err().to_string();
    assert_eq!(complaint, "t1.toml:1: host: found nothing: write a [[host]]");
    let complaint = Scenario::read("/dev/zero").unwrap_err().to_string();
    assert_eq!(
        complaint,
        "/dev/zero: cannot be read: it is no file and longer than 1048576 bytes: write it to a file; give the path of a scenario file in TOML"
    );
    let complaint = Scenario::read("/nonexistent/t1.toml").unwrap_err().to_string();
    let expected = "/nonexistent/t1.toml: cannot be read: No such file or directory (os error 2); \
                    give the path of a scenario file in TOML";
    assert_eq!(complaint, expected);
}

/// What is exchanged for what, and the complaint.
#[rustfmt::skip]
const WRONG: &[(&str, &str, &str)] = &[
    // Not TOML.
    ("name = \"t1\"", "name = ",
     "t1.toml:1: found 'name =', which is not TOML: a text stands in quotes, \"…\""),
    ("name = \"t1\"", "name = t1",
     "t1.toml:1: found 'name = t1', which is not TOML: a text stands in quotes, \"…\""),
    ("[[node]]", "[[node]",
     "t1.toml:16: found '[[node]', which is not TOML: unclosed array table, expected `]`"),
    ("stop_after = \"60s\"", "name = \"again\"",
     "t1.toml:2: found 'name = \"again\"', which is not TOML: duplicate key"),
    ("stop_after = \"60s\"", "stop_after = 2026-11-21",
     "t1.toml:2: stop_after: found the date 2026-11-21: no key takes a date; times are spans, \"5s\""),
    ("count = 4", "count = 99999999999999999999",
     "t1.toml:36: count: found 99999999999999999999: whole numbers end at 9223372036854775807"),
    // Keys and tables.
    ("delay = \"5ms\"", "dealy = \"5ms\"",
     "t1.toml:28: link.trunk.dealy: found no such key: did you mean 'delay'?"),
    ("delay = \"5ms\"", "latency = \"5ms\"",
     "t1.toml:28: link.trunk.latency: found no such key: did you mean 'delay'?"),
    ("delay = \"5ms\"", "xyzzy = \"5ms\"",
     "t1.toml:28: link.trunk.xyzzy: found no such key: [[link]] takes name, between, preset, forward, backward, rate, delay, catch_up, loss, bit_errors, duplicate, reorder, jitter, trace, schedule, module, discipline, limit, output_buffer, framing, processor"),
    ("discipline = \"fifo\"", "queue = \"fifo\"",
     "t1.toml:19: module.fifo.queue: found no such key: did you mean 'discipline'?"),
    ("stop_after", "stopafter",
     "t1.toml:2: stopafter: found no such key: did you mean 'stop_after'?"),
    ("delay = \"5ms\"", "bit_errors = 0\nbit-errors = 0",
     "t1.toml:29: link.trunk.bit_errors: found bit_errors again as 'bit-errors': leave one out"),
    ("[[node]]", "[node]",
     "t1.toml:16: node: found { name = \"n\" }, a table: write [[node]] with two brackets, once for each"),
    ("[interface.kmc]", "[interface]",
     "t1.toml:6: interface: found { protocol = \"board\", split = [{ below = 512, piece = 64 }, { … }, a table: write [interface.NAME] above the keys of one"),
    ("[[traffic]]\nname = \"load\"", "[[trafic]]\nname = \"load\"",
     "t1.toml:30: trafic: found no such key: did you mean 'traffic'?"),
    ("module = \"fifo\"", "module = {}",
     "t1.toml:26: link.trunk.module: found {}, a table: give a name, such as \"t1\""),
    ("disturbance = { probability = \"5%\", mean = \"2ms\" }", "disturbance = \"5%\"",
     "t1.toml:5: processor.vax.disturbance: found \"5%\": give { probability = \"5%\", mean = \"2ms\" }"),
    ("disturbance = { probability = \"5%\", mean", "disturbance = { mean",
     "t1.toml:5: processor.vax.disturbance.probability: found nothing: this key must be there; give a share from 0 to 1, such as \"0.5%\""),
    // Values and units.
    ("rate = \"1.544Mbit/s\"", "rate = \"1.5Mbps\"",
     "t1.toml:27: link.trunk.rate: found \"1.5Mbps\", which is bits to some programs and bytes to others: write 1.5Mbit/s, or 1.5MB/s if bytes are meant"),
    ("rate = \"1.544Mbit/s\"", "rate = \"fast\"",
     "t1.toml:27: link.trunk.rate: found \"fast\", which is not a rate: expected a number and a unit, such as 10Mbit/s"),
    ("rate = \"1.544Mbit/s\"", "rate = \"0bit/s\"",
     "t1.toml:27: link.trunk.rate: found \"0bit/s\", which is out of range: a rate lies between 1bit/s and 10000Gbit/s"),
    ("rate = \"1.544Mbit/s\"", "rate = true",
     "t1.toml:27: link.trunk.rate: found true: give a value such as \"1.544Mbit/s\""),
    ("delay = \"5ms\"", "delay = 5",
     "t1.toml:28: link.trunk.delay: found 5, which has no unit: a time takes one of ns, us, ms, s, min, h, such as 250ms"),
    ("delay = \"5ms\"", "delay = \"-5ms\"",
     "t1.toml:28: link.trunk.delay: found \"-5ms\", which is negative: a time is zero or more"),
    ("delay = \"5ms\"", "delay = \"2d\"",
     "t1.toml:28: link.trunk.delay: found \"2d\", which has the unknown unit 'd': a time takes one of ns, us, ms, s, min, h, such as 250ms"),
    ("delay = \"5ms\"", "delay = \"100min\"",
     "t1.toml:28: link.trunk.delay: found \"100min\": the delay is 6000s: it must lie between 0ns and 3600s"),
    ("delay = \"5ms\"", "forward = { delay = \"100min\" }",
     "t1.toml:28: link.trunk.forward.delay: found \"100min\": the delay is 6000s: it must lie between 0ns and 3600s"),
    ("delay = \"5ms\"", "forward = \"5ms\"",
     "t1.toml:28: link.trunk.forward: found \"5ms\": give a table { … }"),
    ("stop_after = \"60s\"", "stop_after = \"0\"",
     "t1.toml:2: stop_after: found \"0\": give a time from 1ns to 604800s, such as \"250ms\""),
    ("stop_after = \"60s\"", "sample_backlog = \"1ns\"",
     "t1.toml:2: sample_backlog: found \"1ns\": give a time from 1us to 3600s, such as \"250ms\""),
    ("stop_after = \"60s\"", "seed = -1",
     "t1.toml:2: seed: found -1: give a whole number from 0 to 9223372036854775807"),
    ("loss = \"1%\"", "loss = \"101%\"",
     "t1.toml:29: link.trunk.loss: found \"101%\", which is out of range: a probability lies between 0 and 1 (100%)"),
    ("loss = \"1%\"", "loss = \"trace:/nonexistent\"",
     "t1.toml:29: link.trunk.loss: found \"trace:/nonexistent\": cannot read '/nonexistent': No such file or directory (os error 2); give the path of a text file"),
    ("loss = \"1%\"", "jitter = \"6ms\"",
     "t1.toml:29: link.trunk.jitter: found \"6ms\": a jitter of 6ms does not fit a delay of 5ms, for packets would arrive before they left: lengthen the delay, or use exponential jitter, which only adds"),
    ("loss = \"1%\"", "bit-errors = 2",
     "t1.toml:29: link.trunk.bit_errors: found 2, which is more than 1: write 2% for 2 in a hundred"),
    ("loss = \"1%\"", "framing = \"t3\"",
     "t1.toml:29: link.trunk.framing: found \"t3\", which is no framing: use one of none, ethernet, t1-lapd, t1-mixed, atm-aal5, datakit"),
    ("loss = \"1%\"", "trace = \"/nonexistent\"",
     "t1.toml:29: link.trunk.trace: found \"/nonexistent\": a rate is given as well: leave one of them out"),
    ("rate = \"1.544Mbit/s\"", "framing = \"atm-aal5\"",
     "t1.toml:27: link.trunk.framing: found \"atm-aal5\": framing atm-aal5 needs a rate, whose slot clock it follows: give rate = \"155.52Mbit/s\""),
    ("loss = \"1%\"", "preset = \"t1-1898\"",
     "t1.toml:29: link.trunk.preset: found \"t1-1898\", which is no preset: use one of t1-1989, geo-satellite, leo-satellite, transatlantic, dsl, lte, wifi-bad, wideband-1987, lds"),
    ("bytes = \"1MB\"", "bytes = 0",
     "t1.toml:35: traffic.load.bytes: found 0: a transfer has bytes: give 1 or more, or kind = \"push\""),
    ("bytes = \"1MB\"", "bytes = \"1.5B\"",
     "t1.toml:35: traffic.load.bytes: found \"1.5B\", which is finer than 1 byte, the smallest step of a size"),
    ("count = 4", "count = 0",
     "t1.toml:36: traffic.load.count: found 0: give a whole number from 1 to 10000"),
    ("count = 4", "count = 1.5",
     "t1.toml:36: traffic.load.count: found 1.5: give a whole number from 1 to 10000"),
    ("count = 4", "count = \"4\"",
     "t1.toml:36: traffic.load.count: found \"4\": give a whole number from 1 to 10000"),
    ("count = 4", "confirm = \"yes\"",
     "t1.toml:36: traffic.load.confirm: found \"yes\": give true or false"),
    ("count = 4", "write = \"1GiB\"",
     "t1.toml:36: traffic.load.write: found \"1GiB\": give bytes from 1 to 16777216, such as 1024 or \"1KiB\""),
    ("count = 4", "repeat = 0",
     "t1.toml:36: traffic.load.repeat: found 0: give a whole number from 1 to 10000000"),
    ("sizes = [1, 64]", "sizes = []",
     "t1.toml:44: traffic.keys.sizes: found an empty list: give a list of sizes in bytes, such as [1, 64, 512]"),
    ("sizes = [1, 64]", "sizes = 64",
     "t1.toml:44: traffic.keys.sizes: found 64, a whole number: give a list of sizes in bytes, such as [1, 64, 512]"),
    ("sizes = [1, 64]", "sizes = [1, 0]",
     "t1.toml:44: traffic.keys.sizes: found 0: give bytes from 1 to 16777216, such as 1024 or \"1KiB\""),
    ("sizes = [1, 64]\n", "",
     "t1.toml:38: traffic.keys.sizes: found nothing: this key must be there; give a list of sizes in bytes, such as [1, 64, 512]"),
    ("sizes = [1, 64]", "sizes = [1, [64]]",
     "t1.toml:44: traffic.keys.sizes: found [64], a list: give bytes from 1 to 16777216, such as 1024 or \"1KiB\""),
    ("repeat = 300", "reply = \"eco\"",
     "t1.toml:45: traffic.keys.reply: found \"eco\": give \"echo\", or bytes from 1 to 16777216, such as 1024 or \"1KiB\""),
    // Queue disciplines.
    ("discipline = \"fifo\"", "discipline = \"lifo\"",
     "t1.toml:19: module.fifo.discipline: found \"lifo\", which is no discipline: did you mean 'fifo'?"),
    ("discipline = \"fifo\"", "discipline = { kind = \"drr\", quantum = 0 }",
     "t1.toml:19: module.fifo.discipline: found { kind = \"drr\", quantum = 0 }: discipline drr: the quantum in bytes is 0: it must lie between 1 and 1048576"),
    // What two keys say together is laid at the one that is given.
    ("loss = \"1%\"", "discipline = \"red:limit=3p\"",
     "t1.toml:29: link.trunk.discipline: found \"red:limit=3p\": limit 3p of the discipline red is not above its min 5p, so that nothing would be dropped early: give a larger limit or a smaller min"),
    ("loss = \"1%\"", "discipline = \"red\"\nlimit = \"3p\"",
     "t1.toml:30: link.trunk.limit: found \"3p\": limit 3p of the discipline red is not above its min 5p, so that nothing would be dropped early: give a larger limit or a smaller min"),
    ("loss = \"1%\"", "discipline = \"red\"\nschedule = \"1s limit=3p\"",
     "t1.toml:30: link.trunk.schedule: found \"1s limit=3p\": at a step of the schedule: limit 3p of the discipline red is not above its min 5p, so that nothing would be dropped early: give a larger limit or a smaller min"),
    ("loss = \"1%\"", "schedule = \"1s jitter=6ms\"",
     "t1.toml:29: link.trunk.schedule: found \"1s jitter=6ms\": at a step of the schedule: a jitter of 6ms does not fit a delay of 5ms, for packets would arrive before they left: lengthen the delay, or use exponential jitter, which only adds"),
    ("loss = \"1%\"", "reorder = \"1%:5h\"",
     "t1.toml:29: link.trunk.reorder: found \"1%:5h\": the time for which reorder holds a packet back is 18000s: it must lie between 1ns and 3600s"),
    ("loss = \"1%\"", "discipline = \"red:weight=0\"",
     "t1.toml:29: link.trunk.discipline: found \"red:weight=0\": discipline red: weight 0% never moves the average: give one above 0"),
    ("loss = \"1%\"", "discipline = \"red:max=3p\"",
     "t1.toml:29: link.trunk.discipline: found \"red:max=3p\": discipline red: max 3p is not above min 5p: give a larger max or a smaller min"),
    ("loss = \"1%\"", "discipline = \"red:min=1kB\"",
     "t1.toml:29: link.trunk.discipline: found \"red:min=1kB\": discipline red: max 15p is in another unit than min 1000B: give both in packets, bytes or cells"),
    ("loss = \"1%\"", "discipline = \"codel:target=200ms\"",
     "t1.toml:29: link.trunk.discipline: found \"codel:target=200ms\": discipline codel: the interval is 100ms: it must lie between its target 200ms and 100s"),
    ("loss = \"1%\"", "discipline = \"epd:limit=500\"",
     "t1.toml:29: link.trunk.discipline: found \"epd:limit=500\": discipline epd: the discard threshold in cells is 1000: it must lie between 0 and its limit 500"),
    ("loss = \"1%\"", "discipline = \"sfq:buckets=0\"",
     "t1.toml:29: link.trunk.discipline: found \"sfq:buckets=0\": discipline sfq: the number of buckets is 0: it must lie between 1 and 1048576"),
    ("loss = \"1%\"", "discipline = \"pie:update=1ns\"",
     "t1.toml:29: link.trunk.discipline: found \"pie:update=1ns\": discipline pie: the time between updates is 1ns: it must lie between 1us and 10s"),
    ("discipline = \"fifo\"", "discipline = { kind = \"fifo\", quantum = 64 }",
     "t1.toml:19: module.fifo.discipline: found { kind = \"fifo\", quantum = 64 }: discipline fifo has no key 'quantum': the keys are limit"),
    ("discipline = \"fifo\"", "discipline = { quantum = 64 }",
     "t1.toml:19: module.fifo.discipline.kind: found nothing: this key must be there; give a value such as \"round-robin\""),
    ("discipline = \"fifo\"", "discipline = { kind = \"fifo\", limits = \"9kB\" }",
     "t1.toml:19: module.fifo.discipline.limits: found no such key: did you mean 'limit'?"),
    ("discipline = \"fifo\"", "discipline = \"fifo:limit=9kB\"\nlimit = \"9kB\"",
     "t1.toml:20: module.fifo.limit: found \"9kB\": the discipline has a limit as well: leave one out"),
    ("discipline = \"fifo\"", "discipline = { kind = \"fifo\", limit = \"9kB,quantum=1\" }",
     "t1.toml:19: module.fifo.discipline.limit: found \"9kB,quantum=1\": give a plain value"),
    ("discipline = \"fifo\"", "discipline = { kind = \"codel\", target = 5 }",
     "t1.toml:19: module.fifo.discipline: found { kind = \"codel\", target = 5 }: discipline codel, key 'target': '5' has no unit: a time takes one of ns, us, ms, s, min, h, such as 250ms"),
    ("discipline = \"fifo\"", "limit = \"0B\"",
     "t1.toml:19: module.fifo.limit: found \"0B\", which is out of range: a limit lies between 1B, 1p or 1c and 2^63"),
    ("module = \"fifo\"", "discipline = \"epd\"\nlimit = \"9kB\"",
     "t1.toml:27: link.trunk.limit: found \"9kB\": the limit of epd is in cells, not 9000B: write 187c"),
    ("loss = \"1%\"", "schedule = \"5s rat=1mbit\"",
     "t1.toml:29: link.trunk.schedule: found \"5s rat=1mbit\": line 1 of the schedule, '5s rat=1mbit': 'rat=1mbit' is no setting: write one of rate=, delay=, catch-up=, limit=, loss=, bit-errors=, duplicate=, reorder= or jitter= and its value, such as rate=10mbit"),
    ("rate = \"1.544Mbit/s\"", "trace = \"/nonexistent\"",
     "t1.toml:27: link.trunk.trace: found \"/nonexistent\": cannot read '/nonexistent': No such file or directory (os error 2); give the path of a text file"),
    // Trunk processors.
    ("discipline = \"fifo\"", "processor = { input_fifo = 17 }",
     "t1.toml:19: module.fifo.processor.input_fifo: found 17: give bytes from 18 to 1099511627776, such as 1024 or \"1KiB\""),
    ("discipline = \"fifo\"", "processor = { output_first = true }",
     "t1.toml:19: module.fifo.processor.input_fifo: found nothing: this key must be there; give bytes from 18 to 1099511627776, such as 1024 or \"1KiB\""),
    ("discipline = \"fifo\"", "processor = \"z80\"",
     "t1.toml:19: module.fifo.processor: found \"z80\": give \"none\", or a table with input_fifo, input_per_byte, output_per_byte, output_first"),
    ("discipline = \"fifo\"", "processor = { input_fifo = \"4kB\", input_per_byte = 3 }",
     "t1.toml:19: module.fifo.processor.input_per_byte: found 3, which has no unit: a time per byte takes one of ps, ns, us, ms, such as 1412.5ns"),
    ("discipline = \"fifo\"", "processor = { input_fifo = \"4kB\" }",
     "t1.toml:26: link.trunk.module: found \"fifo\": a trunk processor has no output fifo to fill: set output_buffer, such as 1kB"),
    ("module = \"fifo\"", "output-buffer = 9\nprocessor = { input_fifo = 99, input_per_byte = \"2ms\" }",
     "t1.toml:27: link.trunk.processor.input_per_byte: found \"2ms\": give at most 1000000ns"),
    // Transports.
    ("block = 1024", "block = 4097",
     "t1.toml:37: traffic.load.transport.block: found 4097: give bytes from 1 to 4096, such as 1024 or \"1KiB\""),
    ("outstanding = 7", "outstanding = 8",
     "t1.toml:37: traffic.load.transport.outstanding: found 8: give a whole number from 1 to 7"),
    ("outstanding = 7", "windows = 7",
     "t1.toml:37: traffic.load.transport.windows: found no such key: did you mean 'window'?"),
    ("outstanding = 7", "profile = \"vax\"",
     "t1.toml:37: traffic.load.transport.profile: found \"vax\": give one of \"trunkline\", \"v10\", \"plan9\", \"kmc\", \"linux\", \"bsd-reno\""),
    ("outstanding = 7", "timeout = \"0s\"",
     "t1.toml:37: traffic.load.transport.timeout: found \"0s\": give a time from 1ns to 3600s, such as \"250ms\""),
    ("transport = { kind = \"urp\", block = 1024, outstanding = 7 }", "transport = \"sctp\"",
     "t1.toml:37: traffic.load.transport: found \"sctp\": give one of \"urp\", \"datagram\", \"udp\", \"tcp\", \"stop-and-wait\", \"go-back-n\", \"selective-repeat\", \"netblt\", or a table with kind, profile, mode, block, outstanding, timeout, packet, congestion, mss, window, initial_window, sack, timestamps, window_scaling, ecn, delayed_ack, min_rto, frame, frames, rate, buffer, packets, interval, burst, version, death"),
    ("transport = { kind = \"urp\", block = 1024, outstanding = 7 }", "transport = { kind = \"go-back-n\", outstanding = 7 }",
     "t1.toml:37: traffic.load.transport.outstanding: found 7: go-back-n has no such key; its own are frame, frames, timeout, rate"),
    ("transport = { kind = \"urp\", block = 1024, outstanding = 7 }", "transport = { kind = \"go-back-n\", frames = 0 }",
     "t1.toml:37: traffic.load.transport.frames: found 0: give a whole number from 1 to 65536"),
    ("transport = { kind = \"urp\", block = 1024, outstanding = 7 }", "transport = { kind = \"selective-repeat\", buffer = 3 }",
     "t1.toml:37: traffic.load.transport.buffer: found 3: it is below frames = 4, of which each may come behind a gap: give buffer = 4 or more, or fewer frames"),
    ("transport = { kind = \"urp\", block = 1024, outstanding = 7 }", "transport = \"datagram\"",
     "t1.toml:37: traffic.load.transport: found \"datagram\": bulk traffic waits for answers, which datagrams have not: use another transport, or kind = \"paced\""),
    ("outstanding = 7", "profile = \"linux\"",
     "t1.toml:37: traffic.load.transport.profile: found \"linux\": urp has the profiles trunkline, v10, plan9, kmc"),
    ("transport = { kind = \"urp\", block = 1024, outstanding = 7 }", "transport = { kind = \"tcp\", mss = 1461 }",
     "t1.toml:37: traffic.load.transport: found { kind = \"tcp\", mss = 1461 }: a segment of mss = 1461 bytes with 40 of headers exceeds the MTU of 1500: give mss = 1460 or less, or a larger mtu"),
    ("transport = { kind = \"urp\", block = 1024, outstanding = 7 }", "transport = \"tcp\"\nreply_transport = { kind = \"tcp\", mss = 9000 }",
     "t1.toml:38: traffic.load.reply_transport: found { kind = \"tcp\", mss = 9000 }: a segment of mss = 9000 bytes with 40 of headers exceeds the MTU of 1500: give mss = 1460 or less, or a larger mtu"),
    ("stop_after = \"60s\"", "stop_after = \"60s\"\nmtu = 87",
     "t1.toml:39: traffic.keys.transport: found nothing: TCP's smallest segment with its headers takes 88 bytes, more than the MTU of 87: give mtu = 88 or more, or another transport"),
    ("outstanding = 7", "mss = 1000",
     "t1.toml:37: traffic.load.transport.mss: found 1000: urp has no such key; its own are profile, mode, block, outstanding, timeout, packet"),
    ("transport = { kind = \"urp\", block = 1024, outstanding = 7 }", "transport = { block = 1024 }",
     "t1.toml:37: traffic.load.transport.block: found 1024: tcp, the kind if none is given, has no such key; write kind = \"urp\", or one of profile, congestion, mss, window, initial_window, sack, timestamps, window_scaling, ecn, delayed_ack, min_rto"),
    ("transport = { kind = \"urp\", block = 1024, outstanding = 7 }", "transport = \"udp\"",
     "t1.toml:37: traffic.load.transport: found \"udp\": bulk traffic waits for answers, which datagrams have not: use another transport, or kind = \"paced\""),
    ("outstanding = 7 }", "outstanding = 7 }\nreply_transport = \"tcp\"",
     "t1.toml:38: traffic.load.reply_transport: found \"tcp\": both ends have to speak the same protocol"),
    ("count = 4", "server = \"iperf3 -s\"",
     "t1.toml:36: traffic.load.server: found \"iperf3 -s\": it serves a command: give that as well"),
    ("transport = { kind = \"urp\", block = 1024, outstanding = 7 }", "transport = { kind = \"datagram\", block = 1 }",
     "t1.toml:37: traffic.load.transport.block: found 1: datagrams have no such key; leave it out"),
    // Kinds of traffic.
    ("kind = \"bulk\"", "kind = \"bulky\"",
     "t1.toml:32: traffic.load.kind: found \"bulky\": give one of \"interactive\", \"bulk\", \"timed-echo\", \"timed-transfer\", \"push\", \"greedy\", \"paced\""),
    ("kind = \"bulk\"\n", "",
     "t1.toml:30: traffic.load.kind: found nothing: this key must be there; give one of \"interactive\", \"bulk\", \"timed-echo\", \"timed-transfer\", \"push\", \"greedy\", \"paced\""),
    ("count = 4", "every = \"5ms\"",
     "t1.toml:36: traffic.load.every: found \"5ms\": traffic of kind bulk has no such key; its own are repeat, bytes, write, confirm"),
    ("kind = \"bulk\"", "kind = \"paced\"",
     "t1.toml:35: traffic.load.bytes: found \"1MB\": traffic of kind paced has no such key; its own are duration, size, rate"),
    // Names and references.
    ("name = \"b\"", "name = \"a\"",
     "t1.toml:15: host.a.name: found \"a\": host.a has this name already: give another"),
    ("name = \"n\"", "name = \"a\"",
     "t1.toml:17: node.a.name: found \"a\": host.a has this name already: give another"),
    ("name = \"b\"\n", "",
     "t1.toml:14: host.name: found nothing: this key must be there; give a name, such as \"t1\""),
    ("name = \"b\"", "name = \"b c\"",
     "t1.toml:15: host.b c.name: found \"b c\": give 1 to 64 letters, digits, '-', '_' or '.'"),
    ("name = \"b\"", "name = [\"b\", \"c\"]",
     "t1.toml:15: host.name: found [\"b\", \"c\"], a list: this key cannot be an axis of the grid; give one value"),
    ("name = \"trunk\"", "name = \"access\"",
     "t1.toml:24: link.access.name: found \"access\": another link has this name already: give another"),
    ("name = \"keys\"", "name = \"load\"",
     "t1.toml:39: traffic.load.name: found \"load\": traffic.load has this name already: give another"),
    ("processor = \"vax\"", "processor = \"vaxx\"",
     "t1.toml:12: host.a.processor: found \"vaxx\", which is no [processor.NAME]: use one of vax, ideal"),
    ("interface = \"kmc\"", "interface = \"pdp\"",
     "t1.toml:13: host.a.interface: found \"pdp\", which is no [interface.NAME]: use one of kmc, ideal"),
    ("module = \"fifo\"", "module = \"lifo\"",
     "t1.toml:26: link.trunk.module: found \"lifo\", which is no [module.NAME]: use one of fifo, none"),
    ("between = [\"n\", \"b\"]", "between = [\"n\", \"c\"]",
     "t1.toml:25: link.trunk.between: found \"c\", which is no host or node: use one of a, b, n"),
    ("between = [\"n\", \"b\"]", "between = [\"n\", \"n\"]",
     "t1.toml:25: link.trunk.between: found [\"n\", \"n\"]: a link joins two different stations"),
    ("between = [\"n\", \"b\"]", "between = [\"n\"]",
     "t1.toml:25: link.trunk.between: found [\"n\"]: give two names, such as [\"a\", \"b\"]"),
    ("between = [\"n\", \"b\"]\n", "",
     "t1.toml:23: link.trunk.between: found nothing: this key must be there; give a list of names, such as [\"a\", \"b\"]"),
    ("to = \"b\"\nbytes", "to = \"c\"\nbytes",
     "t1.toml:34: traffic.load.to: found \"c\", which is no host: use one of a, b"),
    ("to = \"b\"\nbytes", "to = \"n\"\nbytes",
     "t1.toml:34: traffic.load.to: found \"n\": 'n' is a node; traffic is between hosts"),
    ("to = \"b\"\nbytes", "to = \"a\"\nbytes",
     "t1.toml:34: traffic.load.to: found \"a\": 'a' would send to itself: give the nodes to be crossed, via = [\"NODE\", …]"),
    ("from = \"a\"\nto = \"b\"\nbytes", "to = \"b\"\nbytes",
     "t1.toml:30: traffic.load.from: found nothing: give a host, or hosts in from_each"),
    ("from = \"a\"\nto = \"b\"\nbytes", "from = \"a\"\nfrom_each = [\"a\"]\nto = \"b\"\nbytes",
     "t1.toml:33: traffic.load.from: found \"a\": from_each is given as well: leave one of them out"),
    ("from = \"a\"\nto = \"b\"\nbytes", "from_each = [\"a\", \"x\"]\nto = \"b\"\nbytes",
     "t1.toml:33: traffic.load.from_each: found \"x\", which is no host: use one of a, b"),
    // Ways.
    ("between = [\"n\", \"b\"]", "between = [\"n\", \"a\"]",
     "t1.toml:15: host.b.name: found \"b\": no link or medium has it: add a [[link]] with it in 'between', or name it in a medium's 'stations'"),
    ("via = [\"n\"]", "via = [\"m\"]",
     "t1.toml:43: traffic.keys.via: found \"m\", which is no node: use n"),
    ("via = [\"n\"]", "via = [\"n\", \"n\"]",
     "t1.toml:43: traffic.keys.via: found [\"n\", \"n\"]: no link or medium joins 'n' and 'n': add one, or name every node of the way in order"),
    ("name = \"n\"", "name = \"n\"\n[[node]]\nname = \"far\"",
     "t1.toml:19: node.far.name: found \"far\": no link or medium has it: add a [[link]] with it in 'between', or name it in a medium's 'stations'"),
    ("name = \"n\"", "name = \"n\"\n[[node]]\nname = \"m\"\n[[link]]\nbetween = [\"m\", \"c\"]\n[[host]]\nname = \"c\"\n[[traffic]]\nname = \"x\"\nkind = \"bulk\"\nfrom = \"a\"\nto = \"c\"",
     "t1.toml:28: traffic.x.to: found \"c\": no links lead from 'a' to 'c' over nodes alone: add the missing link"),
    // Order in time.
    ("start_after = \"load:1kB\"", "start_after = \"lode\"",
     "t1.toml:46: traffic.keys.start_after: found \"lode\", which is no other traffic: use load"),
    ("start_after = \"load:1kB\"", "start_after = \"load:1 parsec\"",
     "t1.toml:46: traffic.keys.start_after: found \"1 parsec\", which has the unknown unit 'parsec': a size takes one of B, kB, MB, GB, TB, KiB, MiB, GiB, TiB, such as 32KiB"),
    ("start_after = \"load:1kB\"", "start_after = \"load:0\"",
     "t1.toml:46: traffic.keys.start_after: found \"load:0\": give at least 1 byte, or start = \"0\""),
    ("start_after = \"load:1kB\"", "start_after = \"load:2MB\"",
     "t1.toml:46: traffic.keys.start_after: found \"load:2MB\": each flow of load sends 1000000 bytes in all: wait for less"),
    ("start_after = \"load:1kB\"", "start_after = \"keys\"",
     "t1.toml:46: traffic.keys.start_after: found \"keys\": a traffic cannot wait for itself: name another"),
    ("start_after = \"load:1kB\"", "start_after = \"load\"\nstart = \"5s\"",
     "t1.toml:47: traffic.keys.start: found \"5s\": start_after is given as well: leave one of them out"),
    ("start_after = \"load:1kB\"", "until = \"nobody\"",
     "t1.toml:46: traffic.keys.until: found \"nobody\", which is no other traffic: use load"),
    ("bytes = \"1MB\"", "bytes = \"1MB\"\nstart_after = \"keys\"",
     "t1.toml:36: traffic.load.start_after: found \"keys\": the two would wait for each other for ever: let one of them start at a time"),
    ("bytes = \"1MB\"\ncount = 4", "until = \"keys\"\nstart_after = \"keys:1B\"",
     "t1.toml:36: traffic.load.start_after: found \"keys:1B\": the two would wait for each other for ever: let one of them start at a time"),
    ("start_after = \"load:1kB\"", "estimator = \"p101\"",
     "t1.toml:46: traffic.keys.estimator: found \"p101\": unknown estimator 'p101'; use hawley-minimum, hawley-average, minimum, mean, drop-first-last, median or a percentile such as p90 or p99.9"),
    // Processors and interfaces.
    ("per_byte = \"2us\"", "per_bit = \"2us\"",
     "t1.toml:4: processor.vax.write.per_bit: found no such key: did you mean 'per_byte'?"),
    ("probability = \"5%\"", "probability = 5",
     "t1.toml:5: processor.vax.disturbance.probability: found 5, which is more than 1: write 5% for 5 in a hundred"),
    ("protocol = \"board\"", "protocol = \"card\"",
     "t1.toml:7: interface.kmc.protocol: found \"card\": give one of \"host\", \"board\""),
    ("requests = 1", "requests = 0",
     "t1.toml:9: interface.kmc.requests: found 0: give \"unlimited\", or a whole number from 1 to 1000000"),
    ("requests = 1", "requests = \"many\"",
     "t1.toml:9: interface.kmc.requests: found \"many\": give \"unlimited\", or a whole number from 1 to 1000000"),
    ("requests = 1", "memory = \"0\"",
     "t1.toml:9: interface.kmc.memory: found \"0\": give bytes from 1 to 1099511627776, such as 1024 or \"1KiB\""),
    ("{ piece = 1024 }", "{ below = 100, piece = 1024 }",
     "t1.toml:8: interface.kmc.split.below: found 100: the rule before holds up to 512: give more"),
    ("{ below = 512, piece = 64 }", "{ piece = 64 }",
     "t1.toml:8: interface.kmc.split.piece: found a rule behind one without 'below', which holds for all: give that one a 'below'"),
    ("{ below = 512, piece = 64 }", "{ below = 512 }",
     "t1.toml:8: interface.kmc.split.piece: found nothing: this key must be there; give bytes from 1 to 2147483648, such as 1024 or \"1KiB\""),
    // Grids.
    ("count = 4", "count = []",
     "t1.toml:36: traffic.load.count: found an empty list: give one value, or a list of the values of the grid's axis"),
    ("count = 4", "count = [1, 4, 1]",
     "t1.toml:36: traffic.load.count: found 1 twice in the grid's axis: leave one out"),
    ("count = 4", "count = [1, 10001]",
     "t1.toml:36: traffic.load.count: found 10001: give a whole number from 1 to 10000"),
    ("count = 4", "count = [[1, 4]]",
     "t1.toml:36: traffic.load.count: found [1, 4], a list: give a whole number from 1 to 10000"),
    ("count = 4", "count = [1, 4]\nseed = 1",
     "t1.toml:37: traffic.load.seed: found no such key: [[traffic]] takes name, kind, from, from_each, to, via, count, transport, reply_transport, start, start_after, stagger, until, estimator, band, command, server, sizes, repeat, reply, every, bytes, write, confirm, store, duration, warm_up, interval, size, rate"),
];

/// Three hosts on a cable.
const CABLE: &str = r#"[[host]]
name = "a"
[[host]]
name = "b"
[[host]]
name = "c"
[[medium]]
name = "cable"
kind = "csma-cd"
stations = ["a", "b", "c"]
rate = "10Mbit/s"
delay = "5us"
slot_bits = 512
[[traffic]]
name = "t"
kind = "bulk"
from = "a"
to = "b"
"#;

#[test]
fn wrong_media_get_their_line() {
    assert_eq!(Scenario::parse(CABLE, "t.toml").unwrap().len(), 1);
    let wrong = |from: &str, to: &str| {
        assert!(CABLE.contains(from), "{from}");
        Scenario::parse(&CABLE.replacen(from, to, 1), "t.toml").unwrap_err().to_string()
    };
    for (from, to, expected) in [
        (
            "\"a\", \"b\", \"c\"]",
            "\"a\", \"b\", \"d\"]",
            "t.toml:10: medium.cable.stations: found \"d\", which is no host or node: use one of a, b, c",
        ),
        (
            "\"a\", \"b\", \"c\"]",
            "\"a\", \"b\", \"a\"]",
            "t.toml:10: medium.cable.stations: found \"a\" twice: leave one out",
        ),
        (
            "\"a\", \"b\", \"c\"]",
            "\"a\"]",
            "t.toml:10: medium.cable.stations: found 1 of them: give 2 to 1024 hosts or nodes",
        ),
        (
            "\"a\", \"b\", \"c\"]",
            "\"a\", \"b\"]",
            "t.toml:6: host.c.name: found \"c\": no link or medium has it: add a [[link]] with it in 'between', or name it in a medium's 'stations'",
        ),
        (
            "slot_bits = 512",
            "turnaround = \"5us\"",
            "t.toml:13: medium.cable.turnaround: found \"5us\": csma-cd has no such key; its own are slot_bits, jam_bits, preamble_bits, gap_bits, attempts, backoff_limit",
        ),
        (
            "slot_bits = 512",
            "slot_bits = \"x\"",
            "t.toml:13: medium.cable.slot_bits: found \"x\", which is not a whole number in range, such as 512",
        ),
        (
            "slot_bits = 512",
            "slot_bits = 90",
            "t.toml:12: medium.cable.delay: found \"5us\": a delay of 5us to and fro is longer than the slot of 90 bits at 10Mbit/s, 9us: collisions would be missed; give a shorter delay or more slot_bits",
        ),
        (
            "rate = \"10Mbit/s\"\n",
            "",
            "t.toml:9: medium.cable.kind: found \"csma-cd\": csma-cd counts its slots in bits: give a rate, such as 10Mbit/s",
        ),
        (
            "slot_bits = 512",
            "discipline = \"round-robin\"",
            "t.toml:13: medium.cable.discipline: found \"round-robin\": the discipline round-robin serves parts of packets, and the stations of a medium send whole frames: give another, such as drr",
        ),
        (
            "rate = \"10Mbit/s\"",
            "framing = \"atm-aal5\"",
            "t.toml:11: medium.cable.framing: found \"atm-aal5\": framing atm-aal5 needs a rate, whose slot clock it follows: give rate = \"155.52Mbit/s\"",
        ),
        (
            "csma-cd\"\nstations = [\"a\", \"b\", \"c\"]\nrate = \"10Mbit/s\"\ndelay = \"5us\"\nslot_bits = 512",
            "fddi\"\nstations = [\"a\", \"b\", \"c\"]\nrate = \"10Mbit/s\"\ndelay = \"5us\"\nttrt = \"10us\"\nstation_latency = \"2us\"",
            "t.toml:13: medium.cable.ttrt: found \"10us\": a ttrt of 10us leaves no time to send: the ring takes 5us and a station_latency of 2us for each of 3 stations; give a longer ttrt",
        ),
        ("slot_bits = 512", "loss = \"1%\"", "t.toml:13: medium.cable.loss: found no such key"),
        (
            "csma-cd",
            "aloha",
            "t.toml:9: medium.cable.kind: found \"aloha\": give one of \"half-duplex\", \"csma-cd\"",
        ),
        (
            "[[medium]]\nname = \"cable\"",
            "[[medium]]\nname = \"a\"",
            "t.toml:8: medium.a.name: found \"a\": host.a has this name already: give another",
        ),
    ] {
        let found = wrong(from, to);
        assert!(found.starts_with(expected), "\n   found {found}\nexpected {expected}");
    }
}
