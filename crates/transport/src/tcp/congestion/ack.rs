//! The face that all congestion controllers have, and what they are told.

use super::RateSample;
use trunkline_core::{Rate, Span, Time};

/// The content of one arriving acknowledgement, as far as congestion control cares.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ack {
    /// When it came.
    pub now: Time,
    /// Bytes newly acknowledged by the cumulative number.
    pub acked: u64,
    /// Bytes newly known to have arrived, each counted once: by the cumulative number or by SACK. Without
    /// SACK a duplicate ACK stands for one segment.
    pub delivered: u64,
    /// Bytes newly known to have arrived with a congestion mark, if marks are told of for each packet
    /// ([`Marks`](super::Marks)); never more than `acked` or `delivered`, whichever is more.
    pub marked: u64,
    /// The round trip that it measured; `None` if what it acknowledged had been sent twice (Karn).
    pub rtt: Option<Span>,
    /// The smoothed round trip (RFC 6298), zero before the first measurement.
    pub smoothed_rtt: Span,
    /// The shortest round trip of the connection so far, zero before the first measurement.
    pub min_rtt: Span,
    /// Bytes in flight before it came.
    pub in_flight_before: u64,
    /// Bytes in flight now.
    pub in_flight: u64,
    /// A sample of the delivery rate, for controllers that [want](super::Entry::wants_rate_samples) it.
    pub rate_sample: Option<RateSample>,
    /// Whether it is the first ACK of something that was sent after the previous round began.
    pub round_start: bool,
    /// Whether the congestion window held the sender back, rather than the application or the
    /// receiver's window.
    pub window_limited: bool,
    /// Whether the machine is in fast recovery, this ACK included. The slow start after a time-out is not one.
    pub recovering: bool,
}

impl Ack {
    /// Bytes that may make the window grow: what is acknowledged and was not known to have arrived. The ACK that
    /// ends a recovery covers a whole window, nearly all of which earlier ACKs have told of; counted again it
    /// would make the window grow by two segments at once. (Linux hands `acked_sacked` to its controllers.)
    pub(super) fn news(&self) -> u64 {
        self.acked.min(self.delivered)
    }

    /// An ACK of `acked` bytes at `now` and nothing else worth telling: window-limited, no recovery, no
    /// measurement. Fields are set from there.
    pub const fn of(now: Time, acked: u64) -> Ack {
        Ack {
            now,
            acked,
            delivered: acked,
            marked: 0,
            rtt: None,
            smoothed_rtt: Span::ZERO,
            min_rtt: Span::ZERO,
            in_flight_before: acked,
            in_flight: 0,
            rate_sample: None,
            round_start: false,
            window_limited: true,
            recovering: false,
        }
    }
}

/// The reason why the window is to shrink.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Reason {
    /// A segment was lost and will be sent again by fast retransmit.
    Loss,
    /// The receiver echoed a congestion mark (RFC 3168).
    EcnEcho,
    /// The receiver told of marked packets, and tells of each ([`Ack::marked`] counts them).
    Marked,
}

/// A congestion controller: how much may be in flight, and how fast it may go out.
///
/// The machine around it keeps count of what is in flight and calls, in the order of events:
/// [`sent`](Congestion::sent) for every transmission, [`acked`](Congestion::acked) for every ACK that
/// tells of something delivered, [`congested`](Congestion::congested) at the beginning of recovery or
/// [`timed_out`](Congestion::timed_out), and [`recovered`](Congestion::recovered) at the end of either.
/// What an ACK changes is told before its own `acked`: the ACK that begins a recovery is `recovering`, the
/// one that ends it is not.
///
/// *In flight* is what has been sent and neither arrived nor been found lost, so that the window need
/// not be inflated during recovery: without SACK each duplicate ACK takes a segment out of flight, which
/// comes to the same as RFC 5681 §3.2 steps 3 and 4. At `congested` and `timed_out` it is the *FlightSize*
/// of RFC 5681: all that has been sent and not been acknowledged cumulatively, what is lost included.
pub trait Congestion {
    /// The congestion window in bytes.
    fn window(&self) -> u64;
    /// The slow start threshold in bytes; `u64::MAX` before the first congestion.
    fn slow_start_threshold(&self) -> u64;
    /// The rate at which segments may leave; `None` if only the window limits.
    fn pacing(&self) -> Option<Rate> {
        None
    }
    /// `bytes` were sent; `in_flight` counts them.
    fn sent(&mut self, now: Time, bytes: u64, in_flight: u64) {
        let _ = (now, bytes, in_flight);
    }
    /// An ACK came.
    fn acked(&mut self, ack: &Ack);
    /// Congestion was found. To be called once for each window of data: at the beginning of a recovery, or
    /// for the first congestion mark of a round trip in which there was neither another nor a loss.
    fn congested(&mut self, now: Time, in_flight: u64, reason: Reason);
    /// All that was outstanding at the last loss or time-out has been acknowledged; or, for
    /// [`Algorithm::RENO`](super::Algorithm::RENO), the first new ACK has come.
    fn recovered(&mut self, now: Time);
    /// The retransmission timer ran out. Repeated time-outs of one segment are recognised by the lack of
    /// ACKs in between.
    fn timed_out(&mut self, now: Time, in_flight: u64);
    /// The last congestion or time-out turns out to have been none (RFC 3522, RFC 4015, RFC 5682).
    fn undone(&mut self, now: Time);
    /// Nothing was sent for longer than `timeouts` retransmission time-outs, 1 at least, and now something is
    /// (RFC 5681 §4.1).
    fn restarted_after_idle(&mut self, now: Time, timeouts: u64);
}
