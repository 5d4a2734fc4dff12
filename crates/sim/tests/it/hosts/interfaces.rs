//! Boards: requests, receive buffers, memory, one direction at a time.

use crate::hosts::support::{COSTS, FREE, MESSAGE, life, only, pair, run, spent, tenths, traffic};
use trunkline_core::{Cause, Span};
use trunkline_measure::SenderState;

/// A message in requests of 1024 bytes, each one block of 1028 envelopes; the answer has 8.
fn requests(bytes: u32, limit: &str) -> Span {
    let board =
        format!("[processor.cpu]\n[interface.board]\nsplit = [{{ piece = 1024 }}]\n{limit}");
    let message = MESSAGE
        .replace("[100]", &format!("[{bytes}]\nreply = 4"))
        .replace("block = 256", "block = 1024, outstanding = 7");
    only(&run(&pair(&format!("{board}{message}"))))
}

const BLOCK: u64 = 82_240;
const WAY: u64 = 50_000;
const ECHO: u64 = 80;
const ANSWER: u64 = ECHO + 640 + WAY;

/// Hawley 1989 §4.2.2: the KMC takes the next stream block when the last one is answered for.
#[test]
fn one_request_at_a_time() {
    let two = 2 * (BLOCK + WAY) + ECHO + WAY + ANSWER;
    assert_eq!(requests(2048, "requests = 1\n"), tenths(two));
    assert_eq!(requests(2048, ""), tenths(2 * BLOCK + WAY + ANSWER));
}

/// With two, the third goes when the first is answered for, not when both are.
#[test]
fn each_request_is_released_by_its_own_answer() {
    assert_eq!(requests(2048, "requests = 2\n"), tenths(2 * BLOCK + WAY + ANSWER));
    let third = BLOCK + WAY + ECHO + WAY;
    assert_eq!(requests(3072, "requests = 2\n"), tenths(third + BLOCK + WAY + ANSWER));
    let fourth = 2 * BLOCK + WAY + ECHO + WAY;
    assert!(third + BLOCK < fourth + BLOCK);
    assert_eq!(requests(4096, "requests = 2\n"), tenths(third.max(fourth) + BLOCK + WAY + ANSWER));
}

/// The release of a request costs an interrupt, of each one its own.
#[test]
fn a_release_is_an_interrupt() {
    let costs = "[processor.cpu]\ninterrupt = \"1ms\"\n[interface.board]\nrequests = 1\n\
                 split = [{ piece = 1024 }]\n";
    let message = MESSAGE
        .replace("[100]", "[2048]\nreply = 4")
        .replace("block = 256", "block = 1024, outstanding = 7");
    let run = run(&pair(&format!("{costs}{message}")));
    // At b the ECHO goes before the interrupt of the buffer. At a the interrupt that releases the second
    // request is over when the answer comes.
    let first = BLOCK + WAY + ECHO + WAY + 10_000;
    let second = BLOCK + WAY + 10_000 + (ANSWER - ECHO) + 10_000;
    assert_eq!(only(&run), tenths(first + second));
    let sender = traffic(&run, "message");
    let waited = spent(sender, 0, SenderState::Request);
    assert!(waited > tenths(WAY) && waited < tenths(first), "{waited}");
    assert_eq!(life(sender, 0), only(&run));
}

/// Three blocks of 104 envelopes and an interrupt of 1 ms, slower than the line.
fn buffers(board: &str) -> Span {
    let costs = format!(
        "[processor.cpu]\n[processor.slow]\ninterrupt = \"1ms\"\n[interface.board]\n{board}\n"
    );
    let message =
        MESSAGE.replace("[100]", "[300]\nreply = 4").replace("block = 256", "block = 100");
    let text = pair(&format!("{costs}{message}"));
    let slow = "name = \"b\"\nprocessor = \"slow\"";
    only(&run(&text.replace("name = \"b\"\nprocessor = \"cpu\"", slow)))
}

#[test]
fn a_receive_buffer_comes_with_each_block_or_with_the_message() {
    // The ECHO of the last block has gone before its interrupt, and so long before the answer.
    let answer = ANSWER - ECHO;
    let each = 8320 + WAY + 3 * 10_000;
    assert_eq!(buffers("receive_buffer = 1024"), tenths(each + answer));
    let once = 3 * 8320 + WAY + 10_000;
    assert_eq!(buffers("receive_buffer = 1024\nreturns = \"message\""), tenths(once + answer));
}

