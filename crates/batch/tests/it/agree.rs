//! The formulas beside the simulator where they were once far apart, found by drawing scenarios by chance.

use trunkline_batch::make;
use trunkline_engine::{Engine, Run};
use trunkline_measure::{Estimator, Quantity};
use trunkline_model::Formulas;
use trunkline_scenario::Scenario;
use trunkline_sim::Simulator;

/// The farthest that the formulas may be from the simulator, as a share. Fixed before the first run.
const WITHIN: f64 = 0.05;

/// The figure of a traffic: the rate of one flow, or the mean time of a write of so many bytes.
#[derive(Debug, Clone, Copy)]
enum Figure {
    Rate,
    Write(u64),
}

impl Figure {
    fn of(self, run: &Run) -> f64 {
        let traffic = run.traffic("t").unwrap();
        match self {
            Figure::Rate => {
                let size = traffic.sizes()[0];
                traffic.throughput(size, Estimator::MEDIAN).unwrap().per_conversation
            }
            Figure::Write(size) => {
                traffic.estimate(size, Quantity::Delay, Estimator::Mean).unwrap().value
            }
        }
    }
}

/// Two hosts and what stands between them, with the traffic `t`.
fn scenario(path: &str, traffic: &str) -> Scenario {
    let hosts = "[[host]]\nname = 'a'\n[[host]]\nname = 'b'\n";
    let text = format!(
        "stop_after = '10min'\n{path}\n[[traffic]]\nname = 't'\nfrom = 'a'\nto = 'b'\n{traffic}\n"
    );
    let text = if path.contains("[[host]]") {
        text
    } else {
        text.replacen('\n', &format!("\n{hosts}"), 1)
    };
    let cells = Scenario::parse(&text, "test.toml").unwrap_or_else(|error| panic!("{error}"));
    cells.into_iter().next().expect("one cell")
}

fn agree(path: &str, traffic: &str, figures: &[Figure]) {
    let scenario = scenario(path, traffic);
    let found = |engine: &dyn Engine| make(engine, &scenario).unwrap();
    let (model, sim) = (found(&Formulas), found(&Simulator));
    for figure in figures {
        let (model, sim) = (figure.of(&model), figure.of(&sim));
        let off = model / sim - 1.0;
        assert!(off.abs() <= WITHIN, "{figure:?}: model {model}, simulator {sim}: {off:+.3}");
    }
}

const FAST: &str = "[[link]]\nbetween = ['a', 'b']\nrate = '8Mbit/s'\ndelay = '1400us'";

/// A receiver that stores 1 KiB in 2 ms takes 512 kB/s, whatever the line carries.
#[test]
fn a_slow_store_limits_a_file_over_tcp() {
    let file =
        "kind = 'push'\nbytes = '2MB'\nwrite = 1024\nrepeat = 3\nstore = '2ms'\ntransport = 'tcp'";
    agree(FAST, file, &[Figure::Rate]);
}

/// A processor of which each write and each segment cost 0.8 ms in all.
const BUSY: &str = "[processor.cpu]\nwrite = { fixed = '500us', per_byte = '1ns' }\nsend_block = '300us'\n\
    [[host]]\nname = 'a'\nprocessor = 'cpu'\n[[host]]\nname = 'b'\n\
    [[link]]\nbetween = ['a', 'b']\nrate = '10Mbit/s'\ndelay = '61us'";

/// Writes of each size have a rate of their own, and a writer slower than its network has each sent by itself.
#[test]
fn writes_of_several_sizes_over_tcp_do_not_share_a_rate() {
    let writes =
        "kind = 'timed-transfer'\nsizes = [16, 1000, 20000]\nduration = '60s'\ntransport = 'tcp'";
    agree(BUSY, writes, &[Figure::Write(16), Figure::Write(1000), Figure::Write(20_000)]);
}

/// In ten seconds the host takes a good deal more than the line carries: it still holds it at the end.
#[test]
fn a_short_test_counts_what_the_host_still_holds() {
    let path = "[[link]]\nbetween = ['a', 'b']\nrate = '256kbit/s'\ndelay = '70ms'\nlimit = '64kB'";
    for congestion in ["cubic", "reno"] {
        let writes = format!(
            "kind = 'timed-transfer'\nsizes = [4096]\nduration = '10s'\n\
             transport = {{ kind = 'tcp', window = 65535, congestion = '{congestion}' }}"
        );
        agree(path, &writes, &[Figure::Write(4096)]);
    }
}

/// One block under way over three lines of cells waits for a slot at each of them, and its answer does too.
#[test]
fn a_window_waits_for_the_slots_of_lines_with_cells() {
    let line = |between: &str, delay: &str| {
        format!(
            "[[link]]\nbetween = [{between}]\nrate = '8Mbit/s'\ndelay = '{delay}'\nframing = 'atm-aal5'\n"
        )
    };
    let lines =
        [line("'a', 'm'", "553us"), line("'m', 'n'", "12us"), line("'n', 'b'", "17us")].concat();
    let path = format!(
        "[[host]]\nname = 'a'\n[[host]]\nname = 'b'\n[[node]]\nname = 'm'\n[[node]]\nname = 'n'\n{lines}"
    );
    let file = "kind = 'bulk'\nbytes = '500kB'\nwrite = 65536\ntransport = { kind = 'urp', block = 256, outstanding = 1 }";
    agree(&path, file, &[Figure::Rate]);
}

/// The first block has to cross the line before the slow one, whole: nothing of that overlaps in so short a transfer.
#[test]
fn a_short_transfer_of_large_packets_fills_its_path_first() {
    let path = "[[host]]\nname = 'a'\n[[host]]\nname = 'b'\n[[node]]\nname = 'm'\n\
        [[link]]\nbetween = ['a', 'm']\nrate = '64kbit/s'\ndelay = '8ms'\n\
        [[link]]\nbetween = ['m', 'b']\nrate = '32kbit/s'\ndelay = '11ms'";
    let file = "kind = 'push'\nbytes = 5000\nwrite = 4096\nrepeat = 3\n\
        transport = { kind = 'urp', block = 4096, outstanding = 2, packet = 0, timeout = '10s' }";
    agree(path, file, &[Figure::Rate]);
}

/// Disciplines that cut packets have each piece framed by itself, also if nobody else sends.
#[test]
fn pieces_of_a_packet_are_framed_one_by_one() {
    let greedy = "kind = 'greedy'\nduration = '5s'\ntransport = 'tcp'\nwrite = 65536";
    for framing in ["ethernet", "atm-aal5", "datakit", "t1-lapd"] {
        for discipline in ["round-robin", "two-lists", "drr"] {
            let path = format!(
                "[[link]]\nbetween = ['a', 'b']\nrate = '25Mbit/s'\ndelay = '1ms'\n\
                 framing = '{framing}'\ndiscipline = '{discipline}'"
            );
            agree(&path, greedy, &[Figure::Rate]);
        }
    }
}

/// A frame's time on a fast line is less than two nanoseconds: in whole ones it would be a third less.
#[test]
fn frames_on_a_fast_line_take_parts_of_nanoseconds() {
    agree(
        "[[link]]\nbetween = ['a', 'b']\nrate = '6Tbit/s'\ndelay = '1us'",
        "kind = 'bulk'\nbytes = '20MB'\nwrite = '64KiB'\n\
         transport = { kind = 'go-back-n', frames = 8000, timeout = '1ms' }",
        &[Figure::Rate],
    );
}
