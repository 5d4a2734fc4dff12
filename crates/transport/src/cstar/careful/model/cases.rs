//! What the model check explores.

use super::*;

/// Explores a case, which must end well however its nodes go on.
fn ends_well(name: &str, case: &Case) {
    let found = case.explore();
    println!("{name}: {found:?}");
    assert!(found.states > 100, "{name}: {found:?}");
    assert_eq!((found.stuck, found.circling), (0, 0), "{name}: {found:?}");
}

const SWAPPED: &[&[usize]] = &[&[0, 1], &[1, 0]];
const TURNED: &[&[usize]] = &[&[0, 1, 2], &[1, 2, 0], &[2, 0, 1]];

const ANY_OF_THREE: &[&[usize]] =
    &[&[0, 1, 2], &[1, 2, 0], &[2, 0, 1], &[1, 0, 2], &[0, 2, 1], &[2, 1, 0]];

#[test]
fn two_nodes_with_windows_of_three_and_four_never_wait_for_each_other() {
    for buffers in 6..=9 {
        let both = &[(0, 1, 4), (1, 0, 4)];
        ends_well("both ways", &Case::new(2, buffers, both).symmetries(SWAPPED));
        ends_well("sent first", &Case::new(2, buffers, both).symmetries(SWAPPED).sends_first());
        let one = &[(0, 1, 8)];
        ends_well("one way", &Case::new(2, buffers, one));
        ends_well("without piggyback", &Case::new(2, buffers, one).without_piggyback());
    }
}

#[test]
fn three_nodes_with_windows_of_three_never_wait_for_each_other() {
    let ring = &[(0, 1, 3), (1, 2, 3), (2, 0, 3)];
    ends_well("ring", &Case::new(3, 9, ring).symmetries(TURNED));
    let incast = &[(0, 2, 5), (1, 2, 5)];
    ends_well("incast", &Case::new(3, 9, incast).symmetries(&[&[0, 1, 2], &[1, 0, 2]]));
}

#[test]
fn three_nodes_that_send_to_all_never_wait_for_each_other() {
    let one = Case::new(3, 9, &[]).broadcasts(&[4, 0, 0]).symmetries(&[&[0, 1, 2], &[0, 2, 1]]);
    ends_well("one to all", &one);
    let all = Case::new(3, 9, &[]).broadcasts(&[1, 1, 1]).symmetries(ANY_OF_THREE);
    ends_well("each to all", &all);
    let both = Case::new(3, 9, &[(1, 0, 2)]).broadcasts(&[3, 0, 0]);
    ends_well("one to all, and an answer", &both);
}

/// The half-window rule as it is printed needs windows of 3 (R ≥ 3P): with 2 a sender may send one frame, and its receiver
/// waits for two before it grants.
#[test]
fn windows_of_two_are_stuck_with_more_than_half() {
    let found = Case::new(2, 4, &[(0, 1, 3)]).explore();
    println!("{found:?}");
    assert!(found.stuck > 0 && found.circling == 0, "{found:?}");
}

/// With at least half each update earns an update if that is one frame: with windows of 2 and 3.
#[test]
fn windows_of_two_and_three_exchange_updates_for_ever_with_at_least_half() {
    for buffers in [4, 6] {
        let found = Case::new(2, buffers, &[(0, 1, 3)]).at_half().explore();
        println!("{buffers} buffers: {found:?}");
        assert!(found.circling > 0, "{found:?}");
    }
    ends_well("windows of four", &Case::new(2, 8, &[(0, 1, 6)]).at_half());
}

/// With a pool of one or three buffers beside the windows, lent and given back whenever leases may end. (With six fragments
/// one way and three both ways, pools of one, three and five: 4.2 million states, in 80 s.)
#[test]
fn nodes_that_lend_never_wait_for_each_other() {
    for buffers in [7, 9] {
        ends_well("lent one way", &Case::new(2, buffers, &[(0, 1, 5)]).adaptive());
        let both = Case::new(2, buffers, &[(0, 1, 2), (1, 0, 2)]).symmetries(SWAPPED).adaptive();
        ends_well("lent both ways", &both);
        ends_well("lent, sent first", &both.sends_first());
    }
    let two = Case::new(3, 10, &[(0, 2, 2), (1, 2, 2)]).symmetries(&[&[0, 1, 2], &[1, 0, 2]]);
    ends_well("lent to two", &two.adaptive());
}

/// Reservations out of a pool of one to three buffers, of messages that are larger than that.
#[test]
fn nodes_that_reserve_never_wait_for_each_other() {
    for buffers in 7..=9 {
        ends_well("reserved one way", &Case::new(2, buffers, &[(0, 1, 6)]).reserving());
        let both = Case::new(2, buffers, &[(0, 1, 3), (1, 0, 3)]).symmetries(SWAPPED).reserving();
        ends_well("reserved both ways", &both);
        ends_well("reserved, sent first", &both.sends_first());
    }
    let lent = Case::new(2, 8, &[(0, 1, 4)]).reserving().adaptive();
    ends_well("reserved and lent", &lent);
    let two = Case::new(3, 11, &[(0, 2, 3), (1, 2, 3)]).symmetries(&[&[0, 1, 2], &[1, 0, 2]]);
    ends_well("reserved by two", &two.reserving());
}

/// Four nodes in a square hand on what is for the node across, all ways round: with windows of three and of more.
#[test]
fn nodes_that_hand_on_never_wait_for_each_other() {
    let one = &[(0, 3, 5)];
    ends_well("one way", &Case::new(4, 6, one).in_rows_of(2));
    ends_well("one way, sent first", &Case::new(4, 8, one).in_rows_of(2).sends_first());
    let across = &[&[0, 1, 2, 3][..], &[3, 2, 1, 0]];
    let both = Case::new(4, 6, &[(0, 3, 3), (3, 0, 3)]).in_rows_of(2);
    ends_well("across, both ways", &both.symmetries(across));
    let met = Case::new(4, 6, &[(0, 3, 3), (2, 3, 3)]).in_rows_of(2);
    ends_well("what passes meets what begins there", &met);
    let round = Case::new(4, 6, &[(0, 3, 1), (1, 2, 1), (2, 1, 1), (3, 0, 1)]).in_rows_of(2);
    let turned = &[&[0, 1, 2, 3][..], &[3, 2, 1, 0], &[1, 0, 3, 2], &[2, 3, 0, 1]];
    ends_well("all across", &round.symmetries(turned));
    let to_all = Case::new(4, 6, &[]).broadcasts(&[4, 0, 0, 0]).in_rows_of(2);
    ends_well("one to all", &to_all);
}
