//! Loss of whole packets: independent, in bursts, or as once recorded.

use super::achieved::Tally;
use super::parse::{SettingError, form, serde_as_text};
use crate::SpecError;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;
use trunkline_core::{Probability, Stream};

/// The rule for which packets are lost.
///
/// Read as `1%`, `ge:p=1%,r=20%,good=0%,bad=100%` or `trace:FILE`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LossModel {
    /// Each packet with the same probability, whatever became of the others.
    Bernoulli(Probability),
    /// In bursts.
    GilbertElliott(GilbertElliott),
    /// As recorded.
    Trace {
        /// The name of the file, for whoever reads it; nothing here does.
        file: String,
        /// Its content, once [`LossModel::load`] has been given it.
        trace: LossTrace,
    },
}

/// The Gilbert–Elliott model (Gilbert 1960, Elliott 1963): a Markov chain of a good and a bad state
/// that takes one step for each packet, after that packet has been judged.
///
/// It starts in a state drawn from its stationary distribution, so that every packet, the first
/// included, is lost with the probability [`rate`](GilbertElliott::rate). In the notation of the
/// literature `good` is 1 − k and `bad` is 1 − h.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GilbertElliott {
    /// Good to bad, for each packet.
    pub p: Probability,
    /// Bad to good, for each packet. The chain stays bad for 1/r packets in the mean.
    pub r: Probability,
    /// Loss in the good state, 1 − k.
    pub good: Probability,
    /// Loss in the bad state, 1 − h.
    pub bad: Probability,
}

impl GilbertElliott {
    /// The share of packets that meet the bad state: p / (p + r); a chain that never moves stays good.
    pub fn bad_share(&self) -> f64 {
        let (p, r) = (self.p.as_f64(), self.r.as_f64());
        if p == 0.0 { 0.0 } else { p / (p + r) }
    }

    /// The stationary loss rate: (r·(1 − k) + p·(1 − h)) / (p + r).
    pub fn rate(&self) -> f64 {
        let bad = self.bad_share();
        (1.0 - bad) * self.good.as_f64() + bad * self.bad.as_f64()
    }
}

/// Recorded decisions, one for each packet, used over and over. Copies share the record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LossTrace(Arc<[bool]>);

impl Default for LossTrace {
    fn default() -> LossTrace {
        LossTrace(Arc::new([]))
    }
}

const TRACE: &str = "loss trace";
const TRACE_FORM: &str = "write 0 for a packet that arrives and 1 for one that is lost";

impl LossTrace {
    /// Reads the content of a loss trace: a `0` for each packet that arrives and a `1` for each that is
    /// lost, with any white space and commas between them; `#` starts a comment.
    ///
    /// # Errors
    /// Any other character, with its line, and a trace without decisions.
    pub fn parse(text: &str) -> Result<LossTrace, SettingError> {
        let mut decisions = Vec::new();
        for (index, line) in text.lines().enumerate() {
            let content = line.split('#').next().unwrap_or_default();
            for mark in content.chars().filter(|&c| !c.is_whitespace() && c != ',') {
                decisions.push(decision(mark, index + 1)?);
            }
        }
        if decisions.is_empty() {
            return Err(SettingError::Empty { what: TRACE, write: TRACE_FORM });
        }
        Ok(LossTrace(decisions.into()))
    }

    /// The recorded decisions: true if the packet is lost.
    pub fn decisions(&self) -> &[bool] {
        &self.0
    }

    /// The share of packets that it loses.
    pub fn rate(&self) -> f64 {
        let lost = self.0.iter().filter(|&&lost| lost).count();
        lost as f64 / self.0.len().max(1) as f64
    }
}

fn decision(mark: char, line: usize) -> Result<bool, SettingError> {
    match mark {
        '0' => Ok(false),
        '1' => Ok(true),
        found => Err(SettingError::Line {
            what: TRACE,
            line,
            found: found.to_string(),
            write: TRACE_FORM,
        }),
    }
}

impl Default for LossModel {
    fn default() -> LossModel {
        LossModel::Bernoulli(Probability::NEVER)
    }
}

