//! Nothing is delivered faster than the line carries it, however it is measured.

use crate::hosts::support::{COSTS, scenario};
use proptest::prelude::*;
use trunkline_engine::Run;
use trunkline_measure::{Estimator, Quantity, TrafficRun};
use trunkline_sim::run;

/// User bytes of a full segment of 1500 bytes, with time stamps.
const SEGMENT: u64 = 1448;

/// A line with losses and several connections over it.
#[derive(Debug, Clone)]
struct Plan {
    seed: u32,
    kbits: u64,
    delay: u32,
    loss: &'static str,
    limit: &'static str,
    count: u64,
    stagger: u32,
}

impl Plan {
    fn run(&self, traffic: &str) -> Run {
        let Plan { seed, kbits, delay, loss, limit, count, stagger } = self;
        let text = format!(
            "seed = {seed}\nstop_after = '120s'\n[[host]]\nname = 'a'\n[[host]]\nname = 'b'\n\
             [[link]]\nbetween = ['a', 'b']\nrate = '{kbits}kbit/s'\ndelay = '{delay}ms'\nloss = '{loss}'\nlimit = '{limit}'\n\
             [[traffic]]\nname = 't'\nfrom = 'a'\nto = 'b'\ncount = {count}\nstagger = '{stagger}ms'\n{traffic}\n"
        );
        run(&scenario(&text)).unwrap()
    }

    /// User bytes that the line carries in a second.
    fn line(&self) -> f64 {
        self.kbits as f64 * 125.0 * SEGMENT as f64 / 1500.0
    }
}

fn plan() -> impl Strategy<Value = Plan> {
    let kbits = prop::sample::select(vec![500u64, 1000, 2700, 10_000]);
    let delay = prop::sample::select(vec![1u32, 10, 50, 150]);
    let loss = prop::sample::select(vec!["0%", "0.5%", "2%", "8%"]);
    let limit = prop::sample::select(vec!["16KiB", "64KiB", "256KiB"]);
    (0u32..1000, kbits, delay, loss, limit, 1u64..5, 0u32..300).prop_map(
        |(seed, kbits, delay, loss, limit, count, stagger)| Plan {
            seed,
            kbits,
            delay,
            loss,
            limit,
            count,
            stagger,
        },
    )
}

fn of(run: &Run) -> &TrafficRun {
    run.traffic("t").unwrap()
}

const TCP: &str = "transport = { kind = 'tcp', profile = 'linux', timestamps = true }";

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    /// What lies behind a hole counts when it comes. In the worst case an interval begins with the end of a packet
    /// of each flow.
    #[test]
    fn an_interval_has_no_more_than_the_line_carries(plan in plan(), interval in 200u64..1000) {
        let plan = Plan { stagger: 0, ..plan };
        let run = plan.run(&format!(
            "kind = 'greedy'\nduration = '{}ms'\nwarm_up = '1s'\ninterval = '{interval}ms'\n{TCP}",
            1000 + 4 * interval
        ));
        for index in 0..4 {
            let all = of(&run).samples.iter();
            let own: Vec<_> = all.filter(|sample| sample.index == index).collect();
            let bytes: u64 = own.iter().map(|sample| sample.size).sum();
            // A flow's intervals begin when its connection stands.
            let from = own.iter().map(|sample| sample.start).min().unwrap_or_default();
            let until = own.iter().map(|sample| sample.end).max().unwrap_or_default();
            let seconds = (until - from).as_nanos() as f64 / 1e9;
            let most = plan.line() * seconds + (plan.count * SEGMENT) as f64;
            prop_assert!(bytes as f64 <= most, "{} of {} bytes in interval {}", bytes, most, index);
        }
        if let Some(total) = of(&run).total_rate(0) {
            let most = plan.line() + (plan.count * SEGMENT) as f64 / (4.0 * interval as f64 / 1e3);
            prop_assert!(total <= most, "{} of {} B/s", total, most);
        }
    }

    /// Neither flows that follow each other, nor transfers that end with the last write.
    #[test]
    fn transfers_together_have_no_more_than_the_line_carries(
        plan in plan(),
        kilobytes in 5u32..300,
        repeat in 1u32..4,
        confirm: bool,
    ) {
        let run = plan.run(&format!(
            "kind = 'bulk'\nbytes = '{kilobytes}kB'\nwrite = '64KiB'\nrepeat = {repeat}\nconfirm = {confirm}\n{TCP}"
        ));
        let traffic = of(&run);
        for total in [traffic.course_rate(), traffic.total_rate(u64::from(kilobytes) * 1000)] {
            // The last write may return before anything has come, in no time at all.
            let Some(total) = total else { continue };
            prop_assert!(total <= plan.line(), "{} of {} B/s", total, plan.line());
        }
    }
}

