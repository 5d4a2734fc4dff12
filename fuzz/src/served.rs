//! Bodies for what a client may send: to the control API, to the probe's server.

use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use trunkline_control::{Controller, SetRequest};
use trunkline_probe::server::{Dialogue, Event, Options, Registry};
use trunkline_probe::wire::message::{Answer, FlowSpec, Request};
use trunkline_probe::wire::{datagram, frame, keys, record};
use trunkline_probe::{CodeKey, Key};
use trunkline_transport::envelope::packed;

/// The body of a request to the control API: what is accepted is written and read the same.
pub fn read_request(data: &[u8]) {
    let Ok(request) = serde_json::from_slice::<SetRequest>(data) else { return };
    let written = serde_json::to_vec(&request).expect("a request can be written");
    assert_eq!(serde_json::from_slice::<SetRequest>(&written).expect("and read"), request);
    let names: BTreeMap<_, _> = request.settings.iter().cloned().collect();
    assert_eq!(names.len(), request.settings.len(), "no name twice");
}

/// A path that notes what is asked of it and refuses settings for another link.
#[derive(Default)]
struct Noting(Mutex<Vec<SetRequest>>);

impl Controller for Noting {
    fn describe(&self) -> Option<Value> {
        Some(json!({ "delay": "80ms" }))
    }
    fn state(&self) -> Option<Value> {
        Some(json!({ "sent": 1 }))
    }
    fn set(&self, request: SetRequest) -> Result<Value, String> {
        let refused = request.link.is_some();
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(request);
        if refused { Err("there is one link only:\nleave link out".into()) } else { Ok(json!({})) }
    }
}

/// The octets that a control server sends in answer to these, and the changes that the path hears of.
pub fn ask_control(data: &[u8]) -> (Vec<u8>, Vec<SetRequest>) {
    let noting = Arc::new(Noting::default());
    let controller = Arc::clone(&noting) as Arc<dyn Controller>;
    let sent = trunkline_control::exchange(data, controller).expect("a runtime");
    let heard = noting.0.lock().unwrap_or_else(PoisonError::into_inner);
    (sent, heard.clone())
}

/// The octets of a connection to the control API: one answer at most, whole, in HTTP and JSON; the path hears of
/// good changes only, and whoever asked for one is told.
pub fn serve_http(data: &[u8]) {
    let (sent, heard) = ask_control(data);
    assert!(heard.len() <= 1, "{heard:?}");
    let mut answer = &sent[..];
    // An interim answer to `Expect: 100-continue` may come first.
    answer = answer.strip_prefix(b"HTTP/1.1 100 Continue\r\n\r\n").unwrap_or(answer);
    if answer.is_empty() {
        return assert!(heard.is_empty(), "changed, and not a word");
    }
    let (status, body) = in_parts(answer);
    let good = heard.first().is_some_and(|request| request.link.is_none());
    assert!(heard.is_empty() || good == (status == 200), "{status}: {heard:?}");
    assert!(matches!(status, 200 | 400 | 404 | 405 | 413 | 414 | 431), "{status}");
    // What is no HTTP at all is refused before there is a request, and an answer to HEAD has no body.
    if !body.is_empty() {
        let value: Value = serde_json::from_slice(body).expect("JSON");
        assert_eq!(value.get("error").is_none(), status == 200, "{value}");
        let error = value.get("error").and_then(Value::as_str).unwrap_or_default();
        assert!(!error.contains('\n'), "{error}");
    }
}

/// The status and the body of an answer, whose header says how long that is.
fn in_parts(answer: &[u8]) -> (u16, &[u8]) {
    let end = answer.windows(4).position(|four| four == b"\r\n\r\n").expect("an end of the header");
    let (head, body) = (&answer[..end], &answer[end + 4..]);
    let head = std::str::from_utf8(head).expect("a header of text");
    let version = head.strip_prefix("HTTP/1.1 ").or_else(|| head.strip_prefix("HTTP/1.0 "));
    let status = version.and_then(|rest| rest.get(..3)?.parse().ok()).expect("a status");
    let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
    let length: usize = length.map_or(0, |digits| digits.parse().expect("a length"));
    assert!(body.len() == length || body.is_empty(), "{} of {length}", body.len());
    (status, body)
}

