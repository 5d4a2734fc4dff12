//! The server: a thread of its own, one request to a connection.

use crate::discovery::sockets_in;
use crate::routes::{Answer, admit, answer};
use crate::socket::{Claim, claim};
use crate::{ControlError, SetRequest};
use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::body::{Body, Incoming};
use hyper::header::{ALLOW, CONTENT_TYPE, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use serde_json::Value;
use std::convert::Infallible;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::Arc;
use std::thread::{Builder, JoinHandle};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::UnixListener;
use tokio::runtime::Runtime;
use tokio::sync::{Semaphore, oneshot};
use tokio::time::{sleep, timeout};

/// Longest request body in bytes.
const BODY_LIMIT: usize = 64 << 10;
/// Longest request body that is read to its end, only to be refused.
const DRAIN_LIMIT: usize = 1 << 20;
/// The longest time of a connection, from its first byte to its last.
const PATIENCE: Duration = Duration::from_secs(5);
/// Connections at the same time; more wait in the kernel until one of these ends.
const CONNECTIONS: usize = 16;

/// The part of a running path that others may see and change. Called in the server's thread, one call at a time; a
/// call that waits makes every client wait.
pub trait Controller: Send + Sync {
    /// The settings of the path; nothing between two measurements.
    fn describe(&self) -> Option<Value>;
    /// The counts of the path so far; nothing between two measurements.
    fn state(&self) -> Option<Value>;
    /// Changes all of the settings or none.
    ///
    /// # Errors
    /// One line with cause and remedy, for the client.
    fn set(&self, request: SetRequest) -> Result<Value, String>;
}

/// A running server. Dropping it ends it and removes the socket.
#[derive(Debug)]
pub struct Server {
    claim: Claim,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Server {
    /// Starts to answer on `socket_path`, which gets mode 0600. A socket that an earlier run has left
    /// there is replaced, and sockets of killed runs beside it are removed. The directory is made with mode 0700 if it
    /// is missing.
    ///
    /// # Errors
    /// If another run answers there, something else lies there, or the system refuses.
    pub fn start(
        socket_path: &Path,
        controller: Arc<dyn Controller>,
    ) -> Result<Server, ControlError> {
        let (claim, listener) = claim(socket_path)?;
        remove_stale_beside(&claim);
        let system = |cause| ControlError::system("serve", socket_path, cause);
        listener.set_nonblocking(true).map_err(system)?;
        let runtime = runtime().map_err(system)?;
        let (stop, stopped) = oneshot::channel();
        let thread = Builder::new()
            .name("control".into())
            .spawn(move || run(&runtime, listener, controller, stopped))
            .map_err(system)?;
        Ok(Server { claim, stop: Some(stop), thread: Some(thread) })
    }

    /// The socket.
    pub fn path(&self) -> &Path {
        self.claim.path()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // Taken away, not sent: the other side sees either.
        drop(self.stop.take());
        if self.thread.take().is_some_and(|thread| thread.join().is_err()) {
            tracing::error!("the control server panicked");
        }
    }
}

/// Removes what killed runs left in the directory; who looks for the running ones does the removing.
fn remove_stale_beside(claim: &Claim) {
    let looked = claim.path().parent().map_or(Ok(Vec::new()), sockets_in);
    if let Err(error) = looked {
        tracing::warn!("{error}");
    }
}

/// Accepts until the other end of `stopped` is dropped; what is under way then is broken off.
fn run(
    runtime: &Runtime,
    listener: std::os::unix::net::UnixListener,
    controller: Arc<dyn Controller>,
    stopped: oneshot::Receiver<()>,
) {
    runtime.spawn(accept(listener, controller));
    // That the sender is gone is the signal; there is nothing to receive.
    let _ = runtime.block_on(stopped);
}

async fn accept(listener: std::os::unix::net::UnixListener, controller: Arc<dyn Controller>) {
    let listener = match UnixListener::from_std(listener) {
        Ok(listener) => listener,
        Err(error) => return tracing::error!(%error, "the control socket cannot be used"),
    };
    let places = Arc::new(Semaphore::new(CONNECTIONS));
    // The semaphore is never closed, so that this loop ends only with its task.
    while let Ok(place) = Arc::clone(&places).acquire_owned().await {
        match listener.accept().await {
            Ok((stream, _)) => {
                let controller = Arc::clone(&controller);
                tokio::spawn(async move {
                    converse(stream, controller).await;
                    drop(place);
                });
            }
            Err(error) => {
                // Most likely no descriptors are left: they come back, but not at once.
                tracing::warn!(%error, "a control connection was not taken");
                sleep(Duration::from_millis(100)).await;
            }
        }
    }
}

/// The octets that a server of `controller` sends on a connection over which these come, and no more.
///
/// # Errors
/// If the system has no runtime to give.
pub fn exchange(octets: &[u8], controller: Arc<dyn Controller>) -> std::io::Result<Vec<u8>> {
    let mut sent = Vec::new();
    runtime()?.block_on(converse(tokio::io::join(octets, &mut sent), controller));
    Ok(sent)
}

fn runtime() -> std::io::Result<Runtime> {
    tokio::runtime::Builder::new_current_thread().enable_io().enable_time().build()
}

/// One connection: one request, one answer, and not for longer than [`PATIENCE`].
async fn converse<S>(stream: S, controller: Arc<dyn Controller>)
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let service = service_fn(|request| respond(request, Arc::clone(&controller)));
    let connection = http1::Builder::new()
        .keep_alive(false)
        .half_close(true)
        .max_buf_size(BODY_LIMIT)
        .serve_connection(TokioIo::new(stream), service);
    match timeout(PATIENCE, connection).await {
        Ok(Ok(())) => {}
        Ok(Err(error)) => tracing::debug!(%error, "a control connection ended badly"),
        Err(_) => tracing::debug!("a control connection took too long"),
    }
}

async fn respond(
    request: Request<Incoming>,
    controller: Arc<dyn Controller>,
) -> Result<Response<Full<Bytes>>, Infallible> {
    let (head, body) = request.into_parts();
    let (method, path) = (head.method, head.uri.path());
    let answer = match admit(&method, path) {
        Err(refusal) => refusal,
        Ok(()) => match read(body).await {
            Err(refusal) => refusal,
            // A panic in there must not leave the client without an answer.
            Ok(body) => {
                catch_unwind(AssertUnwindSafe(|| answer(controller.as_ref(), &method, path, &body)))
                    .unwrap_or_else(|_| {
                        Answer::bad(500, "the run failed over this request; report it")
                    })
            }
        },
    };
    Ok(encode(&answer))
}

/// The whole body, or a refusal. What is too long is read on for a while: a client that is still
/// writing when the connection closes would not come to read why.
async fn read(mut body: Incoming) -> Result<Vec<u8>, Answer> {
    let too_large =
        || Answer::bad(413, &format!("the request is too large: at most {BODY_LIMIT} bytes"));
    if body.size_hint().lower() > DRAIN_LIMIT as u64 {
        return Err(too_large());
    }
    let (mut bytes, mut length) = (Vec::new(), 0);
    while let Some(frame) = body.frame().await {
        let frame =
            frame.map_err(|error| Answer::bad(400, &format!("the body breaks off: {error}")))?;
        let data = frame.data_ref().map_or(&[][..], |data| data);
        length += data.len();
        if length > DRAIN_LIMIT {
            break;
        }
        if length <= BODY_LIMIT {
            bytes.extend_from_slice(data);
        }
    }
    if length > BODY_LIMIT { Err(too_large()) } else { Ok(bytes) }
}

fn encode(answer: &Answer) -> Response<Full<Bytes>> {
    let mut text = format!("{:#}", answer.body);
    text.push('\n');
    let mut response = Response::new(Full::new(Bytes::from(text)));
    *response.status_mut() =
        StatusCode::from_u16(answer.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    if let Some(allow) = answer.allow.as_deref().and_then(|allow| HeaderValue::from_str(allow).ok())
    {
        headers.insert(ALLOW, allow);
    }
    response
}
