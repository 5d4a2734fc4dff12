//! One controller of whatever kind.

use super::{Ack, Bbr, Congestion, Cubic, Reason, Reno, Settings};
use std::fmt::Debug;
use trunkline_core::{Rate, Time};

/// A congestion controller of one of the [`Algorithm`](super::Algorithm)s.
///
/// The first ones are called without going through a table. Reno is held in place, so that its flows need no
/// memory elsewhere; the others are larger than all the rest that a flow needs, and have a place of their own.
#[derive(Debug, Clone)]
pub enum Controller {
    /// Reno, NewReno and the constant-rate policy.
    Reno(Reno),
    /// CUBIC.
    Cubic(Box<Cubic>),
    /// BBR.
    Bbr(Box<Bbr>),
    /// Any other.
    Other(Box<dyn Other>),
}

impl Controller {
    /// The controller that `settings` ask for.
    pub fn new(settings: &Settings) -> Controller {
        (settings.kind.entry().build)(settings)
    }

    /// A controller that has no variant of its own.
    pub fn other(controller: impl Other + 'static) -> Controller {
        Controller::Other(Box::new(controller))
    }
}

/// A controller that is called by way of a table. Whatever is [`Congestion`] and can be copied is one.
pub trait Other: Congestion + Debug + Send + Sync {
    /// Another one in the same state.
    fn copied(&self) -> Box<dyn Other>;
}

impl<C: Congestion + Clone + Debug + Send + Sync + 'static> Other for C {
    fn copied(&self) -> Box<dyn Other> {
        Box::new(self.clone())
    }
}

impl Clone for Box<dyn Other> {
    fn clone(&self) -> Box<dyn Other> {
        (**self).copied()
    }
}

/// Hands a call on to whichever controller it is.
macro_rules! hand_on {
    ($this:expr, $controller:ident => $call:expr) => {
        match $this {
            Controller::Reno($controller) => $call,
            Controller::Cubic($controller) => $call,
            Controller::Bbr($controller) => $call,
            Controller::Other($controller) => $call,
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
