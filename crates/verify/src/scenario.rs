//! A measurement as a scenario describes it: one link is the path, one traffic of paced datagrams the probes.

use crate::limits::{Bound, slower_line_rate};
use crate::probe::SMALLEST;
use crate::report::{Row, Thresholds};
use crate::run::{Baseline, Emulator, Trial, check};
use crate::{Laboratory, VerifyError};
use std::sync::atomic::AtomicBool;
use trunkline_core::Rate;
use trunkline_path::ChannelKey;
use trunkline_scenario::{PathSpec, Scenario, Workload};

/// Bytes of IPv4's and UDP's headers.
const HEADERS: u32 = 20 + 8;
/// Above this share of the line rate a probe that is sent a little early waits for the one before.
const MOST_SHARE: f64 = 0.99;

impl Trial {
    /// The run that `scenario` describes: its one link is the path under test, its one traffic of paced
    /// datagrams says how large the probes are, how many are sent both ways, and for how long. A rate of more
    /// than the line's is the line's.
    ///
    /// # Errors
    /// [`VerifyError::Scenario`] if it has anything else; [`VerifyError::Random`] and
    /// [`VerifyError::Size`] as [`check`].
    pub fn of(scenario: &Scenario) -> Result<Trial, VerifyError> {
        let wrong = |what: &str| VerifyError::Scenario { what: what.into() };
        let [link] = &scenario.links[..] else { return Err(wrong("exactly one link")) };
        let [traffic] = &scenario.traffic[..] else { return Err(wrong("exactly one traffic")) };
        let Workload::Paced { size, rate, duration } = traffic.workload else {
            return Err(wrong("traffic of kind \"paced\""));
        };
        let path = PathSpec {
            up: (*link.forward).clone(),
            down: (*link.backward).clone(),
            key: ChannelKey::default(),
            mtu: scenario.mtu,
            seed: scenario.seed,
        };
        let packet = size.saturating_add(HEADERS).max(SMALLEST);
        check(&path, &[packet])?;
        let (per_second, bound) = most(&path, size, rate, packet);
        Ok(Trial {
            path,
            size: packet,
            per_second,
            bound,
            duration,
            change: None,
            emulator: Emulator::default(),
            thresholds: Thresholds::default(),
        })
    }
}

/// Probes per second, and what limits them.
fn most(path: &PathSpec, size: u32, rate: Rate, packet: u32) -> (f64, Bound) {
    let asked = rate.bits_per_second() as f64 / 8.0 / f64::from(size.max(1));
    match slower_line_rate(path, packet).map(|line| line * MOST_SHARE) {
        Some(line) if line < asked => (line, Bound::LineRate),
        _ => (asked, Bound::Asked),
    }
}

/// The most tries of a measurement, until the machine did not stall in it.
const ATTEMPTS: u32 = 3;

/// Makes the run that `scenario` describes, in `laboratory`, after a run without the path; again if the
/// machine did not let it go on.
///
/// # Errors
/// As [`Trial::of`] and [`Trial::run`].
pub fn measure(
    scenario: &Scenario,
    laboratory: &mut Laboratory,
    stop: &AtomicBool,
) -> Result<Row, VerifyError> {
    let trial = Trial::of(scenario)?;
    let mut once = || {
        let baseline = Baseline::measure(laboratory, trial.size, trial.per_second, stop)?;
        trial.run(laboratory, &baseline, stop)
    };
    let mut row = once()?;
    for _ in 1..ATTEMPTS {
        if !row.stalls.any() {
            break;
        }
        row = once()?;
    }
    Ok(row)
}

impl Row {
    /// The time that the path adds from near to far and back, as the LDS report measures it: the mean round
    /// trip with the path, less the mean one without (§3.9), and less twice the line's time for a probe,
    /// which the report's line does with and without. In nanoseconds.
    pub fn round_trip_added_ns(&self) -> i64 {
        let set = (self.delay_up + self.delay_down).as_nanos() as i64;
        set + self.rtt_with.mean_ns - self.rtt_without.mean_ns
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use trunkline_core::Span;

    fn scenario(link: &str, traffic: &str) -> Scenario {
        let text = format!(
            "mtu = 9180\n[[host]]\nname = 'a'\n[[host]]\nname = 'b'\n[[link]]\nbetween = ['a', 'b']\n{link}\n\
             [[traffic]]\nname = 'probes'\nfrom = 'a'\nto = 'b'\n{traffic}\n"
        );
        Scenario::parse(&text, "probes.toml").unwrap().remove(0)
    }

    const PACED: &str = "kind = 'paced'\nsize = 9152\nduration = '2s'\ntransport = 'udp'\nrate = ";

    #[test]
    fn link_and_datagrams_become_a_run() {
        let trial =
            Trial::of(&scenario("delay = '20ms'", &format!("{PACED}'7321600bit/s'"))).unwrap();
        assert_eq!((trial.size, trial.per_second, trial.bound), (9180, 100.0, Bound::Asked));
        assert_eq!(
            (trial.path.up.delay, trial.path.down.delay),
            (Span::from_millis(20), Span::from_millis(20))
        );
        assert_eq!(trial.duration, Span::from_secs(2));
    }

    #[test]
    fn no_more_than_the_line_takes_is_sent() {
        let link = "rate = '155.52Mbit/s'\nframing = 'atm-aal5'\ndelay = '1.5ms'";
        let trial = Trial::of(&scenario(link, &format!("{PACED}'155Mbit/s'"))).unwrap();
        assert_eq!(trial.bound, Bound::LineRate);
        // 192 cells of 2.831 us.
        assert!((trial.per_second - 0.99 * 149.76e6 / 424.0 / 192.0).abs() < 0.1);
    }

    #[test]
    fn what_cannot_be_verified_is_refused() {
        for (link, traffic) in [
            ("delay = '1ms'", "kind = 'bulk'".to_string()),
            ("delay = '1ms'\nloss = '1%'", format!("{PACED}'1Mbit/s'")),
        ] {
            let told = Trial::of(&scenario(link, &traffic)).unwrap_err().to_string();
            assert!(told.contains("paced") || told.contains("loss"), "{told}");
        }
    }
}
