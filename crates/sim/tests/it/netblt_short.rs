//! NETBLT between hosts before queues of a few packets.

use trunkline_scenario::Scenario;

/// Two flows of short messages before a queue of two packets come to their end. Receivers allowed all buffers at once, eleven packets,
/// and asked for ten minutes if their senders had gone; what a third end sent every 2 s met what they did (a third was lost).
#[test]
fn ends_before_a_short_queue_do_not_keep_in_step() {
    for (stagger, limit, frame) in
        [(10, 1024, 380), (11, 1024, 380), (10, 2048, 380), (10, 1024, 300), (0, 900, 380)]
    {
        let text = format!(
            "stop_after = \"20min\"\n[[node]]\nname = \"m\"\n[[host]]\nname = \"a\"\n[[host]]\nname = \"b\"\n\
             interface = \"b\"\n[interface.b]\nprotocol = \"board\"\nrequests = 1\n\
             receive_block = {{ per_byte = \"9us\" }}\n\
             [[link]]\nbetween = [\"a\", \"m\"]\nrate = \"300kbit/s\"\nlimit = \"{limit}B\"\n\
             [[link]]\nbetween = [\"m\", \"b\"]\nrate = \"8Mbit/s\"\nframing = \"datakit\"\n\
             [[traffic]]\nname = \"t\"\nkind = \"interactive\"\nsizes = [1, 300]\nrepeat = 4\nreply = 4\n\
             from = \"a\"\nto = \"b\"\ncount = 2\nstagger = \"{stagger}ms\"\n\
             transport = {{ kind = \"netblt\", frame = {frame} }}\n"
        );
        let cells = Scenario::parse(&text, "short.toml").unwrap();
        let run = trunkline_sim::run(&cells[0]).unwrap();
        let traffic = &run.traffic[0];
        let what = format!("{stagger} ms, {limit} B, {frame} B: {:?}", traffic.packets);
        assert_eq!(traffic.delivered_bytes, 2 * 4 * (1 + 4 + 300 + 4), "{what}, {:?}", run.notes);
        assert!(traffic.packets.dropped * 20 <= traffic.packets.sent, "{what}");
    }
}

/// The packets sent again for each of a message's, and the time that it takes, over a line with a queue of `limit`.
fn costs(version: u32, rate: &str, delay: &str, limit: &str, bytes: u32) -> (f64, f64) {
    let text = format!(
        "[[host]]\nname = \"a\"\n[[host]]\nname = \"b\"\n\
         [[link]]\nbetween = [\"a\", \"b\"]\nrate = \"{rate}\"\ndelay = \"{delay}\"\nlimit = \"{limit}\"\n\
         [[traffic]]\nname = \"t\"\nkind = \"bulk\"\nbytes = {bytes}\nfrom = \"a\"\nto = \"b\"\n\
         transport = {{ kind = \"netblt\", version = {version} }}\n"
    );
    let cells = Scenario::parse(&text, "short.toml").unwrap();
    let run = trunkline_sim::run(&cells[0]).unwrap();
    let traffic = &run.traffic[0];
    assert!(traffic.delivered_bytes >= u64::from(bytes), "{:?}", run.notes);
    let again = traffic.retransmissions as f64 / f64::from(bytes.div_ceil(1440));
    (again, run.ended.since(trunkline_core::Time::ZERO).as_secs_f64())
}

/// A train overflows a queue of two packets, and until something was offered sixteen more went in each round trip, whatever the line carries:
/// of 33 kB over 53 kbit/s half of all packets and more were lost, and it took 58 s for 5, or 232 with packets of RFC 998.
#[test]
fn a_short_message_over_a_slow_line_does_not_flood_it() {
    for (version, most) in [(2, 40.0), (4, 12.0), (5, 12.0)] {
        let (again, seconds) = costs(version, "53kbit/s", "100ms", "3kB", 33_000);
        assert!(again <= 2.5 && seconds <= most, "version {version}: {again:.2}, {seconds:.1} s");
    }
}
