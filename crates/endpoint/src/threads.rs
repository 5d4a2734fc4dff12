//! The threads that drive the ends: one for each host, as a host has one processor.

use crate::EndpointError;
use crate::clock;
use crate::end::{End, Want};
use rustix::event::epoll::{self, CreateFlags, Event, EventData, EventFlags};
use rustix::event::{EventfdFlags, eventfd};
use rustix::time::Timespec;
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::num::NonZeroU64;
use std::os::fd::OwnedFd;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use trunkline_core::{Span, Time};
use trunkline_netns::{Namespace, prefer_thread, raise_open_files};

/// A thread whose application waits for a time sets its alarm earlier by what waking has taken of late and
/// this much, and looks at the clock for the rest.
const MARGIN: Span = Span::from_micros(3);
/// The earliest, for longer would take the processor from the emulator.
const EARLIEST: Span = Span::from_micros(80);
/// A sleep that nothing ends, in seconds.
const LONG: i64 = 3600;
/// The place before ordinary programs. The emulator's number is lower still.
const NICE: i32 = -19;
/// A slice shorter than others' lets a thread run as soon as it wakes.
const SLICE_NANOS: u64 = 100_000;
/// The event of the waker; ends are numbered from 0.
const WAKER: u64 = u64::MAX;

/// The threads of all hosts. Dropped, it ends them; flows that were not joined end without a result.
#[derive(Debug, Default)]
pub struct HostThreads(Mutex<BTreeMap<u64, Member>>);

/// One host's thread, from outside.
#[derive(Debug)]
struct Member {
    door: Option<Sender<Box<End>>>,
    waker: Waker,
    thread: Option<JoinHandle<()>>,
}

/// Wakes a host's thread.
#[derive(Debug, Clone)]
pub(crate) struct Waker(Arc<OwnedFd>);

impl Waker {
    fn new() -> io::Result<Waker> {
        let flags = EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK;
        Ok(Waker(Arc::new(eventfd(0, flags)?)))
    }

    /// Gives every end of the host a turn.
    pub fn wake(&self) {
        // The only failure is a counter that is full, and then the thread is awake already.
        let _ = rustix::io::write(&*self.0, &1u64.to_ne_bytes());
    }

    fn clear(&self) {
        // Nothing to read means that nobody called.
        let _ = rustix::io::read(&*self.0, &mut [0u8; 8]);
    }
}

impl HostThreads {
    /// No threads yet: each starts with the first flow of its host. The process may from now on open as
    /// many files as the system lets it.
    pub fn new() -> HostThreads {
        raise_open_files();
        HostThreads::default()
    }

    /// Gives an end to its host's thread.
    pub(crate) fn drive(&self, host: &Namespace, end: End) -> Result<Waker, EndpointError> {
        let mut members = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let member = match members.entry(host.inode()) {
            std::collections::btree_map::Entry::Occupied(found) => found.into_mut(),
            std::collections::btree_map::Entry::Vacant(place) => {
                place.insert(Member::start().map_err(EndpointError::Thread)?)
            }
        };
        if let Some(door) = &member.door {
            // A thread that has ended has said why.
            let _ = door.send(Box::new(end));
        }
        member.waker.wake();
        Ok(member.waker.clone())
    }
}

impl Member {
    fn start() -> io::Result<Member> {
        let (door, ends) = channel();
        let waker = Waker::new()?;
        let mut driver = Driver::new(ends, waker.clone())?;
        let body = move || {
            if let Err(error) = driver.run() {
                tracing::error!(%error, "a host's thread has ended");
            }
        };
        let thread = trunkline_netns::thread("tl-host")?.spawn(body)?;
        Ok(Member { door: Some(door), waker, thread: Some(thread) })
    }
}

