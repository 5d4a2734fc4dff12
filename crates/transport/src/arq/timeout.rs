//! The time-out: stated, or measured.

use trunkline_core::Span;

/// Before anything is measured (RFC 6298 §2.1).
pub(super) const FIRST: Span = Span::from_secs(1);
/// The least excess of a measured time-out over the round trip (a choice: hosts are late by as much), and the
/// longest that it backs off to (RFC 6298 §2.5).
const MARGIN: Span = Span::from_millis(10);
const LONGEST: Span = Span::from_secs(60);

/// The time for which an answer is waited for.
#[derive(Debug)]
pub(super) enum Timeout {
    /// As long as the settings say, each time.
    Stated(Span),
    /// The smoothed round trip and four times its deviation (Jacobson 1988), doubled with each time-out in a row.
    Measured { smoothed: Option<[Span; 2]>, doublings: u32 },
}

impl Timeout {
    pub fn new(stated: Option<Span>) -> Timeout {
        stated.map_or(Timeout::Measured { smoothed: None, doublings: 0 }, Timeout::Stated)
    }

    /// The time for which an answer is waited for now.
    pub fn span(&self) -> Span {
        match self {
            Timeout::Stated(span) => *span,
            Timeout::Measured { smoothed, doublings } => {
                let once = smoothed
                    .map_or(FIRST, |[mean, deviation]| mean + deviation.scaled(4, 1).max(MARGIN));
                once.scaled(1 << doublings.min(&16), 1).min(LONGEST.max(once))
            }
        }
    }

    /// Something new is answered for, a round trip after it was sent.
    pub fn measured(&mut self, trip: Span) {
        let Timeout::Measured { smoothed, doublings } = self else { return };
        *doublings = 0;
        *smoothed = Some(match *smoothed {
            None => [trip, trip.scaled(1, 2)],
            Some([mean, deviation]) => [
                mean.scaled(7, 8) + trip.scaled(1, 8),
                deviation.scaled(3, 4) + mean.abs_diff(trip).scaled(1, 4),
            ],
        });
    }

    /// It has run out.
    pub fn back_off(&mut self) {
        if let Timeout::Measured { doublings, .. } = self {
            *doublings += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stated_time_out_stays() {
        let mut timeout = Timeout::new(Some(Span::from_millis(7)));
        timeout.back_off();
        timeout.measured(Span::from_millis(90));
        assert_eq!(timeout.span(), Span::from_millis(7));
    }

    /// RFC 6298 §2: the first measurement R gives R + 4 × R/2, the next ones are smoothed by 1/8 and 1/4.
    #[test]
    fn a_measured_time_out_follows_the_round_trip_and_backs_off() {
        let mut timeout = Timeout::new(None);
        assert_eq!(timeout.span(), Span::from_secs(1));
        timeout.measured(Span::from_millis(80));
        assert_eq!(timeout.span(), Span::from_millis(240));
        timeout.measured(Span::from_millis(160));
        // Mean 90, deviation 0.75 × 40 + 0.25 × 80 = 50.
        assert_eq!(timeout.span(), Span::from_millis(290));
        timeout.back_off();
        timeout.back_off();
        assert_eq!(timeout.span(), Span::from_millis(1160));
        timeout.measured(Span::from_millis(90));
        assert_eq!(timeout.span(), Span::from_millis(240));
        (0..40).for_each(|_| timeout.back_off());
        assert_eq!(timeout.span(), LONGEST);
    }
}
