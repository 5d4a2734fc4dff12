//! Words of other programs that this command line does not have, and what to write instead.

use crate::{options, programs};
use clap::error::{ContextKind, ContextValue, ErrorKind};
use std::path::Path;

/// Options of `tc`, netem, mahimahi, iperf3, Docker, comcast and others, with the same here: the verb that they stand behind
/// ("" for any, "-" for none), the option, and what to write.
const OPTIONS: [(&str, &str, &str); 57] = [
    ("", "--corrupt", "write --bit-errors 1e-6: a damaged packet fails its check and is dropped"),
    ("", "--gap", "write --reorder 1%:5ms: a share of the packets is held back by a time"),
    (
        "",
        "--distribution",
        "write --jitter independent:normal:3ms, or correlated:…, or exponential",
    ),
    ("", "--slot", "write --trace FILE: opportunities for delivery, by the millisecond"),
    ("", "--ecn", "it goes with the queue: --queue fq-codel:ecn=true"),
    ("", "--uplink", "write --up-trace, --up-loss, --up-rate and so on"),
    ("", "--downlink", "write --down-trace, --down-loss, --down-rate and so on"),
    ("", "--bitrate", "write --rate 10mbit"),
    ("run", "--time", DURATION),
    ("", "--time", "the program decides: iperf3 -t, timeout 10s PROGRAM"),
    ("", "--rm", "nothing is left of a run: leave it out"),
    ("", "--network", "every shell has a network of its own: leave it out, or --no-outside"),
    ("", "--name", "write --link 'NAME delay=…' for a further far host"),
    ("", "--rtt", "write --delay 50ms for a round trip of 100 ms: a delay is one way"),
    ("", "--round-trip", "write --delay 50ms for a round trip of 100 ms: a delay is one way"),
    ("", "--packet-loss", "write --loss 5%"),
    ("", "--drop", "write --loss 5%"),
    ("", "--buffer", "write --limit 64KiB, or --limit 100p for packets"),
    ("", "--queue-limit", "write --limit 64KiB, or --limit 100p for packets"),
    ("", "--queue-size", "write --limit 64KiB, or --limit 100p for packets"),
    ("", "--queue-args", "write --queue KIND:KEY=VALUE, and --limit 100p for packets"),
    ("", "--uplink-queue", "write --up-queue fifo --up-limit 100p"),
    ("", "--downlink-queue", "write --down-queue fifo --down-limit 100p"),
    ("", "--qdisc", "write --queue fq-codel; --queue help lists all"),
    ("", "--aqm", "write --queue fq-codel; --queue help lists all"),
    ("", "--target-bw", "write --rate 1Mbit/s"),
    ("", "--throughput", "write --rate 1Mbit/s"),
    ("", "--ttl", "write timeout 10s trunkline …: the path ends with its run"),
    ("", "--device", BETWEEN),
    ("", "--dev", BETWEEN),
    ("", "--interface", BETWEEN),
    ("", "--iface", BETWEEN),
    (
        "",
        "--container",
        "publish the container's port and use host.trunkline, or run trunkline in the container",
    ),
    ("", "--netns", "write ip netns exec NAME trunkline shell …, which is then the machine's side"),
    ("", "--ns", "write ip netns exec NAME trunkline shell …, which is then the machine's side"),
    ("shell", "-c", "write trunkline shell -- sh -c '…'"),
    ("shell", "-d", "write --delay 50ms; it runs in the foreground as long as the program does"),
    ("shell", "-e", "write env NAME=VALUE in front of the program"),
    ("shell", "-i", "leave it out: the terminal is the program's"),
    ("shell", "-u", "write trunkline shell -- su USER -c '…', or setpriv"),
    ("run", "-t", DURATION),
    ("run", "--duration", DURATION),
    ("run", "--output", "write --out DIR"),
    ("run", "--format", FORMS),
    ("run", "--csv", FORMS),
    ("run", "--plot", FORMS),
    ("run", "--dry-run", "write trunkline predict FILE: nothing is run"),
    ("-", "--dry-run", "write trunkline predict FILE: nothing is run"),
    ("-", "--stop", "Ctrl-C where the path runs: it takes everything down"),
    ("-", "-c", "write trunkline probe bulk HOST, or trunkline shell -- iperf3 -c {peer}"),
    ("-", "-s", "write trunkline serve"),
    ("-", "-v", "write trunkline --version; TRUNKLINE_LOG=debug tells more of what is done"),
    ("", "-v", INSIDES),
    ("", "--verbose", INSIDES),
    ("", "--debug", INSIDES),
    (
        "explain",
        "--what-if",
        "write the values into the file as a list: rate = [\"10Mbit/s\", \"20Mbit/s\"]",
    ),
    ("doctor", "--fix", "it changes nothing: the remedies are yours to carry out"),
];
const DURATION: &str =
    "the file says how long: duration = \"10s\" of a [[traffic]], stop_after for the whole";
