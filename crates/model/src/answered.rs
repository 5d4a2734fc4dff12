//! Messages over protocols of the list that answer each unit: windows and answers are followed unit by unit, as URP's are.

use crate::flow::Flow;
use crate::talk::Talk;
use trunkline_scenario::{Listed, Network, Transport};
use trunkline_transport::protocol::Circumstances;

impl Flow<'_> {
    /// The flow with the windows and the answers of the listed protocols that its ends speak. `sizes` are the largest message
    /// there and back.
    ///
    /// # Errors
    /// Why no formula covers it.
    pub fn of_messages(mut self, network: &Network<'_>, sizes: [u32; 2]) -> Result<Self, String> {
        let traffic = &network.scenario().traffic[self.traffic];
        let ends = [&traffic.transport, &traffic.reply_transport];
        for ((talk, transport), bytes) in self.talks().into_iter().zip(ends).zip(sizes) {
            if let Transport::Listed(listed) = &**transport {
                answering(talk, listed)?;
                in_time(talk, listed, bytes)?;
            }
        }
        Ok(self)
    }
}

/// Gives a talk the window and the answers of its protocol.
fn answering(talk: &mut Talk<'_>, listed: &Listed) -> Result<(), String> {
    let (shape, name) = ((listed.entry.shape)(&listed.values), listed.entry.name);
    if shape.window.is_none() {
        return Err(format!("messages over {name}"));
    }
    if talk.from.0.interface.requests.is_some() {
        return Err(format!("{name} behind an interface with a limit on requests"));
    }
    talk.speech = talk.speech.answered(shape);
    Ok(())
}

/// Whether the protocol's time-out leaves the time for an answer, and its own rate holds nothing back; by its own formula.
fn in_time(talk: &Talk<'_>, listed: &Listed, bytes: u32) -> Result<(), String> {
    let unit = bytes.min(talk.speech.block);
    let (times, units) = (talk.block(unit), bytes.div_ceil(unit.max(1)).max(1));
    let spacing = times.spacing.as_nanos() as f64;
    let path = Circumstances {
        spacing,
        answered: times.answered,
        loss: 0.0,
        answer_loss: 0.0,
        units: units.into(),
    };
    let formula = (listed.entry.formula)(&listed.values, &path)?;
    let waits = units > 1 || formula.within > times.answered.as_nanos() as f64;
    match formula.within > spacing + 1.0 && waits {
        true => Err(format!("messages over {} that its own rate holds back", listed.entry.name)),
        false => Ok(()),
    }
}
