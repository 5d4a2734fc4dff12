//! The shares of flows in what they have in common: progressive filling, in integers.
//!
//! Every flow's rate in bytes per second rises together until a flow meets its own limit (window,
//! requests) or a stage is full; the flows concerned stay there, and the rest go on rising.

use crate::way::Resource;
use std::collections::{BTreeMap, BTreeSet};
use trunkline_core::Span;

/// Fixed point: 2^-32.
const ONE: u128 = 1 << 32;

/// The demands of one system write of a flow.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Claim {
    /// User bytes of the write.
    pub bytes: u64,
    /// The least time between writes that the flow's own window and requests allow.
    pub own: Span,
    /// The time for which the write keeps each stage busy.
    pub demands: BTreeMap<Resource, Span>,
}

/// The limit of a flow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Limit {
    /// Its own window or requests.
    Own,
    /// A stage, shared with so many flows that it limits too, itself included.
    Stage(Resource, usize),
}

/// The rate that a flow gets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Grant {
    /// Time between writes.
    pub cycle: Span,
    pub limit: Limit,
}

/// Shares the stages among `claims`.
pub(crate) fn fill(claims: &[Claim]) -> Vec<Grant> {
    let mut own: Vec<(u128, usize)> = claims
        .iter()
        .enumerate()
        .map(|(flow, claim)| (per_byte(claim.own, claim.bytes), flow))
        .collect();
    own.sort_unstable();
    let mut filling = Filling::of(claims);
    let mut granted: Vec<Option<Grant>> = vec![None; claims.len()];
    let mut grant = |filling: &mut Filling, flow: usize, grant: Grant| {
        filling.take(&claims[flow], grant.cycle);
        granted[flow] = Some(grant);
    };
    let mut open = vec![true; claims.len()];
    while let Some(&(pace, flow)) = own.last() {
        if !open[flow] {
            own.pop();
            continue;
        }
        match filling.fullest() {
            Some((stage, resource)) if stage > pace => {
                let users: Vec<usize> = filling.users(resource).filter(|&it| open[it]).collect();
                for &user in &users {
                    open[user] = false;
                    let nanos = stage.saturating_mul(u128::from(claims[user].bytes)) / ONE;
                    let cycle = Span::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX));
                    let limit = Limit::Stage(resource, users.len());
                    grant(&mut filling, user, Grant { cycle, limit });
                }
            }
            _ => {
                open[flow] = false;
                grant(&mut filling, flow, Grant { cycle: claims[flow].own, limit: Limit::Own });
            }
        }
    }
    granted.into_iter().flatten().collect()
}

/// A stage as it fills.
#[derive(Default)]
struct Stage {
    /// Who uses it.
    users: Vec<usize>,
    /// How many of them rise.
    rising: usize,
    /// The part of it that the others have.
    taken: u128,
    /// Time for each byte that those who rise want together.
    wanted: u128,
}

impl Stage {
    /// Time for each byte at which those who rise fill what the others leave.
    fn pace(&self) -> u128 {
        self.wanted.saturating_mul(ONE) / ONE.saturating_sub(self.taken).max(1)
    }
}

/// The stages, and in which order those that somebody rises on are full.
struct Filling {
    stages: BTreeMap<Resource, Stage>,
    order: BTreeSet<(u128, Resource)>,
}

impl Filling {
    fn of(claims: &[Claim]) -> Filling {
        let mut stages: BTreeMap<Resource, Stage> = BTreeMap::new();
        for (flow, claim) in claims.iter().enumerate() {
            for (&resource, &demand) in &claim.demands {
                let stage = stages.entry(resource).or_default();
                stage.users.push(flow);
                stage.rising += 1;
                stage.wanted += per_byte(demand, claim.bytes);
            }
        }
        let order = stages.iter().map(|(&resource, stage)| (stage.pace(), resource)).collect();
        Filling { stages, order }
    }

    /// The stage that is full first, with the time for each byte at which it is.
    fn fullest(&self) -> Option<(u128, Resource)> {
        self.order.last().copied()
    }

