//! What has been worked out of traffic that is under way together: once for all who are under way with the same.

use crate::flow::together;
use crate::group::{Group, writes};
use crate::tcp::{Rivals, writes_of};
use std::cell::RefCell;
use std::rc::Rc;
use trunkline_scenario::{Network, Start};

/// What was worked out, or why no formula covers it.
pub(crate) type Worked<T> = Rc<Result<T, String>>;

/// The last thing that was worked out, and of whom.
type Last<T> = RefCell<Option<(Vec<usize>, Worked<T>)>>;

/// A network, and what is known of its traffic.
pub(crate) struct Known<'a> {
    pub network: &'a Network<'a>,
    /// Whether all traffic is under way together.
    all: bool,
    rivals: Last<Rivals<'a>>,
    group: Last<Group<'a>>,
}

impl<'a> Known<'a> {
    /// Nothing is known yet.
    pub fn new(network: &'a Network<'a>) -> Known<'a> {
        let all = network.scenario().traffic.iter().all(|it| matches!(it.start, Start::At(_)));
        Known { network, all, rivals: RefCell::default(), group: RefCell::default() }
    }

    /// The connections that are under way together with traffic number `index`, its own included.
    pub fn rivals(&self, index: usize) -> Worked<Rivals<'a>> {
        self.of(&self.rivals, index, |members| Rivals::of(self.network, members, None))
    }

    /// The same if traffic number `index` writes `write` bytes at a time.
    pub fn rivals_writing(&self, index: usize, write: u64) -> Worked<Rivals<'a>> {
        let writes = writes_of(&self.network.scenario().traffic[index].workload);
        if writes.first() == Some(&write) {
            return self.rivals(index);
        }
        let members = together(self.network, index);
        Rc::new(Rivals::of(self.network, &members, Some((index, write))))
    }

    /// The transfers that are under way together with traffic number `index`, which writes `write` bytes at a time.
    pub fn group_writing(&self, index: usize, write: u32) -> Worked<Group<'a>> {
        let main = Some((index, write));
        if writes(&self.network.scenario().traffic[index].workload).0.len() == 1 {
            return self.of(&self.group, index, |members| Group::new(self.network, members, main));
        }
        Rc::new(Group::new(self.network, &together(self.network, index), main))
    }

    /// What is worked out of those who are under way together with traffic number `index`.
    fn of<T>(
        &self,
        last: &Last<T>,
        index: usize,
        work_out: impl FnOnce(&[usize]) -> Result<T, String>,
    ) -> Worked<T> {
        let mut last = last.borrow_mut();
        if let Some((_, worked)) = last.as_ref().filter(|_| self.all) {
            return worked.clone();
        }
        let members = together(self.network, index);
        if let Some((_, worked)) = last.as_ref().filter(|(known, _)| *known == members) {
            return worked.clone();
        }
        let worked = Rc::new(work_out(&members));
        *last = Some((members, worked.clone()));
        worked
    }
}
