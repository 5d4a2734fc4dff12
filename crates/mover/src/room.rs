//! How many buffers are let come, so that few of them wait for the disk.
//!
//! What waits for the disk when a receiver is killed has to be sent again. A disk that is slower than the path would be given all that
//! there is memory for: of a transfer of many small files nearly all of it. So the path gets as much room as a fast one needs for a round
//! trip, more when nothing waits, and less while many buffers wait. In between it is left as it is: what is let come now comes a round trip
//! later, and room that always became more or less would leave the disk idle and overload it in turn.

use trunkline_core::Span;

/// Octets that are let come at once whatever the path, and for each second of a round trip (choices: what 160 Mbit/s bring in three
/// round trips, since what is asked for again keeps its room meanwhile).
const LEAST: u64 = 2 << 20;
const FOR_SECOND: u64 = 60_000_000;
/// Buffers that may wait for the disk without a sign that it is slower (a choice).
const FEW: u64 = 8;

/// The room for buffers.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Room {
    /// Buffers more that there is memory for.
    kept: u64,
}

impl Room {
    /// Of memory for `most` buffers of so many octets, of which some are let come `already`: how many are let come at first over a
    /// path of this round trip, and the rest.
    pub fn first(most: u64, buffer: u64, round: Span, already: u64) -> (u64, Room) {
        let octets = LEAST + FOR_SECOND.saturating_mul(round.as_nanos()) / 1_000_000_000;
        let first = octets.div_ceil(buffer.max(1)).min(most).max(already);
        (first, Room { kept: most.saturating_sub(first) })
    }

    /// The disk has taken a buffer, and so many wait for it. Answers how many more may come: one for this and, if none waits, another one, so
    /// that the room of a disk that keeps up doubles in a round trip.
    pub fn taken(&mut self, waiting: u64) -> u64 {
        if waiting > FEW {
            self.kept += 1;
            return 0;
        }
        let more = if waiting == 0 { self.kept.min(1) } else { 0 };
        self.kept -= more;
        1 + more
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Buffers that come in each step as far as they were let, and those that the disk takes in each. Answers the most that wait
    /// after so many steps, and the room in the end.
    fn run(come: u64, taken: u64, steps: u32) -> (u64, u64) {
        let (mut let_come, mut room) = Room::first(500, 100_000, Span::from_millis(50), 0);
        let (mut waiting, mut most) = (0, 0);
        for step in 0..steps {
            let came = come.min(let_come);
            (let_come, waiting) = (let_come - came, waiting + came);
            let done = taken.min(waiting);
            waiting -= done;
            let_come += (0..done).map(|_| room.taken(waiting)).sum::<u64>();
            assert_eq!(let_come + waiting + room.kept, 500, "no room is lost");
            assert!(let_come + waiting > 0, "it stands");
            if step > steps / 2 {
                most = most.max(waiting);
            }
        }
        (most, let_come + waiting)
    }

    #[test]
    fn a_slow_disk_has_few_buffers_to_write() {
        let (most, _) = run(10, 2, 1000);
        assert!(most <= FEW + 10, "{most}");
    }

    #[test]
    fn a_fast_disk_has_all_the_room_that_there_is() {
        assert_eq!(run(10, 10, 1000), (0, 500));
    }

    #[test]
    fn little_memory_is_all_let_come() {
        assert_eq!(Room::first(3, 175_104, Span::ZERO, 0).0, 3);
        assert_eq!(Room::first(500, 175_104, Span::from_millis(600), 0).0, 218);
        assert_eq!(Room::first(500, 175_104, Span::from_secs(10_000), 0).0, 500);
    }
}
