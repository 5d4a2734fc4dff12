//! Values at the ends of their ranges: formulas and simulator come to an end without arithmetic that overflows.

use trunkline_model::predictions;
use trunkline_path::discipline::KINDS;
use trunkline_scenario::Scenario;

/// Limits as large as their text can say, and as small.
const LIMITS: [&str; 7] = [
    "9223372036854775807B",
    "20000000GB",
    "18446744073709551615p",
    "18446744073709551615c",
    "1B",
    "1p",
    "1c",
];

/// Several connections, conversations and datagrams at once, so that something waits.
const TRAFFIC: [&str; 6] = [
    "kind = 'greedy'\nduration = '5s'\ncount = 2",
    "kind = 'bulk'\nbytes = '200kB'\ncount = 2",
    "kind = 'interactive'\nsizes = [1000]\ncount = 2",
    "kind = 'bulk'\nbytes = '200kB'\ncount = 2\ntransport = 'urp'",
    "kind = 'bulk'\nbytes = '200kB'\ntransport = { kind = 'go-back-n', frames = 7 }",
    "kind = 'paced'\nsize = 1000\nrate = '4Mbit/s'\nduration = '1s'\ncount = 2",
];

/// The scenario of a link with these keys and one traffic; `None` if they do not go together.
fn scenario(link: &str, traffic: &str) -> Option<Scenario> {
    let text = format!(
        "stop_after = '120ms'\n[[host]]\nname = 'a'\n[[host]]\nname = 'b'\n[[link]]\nbetween = ['a', 'b']\n{link}\n\
         [[traffic]]\nname = 't'\nfrom = 'a'\nto = 'b'\n{traffic}\n"
    );
    Scenario::parse(&text, "ends.toml").ok().map(|mut cells| cells.remove(0))
}

#[test]
fn a_limit_may_be_as_large_or_as_small_as_can_be_written() {
    let mut tried = 0;
    for kind in KINDS {
        for limit in LIMITS {
            let link = format!(
                "rate = '10Mbit/s'\ndelay = '20ms'\ndiscipline = {{ kind = '{}', limit = '{limit}' }}",
                kind.name
            );
            for scenario in TRAFFIC.iter().filter_map(|traffic| scenario(&link, traffic)) {
                predictions(&scenario).unwrap();
                trunkline_sim::run(&scenario).unwrap();
                tried += 1;
            }
        }
    }
    assert!(tried > 200, "{tried} of them are possible");
}

/// Each key of each discipline at the ends of its range, the others as they are by default.
#[test]
fn keys_of_disciplines_may_be_as_large_or_as_small_as_they_say() {
    let mut tried = 0;
    for kind in KINDS {
        let ends = kind.keys().into_iter().filter_map(|key| Some((key.name, key.range?)));
        for (name, (least, most)) in ends {
            for value in [least, most] {
                let link = format!(
                    "rate = '10Mbit/s'\ndelay = '5ms'\ndiscipline = '{}:{name}={value}'",
                    kind.name
                );
                for scenario in TRAFFIC.iter().filter_map(|traffic| scenario(&link, traffic)) {
                    predictions(&scenario).unwrap();
                    trunkline_sim::run(&scenario).unwrap();
                    tried += 1;
                }
            }
        }
    }
    assert!(tried > 200, "{tried} of them are possible");
}

/// Lines from the slowest and longest to the fastest and shortest, and what takes longest to send.
#[test]
fn formulas_hold_at_the_ends_of_rates_delays_and_sizes() {
    let largest = [
        "kind = 'bulk'\nbytes = 1000000000000\nwrite = 16777216\nrepeat = 10000000\ncount = 2",
        "kind = 'bulk'\nbytes = 1\nwrite = 1\nrepeat = 10000000",
        "kind = 'push'\nbytes = 1000000000000\nwrite = 16777216\nstore = '1h'\nrepeat = 10000000",
        "kind = 'greedy'\nwarm_up = '1h'\ninterval = '168h'\nduration = '168h'\nwrite = 16777216",
        "kind = 'timed-transfer'\nsizes = [1, 16777216]\nduration = '168h'",
        "kind = 'interactive'\nsizes = [1, 16777216]\nreply = 16777216\nevery = '1h'\nrepeat = 10000000",
        "kind = 'paced'\nsize = 16777216\nrate = '10000Gbit/s'\nduration = '168h'\ncount = 10000\nstagger = '1h'",
        "kind = 'paced'\nsize = 1\nrate = '1bit/s'\nduration = '168h'\ncount = 10000",
    ];
    let spoken = ["", "transport = 'urp'", "transport = 'go-back-n'", "transport = 'netblt'"];
    let mut tried = 0;
    for rate in ["1bit/s", "10000Gbit/s", "unlimited"] {
        for delay in ["0", "1h"] {
            for limit in ["1B", "9223372036854775807B", "9223372036854775807p"] {
                let link = format!("rate = '{rate}'\ndelay = '{delay}'\nlimit = '{limit}'");
                for (traffic, spoken) in
                    largest.iter().flat_map(|it| spoken.map(|spoken| (it, spoken)))
                {
                    if let Some(scenario) = scenario(&link, &format!("{traffic}\n{spoken}")) {
                        predictions(&scenario).unwrap();
                        tried += 1;
                    }
                }
            }
        }
    }
    assert!(tried > 300, "{tried} of them are possible");
}
