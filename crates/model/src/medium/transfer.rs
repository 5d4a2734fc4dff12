//! Transfers over a shared channel, on which answers take turns with data.

use crate::flow::Flow;
use crate::group::stage_name;
use crate::speech::Packet;
use crate::way::burst;
use trunkline_core::Span;
use trunkline_engine::{Note, NoteKind};
use trunkline_scenario::{Network, Traffic};

/// The share of a transfer from which on what its ends may take is told.
const TOLD: u64 = 100;

impl Flow<'_> {
    /// The flow as formulas for transfers see it that send blocks of `block` user bytes, `outstanding` at once.
    ///
    /// If the answer to a block is ready before the next block has gone, blocks and answers alternate, and each change costs
    /// a rest of the channel. So it is with one block at once in any case.
    ///
    /// # Errors
    /// Why they do not hold.
    pub fn of_transfer(
        mut self,
        network: &Network<'_>,
        (block, outstanding): (u32, u64),
    ) -> Result<Self, String> {
        let Some((resource, channel)) = self.channel() else { return Ok(self) };
        let name = stage_name(network, resource);
        let Some(rest) = channel.alone.rest() else {
            return Err(format!(
                "transfers over the shared medium {name}, where answers take turns with data"
            ));
        };
        let talk = &self.there;
        let answers =
            talk.host_receive(block) + talk.answering() + talk.interrupts(block) + talk.read(block);
        let (sends, answered) = (self.sends(block), channel.alone.delay + answers);
        if outstanding > 1 && sends < answered {
            return Err(format!(
                "transfers over {name} of blocks that take {sends}, less than the {answered} until one can be answered: how many go in a turn depends on their instants"
            ));
        }
        // The last bit is on its way for a part of the rest.
        let wait = rest.saturating_sub(channel.alone.delay);
        let talks = [&mut self.there, &mut self.back];
        let ways = talks.into_iter().flat_map(|talk| [&mut talk.way, &mut talk.back]);
        let stages = ways.flat_map(|way| &mut way.stages);
        stages.filter(|stage| stage.resource == resource).for_each(|stage| stage.queue = wait);
        Ok(self)
    }

    /// How long a block keeps the shared channel.
    fn sends(&self, block: u32) -> Span {
        let spent = self.there.way.spent(&burst(&self.there.speech.packets(block)));
        let stages = self.there.way.stages.iter().zip(spent);
        stages.filter(|(stage, _)| stage.channel().is_some()).map(|(_, span)| span).sum()
    }
}

/// A note if what the first and the last turns of a transfer of `total` may take is much of it.
pub(crate) fn ends_note(
    traffic: &Traffic,
    flow: &Flow<'_>,
    (block, answer): (u32, Option<Packet>),
    total: Span,
) -> Option<Note> {
    let (_, channel) = flow.channel()?;
    let answer = answer.map_or(Span::ZERO, |answer| channel.own(answer));
    let turns = channel.alone.rest()?.scaled(4, 1) + flow.sends(block) + answer;
    (turns > total.scaled(1, TOLD)).then(|| {
        let text = format!(
            "the first and the last turns on the shared medium may take up to {turns} more or less"
        );
        Note::of_traffic(&traffic.name, NoteKind::Assumed, text)
    })
}
