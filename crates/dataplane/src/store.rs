//! The memory that a path needs for the frames under way, computed before the first frame.

use crate::DataplaneError;
use trunkline_core::Span;
use trunkline_path::LinkSpec;
use trunkline_scenario::{Direction, PathSpec};

/// The cost of a packet beside its bytes: its place in a queue or delay line.
const BOOKKEEPING: u64 = 160;
/// The smallest network-layer packet that Ethernet carries.
const SMALLEST: u64 = 46;
/// Slot rounding, in percent of the bytes, for frames near a slot's size.
const ROUNDING: u64 = 115;
/// More packets than this in a second no backend here delivers (dataplane reference: 1.2 million).
const MOST_PER_SECOND: u64 = 2_000_000;
/// The part of the available memory that stores may take, in percent.
const SHARE: u64 = 80;
/// The arena reserved beyond the need, for live changes: memory that is not written costs nothing.
const RESERVE: u64 = 1 << 30;
/// Frames between ring and link, and other small change.
const BASE: u64 = 16 << 20;

/// The bytes that one direction needs at worst: its queue full, and its line full of the smallest
/// packets that the machine could deliver. `None` for the in-flight part if the rate is unlimited.
fn need(link: &LinkSpec, mtu: u32) -> (u64, Option<u64>) {
    let queue = expand(link.discipline.limit().most_bytes(mtu), u64::MAX);
    let held = link.delay + link.impairments.most_extra_delay();
    let packets = packets_in(held);
    (queue, link.in_flight_bytes().map(|bytes| expand(bytes, packets)))
}

fn packets_in(span: Span) -> u64 {
    (u128::from(span.as_nanos()) * u128::from(MOST_PER_SECOND)).div_ceil(1_000_000_000) as u64
}

fn expand(bytes: u64, most_packets: u64) -> u64 {
    let packets = (bytes / SMALLEST).min(most_packets);
    (bytes.saturating_mul(ROUNDING) / 100).saturating_add(packets.saturating_mul(BOOKKEEPING))
}

/// The size of the arena for all `paths`, at least what they need and with room for live changes.
///
/// # Errors
/// [`DataplaneError::Memory`] if `available` bytes of memory do not suffice.
pub fn arena_for<'a>(
    paths: impl Iterator<Item = &'a PathSpec>,
    available: u64,
) -> Result<u64, DataplaneError> {
    let share = available / 100 * SHARE;
    let required = required(paths);
    if required > share {
        return Err(DataplaneError::Memory { needed: required, available: share });
    }
    Ok(required.saturating_add(RESERVE).min(share))
}

/// The bytes that `paths` need, as far as their rates tell. A queue of a path with an unlimited rate
/// never fills, so that only its in-flight store counts, at what the machine could deliver in full
/// packets, up to the reserve.
pub fn required<'a>(paths: impl Iterator<Item = &'a PathSpec>) -> u64 {
    let directions = paths.flat_map(|path| {
        Direction::BOTH.map(|direction| {
            let (queue, in_flight) = need(path.link(direction), path.mtu);
            match in_flight {
                Some(in_flight) if path.link(direction).rate.is_some() => {
                    queue.saturating_add(in_flight)
                }
                Some(in_flight) => in_flight,
                None => RESERVE / 8,
            }
        })
    });
    directions.fold(BASE, u64::saturating_add)
}

#[cfg(test)]
mod tests {
    use super::*;
    use trunkline_scenario::Settings;

    fn arena_for(paths: &[PathSpec], available: u64) -> Result<u64, DataplaneError> {
        super::arena_for(paths.iter(), available)
    }

    fn required(paths: &[PathSpec]) -> u64 {
        super::required(paths.iter())
    }

    fn path(pairs: &[&str]) -> PathSpec {
        let mut settings = Settings::default();
        pairs.iter().for_each(|pair| settings.add_pair(pair).unwrap());
        settings.resolve().unwrap()
    }

    #[test]
    fn what_does_not_fit_is_refused_with_the_number() {
        let fast = [path(&["rate=1000gbit", "delay=10s"])];
        match arena_for(&fast, 16 << 30) {
            Err(DataplaneError::Memory { needed, available }) => {
                assert!(needed > 2 * 1_250_000_000_000 && available < 16 << 30);
            }
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_queue_without_end_does_not_fit() {
        let endless = path(&["rate=1mbit", "limit=9223372036854775807", "delay=1s"]);
        assert_eq!(required(&[endless]), u64::MAX);
    }

    #[test]
    fn ordinary_paths_fit() {
        for pairs in [
            &["rate=155.52mbit", "framing=atm-aal5", "delay=500ms"][..],
            &["rate=1gbit", "delay=300ms"],
            &["delay=10s"],
            &["rate=56kbit"],
            &[],
        ] {
            let paths = [path(pairs)];
            let arena = arena_for(&paths, 8 << 30).unwrap();
            assert!(arena >= required(&paths));
        }
    }

    #[test]
    fn an_unlimited_path_needs_what_a_machine_could_deliver_for_a_moment() {
        assert_eq!(required(&[path(&[])]), 16 << 20, "nothing is under way");
        let paths = [path(&["delay=1s"])];
        let needed = (16 << 20) + 2 * (128 << 20);
        assert_eq!(required(&paths), needed);
        // A reserve for changes, as far as four fifths of the memory go.
        assert_eq!(arena_for(&paths, 8_000_000_000).unwrap(), needed + (1 << 30));
        assert_eq!(arena_for(&paths, 400_000_000).unwrap(), 320_000_000);
        assert!(arena_for(&paths, needed / 80 * 100 + 200).is_ok());
        assert!(arena_for(&paths, needed / 80 * 100 - 200).is_err());
    }

    #[test]
    fn a_queue_is_held_in_the_smallest_packets_and_the_line_in_what_the_machine_delivers() {
        let with = |limit: &str, delay: &str| required(&[path(&["rate=8mbit", limit, delay])]);
        // Both ways, 15 % more than the bytes, and 160 for each packet of 46.
        let queue = |bytes: u64| 2 * (bytes * 115 / 100 + bytes / 46 * 160);
        let more = with("limit=200kB", "delay=1s") - with("limit=100kB", "delay=1s");
        assert_eq!(more, queue(200_000) - queue(100_000));
        let more = with("limit=100kB", "delay=3s") - with("limit=100kB", "delay=1s");
        assert!(more.abs_diff(queue(2_000_000)) < 2_000, "{more}");
        // 40 Gbit/s of smallest packets nobody delivers: two million in a second are counted.
        let fast = |delay: &str| required(&[path(&["rate=40gbit", "limit=100kB", delay])]);
        let more = fast("delay=200ms") - fast("delay=100ms");
        assert!(more.abs_diff(2 * (500_000_000 * 115 / 100 + 200_000 * 160)) < 2_000, "{more}");
    }

    #[test]
    fn the_need_covers_the_bandwidth_delay_product_in_full_packets() {
        let paths = [path(&["rate=1gbit", "delay=1s"])];
        assert!(required(&paths) > 2 * 125_000_000);
    }
}
