//! Programs inside a namespace.
#![allow(unsafe_code)]

use crate::error::Step;
use crate::{
    LabError, Namespace, NamespaceId, Privilege, Replacements, namespace, open_files, sys,
};
use std::ffi::{CStr, CString};
use std::fs;
use std::io;
use std::os::fd::{AsFd, AsRawFd, RawFd};
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command};

/// The way in which a program is started.
#[derive(Debug, Clone)]
pub struct SpawnOptions {
    /// The kernel kills the program (`SIGKILL`) when the *thread* that started it ends: start it from a
    /// thread that lives as long as the laboratory. The kernel forgets this for set-user-id programs
    /// (`PR_SET_PDEATHSIG`(2const)), and it does not reach the program's own children:
    /// [`kill_processes_in`] does.
    pub die_with_parent: bool,
    /// The program leads a process group of its own, so that one signal reaches all of it and the
    /// terminal's does not. It heeds SIGINT, also if this process ignores it, as what a shell starts in the background does.
    pub own_group: bool,
    /// In a user namespace: give the program the user and group numbers that it has outside, and none of
    /// the rights over the laboratory. Without effect if the rights were held already.
    pub identity: Option<Privilege>,
    /// Files that it sees in place of the machine's. With any, it has a mount namespace of its own.
    pub files: Replacements,
}

impl Default for SpawnOptions {
    fn default() -> SpawnOptions {
        let files = Replacements::default();
        SpawnOptions { die_with_parent: true, own_group: false, identity: None, files }
    }
}

/// Starts `command` inside `namespace`.
///
/// A user set by [`CommandExt::uid`] would be in force too early, before the namespace is entered; start
/// `setpriv` or `su` inside instead, or use [`SpawnOptions::identity`].
///
/// # Errors
/// If the program cannot be started or the namespace not be entered.
pub fn spawn(
    namespace: &Namespace,
    mut command: Command,
    options: SpawnOptions,
) -> Result<Child, LabError> {
    if options.own_group {
        command.process_group(0);
    }
    let entry = Entry::new(namespace.fd().as_raw_fd(), options);
    // SAFETY: between fork and exec the closure allocates nothing, takes no lock and makes system calls
    // only; the descriptor is open, since `namespace` is borrowed until the program has started.
    unsafe { command.pre_exec(move || entry.apply()) };
    command.spawn().step(|| format!("start {}", command.get_program().display()))
}

/// The new process's actions on itself before it becomes the program, prepared beforehand.
struct Entry {
    network: RawFd,
    parent: u32,
    die_with_parent: bool,
    own_group: bool,
    files: Replacements,
    /// How many files it may have open, if not as many as this process.
    open_files: Option<libc::rlimit>,
    /// Files and what to write into them.
    maps: Option<[(&'static CStr, CString); 3]>,
}

impl Entry {
    fn new(network: RawFd, options: SpawnOptions) -> Entry {
        let SpawnOptions { die_with_parent, own_group, .. } = options;
        let maps = options.identity.and_then(maps);
        let (parent, open_files) = (std::process::id(), open_files::before());
        let files = options.files;
        Entry { network, parent, die_with_parent, own_group, files, open_files, maps }
    }

    fn apply(&self) -> io::Result<()> {
        // SAFETY: the descriptor is open, see `spawn`.
        let fd = unsafe { std::os::fd::BorrowedFd::borrow_raw(self.network) };
        sys::enter_network(fd)?;
        self.files.apply()?;
        self.open_files.iter().try_for_each(sys::set_open_files_limit)?;
        if let Some(maps) = &self.maps {
            sys::unshare(libc::CLONE_NEWUSER)?;
            maps.iter().try_for_each(|(path, text)| write_raw(path, text))?;
        }
        if self.own_group {
            // SAFETY: takes and changes no memory of ours, and may be called between fork and exec.
            unsafe { libc::signal(libc::SIGINT, libc::SIG_DFL) };
        }
        // Last, since a change of credentials resets it.
        if self.die_with_parent { self.follow_parent() } else { Ok(()) }
    }

    /// Asks for the signal, and then looks whether the parent had ended before.
    fn follow_parent(&self) -> io::Result<()> {
        // SAFETY: takes and changes no memory.
        if unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) } < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: takes no arguments and cannot fail.
        let parent = unsafe { libc::getppid() };
        if parent.cast_unsigned() == self.parent {
            Ok(())
        } else {
            Err(io::Error::from_raw_os_error(libc::ESRCH))
        }
    }
}

