use super::*;
use proptest::prelude::*;

const PURPOSE: Purpose = Purpose(9);

fn key(octet: u8) -> Key {
    Key::new([octet; 32])
}

/// Both ends' channels, or why there are none.
fn meet(client: Option<&Key>, server: Option<&Key>) -> Result<(Channel, Channel), Unfit> {
    meet_with(Cipher::ChaChaPoly, client, server)
}

fn meet_with(
    cipher: Cipher,
    client: Option<&Key>,
    server: Option<&Key>,
) -> Result<(Channel, Channel), Unfit> {
    let begun = Initiator::begin_with(cipher, client, PURPOSE, b"context");
    let (initiator, words) = begun.unwrap();
    let (hello, length) = Hello::read(&words)?.unwrap();
    assert_eq!((length, hello.purpose(), hello.context()), (words.len(), PURPOSE, &b"context"[..]));
    let (there, answer) = hello.accept(server)?;
    assert_eq!(Initiator::expected(&answer[..1]), answer.len());
    Ok((initiator.finish(&answer)?, there))
}

#[test]
fn who_has_the_same_key_meets_and_nobody_else() {
    let ciphers = [Cipher::ChaChaPoly, Cipher::AesGcm];
    let cases = ciphers.map(|cipher| [(cipher, None), (cipher, Some(key(1)))]);
    for (cipher, key) in cases.as_flattened() {
        let (mut near, mut there) = meet_with(*cipher, key.as_ref(), key.as_ref()).unwrap();
        assert_eq!(near.transcript(), there.transcript());
        let sealed = near.seal(b"a message");
        there.take(&sealed);
        assert_eq!(there.open(), Ok(Some(b"a message".to_vec())));
    }
    let refused = |client: Option<&Key>, server: Option<&Key>| meet(client, server).unwrap_err();
    assert_eq!(refused(Some(&key(1)), Some(&key(2))), Unfit::Refused(Refusal::WrongKey));
    assert_eq!(refused(None, Some(&key(2))), Unfit::Refused(Refusal::KeyWanted));
    assert_eq!(refused(Some(&key(1)), None), Unfit::Refused(Refusal::Keyless));
}

#[test]
fn a_server_without_the_key_cannot_answer() {
    let (initiator, words) = Initiator::begin(Some(&key(1)), PURPOSE, b"").unwrap();
    // It can only make up an answer: here another client's.
    let (_, other) = Initiator::begin(Some(&key(2)), PURPOSE, b"").unwrap();
    let answer = Hello::read(&other).unwrap().unwrap().0.accept(Some(&key(2))).unwrap().1;
    assert_eq!(initiator.finish(&answer).unwrap_err(), Unfit::Unproved);
    assert!(Hello::read(&words).unwrap().unwrap().0.accept(Some(&key(2))).is_err());
}

/// What is said with first words comes to who has the key, and is in no octet of them as it is.
#[test]
fn what_is_said_with_first_words_comes() {
    let said: Vec<u8> = (0..=255).cycle().take(MOST_SAID).collect();
    for length in [0, 1, MOST_SAID] {
        let cipher = Cipher::AesGcm;
        let begun = Initiator::begin_saying(cipher, &key(1), PURPOSE, b"name", &said[..length]);
        let (initiator, words) = begun.unwrap();
        assert!(length < 16 || !words.windows(16).any(|it| it == &said[..16]));
        let (hello, read) = Hello::read_saying(&words, length).unwrap().unwrap();
        assert_eq!((read, hello.context()), (words.len(), &b"name"[..]));
        let (mut there, answer, heard) = hello.hear(Some(&key(1))).unwrap();
        assert_eq!(heard, &said[..length]);
        let mut near = initiator.finish(&answer).unwrap();
        there.take(&near.seal(b"a message"));
        assert_eq!(there.open(), Ok(Some(b"a message".to_vec())));
        assert_eq!(hello.hear(Some(&key(2))).unwrap_err(), Unfit::Refused(Refusal::WrongKey));
    }
}

