//! Laws of the careful protocol.

use super::net::{Fault, Faults, NONE, Net, Plan, Shape, Stopped, plan};
use proptest::prelude::*;
use trunkline_core::Span;
use trunkline_transport::cstar::{Careful, CarefulSettings, Cluster, Failure, Grid};

fn net(plan: &Plan, spare: u32, faults: Faults, settings: &CarefulSettings) -> Net {
    let least = settings.least_window() * u32::from(plan.nodes);
    with(plan, least + spare, faults, settings)
}

fn in_grid(plan: &Plan, spare: u32, faults: Faults, settings: &CarefulSettings) -> Net {
    let grid = settings.grid.and_then(|columns| Grid::new(plan.nodes, columns));
    let least = grid.expect("it fits").least_buffers(settings.least_window());
    with(plan, least + spare, faults, settings)
}

fn with(plan: &Plan, receive_buffers: u32, faults: Faults, settings: &CarefulSettings) -> Net {
    let cluster = Cluster { nodes: plan.nodes, receive_buffers, send_buffers: 1, frame: 64 };
    Net::new(plan, faults, receive_buffers, |me| {
        Box::new(Careful::new(me, &cluster, settings).expect("the least windows"))
    })
}

fn fault() -> impl Strategy<Value = Fault> {
    prop_oneof![Just(Fault::Lost), Just(Fault::Twice), Just(Fault::Damaged)]
}

/// Microseconds of audits, shorter and longer than this net takes for the questions and answers of all nodes: of eight that
/// wait they are 112 frames, and it does one thing in a microsecond.
fn audits() -> impl Strategy<Value = u64> {
    prop_oneof![1_u64..200, 1_000_u64..100_000]
}

/// A grid of a plan's nodes: one of the numbers that divide them.
fn in_rows(plan: &Plan, choice: u16) -> Option<u16> {
    let fits: Vec<u16> = (1..=plan.nodes).filter(|&it| plan.nodes.is_multiple_of(it)).collect();
    Some(fits[usize::from(choice) % fits.len()])
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

    /// Neither deadlock nor livelock from R = 3P on (4P with `at_half`), no buffer used twice, each fragment once: for any
    /// programs, however far ahead they send and however slow they receive, with and without piggy-backed grants, audits,
    /// loans and reservations.
    #[test]
    fn all_is_delivered_once_and_nothing_waits_for_ever(
        plan in plan(8, 12, 12), spare in 0_u32..40, piggyback: bool, at_half: bool, audit in prop::option::of(audits()),
        lease in prop::option::of(1_u64..100_000), reserve in prop::option::of(2_u32..6),
    ) {
        let (audit, lease) = (audit.map(Span::from_micros), lease.map(Span::from_micros));
        let settings =
            CarefulSettings { piggyback, at_half, audit, lease, reserve, ..CarefulSettings::default() };
        prop_assert_eq!(net(&plan, spare, NONE, &settings).run(), Ok(()));
    }

    /// The same in a grid, whose nodes hand on frames for each other, with as few buffers as there may be.
    #[test]
    fn what_is_handed_on_is_delivered_once_and_nothing_waits_for_ever(
        plan in plan(12, 12, 12), spare in 0_u32..20, choice: u16, piggyback: bool, at_half: bool,
        audit in prop::option::of(audits()),
    ) {
        let (audit, grid) = (audit.map(Span::from_micros), in_rows(&plan, choice));
        let settings =
            CarefulSettings { piggyback, at_half, audit, grid, ..CarefulSettings::default() };
        prop_assert_eq!(in_grid(&plan, spare, NONE, &settings).run(), Ok(()));
    }

    /// One frame is lost, comes twice or damaged: nothing wrong is delivered, and nobody waits for ever, since whoever waits
    /// asks. All ends well only if the frame was no loss, or does not exist.
    #[test]
    fn a_broken_promise_is_reported_and_nobody_waits_for_ever(
        plan in plan(6, 8, 8), spare in 0_u32..20, at in 0_u64..120, fault in fault(),
        lease in prop::option::of(1_u64..100_000), reserve in prop::option::of(2_u32..6),
        rows in prop::option::of(any::<u16>()),
    ) {
        let (audit, lease) = (Some(Span::from_millis(100)), lease.map(Span::from_micros));
        let faults = Faults { one: Some((at, fault)), ..NONE };
        let ended = if let Some(choice) = rows {
            let grid = in_rows(&plan, choice);
            let settings = CarefulSettings { audit, grid, ..CarefulSettings::default() };
            in_grid(&plan, spare, faults, &settings).run()
        } else {
            let settings = CarefulSettings { audit, lease, reserve, ..CarefulSettings::default() };
            net(&plan, spare, faults, &settings).run()
        };
        let reported = match &ended {
            Ok(()) => true,
            Err(Stopped::Failed(_, Failure::Lost { .. })) => fault == Fault::Lost,
            Err(Stopped::Failed(_, Failure::Disordered { .. })) => fault == Fault::Twice,
            Err(Stopped::Failed(_, Failure::Damaged)) => fault == Fault::Damaged,
            Err(_) => false,
        };
        prop_assert!(reported, "{:?}", ended);
    }
}

/// Node 9 sends to all over nodes whose programs have ended: these have let go what they received last, whose buffers are
/// the windows of those before them.
#[test]
fn nodes_whose_programs_have_ended_hand_on() {
    let events = vec![(Shape::Shift(3), 2), (Shape::One(9), 1)];
    let plan = Plan { nodes: 12, events, ahead: 1, sloth: 1, seed: 13_929_873_316_288_908_447 };
    let settings =
        CarefulSettings { piggyback: false, grid: Some(6), ..CarefulSettings::default() };
    assert_eq!(in_grid(&plan, 4, NONE, &settings).run(), Ok(()));
}
