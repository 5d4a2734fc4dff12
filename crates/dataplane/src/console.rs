//! The register that tells `show` and `set` what a process emulates at the moment, and its captures.

use crate::capture::CaptureFilter;
use crate::session::Session;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

/// A capture that is wanted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CaptureRequest {
    /// The file, which is overwritten.
    pub file: PathBuf,
    /// The command line, which goes into it.
    pub command: String,
    /// The ends of paths at which frames are recorded.
    pub filter: CaptureFilter,
}

/// The register that tells `show` and `set` what this process emulates at the moment: a path until it ends, or one
/// measurement after the other.
#[derive(Default)]
pub struct Console {
    session: Mutex<Option<Arc<Session>>>,
    capture: Option<CaptureRequest>,
    captures: AtomicUsize,
    socket: OnceLock<PathBuf>,
}

/// A session at a console, for as long as it is kept.
#[must_use = "the session leaves the console when this is dropped"]
pub struct Presence<'a>(&'a Console);

impl Console {
    /// A console over nothing yet, whose sessions are captured if that is asked for.
    pub fn new(capture: Option<CaptureRequest>) -> Console {
        Console { capture, ..Console::default() }
    }

    /// The session that is at work, if one is.
    pub fn session(&self) -> Option<Arc<Session>> {
        self.place().clone()
    }

    /// Shows `session` from now on.
    pub fn show(&self, session: Arc<Session>) {
        *self.place() = Some(session);
    }

    /// Shows `session` until what comes back is dropped.
    pub fn enter(&self, session: Arc<Session>) -> Presence<'_> {
        self.show(session);
        Presence(self)
    }

    /// The capture of the session that is started next, if captures are asked for. The first goes to the file named,
    /// later ones to files beside it: `x.pcapng`, `x-2.pcapng` and so on.
    pub fn next_capture(&self) -> Option<CaptureRequest> {
        let capture = self.capture.as_ref()?;
        let number = self.captures.fetch_add(1, Ordering::Relaxed) + 1;
        Some(CaptureRequest { file: numbered(&capture.file, number), ..capture.clone() })
    }

    /// Notes the socket at which `show` and `set` are answered.
    pub fn answers_at(&self, socket: PathBuf) {
        // A console has one socket, and keeps the first.
        let _ = self.socket.set(socket);
    }

    /// That socket, to be removed by somebody else if this process is killed.
    pub fn socket(&self) -> Option<&Path> {
        self.socket.get().map(PathBuf::as_path)
    }

    fn place(&self) -> std::sync::MutexGuard<'_, Option<Arc<Session>>> {
        self.session.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Presence<'_> {
    fn drop(&mut self) {
        *self.0.place() = None;
    }
}

impl std::fmt::Debug for Console {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Console").field("capture", &self.capture).finish_non_exhaustive()
    }
}

fn numbered(file: &Path, number: usize) -> PathBuf {
    if number < 2 {
        return file.to_owned();
    }
    let mut name = file.file_stem().unwrap_or_default().to_owned();
    name.push(format!("-{number}"));
    if let Some(extension) = file.extension() {
        name.push(".");
        name.push(extension);
    }
    file.with_file_name(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_capture_has_a_file_of_its_own() {
        let wanted = |file: &str| {
            let (file, command) = (file.into(), String::new());
            let console =
                Console::new(Some(CaptureRequest { file, command, filter: CaptureFilter::Both }));
            [1, 2, 3].map(|_| console.next_capture().unwrap().file.display().to_string())
        };
        assert_eq!(wanted("d/x.pcapng"), ["d/x.pcapng", "d/x-2.pcapng", "d/x-3.pcapng"]);
        assert_eq!(wanted("x"), ["x", "x-2", "x-3"]);
        assert_eq!(Console::default().next_capture(), None);
    }
}
