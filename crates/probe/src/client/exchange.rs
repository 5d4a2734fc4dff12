//! Messages sent and answers awaited: one outstanding, or at intended instants.
//!
//! All of it is one thread. The instants of arrival are the kernel's if it stamps them, so that the
//! thread's other work disturbs no measurement; a message that it sends late counts from when it
//! was meant to be sent.

use super::carrier::Carrier;
use super::ledger::Ledger;
use crate::clock;
use crate::pacer::{MOST_BEHIND, Pace, Pacer};
use crate::result::GoalFigures;
use serde::Serialize;
use std::io;
use trunkline_core::{Seed, Span, Stream, Time};
use trunkline_fit::{Exchange, Goal, Look, Progress, Stopping};

/// The time between looks at the stop signs.
const LOOK: Span = Span::from_millis(50);
/// Answers that are taken before another message that is late is sent: more than one, so that none pile up.
const TAKEN: usize = 16;

/// The messages to be sent.
#[derive(Debug, Clone)]
pub struct Course {
    /// User octets of the messages; in each round one of each, in an order drawn anew.
    pub sizes: Vec<u32>,
    /// The way in which they follow each other.
    pub pace: Pace,
    /// The most rounds.
    pub rounds: u64,
    /// The time for which messages are sent. Those that are late go up to 100 ms after it.
    pub duration: Span,
    /// The time for which an answer is waited for.
    pub timeout: Span,
    /// Of the order and the intended instants.
    pub seed: Seed,
    /// The accuracy to which each size's delay is to be known; when all are, it ends.
    pub goal: Option<Goal>,
}

/// The reason why it ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Ended {
    /// All rounds are done.
    Count,
    /// Its time was over.
    Duration,
    /// All is known as well as asked.
    Goal,
    /// The user wanted it.
    Stopped,
    /// The server is gone.
    ServerGone,
}

/// The events meanwhile.
#[derive(Debug, Clone, Copy)]
pub enum Event {
    /// A message has been answered.
    Answer(Exchange),
    /// A message was sent; so many so far.
    Sent(u64),
}

/// The sizes, round by round, each round in an order of its own.
#[derive(Debug)]
struct Order {
    sizes: Vec<u32>,
    at: usize,
    rounds: u64,
    stream: Stream,
}

impl Order {
    fn new(course: &Course) -> Order {
        let stream = course.seed.stream("order");
        Order { sizes: course.sizes.clone(), at: course.sizes.len(), rounds: course.rounds, stream }
    }

    fn next(&mut self) -> Option<u32> {
        if self.at >= self.sizes.len() {
            self.rounds = self.rounds.checked_sub(1)?;
            self.shuffle();
            self.at = 0;
        }
        self.at += 1;
        self.sizes.get(self.at - 1).copied()
    }

    /// Fisher and Yates: every order is as likely as every other.
    fn shuffle(&mut self) {
        for last in (1..self.sizes.len()).rev() {
            let other = self.stream.below(last as u64 + 1) as usize;
            self.sizes.swap(last, other);
        }
    }
}

/// The state of one size's goal.
#[derive(Debug)]
struct Aim {
    size: u32,
    values: Vec<f64>,
    stopping: Stopping,
    known: Option<(Look, bool)>,
}

/// The states of all sizes' goals.
#[derive(Debug, Default)]
struct Aims(Vec<Aim>);

impl Aims {
    fn new(course: &Course) -> Aims {
        let aim = |goal: Goal| {
            let mut sizes = course.sizes.clone();
            sizes.sort_unstable();
            sizes.dedup();
            let one =
                |size| Aim { size, values: Vec::new(), stopping: Stopping::new(goal), known: None };
            sizes.into_iter().map(one).collect()
        };
        Aims(course.goal.map(aim).unwrap_or_default())
    }

    fn note(&mut self, exchange: &Exchange) {
        let Some(aim) = self.0.iter_mut().find(|aim| aim.size == exchange.size) else { return };
        aim.values.push(exchange.response() as f64 / 1e6);
        match aim.stopping.look(&aim.values) {
            Progress::More(_) => {}
            Progress::Reached(known) => aim.known = Some((known, true)),
            Progress::NotReached(known) => aim.known = Some((known, false)),
        }
    }

    fn are_reached(&self) -> bool {
        !self.0.is_empty() && self.0.iter().all(|aim| aim.known.is_some())
    }
}

