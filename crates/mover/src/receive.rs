//! The receiving end: lets in who knows the secret, and takes what is missing.

mod asked;
mod disk;
mod early;
mod farewell;
mod last;
mod sort;

use crate::desk::{Desk, Done, Task, Wanted, make};
use crate::flow::Control;
use crate::incoming::{Current, Stream};
use crate::link::Link;
use crate::session::{Door, Knock, Secret, Session, unknown};
use crate::story::{Got, Receiving, Story};
use crate::words::{Answer, Offer};
use crate::{Manner, MoverError};
use early::Early;
use last::LastWord;
use sort::sort;
use std::collections::VecDeque;
use std::net::SocketAddr;
use std::path::PathBuf;
use trunkline_core::{Span, Time};
use trunkline_transfer::TransferError;
use trunkline_transport::netblt::wire::{Packet, Ports, Read, Terms};
use trunkline_transport::netblt::{Ending, Out};

/// Sessions that are kept at most; the oldest without proof goes first.
const MOST_SESSIONS: usize = 16;
/// Connections whose OPEN, if it comes once more, opens nothing.
const MOST_PAST: usize = 256;
/// Copies of an OPEN whose times are kept while the disk is asked.
const MOST_COPIES: usize = 64;
/// The largest manifest: that of about four million files.
const MOST_MANIFEST: u64 = 256 << 20;
/// How long the answer to the end is said again if the sender has not heard it.
const LINGER: Span = Span::from_secs(5);
/// The same once the sender has been told.
const SOON: Span = Span::from_millis(1500);
/// From one word about what is in its place to the next.
const TELL: Span = Span::from_millis(100);
/// The same for a sender that comes again and reads all it has sent before it asks.
const REREAD: Span = Span::from_secs(600);
/// The longest sleep; and while the disk works.
const NAP: Span = Span::from_millis(50);
const SHORT_NAP: Span = Span::from_millis(1);

/// Where to receive, and from whom.
#[derive(Debug)]
pub struct ReceiveOptions {
    /// Everything is written beneath this directory.
    pub directory: PathBuf,
    /// The address and port of UDP.
    pub listen: SocketAddr,
    /// What both ends know.
    pub secret: Secret,
    /// How the data travel; whoever asks for encryption gets it in any case.
    pub manner: Manner,
    /// Octets of chunks that may be in memory.
    pub memory: u64,
    /// Whether files that stand there already may be replaced.
    pub replace: bool,
}

/// Receives one transfer. It waits for its sender for as long as it takes, and again if the sender goes.
///
/// # Errors
/// If the directory or the socket is of no use, too many codes are tried, the sender gives up, or the user stops it.
pub fn receive(
    options: ReceiveOptions,
    control: &Control,
    tell: &mut dyn FnMut(&Receiving),
) -> Result<Got, MoverError> {
    End::start(options, tell)?.work(control, tell)
}

/// Receives one transfer after another until the user stops it, and hands each result to `each`: a transfer that fails because
/// of its files ends no other.
///
/// # Errors
/// As those of [`receive`], but for files. Being stopped between two transfers is none.
pub fn keep_receiving(
    options: ReceiveOptions,
    control: &Control,
    tell: &mut dyn FnMut(&Receiving),
    each: &mut dyn FnMut(Result<Got, MoverError>),
) -> Result<(), MoverError> {
    let mut end = End::start(options, tell)?;
    end.is_kept = true;
    loop {
        match end.work(control, tell) {
            Err(MoverError::Stopped) if !end.story.has_begun() => return Ok(()),
            result @ (Ok(_) | Err(MoverError::Files(_))) => each(result),
            Err(error) => return Err(error),
        }
        end.renew();
    }
}

/// A session, and where its sender is.
struct Guest {
    number: u64,
    session: Session,
    at: SocketAddr,
    /// Whether something sealed has come from there.
    is_proved: bool,
    /// When it was answered first, and how long it took then to be heard.
    met: Time,
    round: Option<Span>,
    /// Its first words, if an OPEN came with them and nothing sealed has come since.
    early: Option<Box<Early>>,
}

/// An OPEN that waits for the disk's answer.
struct Pending {
    guest: u64,
    terms: Terms,
    ports: Ports,
    /// The transfer that it offers.
    offer: Option<Offer>,
    /// When it came, and copies of it.
    came: Vec<Time>,
}

/// A failure of this end.
struct Failed {
    why: MoverError,
    /// Until when its sender can still be told.
    until: Time,
    /// The number of the first session that began after it.
    next: u64,
}

