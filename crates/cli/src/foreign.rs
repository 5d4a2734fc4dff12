//! Words of other programs that this command line does not have, and what to write instead.

use crate::programs;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use std::path::Path;

/// Options of `tc`, netem, mahimahi, iperf3 and Docker, with the same here.
const OPTIONS: [(&str, &str); 12] = [
    ("--corrupt", "write --bit-errors 1e-6: a damaged packet fails its check and is dropped"),
    ("--gap", "write --reorder 1%:5ms: a share of the packets is held back by a time"),
    ("--distribution", "write --jitter independent:normal:3ms, or correlated:…, or exponential"),
    ("--slot", "write --trace FILE: opportunities for delivery, by the millisecond"),
    ("--ecn", "it goes with the queue: --queue fq-codel:ecn=true"),
    ("--uplink", "write --up-trace, --up-loss, --up-rate and so on"),
    ("--downlink", "write --down-trace, --down-loss, --down-rate and so on"),
    ("--bitrate", "write --rate 10mbit"),
    ("--time", "the program decides: iperf3 -t, timeout 10s PROGRAM"),
    ("--rm", "nothing is left of a run: leave it out"),
    ("--network", "every shell has a network of its own: leave it out, or --no-outside"),
    ("--name", "write --link 'NAME delay=…' for a further far host"),
];
/// First words of other programs.
const VERBS: [(&str, &str); 24] = [
    ("add", "trunkline shell --delay 50ms -- PROGRAM, or trunkline bridge A B --delay 50ms"),
    ("check", "trunkline doctor"),
    ("client", "trunkline probe bulk HOST"),
    ("del", "Ctrl-C where the path runs: it takes everything down"),
    ("emu", "trunkline run FILE --engine emu, or trunkline shell -- PROGRAM"),
    ("emulate", "trunkline run FILE --engine emu, or trunkline shell -- PROGRAM"),
    ("kill", "Ctrl-C where the path runs, or kill its process: trunkline show names it"),
    ("list", "trunkline presets, trunkline study list, or trunkline show for what runs"),
    ("mm-delay", "trunkline shell --delay 50ms -- PROGRAM"),
    ("mm-link", "trunkline shell --up-trace FILE --down-trace FILE -- PROGRAM"),
    ("mm-loss", "trunkline shell --up-loss 1% -- PROGRAM"),
    ("model", "trunkline predict FILE"),
    ("server", "trunkline serve"),
    ("sim", "trunkline run FILE --engine sim"),
    ("simulate", "trunkline run FILE --engine sim"),
    ("start", "trunkline shell -- PROGRAM, or trunkline bridge A B"),
    ("status", "trunkline show"),
    ("stop", "Ctrl-C where the path runs, or kill its process: trunkline show names it"),
    ("netem", "trunkline shell --delay 50ms --loss 1% -- PROGRAM"),
    ("qdisc", "trunkline shell --delay 50ms --queue fq-codel -- PROGRAM"),
    ("exec", "trunkline shell -- PROGRAM"),
    ("ps", "trunkline show"),
    ("change", "trunkline set delay=80ms"),
    ("replace", "trunkline set delay=80ms"),
];

/// What to write instead of what the command line does not take, if that is known.
pub fn instead(error: &clap::Error) -> Option<String> {
    let word = |kind| match error.get(kind) {
        Some(ContextValue::String(word)) => Some(word.as_str()),
        _ => None,
    };
    let of = |list: &[(&str, &str)], word: &str| {
        list.iter().find(|(known, _)| *known == word).map(|(_, text)| (*text).to_owned())
    };
    match error.kind() {
        ErrorKind::UnknownArgument => {
            let word = word(ContextKind::InvalidArg)?;
            let option = of(&OPTIONS, word.split('=').next().unwrap_or(word));
            option.or_else(|| misplaced(word).map(str::to_owned))
        }
        ErrorKind::InvalidSubcommand => {
            let verb = word(ContextKind::InvalidSubcommand)?;
            if verb == "version" {
                return Some("write trunkline --version".to_owned());
            }
            let file = is_scenario(verb).then(|| format!("trunkline run {verb}"));
            let program =
                || programs::is_there(verb).ok().map(|()| format!("trunkline shell -- {verb} …"));
            of(&VERBS, verb).or(file).or_else(program).map(|text| format!("write {text}"))
        }
        _ => None,
    }
}

/// What is wrong with a word that no verb takes in its place.
fn misplaced(word: &str) -> Option<&'static str> {
    let digits = |text: &str| text.starts_with(|it: char| it.is_ascii_digit());
    match word.strip_prefix('-') {
        Some(rest) if digits(rest) => Some("no option takes a number below zero"),
        None if is_scenario(word) => {
            Some("it takes one file: `trunkline ladder DIR` runs those of a directory")
        }
        _ => None,
    }
}

fn is_scenario(word: &str) -> bool {
    Path::new(word).extension().is_some_and(|ending| ending == "toml")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Cli;
    use clap::Parser;

    fn told(words: &[&str]) -> Option<String> {
        let words = ["trunkline"].iter().chain(words);
        instead(&Cli::try_parse_from(words).err()?)
    }

    #[test]
    fn foreign_words_have_their_own_here() {
        for (option, text) in OPTIONS {
            assert_eq!(told(&["shell", option, "5", "true"]).as_deref(), Some(text), "{option}");
        }
        assert!(told(&["shell", "--corrupt=1%", "true"]).is_some());
        for (verb, text) in VERBS {
            assert_eq!(told(&[verb, "x"]), Some(format!("write {text}")), "{verb}");
        }
        assert_eq!(told(&["sh", "-c", "true"]).as_deref(), Some("write trunkline shell -- sh …"));
        assert_eq!(told(&["shell", "--nonsense", "true"]), None);
        assert_eq!(told(&["nonsense"]), None);
        assert_eq!(told(&["version"]).as_deref(), Some("write trunkline --version"));
        assert_eq!(told(&["x.toml"]).as_deref(), Some("write trunkline run x.toml"));
        assert!(told(&["run", "a.toml", "b.toml"]).unwrap().contains("trunkline ladder DIR"));
        assert!(told(&["run", "a.toml", "--seed", "-1"]).unwrap().contains("below zero"));
    }
}
