//! Fragments that have come and wait to be received, event by event.

use super::{BufferId, Delivery, EventId, Flags, NodeId, Source, Status};
use bytes::Bytes;
use std::collections::{BTreeSet, VecDeque};

/// What has come under events that are not done.
#[derive(Debug, Clone, Default)]
pub(super) struct Inbox {
    /// A message of one fragment, not of a crowd, that came while nothing else waited, as most do: the event is done when it
    /// is taken. The slots are empty then.
    alone: Option<Delivery>,
    /// In the order of events: mostly the first is done first, and what comes is of the last.
    slots: VecDeque<Slot>,
    /// Places for further events, empty: their memory is used again.
    spare: Vec<Slot>,
    /// The event that was received to its end last, and of whom.
    done: Option<(EventId, Source)>,
}

/// An event under which something has come.
#[derive(Debug, Clone, Default)]
struct Slot {
    event: EventId,
    /// Whether all other nodes send under it.
    crowd: bool,
    /// Those of which something has come, in their order.
    sources: Vec<(NodeId, Progress)>,
    waiting: VecDeque<Stored>,
}

/// What has come of a node under an event.
#[derive(Debug, Clone, Default)]
struct Progress {
    /// Fragments below this have come.
    next: u32,
    /// Others that have come.
    beyond: BTreeSet<u32>,
    /// How many there are, once that is known.
    count: Option<u32>,
    /// How many have been received by the application.
    taken: u32,
    /// Fragments below this were sent, as far as those tell that were refused.
    reach: u32,
}

/// Fragments that are asked for beyond those of which is known that they were sent (a choice: an entry's).
const GUESS: u32 = 33;

/// A fragment that waits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Stored {
    pub from: NodeId,
    pub fragment: u32,
    pub data: Bytes,
    pub buffer: Option<BufferId>,
}

/// What became of a fragment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Put {
    /// It is stored.
    New,
    /// It has come before, or its sender's message under the event that was received last is at its end.
    Copy,
    /// It is numbered beyond reason.
    Beyond,
    /// So many events are open, and there is room for no more.
    Crowded(usize),
}

/// Most fragments of a message, and how far one may be ahead of the first that is missing: a hostile peer's numbers cost no
/// more than this.
const MOST_FRAGMENTS: u32 = 1 << 16;
/// Most events under which something has come and that are not done.
const MOST_EVENTS: usize = 1 << 12;
/// Most empty places that are kept (a choice).
const MOST_SPARE: usize = 16;

impl Progress {
    fn note(&mut self, fragment: u32, last: bool) -> bool {
        if last {
            self.count = Some(fragment.saturating_add(1));
        }
        if fragment < self.next {
            return false;
        }
        if fragment > self.next {
            return self.beyond.insert(fragment);
        }
        self.next += 1;
        while self.beyond.remove(&self.next) {
            self.next += 1;
        }
        true
    }

    /// Fragments below this were sent.
    fn known(&self) -> u32 {
        let beyond = self.beyond.last().map_or(0, |last| last + 1);
        self.next.max(beyond).max(self.reach).max(self.count.unwrap_or(0))
    }

    fn holes(&self) -> impl Iterator<Item = u32> + '_ {
        (self.next..self.known()).filter(|number| !self.beyond.contains(number))
    }

    fn is_whole(&self) -> bool {
        self.count == Some(self.next)
    }

    fn is_taken(&self) -> bool {
        self.is_whole() && self.taken == self.next
    }
}

impl Slot {
    /// Whether every node that sends under this event is as `done` says; `nodes` are all of the cluster.
    fn all(&self, nodes: u16, done: impl Fn(&Progress) -> bool) -> bool {
        let expected = if self.crowd { usize::from(nodes) - 1 } else { 1 };
        self.sources.len() >= expected && self.sources.iter().all(|(_, it)| done(it))
    }

    fn progress(&self, from: NodeId) -> Option<&Progress> {
        let place = self.sources.binary_search_by_key(&from, |it| it.0).ok()?;
        Some(&self.sources[place].1)
    }

    fn progress_mut(&mut self, from: NodeId) -> &mut Progress {
        let place = match self.sources.binary_search_by_key(&from, |it| it.0) {
            Ok(place) => place,
            Err(place) => {
                self.sources.insert(place, (from, Progress::default()));
                place
            }
        };
        &mut self.sources[place].1
    }
}

