//! What a user wants of a transfer while it runs.

use crate::{MoverError, PACKETS};
use std::sync::atomic::{AtomicU64, Ordering};
use trunkline_core::Rate;
use trunkline_transfer::Halt;
use trunkline_transport::netblt::wire::Burst;

/// Bits per second of the least cap: a full packet in the longest interval of a burst, which has 16 bits of milliseconds.
const SLOWEST: u64 = (PACKETS[0] as u64 * 8000).div_ceil(u16::MAX as u64);

/// What a user may want of a transfer while it runs. Shared between threads.
#[derive(Debug, Default)]
pub struct Control {
    /// Bits per second of user data at most; 0 is no cap.
    cap: AtomicU64,
    stop: Halt,
}

impl Control {
    /// Sets the rate of user data that is not exceeded, or none.
    ///
    /// # Errors
    /// If it is less than a packet in the longest interval between two.
    pub fn set_cap(&self, cap: Option<Rate>) -> Result<(), MoverError> {
        let least = Control::slowest();
        if let Some(slow) = cap.filter(|&it| it < least) {
            return Err(MoverError::TooSlow { slow, least });
        }
        self.cap.store(cap.map_or(0, Rate::bits_per_second), Ordering::Relaxed);
        Ok(())
    }

    /// The least cap: a packet in the longest interval between two.
    pub fn slowest() -> Rate {
        Rate::from_bits_per_second(SLOWEST)
    }

    /// The cap, if there is one.
    pub fn cap(&self) -> Option<Rate> {
        let bits = self.cap.load(Ordering::Relaxed);
        (bits > 0).then(|| Rate::from_bits_per_second(bits))
    }

    /// Ends the transfer; what has come is kept.
    pub fn stop(&self) {
        self.stop.set();
    }

    pub(crate) fn is_stopped(&self) -> bool {
        self.stop.check().is_err()
    }

    /// What tells those who work on the files to stop.
    pub(crate) fn halt(&self) -> &Halt {
        &self.stop
    }
}

/// Bursts of packets of so many user octets that make a rate of user data; without a cap an interval of 0.
pub(super) fn burst(cap: Option<Rate>, packet: u16) -> Burst {
    let Some(rate) = cap else { return Burst { size: 1, interval: 0 } };
    let bits = u64::from(packet) * 8;
    // A tenth of a second of packets, so that rounding to whole packets and milliseconds changes little.
    let size = (rate.bits_per_second() / 10).div_ceil(bits).clamp(1, u16::MAX.into());
    let interval = (size * bits * 1000).div_ceil(rate.bits_per_second().max(1));
    Burst { size: size as u16, interval: interval.clamp(1, u16::MAX.into()) as u16 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cap_is_kept_and_nearly_reached() {
        for bits in
            [SLOWEST, 1000, 10_000, 64_000, 1_000_000, 33_333_333, 1_000_000_000, 40_000_000_000]
        {
            let cap = Some(Rate::from_bits_per_second(bits));
            let Burst { size, interval } = burst(cap, PACKETS[0]);
            let made = f64::from(size) * f64::from(PACKETS[0]) * 8000.0 / f64::from(interval);
            let share = made / bits as f64;
            assert!(share <= 1.0 && (share > 0.98 || size == u16::MAX), "{bits}: {share}");
        }
        assert_eq!(burst(None, PACKETS[0]).interval, 0);
    }

    /// What packets cannot keep to is refused, and the cap stays.
    #[test]
    fn a_cap_that_cannot_be_kept_is_refused() {
        let control = Control::default();
        let set = |bits| control.set_cap(Some(Rate::from_bits_per_second(bits)));
        set(SLOWEST).unwrap();
        for bits in [0, 1, 100, SLOWEST - 1] {
            let told = set(bits).unwrap_err().to_string();
            assert!(told.contains("167"), "{told}");
            assert_eq!(control.cap().unwrap().bits_per_second(), SLOWEST);
        }
        control.set_cap(None).unwrap();
        assert_eq!(control.cap(), None);
    }
}