/// What has come that is not of the connection at work.
enum News {
    /// Somebody's first words, or nonsense, and when they came.
    Words(SocketAddr, Time, Vec<u8>),
    /// The connection of this number is at work, whose OPEN came at this time with the first words: all of an offer is wanted.
    Begun(Time, u32, Offer),
    /// A guest has been answered an OPEN that cannot be kept.
    Late(u64),
    /// A packet that a guest sealed.
    Packet(u64, Time, Read),
}

struct End {
    link: Link,
    door: Door,
    desk: Desk,
    /// Whether other transfers follow.
    is_kept: bool,
    /// Octets of memory for buffers, and whole buffers that wait for the disk.
    memory: u64,
    writing: u64,
    sessions: VecDeque<Guest>,
    next_session: u64,
    current: Option<Current>,
    pending: Option<Pending>,
    past: VecDeque<u32>,
    /// The newest answer that opened nothing, and whom it was for.
    said: Option<(u64, u32, Ports, Packet)>,
    /// The guest for whose offer the disk looks, and the offer of which a sender was told already that all is wanted.
    looking: Option<u64>,
    promised: Option<Offer>,
    placing: Option<(u64, u64)>,
    /// Whether the disk has the root and has not answered yet, and the guest and the ports of who is told the end.
    finishing: bool,
    teller: Option<(u64, Ports)>,
    told: Time,
    /// The root that its sender told.
    root: Option<[u8; 32]>,
    /// How it ended, well or not, and until when its sender can still be told.
    finished: Option<(Got, Time)>,
    last_word: Option<LastWord>,
    failed: Option<Failed>,
    story: Story,
}

impl End {
    fn start(options: ReceiveOptions, tell: &mut dyn FnMut(&Receiving)) -> Result<End, MoverError> {
        let Manner { clear, raw } = options.manner;
        let link = Link::listen(options.listen, raw)?;
        let address = link.address().map_err(MoverError::system("no address"))?;
        make(&options.directory)?;
        let desk = Desk::start(options.directory, options.replace)?;
        tell(&Receiving::Listen { address });
        Ok(End {
            link,
            door: Door::new(options.secret, clear),
            desk,
            is_kept: false,
            memory: options.memory,
            writing: 0,
            sessions: VecDeque::new(),
            next_session: 0,
            current: None,
            pending: None,
            past: VecDeque::new(),
            said: None,
            looking: None,
            promised: None,
            placing: None,
            finishing: false,
            teller: None,
            told: Time::ZERO,
            root: None,
            finished: None,
            last_word: None,
            failed: None,
            story: Story::default(),
        })
    }

    /// Forgets the transfer that has ended. Sessions stay: their senders may ask for its end once more, or offer another.
    fn renew(&mut self) {
        (self.current, self.pending, self.placing) = (None, None, None);
        (self.finishing, self.teller, self.root) = (false, None, None);
        (self.finished, self.failed, self.promised) = (None, None, None);
        self.last_word = None;
        self.story = Story::default();
        self.desk.give(Task::Renew);
    }

    fn work(
        &mut self,
        control: &Control,
        tell: &mut dyn FnMut(&Receiving),
    ) -> Result<Got, MoverError> {
        loop {
            if control.is_stopped() {
                self.desk.halt();
                // The disk says how far it has come, which may be the end.
                if !self.finishing {
                    return self.stopped();
                }
            }
            let now = self.link.now();
            for done in self.done() {
                self.did(now, done, tell);
            }
            self.hear(tell)?;
            let now = self.link.now();
            self.say(now, tell);
            self.say_last_word(now);
            self.progress(now, tell);
            if let Some((got, until)) = &self.finished
                && *until <= now
            {
                return Ok(got.clone());
            }
            if let Some(failed) = self.failed.take_if(|it| it.until <= now) {
                return Err(failed.why);
            }
            self.rest(now);
        }
    }

