//! Lines that serve channels in turns, against the simulator.

use trunkline_model::predict;
use trunkline_scenario::Scenario;

/// Seconds of the only transfer, by formula and simulated.
fn both(discipline: &str, framing: &str, urp: &str, write: u32) -> (f64, f64) {
    let text = format!(
        "stop_after = \"10min\"\nhost = [{{ name = \"a\" }}, {{ name = \"b\" }}]\n[[link]]\nbetween = [\"a\", \"b\"]\nrate = \"170497bit/s\"\ndelay = \"1ms\"\ndiscipline = {discipline}\nframing = \"{framing}\"\n[[traffic]]\nname = \"t\"\nkind = \"bulk\"\nfrom = \"a\"\nto = \"b\"\nbytes = \"40kB\"\nwrite = {write}\ntransport = {{ kind = \"urp\", {urp}, timeout = \"20s\" }}\n"
    );
    let scenario = Scenario::parse(&text, "turns.toml").unwrap_or_else(|it| panic!("{it}\n{text}"));
    let took = |run: trunkline_engine::Run| run.traffic[0].samples[0].delay().as_secs_f64();
    (took(predict(&scenario[0]).unwrap()), took(trunkline_sim::run(&scenario[0]).unwrap()))
}

/// A turn ends in the middle of a packet, whose two pieces have frames of their own; what is left of a turn is the next
/// packet's.
#[test]
fn packets_that_turns_cut_have_frames_for_each_piece() {
    for framing in ["none", "ethernet", "atm-aal5", "t1-lapd", "datakit"] {
        for (kind, quantum) in [
            ("round-robin", 16),
            ("round-robin", 64),
            ("round-robin", 68),
            ("round-robin", 1000),
            ("two-lists", 64),
            ("two-lists", 100),
        ] {
            let mut traffics = vec![
                ("block = 64, outstanding = 1", 64),
                ("block = 64, outstanding = 5", 64),
                ("block = 1000, outstanding = 3", 1000),
            ];
            // Several on a T1 take each quantum to have trunk frames of its own, as a note tells.
            if framing != "t1-lapd" {
                traffics.push(("block = 64, outstanding = 5 }\ncount = 3 #", 64));
            }
            for (urp, write) in traffics {
                let discipline = format!("{{ kind = \"{kind}\", quantum = {quantum} }}");
                let (formula, seen) = both(&discipline, framing, urp, write);
                let off = formula / seen - 1.0;
                // A window that waits meets the slots of cells as they fall.
                let most = if framing == "atm-aal5" { 0.04 } else { 0.01 };
                assert!(off.abs() < most, "{framing}, {discipline}, {urp}: {formula} and {seen}");
            }
        }
    }
}

/// Two windows of one block end together and wait together: a note tells how much the line may lose by that, and it does.
#[test]
fn windows_that_end_together_are_told() {
    for (outstanding, delay, told) in
        [(1, 48, true), (1, 150, true), (2, 150, true), (2, 48, false), (3, 150, false)]
    {
        let text = format!(
            "stop_after = \"10min\"\nhost = [{{ name = \"a\" }}, {{ name = \"b\" }}]\n[[link]]\nbetween = [\"a\", \"b\"]\nrate = \"65758bit/s\"\ndelay = \"{delay}ms\"\ndiscipline = {{ kind = \"round-robin\", quantum = 64 }}\n[[traffic]]\nname = \"t\"\nkind = \"bulk\"\nfrom = \"a\"\nto = \"b\"\ncount = 2\nbytes = \"100kB\"\nwrite = 1000\ntransport = {{ kind = \"urp\", block = 1000, outstanding = {outstanding} }}\n"
        );
        let scenario =
            Scenario::parse(&text, "turns.toml").unwrap_or_else(|it| panic!("{it}\n{text}"));
        let run = predict(&scenario[0]).unwrap();
        let note = run.notes.iter().find(|note| note.text.contains("may end together"));
        assert_eq!(note.is_some(), told, "{outstanding} over {delay} ms: {:?}", run.notes);
        let share = |text: &str| {
            text.rsplit_once(' ').and_then(|(text, _)| text.rsplit_once(' ')?.1.parse().ok())
        };
        let most: f64 = note.map_or(3.0, |note| share(&note.text).expect("a share")) / 100.0;
        let took = |run: &trunkline_engine::Run| run.traffic[0].samples[0].delay().as_secs_f64();
        let less = 1.0 - took(&run) / took(&trunkline_sim::run(&scenario[0]).unwrap());
        assert!(
            less < most + 0.01 && (!told || less > 0.5 * most),
            "{outstanding} over {delay} ms: {less} of {most}"
        );
    }
}
