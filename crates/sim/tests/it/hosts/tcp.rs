//! TCP between hosts: what a message takes, and what its records say.

use crate::hosts::support::{COSTS, FREE, only, pair, run, scenario, spent, tenths, traffic};
use trunkline_core::{Cause, Span};
use trunkline_engine::{NoteKind, check};
use trunkline_measure::SenderState;

fn messages(hosts: &str, sizes: &str, more: &str) -> String {
    let profile = if more.contains("profile") { "" } else { ", profile = \"trunkline\"" };
    pair(&format!(
        "{hosts}[[traffic]]\nname = \"t\"\nkind = \"interactive\"\nsizes = {sizes}\nfrom = \"a\"\n\
         to = \"b\"\ntransport = {{ kind = \"tcp\"{profile}{more} }}\n"
    ))
}

/// 8 us for each byte with 52 of headers, and the distance, both ways.
#[test]
fn a_message_and_its_answer_take_their_headers_too() {
    let run = run(&messages(FREE, "[100]", ""));
    assert_eq!(only(&run), Span::from_micros(2 * (5000 + 152 * 8)));
    let steps = &run.traffic[0].samples[0].steps;
    assert!(steps.iter().all(|it| matches!(it.cause, Cause::Transmit | Cause::Propagate)));
    assert_eq!(traffic(&run, "t").rounds, [(100, vec![100])].into());
}

/// As the message of 100 bytes over URP in blocks of their own, with 152 bytes for 104 in the packet. Each end
/// adds: write 200.0, request 50.0, send_block 30.0 + 152.0, board 5.0 + 15.2, board 7.0 + 30.4, receive_block
/// 40.0 + 152.0, interrupt 70.0 and read 400.0 us.
#[test]
fn every_operation_of_a_segment_is_paid() {
    let run = run(&messages(COSTS, "[100]", ""));
    let each = 2000 + 500 + 1820 + 202 + 374 + 1920 + 700 + 4000;
    assert_eq!(only(&run), tenths(2 * each) + Span::from_micros(2 * (5000 + 152 * 8)));
    let host = run.traffic[0].samples[0].booked(Cause::Host);
    assert_eq!(host, tenths(2 * each));
}

/// The rest of a message waits until the window opens; where it is wide enough all goes at once, and no
/// acknowledgement is waited for (Nagle's algorithm is off).
#[test]
fn what_a_message_waits_for_is_booked_to_the_window() {
    let run = run(&messages(FREE, "[5000]", ", window = 3000"));
    let sample = &run.traffic[0].samples[0];
    assert!(sample.booked(Cause::Window) > Span::from_millis(9), "{:?}", sample.steps);
    let wide = self::run(&messages(FREE, "[5000]", ""));
    assert_eq!(wide.traffic[0].samples[0].booked(Cause::Window), Span::ZERO);
    assert_eq!(wide.traffic[0].rounds, [(5000, vec![5000])].into());
}

/// An interval's steps tell a congestion window from the other end's.
#[test]
fn the_windows_are_told_apart() {
    let greedy = |transport: &str| {
        let text = format!(
            "{FREE}[[traffic]]\nname = \"t\"\nkind = \"greedy\"\nfrom = \"a\"\nto = \"b\"\n\
             duration = \"6s\"\nwarm_up = \"1s\"\ninterval = \"1s\"\n\
             transport = {{ kind = \"tcp\", profile = \"trunkline\", {transport} }}\n"
        );
        run(&pair(&text).replace("5ms", "50ms"))
    };
    for (transport, place) in [
        ("window = 3000, congestion = \"newreno\"", "a transport"),
        ("congestion = \"newreno\"", "a transport, congestion window"),
        ("congestion = \"bbr\"", "a transport, pacing"),
    ] {
        let run = greedy(transport);
        let tcp = traffic(&run, "t");
        let index = run.places.iter().position(|it| it == place).unwrap();
        let steps = tcp.samples.iter().flat_map(|sample| &sample.steps);
        let there: Span = steps.filter(|it| it.place as usize == index).map(|it| it.span).sum();
        assert!(there > Span::from_millis(1500), "{place}: {there}, {:?}", tcp.samples);
        assert!(spent(tcp, 0, SenderState::Window) > Span::from_secs(3));
    }
}