const FORMS: &str = "write --out DIR for a page, charts and CSV files, or --json";
const BETWEEN: &str =
    "write trunkline bridge A B …: a path joins two interfaces; trunkline shell makes its own";
const INSIDES: &str = "write TRUNKLINE_LOG=debug trunkline …";
/// First words of other programs, in the same form.
const VERBS: [(&str, &str, &str); 52] = [
    ("probe", "rrul", "trunkline probe load HOST"),
    ("probe", "load-test", "trunkline probe load HOST"),
    ("probe", "ping", "trunkline probe rtt HOST"),
    ("probe", "latency", "trunkline probe rtt HOST"),
    ("probe", "delay", "trunkline probe rtt HOST"),
    ("probe", "irtt", "trunkline probe rtt HOST"),
    ("probe", "bandwidth", "trunkline probe bulk HOST"),
    ("probe", "throughput", "trunkline probe bulk HOST"),
    ("probe", "iperf3", "trunkline probe bulk HOST"),
    (
        "study",
        "new",
        "a directory with a study.toml (docs/studies.md), then trunkline study run DIR",
    ),
    ("", "add", "trunkline shell --delay 50ms -- PROGRAM, or trunkline bridge A B --delay 50ms"),
    (
        "",
        "check",
        "trunkline predict FILE, which reads a scenario and runs nothing, or trunkline doctor for this machine",
    ),
    ("", "client", "trunkline probe bulk HOST"),
    ("", "del", "Ctrl-C where the path runs: it takes everything down"),
    ("", "emu", "trunkline run FILE --engine emu, or trunkline shell -- PROGRAM"),
    ("", "emulate", "trunkline run FILE --engine emu, or trunkline shell -- PROGRAM"),
    ("", "kill", "Ctrl-C where the path runs, or kill its process: trunkline show names it"),
    ("", "list", "trunkline presets, trunkline study list, or trunkline show for what runs"),
    ("", "mm-delay", "trunkline shell --delay 50ms -- PROGRAM"),
    ("", "mm-link", "trunkline shell --up-trace FILE --down-trace FILE -- PROGRAM"),
    ("", "mm-loss", "trunkline shell --up-loss 1% -- PROGRAM"),
    ("", "model", "trunkline predict FILE"),
    ("", "server", "trunkline serve"),
    ("", "sim", "trunkline run FILE --engine sim"),
    ("", "simulate", "trunkline run FILE --engine sim"),
    ("", "start", "trunkline shell -- PROGRAM, or trunkline bridge A B"),
    ("", "status", "trunkline show"),
    ("", "stop", "Ctrl-C where the path runs, or kill its process: trunkline show names it"),
    ("", "netem", "trunkline shell --delay 50ms --loss 1% -- PROGRAM"),
    ("", "qdisc", "trunkline shell --delay 50ms --queue fq-codel -- PROGRAM"),
    ("", "exec", "trunkline shell -- PROGRAM"),
    ("", "ps", "trunkline show"),
    ("", "change", "trunkline set delay=80ms"),
    ("", "replace", "trunkline set delay=80ms"),
    ("", "rrul", "trunkline probe load HOST, or trunkline demo"),
    ("", "delay", "trunkline shell --delay 50ms -- PROGRAM"),
    ("", "latency", "trunkline shell --delay 50ms -- PROGRAM"),
    ("", "loss", "trunkline shell --loss 1% -- PROGRAM"),
    ("", "rate", "trunkline shell --rate 10mbit -- PROGRAM"),
    ("", "toxic", "trunkline set delay=80ms beside a running trunkline shell"),
    ("", "create", "trunkline shell --publish 8080:80 --delay 50ms -- SERVER"),
    (
        "",
        "attach",
        "trunkline bridge A B --delay 50ms for two interfaces, or trunkline shell -- PROGRAM",
    ),
    (
        "",
        "docker",
        "trunkline shell -- PROGRAM, and host.trunkline for a container's published port",
    ),
    ("", "bench", "trunkline verify, or trunkline calibrate"),
    ("", "benchmark", "trunkline verify, or trunkline calibrate"),
    ("", "tune", "trunkline doctor"),
    ("", "setup", "trunkline doctor"),
    ("", "up", "trunkline shell -- PROGRAM, or trunkline bridge A B"),
    ("", "down", "Ctrl-C where the path runs: it takes everything down"),
    ("", "plot", "trunkline run FILE --out DIR"),
    (
        "",
        "compare",
        "trunkline ladder FILE for the engines, or a list of values in FILE for settings",
    ),
    (
        "",
        "sweep",
        "a list of values in FILE, such as delay = [\"10ms\", \"50ms\"], then trunkline run FILE",
    ),
];
/// What a verb needs that got none of it.
const NEEDS: [(&str, &str); 9] = [
    ("run", "write trunkline run FILE.toml; trunkline demo --print is such a file"),
    ("predict", "write trunkline predict FILE.toml; trunkline demo --print is such a file"),
    ("explain", "write trunkline explain FILE.toml; trunkline demo --print is such a file"),
    ("ladder", "write trunkline ladder FILE.toml, or a directory of such files"),
    ("bridge", "write trunkline bridge eth1 eth2 --delay 50ms"),
    ("set", "write trunkline set delay=80ms"),
    ("send", "write trunkline send FILE CODE@HOST; `trunkline receive` prints the code"),
    ("completions", "write trunkline completions bash, zsh or fish"),
    ("probe", "write trunkline probe rtt HOST, where `trunkline serve` runs"),
];

