//! The course of starts and ends: which flows are under way beside which others, and for how much of their work.

use crate::tcp::Joins;
use std::collections::BTreeMap;

/// A flow's work, and when it begins.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Plan {
    pub traffic: usize,
    pub begins: Begins,
    /// The traffic with whose end it ends.
    pub until: Option<usize>,
    /// Done one after the other.
    pub works: Vec<Work>,
}

/// When a flow begins; times are seconds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Begins {
    At(f64),
    /// So long after each flow of a traffic has done this share of its first work, or has begun it if there is no share.
    AfterShare {
        traffic: usize,
        share: Option<f64>,
        later: f64,
    },
    /// So long after the end of a traffic.
    AfterEnd {
        traffic: usize,
        later: f64,
    },
}

/// A piece of work.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Work {
    /// So many seconds, whoever is there.
    Lasts(f64),
    /// As long as it takes beside those who are there.
    Takes,
}

/// A flow that is under way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Member {
    /// Its number.
    pub flow: usize,
    /// How it began.
    pub joins: Joins,
}

/// The flows that are under way, in the order of their numbers.
pub(super) type State = Vec<Member>;

/// A part of a flow's work beside the same others.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Stretch {
    /// The flow.
    pub member: Member,
    /// Which of its works.
    pub work: usize,
    /// Which state, by its place in the list of states.
    pub state: usize,
    /// The share of the work that is done in it; 0 of a work without end.
    pub share: f64,
    /// Seconds.
    pub lasts: f64,
}

/// What came of all flows.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Course {
    pub states: Vec<State>,
    /// By flow.
    pub stretches: Vec<Vec<Stretch>>,
    /// When each flow began, if it did.
    pub began: Vec<Option<f64>>,
}

/// What the members of a state come to.
pub(super) trait Found {
    /// How many seconds a work of a member takes beside the others; `None` if that is unknown, and then it has no end.
    fn takes(&mut self, state: &State, member: Member, work: usize) -> Option<f64>;

    /// After how many seconds a member has filled a queue that the `newcomer`, a flow that begins, finds; `None` if it never
    /// does.
    fn fills(&mut self, state: &State, member: Member, newcomer: usize) -> Option<f64>;
}

/// Follows flows until nothing more happens or `stop` seconds have passed.
pub(super) fn follow(plans: &[Plan], stop: f64, found: &mut impl Found) -> Course {
    let flows = plans.iter().map(|_| Flow::default()).collect();
    let (now, passed) = (0.0, State::new());
    let mut clock = Clock { plans, found, now, flows, passed, known: BTreeMap::new() };
    let stretches = vec![Vec::new(); plans.len()];
    let mut course = Course { stretches, ..Course::default() };
    // Each round a flow begins, comes to the next work, or ends; or lets another begin.
    let rounds = plans.iter().map(|plan| plan.works.len() + 3).sum::<usize>();
    for _ in 0..rounds {
        clock.settle();
        let state = clock.under_way();
        let place = clock.place(&state, &mut course.states);
        let next = clock.next(&state).unwrap_or(f64::INFINITY).min(stop);
        clock.pass(next, (state, place), &mut course.stretches);
        if next >= stop {
            break;
        }
    }
    course.began = clock.flows.iter().map(|flow| flow.met.filter(|_| flow.began)).collect();
    course
}

/// A flow as it stands.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
struct Flow {
    began: bool,
    joins: Joins,
    ended: bool,
    work: usize,
    /// The share of the work that is done.
    done: f64,
    /// When a condition that it waits for was met.
    met: Option<f64>,
}

struct Clock<'a, F> {
    plans: &'a [Plan],
    found: &'a mut F,
    now: f64,
    flows: Vec<Flow>,
    /// The state that has passed.
    passed: State,
    known: BTreeMap<State, usize>,
}

/// What is left of a work by rounding.
const NOTHING: f64 = 1e-9;

