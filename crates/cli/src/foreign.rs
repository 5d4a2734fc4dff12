//! Words of other programs that this command line does not have, and what to write instead.

use crate::programs;
use clap::error::{ContextKind, ContextValue, ErrorKind};

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
const VERBS: [(&str, &str); 6] = [
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
            let option = word(ContextKind::InvalidArg)?;
            of(&OPTIONS, option.split('=').next().unwrap_or(option))
        }
        ErrorKind::InvalidSubcommand => {
            let verb = word(ContextKind::InvalidSubcommand)?;
            let program =
                || programs::is_there(verb).ok().map(|()| format!("trunkline shell -- {verb} …"));
            of(&VERBS, verb).or_else(program).map(|text| format!("write {text}"))
        }
        _ => None,
    }
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
    }
}
