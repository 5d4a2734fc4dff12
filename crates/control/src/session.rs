//! The controller of an emulated path: what the API says of a session.

use crate::{Controller, SetRequest};
use serde_json::{Map, Value, json};
use std::sync::Arc;
use trunkline_emu::Session;
use trunkline_path::LinkSpec;
use trunkline_scenario::{PathSpec, Settings};

/// A session as a [`Controller`].
pub struct SessionController {
    session: Arc<Session>,
    command: String,
}

impl SessionController {
    /// A controller of `session`, which `command` (a command line) has started.
    pub fn new(session: Arc<Session>, command: &str) -> SessionController {
        SessionController { session, command: command.to_string() }
    }

    fn description(&self, paths: &[(String, PathSpec)]) -> Value {
        description(std::process::id(), &self.command, self.session.backends(), paths)
    }
}

impl Controller for SessionController {
    fn describe(&self) -> Value {
        self.description(&self.session.paths())
    }

    fn state(&self) -> Value {
        json!(self.session.snapshot())
    }

    fn set(&self, request: SetRequest) -> Result<Value, String> {
        let mut settings = Settings::default();
        request.settings.iter().for_each(|(name, value)| settings.add(name, value));
        let after = request.after.unwrap_or_default();
        self.session
            .change(request.link.as_deref(), &settings, after)
            .map_err(|error| error.to_string())?;
        Ok(self.describe())
    }
}

/// The JSON of GET /v1/path.
pub fn description(
    pid: u32,
    command: &str,
    backends: &[String],
    paths: &[(String, PathSpec)],
) -> Value {
    let paths: Vec<Value> = paths.iter().map(|(name, path)| path_json(name, path)).collect();
    json!({ "pid": pid, "command": command, "backends": backends, "paths": paths })
}

fn path_json(name: &str, path: &PathSpec) -> Value {
    json!({
        "name": name,
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