impl LossModel {
    /// The share of packets that it loses in the long run.
    pub fn rate(&self) -> f64 {
        match self {
            LossModel::Bernoulli(probability) => probability.as_f64(),
            LossModel::GilbertElliott(model) => model.rate(),
            LossModel::Trace { trace, .. } => trace.rate(),
        }
    }

    /// The file that has still to be read and given to [`load`](LossModel::load).
    pub fn unread_file(&self) -> Option<&str> {
        match self {
            LossModel::Trace { file, trace } if trace.0.is_empty() => Some(file),
            _ => None,
        }
    }

    /// Takes in the content of the trace's file; any other model stays as it is.
    ///
    /// # Errors
    /// As [`LossTrace::parse`].
    pub fn load(&mut self, content: &str) -> Result<(), SettingError> {
        if let LossModel::Trace { trace, .. } = self {
            *trace = LossTrace::parse(content)?;
        }
        Ok(())
    }

    pub(super) fn check(&self) -> Result<(), SpecError> {
        match self.unread_file() {
            Some(file) => Err(SpecError::Conflict(format!(
                "the loss trace '{file}' has not been read: give its content before the path is built"
            ))),
            None => Ok(()),
        }
    }

    fn is_off(&self) -> bool {
        matches!(self, LossModel::Bernoulli(probability) if probability.is_never())
    }
}

const GE_FORM: &str = "ge:p=1%,r=20%,good=0%,bad=100% (good and bad may be left out)";

impl FromStr for LossModel {
    type Err = SettingError;

    fn from_str(text: &str) -> Result<LossModel, SettingError> {
        let text = text.trim();
        match text.split_once(':') {
            Some(("ge", parameters)) => parameters.parse().map(LossModel::GilbertElliott),
            Some(("trace", file)) if !file.is_empty() => {
                Ok(LossModel::Trace { file: file.into(), trace: LossTrace::default() })
            }
            Some(_) => {
                Err(form("loss model", text, "1%, ge:p=1%,r=20%,good=0%,bad=100% or trace:FILE"))
            }
            None if text == "none" => Ok(LossModel::default()),
            None => Ok(LossModel::Bernoulli(text.parse()?)),
        }
    }
}

impl FromStr for GilbertElliott {
    type Err = SettingError;

    /// Reads `p=1%,r=20%,good=0%,bad=100%`.
    fn from_str(text: &str) -> Result<GilbertElliott, SettingError> {
        let wrong = || form("Gilbert-Elliott model", text, GE_FORM);
        let [mut p, mut r, mut good, mut bad] = [None; 4];
        for pair in text.split(',') {
            let (key, value) = pair.split_once('=').ok_or_else(wrong)?;
            let place = match key.trim() {
                "p" => &mut p,
                "r" => &mut r,
                "good" => &mut good,
                "bad" => &mut bad,
                _ => return Err(wrong()),
            };
            if place.replace(value.parse::<Probability>()?).is_some() {
                return Err(wrong());
            }
        }
        Ok(GilbertElliott {
            p: p.ok_or_else(wrong)?,
            r: r.ok_or_else(wrong)?,
            good: good.unwrap_or(Probability::NEVER),
            bad: bad.unwrap_or(Probability::ALWAYS),
        })
    }
}

impl fmt::Display for GilbertElliott {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "p={},r={},good={},bad={}", self.p, self.r, self.good, self.bad)
    }
}

impl fmt::Display for LossModel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LossModel::Bernoulli(probability) => write!(f, "{probability}"),
            LossModel::GilbertElliott(model) => write!(f, "ge:{model}"),
            LossModel::Trace { file, .. } => write!(f, "trace:{file}"),
        }
    }
}

serde_as_text!(LossModel);

/// A loss model at work.
#[derive(Debug)]
pub(super) struct Losses {
    stream: Stream,
    /// The state of the Gilbert–Elliott chain, once it has been drawn.
    bad: Option<bool>,
    /// The next decision of the trace.
    position: usize,
    /// Whether the packet before this one was lost. It tells a new burst from one that goes on.
    in_burst: bool,
    pub(super) bursts: u64,
    pub(super) tally: Tally,
    asked: f64,
}