    /// Takes in all that has come, each datagram with the time at which it came.
    fn hear(&mut self, tell: &mut dyn FnMut(&Receiving)) -> Result<(), MoverError> {
        let mut news = Vec::new();
        loop {
            let is_free = self.is_idle();
            let End { link, sessions, current, desk, writing, finishing, teller, root, .. } = self;
            let more = link.receive(|from, at, datagram| {
                let mut give = |task, by| {
                    *writing += u64::from(matches!(task, Task::Buffer(..)));
                    if matches!(task, Task::Finish(_) | Task::Manifest(_)) {
                        *teller = Some(by);
                    }
                    if let Task::Finish(its) = task {
                        (*finishing, *root) = (true, Some(its));
                    }
                    desk.give(task);
                };
                let came = (from, at, datagram);
                news.extend(sort(came, sessions, (&mut *current, is_free), &mut give));
            })?;
            for one in news.drain(..) {
                match one {
                    News::Words(from, at, datagram) => self.words(from, at, &datagram)?,
                    News::Begun(at, uid, offer) => self.begun(at, uid, offer),
                    News::Late(guest) => self.forget(guest),
                    News::Packet(guest, at, read) => self.sealed(at, guest, read, tell),
                }
            }
            if !more {
                return Ok(());
            }
        }
    }

    /// Takes in what no guest sealed.
    fn words(&mut self, from: SocketAddr, at: Time, datagram: &[u8]) -> Result<(), MoverError> {
        if self.is_copy(from, at, datagram) {
            return Ok(());
        }
        match self.door.knock(datagram)? {
            Knock::Answer(answer) => {
                self.reply(from, &answer);
                self.door.is_guessed()?;
            }
            Knock::Session(answer, session) => {
                self.reply(from, &answer);
                self.admit(from, *session, None);
            }
            Knock::Early(arrived) => self.arrived(from, at, datagram, *arrived),
            Knock::Nothing => {
                unknown(datagram).into_iter().for_each(|answer| self.reply(from, &answer));
            }
        }
        Ok(())
    }

    fn reply(&mut self, to: SocketAddr, answer: &[u8]) {
        self.link.put(to, |out| out.extend(answer));
        self.link.flush();
    }

    fn admit(&mut self, at: SocketAddr, session: Session, early: Option<Box<Early>>) -> u64 {
        if self.sessions.len() == MOST_SESSIONS {
            let at_work = self.current.as_ref().map(|it| it.guest);
            let unproved = self.sessions.iter().position(|it| !it.is_proved);
            let idle = self.sessions.iter().position(|it| Some(it.number) != at_work);
            let goes = unproved.or(idle).unwrap_or_default();
            self.sessions.remove(goes);
        }
        let number = self.next_session;
        self.next_session += 1;
        let met = self.link.now();
        let (is_proved, round) = (false, None);
        self.sessions.push_back(Guest { number, session, at, is_proved, met, round, early });
        number
    }

    /// Takes in a packet that some sender sealed and that is not of the connection at work.
    fn sealed(&mut self, now: Time, guest: u64, read: Read, tell: &mut dyn FnMut(&Receiving)) {
        let ports = read.ports.turned();
        match read.packet {
            Packet::Open(terms) => self.opened(now, guest, terms, ports, tell),
            Packet::Done if self.finished.is_some() => {
                // The sender knows.
                self.finished.iter_mut().for_each(|it| it.1 = now);
                self.last_word = None;
            }
            _ => {}
        }
    }

    /// Something has been done on the disk.
    fn did(&mut self, now: Time, done: Done, tell: &mut dyn FnMut(&Receiving)) {
        match done {
            Done::Written(octets) => self.story.wrote(octets),
            Done::Emptied(buffer) => self.emptied(buffer),
            Done::Placing(done, all) => {
                self.placing = Some((done, all));
                tell(&Receiving::Place { done, entries: all });
                if self.pending.is_some() || now >= self.told + TELL {
                    self.told = now;
                    self.tell_end(&Answer::Placing { done, all });
                }
            }
            Done::Known { had, bytes, name } => {
                self.story.known(had, bytes, &name);
                let guest = self.current.as_ref().map(|it| it.guest);
                let from = self.sessions.iter().find(|it| Some(it.number) == guest);
                if let Some(from) = from.map(|it| it.at) {
                    tell(&Receiving::Connect { from, name, had, bytes });
                }
            }
            Done::Looked(is_new) => self.looked(now, is_new),
            Done::Wanted(wanted) if self.promised.take_if(|it| *it == wanted.offer).is_some() => {
                self.kept(now, wanted, tell);
            }
            Done::Wanted(wanted) => self.wanted(now, wanted, tell),
            Done::Root(answer) => {
                self.finishing = false;
                self.tell_end(&answer);
            }
            Done::Finished(finished) => {
                self.finished = Some((self.story.got(now, &finished, &self.link), now + LINGER));
                self.finishing = false;
                self.begin_last_word(now);
                self.tell_end(&Answer::Done);
            }
            // How far it has come is in the journal.
            Done::Failed(TransferError::Stopped) => self.finishing = false,
            Done::Failed(error) => {
                self.finishing = false;
                // What fails behind it fails because of it.
                if self.failed.is_none() {
                    self.give_up(&error.to_string());
                    let (why, until) = (error.into(), now + LINGER);
                    self.failed = Some(Failed { why, until, next: self.next_session });
                }
            }
        }
    }

