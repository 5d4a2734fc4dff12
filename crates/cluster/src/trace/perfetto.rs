//! The trace as other programs show it.

use super::{Act, Arrow, Record, arrows, awaited, slices};
use crate::Waiting;
use serde_json::{Value, json};
use trunkline_core::Time;
use trunkline_transport::cstar::Destination;

/// A trace in the Trace Event Format of Chrome, which ui.perfetto.dev opens: a thread for each node, with slices for its acts
/// and flow arrows for the fragments. Times are in microseconds. `nodes` are the records of each node, from node 0.
pub fn perfetto(nodes: &[Vec<Record>]) -> String {
    let mut events = vec![json!({
        "ph": "M", "name": "process_name", "pid": 0, "tid": 0, "args": { "name": "cluster" },
    })];
    for (node, records) in nodes.iter().enumerate() {
        let name = format!("node {node}");
        let args = json!({ "name": name });
        events.push(json!({
            "ph": "M", "name": "thread_name", "pid": 0, "tid": node, "args": args,
        }));
        events.extend(slices(records).map(|(record, end)| slice(node, record, end)));
    }
    for (number, arrow) in arrows(nodes).iter().enumerate() {
        events.extend(flow(number, arrow));
    }
    json!({ "displayTimeUnit": "ns", "traceEvents": events }).to_string()
}

fn micros(time: Time) -> f64 {
    time.as_nanos() as f64 / 1e3
}

fn slice(node: usize, record: &Record, end: Time) -> Value {
    let (name, args) = described(&record.act);
    json!({
        "ph": "X", "name": name, "cat": category(&record.act), "pid": 0, "tid": node,
        "ts": micros(record.at), "dur": end.since(record.at).as_micros_f64(), "args": args,
    })
}

fn category(act: &Act) -> &'static str {
    match act {
        Act::Send { .. } | Act::Receive { .. } => "message",
        Act::Wait(_) => "wait",
        Act::Work(_) => "work",
        Act::Begin | Act::Lap(_) | Act::End => "program",
    }
}

fn described(act: &Act) -> (String, Value) {
    match *act {
        Act::Send { to, event, bytes } => {
            let to = match to {
                Destination::Node(node) => node.to_string(),
                Destination::All => "all".into(),
            };
            (format!("send to {to}"), json!({ "event": event.0, "bytes": bytes }))
        }
        Act::Receive { from, event, fragment, bytes } => {
            let args = json!({ "event": event.0, "fragment": fragment, "bytes": bytes });
            (format!("receive from {from}"), args)
        }
        Act::Wait(waiting) => (waits(waiting), json!({})),
        Act::Work(work) => {
            let args = json!({
                "words written": work.written, "words read": work.read, "points": work.points,
                "sweeps": work.sweeps, "values added": work.added,
            });
            ("work".into(), args)
        }
        Act::Begin => ("begin".into(), json!({})),
        Act::Lap(bytes) => ("lap".into(), json!({ "bytes": bytes })),
        Act::End => ("end".into(), json!({})),
    }
}

fn waits(waiting: Waiting) -> String {
    let node = awaited(waiting).map_or("any node".into(), |node| node.to_string());
    match waiting {
        Waiting::Window(_) => format!("wait for the window to {node}"),
        Waiting::Buffers => "wait for buffers for sending".into(),
        Waiting::Fragment(_, event) => format!("wait for {node}, {event}"),
    }
}

/// The beginning and the end of an arrow.
fn flow(number: usize, arrow: &Arrow) -> [Value; 2] {
    let Arrow { from, to, sent, received, .. } = *arrow;
    [
        json!({
            "ph": "s", "name": "message", "cat": "message", "id": number, "pid": 0,
            "tid": from.0, "ts": micros(sent),
        }),
        json!({
            "ph": "f", "bp": "e", "name": "message", "cat": "message", "id": number, "pid": 0,
            "tid": to.0, "ts": micros(received),
        }),
    ]
}