/// A message of nothing takes an octet of the stream and brings its reader none: a bulk transfer's end is one.
#[test]
fn an_empty_message_comes_through() {
    let run = run(&pair(&format!(
        "{FREE}[[traffic]]\nname = \"t\"\nkind = \"bulk\"\nbytes = 30000\nrepeat = 3\nfrom = \"a\"\n\
         to = \"b\"\ntransport = {{ kind = \"tcp\", profile = \"trunkline\" }}\n"
    )));
    let tcp = traffic(&run, "t");
    assert_eq!((tcp.samples.len(), tcp.delivered_bytes), (3, 3 * 30_004));
    assert!(tcp.samples.iter().all(|it| it.booked(Cause::Propagate) == Span::from_millis(10)));
}

#[test]
fn both_ends_have_to_speak_it() {
    let text = messages(FREE, "[100]", "");
    let mut scenario = scenario(&text);
    scenario.traffic[0].reply_transport = trunkline_scenario::Transport::Datagram.into();
    let error = trunkline_sim::run(&scenario).unwrap_err().to_string();
    assert!(error.contains("'t'") && error.contains("TCP") && !error.contains('\n'), "{error}");
}

/// The far end goes when the connection stands, after 15.9 ms: TCP gives up, and the flow with it.
#[test]
fn a_dead_end_is_given_up() {
    let text = messages(FREE, "[100]", ", profile = \"bsd-reno\"");
    let text = text.replace("rate = ", "backward = { schedule = \"16ms loss=100%\" }\nrate = ");
    let run = trunkline_sim::run(&scenario(&text)).unwrap();
    assert_eq!(check(&run), []);
    assert!(run.notes.iter().any(|note| note.kind == NoteKind::GaveUp), "{:?}", run.notes);
    assert!(traffic(&run, "t").timeouts >= 12);
}

/// The last write asks for the answer: ten full segments are ten, not eleven with one byte more.
#[test]
fn a_confirmed_transfer_sends_its_own_bytes_and_no_more() {
    for kind in ["bulk", "push"] {
        let text = format!(
            "{FREE}[[traffic]]\nname = \"t\"\nkind = \"{kind}\"\nbytes = 14480\nfrom = \"a\"\nto = \"b\"\n\
             write = 65536\ntransport = {{ kind = \"tcp\", delayed_ack = \"0\" }}\n"
        );
        let tcp = run(&pair(&text)).traffic.remove(0);
        assert_eq!((tcp.samples.len(), tcp.delivered_bytes), (1, 14480 + 4), "{kind}");
        assert_eq!(tcp.block_count, 10 + 1, "{kind}: segments with data, the answer's among them");
    }
}

/// The mss counts a segment's options, as the model, the kernel and the manual have it: no packet is larger than it and 40
/// bytes of headers.
#[test]
fn no_packet_exceeds_the_mss_and_its_headers() {
    for (mss, data) in [(48, 36), (100, 88), (1460, 1448)] {
        let run = run(&pair(&format!(
            "{FREE}[[traffic]]\nname = \"t\"\nkind = \"bulk\"\nbytes = 30000\nfrom = \"a\"\nto = \"b\"\n\
             transport = {{ kind = \"tcp\", mss = {mss} }}\n"
        )));
        let counts = &run.links[0].counts;
        let mean = counts.entered_bytes as f64 / counts.entered as f64;
        assert!(mean <= f64::from(mss + 40), "{mss}: {mean} bytes a packet");
        assert!(counts.entered >= 30_000u64.div_ceil(data), "{mss}: {}", counts.entered);
    }
}

