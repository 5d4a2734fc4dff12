//! Routes, resolved once, and what their packets waited for and became.

use super::parcel::{LAST_BAND, MOST};
use super::{LinkId, RouteId};
use std::collections::BTreeMap;
use trunkline_core::Channel;
use trunkline_measure::Conservation;

/// What all packets of a route that have passed one of its hops waited for there, in nanoseconds, exactly.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HopSums {
    /// The link.
    pub link: LinkId,
    /// Packets that have passed it, copies included.
    pub packets: u64,
    /// Time in queues.
    pub queue: u128,
    /// Time of their own bits.
    pub transmit: u128,
    /// Time of distance.
    pub propagate: u128,
}

/// What one packet waited for on one link, in nanoseconds.
#[derive(Debug, Clone, Copy)]
pub(super) struct Shares {
    pub(super) queue: u64,
    pub(super) transmit: u64,
    pub(super) propagate: u64,
}

/// The top bit of a sum.
const TOP: u64 = 1 << 63;
/// Set if a packet goes no further: what else there is then is its route.
const END: u32 = 1 << 31;

/// A link of a route, with the sums of its packets and what is behind it, the next link or the route's end: half
/// a cache line. What does not fit is in [`Routes::carries`].
#[derive(Debug, Clone, Copy)]
struct Hop {
    queue: u64,
    transmit: u64,
    propagate: u64,
    packets: u32,
    next: u32,
}

/// All that a packet needs to set off: half a cache line, so that the ways there and back of a connection share one.
/// What was delivered has passed the last hop, whose packets are counted.
#[derive(Debug, Clone, Copy)]
struct Route {
    sent: u64,
    dropped: u64,
    channel: u32,
    /// Its first hop, and the link of that.
    first: u32,
    link: u32,
    /// The number of its hops, and its band in the lowest byte.
    hops_and_band: u32,
}

impl Route {
    fn hops(&self) -> u32 {
        self.hops_and_band >> 8
    }

    fn band(&self) -> u8 {
        self.hops_and_band as u8
    }
}

/// The next hop of a packet, or its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Onward {
    /// Onto this link.
    Link(u32),
    /// It has arrived, at the end of this route.
    End(RouteId),
}

/// All routes. Their hops lie one after the other, so that a packet needs only its hop's number.
#[derive(Debug, Default)]
pub(super) struct Routes {
    routes: Vec<Route>,
    hops: Vec<Hop>,
    /// The route of each hop, asked for only if a packet is lost or recorded, and its own link.
    owners: Vec<u32>,
    links: Vec<LinkId>,
    /// How often the top bit of each sum of a hop has been set and taken out again: packets, queue, transmit,
    /// propagate. While all top bits are clear nothing can have gone over, so that one look at them suffices.
    carries: BTreeMap<u32, [u64; 4]>,
    /// Copies made of the packets of a route.
    duplicated: BTreeMap<u32, u64>,
}

impl Routes {
    /// Adds a route.
    ///
    /// # Panics
    /// If the channel or the number of all hops is too large to be packed.
    pub(super) fn add(&mut self, channel: Channel, links: &[LinkId]) -> RouteId {
        let channel = u32::try_from(channel.0).expect("channels are numbered below 2^32");
        let (first, id) = (self.hops.len() as u32, self.routes.len() as u32);
        assert!(self.hops.len() + links.len() < MOST as usize, "a network has at most 2^24 hops");
        let end = END | id;
        let next = links.iter().skip(1).map(|link| link.0).chain([end]);
        let fresh = |next| Hop { queue: 0, transmit: 0, propagate: 0, packets: 0, next };
        self.hops.extend(next.map(fresh).take(links.len()));
        self.links.extend_from_slice(links);
        self.owners.resize(self.hops.len(), id);
        let link = links.first().map_or(end, |link| link.0);
        let hops_and_band = (links.len() as u32) << 8 | u32::from(LAST_BAND);
        self.routes.push(Route { sent: 0, dropped: 0, channel, first, link, hops_and_band });
        RouteId(id)
    }

    pub(super) fn set_band(&mut self, route: RouteId, band: u8) {
        let route = &mut self.routes[route.0 as usize];
        route.hops_and_band = route.hops() << 8 | u32::from(band.min(LAST_BAND));
    }

    /// Counts a packet that sets off. Returns its channel and band, its first hop and the link of that.
    #[inline]
    pub(super) fn set_off(&mut self, route: RouteId) -> ((u32, u8), u32, Onward) {
        let route = &mut self.routes[route.0 as usize];
        route.sent += 1;
        ((route.channel, route.band()), route.first, beyond(route.link))
    }

    /// Adds what a packet waited for on `hop`. Returns its next hop.
    #[inline(always)]
    pub(super) fn book(&mut self, hop: u32, shares: &Shares) -> Onward {
        let sums = &mut self.hops[hop as usize];
        sums.queue = sums.queue.wrapping_add(shares.queue);
        sums.transmit = sums.transmit.wrapping_add(shares.transmit);
        sums.propagate = sums.propagate.wrapping_add(shares.propagate);
        sums.packets = sums.packets.wrapping_add(1);
        let next = sums.next;
        let all = sums.queue | sums.transmit | sums.propagate | u64::from(sums.packets) << 32;
        let each = shares.queue | shares.transmit | shares.propagate;
        if (all | each) >> 63 != 0 {
            self.carry(hop, shares);
        }
        beyond(next)
    }