/// Whether all that is missing are options: `--out <DIR>`, not `<FILE>`.
fn lacks_options_alone(error: &clap::Error) -> bool {
    let Some(ContextValue::Strings(missing)) = error.get(ContextKind::InvalidArg) else {
        return false;
    };
    missing.iter().all(|argument| argument.starts_with("--"))
}

/// What to write instead of what the command line does not take, if that is known.
pub fn instead(error: &clap::Error) -> Option<String> {
    let word = |kind| match error.get(kind) {
        Some(ContextValue::String(word)) => Some(word.as_str()),
        _ => None,
    };
    let behind = verb(error).unwrap_or_else(|| "-".to_owned());
    match error.kind() {
        ErrorKind::UnknownArgument => {
            let word = word(ContextKind::InvalidArg)?;
            let option = word.split('=').next().unwrap_or(word);
            let known = of(&OPTIONS, &behind, option).map(str::to_owned);
            known.or_else(|| setting(&behind, option)).or_else(|| misplaced(&behind, word))
        }
        ErrorKind::InvalidSubcommand => {
            let verb = word(ContextKind::InvalidSubcommand)?;
            if verb == "version" {
                return Some("write trunkline --version".to_owned());
            }
            let known = of(&VERBS, &behind, verb).map(str::to_owned);
            let file = is_scenario(verb).then(|| format!("trunkline run {verb}"));
            let study = || (behind == "study").then(|| format!("trunkline study show {verb}"));
            let program =
                || programs::is_there(verb).ok().map(|()| format!("trunkline shell -- {verb} …"));
            let text = known.or(file).or_else(study).or_else(program);
            text.map(|text| format!("write {text}"))
        }
        // What is missing is an option that another needs, and the message names it.
        ErrorKind::MissingRequiredArgument if lacks_options_alone(error) => None,
        ErrorKind::MissingRequiredArgument
        | ErrorKind::WrongNumberOfValues
        | ErrorKind::TooFewValues => {
            let needs = NEEDS.iter().find(|(verb, _)| *verb == behind);
            needs.map(|(_, text)| (*text).to_owned())
        }
        _ => None,
    }
}