/// A buffer of 64 bytes cuts each block of 100 into two, with an interrupt each.
#[test]
fn small_receive_buffers_cut_blocks() {
    let each = 8320 + WAY + 6 * 10_000;
    assert_eq!(buffers("receive_buffer = 64"), tenths(each + 640 + WAY));
    let gathered = 8320 + WAY;
    let slowest = tenths(gathered + 6 * 10_000 + 640 + WAY);
    assert!(buffers("receive_buffer = 64\nreturns = \"message\"") < slowest);
}

/// A buffer that no message ends comes after 50 ms: a transfer of 400 bytes that stops in the middle of its
/// message because its window is one block, whose ECHO waits for the reader.
#[test]
fn a_buffer_that_waits_comes_after_50_ms() {
    let board = "[processor.cpu]\n[interface.board]\nreceive_buffer = 1024\n\
                 returns = \"message\"\necho = \"consumption\"\n";
    let message = MESSAGE
        .replace("[100]", "[400]\nreply = 4")
        .replace("block = 256", "block = 200, outstanding = 1");
    let run = run(&pair(&format!("{board}{message}")));
    let first = 204 * 80 + WAY + 500_000 + ECHO + WAY;
    let second = 204 * 80 + WAY;
    assert_eq!(only(&run), tenths(first + second + ANSWER));
}

/// The host posts the next buffer when it has taken the last one; what finds none is not echoed.
#[test]
fn without_a_posted_buffer_there_is_no_echo() {
    let delay = |echo: &str| {
        let board = format!(
            "[processor.cpu]\ninterrupt = \"30ms\"\n[interface.board]\nprotocol = \"board\"\n\
             receive_buffer = 1024\necho = \"{echo}\"\n"
        );
        let message = MESSAGE
            .replace("[100]", "[300]\nreply = 4")
            .replace("block = 256", "block = 100, outstanding = 1");
        only(&run(&pair(&format!("{board}{message}"))))
    };
    let (block, interrupt) = (8320, 300_000);
    // Each block after the last one's ECHO: the first at once, the second at the first's interrupt.
    let round = block + WAY + ECHO + WAY;
    let third = round + (block + WAY + interrupt).max(round + block + WAY) - block - WAY;
    let posted = delay("posted");
    assert!(posted > tenths(third) && posted >= delay("arrival"));
    let consumption = 3 * (block + WAY + interrupt) + 2 * (ECHO + WAY) + ANSWER + interrupt;
    assert_eq!(delay("consumption"), tenths(consumption));
    assert!(delay("consumption") > posted);
}

/// Echo::Consumption with a reader that stores for 20 ms each KB: the sender goes no faster than it reads,
/// and never is more under way than the window.
#[test]
fn a_slow_reader_closes_the_window() {
    let board = "[processor.cpu]\n[interface.board]\necho = \"consumption\"\nmemory = 900\n";
    let push = "[[traffic]]\nname = \"push\"\nkind = \"push\"\nfrom = \"a\"\nto = \"b\"\n\
                bytes = \"20KiB\"\nwrite = 1024\nstore = \"20ms\"\n\
                transport = { kind = \"urp\", block = 256, outstanding = 3, timeout = \"10s\" }\n";
    let run = run(&pair(&format!("{board}{push}")));
    let delay = only(&run);
    let (stored, line) = (Span::from_millis(20 * 20), tenths(80 * 260 * 80));
    assert!(delay > stored && delay < stored + line + Span::from_millis(20 * 20), "{delay}");
    assert_eq!(run.notes, [], "780 envelopes of three blocks always fit");
    assert_eq!(run.traffic[0].retransmissions, 0);
    assert!(spent(&run.traffic[0], 0, SenderState::Window) > stored.scaled(1, 2));
}

