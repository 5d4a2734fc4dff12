//! Loss, copies, damage, disorder, and peers that do not answer.

use crate::hosts::support::{FREE, at, life, pair, run, traffic};
use trunkline_core::{Cause, Span, Time};
use trunkline_engine::{NoteKind, Run};

fn bulk(more: &str) -> String {
    let text = "[[traffic]]\nname = \"bulk\"\nkind = \"bulk\"\nfrom = \"a\"\nto = \"b\"\nbytes = \"20kB\"\n";
    let transport = if more.contains("transport") { "" } else { "transport = \"urp\"\n" };
    format!("{text}{transport}{more}\n")
}

/// `text` with settings added to its link.
fn with_link(text: &str, settings: &str) -> String {
    text.replace("delay = \"5ms\"", &format!("delay = \"5ms\"\n{settings}"))
}

fn faulty(settings: &str, traffic: &str) -> Run {
    run(&with_link(&pair(&format!("{FREE}{traffic}")), settings))
}

#[test]
fn lost_packets_are_sent_again_and_their_time_is_booked() {
    let run = faulty("loss = \"1%\"", &bulk("repeat = 5"));
    let bulk = traffic(&run, "bulk");
    assert_eq!((bulk.samples.len(), bulk.delivered_bytes), (5, 5 * 20_004));
    assert!(bulk.retransmissions > 0 && bulk.packets.dropped > 0);
    let on_links: u64 = run.links.iter().map(|link| link.counts.dropped()).sum();
    assert_eq!(bulk.packets.dropped, on_links);
    let recovering: Span = bulk.samples.iter().map(|it| it.booked(Cause::Recover)).sum();
    assert!(recovering > Span::ZERO);
    assert_eq!(run.notes, []);
}

/// Every packet comes twice: the second is known for what it is, and no sample has another's record.
#[test]
fn copies_change_nothing() {
    let messages = "[[traffic]]\nname = \"keys\"\nkind = \"interactive\"\nfrom = \"a\"\nto = \"b\"\n\
                    sizes = [1, 12]\nrepeat = 50\ntransport = \"urp\"\n";
    let run = faulty("duplicate = \"100%\"", messages);
    let keys = traffic(&run, "keys");
    assert_eq!((keys.samples.len(), keys.delivered_bytes), (100, 2 * 50 * 13));
    // The run ends with the last answer; its own ECHO may still be on the line then, not yet copied.
    assert!(keys.packets.sent - keys.packets.duplicated <= 1, "{:?}", keys.packets);
    assert_eq!(run.notes, []);
}

/// Where the packet that has a message's record is lost and a copy of it arrives, the time is still booked.
#[test]
fn what_a_copy_saves_is_booked() {
    let keys = "[[traffic]]\nname = \"keys\"\nkind = \"interactive\"\nfrom = \"a\"\nto = \"b\"\n\
                sizes = [1, 12, 40]\nrepeat = 300\ntransport = \"urp\"\n";
    let far = "[[host]]\nname = \"b\"\nprocessor = \"cpu\"\ninterface = \"board\"\n[[node]]\nname = \"n\"\n\
               [[link]]\nbetween = [\"n\", \"b\"]\nloss = \"5%\"\ndelay = \"1ms\"\n\
               reorder = \"5%:3ms\"\n";
    let text = with_link(&pair(&format!("{FREE}{keys}")), "duplicate = \"50%\"");
    let text =
        text.replace("[[host]]\nname = \"b\"\nprocessor = \"cpu\"\ninterface = \"board\"\n", far);
    let run = run(&text.replace("between = [\"a\", \"b\"]", "between = [\"a\", \"n\"]"));
    let keys = traffic(&run, "keys");
    assert!(keys.packets.duplicated > 0 && keys.packets.dropped > 0);
    assert!(keys.samples.len() > 800, "{}", keys.samples.len());
}

