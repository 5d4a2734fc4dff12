//! A body for what two ends of a transfer say to each other before they have met: texts and first words. What is sealed after that
//! is that of `met`.

use trunkline_core::Time;
use trunkline_handshake::Key;
use trunkline_mover::Secret;
use trunkline_mover::session::{Caller, Door, Knock, unknown};
use trunkline_mover::words::{Answer, Ask};
use trunkline_transport::netblt::wire::MOST_TEXT;

/// The octets as texts, and as a datagram to either end before they have met.
pub fn hear(data: &[u8]) {
    read_texts(data);
    meet(data);
}

/// What is read is said again so that it reads alike, in a text that an OPEN can carry.
fn read_texts(data: &[u8]) {
    if let Some(ask) = Ask::read(data) {
        let text = ask.text();
        assert!(text.len() <= MOST_TEXT && Ask::read(&text) == Some(ask));
    }
    if let Some(answer) = Answer::read(data) {
        let text = answer.text();
        assert!(text.len() <= MOST_TEXT);
        match (&answer, Answer::read(&text)) {
            (Answer::Want { ranges, .. }, Some(Answer::Want { ranges: told, .. })) => {
                assert!(ranges.starts_with(&told));
            }
            (answer, again) => assert_eq!(Some(answer), again.as_ref()),
        }
    }
}

/// No answer is longer than what it answers, and nobody is let in or opened who does not know the secret.
fn meet(data: &[u8]) {
    let secrets = ["abc-234".parse().map(Secret::Code).ok(), Some(Secret::Key(Key::new([3; 32])))];
    for secret in secrets.into_iter().flatten() {
        let mut door = Door::new(secret.clone(), true);
        match door.knock(data) {
            Ok(Knock::Answer(answer)) => assert!(answer.len() <= data.len()),
            Ok(Knock::Session(..) | Knock::Early(_)) => panic!("let in without the secret"),
            Ok(Knock::Nothing) | Err(_) => {}
        }
        let Ok(mut caller) = Caller::begin(&secret, true, None, Time::ZERO) else { return };
        assert!(!matches!(caller.hear(Time::ZERO, data), Ok(Some(_))));
    }
    assert!(unknown(data).is_none_or(|answer| answer.len() < data.len()));
}
