//! Damaged examples: whatever becomes of a scenario file, it is read or refused in one line.

use proptest::prelude::*;
use std::path::Path;
use trunkline_scenario::Scenario;

/// Texts that mean something in a file, to be put in the place of others.
const TOKENS: &[&str] = &[
    "0",
    "-1",
    "7",
    "1.5",
    "1e400",
    "nan",
    "inf",
    "true",
    "\"\"",
    "\"a\"",
    "\"5ms\"",
    "\"1mbit\"",
    "\"9p\"",
    "\"fifo\"",
    "\"none\"",
    "[]",
    "[[]]",
    "{}",
    "[1, 2]",
    "[[1], [2]]",
    "[{}]",
    "'x\u{1}'",
    "{ kind = 1 }",
    "{ fixed = [\"1ms\", 0] }",
    "9223372036854775807",
    "\"18446744073709551615B\"",
    "1979-05-27",
    "\"a:9\"",
    "\"urp\"",
    "\"datagram\"",
    "[\"a\", 1]",
    "\"\\n\"",
    "\"ge:p=1,r=0\"",
];

fn examples() -> Vec<String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
    let entries = |folder: &Path| std::fs::read_dir(folder).unwrap();
    let all = entries(&folder).chain(entries(&folder.join("ladder")));
    let mut files: Vec<_> = all.map(|entry| entry.unwrap().path()).collect();
    files.retain(|path| path.is_file());
    files.sort();
    files.iter().map(|file| std::fs::read_to_string(file).unwrap()).collect()
}

/// A change of one line of a file.
#[derive(Debug, Clone)]
enum Damage {
    Remove(usize),
    Repeat(usize),
    Swap(usize, usize),
    Value(usize, usize),
    Insert(usize, usize, char),
    Cut(usize),
}

fn damage() -> impl Strategy<Value = Damage> {
    let line = 0..80usize;
    prop_oneof![
        1 => line.clone().prop_map(Damage::Remove),
        1 => line.clone().prop_map(Damage::Repeat),
        1 => (line.clone(), line.clone()).prop_map(|(one, other)| Damage::Swap(one, other)),
        4 => (line.clone(), 0..TOKENS.len()).prop_map(|(line, token)| Damage::Value(line, token)),
        1 => (line.clone(), 0..60usize, any::<char>()).prop_map(|(l, at, c)| Damage::Insert(l, at, c)),
        1 => line.prop_map(Damage::Cut),
    ]
}

fn apply(lines: &mut Vec<String>, damage: &Damage) {
    let count = lines.len().max(1);
    if lines.is_empty() {
        return;
    }
    match *damage {
        Damage::Remove(line) => drop(lines.remove(line % count)),
        Damage::Repeat(line) => lines.insert(line % count, lines[line % count].clone()),
        Damage::Swap(one, other) => lines.swap(one % count, other % count),
        Damage::Value(line, token) => {
            let line = &mut lines[line % count];
            if let Some((key, _)) = line.split_once(" = ") {
                *line = format!("{key} = {}", TOKENS[token]);
            }
        }
        Damage::Insert(line, at, mark) => {
            let line = &mut lines[line % count];
            let at = line.char_indices().nth(at).map_or(line.len(), |it| it.0);
            line.insert(at, mark);
        }
        Damage::Cut(line) => lines.truncate(line % count),
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 3000, ..ProptestConfig::default() })]

    #[test]
    fn a_damaged_example_is_read_or_refused_in_one_line(
        example in 0..examples().len(),
        damages in prop::collection::vec(damage(), 1..5),
    ) {
        let text = &examples()[example];
        let mut lines: Vec<String> =
            text.lines().filter(|line| !line.starts_with('#')).map(str::to_string).collect();
        damages.iter().for_each(|damage| apply(&mut lines, damage));
        match Scenario::parse(&lines.join("\n"), "x.toml") {
            Ok(cells) => prop_assert!(!cells.is_empty() && cells.len() <= 10_000),
            Err(error) => {
                let complaint = error.to_string();
                prop_assert!(complaint.starts_with("x.toml:"), "{}", complaint);
                prop_assert!(!complaint.contains(char::is_control), "{}", complaint);
            }
        }
    }
}
