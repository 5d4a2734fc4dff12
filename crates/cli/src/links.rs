//! Further paths in the same run, and the names of their far ends.

use crate::failure::Failure;
use crate::options::{one_speed, unambiguous};
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::str::FromStr;
use trunkline_dataplane::hosts::{addresses, machine_addresses};
use trunkline_scenario::{PathSpec, SettingError, Settings};

/// A further path as the command line gives it: words that are no setting first, then settings.
#[derive(Debug, Clone)]
pub struct ExtraLink {
    /// The first word.
    pub name: String,
    /// Words between the name and the settings.
    pub words: Vec<String>,
    /// The path described.
    pub path: PathSpec,
}

impl FromStr for ExtraLink {
    type Err = String;

    /// Reads `NAME setting=value …`; `preset=NAME` starts from a preset.
    fn from_str(text: &str) -> Result<ExtraLink, String> {
        let (settings, plain): (Vec<&str>, Vec<&str>) =
            text.split_whitespace().partition(|word| word.contains('='));
        let mut words = plain.into_iter().map(str::to_string);
        let name = words.next().filter(|name| is_name(name)).ok_or_else(|| {
            format!("'{text}' names no link: write a name of letters, digits and _ and its settings, such as 'satellite delay=270ms'")
        })?;
        let path = path_of(&settings)?;
        Ok(ExtraLink { name, words: words.collect(), path })
    }
}

/// The path that settings describe, of which `preset=NAME` is one.
fn path_of(settings: &[&str]) -> Result<PathSpec, String> {
    let told = |error: SettingError| error.to_string();
    let pairs: Result<Vec<_>, _> = settings.iter().map(|word| Settings::pair(word)).collect();
    let pairs = pairs.map_err(told)?;
    pairs.iter().try_for_each(|(name, value)| unambiguous(name, value))?;
    let given = |name: &str| pairs.iter().any(|(known, _)| *known == name);
    ["", "up-", "down-"].iter().try_for_each(|prefix| one_speed(prefix, given))?;
    let (presets, pairs): (Vec<_>, Vec<_>) = pairs.into_iter().partition(|it| it.0 == "preset");
    let mut chosen = Settings::of_one_source(pairs).map_err(told)?;
    let presets = Settings::of_one_source(presets).map_err(told)?;
    presets.iter().try_for_each(|(_, name)| chosen.start_from(name)).map_err(told)?;
    chosen.resolve().map_err(told)
}

/// The machine that all this runs on, in a program's arguments.
const MACHINE: &str = "host";

/// Refuses two links of one name, and names that stand for something else: that of the first path, which the others are
/// told from by name, and that of the machine.
pub fn check_names(first: &str, links: &[ExtraLink]) -> Result<(), Failure> {
    for (index, link) in links.iter().enumerate() {
        let taken = [first, MACHINE].contains(&&*link.name)
            || links[..index].iter().any(|other| other.name == link.name);
        if taken {
            return Err(Failure::wrong_use(format!(
                "--link {}: the name is taken: give each link a name of its own ('{first}' is the path outside of --link, '{MACHINE}' this machine)",
                link.name
            )));
        }
    }
    Ok(())
}

/// Refuses names of far hosts that programs cannot tell apart: variables have them in upper case, and `{peer6}` is the
/// first one's address.
pub fn check_far_names(links: &[ExtraLink]) -> Result<(), Failure> {
    for (index, link) in links.iter().enumerate() {
        let variable = variable_suffix(&link.name);
        if link.name == "peer6" {
            return Err(Failure::wrong_use(
                "--link peer6: the name is taken: {peer6} is the first peer's IPv6 address; choose another",
            ));
        }
        if links[..index].iter().any(|other| variable_suffix(&other.name) == variable) {
            return Err(Failure::wrong_use(format!(
                "--link {}: the name is taken: TRUNKLINE_PEER{variable} holds another link's address; choose one that differs \
                 in more than capitals",
                link.name
            )));
        }
    }
    Ok(())
}

/// The end of the names of the variables that hold the addresses of a far host.
pub fn variable_suffix(name: &str) -> String {
    format!("_{}", name.to_uppercase())
}

/// Refuses words that are neither the name nor settings, for paths between hosts that the laboratory makes.
pub fn check_words(links: &[ExtraLink]) -> Result<(), Failure> {
    links.iter().try_for_each(|link| match link.words.first() {
        None => Ok(()),
        Some(word) => Err(Failure::wrong_use(format!(
            "--link {}: '{word}' is no setting: write SETTING=VALUE, such as 'satellite delay=270ms rate=10mbit'",
            link.name
        ))),
    })
}

fn is_name(name: &str) -> bool {
    !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
}

/// Replaces `{peer}` by the address of the first far end, `{NAME}` by that of the one called so, and `{host}` by the
/// machine's.
///
/// A word that is no text keeps the bytes that are none.
pub fn fill_in(word: &OsStr, names: &[String]) -> OsString {
    let mut filled = Vec::new();
    for chunk in word.as_bytes().utf8_chunks() {
        filled.extend(text_filled_in(chunk.valid(), names).into_bytes());
        filled.extend(chunk.invalid());
    }
    OsString::from_vec(filled)
}

fn text_filled_in(word: &str, names: &[String]) -> String {
    let mut word = word.replace("{peer}", &addresses(0).far.to_string());
    word = word.replace("{peer6}", &addresses(0).far6.to_string());
    let braced = format!("{{{MACHINE}}}");
    word = word.replace(&braced, &machine_addresses().0.to_string());
    for (index, name) in names.iter().enumerate().filter(|(_, name)| !name.is_empty()) {
        word = word.replace(&format!("{{{name}}}"), &addresses(index).far.to_string());
    }
    word
}

#[cfg(test)]
mod tests {
    use super::*;
    use trunkline_core::Span;

    #[test]
    fn links_are_a_name_and_settings() {
        let link: ExtraLink = "satellite preset=geo-satellite up-delay=280ms".parse().unwrap();
        assert_eq!((link.name.as_str(), link.path.up.delay), ("satellite", Span::from_millis(280)));
        let link: ExtraLink = "satellite up-delay=280ms delay=270ms".parse().unwrap();
        let delays = (link.path.up.delay, link.path.down.delay);
        assert_eq!(delays, (Span::from_millis(280), Span::from_millis(270)));
        for bad in [
            "",
            "delay=3ms",
            "a/b delay=3ms",
            "sat delay=3",
            "sat nope=3",
            "sat preset=x25",
            "sat preset=dsl preset=lte",
            "sat delay=3ms delay=4ms",
            "sat limit=100",
        ] {
            assert!(bad.parse::<ExtraLink>().is_err(), "{bad}");
        }
    }

    #[test]
    fn names_become_addresses() {
        let names = ["peer".to_string(), "satellite".to_string()];
        let filled = |word: &[u8]| fill_in(OsStr::from_bytes(word), &names).into_vec();
        assert_eq!(filled(b"{peer}:{satellite}/{other}"), b"10.77.0.1:10.77.1.1/{other}");
        assert_eq!(filled(b"http://{host}:3000/"), b"http://10.77.0.254:3000/");
        assert_eq!(filled(b"caf\xe9 {peer} \xff"), b"caf\xe9 10.77.0.1 \xff");
    }
}