#[test]
fn datagrams_are_measured_once() {
    let paced = "[[traffic]]\nname = \"d\"\nkind = \"paced\"\nfrom = \"a\"\nto = \"b\"\nsize = 100\n\
                 rate = \"80kbit/s\"\nduration = \"10s\"\n";
    let run =
        faulty("loss = \"10%\"\nduplicate = \"10%\"\njitter = \"independent:uniform:4ms\"", paced);
    let datagrams = traffic(&run, "d");
    let counts = datagrams.packets;
    assert_eq!((counts.sent, counts.in_flight), (1000, 0), "all have come to their end");
    assert_eq!(datagrams.delivered_bytes, 100 * counts.delivered);
    let mut measured: Vec<u32> = datagrams.samples.iter().map(|sample| sample.index).collect();
    measured.sort_unstable();
    measured.dedup();
    assert_eq!(measured.len(), datagrams.samples.len(), "a copy is no measurement");
    assert!(measured.len() as u64 <= counts.delivered && measured.len() > 850);
}

/// Nothing comes back: 30 enquiries, a second apart, then the flow ends.
#[test]
fn a_peer_that_never_answers_is_given_up() {
    for backward in ["backward = { loss = \"100%\" }", "forward = { loss = \"100%\" }"] {
        let run = faulty(backward, &bulk("count = 2"));
        assert_eq!(
            run.notes.iter().map(ToString::to_string).collect::<Vec<_>>(),
            ["bulk: 2 of 2 flows gave up: no answer to any enquiry"]
        );
        assert_eq!(run.ended, at(Span::from_secs(31)));
        assert_eq!(life(traffic(&run, "bulk"), 0), life(traffic(&run, "bulk"), 1));
        assert!(traffic(&run, "bulk").samples.is_empty());
    }
}

/// The answer is what gets lost: the peer asks in vain, and the sender does not wait for ever.
#[test]
fn a_sender_does_not_wait_for_a_dead_peers_answer() {
    let keys = "[[traffic]]\nname = \"keys\"\nkind = \"interactive\"\nfrom = \"a\"\nto = \"b\"\nsizes = [1]\n\
                repeat = 9\nevery = \"1s\"\ntransport = \"urp\"\n";
    let settings = "backward = { schedule = \"2050ms loss=100%\" }";
    let run = faulty(settings, &format!("{keys}{}", bulk("start_after = \"keys\"")));
    assert_eq!(traffic(&run, "keys").samples.len(), 3);
    assert_eq!(run.notes.len(), 2, "{:?}", run.notes);
    assert!(run.notes[0].to_string().starts_with("keys: 1 of 1 flows gave up"));
}

/// The 10th edition's profile has a state without a way out (see `trunkline_transport::urp`): the run ends at
/// its latest end, and says so.
#[test]
fn a_stuck_channel_ends_with_the_run() {
    let mut stuck = 0;
    for seed in 0..4 {
        let settings = "loss = \"1%\"\nduplicate = \"50%\"";
        let profile =
            "transport = { kind = \"urp\", profile = \"v10\", block = 12, outstanding = 1 }";
        let text = format!("seed = {seed}\nstop_after = \"5min\"\n{}", pair(FREE));
        let run = run(&with_link(&format!("{text}{}", bulk(profile)), settings));
        if let Some(note) = run.notes.iter().find(|note| note.kind == NoteKind::Unfinished) {
            assert_eq!(note.to_string(), "bulk: not finished: the run ended at 300s");
            assert!(run.ended <= at(Span::from_secs(300)));
            stuck += 1;
        }
    }
    assert!(stuck > 0, "the state is not rare");
}

/// Nothing on the path takes time, and the workload asks for a second of it.
#[test]
fn a_run_in_which_no_time_passes_ends() {
    let text = "[[host]]\nname = \"a\"\n[[host]]\nname = \"b\"\n[[link]]\nbetween = [\"a\", \"b\"]\n\
                [[traffic]]\nname = \"echo\"\nkind = \"timed-echo\"\nfrom = \"a\"\nto = \"b\"\nsizes = [1]\n\
                duration = \"1s\"\ntransport = \"urp\"\n";
    let run = run(text);
    assert_eq!(run.ended, Time::ZERO);
    // There may be a word on the samples beside, if there are more than are kept.
    assert!(run.notes.iter().any(|note| note.text.contains("no time passes")), "{:?}", run.notes);
}

