//! How long a message takes: worked out by hand, to the nanosecond.

use crate::hosts::support::{COSTS, FREE, MESSAGE, only, pair, run, tenths, traffic};
use trunkline_core::{Cause, Span, Time};
use trunkline_measure::SenderState;

/// Out and back are the same: write 100 + 100, request 50, protocol 30 + 104, board 5 + 10.4, line 104
/// envelopes of 8, distance 5000, board 7 + 20.8, protocol 40 + 104, interrupt 70, the ECHO that the
/// processor has to do before it reads 10, read 200 + 200.
#[test]
fn a_message_costs_what_its_stations_cost() {
    let run = run(&pair(&format!("{COSTS}{MESSAGE}")));
    let one_way = 2000 + 500 + 1340 + 154 + 8320 + 50_000 + 278 + 1440 + 700 + 100 + 4000;
    assert_eq!(only(&run), tenths(2 * one_way));
    let sample = &run.traffic[0].samples[0];
    assert_eq!(sample.booked(Cause::Transmit), tenths(2 * 8320));
    assert_eq!(sample.booked(Cause::Propagate), tenths(2 * 50_000));
    assert_eq!(sample.booked(Cause::Queue), Span::ZERO);
    assert_eq!(sample.booked(Cause::Window), Span::ZERO);
    assert_eq!(run.traffic[0].packets.sent, 4, "a block and an ECHO each way");
    assert_eq!(run.traffic[0].delivered_bytes, 200);
}

/// In packets of 16 envelopes the board works while the rest is still on the line: after the last packet
/// (4 bytes and the trailer) it has only its 8 envelopes and the block left.
#[test]
fn the_board_works_while_packets_come() {
    let message = MESSAGE.replace("packet = 0", "packet = 16");
    let run = run(&pair(&format!("{COSTS}{message}")));
    let one_way = 2000 + 500 + 1340 + 154 + 8320 + 50_000 + (70 + 16) + 1440 + 700 + 100 + 4000;
    assert_eq!(only(&run), tenths(2 * one_way));
    assert_eq!(run.traffic[0].packets.sent, 2 * (7 + 1), "7 packets of a block, and an ECHO");
}

/// If the board runs the protocol, the host has neither the protocol's work nor the ECHO's; the board
/// sends the ECHO (3) before the reply.
#[test]
fn a_board_with_the_protocol_relieves_the_host() {
    let costs = COSTS.replace("[interface.board]", "[interface.board]\nprotocol = \"board\"");
    let run = run(&pair(&format!("{costs}{MESSAGE}")));
    let one_way = 2000 + 500 + 154 + 8320 + 50_000 + 278 + 700 + 4000;
    assert_eq!(only(&run), tenths(2 * one_way));
}

/// Programmed I/O: 2 us of the processor for each envelope that goes out or comes in, and for ECHOs too.
#[test]
fn programmed_io_costs_the_processor() {
    let costs = COSTS.replace("[interface.board]", "[interface.board]\nprogrammed = \"2us\"");
    let run = run(&pair(&format!("{costs}{MESSAGE}")));
    let one_way = 68_832 + 2 * 104 * 20 + 20;
    assert_eq!(only(&run), tenths(2 * one_way));
}

/// A datagram has no answer and no trailer: write, request, processor 30 + 100, board 5 + 10, line 800,
/// distance, board 7 + 20, processor 40 + 100, interrupt, read.
#[test]
fn a_datagram_costs_the_receiving_host_too() {
    let paced = "[[traffic]]\nname = \"d\"\nkind = \"paced\"\nfrom = \"a\"\nto = \"b\"\n\
                 size = 100\nrate = \"800bit/s\"\nduration = \"1500ms\"\n";
    let one_way = 2000 + 500 + 1300 + 150 + 8000 + 50_000 + 270 + 1400 + 700 + 4000;
    let first = run(&pair(&format!("{COSTS}{paced}")));
    let delays: Vec<Span> = first.traffic[0].samples.iter().map(|it| it.delay()).collect();
    assert_eq!(delays, [tenths(one_way); 2], "also the last, which arrives after its sender's end");
    assert_eq!(first.traffic[0].samples[1].start, Time::ZERO + Span::from_secs(1));
    let costs = COSTS.replace("[interface.board]", "[interface.board]\nprogrammed = \"2us\"");
    let programmed = run(&pair(&format!("{costs}{paced}")));
    let delay = programmed.traffic[0].samples[0].delay();
    assert_eq!(delay, tenths(one_way + 2 * 100 * 20));
}

/// Vande Water 1988 §3.7.2: 1024 bytes over a window of three blocks of 252 go in two rounds. The first
/// block (256 envelopes) is answered for after 2048 + 5000 + 8 + 5000 us, and the fourth leaves then; the
/// fifth has 16 bytes and leaves behind it. The answer waits for the ECHOs of both.
#[test]
fn a_window_cuts_a_message_into_rounds() {
    let message = MESSAGE
        .replace("[100]", "[1024]\nreply = 4")
        .replace("block = 256", "block = 252, outstanding = 3");
    let run = run(&pair(&format!("{FREE}{message}")));
    let round = 20_480 + 50_000 + 80 + 50_000;
    let second = 20_480 + 1600 + 50_000;
    let answer = 80 + 640 + 50_000;
    assert_eq!(only(&run), tenths(round + second + answer));
    let message = traffic(&run, "message");
    assert_eq!(message.rounds.get(&1024), Some(&vec![756, 268]));
    let window = message.sender[0][&SenderState::Window];
    assert_eq!(window, tenths(round + 20_480), "until the fifth block has its permit");
    let booked = message.samples[0].booked(Cause::Window);
    assert_eq!(booked, tenths(round + 20_480));
}

/// One end after the other: what a sample's time is booked to names every station in turn.
#[test]
fn a_message_names_its_stations() {
    let run = run(&pair(&format!("{COSTS}{MESSAGE}")));
    let steps = &run.traffic[0].samples[0].steps;
    let text: Vec<String> = steps
        .iter()
        .map(|step| format!("{} {:?} {}", run.places[step.place as usize], step.cause, step.span))
        .collect();
    let expected = [
        "a processor Host 1.1014ms",
        "a>b Transmit 832us",
        "a>b Propagate 5ms",
        "b processor Host 1.0512ms",
        "b>a Transmit 832us",
        "b>a Propagate 5ms",
    ];
    let total: u64 = steps.iter().map(|step| step.span.as_nanos()).sum();
    assert_eq!(total, only(&run).as_nanos());
    let places = |texts: &[String]| {
        texts.iter().map(|it| it.rsplit_once(' ').unwrap().0.to_string()).collect::<Vec<_>>()
    };
    assert_eq!(places(&text), places(&expected.map(String::from)));
}