impl Inbox {
    /// Whether a fragment of `from` may be: it is not numbered beyond reason, and not too many events are open.
    pub fn takes(&self, event: EventId, from: NodeId, fragment: u32) -> bool {
        let next = self.progress(event, from).map_or(0, |it| it.next);
        self.has_room(event) && fragment.saturating_sub(next) < MOST_FRAGMENTS
    }

    /// Whether an event is open, or can be.
    fn has_room(&self, event: EventId) -> bool {
        self.slots.len() < MOST_EVENTS || self.place(event).is_ok()
    }

    /// Stores a fragment, if it [takes](Inbox::takes) it and has not got it.
    #[inline]
    pub fn put(&mut self, event: EventId, flags: Flags, stored: Stored) -> Put {
        let whole = flags.last && !flags.crowd && stored.fragment == 0;
        if whole && self.is_empty() && !self.is_done(event, stored.from) {
            let Stored { from, fragment, data, buffer } = stored;
            let status = Status::EventDone;
            self.alone = Some(Delivery { from, event, fragment, status, data, buffer });
            return Put::New;
        }
        self.put_beside(event, flags, stored)
    }

    /// Whether the event that was received last is this one, and all of `from`'s message was in it.
    #[inline]
    fn is_done(&self, event: EventId, from: NodeId) -> bool {
        self.done.is_some_and(|(done, of)| done == event && of.has(from))
    }

