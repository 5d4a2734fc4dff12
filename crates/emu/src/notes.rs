//! What a reader of a real-time run has to know: what of the scenario is not emulated.

use trunkline_core::Time;
use trunkline_dataplane::Changed;
use trunkline_dataplane::capture::{CaptureError, CaptureSummary};
use trunkline_engine::{About, Note, NoteKind};
use trunkline_scenario::{Cost, Host, Interface, Processor, Scenario};

/// One line for each host whose description real hosts do not follow.
pub fn of_hosts(scenario: &Scenario) -> Vec<Note> {
    let line = |host: &Host| {
        let keys = [processor(&host.processor), interface(&host.interface)].concat();
        let is = if keys.len() == 1 { "is" } else { "are" };
        let text = format!("hosts are real here: {} {is} not emulated", keys.join(", "));
        let about = About::Host(host.name.clone());
        (!keys.is_empty()).then(|| Note::new(NoteKind::NotEmulated, text).about(about))
    };
    scenario.hosts.iter().filter_map(line).collect()
}

/// What hosts sent that no traffic's way carries, such as broadcasts.
pub fn of_strays(frames: u64) -> Option<Note> {
    (frames > 0).then(|| {
        let text = format!(
            "{frames} frames went to nobody at the far end of a traffic and were not carried"
        );
        Note::new(NoteKind::Lost, text)
    })
}

/// What somebody has set while it ran: the figures are then of another path than the scenario's.
pub fn of_changes(changes: &[Changed], origin: Time) -> Vec<Note> {
    let line = |Changed { at, path, settings }: &Changed| {
        let after = at.since(origin).rounded();
        let text = format!(
            "set by hand {after} after the start ({settings}): the result is of a changed path"
        );
        Note::new(NoteKind::Changed, text).about(About::Link(path.clone()))
    };
    changes.iter().map(line).collect()
}

/// What a capture has left out.
pub fn of_capture(capture: Option<&Result<CaptureSummary, CaptureError>>) -> Option<Note> {
    let text = match capture? {
        Ok(summary) if summary.missed == 0 => return None,
        Ok(summary) => format!(
            "{} records are missing from the capture: the disk did not keep up",
            summary.missed
        ),
        Err(error) => format!("the capture has ended before its time: {error}"),
    };
    Some(Note::new(NoteKind::Capture, text))
}

fn named(prefix: &str, keys: &[(&str, bool)]) -> Vec<String> {
    let given = keys.iter().filter(|(_, given)| *given);
    given.map(|(key, _)| format!("{prefix}.{key}")).collect()
}

fn processor(processor: &Processor) -> Vec<String> {
    let Processor {
        write,
        read,
        request,
        interrupt,
        send_block,
        receive_block,
        control,
        timer,
        disturbance,
        unsteady,
    } = processor;
    let costs = |cost: &Cost| *cost != Cost::default();
    named(
        "processor",
        &[
            ("write", costs(write)),
            ("read", costs(read)),
            ("request", costs(request)),
            ("interrupt", costs(interrupt)),
            ("send_block", costs(send_block)),
            ("receive_block", costs(receive_block)),
            ("control", !control.is_zero()),
            ("timer", !timer.is_zero()),
            ("disturbance", disturbance.is_some()),
            ("unsteady", !unsteady.is_zero()),
        ],
    )
}

fn interface(interface: &Interface) -> Vec<String> {
    let ideal = Interface::default();
    named(
        "interface",
        &[
            ("protocol", interface.protocol != ideal.protocol),
            ("split", interface.split != ideal.split),
            ("requests", interface.requests != ideal.requests),
            ("send_block", interface.send_block != ideal.send_block),
            ("receive_block", interface.receive_block != ideal.receive_block),
            ("control", interface.control != ideal.control),
            ("half_duplex", interface.half_duplex != ideal.half_duplex),
            ("deaf", interface.deaf != ideal.deaf),
            ("programmed", interface.programmed != ideal.programmed),
            ("memory", interface.memory != ideal.memory),
            ("receive_buffer", interface.receive_buffer != ideal.receive_buffer),
            ("returns", interface.returns != ideal.returns),
            ("echo", interface.echo != ideal.echo),
        ],
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::scenario;
    use trunkline_core::Span;

    #[test]
    fn only_what_is_not_emulated_is_told() {
        let mut scenario = scenario(
            "[[host]]\nname = 'pipe'\n[[host]]\nname = 'b'\n[[link]]\nbetween = ['pipe', 'b']\n\
             [[traffic]]\nname = 't'\nkind = 'paced'\nfrom = 'pipe'\nto = 'b'\nsize = 100\n\
             rate = '1Mbit/s'\nduration = '1s'\ntransport = { kind = 'udp' }\n",
        );
        assert!(of_hosts(&scenario).is_empty() && of_strays(0).is_none());
        let host = &mut scenario.hosts[0];
        host.processor.write = Cost { fixed: Span::from_micros(400), ..Cost::default() };
        host.interface.requests = Some(1);
        assert_eq!(
            of_hosts(&scenario)[0].to_string(),
            "pipe: hosts are real here: processor.write, interface.requests are not emulated"
        );
    }

    #[test]
    fn what_was_set_and_what_a_capture_lacks_is_told() {
        let at = |millis| Time::ZERO + Span::from_millis(millis);
        let (path, settings) = ("trunk".to_string(), "delay=80ms loss=1%".to_string());
        assert_eq!(
            of_changes(&[Changed { at: at(3500), path, settings }], at(1000))[0].to_string(),
            "trunk: set by hand 2.5s after the start (delay=80ms loss=1%): the result is of a changed path"
        );
        assert_eq!(of_capture(None), None);
        let summary = |missed| Ok(CaptureSummary { written: 9, missed, bytes: 900 });
        assert_eq!(of_capture(Some(&summary(0))), None);
        let told = of_capture(Some(&summary(3))).unwrap();
        assert!(told.text.starts_with("3 records are missing"), "{told}");
    }
}