/// However many packets take no time, time passes between them.
#[test]
fn many_packets_that_take_no_time_are_no_standstill() {
    let text = "[[host]]\nname = 'a'\n[[host]]\nname = 'b'\n[[link]]\nbetween = ['a', 'b']\n[[traffic]]\n\
                name = 't'\nkind = 'interactive'\nfrom = 'a'\nto = 'b'\nsizes = [1]\nrepeat = 110000\n\
                every = '1us'\ntransport = 'urp'\n";
    let run = run(text);
    assert!(run.ended > Time::ZERO + Span::from_millis(109));
    assert!(run.notes.iter().all(|it| it.kind != NoteKind::Unfinished), "{:?}", run.notes);
}

/// No bits have a time where there is no rate, a token's neither, and no station of this ring delays them.
#[test]
fn a_token_takes_no_time_on_a_ring_without_a_rate() {
    let ring = |latency: &str| {
        format!(
            "[[host]]\nname = 'a'\n[[host]]\nname = 'b'\n[[medium]]\nname = 'm'\nkind = 'token-ring'\n\
             stations = ['a', 'b']\nstation_latency = '{latency}'\n\
             [[traffic]]\nname = 'echo'\nkind = 'timed-echo'\nfrom = 'a'\nto = 'b'\nsizes = [1]\n\
             duration = '1ms'\ntransport = 'urp'\n"
        )
    };
    let still = run(&ring("0ns"));
    assert_eq!(still.ended, Time::ZERO);
    // A message, its answer, and the token's way on before each answer.
    let moving = run(&ring("250ns"));
    let late = &traffic(&moving, "echo").samples[100];
    assert_eq!(late.end - late.start, Span::from_nanos(1500));
}

/// A thousand flows that fill their buffers octet by octet make more than a million writes before time passes.
#[test]
fn many_writes_at_one_instant_are_no_standstill() {
    let text = "[[host]]\nname = 'a'\n[[host]]\nname = 'b'\n[[link]]\nbetween = ['a', 'b']\n\
                rate = '100Mbit/s'\ndelay = '10ms'\n[[traffic]]\nname = 't'\nkind = 'greedy'\nfrom = 'a'\n\
                to = 'b'\ncount = 1000\nwrite = 1\nduration = '20ms'\nwarm_up = '5ms'\ninterval = '5ms'\n\
                transport = 'selective-repeat'\n";
    let run = run(text);
    let unfinished = run.notes.iter().find(|note| note.kind == NoteKind::Unfinished);
    assert_eq!(unfinished, None);
}

/// Packets that overtake each other are outside what URP is made for. What it then delivers is noticed.
#[test]
fn disorder_is_noticed() {
    let run = faulty("jitter = \"independent:uniform:5ms\"", &bulk(""));
    let bulk = traffic(&run, "bulk");
    let deceived = run.failures().any(|it| it.contains("'bulk'") && it.contains("wrong data"));
    assert!(deceived || bulk.retransmissions > 0);
}

/// Losses, copies and disorder deceive URP; what has a line of its own is not blamed for it.
#[test]
fn what_is_deceived_is_named_alone() {
    let transport = "transport = { kind = \"urp\", block = 256, outstanding = 7, packet = 0 }";
    let two = |name: &str, [from, to]: [&str; 2], line: &str| {
        format!(
            "[[host]]\nname = \"{from}\"\n[[host]]\nname = \"{to}\"\n[[link]]\nbetween = [\"{from}\", \"{to}\"]\n\
             rate = \"1Mbit/s\"\ndelay = \"40ms\"\n{line}[[traffic]]\nname = \"{name}\"\nkind = \"bulk\"\n\
             from = \"{from}\"\nto = \"{to}\"\nbytes = \"50kB\"\n{transport}\n"
        )
    };
    let bad = "jitter = \"independent:uniform:30ms\"\nduplicate = \"20%\"\nloss = \"10%\"\n";
    let run = run(&(two("bad", ["a", "b"], bad) + &two("calm", ["c", "d"], "")));
    let failures: Vec<String> = run.failures().collect();
    assert!(failures.len() == 1 && failures[0].contains("'bad' failed"), "{failures:?}");
    assert!(failures[0].contains("wrong data"), "{failures:?}");
}
