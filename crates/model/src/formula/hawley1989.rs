//! The formulas of M. J. Hawley, *Performance Analysis of Queueing Algorithms on Datakit T1 Trunk
//! Lines*, UC Berkeley, 1989.
//!
//! A KE is 1000 envelopes here: only so do the drain times of §2.2 come out as printed.

use crate::throughput::Throughput;
use trunkline_core::Span;

/// Bytes per second left of 1.544 Mbit/s after the synchronisation bit, 1 in 193 (§2.1): 192 kB/s.
pub const T1_BYTES_PER_SECOND: u64 = 1_544_000 * 192 / 193 / 8;
/// Bytes of overhead of each trunk frame (§2.1).
pub const FRAME_OVERHEAD: u64 = 8;
/// Bytes of the frame that carries a URP trailer alone: 8 of frame, 4 of trailer, 2 stuffed (§2.1).
pub const TRAILER_FRAME: u64 = FRAME_OVERHEAD + 4 + 2;
/// Envelopes that the daughter board reads into memory each second (§1.4, §2.2).
pub const READ_RATE: Throughput = Throughput::from_bytes_per_second(710_000);
/// Envelopes that a Datakit backplane delivers each second (§1.4).
pub const BACKPLANE_RATE: Throughput = Throughput::from_bytes_per_second(800_000);

/// Most user bytes per second through a T1 trunk under round robin (§2.1, Table 1):
/// 192 kB/s × B / (B + 14 + 8 B/q).
///
/// `quantum` q and `block` B in bytes, `None` for infinite. Holds for full blocks whose size is a
/// multiple of the quantum, each quantum in a frame of its own, the trailer in another.
pub fn round_robin_throughput(quantum: Option<u32>, block: Option<u32>) -> Throughput {
    let (q, b) = (quantum.map(u128::from), block.map(u128::from));
    let (trailer, frame) = (u128::from(TRAILER_FRAME), u128::from(FRAME_OVERHEAD));
    // User bytes and line bytes of the unit that repeats, both multiplied by q if that is finite.
    let (user, line) = match (q, b) {
        (Some(q), Some(b)) => (b * q, b * q + trailer * q + frame * b),
        (Some(q), None) => (q, q + frame),
        (None, Some(b)) => (b, b + trailer),
        (None, None) => (1, 1),
    };
    let millibytes = u128::from(T1_BYTES_PER_SECOND) * 1_000 * user / line;
    Throughput::from_millibytes_per_second(u64::try_from(millibytes).unwrap_or(u64::MAX))
}

/// Most time in the daughter board's memory (§2.2, Table 2): channels × quantum × 19.7 cycles × 62.5 ns.
///
/// `quantum` in bytes; `channels` counts the active ones, the own included. Holds for a message of at
/// most one quantum and an output fifo with room.
pub fn in_memory_delay(channels: u64, quantum: u64) -> Span {
    Span::from_nanos(channels * quantum).scaled(197 * 625, 100)
}

/// Envelopes that the output fifo hands to the line each second (§2.2): 192 kB/s × (q + 2)/(q + 8),
/// because channel numbers come out of the fifo too. With a quantum of 64: 176 kE/s.
pub fn fifo_drain_rate(quantum: u64) -> Throughput {
    let millibytes = T1_BYTES_PER_SECOND * 1_000 * (quantum + 2) / (quantum + FRAME_OVERHEAD);
    Throughput::from_millibytes_per_second(millibytes)
}

/// Time to empty a fifo of `envelopes` at `rate` envelopes per second (§2.2).
pub fn drain_time(envelopes: u64, rate: Throughput) -> Span {
    rate.time_for(envelopes)
}

/// First estimate of the most that a message of at most one quantum waits on a loaded round-robin
/// trunk (§2.2): input fifo at the read rate and output fifo at the drain rate, 11.3 ms.
pub fn round_robin_delay_bound(input_fifo: u64, output_fifo: u64) -> Span {
    drain_time(input_fifo, READ_RATE) + drain_time(output_fifo, fifo_drain_rate(64))
}

/// Envelopes of a burst at `arrival` that overflow a fifo emptied at `drain` (§1.4):
/// fifo × arrival / (arrival − drain). `None` if it is emptied faster than filled.
pub fn burst_to_overflow(fifo: u64, arrival: Throughput, drain: Throughput) -> Option<u64> {
    let (arrival, drain) = (arrival.millibytes_per_second(), drain.millibytes_per_second());
    let gap = arrival.checked_sub(drain).filter(|&gap| gap > 0)?;
    u64::try_from(u128::from(fifo) * u128::from(arrival) / u128::from(gap)).ok()
}

/// Stream blocks of a system write under the ninth edition (§4.2.1): 64 bytes each up to 511, 1024 above.
pub fn stream_blocks(bytes: u64) -> u64 {
    if bytes < 512 { bytes.div_ceil(64).max(1) } else { bytes.div_ceil(1024) }
}

/// The postulate on the unloaded delay of a looped message (§4.2.2): 5 ms + 2 ms for each stream block +
/// bytes / (176 kB/s).
///
/// The text says "per additional stream block", but its example for 256 bytes counts all four.
/// Measured values are met within 10 % between 256 and 511 bytes; one block of 1 to 64 bytes takes
/// 4 to 5 ms in practice and 7 by the postulate.
pub fn unloaded_delay(bytes: u64) -> Span {
    let blocks = Span::from_millis(2).scaled(stream_blocks(bytes), 1);
    Span::from_millis(5) + blocks + fifo_drain_rate(64).time_for(bytes)
}

/// What stood ahead of a packet that waited `delay`, in the unit of `fifo`: delay / full delay × fifo
/// (§4.3.2.1), `full_delay` being the time in which a full fifo drains. Holds while nothing is lost.
pub fn queued_ahead(delay: Span, full_delay: Span, fifo: u64) -> u64 {
    let product = u128::from(delay.as_nanos()) * u128::from(fifo);
    u64::try_from(product / u128::from(full_delay.as_nanos().max(1))).unwrap_or(u64::MAX)
}

/// Wait of a packet behind a full window of each of `conversations` (§4.3.2.1): conversations × window
/// / drain rate. Holds for a saturated trunk of negligible length.
pub fn wait_behind_windows(conversations: u64, window: u64) -> Span {
    fifo_drain_rate(64).time_for(conversations * window)
}
