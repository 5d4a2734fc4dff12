//! The greedy connections that are under way together, and what each gets.

use super::flow::Greedy;
use super::meets;
use super::share::{Flows, Share, shares};
use crate::flow::is_bulk;
use crate::medium;
use crate::way::Resource;
use std::collections::BTreeSet;
use trunkline_scenario::{Network, Transport, Workload};

/// Greedy connections under way together.
pub(crate) struct Rivals<'a> {
    pub flows: Flows<'a>,
    /// What each gets, or why no formula covers it.
    pub shares: Result<Vec<Share>, String>,
    /// The names of others that they meet, if their part is small; else why no formula covers them.
    pub strangers: Result<Vec<String>, String>,
    /// What is to be said of turns that are not equal.
    pub unequal: Option<String>,
}

impl<'a> Rivals<'a> {
    /// Among the traffics `members`; `own` is the number of one that writes so many bytes at a time, if it is not its first size.
    ///
    /// # Errors
    /// Why no formula covers them.
    pub fn of(
        network: &'a Network<'a>,
        members: &[usize],
        own: Option<(usize, u64)>,
    ) -> Result<Rivals<'a>, String> {
        let (greedy, others): (Vec<usize>, Vec<usize>) = members.iter().partition(|&&traffic| {
            let traffic = &network.scenario().traffic[traffic];
            is_bulk(traffic) && matches!(*traffic.transport, Transport::Tcp(_))
        });
        let mut flows = Vec::new();
        for traffic in greedy {
            let write = own.filter(|(index, _)| *index == traffic).map(|(_, write)| write);
            for number in 0..network.scenario().traffic[traffic].count.max(1) {
                flows.push(Greedy::new(network, traffic, number, write)?);
            }
        }
        let windows: Vec<medium::Window<'_>> = flows.iter().map(Greedy::under_way).collect();
        medium::fits(network, &windows)?;
        let unequal = medium::unequal(network, &windows);
        let flows = Flows::new(flows);
        let shares = shares(network, &flows);
        let strangers = strangers(network, &others, &flows);
        Ok(Rivals { flows, shares, strangers, unequal })
    }
}

/// Traffic that is not greedy TCP on the same stages: a small share is left out, a large one has no formula.
fn strangers(
    network: &Network<'_>,
    others: &[usize],
    flows: &Flows<'_>,
) -> Result<Vec<String>, String> {
    let used: BTreeSet<Resource> = flows.resources().collect();
    let mut light = Vec::new();
    for &other in others {
        if !meets(network, other, &used)? {
            continue;
        }
        let traffic = &network.scenario().traffic[other];
        if is_bulk(traffic) || matches!(traffic.workload, Workload::Paced { .. }) {
            return Err(format!("TCP beside {}", traffic.name));
        }
        light.push(traffic.name.clone());
    }
    Ok(light)
}
