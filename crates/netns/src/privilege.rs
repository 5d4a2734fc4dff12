//! The rights that a laboratory needs, and the user namespace that gives them to an ordinary user.

use crate::{LabError, sys};
use std::fs;
use std::io;

/// `CAP_NET_ADMIN` and `CAP_SYS_ADMIN` of `linux/capability.h`, as bits.
const NEEDED: u64 = 1 << 12 | 1 << 21;

/// The gates between an ordinary user and a user namespace on the common systems: the file, the value
/// that forbids, and the remedy.
const GATES: [(&str, &str, &str); 3] = [
    (
        "/proc/sys/kernel/unprivileged_userns_clone",
        "0",
        "allow it with `sysctl kernel.unprivileged_userns_clone=1`",
    ),
    (
        "/proc/sys/user/max_user_namespaces",
        "0",
        "allow it with `sysctl user.max_user_namespaces=10000`",
    ),
    (
        "/proc/sys/kernel/apparmor_restrict_unprivileged_userns",
        "1",
        "allow it with `sysctl kernel.apparmor_restrict_unprivileged_userns=0`",
    ),
];

/// The source of the rights.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Privilege {
    /// The process had them already, over the host's own network too if that is its namespace.
    Held {
        /// The user's number.
        uid: u32,
    },
    /// A user namespace made by this process: everything inside the laboratory, nothing outside of it.
    UserNamespace {
        /// The user's number outside.
        uid: u32,
        /// The user's group outside.
        gid: u32,
    },
}

impl Privilege {
    /// The user's number as the machine knows it, also from within a user namespace.
    pub fn uid(self) -> u32 {
        match self {
            Privilege::Held { uid } | Privilege::UserNamespace { uid, .. } => uid,
        }
    }
}

/// Sees to it that this process may build laboratories: does nothing if it holds `CAP_NET_ADMIN` and
/// `CAP_SYS_ADMIN`, else moves it into a user namespace of its own. Call it before any thread starts.
///
/// Inside, the user and group are both numbered 0: so the process and the programs that it starts keep
/// their rights over the laboratory through exec (a packet capture works), and the one group that may
/// open ping sockets has a number on every machine. Files made inside belong to the user outside.
/// A program that minds being 0 can be given back its number: [`SpawnOptions::identity`](crate::SpawnOptions).
///
/// # Errors
/// [`LabError::Threads`] if other threads run, [`LabError::UserNamespace`] if the system forbids it.
pub fn enter_user_namespace_if_needed() -> Result<Privilege, LabError> {
    let (uid, gid) = sys::identity();
    if status_field("CapEff").is_some_and(|bits| bits & NEEDED == NEEDED) {
        return Ok(Privilege::Held { uid });
    }
    let threads = fs::read_dir("/proc/self/task").map_or(1, Iterator::count);
    if threads > 1 {
        return Err(LabError::Threads(threads));
    }
    sys::unshare(libc::CLONE_NEWUSER).map_err(refused)?;
    map_identity(uid, gid)?;
    Ok(Privilege::UserNamespace { uid, gid })
}

/// Numbers the user and the group 0. `setgroups` has to be given up before an ordinary user may map a
/// group (user_namespaces(7)).
fn map_identity(uid: u32, gid: u32) -> Result<(), LabError> {
    let files = [
        ("/proc/self/setgroups", "deny".to_owned()),
        ("/proc/self/gid_map", format!("0 {gid} 1")),
        ("/proc/self/uid_map", format!("0 {uid} 1")),
    ];
    for (path, text) in files {
        fs::write(path, text).map_err(refused)?;
    }
    // Ubuntu's AppArmor lets the namespace be made but takes all rights away: it shows here or above.
    let bits = status_field("CapEff").unwrap_or(0);
    let lost = || io::Error::from_raw_os_error(libc::EPERM);
    if bits & NEEDED == NEEDED { Ok(()) } else { Err(refused(lost())) }
}

fn refused(source: io::Error) -> LabError {
    let remedy = remedy(source.raw_os_error(), |path| fs::read_to_string(path).ok());
    LabError::UserNamespace { source, remedy }
}

/// The setting that forbids, or all that may.
fn remedy(errno: Option<i32>, read: impl Fn(&str) -> Option<String>) -> String {
    let shut = |path: &str, value: &str| read(path).is_some_and(|found| found.trim() == value);
    let found = GATES.iter().find(|(path, value, _)| shut(path, value));
    let remedy = match (found, errno) {
        (Some((_, _, remedy)), _) => remedy,
        (None, Some(libc::ENOSPC)) => {
            "raise the limit with `sysctl user.max_user_namespaces=10000`"
        }
        (None, _) => "allow user namespaces (in a container: its seccomp profile or --privileged)",
    };
    remedy.to_owned()
}

/// A hexadecimal field of the thread's status.
fn status_field(name: &str) -> Option<u64> {
    let text = fs::read_to_string("/proc/thread-self/status").ok()?;
    let value = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
    u64::from_str_radix(value.trim(), 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_remedy_names_the_setting_that_forbids() {
        let told = remedy(Some(libc::EPERM), |path| {
            path.ends_with("apparmor_restrict_unprivileged_userns").then(|| "1\n".into())
        });
        assert!(told.contains("apparmor_restrict_unprivileged_userns=0"), "{told}");
        assert!(remedy(Some(libc::EPERM), |_| None).contains("seccomp"));
    }

    /// The kernel says so if the limit is 0 or reached: as "No space left on device".
    #[test]
    fn a_limit_that_is_reached_is_told_as_one() {
        let remedy = remedy(Some(libc::ENOSPC), |_| None);
        let source = io::Error::from_raw_os_error(libc::ENOSPC);
        let told = LabError::UserNamespace { source, remedy }.to_string();
        assert!(told.contains("no more of them are allowed"), "{told}");
        assert!(told.contains("raise the limit") && !told.contains("device"), "{told}");
    }

    #[test]
    fn status_fields_are_read() {
        assert!(status_field("CapBnd").is_some());
        assert_eq!(status_field("CapNone"), None);
    }
}
