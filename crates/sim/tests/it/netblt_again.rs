//! NETBLT between hosts over a path that loses nothing: no packet goes twice, wherever in a buffer the first packets end.

use trunkline_scenario::Scenario;

/// Packets sent again, of all, by a message over a line that loses nothing, for each number of packets in a buffer.
fn again(
    version: u32,
    (rate, delay): (&str, &str),
    bytes: u32,
    packets: &[u32],
) -> Vec<(u64, u64)> {
    let kinds = packets
        .iter()
        .map(|it| format!("{{ kind = \"netblt\", version = {version}, packets = {it} }}"));
    let kinds = kinds.collect::<Vec<_>>().join(", ");
    let text = format!(
        "[[host]]\nname = \"a\"\n[[host]]\nname = \"b\"\n\
         [[link]]\nbetween = [\"a\", \"b\"]\nrate = \"{rate}\"\ndelay = \"{delay}\"\nlimit = \"100MB\"\n\
         [[traffic]]\nname = \"t\"\nkind = \"bulk\"\nbytes = {bytes}\nwrite = 1440\nfrom = \"a\"\nto = \"b\"\n\
         transport = [{kinds}]\n"
    );
    let runs = Scenario::parse(&text, "again.toml").unwrap();
    runs.iter()
        .map(|cell| {
            let run = trunkline_sim::run(cell).unwrap();
            let traffic = &run.traffic[0];
            assert_eq!(traffic.packets.dropped, 0);
            assert!(traffic.delivered_bytes >= u64::from(bytes), "{:?}", run.notes);
            (traffic.retransmissions, traffic.packets.sent)
        })
        .collect()
}

/// The sixteen packets with which a sender begins end in the middle of a buffer, and the rest of that comes a round trip later, or they wait in
/// front of a slow line. The receiver asked for what was not sent or on its way, the sender took that for losses, and up to 45 of 100 packets
/// went again.
#[test]
fn nothing_is_sent_again_over_a_path_that_loses_nothing() {
    let all: Vec<u32> = (2..=100).collect();
    for (line, sizes) in [
        (("100Mbit/s", "100ms"), [40_000, 300_000]),
        (("1Gbit/s", "25ms"), [100_000, 500_000]),
        (("20Mbit/s", "13ms"), [50_000, 300_000]),
        (("10Mbit/s", "300ms"), [30_000, 300_000]),
        (("1Mbit/s", "1ms"), [30_000, 300_000]),
        (("100kbit/s", "20ms"), [30_000, 100_000]),
        (("30kbit/s", "2ms"), [20_000, 100_000]),
        (("1Mbit/s", "1500ms"), [30_000, 100_000]),
    ] {
        for (version, bytes) in [4, 5].into_iter().zip(sizes) {
            let found = again(version, line, bytes, &all);
            let wrong: Vec<_> = all.iter().zip(&found).filter(|it| it.1.0 > 0).collect();
            assert!(wrong.is_empty(), "version {version}, {line:?}, {bytes} bytes: {wrong:?}");
        }
    }
}
