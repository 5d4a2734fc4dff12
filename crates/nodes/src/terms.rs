//! What all nodes of a cluster must have alike, as they tell each other while they meet.

use crate::NodesError;
use trunkline_transport::cstar::{Frame, NodeId};

/// Octets with which a word or a frame begins: no text has one.
pub(crate) const BEGINNINGS: u8 = 1;
/// The version of what nodes say to each other while they meet. In version 1, of which they told nothing, a node said
/// hello to all others again and again, and nobody was answered by one that had begun.
const GREETINGS: u8 = 2;
/// Most octets of the terms.
pub(crate) const MOST: usize = 1000;

/// What all nodes of a cluster must have alike: names and values, in the order in which they are compared.
///
/// Nodes that start with different ones would wait for each other for ever, or take each other's frames for what they are
/// not.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Terms(Vec<(String, String)>);

impl Terms {
    /// These, behind the versions of frames and greetings. What is longer than a thousand octets is not told.
    pub fn new(pairs: impl IntoIterator<Item = (String, String)>) -> Terms {
        let version = |of: &str, version: u8| (format!("the version of {of}"), version.to_string());
        let versions = [version("frames", Frame::VERSION), version("greetings", GREETINGS)];
        Terms(versions.into_iter().chain(pairs).collect())
    }

    /// Adds what the message layer demands, behind what the program does.
    pub(crate) fn add(&mut self, layer: Vec<(&'static str, String)>) {
        if self.0.is_empty() {
            *self = Terms::new([]);
        }
        self.0.extend(layer.into_iter().map(|(name, value)| (name.to_owned(), value)));
    }

    /// As they are told: a line for each.
    pub(crate) fn text(&self) -> String {
        let plain = |text: &str| text.replace(|it: char| it.is_control() || it == '=', " ");
        let line = |(name, value): &(String, String)| format!("{}={}", plain(name), plain(value));
        let mut text = self.0.iter().map(line).collect::<Vec<_>>().join("\n");
        let end = (0..=text.len().min(MOST)).rev().find(|&end| text.is_char_boundary(end));
        text.truncate(end.unwrap_or(0));
        text
    }

    /// Compares them with what a peer tells.
    ///
    /// # Errors
    /// The first in which it differs.
    pub(crate) fn compare(&self, peer: NodeId, told: &str) -> Result<(), NodesError> {
        let own = self.text();
        if own == told {
            return Ok(());
        }
        if told.is_empty() || own.is_empty() {
            return Err(NodesError::Mute { peer });
        }
        let pairs = |text: &str| -> Vec<(String, String)> {
            text.lines()
                .filter_map(|it| it.split_once('='))
                .map(|(a, b)| (a.into(), b.into()))
                .collect()
        };
        let (own, told) = (pairs(&own), pairs(told));
        let of = |all: &[(String, String)], name: &str| {
            let value = all.iter().find(|it| it.0 == name).map(|it| it.1.clone());
            value.unwrap_or_else(|| "none".into())
        };
        let names = own.iter().chain(&told).map(|it| &it.0);
        let mut unlike = names.filter(|name| of(&own, name) != of(&told, name));
        match unlike.next() {
            Some(name) => {
                let (own, theirs) = (of(&own, name), of(&told, name));
                Err(NodesError::Unlike { peer, name: name.clone(), theirs, own })
            }
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn terms(pairs: &[(&str, &str)]) -> Terms {
        Terms::new(pairs.iter().map(|&(name, value)| (name.into(), value.into())))
    }

    #[test]
    fn the_first_that_differs_is_told() {
        let own = terms(&[("--test", "flood"), ("words", "2")]);
        let says =
            |other: &Terms| own.compare(NodeId(3), &other.text()).map_err(|it| it.to_string());
        assert_eq!(says(&own.clone()), Ok(()));
        let said = says(&terms(&[("--test", "flood"), ("words", "3")])).unwrap_err();
        assert!(said.contains("node 3 has words = 3, and this node 2"), "{said}");
        let said = says(&terms(&[("--test", "latency"), ("rounds", "3")])).unwrap_err();
        assert!(said.contains("--test = latency"), "{said}");
        let said =
            says(&terms(&[("--test", "flood"), ("words", "2"), ("lease", "1s")])).unwrap_err();
        assert!(said.contains("lease = 1s, and this node none"), "{said}");
        let said = says(&Terms::default()).unwrap_err();
        assert!(said.contains("node 3 tells nothing of its settings"), "{said}");
    }

    /// A node of the first version of greetings tells none.
    #[test]
    fn another_version_of_greetings_is_told() {
        let own = terms(&[("--test", "flood")]);
        let text = own.text();
        let first: Vec<&str> = text.lines().filter(|it| !it.contains("greetings")).collect();
        let said = own.compare(NodeId(3), &first.join("\n")).unwrap_err().to_string();
        let says = "node 3 has the version of greetings = none, and this node 2";
        assert!(said.contains(says), "{said}");
    }

    /// Whatever stands in them, they are one word on the wire.
    #[test]
    fn terms_hold_nothing_with_which_something_begins() {
        let odd = terms(&[("a=b\0", "\u{1}c\n"), ("long", &"ä".repeat(1000))]);
        let text = odd.text();
        assert!(text.len() <= MOST && text.bytes().all(|it| it > BEGINNINGS), "{text}");
        assert!(odd.compare(NodeId(0), &text).is_ok());
    }
}