/// A sender whose time-out is on trial (F-RTO) goes on when all that was outstanding is acknowledged: nothing else is on its way
/// whose acknowledgement could end the trial. Without SACK, before a queue that holds no packet of its size.
#[test]
fn a_trial_ends_with_the_recovery_that_it_was_part_of() {
    for seed in [28_780, 2] {
        let run = run(&format!(
            "seed = {seed}\nstop_after = '20min'\n\
             [[host]]\nname = 'a'\nprocessor = 'a'\n[[host]]\nname = 'b'\n[[node]]\nname = 'm'\n[[node]]\nname = 'n'\n\
             [processor.a]\nwrite = '2ms'\nread = {{ fixed = '3ms', per_byte = '20us' }}\ninterrupt = '4ms'\n\
             disturbance = {{ probability = '20%', mean = '5ms' }}\n\
             [[link]]\nbetween = ['a', 'm']\nrate = '300kbit/s'\nlimit = '1KiB'\n\
             [[link]]\nbetween = ['m', 'n']\nrate = '2Mbit/s'\ndiscipline = 'priority'\ndelay = '3ms'\nduplicate = '4%'\n\
             [[link]]\nbetween = ['n', 'b']\ndelay = '200us'\n\
             [[traffic]]\nname = 't0'\nkind = 'push'\nbytes = 9000\nrepeat = 2\nstore = '5ms'\nfrom = 'b'\nto = 'b'\n\
             via = ['n', 'm', 'n']\ntransport = {{ kind = 'tcp', profile = 'bsd-reno', mss = 200, window = 2000 }}\n\
             [[traffic]]\nname = 't1'\nkind = 'bulk'\nbytes = 30000\nwrite = 700\nrepeat = 2\nfrom = 'a'\nto = 'b'\ncount = 2\n\
             stagger = '7ms'\ntransport = {{ kind = 'tcp', congestion = 'bbr' }}\n\
             [[traffic]]\nname = 't2'\nkind = 'bulk'\nbytes = 30000\nwrite = 700\nrepeat = 2\nfrom = 'a'\nto = 'b'\n\
             transport = {{ kind = 'tcp', profile = 'linux', congestion = 'newreno', sack = false, timestamps = false }}\n"
        ));
        assert_eq!(run.traffic[2].delivered_bytes, 2 * 30_004, "{:?}", run.notes);
    }
}

/// How many writes return at once before the first that waits, and how long those wait that do. The first of all is not measured: it begins
/// the measurement.
fn writes(transport: &str, size: u32) -> (usize, Vec<Span>) {
    let run = run(&format!(
        "[[host]]\nname = 'a'\n[[host]]\nname = 'b'\n\
         [[link]]\nbetween = ['a', 'b']\nrate = '1Mbit/s'\ndelay = '20ms'\n\
         [[traffic]]\nname = 't'\nkind = 'timed-transfer'\nfrom = 'a'\nto = 'b'\n\
         sizes = [{size}]\nduration = '4s'\ntransport = {{ kind = 'tcp', {transport} }}\n"
    ));
    let took: Vec<Span> = run.traffic[0].samples.iter().map(|it| it.delay()).collect();
    let first = took.iter().position(|span| !span.is_zero()).expect("one waits");
    (first + 1, took.into_iter().filter(|span| !span.is_zero()).collect())
}

/// As in Linux: the send buffer takes twice the first window in packets of 2304 octets, thrice with BBR, and who found it full
/// sleeps until a third is free. (It took 20 segments, and writes waited one by one.)
#[test]
fn a_writer_sleeps_until_a_third_of_the_send_buffer_is_free() {
    for (control, buffer) in [("cubic", 46_080), ("bbr", 69_120)] {
        let (first, slept) = writes(&format!("congestion = '{control}'"), 1024);
        assert_eq!(first, buffer / 1024, "{control}");
        let third = Span::from_micros(buffer as u64 / 3 * 8);
        // While it sleeps for the first time the buffer grows; then it is as large or larger.
        let long = slept.iter().filter(|&&it| it >= third).count();
        assert!(slept.len() < 30 && long + 2 >= slept.len(), "{control}: {slept:?}");
    }
}

/// A system of 1993 has its buffer at once, and a writer goes on as soon as there is room.
#[test]
fn an_old_send_buffer_does_not_grow() {
    let (first, slept) = writes("profile = 'bsd-reno'", 1024);
    assert_eq!(first, 65_535 / 1024);
    assert!(slept.len() > 50 && slept.iter().all(|&it| it < Span::from_secs(1)), "{slept:?}");
}
