//! When packets leave a stage that sends one at a time.

use super::{BACKPLANE_BITS, BACKPLANE_CHANNEL, BACKPLANE_DATA, Kind, Stage};
use crate::bucket::Bucket;
use crate::formula::general::bit_time;
use crate::formula::rounds::pieces;
use crate::speech::Packet;
use crate::throughput::SECOND;
use trunkline_core::{Channel as ChannelNumber, Span};
use trunkline_path::{Framer, Framing, Piece};

/// The time at which packets leave a stage, and what is open there.
pub(super) struct Server {
    framer: Framer,
    /// When the last packet has left.
    pub free: Option<Span>,
    bucket: Option<Bucket>,
    /// When that is full, if nothing comes.
    full: Span,
    /// Part of a nanosecond by which the last packet ended later.
    remainder: u128,
    /// Whether the pieces are of two channels in turn, and whose the next one is.
    beside: bool,
    channel: u64,
    /// What is left of the channel's turn.
    left: u32,
    /// When the last piece was taken out of the queue: what was there before goes on with that turn.
    taken: Option<Span>,
    /// The bits of the last packet's last piece, and of all its pieces.
    last: (u64, u64),
}

impl Server {
    pub fn new(stage: &Stage) -> Server {
        let framing = match stage.kind {
            Kind::Line(_, framing) => framing,
            _ => Framing::None,
        };
        let framer = Framer::new(framing);
        let (bucket, full) = (stage.bucket, Span::ZERO);
        let (free, taken, remainder) = (None, None, 0);
        let (beside, channel, left, last) = (false, 0, 0, (1, 1));
        Server { framer, free, bucket, full, remainder, beside, channel, left, taken, last }
    }

    /// One whose packets are all there, and have their tokens.
    pub fn back_to_back(stage: &Stage) -> Server {
        Server { beside: stage.beside, bucket: None, ..Server::new(stage) }
    }

    /// When a packet that is there at `ready` has left.
    pub fn serve(&mut self, stage: &Stage, ready: Span, packet: Packet, last: bool) -> Span {
        let ready = self.tokens(ready, packet);
        let follows = self.free.is_some_and(|free| free >= ready);
        let start = self.free.map_or(ready, |free| free.max(ready));
        if !follows {
            self.remainder = 0;
        }
        if self.taken.is_none_or(|taken| taken <= ready) {
            self.left = 0;
        }
        let own = self.own(stage, packet, last, follows);
        let end = start + own;
        let (piece, all) = self.last;
        self.taken = Some(end.saturating_sub(own.scaled(piece, all.max(1))));
        // Its earlier visits are made by packets behind it, before they come here.
        self.free = Some(end + own.scaled(stage.before, 1));
        end
    }

    /// When a packet that is there at `ready` has left the bucket, if there is one. Tokens are taken when the line is free.
    fn tokens(&mut self, ready: Span, packet: Packet) -> Span {
        let Some(bucket) = self.bucket else { return ready };
        let there = self.free.map_or(ready, |free| free.max(ready));
        let (start, full) = bucket.pass(self.full, there, packet.bytes);
        self.full = full;
        if start > there { start } else { ready }
    }

    /// The bits of a packet on the line, in as many pieces as the discipline makes of it.
    fn bits(&mut self, packet: Packet, cut: Option<u32>, follows: bool) -> u64 {
        let pieces = self.pieces(packet.bytes, cut);
        let count = pieces.len();
        let (mut all, mut own) = (0, 0);
        for (index, bytes) in pieces.into_iter().enumerate() {
            let last = index + 1 == count;
            let controls = if last { packet.controls } else { 0 };
            let channel = ChannelNumber(self.channel);
            self.channel ^= u64::from(self.beside);
            let piece = Piece { channel, bytes, controls, last };
            own = self.framer.line_bits(piece, follows || index > 0);
            all += own;
        }
        self.last = (own, all);
        all
    }

    /// What a discipline makes of a packet that cuts at the end of a turn: the first piece has what is left of one.
    fn pieces(&mut self, bytes: u32, turn: Option<u32>) -> Vec<u32> {
        let Some(turn) = turn.map(|turn| turn.max(1)) else { return vec![bytes] };
        let room = if self.left == 0 { turn } else { self.left };
        let mut list = vec![bytes.min(room)];
        if bytes > room {
            list.extend(pieces(bytes - room, turn));
        }
        self.left = match list.as_slice() {
            [only] => room - only,
            [.., last] => turn - last,
            [] => 0,
        };
        list
    }

    fn own(&mut self, stage: &Stage, packet: Packet, last: bool, follows: bool) -> Span {
        match stage.kind {
            Kind::Line(None, _) => Span::ZERO,
            Kind::Line(Some(rate), framing) => {
                let bits = self.bits(packet, stage.cut, follows);
                let (carrying, whole) = framing.line_share();
                let per = u128::from(rate.bits_per_second()) * u128::from(carrying);
                let exact = u128::from(bits) * SECOND * u128::from(whole) + self.remainder;
                self.remainder = exact % per;
                Span::from_nanos(u64::try_from(exact / per).unwrap_or(u64::MAX))
            }
            Kind::Backplane(rate) => {
                let crossings = u64::from(packet.bytes.div_ceil(BACKPLANE_DATA).max(1));
                bit_time(crossings * BACKPLANE_BITS, rate, Framing::None)
            }
            Kind::TrunkIn(board) => {
                let crossings = u64::from(packet.bytes.div_ceil(BACKPLANE_DATA));
                let envelopes = u64::from(packet.bytes) + crossings * BACKPLANE_CHANNEL;
                Span::from_nanos(envelopes * board.input_per_byte.as_picos() / 1_000)
            }
            Kind::TrunkOut(board) => {
                let picos = u64::from(packet.bytes) * board.output_per_byte.as_picos();
                Span::from_nanos(picos / 1_000)
            }
            Kind::Channel(channel) => channel.own(packet),
            // Controls cost the interface something else, which is counted with the answer.
            Kind::Intake(_) if packet.is_control => Span::ZERO,
            Kind::Intake(cost) => {
                let bytes = cost.per_byte.scaled(u64::from(packet.bytes), 1);
                if last { bytes + cost.fixed } else { bytes }
            }
        }
    }
}
