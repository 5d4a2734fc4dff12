//! Protocols of the list that answer each unit, followed unit by unit as URP's blocks are: their messages, and the transfers
//! that their own formulas do not know.

use crate::flow::Flow;
use crate::group::writes;
use crate::known::Known;
use crate::talk::Talk;
use crate::transfer::whole;
use trunkline_scenario::{Listed, Network, Transport};
use trunkline_transport::protocol::Circumstances;

impl Flow<'_> {
    /// The flow with the windows and the answers of the listed protocols that its ends speak. `bytes` are what may go at
    /// once, there and back.
    ///
    /// # Errors
    /// Why no formula covers it.
    pub fn answered(mut self, network: &Network<'_>, bytes: [u32; 2]) -> Result<Self, String> {
        let traffic = &network.scenario().traffic[self.traffic];
        let ends = [&traffic.transport, &traffic.reply_transport];
        for ((talk, transport), bytes) in self.talks().into_iter().zip(ends).zip(bytes) {
            if let Transport::Listed(listed) = &**transport {
                answering(talk, listed)?;
                in_time(talk, listed, (bytes, traffic.count))?;
            }
        }
        Ok(self)
    }
}

/// Units of a transfer up to which it counts that the last one is short (a choice).
const FEW: u64 = 64;

/// Whether the units of transfers of number `index` are followed one by one: several connections, or units that are not full,
/// which a formula of units of one size does not know. That formula alone knows losses; a last unit that is short it takes for
/// a whole one, and is asked for that if the units cannot be followed.
pub(crate) fn by_unit(known: &Known<'_>, index: usize, listed: &Listed) -> bool {
    let (network, traffic) = (known.network, &known.network.scenario().traffic[index]);
    let shape = (listed.entry.shape)(&listed.values);
    let plain = Flow::new(network, index, 0).is_ok_and(|flow| flow.uncovered(network).is_none());
    if shape.window.is_none() || !plain {
        return false;
    }
    let unit = u64::from(shape.unit);
    let sizes = writes(&traffic.workload).0;
    let fills = sizes.iter().all(|write| write.is_multiple_of(shape.unit));
    let short = whole(&traffic.workload)
        .is_some_and(|it| !it.bytes.is_multiple_of(unit) && it.bytes <= FEW * unit);
    let followed = || sizes.iter().all(|&write| known.group_writing(index, write).is_ok());
    traffic.count > 1 || !fills || short && followed()
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

/// Whether the protocol's time-out leaves the time for an answer, behind what all its `connections` may have under way, and
/// its own rate holds nothing back; by its own formula.
fn in_time(
    talk: &Talk<'_>,
    listed: &Listed,
    (bytes, connections): (u32, u32),
) -> Result<(), String> {
    let unit = bytes.min(talk.speech.block);
    let (times, units) = (talk.block(unit), bytes.div_ceil(unit.max(1)).max(1));
    let window = units.min(talk.speech.outstanding.unwrap_or(1));
    let others = u64::from(window) * u64::from(connections.saturating_sub(1));
    let spacing = times.spacing.as_nanos() as f64;
    let path = Circumstances {
        spacing,
        answered: times.answered + times.spacing.scaled(others, 1),
        loss: 0.0,
        answer_loss: 0.0,
        units: units.into(),
    };
    let formula = (listed.entry.formula)(&listed.values, &path)?;
    let waits = units > 1 || formula.within > times.answered.as_nanos() as f64;
    match formula.within > spacing + 1.0 && waits {
        true => Err(format!(
            "messages and short frames that the rate of {} holds back",
            listed.entry.name
        )),
        false => Ok(()),
    }
}