/// Without a key it would be said to everybody; and who reads another length than was said reads nothing.
#[test]
fn nothing_is_said_without_a_key_or_in_another_length() {
    let (_, open) = Initiator::begin(None, PURPOSE, b"").unwrap();
    let long = [&open[..], &[0; 100]].concat();
    assert_eq!(Hello::read_saying(&long, 9).unwrap_err(), Unfit::Foreign);
    let begun = Initiator::begin_saying(Cipher::AesGcm, &key(1), PURPOSE, b"", b"something said");
    let long = [&begun.unwrap().1[..], &[0; 1000]].concat();
    for length in [0, 13, 15, MOST_SAID] {
        let (hello, _) = Hello::read_saying(&long, length).unwrap().unwrap();
        assert!(hello.hear(Some(&key(1))).is_err());
    }
    assert_eq!(Hello::read_saying(&long, MOST_SAID + 1).unwrap_err(), Unfit::Foreign);
}

/// Words that were overheard make a channel of which only the server's end has the keys.
#[test]
fn overheard_words_open_nothing() {
    let (_, words) = Initiator::begin(Some(&key(1)), PURPOSE, b"").unwrap();
    let (hello, _) = Hello::read(&words).unwrap().unwrap();
    let (mut first, _) = hello.accept(Some(&key(1))).unwrap();
    let (mut second, _) = hello.accept(Some(&key(1))).unwrap();
    assert_ne!(first.transcript(), second.transcript());
    second.take(&first.seal(b"for one of them"));
    assert!(second.open().is_err());
}

#[test]
fn every_refusal_is_one_octet_that_reads_back() {
    for refusal in Refusal::ALL {
        let (initiator, _) = Initiator::begin(None, PURPOSE, b"").unwrap();
        let answer = [refusal as u8];
        assert_eq!(Initiator::expected(&answer), 1);
        assert_eq!(initiator.finish(&answer).unwrap_err(), Unfit::Refused(refusal));
        assert!(!refusal.to_string().contains('\n'));
    }
}

#[test]
fn another_version_and_another_protocol_are_told_apart() {
    let (_, mut words) = Initiator::begin(None, PURPOSE, b"").unwrap();
    words[4] = 3;
    assert_eq!(Hello::read(&words).unwrap_err(), Unfit::Refused(Refusal::Version));
    assert_eq!(Hello::read(b"GET / HTTP/1.1").unwrap_err(), Unfit::Foreign);
    assert_eq!(Hello::read(b"TL"), Ok(None));
}

proptest! {
    #[test]
    fn changed_words_are_refused(at: prop::sample::Index, change in 1u8..) {
        let (_, mut words) = Initiator::begin(Some(&key(1)), PURPOSE, b"context").unwrap();
        let at = at.index(words.len());
        words[at] ^= change;
        let met = Hello::read(&words).map(|found| {
            // A longer context than there are octets: the rest is waited for.
            found.is_some_and(|(hello, _)| hello.accept(Some(&key(1))).is_ok())
        });
        prop_assert!(matches!(met, Err(_) | Ok(false)));
    }

    #[test]
    fn a_changed_answer_is_refused(at in 0..ANSWER, change in 1u8.., keyed: bool) {
        let key = keyed.then(|| key(1));
        let (initiator, words) = Initiator::begin(key.as_ref(), PURPOSE, b"").unwrap();
        let (hello, _) = Hello::read(&words).unwrap().unwrap();
        let mut answer = hello.accept(key.as_ref()).unwrap().1;
        answer[at] ^= change;
        prop_assert!(initiator.finish(&answer).is_err());
    }

    #[test]
    fn whatever_comes_is_read_or_refused(octets in prop::collection::vec(any::<u8>(), 0..200)) {
        let words = [&MAGIC[..], &[VERSION], &octets].concat();
        for octets in [&octets[..], &words] {
            if let Ok(Some((hello, length))) = Hello::read(octets) {
                prop_assert!(length <= octets.len());
                prop_assert!(hello.accept(Some(&key(1))).is_err());
            }
        }
    }
}
