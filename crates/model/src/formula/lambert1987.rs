//! The bandwidth analysis of M. Lambert, *On Testing the NETBLT Protocol over Divers Networks*, RFC 1030, 1987,
//! Appendix I: what the frames of the Wideband satellite network leave for data.
//!
//! All of it holds for one channel frame. 65536 bits in 21.22 ms are 3.088 Mbit/s; the report prints 3.081, which would
//! take 21.27 ms.

use trunkline_core::{Rate, Span};

/// Symbols of a frame.
pub const FRAME_SYMBOLS: u64 = 32_768;
/// Bits that a symbol carries.
pub const BITS_PER_SYMBOL: u64 = 2;
/// From frame to frame.
pub const FRAME: Span = Span::from_micros(21_220);
/// Earth stations, each with a slot in the control subframe.
pub const STATIONS: u64 = 10;
/// Symbols of control information of a station.
pub const CONTROL_SYMBOLS: u64 = 200;
/// Symbols of padding behind them, as the interface of a station runs at 2 Mbit/s only.
pub const PADDING_SYMBOLS: u64 = 1263;
/// Bits of the field that holds the size of a datagram in symbols.
pub const SIZE_BITS: u32 = 14;
/// Symbols of headers in a data subframe. Not printed: 16384 symbols drop to 16036 "after header information".
pub const HEADER_SYMBOLS: u64 = 348;
/// The share of coded bits that are data, as numerator and denominator.
pub const CODING: (u64, u64) = (3, 4);
/// User bytes of the largest packet from an Ethernet (§7).
pub const PACKET: u64 = 1438;
/// The interval of two such packets, slightly longer than a frame (§7).
pub const PACE: Span = Span::from_millis(22);

/// Bits of so many symbols.
pub fn bits(symbols: u64) -> u64 {
    symbols * BITS_PER_SYMBOL
}

/// Symbols of the control subframe with so many stations.
pub fn control_subframe(stations: u64) -> u64 {
    (CONTROL_SYMBOLS + PADDING_SYMBOLS) * stations
}

/// Symbols of the data subframe with so many stations; none if the control subframe takes them all.
pub fn data_subframe(stations: u64) -> u64 {
    FRAME_SYMBOLS.saturating_sub(control_subframe(stations))
}

/// Symbols of a data subframe that can be used: no more than the size of a datagram can name.
pub fn data_limit(stations: u64) -> u64 {
    data_subframe(stations).min(1 << SIZE_BITS)
}

/// Those of them that are left behind the headers.
pub fn data_after_headers(stations: u64) -> u64 {
    data_limit(stations).saturating_sub(HEADER_SYMBOLS)
}

/// Bits of data in a frame, behind the code.
pub fn usable_bits(stations: u64) -> u64 {
    bits(data_after_headers(stations)) * CODING.0 / CODING.1
}

/// Whole bytes of data in a frame.
pub fn usable_bytes(stations: u64) -> u64 {
    usable_bits(stations) / 8
}

/// The rate of so many bits in each `interval`, rounded down to bits per second.
pub fn bandwidth(bits: u64, interval: Span) -> Rate {
    const SECOND: u128 = 1_000_000_000;
    let nanos = u128::from(interval.as_nanos()).max(1);
    let rate = u128::from(bits) * SECOND / nanos;
    Rate::from_bits_per_second(u64::try_from(rate).unwrap_or(u64::MAX))
}

/// Packets of so many bytes in a frame: 1500 of the largest from an Ethernet, two of which fit.
pub fn packets_per_frame(stations: u64, bytes: u64) -> u64 {
    usable_bytes(stations) / bytes.max(1)
}

/// The best throughput of user data: a frame's packets every 22 ms.
pub fn best_throughput(stations: u64) -> Rate {
    bandwidth(packets_per_frame(stations, 1500) * PACKET * 8, PACE)
}
