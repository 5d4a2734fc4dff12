//! NETBLT's name, keys and formula.

use super::habits::{Habits, RateLaw};
use super::host::Netblt;
use super::terms::{Limits, MEMORY};
use super::wire::{Burst, Dialect, Terms};
use crate::protocol::{Circumstances, Formula, ProtocolEntry, ProtocolKey};
use crate::protocol::{Shape, Takes, Unfit, Values};
use trunkline_core::Span;

/// NETBLT, by name `netblt`.
pub static NETBLT: ProtocolEntry = ProtocolEntry {
    name: "netblt",
    help: "Bulk transfer in buffers, paced by a rate and repaired by its receiver (RFC 998, RFC 1030); each message is a \
           transfer",
    keys: &[FRAME, PACKETS, OUTSTANDING, INTERVAL, BURST, RATE, VERSION, DEATH],
    build: |values| {
        whole(values, "interval", Span::from_millis(1), "milliseconds")?;
        whole(values, "death", Span::from_secs(1), "seconds")?;
        let (terms, habits) = (terms(values), habits(values)?);
        terms.narrowed(&Limits::default()).map_err(|why| {
            Unfit::new("packets", format!("{why}, {MEMORY} B: give fewer, or a smaller frame"))
        })?;
        Ok(Box::new(Netblt::new(terms, habits)))
    },
    connects_for_each: true,
    shape: |values| {
        let dialect = dialect(values);
        let header = dialect.data_header() as u32;
        let (unit, answer) = (values.number("frame").max(1) as u32, 12 + 16 + 8);
        // OPEN and RESPONSE without a text, and a CONTROL packet with the first GO.
        let opening = [if dialect.is_classic() { 40 } else { 36 }, 12 + 8];
        Shape { unit, header, answer, window: None, opening }
    },
    formula,
    restraints: super::restraints::of,
};

const FRAME: ProtocolKey = ProtocolKey {
    name: "frame",
    takes: Takes::Bytes(1, 65_000),
    default: Some("1440"),
    help: "User bytes of a data packet; 24 bytes of header come in front, 32 with versions 4 and 5",
};

const PACKETS: ProtocolKey = ProtocolKey {
    name: "packets",
    takes: Takes::Count(1, 65_536),
    default: Some("64"),
    help: "Data packets of a buffer",
};

const OUTSTANDING: ProtocolKey = ProtocolKey {
    name: "outstanding",
    takes: Takes::Count(1, 65_535),
    default: Some("512"),
    help: "Buffers under way at once",
};

const INTERVAL: ProtocolKey = ProtocolKey {
    name: "interval",
    takes: Takes::Time(Span::from_millis(1), Span::from_secs(65)),
    default: None,
    help: "From burst to burst, in whole milliseconds, as the receiver never changes it; if left out, the receiver finds the \
           rate",
};

const BURST: ProtocolKey = ProtocolKey {
    name: "burst",
    takes: Takes::Count(1, 65_535),
    default: None,
    help: "Data packets of a burst: 5 with interval; without it the most that an offer may name, 65535",
};

const RATE: ProtocolKey = ProtocolKey {
    name: "rate",
    takes: Takes::Rate,
    default: None,
    help: "The fastest that is sent, of user bytes, whatever the receiver offers",
};

const VERSION: ProtocolKey = ProtocolKey {
    name: "version",
    takes: Takes::Count(2, 5),
    default: None,
    help: "Layout of the packets: 2 for RFC 998, 4 or 5 for the later drafts; 2 with interval, else 5",
};

const DEATH: ProtocolKey = ProtocolKey {
    name: "death",
    takes: Takes::Time(Span::from_secs(10), Span::from_secs(65_535)),
    default: Some("600s"),
    help: "After how much silence the other end counts as dead",
};