/// What a greedy connection has left in its send buffer goes nowhere when its time is up, so that all engines count
/// its packets over the same time.
#[test]
fn a_greedy_flow_ends_when_its_time_is_up() {
    let plan =
        Plan { seed: 1, kbits: 1000, delay: 20, loss: "0%", limit: "256KiB", count: 1, stagger: 0 };
    let clock = "[[traffic]]\nname = 'clock'\nkind = 'paced'\nfrom = 'b'\nto = 'a'\nsize = 10\nrate = '800bit/s'\nduration = '20s'\n\
                 transport = 'udp'\n";
    let run =
        plan.run(&format!("kind = 'greedy'\nduration = '3s'\nwarm_up = '0s'\n{TCP}\n{clock}"));
    let traffic = of(&run);
    let carried = traffic.packets.sent - traffic.packets.delivered - traffic.packets.dropped;
    assert_eq!(carried, traffic.packets.in_flight);
    // Three seconds of the line, and the queue of 256 KiB that was full by then.
    let most = plan.line() * 3.0 + 262_144.0;
    assert!((traffic.delivered_bytes as f64) < most, "{} of {most}", traffic.delivered_bytes);
    let last = traffic.courses[0].to.as_nanos() as f64 / 1e9;
    assert!(last < 3.0 + 2.2 + 0.1, "{last} s: the queue takes 2.1 s");
}

/// A connection is there when the first byte is written: its set-up is in no figure.
#[test]
fn the_total_of_one_transfer_is_its_rate() {
    let plan = Plan {
        seed: 1,
        kbits: 10_000,
        delay: 40,
        loss: "0%",
        limit: "256KiB",
        count: 1,
        stagger: 0,
    };
    for transport in [TCP, "transport = 'urp'", "transport = 'netblt'"] {
        let run = plan.run(&format!("kind = 'bulk'\nbytes = '30kB'\n{transport}"));
        let traffic = of(&run);
        let own = traffic.samples[0].rate();
        let total = traffic.total_rate(30_000).unwrap();
        assert!((total / own - 1.0).abs() < 1e-9, "{transport}: {total} in all, {own} each");
    }
}

/// A flow of which nothing came through has a rate: none.
#[test]
fn flows_that_got_nothing_are_counted() {
    let plan =
        Plan { seed: 1, kbits: 10_000, delay: 5, loss: "0%", limit: "3p", count: 8, stagger: 0 };
    let run = plan.run("kind = 'paced'\nsize = 1000\nrate = '5Mbit/s'\nduration = '5s'");
    let traffic = of(&run);
    let starved = traffic.courses.iter().filter(|course| course.bytes == 0).count();
    assert!(starved > 0, "datagrams of the same instant find three places");
    let found = traffic.throughput(1000, Estimator::Mean).unwrap();
    assert_eq!(found.conversations, 8);
    let measured = traffic.by_flow(1000, Quantity::Rate).len();
    assert_eq!(measured, 8 - starved);
    assert!((found.per_conversation - found.sum / 8.0).abs() < 1e-6);
}

/// Sizes are bytes of the user, whether hosts cost something or not.
#[test]
fn headers_of_udp_are_nobodys_bytes() {
    for (costs, more) in [("", ""), (COSTS, "processor = 'cpu'\ninterface = 'board'\n")] {
        let text = format!(
            "stop_after = '10s'\n{costs}\n[[host]]\nname = 'a'\n{more}[[host]]\nname = 'b'\n{more}\
             [[link]]\nbetween = ['a', 'b']\nrate = '10Mbit/s'\ndelay = '5ms'\n\
             [[traffic]]\nname = 't'\nkind = 'paced'\nfrom = 'a'\nto = 'b'\nsize = 100\nrate = '1Mbit/s'\n\
             duration = '2s'\ntransport = 'udp'\n"
        );
        let run = run(&scenario(&text)).unwrap();
        let traffic = of(&run);
        let bytes = 100 * traffic.samples.len() as u64;
        assert_eq!((traffic.delivered_bytes, traffic.courses[0].bytes), (bytes, bytes), "{more}");
        assert_eq!(run.links[0].counts.delivered_bytes, bytes / 100 * 128, "{more}");
    }
}
