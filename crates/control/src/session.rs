//! The controller of what is emulated: what the API says of a session.

use crate::routes::NOTHING_AT_WORK;
use crate::{Controller, SetRequest};
use serde::Serialize;
use serde_json::{Map, Value, json};
use std::sync::Arc;
use trunkline_core::Span;
use trunkline_dataplane::{Console, Session, monotonic};
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

    fn description(&self, session: &Session, paths: &[(String, PathSpec)]) -> Value {
        let now = monotonic();
        let pending = session.pending().into_iter().map(|it| Pending {
            path: it.path,
            settings: it.settings,
            after: it.at.since(now),
        });
        let pending: Vec<Pending> = pending.collect();
        let (backends, lanes) = (session.backends(), session.lanes());
        description(std::process::id(), &self.command, (backends, lanes), paths, &pending)
    }
}

/// A change of settings that is still to come.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Pending {
    /// The path's name; empty if the only path has none.
    pub path: String,
    /// The settings, as NAME=VALUE with blanks between them.
    pub settings: String,
    /// The time until then.
    pub after: Span,
}

impl Controller for SessionController {
    fn describe(&self) -> Option<Value> {
        self.console.session().map(|session| self.description(&session, &session.paths()))
    }

    fn state(&self) -> Option<Value> {
        self.console.session().map(|session| json!(session.snapshot()))
    }

    fn set(&self, request: SetRequest) -> Result<Value, String> {
        let session = self.console.session().ok_or(NOTHING_AT_WORK)?;
        let given = request.settings.iter().map(|(name, value)| (name.as_str(), value.as_str()));
        let settings = Settings::of_one_source(given).map_err(|error| error.to_string())?;
        let after = request.after.unwrap_or_default();
        let changed = session
            .change(request.link.as_deref(), &settings, after)
            .map_err(|error| error.to_string())?;
        let mut paths = session.paths();
        let is_meant = |name: &str| request.link.as_deref().is_none_or(|link| link == name);
        if let Some((_, path)) = paths.iter_mut().find(|(name, _)| is_meant(name)) {
            *path = changed;
        }
        Ok(self.description(&session, &paths))
    }
}

/// The JSON of GET /v1/path, for the backends of ports and the names of lanes.
pub fn description(
    pid: u32,
    command: &str,
    (backends, lanes): (&[String], &[String]),
    paths: &[(String, PathSpec)],
    pending: &[Pending],
) -> Value {
    let both = lanes.chunks(2);
    let paths: Vec<Value> =
        paths.iter().zip(both).map(|((name, path), lanes)| path_json(name, lanes, path)).collect();
    let mut all = json!({ "pid": pid, "command": command, "backends": backends, "paths": paths });
    if !pending.is_empty() {
        all["pending"] = json!(pending);
    }
    all
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