/// The field of a packet that a time goes into counts in `unit`s.
fn whole(values: &Values, key: &'static str, unit: Span, units: &str) -> Result<(), Unfit> {
    match values.time(key) {
        Some(time) if !time.as_nanos().is_multiple_of(unit.as_nanos()) => {
            Err(Unfit::new(key, format!("give whole {units}")))
        }
        _ => Ok(()),
    }
}

fn dialect(values: &Values) -> Dialect {
    let version = match values.number("version") {
        0 if values.time("interval").is_some() => 2,
        0 => 5,
        given => given,
    };
    Dialect::of_version(version as u8).unwrap_or(Dialect::Classic)
}

pub(super) fn burst(values: &Values) -> Option<Burst> {
    let interval = values.time("interval")?.as_nanos() / 1_000_000;
    let size = if values.number("burst") == 0 { 5 } else { values.number("burst") };
    Some(Burst { size: size as u16, interval: interval as u16 })
}

fn terms(values: &Values) -> Terms {
    let most =
        if values.number("burst") == 0 { u64::from(u16::MAX) } else { values.number("burst") };
    let packet = values.number("frame").max(1);
    Terms {
        buffer: (packet * values.number("packets").max(1)) as u32,
        packet: packet as u16,
        burst: burst(values).unwrap_or(Burst { size: most as u16, interval: 1 }),
        death: values.time("death").map_or(600, |it| it.as_nanos() / 1_000_000_000) as u16,
        write: true,
        outstanding: values.number("outstanding").max(1) as u16,
        ..Terms::default()
    }
}

fn habits(values: &Values) -> Result<Habits, Unfit> {
    let rate = if burst(values).is_some() { RateLaw::Fixed } else { RateLaw::Adaptive };
    let cap = match values.rate("rate") {
        None => Burst { size: 1, interval: 0 },
        Some(rate) => {
            let packet = values.number("frame").max(1) * 8 * 1000;
            let size = (rate.bits_per_second() / 10).div_ceil(packet / 1000).clamp(1, 65_535);
            // Rounded up: no more is sent than that.
            let interval = (size * packet).div_ceil(rate.bits_per_second().max(1));
            let slow = "it is less than a packet in 65 s: give a higher one or a smaller packet";
            let interval = u16::try_from(interval).map_err(|_| Unfit::new("rate", slow))?;
            Burst { size: size as u16, interval: interval.max(1) }
        }
    };
    Ok(Habits { dialect: dialect(values), rate, cap })
}

/// The note if bursts are faster than the line by more than the round trip.
const AGAIN: &str = "bursts fill a queue that takes longer than a round trip: packets that wait in it are asked for, and sent again for nothing, which is left out; the rate is up to half lower, that of a short transfer more";

/// The pace of bursts, or the buffers that may be under way: each comes back after a round trip and the time that it
/// takes to send it.
fn formula(values: &Values, path: &Circumstances) -> Result<Formula, String> {
    let Some(burst) = burst(values) else {
        return Err("a rate that the receiver finds: give interval".into());
    };
    if path.loss > 0.0 || path.answer_loss > 0.0 {
        return Err("losses, which it repairs while it goes on".into());
    }
    if values.rate("rate").is_some() {
        return Err("a rate beside the interval".into());
    }
    let (t, c) = (path.spacing, path.answered.as_nanos() as f64);
    let (size, interval) = (f64::from(burst.size), f64::from(burst.interval) * 1e6);
    let packets = values.number("packets") as f64;
    let outstanding = values.number("outstanding") as f64;
    let pace = interval / size;
    // The last packet of a buffer starts in its last burst, behind those before it.
    let bursts = ((packets - 1.0) / size).floor();
    let sending = (bursts * interval.max(size * t)) + (packets - 1.0 - bursts * size) * t;
    let back = (sending + c) / (outstanding * packets);
    // What comes faster than it leaves stays in front of the slowest stage.
    let under_way = (outstanding * packets).min(path.units as f64);
    let together = size.max(under_way * (1.0 - pace / t)).min(under_way);
    // Timers cannot know that what waits so long comes yet.
    let waits = under_way * (1.0 - pace / t) * t > c;
    let assumes = waits.then_some(AGAIN);
    // If the buffers limit, so many of them go, at the pace of bursts if they are more than one, and then their answers are waited for.
    let window = outstanding * packets;
    let (group, within) = match back > pace.max(t) {
        true if window > size => (window, pace.max(t)),
        true => (window, t),
        // A burst that holds more than may be under way goes in so many parts, each behind the answer to the one before.
        false if window < size => (size, parts(path.units, (size, window), (back, t))),
        false => (size, t),
    };
    let numbers = format!("max({pace}, {t}, ({sending} + {c}) / ({outstanding} × {packets})) ns");
    Ok(Formula {
        interval: pace.max(t).max(back),
        together: together.ceil() as u64,
        burst: group as u64,
        within,
        // A write returns when all of it has come.
        ahead: 1,
        late: 0.0,
        assumes,
        text: "max(I / S, t, (T + C) / (B × n))",
        numbers,
        source: "RFC 998, §§4 and 5.2; RFC 1030, §5",
    })
}

