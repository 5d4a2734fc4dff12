use std::collections::BTreeMap;
use trunkline_core::*;
use trunkline_measure::*;
use trunkline_path::*;
use trunkline_scenario::*;
fn us(x: f64) -> Span {
    Span::from_nanos((x * 1000.0) as u64)
}
fn cost(fixed_us: f64, per_us: f64) -> Cost {
    Cost { fixed: us(fixed_us), per_byte: us(per_us) }
}
fn p(name: &str, d: f64) -> f64 {
    std::env::var(name).ok().and_then(|v| v.parse().ok()).unwrap_or(d)
}
fn rate(s: &str) -> Option<Rate> {
    Some(s.parse().unwrap())
}
fn wire(a: &str, b: &str, spec: LinkSpec) -> Wire {
    Wire {
        name: format!("{a}-{b}"),
        from: a.into(),
        to: b.into(),
        forward: spec.clone(),
        backward: spec,
    }
}
fn fibre() -> LinkSpec {
    LinkSpec { rate: rate("8mbit"), framing: Framing::Datakit, ..LinkSpec::default() }
}
fn t1(kind: &str, delay: Span) -> LinkSpec {
    let (d, buf) = match kind {
        "hw" => (DisciplineSpec::Fifo { limit: Limit::Bytes(32768) }, 0),
        "sw" => (DisciplineSpec::Fifo { limit: Limit::Bytes(500_000) }, 1024),
        "rr" => (DisciplineSpec::RoundRobin { limit: Limit::Bytes(500_000), quantum: 64 }, 1024),
        _ => panic!(),
    };
    let framing = if kind == "rr" {
        Framing::T1_LAPD
    } else {
        Framing::T1Lapd { frame: p("frame", 64.) as u16 }
    };
    let processor = match kind {
        "sw" | "rr" => Some(TrunkProcessor {
            input_fifo: Size::from_bytes(4096),
            input_per_byte: "1412.5ns".parse().unwrap(),
            output_per_byte: "1231.25ns".parse().unwrap(),
            output_first: kind == "sw",
        }),
        _ => None,
    };
    LinkSpec {
        processor,
        rate: rate("1.544mbit"),
        framing,
        discipline: d,
        output_buffer: Size::from_bytes(buf),
        delay,
        ..LinkSpec::default()
    }
}
fn node(n: &str) -> Node {
    Node { name: n.into(), backplane: rate("8mbit") }
}
fn host(n: &str, processor: Processor, interface: Interface) -> Host {
    Host { name: n.into(), processor, interface }
}
fn urp(block: u16, outstanding: u8, profile: &str) -> Transport {
    Transport::Urp(UrpSettings {
        block,
        outstanding,
        profile: profile.into(),
        ..UrpSettings::default()
    })
}
fn kmc() -> Interface {
    Interface {
        name: "kmc".into(),
        protocol: ProtocolPlace::Board,
        requests: Some(1),
        half_duplex: true,
        send_block: cost(p("kb", 70.), p("k", 4.)),
        receive_block: cost(p("kb", 70.), p("k", 4.)),
        control: us(p("kc", 60.)),
        receive_buffer: Some(1024),
        echo: Echo::Posted,
        ..Interface::default()
    }
}
fn v9() -> Vec<Split> {
    vec![Split { below: Some(512), piece: 64 }, Split { below: None, piece: 1024 }]
}
fn traffic(name: &str, w: Workload, from: &str, to: &str, via: &[&str], t: Transport) -> Traffic {
    Traffic {
        name: name.into(),
        workload: w,
        from: from.into(),
        to: to.into(),
        via: via.iter().map(|s| s.to_string()).collect(),
        count: 1,
        from_each: vec![],
        transport: t.clone(),
        reply_transport: t,
        start: Start::At(Span::ZERO),
        stagger: Span::ZERO,
        until: None,
        estimator: None,
    }
}
fn hawley(kind: &str) -> Scenario {
    let pipe = Processor {
        write: cost(p("pw", 400.), p("pwb", 0.5)),
        read: cost(p("pr", 400.), p("prb", 0.5)),
        request: cost(p("preq", 300.), 0.),
        interrupt: cost(p("pint", 300.), 0.),
        ..Processor::default()
    };
    let crab = Processor {
        write: cost(0., 0.),
        send_block: cost(p("cb", 550.), p("c", 5.1)),
        control: us(p("cc", 100.)),
        ..Processor::default()
    };
    let tempel = Processor {
        receive_block: cost(p("tb", 500.), p("t", 0.3)),
        control: us(p("tc", 200.)),
        ..Processor::default()
    };
    let avdk = Interface {
        name: "avdk".into(),
        programmed: Some(us(p("tp", 4.8))),
        ..Interface::default()
    };
    Scenario {
        name: "hawley".into(),
        about: String::new(),
        seed: Seed(1),
        cell: BTreeMap::new(),
        hosts: vec![
            host("pipe", pipe, Interface { split: v9(), ..kmc() }),
            host("crab", crab, Interface { name: "cure".into(), ..Interface::default() }),
            host("tempel", tempel, avdk),
        ],
        nodes: vec![
            node("n1"),
            node("n2"),
            node("n3"),
            Node { name: "n4".into(), backplane: rate("125mbit") },
            node("n6"),
        ],
        links: vec![
            wire("pipe", "n2", fibre()),
            wire("n2", "n1", fibre()),
            wire("n1", "n3", fibre()),
            wire("n3", "n6", t1(kind, Span::ZERO)),
            wire("n6", "n1", fibre()),
            wire("crab", "n4", fibre()),
            wire("n4", "n1", fibre()),
            wire("n1", "tempel", fibre()),
        ],
        traffic: vec![],
        stop_after: Span::from_secs(100_000),
        sample_backlog: None,
    }
}
const IPUKE: [&str; 6] = ["n2", "n1", "n3", "n6", "n1", "n2"];
const MPUKE: [&str; 5] = ["n4", "n1", "n3", "n6", "n1"];
const SIZES: [u32; 14] = [1, 2, 12, 13, 60, 61, 64, 65, 256, 257, 511, 512, 768, 769];
fn ipuke(n: u32) -> Traffic {
    traffic(
        "i",
        Workload::Interactive {
            sizes: SIZES.to_vec(),
            repeat: n,
            reply: Reply::Bytes(4),
            every: Span::ZERO,
        },
        "pipe",
        "pipe",
        &IPUKE,
        urp(28, 3, "kmc"),
    )
}
fn mpuke(b: u16, o: u8, n: u32, rep: u32) -> Traffic {
    Traffic {
        count: n,
        stagger: us(p("stagger", 2.) * 1e6),
        ..traffic(
            "m",
            Workload::Bulk {
                bytes: Size::from_bytes(1_000_000),
                repeat: rep,
                write: 1024,
                confirm: true,
            },
            "crab",
            "tempel",
            &MPUKE,
            urp(b, o, "v10"),
        )
    }
}
fn xunet() -> Scenario {
    let f = |n: &str, a: f64| p(n, a);
    let vax8600 = Processor {
        write: cost(f("vw", 200.), f("vc", 0.7)),
        read: cost(f("vr", 200.), f("vc", 0.7)),
        request: cost(f("vq", 150.), 0.),
        interrupt: cost(f("vi", 200.), 0.),
        ..Processor::default()
    };
    let vax750 = Processor {
        write: cost(f("ww", 600.), f("wc", 3.3)),
        read: cost(f("wr", 500.), f("wc", 3.3)),
        request: cost(f("wq", 300.), 0.),
        interrupt: cost(f("wi", 2000.), 0.),
        ..Processor::default()
    };
    let bsd = || Interface {
        split: vec![Split { below: None, piece: 1024 }],
        memory: Some(Size::from_bytes(f("mem", 8192.) as u64)),
        ..kmc()
    };
    let trunk = |d: f64| LinkSpec {
        rate: rate("1.344mbit"),
        framing: Framing::T1_LAPD,
        discipline: DisciplineSpec::Fifo { limit: Limit::Bytes(32768) },
        delay: us(d * 1000.),
        ..LinkSpec::default()
    };
    let old =
        || Interface { receive_buffer: Some(f("oldbuf", 64.) as u32), echo: Echo::Posted, ..bsd() };
    let vax780 = {
        let r = f("r780", 0.6);
        let c = |x: Cost| Cost {
            fixed: us(x.fixed.as_micros_f64() * r),
            per_byte: us(x.per_byte.as_micros_f64() * r),
        };
        Processor {
            write: c(vax750.write),
            read: c(vax750.read),
            request: c(vax750.request),
            interrupt: c(vax750.interrupt),
            ..Processor::default()
        }
    };
    let prop = f("prop", 24.15);
    let up = f("uprop", 18.0);
    Scenario {
        name: "xunet".into(),
        about: String::new(),
        seed: Seed(1),
        cell: BTreeMap::new(),
        hosts: vec![
            host("vangogh", vax8600.clone(), bsd()),
            host("monet", vax750.clone(), bsd()),
            host("fish", vax750.clone(), bsd()),
            host("uiuc", vax750.clone(), old()),
            host("uiuc2", vax780, old()),
            host("monet1", vax750, bsd()),
            host("vangogh1", vax8600, old()),
        ],
        nodes: vec![node("berkeley"), node("oakland"), node("chicago"), node("mh"), node("urbana")],
        links: vec![
            wire("vangogh", "berkeley", fibre()),
            wire("monet", "berkeley", fibre()),
            wire("berkeley", "oakland", trunk(0.05)),
            wire("oakland", "chicago", trunk(up - 1.)),
            wire("chicago", "mh", trunk(prop - up + 0.95)),
            wire("mh", "fish", fibre()),
            wire("chicago", "urbana", trunk(0.95)),
            wire("urbana", "uiuc", fibre()),
            wire("urbana", "uiuc2", fibre()),
            wire("monet1", "berkeley", fibre()),
            wire("vangogh1", "berkeley", fibre()),
        ],
        traffic: vec![],
        stop_after: Span::from_secs(100_000),
        sample_backlog: None,
    }
}
fn small() -> Transport {
    urp(28, 3, "kmc")
}
fn large() -> Transport {
    urp(252, 3, "kmc")
}
fn echo(sizes: &[u32], to: &str, t: Transport) -> Run {
    let mut s = xunet();
    s.traffic = vec![traffic(
        "e",
        Workload::Interactive {
            sizes: sizes.to_vec(),
            repeat: 4,
            reply: Reply::Echo,
            every: Span::ZERO,
        },
        "vangogh",
        to,
        &[],
        t,
    )];
    let r = trunkline_sim::run(&s).unwrap();
    check(&r);
    r
}
fn line(what: &str, ours: f64, published: f64) {
    println!("{what:24} {ours:10.2} {published:10.2} {:+.1}%", 100. * (ours / published - 1.));
}
fn mean(run: &Run, t: usize, size: u64) -> (f64, f64) {
    let d: Vec<f64> = run.traffic[t]
        .samples
        .iter()
        .filter(|s| s.size == size)
        .map(|s| s.delay().as_millis_f64())
        .collect();
    (d.iter().sum::<f64>() / d.len() as f64, d.iter().cloned().fold(f64::MAX, f64::min))
}
fn check(run: &Run) {
    for t in &run.traffic {
        for s in &t.samples {
            let sum: Span = s.steps.iter().map(|x| x.span).sum();
            assert_eq!(sum, s.delay(), "{} {}", t.name, s.size);
        }
        assert!(t.packets.holds(), "{:?}", t.packets);
    }
}
fn main() {
    let what = std::env::args().nth(1).unwrap();
    let t0 = std::time::Instant::now();
    match what.as_str() {
        "unloaded" => {
            let hw = [
                3.82, 3.88, 4.05, 4.07, 4.71, 4.78, 4.99, 7.03, 14.05, 16.26, 26.45, 17.93, 24.84,
                24.92,
            ];
            let mut s = hawley("hw");
            s.traffic = vec![ipuke(5)];
            let run = trunkline_sim::run(&s).unwrap();
            check(&run);
            for (i, size) in SIZES.iter().enumerate() {
                let (m, _) = mean(&run, 0, u64::from(*size));
                println!("{size:5} {m:8.2} {:8.2} {:+.1}%", hw[i], 100. * (m / hw[i] - 1.));
            }
            println!("{:?}", run.traffic[0].rounds);
            for s in run.traffic[0].samples.iter().filter(|s| {
                s.index == 2 && (s.size == 1 || s.size == 64 || s.size == 65 || s.size == 512)
            }) {
                println!("{} {}", s.size, s.delay());
                for x in &s.steps {
                    println!("   {:30} {:?} {}", run.places[x.place as usize], x.cause, x.span);
                }
            }
        }
        "xunet" => {
            let sizes = [1u32, 2, 16, 17, 84, 85, 112, 113, 168, 169, 756, 757, 1024, 1025];
            let min = [
                54.64, 54.29, 55.14, 55.13, 56.88, 56.52, 57.34, 57.14, 58.41, 58.60, 69.97,
                160.52, 166.35, 267.36,
            ];
            let avg = [
                55.33, 55.32, 55.73, 55.94, 57.12, 57.18, 58.12, 57.88, 59.23, 58.98, 75.69, 173.6,
                172.7, 271.5,
            ];
            let r = echo(&sizes, "fish", large());
            for (i, n) in sizes.iter().enumerate() {
                let m = mean(&r, 0, u64::from(*n)).0;
                line(&format!("I {n}"), m, avg[i]);
                line(&format!("I min {n}"), m, min[i]);
            }
            let iv = [
                50.42, 50.39, 50.76, 50.73, 51.38, 51.43, 51.75, 51.78, 52.29, 52.28, 58.33,
                102.86, 105.76, 156.25,
            ];
            let mut s = xunet();
            s.traffic = vec![traffic(
                "t",
                Workload::TimedTransfer { sizes: sizes.to_vec(), duration: Span::from_secs(5) },
                "vangogh",
                "fish",
                &[],
                large(),
            )];
            let r = trunkline_sim::run(&s).unwrap();
            check(&r);
            for (i, n) in sizes.iter().enumerate() {
                line(&format!("IV {n}"), mean(&r, 0, u64::from(*n)).0, iv[i]);
            }
            let r = echo(&[1, 84, 85, 112, 1024], "fish", small());
            for (n, v) in [(1, 54.), (84, 57.), (85, 155.), (112, 156.), (1024, 1266.)] {
                line(&format!("84 fish {n}"), mean(&r, 0, n).0, v);
            }
            let r = echo(&[1, 1024], "monet1", small());
            line("84 monet 1", mean(&r, 0, 1).0, 5.0);
            line("84 monet 1024", mean(&r, 0, 1024).0, 24.7);
            let r = echo(&[1, 1024], "monet", large());
            line("756 monet 1024", mean(&r, 0, 1024).0, 22.7);
            let r = echo(&[1], "uiuc", small());
            line("84 uiuc 1", mean(&r, 0, 1).0, 43.0);
            for (from, to, t, v) in [
                ("uiuc2", "vangogh", small(), 2066.9),
                ("vangogh", "fish", large(), 9490.7),
                ("fish", "vangogh", large(), 9523.2),
                ("vangogh", "uiuc2", large(), 10808.9),
            ] {
                let mut s = xunet();
                s.traffic = vec![traffic(
                    "p",
                    Workload::Push {
                        bytes: Size::from_bytes(100_000),
                        repeat: 1,
                        write: 1024,
                        store: us(p("store", 2000.)),
                    },
                    from,
                    to,
                    &[],
                    t,
                )];
                let r = trunkline_sim::run(&s).unwrap();
                check(&r);
                line(&format!("II {from}>{to}"), r.traffic[0].samples[0].rate(), v);
            }
        }
        "t3" => {
            let v = [
                9761.15, 19515.2, 29261.9, 38947.6, 48616.1, 58280.3, 67955.0, 71829.5, 72508.3,
                63550.8, 58098.9, 56426.9, 54905.2, 50005.2,
            ];
            for n in 1..=14u32 {
                if p("only", 0.) > 0. && p("only", 0.) as u32 != n {
                    continue;
                }
                let mut s = xunet();
                let mut t = traffic(
                    "g",
                    Workload::Bulk {
                        bytes: Size::from_bytes(1_000_000),
                        repeat: 1,
                        write: 1024,
                        confirm: false,
                    },
                    "vangogh",
                    "fish",
                    &[],
                    large(),
                );
                t.count = n;
                t.from_each = vec!["vangogh".into(), "monet".into()];
                s.traffic = vec![t];
                let r = trunkline_sim::run(&s).unwrap();
                check(&r);
                let total: f64 = r.traffic[0].samples.iter().map(|s| s.rate()).sum();
                print!(
                    "{} retr {} to {} ",
                    r.notes.join(";"),
                    r.traffic[0].retransmissions,
                    r.traffic[0].timeouts
                );
                line(&format!("III {n}"), total, v[n as usize - 1]);
            }
        }
        "throughput" => {
            for kind in ["hw", "rr"] {
                for n in [1, 4] {
                    for (b, o) in [(256, 3), (256, 7), (512, 3), (512, 7), (1024, 3), (1024, 7)] {
                        let mut s = hawley(kind);
                        s.traffic = vec![mpuke(b, o, n, 3)];
                        let run = trunkline_sim::run(&s).unwrap();
                        check(&run);
                        let r: Vec<f64> = run.traffic[0]
                            .samples
                            .iter()
                            .filter(|s| s.index == 1)
                            .map(|s| s.rate())
                            .collect();
                        let total: f64 = r.iter().sum();
                        let hwp: &[f64] = if n == 1 {
                            &[116271., 126594., 142305., 149981., 160609., 162997.]
                        } else {
                            &[137099., 130519., 155117., 155918., 166635., 166806.]
                        };
                        let rrp: &[f64] = if n == 1 {
                            &[116375., 126454., 144972., 150255., 162848., 166398.]
                        } else {
                            &[137217., 133528., 159867., 156209., 173755., 173264.]
                        };
                        let pubd = if kind == "hw" { hwp } else { rrp };
                        let i = [(256, 3), (256, 7), (512, 3), (512, 7), (1024, 3), (1024, 7)]
                            .iter()
                            .position(|x| *x == (b, o))
                            .unwrap();
                        println!(
                            "{kind} {n} {b}x{o} {total:9.0} {:9.0} {:+.1}% retr {}  {:?}",
                            pubd[i],
                            100. * (total / pubd[i] - 1.),
                            run.traffic[0].retransmissions,
                            run.traffic[0].sender[0]
                        );
                    }
                }
            }
        }
        "loaded" => {
            let kind = std::env::args().nth(2).unwrap();
            let b: u16 = std::env::args().nth(3).unwrap().parse().unwrap();
            let o: u8 = std::env::args().nth(4).unwrap().parse().unwrap();
            let mut s = hawley(&kind);
            s.traffic = vec![
                Traffic { until: Some("i".into()), ..mpuke(b, o, 4, 100000) },
                Traffic {
                    start: Start::AfterBytes("m".into(), Size::from_bytes(300_000)),
                    ..ipuke(p("n", 20.) as u32)
                },
            ];
            let run = trunkline_sim::run(&s).unwrap();
            check(&run);
            for size in SIZES {
                let (m, min) = mean(&run, 1, u64::from(size));
                println!("{size:5} {m:8.2} min {min:8.2}");
            }
            println!(
                "bulk total {:.0} B/s, ended {}",
                run.traffic[0].delivered_bytes as f64 / run.ended.as_nanos() as f64 * 1e9,
                run.ended
            );
        }
        _ => {}
    }
    eprintln!("{:?}", t0.elapsed());
}
