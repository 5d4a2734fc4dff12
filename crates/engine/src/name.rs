//! The names of engines.

use serde::{Deserialize, Serialize};
use std::cmp::Ordering;
use std::fmt;
use std::str::FromStr;
use thiserror::Error;

/// Bytes of the longest name.
const LONGEST: usize = 16;

/// The name of an engine, as it stands on the command line, in studies, headings and files.
///
/// Any engine may have a name of its own. Those that others refer to are constants; they come first, in the order in
/// which one would ask them: formulas, virtual time, real time.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct EngineName {
    /// The name, then zeros.
    bytes: [u8; LONGEST],
}

/// The reason why a text is no engine's name.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("'{found}' is no engine's name: write 1 to 16 of a-z, 0-9 and -, as in sim")]
pub struct EngineNameError {
    /// The text.
    found: String,
}

impl EngineName {
    /// Closed formulas.
    pub const MODEL: EngineName = EngineName::known("model");
    /// Virtual time.
    pub const SIM: EngineName = EngineName::known("sim");
    /// Real time, real packets.
    pub const EMU: EngineName = EngineName::known("emu");

    const FIRST: [EngineName; 3] = [EngineName::MODEL, EngineName::SIM, EngineName::EMU];

    /// A name that is written in the program.
    const fn known(name: &str) -> EngineName {
        let (name, mut bytes, mut at) = (name.as_bytes(), [0; LONGEST], 0);
        while at < name.len() {
            bytes[at] = name[at];
            at += 1;
        }
        EngineName { bytes }
    }

    /// The name as text.
    pub fn as_str(&self) -> &str {
        let length = self.bytes.iter().position(|&byte| byte == 0).unwrap_or(LONGEST);
        // All bytes are ASCII: no other way makes a name.
        std::str::from_utf8(&self.bytes[..length]).unwrap_or_default()
    }

    /// Its place before all others, then the name itself.
    fn rank(&self) -> (usize, &str) {
        let first = EngineName::FIRST.iter().position(|name| name == self);
        (first.unwrap_or(EngineName::FIRST.len()), self.as_str())
    }
}

impl FromStr for EngineName {
    type Err = EngineNameError;

    fn from_str(text: &str) -> Result<EngineName, EngineNameError> {
        let fits = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
        match (1..=LONGEST).contains(&text.len()) && text.bytes().all(fits) {
            true => Ok(EngineName::known(text)),
            false => Err(EngineNameError { found: text.escape_default().to_string() }),
        }
    }
}

impl TryFrom<String> for EngineName {
    type Error = EngineNameError;

    fn try_from(text: String) -> Result<EngineName, EngineNameError> {
        text.parse()
    }
}

impl From<EngineName> for String {
    fn from(name: EngineName) -> String {
        name.as_str().into()
    }
}

impl Ord for EngineName {
    fn cmp(&self, other: &EngineName) -> Ordering {
        self.rank().cmp(&other.rank())
    }
}

impl PartialOrd for EngineName {
    fn partial_cmp(&self, other: &EngineName) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl fmt::Display for EngineName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl fmt::Debug for EngineName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    #[test]
    fn the_known_come_first_and_others_by_name() {
        let mut names: Vec<EngineName> =
            ["fluid", "emu", "sim", "a", "model"].map(|name| name.parse().unwrap()).into();
        names.sort();
        assert_eq!(format!("{names:?}"), "[model, sim, emu, a, fluid]");
        assert_eq!(format!("{:<5}|", EngineName::SIM), "sim  |");
    }

    #[test]
    fn a_name_is_written_as_its_text() {
        let by_name = BTreeMap::from([(EngineName::EMU, 1)]);
        let text = serde_json::to_string(&by_name).unwrap();
        assert_eq!(text, r#"{"emu":1}"#);
        assert_eq!(serde_json::from_str::<BTreeMap<EngineName, u8>>(&text).unwrap(), by_name);
    }

    #[test]
    fn what_is_no_name_is_refused_in_one_line() {
        for text in ["", "Sim", "two words", "seventeen-letters", "si\nm", "sím"] {
            let told = text.parse::<EngineName>().unwrap_err().to_string();
            assert!(told.contains("no engine's name") && !told.contains('\n'), "{told}");
        }
        assert!("sixteen-letters-".parse::<EngineName>().is_ok());
    }
}