/// From one unit to the next in the last burst of so many units in all, in the mean: bursts of `size` go in parts of `window`, whose
/// units are `t` apart, and which begin `window` times `back` apart.
fn parts(units: u64, (size, window): (f64, f64), (back, t): (f64, f64)) -> f64 {
    let last = match units {
        u64::MAX => size - 1.0,
        units => (units.saturating_sub(1) as f64) % size,
    };
    if last == 0.0 {
        return t;
    }
    let before = (last / window).floor() * window;
    let mean = (before * back.max(t) + (last - before) * t) / last;
    mean.max(t)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values(pairs: &str) -> Values {
        Values::parse("netblt", NETBLT.keys, pairs).unwrap()
    }

    #[test]
    fn times_that_packets_cannot_say_are_refused() {
        for pairs in ["interval=1900us", "interval=1.5ms", "death=10500ms"] {
            let told = (NETBLT.build)(&values(pairs)).unwrap_err();
            assert!(pairs.contains(told.key) && told.why.ends_with("seconds"), "{pairs}: {told}");
        }
        for pairs in ["interval=2ms", "interval=1s,death=11s", "death=2min"] {
            (NETBLT.build)(&values(pairs)).unwrap();
        }
    }

    /// A packet takes 10 ms on the line, and its buffer's answer 50 ms.
    #[test]
    fn a_queue_longer_than_a_round_trip_is_told() {
        let path = |units| Circumstances {
            spacing: 1e7,
            answered: trunkline_core::Span::from_millis(50),
            loss: 0.0,
            answer_loss: 0.0,
            units,
        };
        for (interval, units, is_told) in [(10, 1000, false), (5, 10, false), (5, 20, true)] {
            let pairs = format!("interval={interval}ms,burst=1");
            let found = formula(&values(&pairs), &path(units)).unwrap();
            assert_eq!(found.assumes.is_some(), is_told, "{pairs}, {units} units");
        }
    }

    #[test]
    fn a_cap_is_not_exceeded_and_nearly_reached() {
        for bits in [10_000_u64, 64_000, 1_000_000, 33_333_333, 1_000_000_000, 400_000_000_000] {
            for frame in [1_u32, 1440, 9000] {
                let pairs = format!("frame={frame},rate={bits}bit");
                let Ok(Habits { cap, .. }) = habits(&values(&pairs)) else { continue };
                let made = f64::from(cap.size) * f64::from(frame) * 8e3 / f64::from(cap.interval);
                let share = made / bits as f64;
                assert!(share <= 1.0, "{pairs}: {share}");
                assert!(share > 0.97 || cap.size == u16::MAX, "{pairs}: {share}");
            }
        }
    }
}