    fn users(&self, resource: Resource) -> impl Iterator<Item = usize> + '_ {
        self.stages[&resource].users.iter().copied()
    }

    /// A flow rises no more.
    fn take(&mut self, claim: &Claim, cycle: Span) {
        for (&resource, &demand) in &claim.demands {
            let Some(stage) = self.stages.get_mut(&resource) else { continue };
            self.order.remove(&(stage.pace(), resource));
            stage.rising -= 1;
            stage.wanted -= per_byte(demand, claim.bytes);
            let cycle = u128::from(cycle.as_nanos().max(1));
            stage.taken = stage.taken.saturating_add(u128::from(demand.as_nanos()) * ONE / cycle);
            if stage.rising > 0 {
                self.order.insert((stage.pace(), resource));
            }
        }
    }
}

/// Time for each byte, rounded up.
fn per_byte(span: Span, bytes: u64) -> u128 {
    (u128::from(span.as_nanos()) * ONE).div_ceil(u128::from(bytes.max(1)))
}

/// The busy share of a stage in parts per million.
pub(crate) fn busy_ppm(claims: &[Claim], grants: &[Grant], resource: Resource) -> u64 {
    let shares = claims.iter().zip(grants).filter_map(|(claim, grant)| {
        let demand = claim.demands.get(&resource)?;
        Some(crate::formula::general::utilisation_ppm(*demand, grant.cycle))
    });
    shares.sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const LINE: Resource = Resource::Line(0, false);
    const OTHER: Resource = Resource::Line(1, false);

    fn claim(bytes: u64, own: u64, demands: &[(Resource, u64)]) -> Claim {
        let demands = demands.iter().map(|&(r, ms)| (r, Span::from_millis(ms))).collect();
        Claim { bytes, own: Span::from_millis(own), demands }
    }

    fn cycles(claims: &[Claim]) -> Vec<u64> {
        fill(claims).iter().map(|grant| grant.cycle.as_nanos() / 1_000_000).collect()
    }

    #[test]
    fn equal_flows_share_equally_and_small_ones_keep_their_own() {
        let one = claim(1000, 10, &[(LINE, 4)]);
        assert_eq!(cycles(&[one.clone(), one.clone()]), [10, 10], "8 of 10 ms");
        assert_eq!(cycles(&[one.clone(), one.clone(), one.clone()]), [12, 12, 12]);
        // The slow one takes 4 of 40 ms; the others share the rest: 2 × 4 / 0.9.
        let slow = claim(1000, 40, &[(LINE, 4)]);
        let fast = claim(1000, 1, &[(LINE, 4)]);
        assert_eq!(cycles(&[slow, fast.clone(), fast]), [40, 8, 8]);
    }

    #[test]
    fn two_bottlenecks() {
        let long = claim(1000, 1, &[(LINE, 4), (OTHER, 8)]);
        let short = claim(1000, 1, &[(LINE, 4)]);
        let grants = fill(&[long.clone(), long, short]);
        assert_eq!(grants[0].limit, Limit::Stage(OTHER, 2));
        assert_eq!(grants[0].cycle, Span::from_millis(16));
        assert_eq!(grants[2].limit, Limit::Stage(LINE, 1));
        assert_eq!(grants[2].cycle, Span::from_millis(8), "half of the first line is left");
    }

    proptest! {
        #[test]
        fn no_stage_is_overfull_and_one_flow_gets_its_slowest_stage(
            specs in prop::collection::vec((1u64..5000, 1u64..100, 0u64..50, 0u64..50), 1..8),
        ) {
            let claims: Vec<Claim> =
                specs.iter().map(|&(b, own, l, o)| claim(b, own, &[(LINE, l), (OTHER, o)])).collect();
            let grants = fill(&claims);
            for (claim, grant) in claims.iter().zip(&grants) {
                prop_assert!(grant.cycle >= claim.own);
            }
            for resource in [LINE, OTHER] {
                prop_assert!(busy_ppm(&claims, &grants, resource) <= 1_000_010);
            }
            let alone = fill(&claims[..1])[0].cycle;
            let slowest = claims[0].demands.values().max().unwrap();
            prop_assert_eq!(alone, claims[0].own.max(*slowest));
            prop_assert!(alone <= grants[0].cycle);
        }
    }
}
