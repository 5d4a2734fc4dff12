//! How TCP's connections are set up: on the wire, before the first write (RFC 9293 §3.5, RFC 6298).

use crate::hosts::support::{FREE, at, only, pair, run, scenario, spent, traffic};
use trunkline_core::{Span, Time};
use trunkline_engine::{Run, check};
use trunkline_measure::SenderState;

/// One transfer of so many bytes over 10 Mbit/s and a distance.
fn transfer(delay: &str, bytes: &str, more: &str) -> Run {
    run(&format!(
        "stop_after = \"24h\"\n[[host]]\nname = \"a\"\n[[host]]\nname = \"b\"\n[[link]]\n\
         between = [\"a\", \"b\"]\nrate = \"10Mbit/s\"\ndelay = \"{delay}\"\n\
         [[traffic]]\nname = \"t\"\nkind = \"bulk\"\nbytes = \"{bytes}\"\nfrom = \"a\"\nto = \"b\"\n\
         transport = {{ kind = \"tcp\"{more} }}\n"
    ))
}

/// A SYN of 60 octets, its answer, and 52 that confirm it cross the path before the flow's time begins, as in the
/// emulator: the message is timed without them, the sender's states tell of them, and the path counts them.
#[test]
fn three_segments_cross_the_path_before_the_first_message() {
    let run = run(&pair(&format!(
        "{FREE}[[traffic]]\nname = \"t\"\nkind = \"interactive\"\nsizes = [100]\nfrom = \"a\"\n\
         to = \"b\"\ntransport = {{ kind = \"tcp\", profile = \"trunkline\" }}\n"
    )));
    let tcp = traffic(&run, "t");
    let set_up = Span::from_micros(3 * 5000 + 2 * 60 * 8 + 52 * 8);
    assert_eq!(spent(tcp, 0, SenderState::Opening), set_up);
    assert_eq!(tcp.samples[0].start, at(set_up));
    assert_eq!(only(&run), Span::from_micros(2 * (5000 + 152 * 8)));
    assert_eq!(tcp.packets.sent, 5, "SYN, its answer, the third, and the two messages");
}

/// The handshake's sample sets the first time-out (RFC 6298 §2.2): a path of more than its initial second
/// has nothing sent again but the SYNs themselves. Time stamps tell which SYN was answered.
#[test]
fn a_long_path_needs_no_repetition() {
    for (delay, syns) in [("450ms", 0), ("600ms", 3), ("2s", 8), ("15s", 14)] {
        for profile in ["trunkline", "linux"] {
            let run = transfer(delay, "100kB", &format!(", profile = \"{profile}\""));
            let again = traffic(&run, "t").retransmissions;
            assert!(again <= syns, "{profile}, {delay}: {again} sent again");
            assert_eq!(traffic(&run, "t").samples.len(), 1);
        }
    }
}

/// Minutes of delay, as to Mars: Linux gives up a SYN after 127 s and sends data again after 120 s at the latest.
#[test]
fn minutes_of_delay_are_no_obstacle() {
    for (delay, profile, syns) in [
        ("3min", "trunkline", 3 * 12),
        ("3min", "linux", 3 * 10),
        ("22min", "trunkline", 3 * 50),
        ("22min", "linux", 3 * 30),
        // Without time stamps nothing is learnt of a path longer than the longest time-out, 64 s: all goes often.
        ("3min", "bsd-reno", 1000),
    ] {
        let run = transfer(delay, "100kB", &format!(", profile = \"{profile}\""));
        let tcp = traffic(&run, "t");
        assert_eq!((tcp.samples.len(), run.notes.len()), (1, 0), "{profile}: {:?}", run.notes);
        // SYNs go again every minute or two, twelve at most in the six of the shorter round trip; the other end
        // answers each and repeats its answers by its own timer.
        assert!(tcp.retransmissions < syns, "{profile}, {delay}: {}", tcp.retransmissions);
    }
}

/// Many servers answer at once into a small buffer: what is lost at a window's end waits for the timer, and the
/// shorter that is, the sooner all is there (Vasudevan et al., *Safe and Effective Fine-grained TCP
/// Retransmissions for Datacenter Communication*, 2009).
#[test]
fn incast_is_cured_by_short_time_outs() {
    // One run is one draw: the last of 64 may back off twice more.
    let took = |min_rto: &str| {
        let mut ends = [21, 23, 25, 27, 29].map(|micros| incast(min_rto, micros));
        ends.sort();
        ends[2]
    };
    // The line carries them in 136 ms, headers included.
    let [slow, fast] = ["200ms", "1ms"].map(took);
    assert!(slow > at(Span::from_millis(330)), "{slow}: nothing waited for a timer");
    assert!(fast < at(Span::from_millis(170)), "{fast} after {slow}");
}

