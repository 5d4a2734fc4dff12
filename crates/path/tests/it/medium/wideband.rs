//! The Wideband channel: the delay of a reservation, the room of a frame, fragments, and what an overload does.

use super::*;

/// Nanoseconds of a frame and of its control subframe, and of a reservation.
const FRAME: u64 = 21_220_000;
const CONTROL: u64 = 9_474_000;
const RESERVATION: u64 = 600_000_000;
/// Three quarters of two bits for each of 32768 symbols in 21.22 ms (RFC 1030 Appendix I), in whole bits a second.
const RATE: u64 = 2_316_305;
const HOP: Span = Span::from_millis(265);

fn wideband(keys: &str, queue: &str) -> MediumSpec {
    spec("wideband", keys, RATE, HOP, queue)
}

/// Nanoseconds that so many bytes take.
fn length(bytes: u64) -> u64 {
    (bytes * 8 * 1_000_000_000).div_ceil(RATE)
}

/// The start of the first frame from `at` on.
fn frame_from(at: u64) -> u64 {
    at.div_ceil(FRAME) * FRAME
}

/// A lone packet asks in the next frame, and goes in the first that begins 600 ms after.
#[test]
fn a_lone_packet_waits_for_its_reservation() {
    for at in [0, 1, 5_000_000, FRAME, FRAME + 1, 987_654_321] {
        let mut trial = Trial::new(&wideband("", "fifo"), 1, &names(3));
        trial.offer(Time::from_nanos(at), 0, 2, 1456, 7);
        trial.finish();
        let leaves = frame_from(frame_from(at) + RESERVATION) + CONTROL + length(1456);
        assert_eq!(departed(&trial.heard[0]).as_nanos(), leaves, "offered at {at}");
        assert_eq!(trial.heard[0].release.as_nanos(), leaves + HOP.as_nanos());
    }
}

/// There and back take 1.8 s (RFC 1030 §7), to a frame in each direction.
#[test]
fn a_round_trip_takes_what_was_measured() {
    let mut chance = Seed(5).stream("arrivals");
    let (mut sum, count) = (0, 500);
    for _ in 0..count {
        let start = Time::from_nanos(chance.below(1_000_000_000));
        let mut trial = Trial::new(&wideband("", "fifo"), 1, &names(2));
        trial.offer(start, 0, 1, 1456, 1);
        trial.finish();
        let there = trial.heard[0].release;
        trial.offer(there, 1, 0, 64, 2);
        trial.finish();
        sum += trial.heard[1].release.since(start).as_nanos();
    }
    let mean = sum as f64 / f64::from(count) / 1e9;
    assert!((mean - 1.8).abs() < 0.02122, "{mean}");
}

/// Two packets of 1500 bytes fit into a frame, and a third does not: 2 in 21.22 ms, exactly.
#[test]
fn a_saturated_channel_carries_what_fits_into_its_frames() {
    for (keys, size, in_frame) in [
        ("whole=1500", 1500, 2),
        ("whole=1500", 1504, 1),
        ("", 500, 2),
        ("datagrams=10", 500, 6),
        ("datagrams=5,usable=1999", 500, 3),
    ] {
        let mut trial = Trial::new(&wideband(keys, "fifo:limit=1000p"), 1, &names(3));
        for body in 0..600 {
            trial.offer(Time::ZERO, body % 3, (body + 1) % 3, size, body as u64);
        }
        trial.finish();
        let mut frames = std::collections::BTreeMap::new();
        for heard in &trial.heard {
            *frames.entry(departed(heard).as_nanos() / FRAME).or_insert(0) += 1;
        }
        let full = frames.values().filter(|&&count| count == in_frame).count();
        let frames = frames.len();
        assert_eq!(trial.heard.len(), 600);
        // The last frame has what is left.
        assert!(full + 1 >= frames && frames == 600usize.div_ceil(in_frame), "{keys}: {frames}");
    }
}

/// A packet of one byte more than a datagram becomes two datagrams, so that a frame carries one instead of two.
#[test]
fn a_fragmented_packet_takes_the_room_of_two() {
    let last = |size: u32| {
        let mut trial = Trial::new(&wideband("", "fifo:limit=1000p"), 1, &names(2));
        (0..28).for_each(|body| trial.offer(Time::ZERO, 0, 1, size, body));
        trial.finish();
        let first = departed(&trial.heard[0]).as_nanos() / FRAME;
        departed(trial.heard.last().unwrap()).as_nanos() / FRAME - first + 1
    };
    assert_eq!((last(1476), last(1477)), (14, 28));
}