impl Drop for Member {
    fn drop(&mut self) {
        self.door = None;
        self.waker.wake();
        // A panic there was printed when it happened.
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

/// One host's thread, from inside.
struct Driver {
    door: Receiver<Box<End>>,
    waker: Waker,
    epoll: OwnedFd,
    ends: BTreeMap<u64, (Box<End>, Want)>,
    next: u64,
    /// The times at which ends want their turn.
    due: BTreeSet<(Time, u64)>,
    /// Ends to be given a turn.
    ready: BTreeSet<u64>,
    /// The time by which the alarm is set before an application's time.
    early: Span,
}

impl Driver {
    fn new(door: Receiver<Box<End>>, waker: Waker) -> io::Result<Driver> {
        let epoll = epoll::create(CreateFlags::CLOEXEC)?;
        epoll::add(&epoll, &*waker.0, EventData::new_u64(WAKER), EventFlags::IN)?;
        Ok(Driver {
            door,
            waker,
            epoll,
            ends: BTreeMap::new(),
            next: 0,
            due: BTreeSet::new(),
            ready: BTreeSet::new(),
            early: MARGIN,
        })
    }

    fn run(&mut self) -> io::Result<()> {
        prepare_thread();
        let mut events = [Event { flags: EventFlags::empty(), data: EventData::new_u64(0) }; 64];
        loop {
            self.sleep(&mut events)?;
            let now = clock::now();
            while let Some(&(at, id)) = self.due.first().filter(|&&(at, _)| at <= now) {
                self.due.remove(&(at, id));
                self.ready.insert(id);
            }
            while let Some(id) = self.ready.pop_first() {
                self.turn(id)?;
            }
            if self.closed()? {
                return Ok(());
            }
        }
    }

    /// Takes in new ends. Answers whether there will be no more.
    fn closed(&mut self) -> io::Result<bool> {
        use std::sync::mpsc::TryRecvError;
        loop {
            match self.door.try_recv() {
                Ok(end) => self.admit(end)?,
                Err(TryRecvError::Empty) => return Ok(false),
                Err(TryRecvError::Disconnected) => return Ok(true),
            }
        }
    }

    fn admit(&mut self, end: Box<End>) -> io::Result<()> {
        let id = self.next;
        self.next += 1;
        epoll::add(&self.epoll, &*end, EventData::new_u64(id), EventFlags::empty())?;
        let want = Want { at: None, precise: false, read: false, write: false, over: false };
        self.ends.insert(id, (end, want));
        self.turn(id)
    }

    fn turn(&mut self, id: u64) -> io::Result<()> {
        let Some((end, want)) = self.ends.get_mut(&id) else { return Ok(()) };
        let before = std::mem::replace(want, end.turn());
        let after = *want;
        if let Some(at) = before.at.filter(|_| before.at != after.at) {
            self.due.remove(&(at, id));
        }
        if after.over {
            epoll::delete(&self.epoll, &**end)?;
            self.ends.remove(&id);
            return Ok(());
        }
        self.due.extend(after.at.map(|at| (at, id)));
        if (before.read, before.write) != (after.read, after.write) {
            let mut flags = EventFlags::empty();
            flags.set(EventFlags::IN, after.read);
            flags.set(EventFlags::OUT, after.write);
            epoll::modify(&self.epoll, &**end, EventData::new_u64(id), flags)?;
        }
        Ok(())
    }

    /// Waits for a time, a socket or the waker.
    fn sleep(&mut self, events: &mut [Event]) -> io::Result<()> {
        let Some(&(at, id)) = self.due.first() else { return self.doze(None, events) };
        if !self.ends.get(&id).is_some_and(|(_, want)| want.precise) {
            return self.doze(Some(at.since(clock::now())), events);
        }
        let alarm = at.before(self.early);
        let span = alarm.since(clock::now());
        self.doze(Some(span), events)?;
        if !self.ready.is_empty() {
            return Ok(());
        }
        if !span.is_zero() {
            self.learn(clock::now().since(alarm));
        }
        while clock::now() < at {
            std::hint::spin_loop();
        }
        Ok(())
    }

    /// Waking has taken `span`.
    fn learn(&mut self, span: Span) {
        let wanted = span + MARGIN;
        let (kept, new) = (self.early.scaled(7, 8), wanted.min(EARLIEST).scaled(1, 8));
        self.early = kept + new;
    }

    fn doze(&mut self, span: Option<Span>, events: &mut [Event]) -> io::Result<()> {
        let nanos = span.map_or(LONG as u64 * 1_000_000_000, Span::as_nanos);
        let timeout = Timespec {
            tv_sec: (nanos / 1_000_000_000) as i64,
            tv_nsec: (nanos % 1_000_000_000) as i64,
        };
        let count = match epoll::wait(&self.epoll, &mut *events, Some(&timeout)) {
            Ok(count) => count,
            Err(rustix::io::Errno::INTR) => 0,
            Err(error) => return Err(error.into()),
        };
        for event in &events[..count] {
            // Copied out: the structure is packed.
            let data = event.data;
            if data.u64() == WAKER {
                self.waker.clear();
                self.ready.extend(self.ends.keys());
            } else {
                self.ready.insert(data.u64());
            }
        }
        Ok(())
    }
}

/// Precise timers, and a place before ordinary programs.
fn prepare_thread() {
    if let Err(error) = rustix::thread::set_current_timer_slack(NonZeroU64::new(1)) {
        tracing::debug!(%error, "timer slack stays at its default of 50 us");
    }
    if let Err(error) = prefer_thread(NICE, SLICE_NANOS) {
        tracing::debug!(%error, "applications run at the ordinary priority");
    }
}