    /// Tells who asked how the end is, or else whose connection brought the root.
    fn tell_end(&mut self, answer: &Answer) {
        if let Some(pending) = self.pending.take() {
            return self.answer(&pending, answer);
        }
        if let Some((guest, ports)) = self.teller {
            self.tell_guest(guest, ports, &Packet::Text(answer.text()), &[]);
        }
    }

    /// The disk has said what it wants of the offer that is pending.
    fn wanted(&mut self, now: Time, wanted: Wanted, tell: &mut dyn FnMut(&Receiving)) {
        let Wanted { offer, answer, had, bytes, name } = wanted;
        let is_meant = |it: &mut Pending| it.offer == Some(offer);
        let Some(pending) = self.pending.take_if(is_meant) else { return };
        self.story.is_of(pending.came[0], offer);
        self.story.known(had, bytes, &name);
        let from = self.sessions.iter().find(|it| it.number == pending.guest).map(|it| it.at);
        if let Some(from) = from {
            tell(&Receiving::Connect { from, name, had, bytes });
        }
        match &answer {
            Answer::Want { .. } => {
                // Only as many ranges as were told.
                let told = Answer::read(&answer.text());
                let Some(Answer::Want { ranges, missing, .. }) = told else { return };
                let list = ranges.into_iter().flatten().collect();
                let stream = Stream::chunks(offer.cut, list, missing);
                self.accept(now, &pending, &answer, stream);
            }
            Answer::All => {
                let stream = Stream::everything(offer.cut, offer.manifest);
                self.accept(now, &pending, &offer.welcome(), stream);
            }
            _ => self.answer(&pending, &answer),
        }
    }

    /// Says what the connection at work has to say.
    fn say(&mut self, now: Time, tell: &mut dyn FnMut(&Receiving)) {
        self.say_early(now);
        let End { link, sessions, current, .. } = self;
        let Some(Current { guest, connection, .. }) = current else { return };
        let Some(guest) = sessions.iter_mut().find(|it| it.number == *guest) else { return };
        if connection.deadline().is_some_and(|at| at <= now) {
            connection.expire(now);
        }
        while let Some(out) = connection.transmit(now) {
            if let Out::Packet(packet) = out {
                guest.session.say(link, guest.at, connection.ports(), &packet, &[]);
            }
        }
        link.flush();
        if let Some(ending) = connection.ending() {
            // After a failure of its own it has sent the sender away itself, and waits for nobody.
            if *ending != Ending::Done && self.failed.is_none() {
                tell(&Receiving::Away);
            }
            *current = None;
        }
    }

    fn tell_guest(&mut self, guest: u64, ports: Ports, packet: &Packet, data: &[u8]) {
        if let Some(guest) = self.sessions.iter_mut().find(|it| it.number == guest) {
            guest.session.say(&mut self.link, guest.at, ports, packet, data);
            self.link.flush();
        }
    }

    fn progress(&mut self, now: Time, tell: &mut dyn FnMut(&Receiving)) {
        // A sender that keeps to a cap leaves room unused too: only what the disk has not taken is in its way.
        let is_starved = self.writing > 0 && self.current.as_ref().is_some_and(Current::is_starved);
        let what = self.story.progress(now, self.current.is_some(), is_starved);
        what.iter().for_each(tell);
    }

    /// Sleeps until there is something to do. While data come it sleeps a little in any case, so that what comes meanwhile is one
    /// batch: the kernel knows when each came.
    fn rest(&mut self, now: Time) {
        let is_asked = self.pending.is_some() || self.looking.is_some();
        let at_disk = is_asked || self.finishing || self.writing > 0;
        let most = now + if at_disk { SHORT_NAP } else { NAP };
        let most = self.last_word.as_ref().map_or(most, |it| most.min(it.due()));
        let Some(current) = &mut self.current else { return self.link.wait(most) };
        let round = current.connection.receiver().map_or(Span::ZERO, |half| half.round());
        self.link.set_round(round);
        self.link.take_nap();
        let due = current.connection.deadline().unwrap_or(most);
        self.link.wait(due.min(most));
    }
}