/// The messages exchanged, and the reason why there are no more.
#[derive(Debug)]
pub struct Exchanged {
    /// The messages.
    pub ledger: Ledger,
    /// The reason why it ended.
    pub ended: Ended,
    /// For each size: what is known, and whether as well as asked. Empty without a goal.
    pub known: Vec<(u32, Option<Look>, bool)>,
    /// When it began.
    pub began: Time,
}

impl Exchanged {
    /// The result of the goal for one size.
    pub fn goal(&self, size: u32) -> Option<GoalFigures> {
        let (_, known_ms, reached) = *self.known.iter().find(|(known, ..)| *known == size)?;
        Some(GoalFigures { reached, known_ms })
    }
}

struct Work<'a> {
    carrier: &'a mut dyn Carrier,
    course: &'a Course,
    over: &'a dyn Fn() -> Option<Ended>,
    tell: &'a mut dyn FnMut(Event),
    ledger: Ledger,
    aims: Aims,
    order: Order,
    until: Time,
}

/// Sends messages and awaits their answers; their numbers go on from the end of `ledger`. `over` says when to
/// stop before the end.
pub fn exchange(
    carrier: &mut dyn Carrier,
    course: &Course,
    ledger: Ledger,
    over: &dyn Fn() -> Option<Ended>,
    tell: &mut dyn FnMut(Event),
) -> Exchanged {
    clock::wake_exactly();
    let (aims, order, began) = (Aims::new(course), Order::new(course), clock::now());
    let until = began + course.duration;
    let mut work = Work { carrier, course, over, tell, ledger, aims, order, until };
    let ended = match course.pace {
        Pace::OneOutstanding => work.one_outstanding(),
        pace => work.paced(Pacer::new(began, pace, course.seed)),
    };
    let ended = ended.unwrap_or(Ended::ServerGone);
    let reached = |aim: Aim| {
        let (known, reached) = aim.known.unzip();
        (aim.size, known, reached.unwrap_or(false))
    };
    let known = work.aims.0.into_iter().map(reached).collect();
    Exchanged { ledger: work.ledger, ended, known, began }
}

