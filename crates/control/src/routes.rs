//! The server's answers: the routes, without the wire.

use crate::{Controller, SetRequest};
use hyper::Method;
use serde_json::{Value, json};

/// Method, path and what it is for.
const ROUTES: [(&str, &str, &str); 4] = [
    ("GET", "/", "this index"),
    ("GET", "/v1/path", "how the path is set"),
    ("GET", "/v1/state", "what the path has done so far"),
    ("PATCH", "/v1/path", "change settings while traffic flows"),
];

/// The reason why a run has nothing to show.
pub const NOTHING_AT_WORK: &str = "the run is between two measurements: ask again in a moment";

/// An answer: the HTTP status, the methods that the path allows, and JSON.
#[derive(Debug, PartialEq)]
pub struct Answer {
    pub status: u16,
    pub allow: Option<String>,
    pub body: Value,
}

impl Answer {
    pub fn good(body: Value) -> Answer {
        Answer { status: 200, allow: None, body }
    }

    /// A refusal with its reason, which is made one line.
    pub fn bad(status: u16, reason: &str) -> Answer {
        let reason = reason.split_whitespace().collect::<Vec<_>>().join(" ");
        Answer { status, allow: None, body: json!({ "error": reason }) }
    }
}

/// Says whether a request for `path` by `method` would be answered, and if not, how it is refused.
pub fn admit(method: &Method, path: &str) -> Result<(), Answer> {
    let methods: Vec<&str> = ROUTES.iter().filter(|r| r.1 == path).map(|r| r.0).collect();
    if methods.is_empty() {
        return Err(Answer::bad(404, &format!("there is no {path} here; GET / lists the routes")));
    }
    if methods.contains(&method.as_str()) {
        return Ok(());
    }
    let allow = methods.join(", ");
    let reason = format!("{path} does not take {method}; use {}", methods.join(" or "));
    Err(Answer { allow: Some(allow), ..Answer::bad(405, &reason) })
}

/// The answer to a request that [`admit`] has let pass.
pub fn answer(controller: &dyn Controller, method: &Method, path: &str, body: &[u8]) -> Answer {
    match (method.as_str(), path) {
        ("GET", "/") => Answer::good(index()),
        ("GET", "/v1/path") => at_work(controller.describe()),
        ("GET", "/v1/state") => at_work(controller.state()),
        _ => set(controller, body),
    }
}

/// The run's own description, or that there is none at the moment.
fn at_work(said: Option<Value>) -> Answer {
    said.map_or_else(|| Answer::bad(503, NOTHING_AT_WORK), Answer::good)
}

fn index() -> Value {
    let routes: Vec<Value> = ROUTES
        .iter()
        .map(|(method, path, what)| json!({ "method": method, "path": path, "what": what }))
        .collect();
    json!({ "trunkline": env!("CARGO_PKG_VERSION"), "routes": routes })
}

fn set(controller: &dyn Controller, body: &[u8]) -> Answer {
    let request: SetRequest = match serde_json::from_slice(body) {
        Ok(request) => request,
        Err(error) => return Answer::bad(400, &format!("the request is not good: {error}")),
    };
    match controller.set(request) {
        Ok(value) => Answer::good(value),
        Err(reason) => Answer::bad(400, &reason),
    }
}
