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
    let mut granted: Vec<Option<Grant>> = vec![None; claims.len()];
    while granted.contains(&None) {
        let own = claims.iter().enumerate().filter(|&(i, _)| granted[i].is_none());
        let own = own.map(|(i, claim)| (per_byte(claim.own, claim.bytes), i)).max();
        let stage = fullest(claims, &granted);
        match (own, stage) {
            (Some((own, flow)), stage) if stage.is_none_or(|(stage, _)| own >= stage) => {
                granted[flow] = Some(Grant { cycle: claims[flow].own, limit: Limit::Own });
            }
            (_, Some((pace, resource))) => grant_stage(claims, &mut granted, pace, resource),
            (None, None) | (Some(_), None) => unreachable!("an ungranted flow has its own limit"),
        }
    }
    granted.into_iter().flatten().collect()
}

/// Gives all ungranted users of a stage the same bytes per second.
fn grant_stage(claims: &[Claim], granted: &mut [Option<Grant>], pace: u128, resource: Resource) {
    let wants = |i: usize| claims[i].demands.contains_key(&resource);
    let users: Vec<usize> =
        (0..claims.len()).filter(|&i| granted[i].is_none() && wants(i)).collect();
    for &user in &users {
        let nanos = pace.saturating_mul(u128::from(claims[user].bytes)) / ONE;
        let cycle = Span::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX));
        granted[user] = Some(Grant { cycle, limit: Limit::Stage(resource, users.len()) });
    }
}

/// Time for each byte, rounded up.
fn per_byte(span: Span, bytes: u64) -> u128 {
    (u128::from(span.as_nanos()) * ONE).div_ceil(u128::from(bytes.max(1)))
}

/// The stage that is full first, with the time for each byte at which it is.
fn fullest(claims: &[Claim], granted: &[Option<Grant>]) -> Option<(u128, Resource)> {
    let open = claims.iter().zip(granted).filter(|(_, grant)| grant.is_none());
    let resources: BTreeSet<Resource> =
        open.flat_map(|(claim, _)| claim.demands.keys().copied()).collect();
    resources.into_iter().map(|resource| (pace(claims, granted, resource), resource)).max()
}

/// Time for each byte at which the ungranted users of a stage fill what the others leave of it.
fn pace(claims: &[Claim], granted: &[Option<Grant>], resource: Resource) -> u128 {
    let (mut left, mut wanted) = (ONE, 0u128);
    for (claim, grant) in claims.iter().zip(granted) {
        let Some(&demand) = claim.demands.get(&resource) else { continue };
        match grant {
            None => wanted += per_byte(demand, claim.bytes),
            Some(grant) => {
                let taken =
                    u128::from(demand.as_nanos()) * ONE / u128::from(grant.cycle.as_nanos().max(1));
                left = left.saturating_sub(taken);
            }
        }
    }
    wanted.saturating_mul(ONE) / left.max(1)
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