impl Losses {
    pub(super) fn new(model: &LossModel, stream: Stream) -> Losses {
        Losses {
            stream,
            bad: None,
            position: 0,
            in_burst: false,
            bursts: 0,
            tally: Tally::default(),
            asked: model.rate(),
        }
    }

    /// Takes note that `old` gives way to `new`. The chain keeps its state; another trace starts at
    /// its beginning.
    pub(super) fn change(&mut self, old: &LossModel, new: &LossModel) {
        if old != new {
            self.position = 0;
            self.asked = new.rate();
        }
    }

    /// Whether the next packet is lost.
    pub(super) fn strike(&mut self, model: &LossModel) -> bool {
        if model.is_off() {
            self.in_burst = false;
            return false;
        }
        let lost = match model {
            LossModel::Bernoulli(probability) => self.stream.happens(*probability),
            LossModel::GilbertElliott(model) => self.step(model),
            LossModel::Trace { trace, .. } => self.replay(trace.decisions()),
        };
        self.bursts += u64::from(lost && !self.in_burst);
        self.in_burst = lost;
        self.tally.count(self.asked, lost);
        lost
    }

    fn step(&mut self, model: &GilbertElliott) -> bool {
        let mut start =
            || self.stream.happens(Probability::new(model.bad_share()).unwrap_or_default());
        let bad = self.bad.unwrap_or_else(&mut start);
        let (loss, leave) = if bad { (model.bad, model.r) } else { (model.good, model.p) };
        let lost = self.stream.happens(loss);
        self.bad = Some(bad != self.stream.happens(leave));
        lost
    }

    fn replay(&mut self, decisions: &[bool]) -> bool {
        let lost = decisions.get(self.position).copied().unwrap_or(false);
        self.position = (self.position + 1) % decisions.len().max(1);
        lost
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn models_read_and_print() {
        for text in ["1%", "ge:p=1%,r=20%,good=0%,bad=100%", "trace:a/b.txt", "0%"] {
            assert_eq!(text.parse::<LossModel>().unwrap().to_string(), text);
        }
        assert_eq!(
            "ge:p=1%,r=20%".parse::<LossModel>().unwrap().to_string(),
            "ge:p=1%,r=20%,good=0%,bad=100%"
        );
        for text in ["ge:p=1%", "ge:", "trace:", "ge:p=1%,r=2%,p=3%", "burst:3", "101%", "ge:q=1%"]
        {
            let complaint = text.parse::<LossModel>().unwrap_err().to_string();
            assert!(!complaint.contains('\n') && complaint.contains('%'), "{complaint}");
        }
    }

    #[test]
    fn a_trace_is_read_and_named_by_line() {
        let trace = LossTrace::parse("# recorded\n0 0,1\n10 # last\n").unwrap();
        assert_eq!(trace.decisions(), [false, false, true, true, false]);
        assert!((trace.rate() - 0.4).abs() < 1e-15);
        let complaint = LossTrace::parse("01\n0x").unwrap_err().to_string();
        assert!(complaint.contains("line 2") && complaint.contains("'x'"), "{complaint}");
        assert!(LossTrace::parse("# nothing").unwrap_err().to_string().contains("nothing"));
    }

    #[test]
    fn a_trace_must_be_loaded() {
        let mut model: LossModel = "trace:x".parse().unwrap();
        assert_eq!(model.unread_file(), Some("x"));
        assert!(model.check().unwrap_err().to_string().contains("'x'"));
        model.load("0001").unwrap();
        assert_eq!((model.unread_file(), model.rate()), (None, 0.25));
        model.check().unwrap();
    }

    #[test]
    fn the_stationary_rate_by_hand() {
        let LossModel::GilbertElliott(model) = "ge:p=1%,r=4%,good=10%,bad=60%".parse().unwrap()
        else {
            panic!("not a Gilbert-Elliott model");
        };
        assert!((model.bad_share() - 0.2).abs() < 1e-12);
        assert!((model.rate() - (0.8 * 0.1 + 0.2 * 0.6)).abs() < 1e-12);
    }
}