impl Work<'_> {
    fn one_outstanding(&mut self) -> io::Result<Ended> {
        loop {
            if let Some(ended) = self.ended(clock::now()) {
                return Ok(ended);
            }
            let Some(size) = self.order.next() else { return Ok(Ended::Count) };
            let Some(number) = self.send(size, clock::now())? else { continue };
            let patience = clock::now() + self.course.timeout;
            while self.is_outstanding(number) && clock::now() < patience {
                if let Some(ended) = (self.over)() {
                    return Ok(ended);
                }
                self.listen(patience)?;
            }
        }
    }

    fn paced(&mut self, mut pacer: Pacer) -> io::Result<Ended> {
        let ended = loop {
            let intended = pacer.next();
            if let Some(ended) = self.ended(intended) {
                break ended;
            }
            let Some(size) = self.order.next() else { break Ended::Count };
            self.take_some()?;
            while clock::now() < intended {
                if let Some(ended) = (self.over)() {
                    return Ok(ended);
                }
                self.listen(intended)?;
            }
            self.send(size, intended)?;
        };
        let patience = clock::now() + self.course.timeout;
        while self.ledger.answered() < self.ledger.sent() && clock::now() < patience {
            if let Some(ended) = (self.over)() {
                return Ok(ended);
            }
            self.listen(patience)?;
        }
        Ok(ended)
    }

    /// Whether it has ended before a message that is due at `due`.
    fn ended(&self, due: Time) -> Option<Ended> {
        let time = (due >= self.until).then_some(Ended::Duration);
        let goal = self.aims.are_reached().then_some(Ended::Goal);
        self.cut_off().or(goal).or(time)
    }

    /// Whether nothing more is to be sent, whatever is due.
    fn cut_off(&self) -> Option<Ended> {
        let late = clock::now() >= self.until + MOST_BEHIND;
        (self.over)().or(late.then_some(Ended::Duration))
    }

    fn is_outstanding(&self, number: u32) -> bool {
        self.ledger.is_outstanding(number)
    }

    /// Sends a message that was meant for `intended`, unless all ends before there is room for it. One outstanding is meant
    /// for when it goes.
    fn send(&mut self, size: u32, intended: Time) -> io::Result<Option<u32>> {
        let number = self.ledger.sent() as u32;
        let sent = match self.hand_over(number, size) {
            Ok(Some(sent)) => sent,
            Ok(None) => return Ok(None),
            // A datagram that the system does not take is one lost on the way out.
            Err(_) if !self.carrier.is_reliable() => {
                self.ledger.unsent += 1;
                clock::now()
            }
            Err(error) => return Err(error),
        };
        let intended = if self.course.pace == Pace::OneOutstanding { sent } else { intended };
        self.ledger.enter(size, intended, sent);
        (self.tell)(Event::Sent(self.ledger.sent()));
        Ok(Some(number))
    }

    /// Hands a message over to the carrier, when a reliable one has room for it; `None` if all ends before.
    fn hand_over(&mut self, number: u32, size: u32) -> io::Result<Option<Time>> {
        loop {
            match self.carrier.send(number, size) {
                Err(error)
                    if error.kind() == io::ErrorKind::WouldBlock && self.carrier.is_reliable() =>
                {
                    if self.cut_off().is_some() {
                        return Ok(None);
                    }
                    self.listen(clock::now() + LOOK)?;
                }
                sent => return sent.map(Some),
            }
        }
    }

    /// Takes answers that are there. Who is behind with sending does not wait for any, and would take none at all.
    fn take_some(&mut self) -> io::Result<()> {
        for _ in 0..TAKEN {
            if !self.listen(clock::now())? {
                break;
            }
        }
        Ok(())
    }

    /// Takes one answer if it comes before `until`, and in any case not long. Tells whether one came.
    fn listen(&mut self, until: Time) -> io::Result<bool> {
        let until = until.min(clock::now() + LOOK);
        let Some(reply) = self.carrier.receive(until)? else { return Ok(false) };
        if let Some(exchange) = self.ledger.note(reply) {
            self.aims.note(&exchange);
            (self.tell)(Event::Answer(exchange));
        }
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client::carrier::Reply;
    use std::collections::VecDeque;
    use trunkline_fit::Way;

    /// A path whose fate is written down: each message's answer comes after so many microseconds, or
    /// never.
    struct Scripted {
        fates: VecDeque<Option<u64>>,
        under_way: Vec<(Time, u32, u32)>,
        /// The time that it takes to send a message.
        cost: Span,
        /// The most messages whose answers had not been read when another was sent.
        most_unread: usize,
    }

    impl Scripted {
        fn new(fates: &[Option<u64>]) -> Scripted {
            let fates = fates.iter().copied().collect();
            Scripted { fates, under_way: Vec::new(), cost: Span::ZERO, most_unread: 0 }
        }
    }

    impl Carrier for Scripted {
        fn send(&mut self, number: u32, size: u32) -> io::Result<Time> {
            let now = clock::now();
            self.most_unread = self.most_unread.max(self.under_way.len());
            std::thread::sleep(self.cost.to_duration());
            if let Some(Some(micros)) = self.fates.pop_front() {
                self.under_way.push((now + Span::from_micros(micros), number, size));
            }
            Ok(now)
        }
        fn receive(&mut self, until: Time) -> io::Result<Option<Reply>> {
            self.under_way.sort();
            let due = self.under_way.first().map_or(Time::NEVER, |first| first.0);
            std::thread::sleep(due.min(until).since(clock::now()).to_duration());
            if due > until {
                return Ok(None);
            }
            let (at, number, size) = self.under_way.remove(0);
            Ok(Some(Reply { number, at, far: None, size }))
        }
        fn is_reliable(&self) -> bool {
            false
        }
        fn overhead(&self) -> u32 {
            0
        }
        fn is_stamped(&self) -> bool {
            true
        }
        fn reading(&self) -> serde_json::Value {
            serde_json::Value::Null
        }
    }

    fn course(pace: Pace, rounds: u64) -> Course {
        Course {
            sizes: vec![1, 64, 512],
            pace,
            rounds,
            duration: Span::from_secs(20),
            timeout: Span::from_millis(60),
            seed: Seed(5),
            goal: None,
        }
    }

    fn run(carrier: &mut Scripted, course: &Course) -> Exchanged {
        exchange(carrier, course, Ledger::default(), &|| None, &mut |_| {})
    }

    #[test]
    fn one_outstanding_goes_on_after_a_loss() {
        let mut carrier =
            Scripted::new(&[Some(500), None, Some(700), Some(90_000), Some(500), Some(500)]);
        let done = run(&mut carrier, &course(Pace::OneOutstanding, 2));
        assert_eq!((done.ended, done.ledger.sent()), (Ended::Count, 6));
        let ranges = [(0, 0), (2, 5)];
        let seen = done.ledger.observations(Some(&ranges), 0, false);
        let ways: Vec<_> = seen.lost.iter().map(|lost| (lost.sequence, lost.way)).collect();
        // The fourth answer comes too late to be waited for, and counts all the same if the run lasts.
        assert_eq!(ways[0], (1, Some(Way::Out)));
        assert!(ways.len() == 1 || ways[1] == (3, Some(Way::Back)), "{ways:?}");
        assert!(seen.exchanges.iter().all(|one| one.intended == one.sent));
    }

    #[test]
    fn paced_messages_do_not_wait_for_answers_and_count_from_the_intended_instant() {
        let mut carrier = Scripted::new(&[Some(20_000); 12]);
        let pace = Pace::Every(Span::from_millis(2));
        let done = run(&mut carrier, &course(pace, 4));
        let seen = done.ledger.observations(None, 0, false);
        assert_eq!((seen.exchanges.len(), seen.lost.len()), (12, 0));
        let intended: Vec<i64> =
            seen.in_order_of_sending().iter().map(|one| one.intended).collect();
        assert!(intended.windows(2).all(|two| two[1] - two[0] == 2_000_000));
        assert!(seen.exchanges.iter().all(|one| one.response() >= one.round_trip()));
        assert!(seen.exchanges.iter().all(|one| one.round_trip() == 20_000_000));
    }

    #[test]
    fn who_is_behind_with_sending_reads_answers_all_the_same() {
        let mut carrier = Scripted::new(&[Some(0); 300]);
        let done = run(&mut carrier, &course(Pace::Every(Span::from_nanos(1)), 100));
        assert_eq!((done.ledger.sent(), done.ledger.answered()), (300, 300));
        assert!(carrier.most_unread <= 1, "{}", carrier.most_unread);
    }

    #[test]
    fn who_is_behind_with_sending_ends_in_time() {
        let cost = Span::from_millis(1);
        let mut carrier = Scripted { cost, ..Scripted::new(&[]) };
        let pace = Pace::Every(Span::from_micros(1));
        let plan = Course { duration: Span::from_millis(50), ..course(pace, 1000) };
        let done = run(&mut carrier, &plan);
        // At a microsecond each three thousand messages are due long before the time is over.
        assert_eq!(done.ended, Ended::Duration);
        assert!(done.ledger.sent() < 3000);
    }

    #[test]
    fn each_round_has_each_size_once_in_an_order_of_its_own() {
        let mut order = Order::new(&course(Pace::OneOutstanding, 50));
        let all: Vec<u32> = std::iter::from_fn(|| order.next()).collect();
        assert_eq!(all.len(), 150);
        let mut orders = std::collections::BTreeSet::new();
        for round in all.chunks(3) {
            let mut sorted = round.to_vec();
            sorted.sort_unstable();
            assert_eq!(sorted, [1, 64, 512]);
            orders.insert(round.to_vec());
        }
        assert_eq!(orders.len(), 6);
    }

    #[test]
    fn it_ends_when_all_is_known() {
        let mut carrier = Scripted::new(&[Some(300); 3000]);
        let goal = Goal { relative: 0.5, least: 10, most: 100, ..Goal::default() };
        let plan = Course { goal: Some(goal), ..course(Pace::OneOutstanding, 1000) };
        let done = run(&mut carrier, &plan);
        assert_eq!(done.ended, Ended::Goal);
        assert_eq!(done.known.len(), 3);
        assert!(done.ledger.sent() < 1000, "{}", done.ledger.sent());
    }

    #[test]
    fn it_ends_when_told_and_when_its_time_is_over() {
        let mut carrier = Scripted::new(&[None; 3000]);
        let plan = course(Pace::OneOutstanding, 1000);
        let done =
            exchange(&mut carrier, &plan, Ledger::default(), &|| Some(Ended::Stopped), &mut |_| {});
        assert_eq!((done.ended, done.ledger.sent()), (Ended::Stopped, 0));
        let short = Course { duration: Span::from_millis(100), ..plan };
        assert_eq!(run(&mut Scripted::new(&[None; 9]), &short).ended, Ended::Duration);
    }
}
