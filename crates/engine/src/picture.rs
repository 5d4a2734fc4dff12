//! What a run has drawn of itself.

use serde::{Deserialize, Serialize};

/// A picture of a part of a run, and the record from which it was made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Picture {
    /// What it is of: a name of the scenario.
    pub name: String,
    /// What it shows, in a sentence or two.
    pub about: String,
    /// The picture, a whole SVG element.
    pub svg: String,
    /// The record in the Trace Event Format of Chrome, which ui.perfetto.dev opens.
    pub trace: String,
}
