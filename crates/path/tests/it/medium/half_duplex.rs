//! Half duplex: turns in the order of asking.

use super::*;

/// At 8 Mbit/s a byte takes 1 µs. Three stations ask while the first sends 100 bytes.
#[test]
fn the_channel_goes_round_in_the_order_of_asking_and_rests_between_stations() {
    let spec = spec("half-duplex", "turnaround=5us", 8_000_000, Span::from_micros(10), "fifo");
    let mut trial = Trial::new(&spec, 1, &names(3));
    for (at, from, to, body) in [(0, 0, 1, 1), (0, 0, 2, 2), (1, 2, 0, 3), (2, 1, 0, 4)] {
        trial.offer(micros(at), from, to, 100, body);
    }
    trial.finish();
    let seen: Vec<(u64, u64)> =
        trial.heard.iter().map(|it| (it.packet.body, it.release.as_nanos() / 1000)).collect();
    // The first to 100; rest of 15; the third 115 to 215; the second 230 to 330; the first, which asked anew at 100,
    // 345 to 445; 10 more to hear each.
    assert_eq!(seen, [(1, 110), (3, 225), (4, 340), (2, 455)]);
}

#[test]
fn a_station_alone_goes_on_at_once() {
    let spec = spec("half-duplex", "turnaround=5us", 8_000_000, Span::from_micros(10), "fifo");
    let mut trial = Trial::new(&spec, 1, &names(2));
    (0..3).for_each(|body| trial.offer(Time::ZERO, 0, 1, 100, body));
    trial.finish();
    let times: Vec<u64> = trial.heard.iter().map(|it| it.release.as_nanos() / 1000).collect();
    assert_eq!(times, [110, 210, 310]);
}

/// Two stations that always have a frame share the channel by turns: of each turn F + d + t the frame takes F.
#[test]
fn saturated_stations_share_what_turnaround_leaves() {
    let spec = spec("half-duplex", "turnaround=50us", 10_000_000, Span::from_micros(30), "fifo");
    let mut trial = Trial::new(&spec, 1, &names(2));
    trial.saturate(2, 1250, micros(1_080_000 * 10));
    // 1 ms of bits and 80 us of rest: 10,000 turns in 10.8 s, of which each station has half.
    let of = |station| trial.heard.iter().filter(|it| it.from == StationId(station)).count();
    assert_eq!((of(0), of(1)), (5000, 5000));
}
