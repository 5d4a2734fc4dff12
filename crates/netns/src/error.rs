//! Errors in the building of a laboratory.

use std::io;

/// The reason why a step failed. Each text is one line that names the cause and, if there is one, the remedy.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LabError {
    /// A system call or a file failed.
    #[error("cannot {what}: {source}")]
    System {
        /// The step, as "open …".
        what: String,
        /// The kernel's answer.
        source: io::Error,
    },
    /// The kernel refused a netlink request.
    #[error("cannot {what}: {source}{}", detail.as_ref().map(|d| format!(" ({d})")).unwrap_or_default())]
    Netlink {
        /// The step.
        what: String,
        /// The kernel's errno.
        source: io::Error,
        /// The kernel's own words (extended acknowledgement), if it gave any.
        detail: Option<String>,
    },
    /// There is no such device in that namespace.
    #[error("there is no network device `{0}` here: check its name and its namespace")]
    NoDevice(String),
    /// A device name that Linux does not take.
    #[error("`{0}` cannot name a device: use 1 to 15 bytes without `/`, `:` or white space")]
    DeviceName(String),
    /// An address that does not parse.
    #[error("`{0}` is not an address: write {1}")]
    Address(String, &'static str),
    /// A kernel setting outside `/proc/sys/net`.
    #[error("`{0}` is not a network setting: write it like net/ipv4/ip_forward")]
    Setting(String),
    /// A user namespace cannot be entered once threads run.
    #[error(
        "a user namespace must be entered while one thread runs, but there are {0}: call it first in main, or run as root"
    )]
    Threads(usize),
    /// The kernel does not let this user make a user namespace.
    #[error("no permission to make a user namespace ({}): run as root, or {remedy}", limited(.source))]
    UserNamespace {
        /// The kernel's answer.
        source: io::Error,
        /// The setting that stands in the way, with the command that changes it.
        remedy: String,
    },
    /// The kernel's limit on network namespaces is reached.
    #[error(
        "cannot make a network namespace: no more of them are allowed; raise the limit with `sysctl user.max_net_namespaces=10000`"
    )]
    NetworkNamespaces,
    /// The namespace that was to be signalled is the caller's own.
    #[error(
        "refused to signal the processes of the own network namespace ({0}): name a laboratory's"
    )]
    OwnNamespace(u64),
    /// Another run carries frames between devices of which this is one.
    #[error(
        "interface `{device}` is bridged by process {pid}: end that run first (`kill {pid}`), or frames would pass twice"
    )]
    Bridged {
        /// The device.
        device: String,
        /// The process of that run.
        pid: u32,
    },
    /// The directory for run states cannot be trusted.
    #[error("{path} must be a directory of this user with mode 0700: remove it and start again")]
    RuntimeDirectory {
        /// The directory.
        path: String,
    },
    /// No place for the directory of run states is of use.
    #[error(
        "no directory for what runs write down: {}; make one of these work, or name another directory in XDG_RUNTIME_DIR",
        listed(.reasons)
    )]
    NoRuntimeDirectory {
        /// What is wrong with each place.
        reasons: Vec<LabError>,
    },
}

/// The reasons in one line.
fn listed(reasons: &[LabError]) -> String {
    reasons.iter().map(LabError::to_string).collect::<Vec<_>>().join("; ")
}

impl LabError {
    /// The errno behind it, if there is one.
    pub fn errno(&self) -> Option<i32> {
        match self {
            LabError::System { source, .. }
            | LabError::Netlink { source, .. }
            | LabError::UserNamespace { source, .. } => source.raw_os_error(),
            _ => None,
        }
    }
}

/// The kernel's answer. "No space left on device" means that the number of namespaces is limited (clone(2)).
fn limited(source: &io::Error) -> String {
    match source.raw_os_error() {
        Some(libc::ENOSPC) => "no more of them are allowed".into(),
        _ => source.to_string(),
    }
}

/// Names the step that an I/O error belongs to.
pub(crate) trait Step<T> {
    fn step(self, what: impl FnOnce() -> String) -> Result<T, LabError>;
}

impl<T> Step<T> for io::Result<T> {
    fn step(self, what: impl FnOnce() -> String) -> Result<T, LabError> {
        self.map_err(|source| LabError::System { what: what(), source })
    }
}
