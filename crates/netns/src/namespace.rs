//! Network namespaces without a name, held by a file descriptor.

use crate::error::Step;
use crate::netlink::{Answer, Netlink, Request};
use crate::{LabError, sys};
use serde::{Deserialize, Serialize};
use std::fs::{self, File};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

/// The calling thread's network namespace; `/proc/self` would be the main thread's.
const OWN: &str = "/proc/thread-self/ns/net";

/// Settings of a new namespace. Only what the experiment sends shall travel: addresses work at once
/// (no duplicate address detection) and no router is asked for (ip-sysctl.rst, "accept_dad",
/// "router_solicitations").
const QUIET: [(&str, &str); 3] = [
    ("net/ipv6/conf/all/accept_dad", "0"),
    ("net/ipv6/conf/default/accept_dad", "0"),
    ("net/ipv6/conf/default/router_solicitations", "0"),
];

/// The identity of a namespace: the inode number, which the kernel uses again once the namespace is gone,
/// and the cookie (Linux 5.14), which it never uses again before the next boot.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct NamespaceId {
    /// Inode number in the kernel's `nsfs`, as `ls -L -i /proc/PID/ns/net` shows it.
    pub inode: u64,
    /// `SO_NETNS_COOKIE` of a socket inside; `None` on kernels before 5.14.
    pub cookie: Option<u64>,
}

/// A network namespace, held by a file descriptor and by no name: when the last process and the last
/// descriptor in it are gone, the kernel removes it with all of its devices. A clone is another handle to
/// the same namespace.
///
/// Only the network is separate. Files are the host's: `/sys/class/net` shows the devices of whoever
/// mounted it, while `/proc/net` and `/proc/sys/net` follow the namespace.
#[derive(Debug, Clone)]
pub struct Namespace(Arc<Held>);

#[derive(Debug)]
struct Held {
    file: File,
    id: NamespaceId,
    /// Opened inside, so that requests need no thread of their own.
    route: Mutex<Netlink>,
    /// A datagram socket opened inside, for ioctls.
    control: OwnedFd,
}

fn refused(source: std::io::Error) -> LabError {
    let what = "make a network namespace (run as root, or enter a user namespace first)";
    match source.raw_os_error() {
        Some(libc::ENOSPC) => LabError::NetworkNamespaces,
        _ => LabError::System { what: what.into(), source },
    }
}

impl Namespace {
    /// Makes an empty namespace with its loopback device up.
    ///
    /// `ping` works inside for every user: the range of groups that may open ping sockets is widened
    /// to all (ip-sysctl.rst, "ping_group_range"), or to the one mapped group in a user namespace.
    ///
    /// # Errors
    /// Without `CAP_SYS_ADMIN`; see [`enter_user_namespace_if_needed`](crate::enter_user_namespace_if_needed). If no more of them
    /// are allowed (clone(2), ENOSPC).
    pub fn create() -> Result<Namespace, LabError> {
        let namespace = on_thread(|| {
            sys::unshare(libc::CLONE_NEWNET).map_err(refused)?;
            Namespace::current()
        })?;
        namespace.set_up("lo")?;
        namespace.run(quieten)??;
        Ok(namespace)
    }

    /// The calling thread's own namespace.
    pub fn current() -> Result<Namespace, LabError> {
        let file = File::open(OWN).step(|| format!("open {OWN}"))?;
        let control = sys::socket(libc::AF_INET, libc::SOCK_DGRAM, 0)
            .step(|| "open a socket for device settings".into())?;
        let inode = file.metadata().step(|| format!("look at {OWN}"))?.ino();
        let cookie = sys::namespace_cookie(control.as_fd()).ok();
        let id = NamespaceId { inode, cookie };
        let route = Mutex::new(Netlink::open(libc::NETLINK_ROUTE)?);
        Ok(Namespace(Arc::new(Held { file, id, route, control })))
    }

    /// The namespace of the process `pid`.
    ///
    /// # Errors
    /// If the process is gone, or its namespace may not be entered.
    pub fn of_process(pid: u32) -> Result<Namespace, LabError> {
        let path = format!("/proc/{pid}/ns/net");
        let file = File::open(&path).step(|| format!("open {path}"))?;
        on_thread(|| {
            sys::enter_network(file.as_fd()).step(|| format!("enter {path}"))?;
            Namespace::current()
        })
    }

    /// The inode number, as `/proc/PID/ns/net` shows it.
    pub fn inode(&self) -> u64 {
        self.0.id.inode
    }

    /// The identity, to be written down and found again.
    pub fn id(&self) -> NamespaceId {
        self.0.id
    }

