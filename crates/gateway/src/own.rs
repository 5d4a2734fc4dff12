//! The laboratory's own names, answered by the gateway: for programs that do not read `/etc/hosts`, and machines without it.

use crate::Entry;
use std::net::IpAddr;

/// Bytes of a message's header (RFC 1035 §4.1.1), and the place of its count of questions and its flags.
const HEADER: usize = 12;
const QUESTIONS: usize = 4;
const FLAGS: usize = 2;
/// Flags of an answer: it is one, by an authority; the server would ask others (with the code of the outcome).
const ANSWER: u8 = 0x84;
const RECURSION_WANTED: u8 = 1;
const RECURSION_AVAILABLE: u8 = 0x80;
const NO_SUCH_NAME: u8 = 3;
/// Types and class of questions (§3.2.2, RFC 3596): A, AAAA, IN.
const A: u16 = 1;
const AAAA: u16 = 28;
const INTERNET: u16 = 1;
/// The name of an answer: that of the question, behind the header (§4.1.4).
const SAME_NAME: u16 = 0xc000 | HEADER as u16;
/// How long an answer holds, seconds: no longer than a glance, since a next run has other addresses.
const LIFETIME: u32 = 1;
/// Bytes of the longest name (§2.3.4).
const LONGEST: usize = 255;

/// The answer to a question for a name below `domain`; nothing if it is for another name, which others have to answer.
pub fn answer(question: &[u8], domain: &str, entries: &[Entry]) -> Option<Vec<u8>> {
    if question.get(QUESTIONS..QUESTIONS + 2)? != [0, 1] {
        return None;
    }
    let (name, end) = name(question)?;
    if name != domain && !name.ends_with(&format!(".{domain}")) {
        return None;
    }
    let word = |at: usize| Some(u16::from_be_bytes([*question.get(at)?, *question.get(at + 1)?]));
    let (kind, class) = (word(end)?, word(end + 2)?);
    let known: Vec<&Entry> = entries.iter().filter(|entry| entry.name == name).collect();
    let wanted = known.iter().filter(|entry| class == INTERNET && kind_of(entry.address) == kind);
    let records: Vec<IpAddr> = wanted.map(|entry| entry.address).collect();
    let code = if known.is_empty() { NO_SUCH_NAME } else { 0 };
    let mut answer = question[..end + 4].to_vec();
    answer[FLAGS] = ANSWER | question[FLAGS] & RECURSION_WANTED;
    answer[FLAGS + 1] = RECURSION_AVAILABLE | code;
    let counts = [1, records.len() as u16, 0, 0];
    for (place, count) in answer[QUESTIONS..HEADER].chunks_mut(2).zip(counts) {
        place.copy_from_slice(&count.to_be_bytes());
    }
    for address in records {
        answer.extend(SAME_NAME.to_be_bytes());
        answer.extend(kind.to_be_bytes());
        answer.extend(INTERNET.to_be_bytes());
        answer.extend(LIFETIME.to_be_bytes());
        let octets = match address {
            IpAddr::V4(v4) => v4.octets().to_vec(),
            IpAddr::V6(v6) => v6.octets().to_vec(),
        };
        answer.extend((octets.len() as u16).to_be_bytes());
        answer.extend(octets);
    }
    Some(answer)
}

fn kind_of(address: IpAddr) -> u16 {
    if address.is_ipv4() { A } else { AAAA }
}

/// The name of the first question in small letters, and the place behind it. Questions do not compress names.
fn name(message: &[u8]) -> Option<(String, usize)> {
    let (mut name, mut at) = (String::new(), HEADER);
    loop {
        let length = usize::from(*message.get(at)?);
        at += 1;
        match length {
            0 => return Some((name, at)),
            1..=63 => {
                let label = message.get(at..at + length)?;
                if !name.is_empty() {
                    name.push('.');
                }
                name.extend(label.iter().map(|&byte| char::from(byte.to_ascii_lowercase())));
                at += length;
            }
            _ => return None,
        }
        if name.len() > LONGEST {
            return None;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn question(name: &str, kind: u16) -> Vec<u8> {
        let mut message = vec![0xab, 0xcd, 1, 0, 0, 1, 0, 0, 0, 0, 0, 1];
        for label in name.split('.') {
            message.push(label.len() as u8);
            message.extend(label.bytes());
        }
        message.push(0);
        message.extend(kind.to_be_bytes());
        message.extend(INTERNET.to_be_bytes());
        // An OPT record (RFC 6891), as the C library sends it.
        message.extend([0, 0, 41, 4, 0xb0, 0, 0, 0, 0, 0, 0]);
        message
    }

    fn entries() -> Vec<Entry> {
        let entry = |name: &str, address: &str| Entry {
            name: name.into(),
            address: address.parse().unwrap(),
        };
        vec![
            entry("host.lab", "10.77.0.254"),
            entry("host.lab", "fd00::fe"),
            entry("a.lab", "10.77.0.1"),
        ]
    }

    #[test]
    fn own_names_have_their_addresses() {
        let answer_to = |name, kind| answer(&question(name, kind), "lab", &entries()).unwrap();
        let found = answer_to("HOST.lab", A);
        assert_eq!(found[..12], [0xab, 0xcd, 0x85, 0x80, 0, 1, 0, 1, 0, 0, 0, 0]);
        assert_eq!(found[12..26], question("HOST.lab", A)[12..26]);
        assert_eq!(found[26..], [0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 1, 0, 4, 10, 77, 0, 254]);
        let six = answer_to("host.lab", AAAA);
        assert_eq!((six[7], six.len(), six[six.len() - 1]), (1, 26 + 28, 0xfe));
        // There is the name, and nothing of this type.
        let none = answer_to("a.lab", AAAA);
        assert_eq!((none[3], none[7]), (0x80, 0));
        let unknown = answer_to("b.lab", A);
        assert_eq!((unknown[3], unknown[7]), (0x83, 0));
        for other in ["example.org", "mylab", "lab.example"] {
            assert_eq!(answer(&question(other, A), "lab", &entries()), None, "{other}");
        }
    }

    proptest! {
        #[test]
        fn any_octets_are_answered_or_left(question in prop::collection::vec(any::<u8>(), 0..300)) {
            if let Some(answer) = answer(&question, "lab", &entries()) {
                prop_assert_eq!(&answer[..2], &question[..2]);
            }
        }

        #[test]
        fn cut_questions_are_left(at in 0usize..31) {
            let whole = question("host.lab", A);
            let end = HEADER + 10 + 4;
            prop_assert_eq!(answer(&whole[..at], "lab", &entries()).is_some(), at >= end);
        }
    }
}