/// The text of `word` behind the verb `behind`.
fn of(list: &[(&str, &str, &'static str)], behind: &str, word: &str) -> Option<&'static str> {
    let fits = |verb: &str| verb.is_empty() || verb == behind;
    list.iter().find(|(verb, known, _)| *known == word && fits(verb)).map(|(.., text)| *text)
}

/// The verb of a command line that is refused, without one below it.
fn verb(error: &clap::Error) -> Option<String> {
    let Some(ContextValue::StyledStr(usage)) = error.get(ContextKind::Usage) else { return None };
    let usage = usage.to_string();
    let word = usage.split_whitespace().skip_while(|word| *word == "Usage:").nth(1)?;
    word.starts_with(char::is_alphabetic).then(|| word.to_owned())
}

/// A setting of a path where none stands.
fn setting(behind: &str, option: &str) -> Option<String> {
    let name = option.strip_prefix("--")?;
    if !options::is_setting(name) {
        return None;
    }
    match behind {
        "set" => Some(format!("write trunkline set {name}=VALUE")),
        "run" | "predict" | "explain" | "ladder" => Some(format!(
            "it stands in the file (docs/scenario.md); trunkline shell {option} … -- PROGRAM takes it here"
        )),
        "-" => Some(format!(
            "write trunkline shell {option} … -- PROGRAM, or trunkline bridge A B {option} …"
        )),
        _ => None,
    }
}

/// What is wrong with a word that no verb takes in its place.
fn misplaced(behind: &str, word: &str) -> Option<String> {
    let digits = |text: &str| text.starts_with(|it: char| it.is_ascii_digit());
    match (behind, word.strip_prefix('-')) {
        (_, Some(rest)) if digits(rest) => Some("no option takes a number below zero".into()),
        ("presets", None) => {
            Some("it lists all; trunkline shell --preset NAME -- PROGRAM takes one".into())
        }
        ("show", None) => Some("write --pid PID for one of several runs".into()),
        ("verify" | "calibrate", None) if is_scenario(word) => {
            Some("it takes no file; trunkline run FILE runs a scenario".into())
        }
        (_, None) if is_scenario(word) => {
            Some("it takes one file: `trunkline ladder DIR` runs those of a directory".into())
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
        for (behind, option, text) in OPTIONS {
            let verb = match behind {
                "" => &["shell"][..],
                "-" => &[],
                other => &[other],
            };
            let words = [verb, &[option, "5", "true"]].concat();
            assert_eq!(told(&words).as_deref(), Some(text), "{words:?}");
        }
        assert!(told(&["shell", "--corrupt=1%", "true"]).is_some());
        assert!(told(&["--device=eth0", "--latency=250"]).unwrap().contains("trunkline bridge"));
        for (behind, word, text) in VERBS {
            let words = [behind, word, "x"].into_iter().filter(|it| !it.is_empty());
            let words: Vec<&str> = words.collect();
            assert_eq!(told(&words), Some(format!("write {text}")), "{words:?}");
        }
        assert_eq!(told(&["sh", "-c", "true"]).as_deref(), Some("write trunkline shell -- sh …"));
        assert_eq!(told(&["shell", "--nonsense", "true"]), None);
        assert_eq!(told(&["nonsense"]), None);
        assert_eq!(told(&["version"]).as_deref(), Some("write trunkline --version"));
        assert_eq!(told(&["x.toml"]).as_deref(), Some("write trunkline run x.toml"));
    }

    #[test]
    fn words_in_the_wrong_place_are_told_the_right_one() {
        for (words, says) in [
            (&["run", "a.toml", "b.toml"][..], "trunkline ladder DIR"),
            (&["run", "a.toml", "--seed", "-1"], "below zero"),
            (&["--delay", "5ms", "ping"], "trunkline shell --delay … -- PROGRAM"),
            (&["--bw", "5mbit", "ping"], "trunkline shell --bw … -- PROGRAM"),
            (&["set", "--delay", "5ms"], "trunkline set delay=VALUE"),
            (&["set", "--up-delay", "5ms"], "trunkline set up-delay=VALUE"),
            (&["run", "a.toml", "--loss", "1%"], "it stands in the file"),
            (&["presets", "dsl"], "--preset NAME"),
            (&["show", "4711"], "--pid PID"),
            (&["study", "hawley1989"], "trunkline study show hawley1989"),
        ] {
            let told = told(words).unwrap_or_default();
            assert!(told.contains(says), "{words:?}: {told}");
        }
    }

    #[test]
    fn a_verb_without_what_it_needs_shows_an_example() {
        for (verb, text) in NEEDS {
            let words = if verb == "probe" { vec![verb, "rtt"] } else { vec![verb] };
            assert_eq!(told(&words).as_deref(), Some(text), "{verb}");
        }
    }
}
