//! The controller of what is emulated: what the API says of a session.

use crate::routes::NOTHING_AT_WORK;
use crate::{Controller, SetRequest};
use serde_json::{Map, Value, json};
use std::sync::Arc;
use trunkline_dataplane::{Console, Session};
use trunkline_path::LinkSpec;
use trunkline_scenario::{PathSpec, Settings};

/// The session at a console as a [`Controller`].
pub struct SessionController {
    console: Arc<Console>,
    command: String,
}

impl SessionController {
    /// A controller of whatever is at `console`, which `command` (a command line) has started.
    pub fn new(console: Arc<Console>, command: &str) -> SessionController {
        SessionController { console, command: command.to_string() }
    }

    fn description(&self, session: &Session) -> Value {
        let paths = session.paths();
        description(std::process::id(), &self.command, session.backends(), session.lanes(), &paths)
    }
}

impl Controller for SessionController {
    fn describe(&self) -> Option<Value> {
        self.console.session().map(|session| self.description(&session))
    }

    fn state(&self) -> Option<Value> {
        self.console.session().map(|session| json!(session.snapshot()))
    }

    fn set(&self, request: SetRequest) -> Result<Value, String> {
        let session = self.console.session().ok_or(NOTHING_AT_WORK)?;
        let given = request.settings.iter().map(|(name, value)| (name.as_str(), value.as_str()));
        let settings = Settings::of_one_source(given).map_err(|error| error.to_string())?;
        let after = request.after.unwrap_or_default();
        session
            .change(request.link.as_deref(), &settings, after)
            .map_err(|error| error.to_string())?;
        Ok(self.description(&session))
    }
}

/// The JSON of GET /v1/path.
pub fn description(
    pid: u32,
    command: &str,
    backends: &[String],
    lanes: &[String],
    paths: &[(String, PathSpec)],
) -> Value {
    let both = lanes.chunks(2);
    let paths: Vec<Value> =
        paths.iter().zip(both).map(|((name, path), lanes)| path_json(name, lanes, path)).collect();
    json!({ "pid": pid, "command": command, "backends": backends, "paths": paths })
}

fn path_json(name: &str, lanes: &[String], path: &PathSpec) -> Value {
    json!({
        "name": name,
        "lanes": lanes,
        "key": path.key,
        "mtu": path.mtu,
        "seed": path.seed,
        "up": link_json(&path.up),
        "down": link_json(&path.down),
    })
}

/// A link's own JSON, and of a trace its length: the trace itself may be very long.
fn link_json(link: &LinkSpec) -> Value {
    let mut value = json!(link);
    let fields: Option<&mut Map<String, Value>> = value.as_object_mut();
    if let (Some(fields), Some(trace)) = (fields, &link.trace) {
        fields.insert("trace_opportunities".into(), json!(trace.len()));
    }
    value
}