    /// The descriptor that holds it. It is closed on exec.
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.0.file.as_fd()
    }

    /// A datagram socket inside, for ioctls.
    pub(crate) fn control(&self) -> BorrowedFd<'_> {
        self.0.control.as_fd()
    }

    /// Runs `work` on a new thread inside the namespace and gives back its result. What `work` opens
    /// there (sockets, rings) stays in the namespace wherever it is used later. A panic of `work` goes on
    /// in the caller.
    ///
    /// # Errors
    /// If the namespace may not be entered.
    pub fn run<R: Send>(&self, work: impl FnOnce() -> R + Send) -> Result<R, LabError> {
        on_thread(|| {
            // The thread starts in its maker's namespace, which it may stay in without any privilege.
            if own_inode() != Some(self.0.id.inode) {
                sys::enter_network(self.fd()).step(|| "enter a network namespace".into())?;
            }
            Ok(work())
        })
    }

    /// Writes a kernel setting inside, named by its path below `/proc/sys`: `net/ipv4/ip_forward`.
    ///
    /// # Errors
    /// If `setting` is not below `net/`, does not exist, or does not take `value`.
    pub fn set_sysctl(&self, setting: &str, value: &str) -> Result<(), LabError> {
        let path = sysctl_path(setting)?;
        self.run(|| fs::write(&path, value).step(|| format!("write {value} to {path}")))?
    }

    /// Reads a kernel setting inside, without its line end.
    ///
    /// # Errors
    /// If `setting` is not below `net/` or does not exist.
    pub fn sysctl(&self, setting: &str) -> Result<String, LabError> {
        let path = sysctl_path(setting)?;
        let text = self.run(|| fs::read_to_string(&path).step(|| format!("read {path}")))??;
        Ok(text.trim_end().to_owned())
    }

    /// Sends one rtnetlink request to this namespace.
    pub(crate) fn ask(&self, what: &str, request: &Request<'_>) -> Result<Vec<Answer>, LabError> {
        let mut route = self.0.route.lock().unwrap_or_else(PoisonError::into_inner);
        route.ask(what, request)
    }
}

/// Runs `work` on a thread of its own, which alone changes namespaces, and hands on its panic.
pub(crate) fn on_thread<R: Send>(
    work: impl FnOnce() -> Result<R, LabError> + Send,
) -> Result<R, LabError> {
    let thread = crate::thread("tl-namespace").step(|| "start a thread".into())?;
    thread::scope(|scope| {
        let handle = thread.spawn_scoped(scope, work).step(|| "start a thread".into())?;
        handle.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

/// The inode of the calling thread's namespace.
pub(crate) fn own_inode() -> Option<u64> {
    Some(fs::metadata(OWN).ok()?.ino())
}

/// Applies the settings of a new namespace; to be run inside.
fn quieten() -> Result<(), LabError> {
    for (setting, value) in QUIET {
        let path = sysctl_path(setting)?;
        // A kernel without IPv6 has none of these files and needs none.
        if fs::exists(&path).unwrap_or(false) {
            fs::write(&path, value).step(|| format!("write {value} to {path}"))?;
        }
    }
    let path = sysctl_path("net/ipv4/ping_group_range")?;
    // In a user namespace only mapped groups may be named, and there it is just group 0.
    fs::write(&path, "0 2147483647")
        .or_else(|_| fs::write(&path, "0 0"))
        .step(|| format!("write 0 0 to {path}"))
}

fn sysctl_path(setting: &str) -> Result<String, LabError> {
    let inside = setting.starts_with("net/")
        && setting.split('/').all(|part| !matches!(part, "" | "." | ".."));
    let wrong = || LabError::Setting(setting.to_owned());
    inside.then(|| format!("/proc/sys/{setting}")).ok_or_else(wrong)
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// A namespace, or nothing and a message if there is no permission to make one.
    pub(crate) fn namespace() -> Option<Namespace> {
        match Namespace::create() {
            Err(error) if error.errno() == Some(libc::EPERM) => {
                trunkline_skip::skipped(error);
                None
            }
            made => Some(made.expect("a namespace")),
        }
    }

    #[test]
    fn only_network_settings_are_written() {
        for wrong in ["kernel/hostname", "net/../kernel/hostname", "net//x", "/net/ipv4/x", ""] {
            assert!(sysctl_path(wrong).is_err(), "{wrong}");
        }
        assert_eq!(sysctl_path("net/ipv4/ip_forward").unwrap(), "/proc/sys/net/ipv4/ip_forward");
    }

    #[test]
    fn the_own_namespace_is_known_and_entered_without_privilege() {
        let own = Namespace::current().unwrap();
        assert_eq!(Some(own.inode()), own_inode());
        assert_eq!(own.run(own_inode).unwrap(), Some(own.inode()));
        assert_eq!(Namespace::current().unwrap().id(), own.id());
    }

    /// The kernel calls a limit that is reached "No space left on device".
    #[test]
    fn a_limit_on_namespaces_is_told_as_one() {
        let told = |errno| refused(std::io::Error::from_raw_os_error(errno)).to_string();
        let limit = told(libc::ENOSPC);
        assert!(limit.contains("max_net_namespaces") && !limit.contains("device"), "{limit}");
        assert!(told(libc::EPERM).contains("run as root"));
    }
}
