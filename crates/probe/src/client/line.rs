//! The line alone, measured with datagrams before the steps of a window are looked for.

use super::Connection;
use super::carrier::Carrier;
use super::exchange::{Course, Ended, exchange};
use super::fitting::one_way;
use super::ledger::Ledger;
use super::udp_carrier::{Datagrams, Udp};
use crate::pacer::Pace;
use crate::stamp::TimingError;
use crate::wire::message::{FlowSpec, Role, Transport};
use crate::{ProbeError, clock};
use trunkline_core::{Seed, Span};
use trunkline_fit::{Line, Observations};

/// Rounds that are made in any case, and at most.
const ROUNDS: (u64, u64) = (6, 24);
/// The time that all others may take.
const BUDGET: Span = Span::from_secs(3);
/// The time that it may take if datagrams are lost.
const LONGEST: Span = Span::from_secs(10);
/// The time for which an answer is waited for.
const TIMEOUT: Span = Span::from_secs(2);
/// The octets that a datagram has room for if the system does not say.
const ROOM: u32 = 1200;

/// Measures the line with datagrams of three sizes, up to the path's largest packet. `None` if they tell
/// nothing: they are lost, or the larger ones take no longer.
///
/// # Errors
/// If the server refuses or is gone, or the system gives no socket.
pub fn measure(
    connection: &Connection,
    timing: &TimingError,
    seed: Seed,
) -> Result<Option<Line>, ProbeError> {
    let spec = FlowSpec {
        transport: Transport::Udp,
        role: Role::Echo,
        streams: 1,
        size: 0,
        rate: None,
        duration_ns: 0,
        interval_ns: 1_000_000_000,
        congestion: None,
        urp: None,
    };
    let flow = connection.flow(spec)?;
    let mut carrier = Udp(Datagrams::open(connection, flow)?);
    let headers = carrier.overhead();
    let room = carrier.0.mtu().map_or(ROOM, |mtu| mtu.saturating_sub(headers));
    let observed = datagrams(connection, &mut carrier, room, seed);
    connection.collect(flow)?;
    let late = timing.send_to_stamp.p50.as_millis_f64();
    let samples: Vec<(u32, f64)> = observed
        .in_order_of_sending()
        .iter()
        .map(|one| (one.size, one.on_the_path() as f64 / 1e6))
        .collect();
    let [up, down] = one_way(&observed);
    Ok(Line::of(&samples, headers, late, seed).map(|line| line.with_ways(&up, &down, seed)))
}

/// The datagrams and their echoes.
fn datagrams(connection: &Connection, carrier: &mut Udp, room: u32, seed: Seed) -> Observations {
    let mut course = Course {
        sizes: vec![1, room / 2, room],
        pace: Pace::OneOutstanding,
        rounds: ROUNDS.0,
        duration: LONGEST,
        timeout: TIMEOUT,
        seed,
        goal: None,
    };
    let over = || connection.is_over().then_some(Ended::Stopped);
    let began = clock::now();
    let first = exchange(carrier, &course, Ledger::default(), &over, &mut |_| {});
    let each = clock::now().since(began).as_nanos() / ROUNDS.0;
    course.rounds = (BUDGET.as_nanos() / each.max(1)).min(ROUNDS.1 - ROUNDS.0);
    let all = exchange(carrier, &course, first.ledger, &over, &mut |_| {});
    all.ledger.observations(None, 0, false)
}