/// The bits of a fragmented packet are its own and those of the headers that its fragments need.
#[test]
fn fragments_have_headers() {
    let mut trial = Trial::new(&wideband("datagrams=4", "fifo"), 1, &names(2));
    trial.offer(Time::ZERO, 0, 1, 2700, 1);
    trial.finish();
    let sent = trial.heard[0].packet.ledger.get(Cause::Transmit).as_nanos();
    assert_eq!(sent, length(1476) + length(2700 - 1476 + 20));
}

/// Stations that ask for more than there is get equal shares of all there is.
#[test]
fn an_overloaded_channel_is_shared() {
    let mut trial = Trial::new(&wideband("", "fifo:limit=60p"), 1, &names(2));
    let gap = FRAME / 2;
    for number in 0..4000u64 {
        for station in [0, 1] {
            let at = Time::from_nanos(number * gap);
            trial.offer(at, station, 1 - station, 1456, number * 2 + station as u64);
        }
    }
    trial.finish();
    let by = |station| trial.heard.iter().filter(|it| it.from == StationId(station)).count();
    let (one, other) = (by(0), by(1));
    let frames = 4000 / 2;
    // Each asks for the whole of it: half of their packets go while they ask, and 60 of each wait at the end.
    assert!((one + other).abs_diff(frames * 2 + 60) < 70, "{one} and {other}");
    assert!(one.abs_diff(other) * 20 < one, "{one} and {other}");
    assert_eq!(trial.dropped.len(), 8000 - one - other);
    assert!(trial.dropped.iter().all(|(.., cause)| *cause == DropCause::QueueLimit));
}

/// What has found no room within 600 ms is asked for again: the longest waits of a long queue are those of several
/// reservations, and the channel stays full meanwhile.
#[test]
fn an_overload_is_asked_for_again() {
    let mut trial = Trial::new(&wideband("", "fifo:limit=1000p"), 1, &names(2));
    (0..400).for_each(|body| trial.offer(Time::ZERO, 0, 1, 1456, body));
    trial.finish();
    let times: Vec<u64> = trial.heard.iter().map(|it| departed(it).as_nanos()).collect();
    // 28 frames begin within 600 ms; what has found no room in them waits for another round.
    let gaps: Vec<u64> = times.windows(2).map(|pair| pair[1] - pair[0]).collect();
    let pauses: Vec<u64> = gaps.iter().copied().filter(|&gap| gap > 2 * FRAME).collect();
    let rounds = 400usize.div_ceil(2 * 28);
    assert_eq!(pauses.len(), rounds - 1, "{pauses:?}");
    let of_a_round = RESERVATION..RESERVATION + 2 * FRAME;
    assert!(pauses.iter().all(|pause| of_a_round.contains(pause)), "{pauses:?}");
}

/// A place that would lapse before the next frame begins has had none to be used in, and holds for that one.
#[test]
fn a_reservation_shorter_than_a_frame_is_used_in_the_next() {
    for (reservation, in_frames) in [
        (1, [1, 1, 3, 3, 5, 5]),
        (10, [1, 1, 3, 3, 5, 5]),
        (11, [1, 1, 3, 3, 5, 5]),
        (22, [2, 2, 5, 5, 8, 8]),
    ] {
        let keys = format!("reservation={reservation}ms");
        let mut trial = Trial::new(&wideband(&keys, "fifo"), 1, &names(2));
        (0..6).for_each(|body| trial.offer(Time::ZERO, 0, 1, 1456, body));
        trial.run(Time::ZERO + Span::from_secs(60));
        let frames: Vec<u64> =
            trial.heard.iter().map(|it| departed(it).as_nanos() / FRAME).collect();
        assert_eq!(frames, in_frames, "{keys}");
    }
}

#[test]
fn what_does_not_fit_is_refused() {
    let wrong = |keys: &str| {
        let access = AccessSpec::read("wideband", keys).unwrap();
        MediumSpec { access, ..wideband("", "fifo") }.check().unwrap_err().to_string()
    };
    assert!(wrong("whole=3007").contains("larger than the 3006 usable bytes"));
    assert!(wrong("control=15ms").contains("longer than a frame of 21.22ms"));
    assert!(wrong("whole=20").contains("no room behind its header"));
}
