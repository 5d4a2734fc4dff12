//! Wrong use: one line that names cause and remedy, the right exit status, and nothing left behind.

use crate::support::{Host, Outcome};

/// Arguments before `-- COMMAND`, the exit status, and words that the line must hold.
type Case<'a> = (&'a [&'a str], i32, &'a [&'a str]);

fn check(host: &Host, arguments: &[&str], status: i32, words: &[&str]) -> Outcome {
    let outcome = host.run(arguments);
    assert_eq!(outcome.status.code(), Some(status), "{arguments:?}: {outcome:#?}");
    let complaint = outcome.complaint();
    for word in words {
        assert!(complaint.contains(word), "{arguments:?}: no '{word}' in: {complaint}");
    }
    outcome
}

/// Refused before anything is built: the line is all there is.
fn check_refused(host: &Host, arguments: &[&str], status: i32, words: &[&str]) {
    let outcome = check(host, arguments, status, words);
    assert_eq!(outcome.stderr.lines().count(), 1, "{arguments:?}: {outcome:#?}");
    assert_eq!(outcome.stdout, "", "{arguments:?}");
}

fn check_paths(cases: &[Case<'_>]) {
    let host = Host::beside();
    for (path, status, words) in cases {
        let arguments = [&["shell"], *path, &["--", "true"]].concat();
        check_refused(&host, &arguments, *status, words);
    }
}

/// A file of the test's own with this content.
fn file(name: &str, content: &str) -> String {
    let path = format!("{}/{name}", env!("CARGO_TARGET_TMPDIR"));
    std::fs::write(&path, content).unwrap();
    path
}

#[test]
fn help_of_queues_lists_all_with_their_keys() {
    let host = Host::beside();
    let outcome = host.run(&["shell", "--queue", "help", "--", "true"]);
    assert_eq!((outcome.status.code(), outcome.stderr.as_str()), (Some(0), ""), "{outcome:#?}");
    assert_eq!(outcome.stdout, trunkline_path::discipline::help());
}

#[test]
fn quantities() {
    check_paths(&[
        (&["--delay", "3"], 2, &["--delay", "'3'", "no unit", "250ms"]),
        (&["--delay", "-3ms"], 2, &["--delay", "'-3ms'", "negative"]),
        (&["--delay", "3parsec"], 2, &["--delay", "parsec", "ns, us, ms"]),
        (&["--delay", "61min"], 2, &["up: ", "3600s"]),
        (&["--delay", ""], 2, &["--delay", "such as"]),
        (&["--delay", "99999999999999999999s"], 2, &["--delay", "out of range"]),
        (&["--up-delay", "1"], 2, &["--up-delay", "no unit"]),
        (&["--rate", "10"], 2, &["--rate", "no unit", "10Mbit/s"]),
        (&["--rate", "10M"], 2, &["--rate", "bits to some", "10Mbit/s", "10MB/s"]),
        (&["--rate", "1gbps"], 2, &["--rate", "1Gbit/s", "1GB/s"]),
        (&["--loss", "5"], 2, &["--loss", "write 5%"]),
        (&["--loss", "101"], 2, &["--loss", "out of range"]),
        (&["--limit", "100"], 2, &["--limit", "100p", "100B"]),
        (&["--queue", "fq_codel"], 2, &["--queue", "did you mean 'fq-codel'?"]),
        (&["--latency", "3"], 2, &["--delay", "no unit"]),
        (&["--rate", "0bit"], 2, &["--rate", "out of range"]),
        (&["--rate", "-1mbit"], 2, &["--rate", "negative"]),
        (&["--down-rate", "fast"], 2, &["--down-rate", "fast", "10Mbit/s"]),
        (&["--limit", "12x"], 2, &["--limit", "'x'", "KiB"]),
        (&["--limit", "0"], 2, &["--limit", "out of range"]),
        (&["--output-buffer", "-1B"], 2, &["--output-buffer", "negative"]),
        (&["--mtu", "12"], 2, &["--mtu", "68"]),
        (&["--seed", "x"], 2, &["--seed", "whole number"]),
        (&["--bound", "3"], 2, &["--bound", "no unit"]),
    ]);
}

#[test]
fn models_and_files() {
    let loss = file("bad-loss", "0\n2\n");
    let loss_model = format!("trace:{loss}");
    let good = file("good-trace", "1\n");
    let linked = format!("far trace={good} rate=1mbit");
    let letters = file("bad-trace", "abc\n");
    let empty = file("empty-trace", "");
    let backwards = file("backwards-trace", "5\n3\n");
    check_paths(&[
        (&["--loss", "101%"], 2, &["--loss", "0 and 1"]),
        (&["--loss", "ge:p=1%"], 2, &["--loss", "ge:p=1%,r=20%"]),
        (&["--loss", "trace:/nonexistent"], 2, &["--loss", "/nonexistent", "text file"]),
        (&["--loss", &loss_model], 2, &["--loss", &loss, "line 2"]),
        (&["--bit-errors", "2"], 2, &["--bit-errors", "more than 1"]),
        (&["--duplicate", "200%"], 2, &["--duplicate", "0 and 1"]),
        (&["--reorder", "1%"], 2, &["--reorder", "1%:5ms"]),
        (&["--jitter", "wobbly:3ms"], 2, &["--jitter", "ordered, independent, correlated"]),
        (&["--queue", "lifo"], 2, &["--queue", "lifo", "did you mean 'fifo'?"]),
        (&["--queue", "round-robin:quantum=0"], 2, &["--queue", "between 1 and"]),
        (&["--queue", "fifo:limt=3"], 2, &["--queue", "limt", "limit"]),
        (&["--framing", "x25"], 2, &["--framing", "t1-lapd"]),
        (&["--framing", "atm-aal5"], 2, &["needs a rate", "--rate 155.52Mbit/s"]),
        (&["--key", "mood"], 2, &["--key", "five-tuple"]),
        (&["--trace", "/nonexistent"], 2, &["--trace", "/nonexistent"]),
        (&["--trace", &letters], 2, &["--trace", &letters, "line 1", "milliseconds"]),
        (&["--trace", &empty], 2, &["--trace", &empty, "holds nothing"]),
        (&["--trace", &backwards], 2, &["--trace", "line 2", "none lower"]),
        (&["--trace", &good, "--rate", "1mbit"], 2, &["--trace", "a rate and", "leave one"]),
        (&["--up-rate", "1mbit", "--up-trace", &good], 2, &["--up-trace", "leave one"]),
        (&["--link", &linked], 2, &["trace", "a rate and", "leave one"]),
        (&["--schedule", "5s rate=zz"], 2, &["--schedule", "zz", "10Mbit/s"]),
        (&["--schedule", "/nonexistent"], 2, &["--schedule", "/nonexistent"]),
        (&["--pcap", "-"], 2, &["standard output", "name a file"]),
        (&["--pcap", "/nonexistent/x"], 2, &["/nonexistent"]),
        (&["--report", "-"], 2, &["standard output", "name a file"]),
    ]);
}

/// Of two results in one file the first would be lost, or the second after the run.
#[test]
fn measurements_that_take_no_time() {
    let host = Host::beside();
    let scenario = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/two-hops.toml");
    for (arguments, option) in [
        (&["bridge", "eth1", "eth2", "--duration", "0s"][..], "--duration"),
        (&["verify", "--duration", "0s"], "--duration"),
        (&["ladder", "--time", "0s", scenario], "--time"),
        (&["show", "--watch", "--interval", "0s"], "--interval"),
    ] {
        check_refused(&host, arguments, 2, &[option, "no time"]);
    }
}

#[test]
fn an_end_to_capture_at_without_a_capture() {
    check_paths(&[(&["--pcap-at", "near"], 2, &["--pcap <FILE>"])]);
}

#[test]
fn names_of_links_that_stand_for_another() {
    let both = ["--link", "sat delay=3ms", "--link", "SAT delay=4ms"];
    check_paths(&[
        (&both, 2, &["--link SAT", "taken", "TRUNKLINE_PEER_SAT"]),
        (&["--link", "peer6 delay=3ms"], 2, &["--link peer6", "taken"]),
    ]);
}

#[test]
fn two_results_in_one_file() {
    let host = Host::beside();
    let hops = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/two-hops.toml");
    let (one, other) = (file("one", ""), format!("{}/./one", env!("CARGO_TARGET_TMPDIR")));
    let new = format!("{}/not/../new", env!("CARGO_TARGET_TMPDIR"));
    let _ = std::fs::create_dir(format!("{}/not", env!("CARGO_TARGET_TMPDIR")));
    let cluster = ["cluster", "run", "--here", "--nodes", "2", "--test", "halo:rounds=3"];
    for (arguments, outputs) in [
        (&cluster[..], ["--trace", "--picture"]),
        (&["probe", "rtt", "127.0.0.1"], ["--csv", "--flent"]),
        (&["probe", "rtt", "127.0.0.1"], ["--csv", "--fit"]),
        (&["probe", "load", "127.0.0.1"], ["--csv", "--flent"]),
        (&["shell"], ["--pcap", "--report"]),
    ] {
        for (first, second) in [(&one, &one), (&one, &other), (&new, &new)] {
            let both = [arguments, &[outputs[0], first, outputs[1], second]].concat();
            let command: &[&str] = if arguments[0] == "shell" { &["--", "true"] } else { &[] };
            check_refused(&host, &[&both, command].concat(), 2, &["twice", second]);
        }
    }
    let run = ["run", hops, "--engine", "emu", "--pcap", &new, "--out", &new];
    check_refused(&host, &run, 2, &["twice", &new]);
}

/// After the measurement it would be too late.
#[test]
fn more_flows_than_flent_has_a_test_for() {
    let host = Host::beside();
    let flent = file("flows.flent.gz", "");
    for (verb, streams) in [("bulk", "5"), ("load", "16")] {
        let arguments = ["probe", verb, "127.0.0.1", "--direction", "both", "--streams", streams];
        let words = ["rrul_be", streams, "one way only"];
        check_refused(&host, &[&arguments[..], &["--flent", &flent]].concat(), 2, &words);
    }
}

/// What would be ignored, or could not be judged after the measurement.
#[test]
fn options_that_a_probe_could_not_heed() {
    let host = Host::beside();
    let fit = file("heed.toml", "");
    for (arguments, words) in [
        (&["--sweep", "1000..1400"][..], &["1000", "1..1400", "1000..1400:16"][..]),
        (&["--sweep", "1..1400", "--count", "3"], &["--count", "no effect", "--sizes"]),
        (&["--fit", &fit, "--within", "5%"], &["--within", "no effect", "--sizes"]),
        (&["--fit", &fit, "--sizes", "64,64,256,1400"], &["--fit", "at least 4", "not 3"]),
        (&["--fit", &fit, "--sweep", "1..100:60"], &["--fit", "at least 4", "not 3"]),
        (&["--every", "0"], &["--every", "no time"]),
        (&["--timeout", "0s"], &["--timeout", "no time"]),
    ] {
        check_refused(&host, &[&["probe", "rtt", "127.0.0.1"], arguments].concat(), 2, words);
    }
    for option in ["--every", "--idle"] {
        let words = [option, "no time"];
        check_refused(&host, &["probe", "load", "127.0.0.1", option, "0s"], 2, &words);
    }
}

/// It is not answered with how to name a file or a host, which is there.
#[test]
fn an_option_that_another_needs() {
    let host = Host::beside();
    let hops = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/two-hops.toml");
    for (arguments, missing) in [
        (&["run", hops, "--resume"][..], "--out <DIR>"),
        (&["probe", "rtt", "127.0.0.1", "--confidence", "90"], "--within <SHARE%>"),
    ] {
        let outcome = check(&host, arguments, 2, &[missing, "--help"]);
        assert!(!outcome.complaint().contains("write trunkline"), "{outcome:#?}");
    }
}

#[test]
fn words_that_nobody_knows() {
    let host = Host::beside();
    for (arguments, words) in [
        (&["fly"][..], &["fly", "--help"][..]),
        (&["cluster", "run", "--test", "halo:"], &["halo:", "leave the colon out"]),
        (&["cluster", "run", "--test", "halo:rounds=5,rounds=6"], &["rounds", "twice"]),
        (&["cluster", "run", "--protocol", "careful:"], &["careful:", "leave the colon out"]),
        (&["shell", "--nope", "--", "true"], &["--nope", "usage"]),
        (&["shell", "--delay", "1ms", "--delay", "2ms", "--", "true"], &["--delay", "multiple"]),
        (&["shell", "--preset", "x25", "--", "true"], &["x25", "trunkline presets", "t1-1989"]),
        (&["shell", "--backend", "warp", "--", "true"], &["warp", "packet or xdp"]),
        (&["shell", "--cpu", "first", "--", "true"], &["first", "--cpu"]),
        (&["shell", "--link", "a/b delay=3ms", "--", "true"], &["a/b", "letters"]),
        (&["shell", "--link", "far delay=3", "--", "true"], &["delay", "no unit"]),
        (&["shell", "--link", "far 3ms delay=3ms", "--", "true"], &["--link far", "'3ms'"]),
        (&["shell", "--link", "far speed=3", "--", "true"], &["speed", "delay, catch-up, rate"]),
        (
            &["shell", "--link", "a delay=1s", "--link", "a delay=1s", "--", "true"],
            &["--link a", "taken"],
        ),
        (&["bridge"], &["<A>", "<B>"]),
        (&["bridge", "lo", "lo"], &["'lo'", "two different interfaces"]),
        (&["bridge", "a", "b", "--link", "x"], &["--link x", "two interfaces"]),
        (&["presets", "extra"], &["extra"]),
    ] {
        check_refused(&host, arguments, 2, words);
    }
}

#[test]
fn devices_and_memory() {
    let host = Host::beside();
    let Some(_) = host.separate() else { return };
    for (arguments, words) in [
        (&["bridge", "tlnone", "lo"][..], &["tlnone", "no network device"][..]),
        (&["bridge", "lo", "tlnone"], &["tlnone", "no network device"]),
        (&["bridge", "a-name-beyond-all-measure", "lo"], &["a-name-beyond", "15 bytes"]),
        (
            &["shell", "--rate", "1000gbit", "--delay", "10s", "--", "true"],
            &["bytes", "lower rate, delay or queue limit"],
        ),
    ] {
        check_refused(&host, arguments, 1, words);
    }
    let huge = ["shell", "--rate", "1000gbit", "--delay", "10s", "--", "true"];
    let complaint = host.run(&huge).complaint().to_string();
    let number = complaint.split(' ').find_map(|word| word.parse::<u64>().ok());
    // Both directions hold rate × delay: 2 × 1000 Gbit/s × 10 s.
    assert!(number.is_some_and(|bytes| bytes >= 2 * 1_250_000_000_000), "{complaint}");
}

#[test]
fn programs_that_fail() {
    let host = Host::beside();
    if host.run_well(&["shell", "--best-effort", "--", "true"]).is_none() {
        return;
    }
    let plain = file("not-a-program", "plain text");
    for (rest, words) in [
        (&["--", "tl-no-such-program"][..], &["tl-no-such-program", "not found", "install"][..]),
        (&["--", &plain], &[&plain, "not executable"]),
        (&["--", "sh", "-c", "exit 3"], &["sh", "status 3"]),
        (&["--", "sh", "-c", "kill -9 $$"], &["sh", "killed by signal 9", "SIGKILL"]),
        (&["--peer", "exit 4", "--", "sleep", "20"], &["peer 'exit 4'", "status 4"]),
        (&["--peer", "tl-no-such-program", "--", "sleep", "20"], &["tl-no-such-program", "127"]),
        (&["--cpu", "9999", "--", "sleep", "20"], &["processor 9999", "nproc"]),
    ] {
        let arguments = [&["shell", "--best-effort", "--no-outside"], rest].concat();
        let outcome = check(&host, &arguments, 1, words);
        let complaint = outcome.complaint();
        let again = outcome.stderr.lines().filter(|line| *line == complaint).count();
        assert_eq!(again, 1, "said once: {outcome:#?}");
    }
}

#[test]
fn a_reader_that_has_seen_enough_is_no_failure() {
    let host = Host::beside();
    let mut command = std::process::Command::new("sh");
    command.args(["-c", "$0 presets | true", env!("CARGO_BIN_EXE_trunkline")]);
    let outcome = host.start_command(command).finish();
    assert_eq!(outcome.stderr, "", "{outcome:#?}");
}
