//! One controller of whatever kind, without a virtual call.

use super::{Ack, Bbr, Congestion, Cubic, Kind, Reason, Reno, Settings};
use trunkline_core::{Rate, Time};

/// A congestion controller of one of the [`Kind`]s.
///
/// Reno is held in place, so that its flows need no memory elsewhere; the others are larger than all the
/// rest that a flow needs, and have a place of their own.
#[derive(Debug, Clone)]
pub enum Controller {
    /// Reno, NewReno and the constant-rate policy.
    Reno(Reno),
    /// CUBIC.
    Cubic(Box<Cubic>),
    /// BBR.
    Bbr(Box<Bbr>),
}

impl Controller {
    /// The controller that `settings` ask for.
    pub fn new(settings: &Settings) -> Controller {
        match settings.kind {
            Kind::Reno | Kind::NewReno | Kind::ConstantRate => {
                Controller::Reno(Reno::new(settings))
            }
            Kind::Cubic => Controller::Cubic(Box::new(Cubic::new(settings))),
            Kind::Bbr => Controller::Bbr(Box::new(Bbr::new(settings))),
        }
    }
}

/// Hands a call on to whichever controller it is.
macro_rules! hand_on {
    ($this:expr, $controller:ident => $call:expr) => {
        match $this {
            Controller::Reno($controller) => $call,
            Controller::Cubic($controller) => $call,
            Controller::Bbr($controller) => $call,
        }
    };
}

impl Congestion for Controller {
    fn window(&self) -> u64 {
        hand_on!(self, controller => controller.window())
    }
    fn slow_start_threshold(&self) -> u64 {
        hand_on!(self, controller => controller.slow_start_threshold())
    }
    fn pacing(&self) -> Option<Rate> {
        hand_on!(self, controller => controller.pacing())
    }
    fn sent(&mut self, now: Time, bytes: u64, in_flight: u64) {
        hand_on!(self, controller => controller.sent(now, bytes, in_flight));
    }
    fn acked(&mut self, ack: &Ack) {
        hand_on!(self, controller => controller.acked(ack));
    }
    fn congested(&mut self, now: Time, in_flight: u64, reason: Reason) {
        hand_on!(self, controller => controller.congested(now, in_flight, reason));
    }
    fn recovered(&mut self, now: Time) {
        hand_on!(self, controller => controller.recovered(now));
    }
    fn timed_out(&mut self, now: Time, in_flight: u64) {
        hand_on!(self, controller => controller.timed_out(now, in_flight));
    }
    fn undone(&mut self, now: Time) {
        hand_on!(self, controller => controller.undone(now));
    }
    fn restarted_after_idle(&mut self, now: Time, timeouts: u64) {
        hand_on!(self, controller => controller.restarted_after_idle(now, timeouts));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flow_of_reno_stays_small() {
        assert!(size_of::<Controller>() <= 96, "{}", size_of::<Controller>());
        assert!(size_of::<Cubic>() <= 384, "{}", size_of::<Cubic>());
        assert!(size_of::<Bbr>() <= 384, "{}", size_of::<Bbr>());
    }
}