    #[cold]
    #[inline(never)]
    fn carry(&mut self, hop: u32, shares: &Shares) {
        let carries = self.carries.entry(hop).or_default();
        let sums = &mut self.hops[hop as usize];
        let (sum, share) = (
            [&mut sums.queue, &mut sums.transmit, &mut sums.propagate],
            [shares.queue, shares.transmit, shares.propagate],
        );
        for (carry, (sum, share)) in carries[1..].iter_mut().zip(sum.into_iter().zip(share)) {
            // What is kept below the top bit cannot have gone round by more than the share.
            *carry += u64::from(*sum < share) * 2 + (*sum >> 63);
            *sum &= TOP - 1;
        }
        carries[0] += u64::from(sums.packets >> 31);
        sums.packets &= (1 << 31) - 1;
    }

    /// Counts a packet that has passed `hop`, without adding what it waited for. Returns its next hop.
    #[inline]
    pub(super) fn after(&mut self, hop: u32) -> Onward {
        let sums = &mut self.hops[hop as usize];
        sums.packets = sums.packets.wrapping_add(1);
        let (packets, next) = (sums.packets, sums.next);
        if packets >> 31 != 0 {
            self.carry(hop, &Shares { queue: 0, transmit: 0, propagate: 0 });
        }
        beyond(next)
    }

    /// The route of a packet on `hop`.
    pub(super) fn owner(&self, hop: u32) -> RouteId {
        RouteId(self.owners[hop as usize])
    }

    /// The link, or the lane over a medium, of `hop`.
    pub(super) fn link(&self, hop: u32) -> LinkId {
        self.links[hop as usize]
    }

    /// Counts a packet lost on `hop`.
    pub(super) fn dropped(&mut self, hop: u32) -> RouteId {
        let route = self.owner(hop);
        self.routes[route.0 as usize].dropped += 1;
        route
    }

    /// Counts extra copies made on `hop`.
    pub(super) fn duplicated(&mut self, hop: u32, copies: u64) {
        *self.duplicated.entry(self.owner(hop).0).or_default() += copies;
    }

    /// What the packets of a route waited for, hop by hop.
    pub(super) fn ledger(&self, route: RouteId) -> Vec<HopSums> {
        let route = &self.routes[route.0 as usize];
        (route.first..route.first + route.hops()).map(|hop| self.sums(hop)).collect()
    }

    fn sums(&self, index: u32) -> HopSums {
        let hop = self.hops[index as usize];
        let carry = self.carries.get(&index).copied().unwrap_or_default();
        let wide = |which: usize, low: u64| u128::from(carry[which]) << 63 | u128::from(low);
        HopSums {
            link: self.links[index as usize],
            packets: carry[0] << 31 | u64::from(hop.packets),
            queue: wide(1, hop.queue),
            transmit: wide(2, hop.transmit),
            propagate: wide(3, hop.propagate),
        }
    }

    /// What became of the packets of a route.
    pub(super) fn counts(&self, route: RouteId) -> Conservation {
        let own = &self.routes[route.0 as usize];
        let Route { sent, dropped, .. } = *own;
        let duplicated = self.duplicated.get(&route.0).copied().unwrap_or(0);
        let delivered = match own.hops() {
            0 => sent,
            hops => self.sums(own.first + hops - 1).packets,
        };
        let in_flight = sent + duplicated - delivered - dropped;
        Conservation { sent, duplicated, delivered, dropped, in_flight }
    }

    /// Bytes of memory held.
    pub(super) fn memory(&self) -> usize {
        self.routes.capacity() * size_of::<Route>()
            + self.hops.capacity() * size_of::<Hop>()
            + self.owners.capacity() * size_of::<u32>()
            + self.links.capacity() * size_of::<LinkId>()
    }
}

#[inline(always)]
fn beyond(next: u32) -> Onward {
    if next & END == 0 { Onward::Link(next) } else { Onward::End(RouteId(next & !END)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_go_on_past_their_integers() {
        let mut routes = Routes::default();
        routes.add(Channel(1), &[LinkId(3), LinkId(4)]);
        let shares = Shares { queue: u64::MAX, transmit: 1, propagate: u64::MAX / 2 };
        for _ in 0..5 {
            routes.book(1, &shares);
        }
        routes.hops[1].packets = (1 << 31) - 1;
        routes.book(1, &shares);
        let sums = routes.ledger(RouteId(0))[1];
        assert_eq!((sums.link, sums.packets), (LinkId(4), 1 << 31));
        assert_eq!(sums.queue, 6 * u128::from(u64::MAX));
        assert_eq!((sums.transmit, sums.propagate), (6, 6 * u128::from(u64::MAX / 2)));
    }

    #[test]
    fn hops_follow_each_other_to_the_end() {
        let mut routes = Routes::default();
        let empty = routes.add(Channel(1), &[]);
        let route = routes.add(Channel(2), &[LinkId(5), LinkId(0)]);
        assert_eq!(routes.set_off(empty).2, Onward::End(empty));
        let (channel, first, onward) = routes.set_off(route);
        assert_eq!((channel, onward), ((2, LAST_BAND), Onward::Link(5)));
        assert_eq!(routes.after(first), Onward::Link(0));
        assert_eq!(routes.after(first + 1), Onward::End(route));
        assert_eq!((routes.owner(first), routes.owner(first + 1)), (route, route));
        assert_eq!((size_of::<Hop>(), size_of::<Route>()), (32, 32));
    }
}
