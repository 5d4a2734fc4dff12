//! The sending end: calls, offers, sends what is missing, and says when all of it is in its place.

use crate::account::Limit;
use crate::chunks::{Chunks, Head, Job, Progress, read};
use crate::flow::{Control, Flow, Octets, Outcome};
use crate::link::Link;
use crate::session::{Secret, Session};
use crate::words::{Answer, Ask, Offer, STOPPED};
use crate::{Cut, Manner, MoverError};
use serde::{Deserialize, Serialize};
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::ops::Range;
use std::path::PathBuf;
use std::sync::mpsc::{channel, sync_channel};
use std::thread;
use trunkline_core::{Span, Time};
use trunkline_transfer::{Manifest, Source, root};
use trunkline_transport::netblt::Connection;

/// Buffers that are read ahead: 5.6 MB at most.
const AHEAD: usize = 32;
/// From one word about progress to the next.
const TELL: Span = Span::from_millis(100);
/// Addresses of a receiver that are called at most (a choice).
const MOST_PLACES: usize = 8;
/// The first pause before the next call when sessions are lost one after the other that move nothing, and the longest (a choice).
const PAUSES: (Span, Span) = (Span::from_millis(100), Span::from_secs(5));
/// Octets of a transfer from which copies of its OPEN lead it (a choice): they are a tenth of that.
const LONG: u64 = 256 << 10;

/// What is to be sent, and where to.
#[derive(Debug)]
pub struct SendOptions {
    /// Files and directories.
    pub paths: Vec<PathBuf>,
    /// The receiver's addresses, at least one. They are called in turn until one answers.
    pub to: Vec<SocketAddr>,
    /// What both ends know.
    pub secret: Secret,
    /// How the data travel.
    pub manner: Manner,
}

/// A phase of a transfer, and how far it is.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "phase", rename_all = "kebab-case")]
pub enum Sending {
    /// It looks at what is to be sent.
    Scan {
        /// Entries so far.
        entries: u64,
        /// Octets of their data.
        bytes: u64,
    },
    /// It calls the receiver.
    Connect {
        /// Seconds since the first call.
        seconds: f64,
        /// Why calls do not get there, if anybody has said.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        why: Option<String>,
    },
    /// It sends. All that is confirmed is in the receiver's hands.
    Send {
        /// Octets that the receiver has confirmed, in this and earlier sessions.
        confirmed: u64,
        /// Octets of the whole transfer.
        bytes: u64,
        /// Octets that this session has moved.
        moved: u64,
        /// Seconds since it began to send.
        seconds: f64,
        /// The share of the data packets that was sent again, 0 to 1.
        again_share: f64,
    },
    /// It reads what it has not read in this session, for the hash of the whole.
    Verify {
        /// Octets read.
        read: u64,
        /// Octets to be read.
        bytes: u64,
    },
    /// The receiver puts things in place.
    Place {
        /// Entries in place.
        done: u64,
        /// All of them.
        entries: u64,
    },
    /// The session is lost, or the path does not carry it any more; the receiver is called again.
    Lost,
}

/// A transfer that ended well.
#[derive(Debug, Clone, Serialize)]
pub struct Sent {
    /// The name of the first thing sent.
    pub name: String,
    /// Files.
    pub files: u64,
    /// Octets of their data.
    pub bytes: u64,
    /// Octets that the receiver already had.
    pub had: u64,
    /// Seconds from the first call to the end.
    pub seconds: f64,
    /// Seconds in which data moved.
    pub moving: f64,
    /// Octets on the wire, as the datagrams that this end sent.
    pub wire: u64,
    /// Data packets, those sent again included.
    pub packets: u64,
    /// Data packets sent again.
    pub again: u64,
    /// What the time was spent on: cause and share, the greatest first.
    pub limits: Vec<(Limit, f64)>,
    /// The hash of the whole.
    pub root: String,
}