    /// Whether nothing waits. An event of which something was received, and not all, may be open.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.alone.is_none() && self.slots.is_empty()
    }

    /// Stores a fragment beside others that wait.
    #[inline(never)]
    fn put_beside(&mut self, event: EventId, flags: Flags, stored: Stored) -> Put {
        self.unfold();
        if self.is_done(event, stored.from) {
            return Put::Copy;
        }
        if !self.has_room(event) {
            return Put::Crowded(self.slots.len());
        }
        if !self.takes(event, stored.from, stored.fragment) {
            return Put::Beyond;
        }
        if self.insert(event, flags, stored) { Put::New } else { Put::Copy }
    }

    /// What was alone is so no more.
    fn unfold(&mut self) {
        if let Some(Delivery { from, event, fragment, data, buffer, .. }) = self.alone.take() {
            let stored = Stored { from, fragment, data, buffer };
            self.insert(event, Flags { last: true, ..Flags::default() }, stored);
        }
    }

    fn insert(&mut self, event: EventId, flags: Flags, stored: Stored) -> bool {
        let slot = self.slot(event);
        slot.crowd |= flags.crowd;
        let progress = slot.progress_mut(stored.from);
        let new = progress.note(stored.fragment, flags.last);
        if new {
            slot.waiting.push_back(stored);
        }
        new
    }

    /// The next fragment of `event` from `from`; the event is forgotten behind its last. `nodes` are all of the cluster.
    #[inline]
    pub fn take(&mut self, event: EventId, from: Source, nodes: u16) -> Option<Delivery> {
        if self.alone.is_some() {
            let taken = self.alone.take_if(|it| it.event == event && from.has(it.from))?;
            self.done = Some((event, Source::Node(taken.from)));
            return Some(taken);
        }
        if self.slots.is_empty() { None } else { self.take_of_many(event, from, nodes) }
    }

    /// The same of fragments that wait beside others.
    #[inline(never)]
    fn take_of_many(&mut self, event: EventId, from: Source, nodes: u16) -> Option<Delivery> {
        let at = self.place(event).ok()?;
        let slot = &mut self.slots[at];
        let place = slot.waiting.iter().position(|stored| from.has(stored.from))?;
        let Stored { from, fragment, data, buffer } = slot.waiting.remove(place)?;
        let progress = slot.progress_mut(from);
        progress.taken += 1;
        let node_done = progress.is_taken();
        let event_done = node_done && slot.all(nodes, Progress::is_taken);
        let status = match (event_done, node_done) {
            (true, _) => Status::EventDone,
            (false, true) => Status::NodeDone,
            (false, false) => Status::More,
        };
        if event_done {
            let of = if self.slots[at].crowd { Source::Any } else { Source::Node(from) };
            self.done = Some((event, of));
            self.forget(at);
        }
        Some(Delivery { from, event, fragment, status, data, buffer })
    }

    /// Whether nothing waits but a message that came alone, so that nothing is known to be missing.
    #[inline]
    pub fn is_simple(&self) -> bool {
        self.slots.is_empty()
    }

    /// Whether this fragment has come.
    pub fn has(&self, event: EventId, from: NodeId, fragment: u32) -> bool {
        let progress = self.progress(event, from);
        let has = progress.is_some_and(|it| fragment < it.next || it.beyond.contains(&fragment));
        has || fragment == 0 && self.is_alone(event, from)
    }

    fn is_alone(&self, event: EventId, from: NodeId) -> bool {
        self.alone.as_ref().is_some_and(|it| it.event == event && it.from == from)
    }

    fn progress(&self, event: EventId, from: NodeId) -> Option<&Progress> {
        self.slots[self.place(event).ok()?].progress(from)
    }

    /// Where an event is, or would be: mostly at the end.
    fn place(&self, event: EventId) -> Result<usize, usize> {
        match self.slots.back() {
            None => return Err(0),
            Some(last) if last.event == event => return Ok(self.slots.len() - 1),
            Some(last) if last.event < event => return Err(self.slots.len()),
            Some(_) => {}
        }
        self.slots.binary_search_by_key(&event, |slot| slot.event)
    }

    /// The place of an event, made if there is none.
    fn slot(&mut self, event: EventId) -> &mut Slot {
        let place = match self.place(event) {
            Ok(place) => place,
            Err(place) => {
                let slot = self.spare.pop().unwrap_or_default();
                self.slots.insert(place, Slot { event, ..slot });
                place
            }
        };
        &mut self.slots[place]
    }

    /// Forgets an event.
    fn forget(&mut self, place: usize) {
        let Some(mut slot) = self.slots.remove(place) else { return };
        if self.spare.len() < MOST_SPARE {
            slot.crowd = false;
            slot.sources.clear();
            slot.waiting.clear();
            self.spare.push(slot);
        }
    }

    /// A fragment has come for which there was no room: what it says of its event is kept.
    pub fn refused(&mut self, event: EventId, from: NodeId, flags: Flags, fragment: u32) {
        self.unfold();
        let slot = self.slot(event);
        slot.crowd |= flags.crowd;
        let progress = slot.progress_mut(from);
        progress.reach = progress.reach.max(fragment + 1);
        if flags.last {
            progress.count = Some(fragment.saturating_add(1));
        }
    }

    /// The fragments of `from` that are missing before others that have come, or that were refused.
    pub fn holes(&self, from: NodeId) -> impl Iterator<Item = (EventId, u32)> + '_ {
        self.slots.iter().flat_map(move |slot| {
            let holes = slot.progress(from).into_iter().flat_map(Progress::holes);
            holes.map(move |number| (slot.event, number))
        })
    }

    /// The fragments of `from` that may be missing of an event: as far as is known, and some beyond that if its last has not
    /// come.
    pub fn missing(&self, event: EventId, from: NodeId) -> impl Iterator<Item = u32> + '_ {
        let progress = self.progress(event, from);
        let next = progress.map_or(0, |it| it.next);
        let until = match progress.map(|it| (it.count, it.known())) {
            None if self.is_alone(event, from) => next,
            None => GUESS,
            Some((Some(count), _)) => count,
            Some((None, known)) => known.saturating_add(GUESS),
        };
        let here = move |number: &u32| progress.is_some_and(|it| it.beyond.contains(number));
        (next..until).filter(move |number| !here(number))
    }

    /// The latest fragment of the latest event, which is received last, that lies in one of these buffers.
    pub fn latest_on_board(&mut self, of: impl Fn(BufferId) -> bool) -> Option<&mut Stored> {
        self.unfold();
        let slots = self.slots.iter_mut().rev();
        let mut waiting = slots.flat_map(|slot| slot.waiting.iter_mut().rev());
        waiting.find(|stored| stored.buffer.is_some_and(&of))
    }
}