/// When the last of 64 servers is done, each `micros` away from the switch and that from the client.
fn incast(min_rto: &str, micros: u64) -> Time {
    let servers: Vec<String> = (0..64).map(|n| format!("s{n}")).collect();
    let hosts: String = servers
        .iter()
        .map(|name| {
            format!(
                "[[host]]\nname = \"{name}\"\n[[link]]\nbetween = [\"{name}\", \"sw\"]\n\
                 rate = \"1Gbit/s\"\ndelay = \"{micros}us\"\n"
            )
        })
        .collect();
    let run = run(&format!(
        "[[host]]\nname = \"client\"\n[[node]]\nname = \"sw\"\n[[link]]\n\
         between = [\"sw\", \"client\"]\nrate = \"1Gbit/s\"\ndelay = \"{micros}us\"\nlimit = \"64KiB\"\n\
         {hosts}[[traffic]]\nname = \"t\"\nkind = \"bulk\"\nbytes = \"256kB\"\nwrite = 65536\n\
         from_each = {servers:?}\ncount = 64\nto = \"client\"\n\
         transport = {{ kind = \"tcp\", profile = \"linux\", min_rto = \"{min_rto}\" }}\n"
    ));
    let tcp = traffic(&run, "t");
    assert_eq!(tcp.samples.len(), 64);
    tcp.samples.iter().map(|sample| sample.end).max().unwrap()
}

/// A lost SYN goes again after a second and then two (RFC 6298 §2.1, §5.5), and the transfer that follows has all
/// its time to itself.
#[test]
fn a_lost_syn_delays_the_beginning_and_nothing_else() {
    let text = pair(&format!(
        "{FREE}[[traffic]]\nname = \"t\"\nkind = \"interactive\"\nsizes = [100]\nfrom = \"a\"\n\
         to = \"b\"\ntransport = {{ kind = \"tcp\" }}\n"
    ));
    let lossy =
        text.replace("delay = ", "forward = { schedule = \"0s loss=100%; 2s loss=0%\" }\ndelay = ");
    let [clean, lossy] = [text, lossy].map(|text| run(&text));
    assert_eq!(only(&clean), only(&lossy));
    let waited = spent(traffic(&lossy, "t"), 0, SenderState::Opening);
    assert_eq!(waited, Span::from_secs(3) + spent(traffic(&clean, "t"), 0, SenderState::Opening));
    assert_eq!((traffic(&lossy, "t").retransmissions, traffic(&lossy, "t").timeouts), (2, 2));
}

/// Nobody answers: RFC 9293 §3.8.3 asks for three minutes at least; a path of hours shall have its chance.
#[test]
fn a_peer_that_never_answers_is_given_up_after_hours() {
    for side in ["forward", "backward"] {
        let text = transfer_text(side);
        let run = trunkline_sim::run(&scenario(&text)).unwrap();
        assert_eq!(check(&run), []);
        assert_eq!(
            run.notes.iter().map(ToString::to_string).collect::<Vec<_>>(),
            ["t: 1 of 1 flows gave up: no answer to any enquiry"]
        );
        assert!(traffic(&run, "t").samples.is_empty());
        assert!(run.ended > at(Span::from_secs(3 * 3600)));
    }
}

fn transfer_text(side: &str) -> String {
    pair(&format!(
        "{FREE}[[traffic]]\nname = \"t\"\nkind = \"bulk\"\nfrom = \"a\"\nto = \"b\"\n\
         transport = {{ kind = \"tcp\" }}\n"
    ))
    .replace("delay = ", &format!("{side} = {{ loss = \"100%\" }}\ndelay = "))
    .replacen("[[host]]", "stop_after = \"24h\"\n[[host]]", 1)
}

/// What ends while its connection is being set up has sent nothing and is over.
#[test]
fn a_flow_may_be_stopped_before_it_has_begun() {
    let run = run(&pair(&format!(
        "{FREE}[[traffic]]\nname = \"main\"\nkind = \"interactive\"\nsizes = [10]\nfrom = \"a\"\nto = \"b\"\n\
         transport = {{ kind = \"tcp\" }}\n\
         [[traffic]]\nname = \"other\"\nkind = \"bulk\"\nfrom = \"b\"\nto = \"a\"\nstart = \"21ms\"\n\
         transport = {{ kind = \"tcp\" }}\nuntil = \"main\"\n"
    )));
    assert_eq!(traffic(&run, "main").samples.len(), 1);
    assert_eq!(traffic(&run, "other").delivered_bytes, 0);
}