/// Sends, for as long as it takes: a receiver that is away is waited for.
///
/// # Errors
/// If a file cannot be read or changes, the receiver refuses or gives up, or the user stops it.
pub fn send(
    options: &SendOptions,
    control: &Control,
    tell: &mut dyn FnMut(&Sending),
) -> Result<Sent, MoverError> {
    let scanned = &mut |entries, bytes| tell(&Sending::Scan { entries, bytes });
    let (manifest, source) = Manifest::scan_heeding(control.halt(), &options.paths, scanned)?;
    let Manner { clear: is_clear, raw: is_raw } = options.manner;
    let (link, places) = bound(&options.to, is_raw)?;
    link.heed_icmp();
    let encoded = manifest.encode();
    let bytes = manifest.stream_bytes();
    let cut = Cut::of(bytes);
    let chunks = bytes.div_ceil(cut.chunk.into()) as usize;
    let mut mover = Mover {
        identity: manifest.identity(),
        manifest,
        bytes,
        encoded,
        source,
        cut,
        hashes: vec![None; chunks],
        flow: Flow::new((link, places), is_clear, control, cut.buffer()),
        tell,
        moved: 0,
        had: None,
        moving: Span::ZERO,
    };
    let offer = mover.offer();
    // A receiver that has met this end before has its transfer in hand, and wants the OPEN of who is known.
    let mut first = Some((&offer[..], bytes >= LONG));
    let mut pause = Span::ZERO;
    loop {
        let before = mover.moved;
        let mut session = mover.meet(&options.secret, first.take())?;
        if mover.talk(&mut session)? == Outcome::Done {
            return Ok(mover.sent());
        }
        (mover.tell)(&Sending::Lost);
        pause = lengthened(pause, mover.moved > before);
        mover.flow.pause(pause)?;
    }
}

/// The pause before the next call, after one of this length, when a session is lost that has moved something or not.
fn lengthened(pause: Span, has_moved: bool) -> Span {
    if has_moved { Span::ZERO } else { pause.scaled(2, 1).max(PAUSES.0).min(PAUSES.1) }
}

/// A link to these addresses, and each of them as the link calls it. Raw packets go to those of the first one's family.
fn bound(to: &[SocketAddr], is_raw: bool) -> Result<(Link, Vec<SocketAddr>), MoverError> {
    let first = to.first().ok_or(MoverError::Nowhere)?;
    let is_first = |it: &&SocketAddr| it.is_ipv4() == first.is_ipv4();
    let alike = || to.iter().filter(is_first).copied().take(MOST_PLACES).collect::<Vec<_>>();
    let any: SocketAddr = match first {
        SocketAddr::V4(_) => (Ipv4Addr::UNSPECIFIED, 0).into(),
        SocketAddr::V6(_) => (Ipv6Addr::UNSPECIFIED, 0).into(),
    };
    if is_raw {
        let places = alike().into_iter().map(|it| SocketAddr::new(it.ip(), 0)).collect();
        return Ok((Link::bind(any, true)?, places));
    }
    // A socket of IPv6 calls both. A kernel without IPv6 has none.
    if !to.iter().all(|it| is_first(&it))
        && let Ok(link) = Link::bind((Ipv6Addr::UNSPECIFIED, 0).into(), false)
    {
        return Ok((link, to.iter().map(mapped).take(MOST_PLACES).collect()));
    }
    Ok((Link::bind(any, false)?, alike()))
}

/// An address as a socket of IPv6 calls it.
fn mapped(address: &SocketAddr) -> SocketAddr {
    match address {
        SocketAddr::V4(it) => (it.ip().to_ipv6_mapped(), it.port()).into(),
        SocketAddr::V6(_) => *address,
    }
}

struct Mover<'a> {
    manifest: Manifest,
    /// Bytes of its stream.
    bytes: u64,
    encoded: Vec<u8>,
    identity: [u8; 32],
    source: Source,
    cut: Cut,
    /// The hashes of the chunks that have been read.
    hashes: Vec<Option<[u8; 32]>>,
    flow: Flow<'a>,
    tell: &'a mut dyn FnMut(&Sending),
    /// Octets of data confirmed in this run.
    moved: u64,
    /// Octets that the receiver had when it first answered.
    had: Option<u64>,
    moving: Span,
}

