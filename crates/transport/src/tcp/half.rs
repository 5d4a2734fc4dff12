//! The sending half of an end that may never send: a receiver of bulk data pays for no sender.

use super::acknowledge::Heard;
use super::agreed::Agreed;
use super::sender::Sender;
use super::settings::Settings;
use crate::Payload;
use trunkline_core::Time;

/// The window that the other end offers, and the segment that told of it (SND.WL1, SND.WL2 of RFC 9293
/// §3.10.7.4).
#[derive(Debug, Clone, Copy, Default)]
pub struct Offered {
    /// The position that it ends at.
    pub edge: u64,
    pub told: (u64, u64),
    /// The largest that there was.
    pub largest: u64,
}

impl Offered {
    /// A window of `octets` from `start` on.
    pub fn from(start: u64, octets: u64) -> Offered {
        Offered { edge: start + octets, told: (0, 0), largest: octets }
    }

    /// Takes what an acknowledgement tells of it, unless it is older than the last that told of it. Returns whether the
    /// window has changed.
    pub fn update(&mut self, heard: &Heard<'_>) -> bool {
        let told = (heard.seq, heard.ack);
        if told < self.told {
            return false;
        }
        let edge = heard.ack + heard.window;
        let moved = edge != self.edge;
        *self = Offered { edge, told, largest: self.largest.max(heard.window) };
        moved
    }
}

/// A sender, or what one will begin with.
#[derive(Debug, Clone)]
pub enum Half<B> {
    /// Nothing has been offered; the SYN has been acknowledged.
    Idle(Offered),
    /// Something has.
    Active(Box<Sender<B>>),
}

impl<B: Payload> Half<B> {
    /// The sender, if there is one.
    pub fn get(&self) -> Option<&Sender<B>> {
        match self {
            Half::Idle(_) => None,
            Half::Active(sender) => Some(sender),
        }
    }

    /// The sender, if there is one.
    pub fn get_mut(&mut self) -> Option<&mut Sender<B>> {
        match self {
            Half::Idle(_) => None,
            Half::Active(sender) => Some(sender),
        }
    }

    /// The sender, made if there was none.
    pub fn active(&mut self, agreed: &Agreed, settings: &Settings) -> &mut Sender<B> {
        if let Half::Idle(offered) = *self {
            let mut sender = Sender::new(1, agreed.mss, settings);
            sender.offered = offered;
            *self = Half::Active(Box::new(sender));
        }
        match self {
            Half::Active(sender) => sender,
            Half::Idle(_) => unreachable!("it has just been made"),
        }
    }

    /// The first position not acknowledged.
    pub fn una(&self) -> u64 {
        self.get().map_or(1, |sender| sender.board.una())
    }
    /// The first position not sent.
    pub fn next(&self) -> u64 {
        self.get().map_or(1, |sender| sender.board.next())
    }

    /// Takes in an acknowledgement. False if it acknowledges what was never sent.
    pub fn acknowledge(
        &mut self,
        now: Time,
        heard: &Heard<'_>,
        agreed: &Agreed,
        settings: &Settings,
    ) -> bool {
        match self {
            Half::Active(sender) => sender.acknowledge(now, heard, agreed, settings),
            Half::Idle(offered) => {
                offered.update(heard);
                heard.ack <= 1
            }
        }
    }
}
