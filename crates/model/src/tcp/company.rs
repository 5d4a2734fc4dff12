//! What is to be said of connections on one line that begin together.

use super::flow::Greedy;
use super::share::{Regime, Share};
use crate::way::Resource;

/// What the first windows of all others take on the line, if their queue outlasts the time-out that the first round trip gave.
pub(super) fn outlasted(flow: &Greedy<'_>, share: &Share) -> Option<String> {
    let resource = stage(share)?;
    let others = share.users as u64 - 1;
    let bytes = others * u64::from(flow.tcp.first) * u64::from(flow.tcp.payload);
    let queue = flow.capacity(resource).time_for(bytes);
    let timeout = flow.tcp.timeout(flow.round_trip);
    (queue > timeout).then(|| {
        format!(
            "the first windows of the others queue for {queue}, longer than the first time-out of {timeout}: what is only late is sent twice, and simulated throughputs of a minute were 0.3 to 1 of this"
        )
    })
}

/// The stage that limits a connection.
fn stage(share: &Share) -> Option<Resource> {
    match share.regime {
        Regime::Stage(resource) | Regime::Standing(resource) | Regime::Overflow(resource, _) => {
            Some(resource)
        }
        Regime::Window | Regime::Loss => None,
    }
}