/// What finds the memory full is lost, counted, and sent again.
#[test]
fn a_full_memory_loses_and_the_protocol_recovers() {
    let board = "[processor.cpu]\ninterrupt = \"20ms\"\n[interface.board]\nmemory = 300\n";
    let message = MESSAGE
        .replace("[100]", "[1000]\nreply = 4\nrepeat = 3")
        .replace("block = 256", "block = 100, outstanding = 7");
    let run = run(&pair(&format!("{board}{message}")));
    let message = traffic(&run, "message");
    assert_eq!((message.samples.len(), message.delivered_bytes), (3, 3 * 1004));
    assert!(message.retransmissions > 0 && message.packets.dropped > 0);
    let on_links: u64 = run.links.iter().map(|link| link.counts.dropped()).sum();
    let note = format!("b: {} packets lost", message.packets.dropped);
    assert!(on_links == 0 && run.notes[0].to_string().starts_with(&note), "{:?}", run.notes);
    assert!(message.samples.iter().all(|sample| sample.booked(Cause::Recover) > Span::ZERO));
}

/// One host sends to itself by way of a node: two blocks of 1 ms each out and in. With one processor for
/// both directions the second block goes out before the first is taken in.
#[test]
fn half_duplex_boards_take_turns() {
    let delay = |half_duplex: &str| {
        let text = format!(
            "[[host]]\nname = \"a\"\ninterface = \"board\"\n[[node]]\nname = \"n\"\n\
             [[link]]\nbetween = [\"a\", \"n\"]\n[interface.board]\nprotocol = \"board\"\n\
             send_block = \"1ms\"\nreceive_block = \"1ms\"\n{half_duplex}\n{}",
            MESSAGE
                .replace("to = \"b\"", "to = \"a\"\nvia = [\"n\"]")
                .replace("[100]", "[200]\nreply = 4")
                .replace("block = 256", "block = 100")
        );
        only(&run(&text))
    };
    assert_eq!(delay(""), Span::from_millis(5));
    assert_eq!(delay("half_duplex = true"), Span::from_millis(6));
}

/// Hawley 1989 §4.2.1: 511 bytes go in 8 requests, one after the other, 512 in one.
#[test]
fn a_split_makes_rounds() {
    let board = "[processor.cpu]\n[interface.board]\nrequests = 1\n\
                 split = [{ below = 512, piece = 64 }, { piece = 1024 }]\n";
    let message = MESSAGE.replace("[100]", "[511, 512]\nreply = 4");
    let run = run(&pair(&format!("{board}{message}")));
    let rounds = &traffic(&run, "message").rounds;
    assert_eq!(rounds[&511], [64, 64, 64, 64, 64, 64, 64, 63]);
    assert_eq!(rounds[&512], [512]);
}

/// Free hosts and costs that are all zero are the same.
#[test]
fn ideal_hosts_cost_nothing() {
    let free = only(&run(&pair(&format!("{FREE}{MESSAGE}"))));
    assert_eq!(free, tenths(2 * (8320 + WAY) + ECHO));
    assert!(free < only(&run(&pair(&format!("{COSTS}{MESSAGE}")))));
}

/// A datagram comes every millisecond, and every four the board sends one of its own from 0.2 ms after on: it is deaf for
/// 0.3 ms, in which none comes, or for 1 ms, in which one does, or for as long behind.
#[test]
fn a_deaf_board_loses_what_comes_while_it_sends() {
    let lost = |keys: &str| {
        let text = format!(
            "[[host]]\nname = \"a\"\n[[host]]\nname = \"b\"\ninterface = \"board\"\n[[link]]\nbetween = [\"a\", \"b\"]\n\
             [interface.board]\n{keys}\n\
             [[traffic]]\nname = \"in\"\nkind = \"paced\"\nfrom = \"a\"\nto = \"b\"\nsize = 125\nrate = \"1Mbit/s\"\nduration = \"4s\"\n\
             [[traffic]]\nname = \"out\"\nkind = \"paced\"\nfrom = \"b\"\nto = \"a\"\nsize = 125\nrate = \"250kbit/s\"\nduration = \"4s\"\nstart = \"200us\"\n"
        );
        let run = run(&text);
        assert_eq!(trunkline_engine::check(&run), []);
        run.traffic.iter().map(|traffic| traffic.packets.dropped).collect::<Vec<_>>()
    };
    assert_eq!(lost("send_block = \"1ms\""), [0, 0]);
    assert_eq!(lost("send_block = \"300us\"\ndeaf = \"0s\""), [0, 0]);
    assert_eq!(lost("send_block = \"1ms\"\ndeaf = \"0s\""), [1000, 0]);
    assert_eq!(lost("send_block = \"300us\"\ndeaf = \"1500us\""), [1000, 0]);
    assert_eq!(lost("send_block = \"300us\"\ndeaf = \"2us\""), [0, 0]);
}
