//! What a reader of a run has to know, as data.

use serde::{Deserialize, Serialize};
use std::fmt;
use trunkline_scenario::{About, Remark};

/// What a reader has to know: of what, of which kind, and in words.
///
/// Whoever decides by a note looks at `about` and `kind`; `text` is for people and may be reworded at any time.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Note {
    /// What it is of.
    pub about: About,
    /// Why it is told.
    pub kind: NoteKind,
    /// A sentence or two, without the name of what it is of.
    pub text: String,
}

/// Why a note is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum NoteKind {
    /// The machine has spoilt the run: INVALID.
    Invalid,
    /// Something failed in the run: a program, a flow, the data. Its figures must not be used.
    Failed,
    /// The engine could not run the scenario, or a changed one.
    Unavailable,
    /// The counts of packets do not add up: a defect of the engine.
    Broken,
    /// Somebody changed the path while the run was under way, so that its figures are of another path.
    Changed,
    /// The engine has no figure, and why.
    NotCovered,
    /// Flows ended without having done what they were to do.
    GaveUp,
    /// The run ended before the traffic did, or nothing was completed.
    Unfinished,
    /// What is in the scenario and a real host or the kernel does otherwise.
    NotEmulated,
    /// What the figure takes for granted, or leaves out.
    Assumed,
    /// Packets that were lost, or not carried, outside the links.
    Lost,
    /// Measurements that are in no figure, or not kept.
    LeftOut,
    /// A run that was cut short.
    Cut,
    /// A key or an axis of the scenario that does less than it says, or nothing, or that makes the run long.
    NoEffect,
    /// What an outside program told, or was told.
    Program,
    /// Something about the capture of the run.
    Capture,
    /// A measurement that was made again.
    Repeated,
    /// How exactly runs in real time were carried out.
    Accuracy,
    /// The most that a buffer inside a medium has held.
    Held,
}

impl Note {
    /// A note of the whole run; of a part with [`about`](Note::about).
    pub fn new(kind: NoteKind, text: impl Into<String>) -> Note {
        Note { about: About::Whole, kind, text: text.into() }
    }

    /// A note that something failed.
    pub fn failed(why: &(impl ToString + ?Sized)) -> Note {
        Note::new(NoteKind::Failed, why.to_string())
    }

    /// A note of the traffic called `name`.
    pub fn of_traffic(name: &str, kind: NoteKind, text: impl Into<String>) -> Note {
        Note::new(kind, text).about(About::Traffic(name.into()))
    }

    /// The same note of `about`.
    pub fn about(self, about: About) -> Note {
        Note { about, ..self }
    }

    /// What an engine says of a traffic: the traffic's name, and the words. `None` if the note is of something else, or
    /// is the scenario's own.
    pub fn word_on_traffic(&self) -> Option<(&str, String)> {
        match &self.about {
            About::Traffic(name) if self.kind != NoteKind::NoEffect => Some((name, self.words())),
            _ => None,
        }
    }

    /// The text, marked if it tells of a failure.
    fn words(&self) -> String {
        match self.kind {
            NoteKind::Failed => format!("error: {}", self.text),
            _ => self.text.clone(),
        }
    }

    /// Why figures must not be used, if they must not.
    pub(crate) fn doubt(&self) -> Option<String> {
        match (self.kind, &self.about) {
            (NoteKind::Invalid, about) => Some(led(about, &self.text)),
            (NoteKind::Failed, About::Traffic(name)) => {
                Some(format!("traffic '{name}' failed: {}", self.text))
            }
            (NoteKind::Failed, about) => Some(led(about, &format!("failed: {}", self.text))),
            _ => None,
        }
    }
}

/// The text behind the name of what it is of.
fn led(about: &About, text: &str) -> String {
    match about.name() {
        Some(name) => format!("{name}: {text}"),
        None => text.into(),
    }
}

/// A line for people, which begins with the name of what the note is of, or with the key in the scenario.
impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.kind {
            NoteKind::NoEffect => self.about.at_key(&self.text, f),
            NoteKind::Invalid => write!(f, "INVALID: {}", led(&self.about, &self.text)),
            _ => f.write_str(&led(&self.about, &self.words())),
        }
    }
}

impl From<Remark> for Note {
    fn from(remark: Remark) -> Note {
        Note { about: remark.about, kind: NoteKind::NoEffect, text: remark.text }
    }
}

/// The complaint about data that came out other than they went in, the same in every engine.
pub fn wrong_blocks(blocks: u64) -> Note {
    let text = format!(
        "{blocks} blocks accepted were not the next of the stream, so that the receiver has wrong data: losses and copies can deceive a protocol that knows a block by its number alone"
    );
    Note::failed(&text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_note_reads_as_a_line() {
        let failed = Note::of_traffic("bulk", NoteKind::Failed, "no answer");
        assert_eq!(failed.to_string(), "bulk: error: no answer");
        let late = Note::new(NoteKind::Invalid, "frames left late");
        assert_eq!(late.to_string(), "INVALID: frames left late");
        let late = late.about(About::Link("n>b".into()));
        assert_eq!(late.to_string(), "INVALID: n>b: frames left late");
    }

    #[test]
    fn what_has_no_effect_is_told_by_its_key() {
        let of = |about, text: &str| Note::new(NoteKind::NoEffect, text).about(about).to_string();
        assert_eq!(of(About::Traffic("t".into()), "band = 0 has"), "traffic.t.band = 0 has");
        assert_eq!(
            of(About::Axis("link.l.rate".into()), "has no effect"),
            "link.l.rate has no effect"
        );
    }

    #[test]
    fn a_note_is_written_with_its_fields() {
        let note = Note::of_traffic("bulk", NoteKind::NotCovered, "no formula covers it");
        let text = serde_json::to_string(&note).unwrap();
        assert_eq!(
            text,
            r#"{"about":{"traffic":"bulk"},"kind":"not-covered","text":"no formula covers it"}"#
        );
        assert_eq!(serde_json::from_str::<Note>(&text).unwrap(), note);
        let whole = serde_json::to_value(Note::new(NoteKind::Capture, "")).unwrap();
        assert_eq!(whole["about"], "whole");
    }

    #[test]
    fn only_an_engines_word_on_a_traffic_is_one() {
        let note = Note::of_traffic("t", NoteKind::Failed, "no answer");
        assert_eq!(note.word_on_traffic(), Some(("t", "error: no answer".into())));
        let remark = Note { kind: NoteKind::NoEffect, ..note.clone() };
        let of_host = note.about(About::Host("t".into()));
        assert_eq!((remark.word_on_traffic(), of_host.word_on_traffic()), (None, None));
    }
}