impl<F: Found> Clock<'_, F> {
    fn all(&self, traffic: usize, is: impl Fn(&Flow) -> bool) -> bool {
        let own = self.plans.iter().zip(&self.flows).filter(|(plan, _)| plan.traffic == traffic);
        own.map(|(_, flow)| flow).all(is)
    }

    /// Lets all begin and end that do so now.
    fn settle(&mut self) {
        loop {
            let before = self.flows.clone();
            for index in 0..self.plans.len() {
                self.settle_one(index);
            }
            if self.flows == before {
                break;
            }
        }
    }

    fn settle_one(&mut self, index: usize) {
        let plans = self.plans;
        let (plan, mut flow) = (&plans[index], self.flows[index]);
        let due = self.begins(index);
        flow.met = due;
        if !flow.began && due.is_some_and(|at| at <= self.now) {
            (flow.began, flow.joins) = (true, self.joins(index));
        }
        let cut = plan.until.is_some_and(|other| self.all(other, |it| it.ended));
        flow.ended |= flow.began && (cut || flow.work >= plan.works.len());
        self.flows[index] = flow;
    }

    /// When a flow begins, as far as that is known.
    fn begins(&self, index: usize) -> Option<f64> {
        let (met, later) = match self.plans[index].begins {
            Begins::At(at) => return Some(at),
            Begins::AfterEnd { traffic, later } => (self.all(traffic, |it| it.ended), later),
            Begins::AfterShare { traffic, share, later } => {
                let share = share.unwrap_or(0.0);
                let there = |it: &Flow| it.began && (it.work > 0 || it.done + NOTHING >= share);
                (self.all(traffic, there), later)
            }
        };
        self.flows[index].met.or_else(|| met.then_some(self.now + later))
    }

    /// How a flow that begins now joins those that were under way until now.
    fn joins(&mut self, index: usize) -> Joins {
        for &member in &self.passed {
            let Flow { work, met, .. } = self.flows[member.flow];
            if work >= self.plans[member.flow].works.len() {
                continue;
            }
            let fills = self.found.fills(&self.passed, member, index);
            if met.zip(fills).is_some_and(|(since, fills)| self.now - since >= fills) {
                return Joins::Behind;
            }
        }
        Joins::Together
    }

    fn under_way(&self) -> State {
        let each = self.flows.iter().enumerate();
        let under_way = each.filter(|(_, flow)| flow.began && !flow.ended);
        under_way.map(|(index, flow)| Member { flow: index, joins: flow.joins }).collect()
    }

    /// The place of a state in the list, to which it is added if it is new.
    fn place(&mut self, state: &State, states: &mut Vec<State>) -> usize {
        *self.known.entry(state.clone()).or_insert_with(|| {
            states.push(state.clone());
            states.len() - 1
        })
    }

    /// How long a flow's present work takes in all.
    fn length(&mut self, state: &State, member: Member) -> Option<f64> {
        let work = self.flows[member.flow].work;
        match self.plans[member.flow].works[work] {
            Work::Lasts(seconds) => Some(seconds),
            Work::Takes => self.found.takes(state, member, work),
        }
    }

    /// When something happens next.
    fn next(&mut self, state: &State) -> Option<f64> {
        let waits = self.flows.iter().filter(|flow| !flow.began).filter_map(|flow| flow.met);
        let mut next: Option<f64> = waits.reduce(f64::min);
        for &member in state {
            let Some(length) = self.length(state, member) else { continue };
            for share in self.marks(member.flow) {
                let at = self.now + (share - self.flows[member.flow].done) * length;
                next = Some(next.map_or(at, |next| next.min(at)));
            }
        }
        next
    }

    /// The shares of a flow's present work at which something happens: its end, and what others wait for.
    fn marks(&self, index: usize) -> Vec<f64> {
        let Flow { work, done, .. } = self.flows[index];
        let waited =
            self.plans.iter().zip(&self.flows).filter_map(|(plan, flow)| match plan.begins {
                Begins::AfterShare { traffic, share, .. }
                    if traffic == self.plans[index].traffic && work == 0 && flow.met.is_none() =>
                {
                    share.filter(|&share| share > done + NOTHING)
                }
                _ => None,
            });
        waited.chain([1.0]).collect()
    }

    /// Lets time pass, in which those under way do their work.
    fn pass(&mut self, to: f64, (state, place): (State, usize), stretches: &mut [Vec<Stretch>]) {
        let lasts = (to - self.now).max(0.0);
        for &member in &state {
            let length = self.length(&state, member).filter(|it| it.is_finite());
            let index = member.flow;
            let left = 1.0 - self.flows[index].done;
            let share =
                length.map_or(0.0, |length| if length > 0.0 { lasts / length } else { left });
            let share = if left - share < NOTHING { left } else { share };
            let work = self.flows[index].work;
            stretches[index].push(Stretch { member, work, state: place, share, lasts });
            let flow = &mut self.flows[index];
            flow.done += share;
            if share == left && length.is_some() {
                (flow.work, flow.done) = (work + 1, 0.0);
            }
        }
        (self.now, self.passed) = (to, state);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(traffic: usize, begins: Begins, works: &[Work]) -> Plan {
        Plan { traffic, begins, until: None, works: works.to_vec() }
    }

    /// What a function says of a member's work; a queue is full after three seconds.
    struct By<F>(F);

    impl<F: FnMut(&State, usize) -> Option<f64>> Found for By<F> {
        fn takes(&mut self, state: &State, _: Member, work: usize) -> Option<f64> {
            (self.0)(state, work)
        }

        fn fills(&mut self, _: &State, _: Member, _: usize) -> Option<f64> {
            Some(3.0)
        }
    }

    /// Ten seconds of work, shared equally by all who are there.
    fn shared(state: &State, _: usize) -> Option<f64> {
        Some(10.0 * state.len() as f64)
    }

    fn ends(course: &Course) -> Vec<f64> {
        course.stretches.iter().map(|own| own.iter().map(|it| it.lasts).sum()).collect()
    }

    /// The flows of each state.
    fn flows(course: &Course) -> Vec<Vec<usize>> {
        let of = |state: &State| state.iter().map(|member| member.flow).collect();
        course.states.iter().map(of).collect()
    }

    #[test]
    fn who_comes_later_than_the_others_end_is_alone() {
        let plans = [0.0, 12.0].map(|at| plan(at as usize, Begins::At(at), &[Work::Takes]));
        let course = follow(&plans, 1e9, &mut By(shared));
        assert_eq!(ends(&course), [10.0, 10.0]);
        assert_eq!(flows(&course), [vec![0], vec![], vec![1]]);
    }

    /// One is alone for 4 s of 10; then each has half, so that the first takes 12 s more, and the other 4 alone.
    #[test]
    fn shares_of_work_add_up_along_its_states() {
        let plans = [0.0, 4.0].map(|at| plan(at as usize, Begins::At(at), &[Work::Takes]));
        let course = follow(&plans, 1e9, &mut By(shared));
        let close = |found: f64, expected: f64| (found - expected).abs() < 1e-6;
        assert!(ends(&course).into_iter().zip([16.0, 16.0]).all(|(it, at)| close(it, at)));
        let shares: Vec<f64> = course.stretches[1].iter().map(|it| it.share).collect();
        assert!(close(shares[0], 0.6) && close(shares[1], 0.4), "{shares:?}");
    }

    #[test]
    fn one_begins_after_a_share_one_after_an_end_and_one_ends_with_another() {
        let share = Begins::AfterShare { traffic: 0, share: Some(0.5), later: 1.0 };
        let mut plans = vec![
            plan(0, Begins::At(0.0), &[Work::Takes]),
            plan(1, share, &[Work::Lasts(f64::INFINITY)]),
            plan(2, Begins::AfterEnd { traffic: 0, later: 2.0 }, &[Work::Lasts(3.0)]),
        ];
        plans[1].until = Some(2);
        let takes = |_: &State, _: usize| Some(8.0);
        let course = follow(&plans, 1e9, &mut By(takes));
        assert_eq!(ends(&course), [8.0, 8.0, 3.0], "from 5 to 13, and from 10 to 13");
        let states = [vec![0], vec![0, 1], vec![1], vec![1, 2], vec![]];
        assert_eq!(flows(&course), states);
    }

    /// The second begins before the first has filled a queue, the third when it has, and the fourth when they have all ended.
    #[test]
    fn who_begins_when_others_have_filled_a_queue_is_behind() {
        let plans =
            [0.0, 2.0, 3.0, 90.0].map(|at| plan(at as usize, Begins::At(at), &[Work::Takes]));
        let course = follow(&plans, 1e9, &mut By(shared));
        let members = course.states.iter().flatten();
        let behind = members.filter(|it| it.joins == Joins::Behind).map(|it| it.flow);
        assert_eq!(behind.collect::<std::collections::BTreeSet<_>>(), [2].into());
    }

    #[test]
    fn what_has_no_end_goes_on_to_the_stop() {
        let plans = [plan(0, Begins::At(1.0), &[Work::Takes, Work::Takes])];
        let course = follow(&plans, 20.0, &mut By(|_: &State, work| (work == 0).then_some(4.0)));
        let stretches: Vec<_> = course.stretches[0].iter().map(|it| (it.work, it.lasts)).collect();
        assert_eq!(stretches, [(0, 4.0), (1, 15.0)]);
    }
}