#[cfg(test)]
impl Inbox {
    /// What waits, event by event: whose it is, and whether it lies in a buffer.
    pub fn shape(&self) -> Vec<(EventId, NodeId, bool)> {
        let waiting = |slot: &Slot| {
            let of = |it: &Stored| (slot.event, it.from, it.buffer.is_some());
            slot.waiting.iter().map(of).collect::<Vec<_>>()
        };
        let alone = self.alone.iter().map(|it| (it.event, it.from, it.buffer.is_some()));
        alone.chain(self.slots.iter().flat_map(waiting)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stored(from: u16, fragment: u32) -> Stored {
        Stored { from: NodeId(from), fragment, data: Bytes::new(), buffer: None }
    }

    const LAST: Flags = Flags { last: true, crowd: false, large: false };
    const CROWD: Flags = Flags { last: true, crowd: true, large: false };

    /// A second message under the event that was received last is none, whether it comes alone or not; another event's is.
    #[test]
    fn a_message_under_an_event_that_is_done_is_a_copy() {
        for flags in [LAST, CROWD] {
            let mut inbox = Inbox::default();
            assert_eq!(inbox.put(EventId(3), flags, stored(1, 0)), Put::New);
            assert_eq!(inbox.take(EventId(3), Source::Any, 2).unwrap().status, Status::EventDone);
            assert_eq!(inbox.put(EventId(3), flags, stored(1, 0)), Put::Copy);
            assert!(inbox.take(EventId(3), Source::Any, 2).is_none());
            assert_eq!(inbox.put(EventId(4), flags, stored(1, 0)), Put::New);
            assert_eq!(inbox.put(EventId(3), flags, stored(1, 0)), Put::Copy);
        }
    }

    #[test]
    fn an_event_of_one_node_is_done_with_its_last_fragment_whatever_the_order() {
        let mut inbox = Inbox::default();
        let event = EventId(3);
        assert_eq!(inbox.put(event, LAST, stored(1, 1)), Put::New);
        assert_eq!(inbox.put(event, LAST, stored(1, 1)), Put::Copy);
        assert_eq!(inbox.take(event, Source::Any, 4).unwrap().status, Status::More);
        assert!(inbox.take(event, Source::Any, 4).is_none());
        assert_eq!(inbox.put(event, Flags::default(), stored(1, 0)), Put::New);
        assert!(inbox.take(event, Source::Node(NodeId(2)), 4).is_none());
        assert_eq!(
            inbox.take(event, Source::Node(NodeId(1)), 4).unwrap().status,
            Status::EventDone
        );
        assert!(inbox.slots.is_empty());
    }

    /// A message that came alone is known, is received only by who asks for it, and is told from its copy; with another it
    /// waits in the order of events.
    #[test]
    fn a_message_that_came_alone_is_as_any_other() {
        let mut inbox = Inbox::default();
        let (first, second) = (EventId(3), EventId(2));
        assert_eq!(inbox.put(first, LAST, stored(1, 0)), Put::New);
        assert!(inbox.alone.is_some() && inbox.slots.is_empty());
        assert!(inbox.has(first, NodeId(1), 0) && !inbox.has(first, NodeId(2), 0));
        assert!(!inbox.has(first, NodeId(1), 1) && !inbox.has(second, NodeId(1), 0));
        assert_eq!(inbox.missing(first, NodeId(1)).count(), 0);
        assert_eq!(inbox.missing(second, NodeId(1)).count(), GUESS as usize);
        assert_eq!(inbox.holes(NodeId(1)).count(), 0);
        assert!(inbox.take(second, Source::Any, 4).is_none());
        assert!(inbox.take(first, Source::Node(NodeId(2)), 4).is_none());
        assert_eq!(inbox.clone().put(first, LAST, stored(1, 0)), Put::Copy);
        let beyond = stored(1, MOST_FRAGMENTS);
        assert_eq!(inbox.clone().put(second, Flags::default(), beyond), Put::Beyond);
        let taken = inbox.clone().take(first, Source::Node(NodeId(1)), 4).unwrap();
        assert_eq!((taken.from, taken.status), (NodeId(1), Status::EventDone));
        assert_eq!(inbox.put(second, LAST, stored(2, 0)), Put::New);
        assert!(inbox.alone.is_none());
        assert_eq!(inbox.shape().iter().map(|it| it.0).collect::<Vec<_>>(), [second, first]);
        for event in [first, second] {
            assert_eq!(inbox.take(event, Source::Any, 4).unwrap().status, Status::EventDone);
        }
        assert!(inbox.slots.is_empty());
    }

    #[test]
    fn a_crowd_is_done_when_all_others_are() {
        let mut inbox = Inbox::default();
        let event = EventId(0);
        inbox.put(event, CROWD, stored(1, 0));
        assert_eq!(inbox.take(event, Source::Any, 3).unwrap().status, Status::NodeDone);
        inbox.put(event, CROWD, stored(2, 0));
        assert_eq!(inbox.take(event, Source::Any, 3).unwrap().status, Status::EventDone);
    }
}