/// Everything that a probe or its server may be sent: a datagram, records, envelopes and a message. What is accepted is
/// written as it was read.
pub fn read_probe(data: &[u8]) {
    let key = CodeKey::derive(&[1; 32], "trunkline fuzz", &[]);
    // Nobody without the key makes a datagram that is taken; one with it does.
    assert_eq!(datagram::Head::read(data, &key), None);
    if let (Some(cookie), Some(body)) = (datagram::cookie(data), data.get(16..datagram::HEAD)) {
        let mut signed = data.to_vec();
        let head = datagram::Head {
            kind: datagram::DatagramKind::Reply,
            flow: u16::from_be_bytes([body[2], body[3]]),
            number: u32::from_be_bytes([body[4], body[5], body[6], body[7]]),
            stamp: 0,
            span: 0,
            order: 0,
        };
        head.write(cookie, &key, &mut signed);
        assert_eq!(datagram::Head::read(&signed, &key), Some(head));
    }
    read_records(data, &key);
    let mut found = Vec::new();
    if let Some(left_out) = packed::read(data, &mut found) {
        let mut written = Vec::new();
        assert_eq!(packed::write(&found, data.len(), &mut written), left_out);
        assert_eq!(written, data);
    }
    if let Ok(request) = frame::decode::<Request>(data) {
        let text = frame::encode(&request).expect("memory takes it");
        assert_eq!(frame::decode::<Request>(&text).ok(), Some(request));
    }
    let _ = frame::decode::<Answer>(data);
}

/// A good record and then others: the good one is read, of the others not one.
fn read_records(data: &[u8], key: &CodeKey) {
    let mut writer = record::Writer::new(key.clone());
    let mut wire = writer.filled(record::Record::default(), data.len());
    wire.extend(data);
    let mut reader = record::Reader::new(key.clone(), record::MOST_USER);
    let (mut rest, mut whole) = (&wire[..], 0);
    while !rest.is_empty() {
        match reader.take(&mut rest) {
            Ok(taken) => whole += usize::from(taken.whole.is_some()),
            Err(record::Forged) => break,
        }
    }
    assert_eq!(whole, 1);
}

/// A server's end of a connection: first as somebody without the key speaks to it, then as somebody with a
/// session says whatever he likes. Only he opens a session, and whatever is said is answered.
pub fn serve_session(data: &[u8]) {
    let key = Key::new([3; 32]);
    let at = "127.0.0.1:1".parse().expect("an address");
    let options = Options { key: Some(key.clone()), ..Options::at(at) };
    let registry = Registry::new(options).expect("room for a session");
    for words in [data.to_vec(), [&trunkline_handshake::hello::MAGIC[..], &[2], data].concat()] {
        let mut stranger = Dialogue::new(at.ip());
        for chunk in words.chunks(40) {
            let step = stranger.receive(&registry, chunk);
            assert!(matches!(step.event, Event::Waiting | Event::Over), "{step:?}");
            assert!(step.answer.len() <= 1, "{step:?}");
        }
    }
    let (mut dialogue, mut channel) = session_at(&registry, &key);
    // Octets that the client did not seal.
    let (messages, tail) = data.split_at(data.len() - data.len() / 4);
    for message in messages.split(|&octet| octet == b'\n') {
        let sealed = channel.seal(message);
        let step = dialogue.receive(&registry, &sealed);
        channel.take(&step.answer);
        let answered = channel.open().expect("the server's own words").is_some();
        if let Event::Over = step.event {
            return;
        }
        assert!(answered, "{:?}", String::from_utf8_lossy(message));
    }
    let step = dialogue.receive(&registry, tail);
    assert!(step.answer.is_empty());
}

/// A session that was opened as a client does, with a flow in it.
fn session_at(registry: &Registry, key: &Key) -> (Dialogue, trunkline_handshake::Channel) {
    let mut dialogue = Dialogue::new([127, 0, 0, 1].into());
    let (initiator, words) =
        trunkline_handshake::Initiator::begin(Some(key), keys::CONTROL, &[]).expect("first words");
    let mut channel = initiator
        .finish(&dialogue.receive(registry, &words).answer)
        .expect("the server has the key");
    channel.allow(frame::REPORT);
    let flow: FlowSpec = frame::decode(FLOW.as_bytes()).expect("a flow");
    for request in [Request::Open, Request::Flow { flow: 0, spec: flow }] {
        let sealed = channel.seal(&frame::encode(&request).expect("memory takes it"));
        channel.take(&dialogue.receive(registry, &sealed).answer);
        let text = channel.open().expect("sealed").expect("an answer");
        let answer = frame::decode::<Answer>(&text).expect("an answer");
        assert!(matches!(answer, Answer::Welcome { .. } | Answer::Ready { .. }), "{answer:?}");
    }
    (dialogue, channel)
}

/// A flow of messages.
const FLOW: &str = r#"{"transport": "udp", "role": "echo", "streams": 1, "size": 100, "rate": null,
    "duration_ns": 1000000, "interval_ns": 1000000, "congestion": null, "urp": null}"#;
