//! The client: blocking calls, one connection for each.

use crate::socket::{Probe, probe};
use crate::{ControlError, SetRequest};
use bytes::Bytes;
use http_body_util::{BodyExt, Full, Limited};
use hyper::client::conn::http1::handshake;
use hyper::header::{CONTENT_TYPE, HOST};
use hyper::{Method, Request};
use hyper_util::rt::TokioIo;
use serde_json::Value;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::Duration;
use tokio::time::timeout;

/// Longest answer in bytes.
const ANSWER_LIMIT: usize = 16 << 20;
/// The time that an answer may take. Twice the server's patience with others that it may serve first.
const PATIENCE: Duration = Duration::from_secs(10);
/// The number of looks, and the time between them, at whether a run that broke a connection off is ending.
const LOOKS: u32 = 20;
const BETWEEN_LOOKS: Duration = Duration::from_millis(25);

/// A way to a running path. Its calls block, and must not be made from within a Tokio runtime.
#[derive(Debug, Clone)]
pub struct Client {
    socket: PathBuf,
    patience: Duration,
}

impl Client {
    /// A client of the run behind `socket`.
    ///
    /// # Errors
    /// If nobody answers there, or the socket may not be opened.
    pub fn connect(socket: &Path) -> Result<Client, ControlError> {
        let client = Client { socket: socket.to_owned(), patience: PATIENCE };
        client.dial().map(|_| client)
    }

    /// The run's answer to GET `path`, such as `/v1/state`.
    ///
    /// # Errors
    /// If the run has gone, is silent or refuses.
    pub fn get(&self, path: &str) -> Result<Value, ControlError> {
        self.call(Method::GET, path, Bytes::new())
    }

    /// Sends `request` to `path`, such as `/v1/path`, and returns what the run answers.
    ///
    /// # Errors
    /// If the run has gone, is silent or refuses.
    pub fn patch(&self, path: &str, request: &SetRequest) -> Result<Value, ControlError> {
        let body = serde_json::to_vec(request).map_err(unclear)?;
        self.call(Method::PATCH, path, body.into())
    }

    fn dial(&self) -> Result<UnixStream, ControlError> {
        match probe(&self.socket)? {
            Probe::Alive(stream) => Ok(stream),
            Probe::Stale => Err(ControlError::Gone(self.socket.clone())),
            Probe::Absent => Err(ControlError::NotRunning(self.socket.clone())),
        }
    }

    fn call(&self, method: Method, path: &str, body: Bytes) -> Result<Value, ControlError> {
        let change = method == Method::PATCH;
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header(HOST, "localhost")
            .header(CONTENT_TYPE, "application/json")
            .body(Full::new(body))
            .map_err(unclear)?;
        let stream = self.dial()?;
        let system = |error| ControlError::system("talk to", &self.socket, error);
        stream.set_nonblocking(true).map_err(system)?;
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_io()
            .enable_time()
            .build()
            .map_err(system)?;
        let answer =
            runtime.block_on(async { timeout(self.patience, exchange(stream, request)).await });
        let silent = |_| ControlError::Silent { path: self.socket.clone(), change };
        let answer = answer.map_err(silent)?;
        let (status, bytes) = answer.map_err(|failure| self.explain(failure))?;
        understand(status, &bytes)
    }

    /// Tells why there was no answer: what came was none, the run has ended meanwhile, or neither.
    fn explain(&self, failure: NoAnswer) -> ControlError {
        let cause = match failure {
            NoAnswer::Unclear(text) => return ControlError::Answer(text),
            NoAnswer::BrokenOff(text) => text,
        };
        // A run that ends closes its connections before its socket.
        for _ in 0..LOOKS {
            if !matches!(probe(&self.socket), Ok(Probe::Alive(_))) {
                return ControlError::Ended(self.socket.clone());
            }
            sleep(BETWEEN_LOOKS);
        }
        ControlError::BrokenOff { path: self.socket.clone(), cause }
    }
}

fn unclear(error: impl std::fmt::Display) -> ControlError {
    ControlError::Answer(error.to_string())
}

/// The reason why an exchange brought no answer.
enum NoAnswer {
    /// What came is no answer.
    Unclear(String),
    /// The connection ended before there was one.
    BrokenOff(String),
}

impl From<hyper::Error> for NoAnswer {
    fn from(error: hyper::Error) -> NoAnswer {
        match error.is_parse() {
            true => NoAnswer::Unclear(error.to_string()),
            false => NoAnswer::BrokenOff(error.to_string()),
        }
    }
}

/// Reads a body's end: too long, or an error of the connection.
fn cut_short(error: Box<dyn std::error::Error + Send + Sync>) -> NoAnswer {
    match error.downcast::<hyper::Error>() {
        Ok(error) => NoAnswer::from(*error),
        Err(error) => NoAnswer::Unclear(error.to_string()),
    }
}

async fn exchange(
    stream: UnixStream,
    request: Request<Full<Bytes>>,
) -> Result<(u16, Bytes), NoAnswer> {
    let stream = tokio::net::UnixStream::from_std(stream)
        .map_err(|error| NoAnswer::BrokenOff(error.to_string()))?;
    let (mut sender, connection) = handshake(TokioIo::new(stream)).await?;
    // Ends with the runtime; what goes wrong on the way is told to the sender, too.
    tokio::spawn(connection);
    let response = sender.send_request(request).await?;
    let status = response.status().as_u16();
    let body = Limited::new(response.into_body(), ANSWER_LIMIT).collect().await;
    Ok((status, body.map_err(cut_short)?.to_bytes()))
}

fn understand(status: u16, bytes: &[u8]) -> Result<Value, ControlError> {
    let value: Value = serde_json::from_slice(bytes).map_err(unclear)?;
    if status < 400 {
        return Ok(value);
    }
    let message = value["error"].as_str().unwrap_or("the run refuses without a reason");
    Err(ControlError::Refused { status, message: message.to_string() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::net::UnixListener;

    /// A stopped run takes what is asked of it when it goes on: who asked for a change is told so.
    #[test]
    fn a_change_that_is_not_answered_may_still_be_made() {
        let folder = tempfile::tempdir().unwrap();
        let socket = folder.path().join("run.sock");
        let _silent = UnixListener::bind(&socket).unwrap();
        let patience = Duration::from_millis(50);
        let client = Client { patience, ..Client::connect(&socket).unwrap() };
        let told = client.patch("/v1/path", &SetRequest::default()).unwrap_err().to_string();
        assert!(told.contains("may still be done") && told.contains("kill -CONT"), "{told}");
        let told = client.get("/v1/state").unwrap_err().to_string();
        assert!(told.contains("does not answer") && !told.contains("may still"), "{told}");
    }
}