impl Mover<'_> {
    /// What an OPEN says that offers the transfer.
    fn offer(&self) -> Vec<u8> {
        let (identity, cut) = (self.identity, self.cut);
        let manifest = self.encoded.len() as u64;
        Ask::Offer(Offer { identity, manifest, cut, unfilled: true }).text()
    }

    /// Calls the receiver until it answers; `first` is what its first words may offer. Tells of each second of waiting.
    fn meet(
        &mut self,
        secret: &Secret,
        first: Option<(&[u8], bool)>,
    ) -> Result<Session, MoverError> {
        let (tell, mut last) = (&mut self.tell, -1.0);
        self.flow.meet(secret, first, &mut |waited, why| {
            let seconds = waited.as_secs_f64().floor();
            if seconds > last {
                last = seconds;
                tell(&Sending::Connect { seconds, why });
            }
        })
    }

    /// Goes through a session to the end of the transfer or of the session.
    fn talk(&mut self, session: &mut Session) -> Result<Outcome, MoverError> {
        loop {
            let offer = self.offer();
            let is_long = self.bytes >= LONG;
            let Some((mut connection, text)) = self.flow.open(session, &offer, is_long)? else {
                return Ok(Outcome::Lost);
            };
            let (head, list, missing, had) = match Answer::read(&text) {
                Some(answer @ (Answer::All | Answer::Unfilled)) => {
                    let all = self.hashes.len() as u64;
                    let head = if answer == Answer::All { Head::Filled } else { Head::Unfilled };
                    (Some(head), (0..all).collect(), all, 0)
                }
                Some(Answer::Want { ranges, missing, had }) => {
                    self.check(&ranges)?;
                    let lacks = missing.saturating_mul(self.cut.chunk.into());
                    let had = had.unwrap_or(self.bytes.saturating_sub(lacks)).min(self.bytes);
                    (None, ranges.into_iter().flatten().collect(), missing, had)
                }
                Some(Answer::Whole) => (None, Vec::new(), 0, self.bytes),
                Some(Answer::Stopped) => return Err(MoverError::Gone(STOPPED.into())),
                _ => return Err(MoverError::Broken("no answer to an offer")),
            };
            self.had.get_or_insert(had);
            let job = self.job(list, missing);
            if head.is_some() || !job.list.is_empty() {
                let sent = self.send_chunks(session, &mut connection, head, &job, had)?;
                if sent == Outcome::Lost {
                    return Ok(sent);
                }
            }
            if job.rest.is_some() {
                let round = connection.sender().map_or(self.flow.answer, |it| it.control_timer());
                self.flow.end = Some(self.flow.link.now() + round);
                let outcome = self.finish(session, &mut connection)?;
                self.flow.end = None;
                if let Some(outcome) = outcome {
                    return Ok(outcome);
                }
            }
        }
    }

    /// What a connection carries that brings `list`, of so many chunks that are missing. If it brings all of them, the root goes
    /// behind.
    fn job(&self, list: Vec<u64>, missing: u64) -> Job {
        let unread = (0..).zip(&self.hashes).filter(|(_, hash)| hash.is_none());
        let unread = unread.map(|(chunk, _)| chunk);
        let is_whole = list.len() as u64 == missing;
        let rest = is_whole.then(|| unread.filter(|it| list.binary_search(it).is_err()).collect());
        Job { list, rest, cut: self.cut }
    }

    fn check(&self, ranges: &[Range<u64>]) -> Result<(), MoverError> {
        let are_there = ranges.last().is_some_and(|it| it.end <= self.hashes.len() as u64);
        if are_there { Ok(()) } else { Err(MoverError::Broken("chunks that there are not")) }
    }

    /// Octets of a chunk.
    fn octets(&self, chunk: u64) -> u64 {
        let left = self.bytes - chunk * u64::from(self.cut.chunk);
        left.min(self.cut.chunk.into())
    }

    /// Sends chunks, behind the manifest if that is wanted too, to a receiver that has so many octets.
    fn send_chunks(
        &mut self,
        session: &mut Session,
        connection: &mut Connection,
        head: Option<Head>,
        job: &Job,
        had: u64,
    ) -> Result<Outcome, MoverError> {
        let (all, cut) = (self.bytes, self.cut);
        let rest = job.rest.iter().flatten();
        let unread = rest.map(|&chunk| self.octets(chunk)).sum();
        let (ahead, read_ahead) = sync_channel(AHEAD);
        let (spare, spared) = channel();
        let Mover { source, hashes, flow, tell, moved, moving, encoded, .. } = self;
        let before = flow.link.now();
        let outcome = thread::scope(|scope| {
            // It ends with the feed, if the connection ends first.
            thread::Builder::new()
                .name("reader".into())
                .spawn_scoped(scope, move || read(source, job, &ahead, &spared))
                .map_err(MoverError::system("cannot start a thread"))?;
            let progress = Progress {
                confirmed: had,
                all,
                moved,
                verified: 0,
                unread,
                began: before.before(*moving),
                told: Time::ZERO,
                tell,
            };
            let octets = head.map(|_| Octets::new(encoded, cut.buffer()));
            let mut chunks = Chunks {
                heads: octets.as_ref().map_or(0, Octets::buffers),
                head: octets.zip(head),
                job,
                read: read_ahead,
                spare,
                hashes,
                progress,
                taken: 0,
                waiting: None,
            };
            flow.send(session, connection, &mut chunks)
        })?;
        self.moving += self.flow.link.now().since(before);
        Ok(outcome)
    }

    /// Waits until everything is in its place. The receiver says so by itself if it has got the root behind the chunks;
    /// otherwise, and if its word is lost, it is asked. `None` if chunks have been thrown away.
    fn finish(
        &mut self,
        session: &mut Session,
        connection: &mut Connection,
    ) -> Result<Option<Outcome>, MoverError> {
        let mut heard = self.flow.hear(session, connection)?;
        let mut ask = None;
        loop {
            let text = match heard.take() {
                Some(text) => text,
                None => {
                    let ask = self.finishing(&mut ask)?;
                    let Some((_, text)) = self.flow.open(session, &ask, false)? else {
                        return Ok(Some(Outcome::Lost));
                    };
                    text
                }
            };
            match Answer::read(&text) {
                Some(Answer::Done) => {
                    self.flow.say_done(session, connection.ports());
                    return Ok(Some(Outcome::Done));
                }
                Some(Answer::Placing { done, all }) => {
                    (self.tell)(&Sending::Place { done, entries: all });
                    heard = self.flow.hear(session, connection)?;
                }
                Some(Answer::Differs) => return self.send_hashes(session),
                Some(Answer::Stopped) => return Err(MoverError::Gone(STOPPED.into())),
                // All of it stands there already: it is asked with the root.
                Some(Answer::Whole) => self.had = Some(self.bytes),
                // What was there has gone: it is offered again.
                Some(Answer::All | Answer::Want { .. }) => return Ok(None),
                _ => return Err(MoverError::Broken("no answer to the end")),
            }
        }
    }

    /// The question whether everything is in its place, with the root.
    fn finishing(&mut self, ask: &mut Option<Vec<u8>>) -> Result<Vec<u8>, MoverError> {
        if ask.is_none() {
            self.read_the_rest()?;
            self.source.unchanged()?;
            self.flow.end = Some(self.flow.link.now() + self.flow.answer);
            let hashes = self.hashes.iter().map(|it| it.unwrap_or_default());
            *ask = Some(Ask::Finish { identity: self.identity, root: root(hashes) }.text());
        }
        Ok(ask.clone().unwrap_or_default())
    }

    /// Tells the hashes of all chunks, so that the receiver throws away those that differ.
    fn send_hashes(&mut self, session: &mut Session) -> Result<Option<Outcome>, MoverError> {
        self.read_the_rest()?;
        let hashes: Vec<[u8; 32]> = self.hashes.iter().map(|it| it.unwrap_or_default()).collect();
        let ask = Ask::Hashes { identity: self.identity };
        let Some((mut connection, _)) = self.flow.open(session, &ask.text(), false)? else {
            return Ok(Some(Outcome::Lost));
        };
        let hashes = hashes.concat();
        let mut octets = Octets::new(&hashes, self.flow.buffer);
        let outcome = self.flow.send(session, &mut connection, &mut octets)?;
        Ok((outcome == Outcome::Lost).then_some(outcome))
    }

    /// Reads the chunks that the receiver had before this run, for the hash of the whole.
    fn read_the_rest(&mut self) -> Result<(), MoverError> {
        let rest: Vec<u64> = (0..self.hashes.len() as u64)
            .filter(|&it| self.hashes[it as usize].is_none())
            .collect();
        let bytes: u64 = rest.iter().map(|&chunk| self.octets(chunk)).sum();
        let (mut read, mut data, mut told) = (0, Vec::new(), Time::ZERO);
        for chunk in rest {
            self.flow.check_stop()?;
            let before = self.flow.link.now();
            self.hashes[chunk as usize] =
                Some(self.source.read(chunk, self.cut.chunk, &mut data)?);
            read += data.len() as u64;
            let now = self.flow.link.now();
            self.flow.account.book(Limit::Disk, now.since(before));
            if now >= told + TELL {
                told = now;
                (self.tell)(&Sending::Verify { read, bytes });
            }
        }
        Ok(())
    }

    fn sent(self) -> Sent {
        let hashes = self.hashes.iter().map(|it| it.unwrap_or_default());
        let root = blake3::Hash::from_bytes(root(hashes)).to_hex().to_string();
        let bytes = self.bytes;
        Sent {
            name: self.manifest.name(),
            files: self.manifest.files() as u64,
            bytes,
            had: self.had.unwrap_or(bytes),
            seconds: self.flow.link.now().since(Time::ZERO).as_secs_f64(),
            moving: self.moving.as_secs_f64(),
            wire: self.flow.link.carried.sent,
            packets: self.flow.packets.0,
            again: self.flow.packets.1,
            limits: self.flow.account.shares(),
            root,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sessions that are lost as soon as they have begun, as if two receivers answered, are begun ever more seldom.
    #[test]
    fn vain_sessions_are_begun_ever_more_seldom() {
        let pauses: Vec<Span> =
            std::iter::successors(Some(Span::ZERO), |&it| Some(lengthened(it, false)))
                .take(20)
                .collect();
        assert_eq!(pauses[1..4], [100, 200, 400].map(Span::from_millis));
        assert_eq!(pauses[19], PAUSES.1);
        assert_eq!(lengthened(PAUSES.1, true), Span::ZERO);
    }
}