/// The identity maps that turn 0 back into the user's and the group's numbers outside.
fn maps(privilege: Privilege) -> Option<[(&'static CStr, CString); 3]> {
    let Privilege::UserNamespace { uid, gid } = privilege else { return None };
    Some([
        (c"/proc/self/setgroups", c"deny".into()),
        (c"/proc/self/gid_map", CString::new(format!("{gid} 0 1")).ok()?),
        (c"/proc/self/uid_map", CString::new(format!("{uid} 0 1")).ok()?),
    ])
}

/// Writes a file with system calls only.
fn write_raw(path: &CStr, text: &CStr) -> io::Result<()> {
    // SAFETY: the path ends with a zero.
    let fd = unsafe { libc::open(path.as_ptr(), libc::O_WRONLY | libc::O_CLOEXEC) };
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    let bytes = text.to_bytes();
    // SAFETY: the kernel reads just the slice.
    let written = unsafe { libc::write(fd, bytes.as_ptr().cast(), bytes.len()) };
    let error = io::Error::last_os_error();
    // SAFETY: the descriptor was opened here and is not used again.
    unsafe { libc::close(fd) };
    if written < 0 { Err(error) } else { Ok(()) }
}

/// The processes whose network namespace has this inode number, as far as `/proc` shows them to us.
pub fn processes_in(inode: u64) -> Vec<u32> {
    processes().filter(|pid| inode_of(*pid) == Some(inode)).collect()
}

/// The numbers of all processes that `/proc` shows.
fn processes() -> impl Iterator<Item = u32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

/// Whether a process of this group is alive, as far as `/proc` shows them to us: one that has ended and was not waited for
/// is not, though it keeps the group's number.
pub fn group_lives(group: u32) -> bool {
    let seen = || processes().any(|pid| lives_in(pid, group));
    // Whoever starts another one and ends while we look may hide both from one look, not from two.
    seen() || seen()
}

fn lives_in(pid: u32, group: u32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    state_and_group(&stat).is_some_and(|(state, its)| its == group && !"ZX".contains(state))
}

/// The third and the fifth field of `/proc/PID/stat`. The second is the program's name, which may contain anything.
fn state_and_group(stat: &str) -> Option<(&str, u32)> {
    let mut fields = stat.rsplit_once(") ")?.1.split(' ');
    let state = fields.next()?;
    Some((state, fields.nth(1)?.parse().ok()?))
}

fn inode_of(pid: u32) -> Option<u64> {
    Some(fs::metadata(format!("/proc/{pid}/ns/net")).ok()?.ino())
}

/// Sends `signal` to every process of the namespace with this inode number, except this one, and
/// tells how many it reached. The number must come from a [`Namespace`] that is still held: the kernel
/// gives the numbers of dead namespaces to new ones.
///
/// # Errors
/// [`LabError::OwnNamespace`] if it is the caller's own namespace.
pub fn kill_processes_in(inode: u64, signal: i32) -> Result<usize, LabError> {
    kill_where(inode, signal, |pid| inode_of(pid) == Some(inode))
}

/// The same, for a namespace that may be gone: only processes that are proved to be in it are reached.
pub(crate) fn kill_exactly_in(id: NamespaceId, signal: i32) -> Result<usize, LabError> {
    kill_where(id.inode, signal, |pid| {
        Namespace::of_process(pid).is_ok_and(|found| found.id() == id)
    })
}

fn kill_where(inode: u64, signal: i32, there: impl Fn(u32) -> bool) -> Result<usize, LabError> {
    if namespace::own_inode() == Some(inode) {
        return Err(LabError::OwnNamespace(inode));
    }
    let others = processes_in(inode).into_iter().filter(|pid| *pid != std::process::id());
    Ok(others.filter(|pid| kill_if(*pid, signal, &there).unwrap_or(false)).count())
}

/// Signals one process if it is the right one. The descriptor is opened before the look, so a number used
/// again in between is not hit.
fn kill_if(pid: u32, signal: i32, there: impl Fn(u32) -> bool) -> io::Result<bool> {
    let process = sys::open_process(pid)?;
    if !there(pid) {
        return Ok(false);
    }
    sys::signal_process(process.as_fd(), signal)?;
    Ok(true)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_own_namespace_is_never_signalled() {
        let own = namespace::own_inode().unwrap();
        assert!(processes_in(own).contains(&std::process::id()));
        assert!(matches!(kill_processes_in(own, 0), Err(LabError::OwnNamespace(_))));
        assert_eq!(kill_processes_in(1, 0).unwrap(), 0);
    }

    #[test]
    fn a_group_lives_as_long_as_one_of_it_does() {
        let fields = |text| state_and_group(text).map(|(state, group)| (state.to_string(), group));
        assert_eq!(fields("7 (a) b (c) Z 1 5 5 0"), Some(("Z".into(), 5)));
        assert_eq!(fields("7 (a"), None);
        // The shell ends at once and is not waited for.
        let mut shell = Command::new("sh");
        shell.args(["-c", "sleep 1000 & exit"]).process_group(0);
        let mut shell = shell.spawn().unwrap();
        assert!(group_lives(shell.id()));
        let kill = format!("kill -9 -{}", shell.id());
        assert!(Command::new("sh").args(["-c", &kill]).status().unwrap().success());
        let ended = (0..2000).any(|_| {
            std::thread::sleep(std::time::Duration::from_millis(5));
            !group_lives(shell.id())
        });
        shell.wait().unwrap();
        assert!(ended);
    }

    #[test]
    fn numbers_are_mapped_back() {
        let maps = maps(Privilege::UserNamespace { uid: 1000, gid: 100 }).unwrap();
        assert_eq!(maps[1].1.as_c_str(), c"100 0 1");
        assert_eq!(maps[2].1.as_c_str(), c"1000 0 1");
        assert!(super::maps(Privilege::Held { uid: 0 }).is_none());
    }
}
