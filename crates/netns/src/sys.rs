//! The system calls that the standard library does not wrap, each behind a safe function.
#![allow(unsafe_code)]

use std::io;
use std::mem::size_of;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

/// `SO_NETNS_COOKIE` of `asm-generic/socket.h` (Linux 5.14); this `libc` has it for few targets.
const SO_NETNS_COOKIE: libc::c_int = 71;
/// `SIOCETHTOOL` of `linux/sockios.h`.
const SIOCETHTOOL: libc::c_ulong = 0x8946;
/// `IFNAMSIZ` of `linux/if.h`, the closing zero included.
pub(crate) const NAME_SIZE: usize = 16;

/// The errno behind a result of -1.
fn check(result: libc::c_int) -> io::Result<libc::c_int> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
}

/// The same for calls that return a length.
fn check_size(result: libc::ssize_t) -> io::Result<usize> {
    usize::try_from(result).map_err(|_| io::Error::last_os_error())
}

/// Moves the calling thread (or, for a user namespace, the process) into new namespaces.
pub(crate) fn unshare(flags: libc::c_int) -> io::Result<()> {
    // SAFETY: takes and changes no memory of ours.
    check(unsafe { libc::unshare(flags) }).map(drop)
}

/// Moves the calling thread into the network namespace behind `fd`.
pub(crate) fn enter_network(fd: BorrowedFd<'_>) -> io::Result<()> {
    // SAFETY: the descriptor is open for the length of the call.
    check(unsafe { libc::setns(fd.as_raw_fd(), libc::CLONE_NEWNET) }).map(drop)
}

/// Asks for so many bytes of address space and gives them back.
pub(crate) fn address_space(bytes: usize) -> io::Result<()> {
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
    // SAFETY: a new mapping at a place that the kernel chooses; nobody else knows of it.
    let place = unsafe { libc::mmap(std::ptr::null_mut(), bytes, libc::PROT_NONE, flags, -1, 0) };
    if place == libc::MAP_FAILED {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: just that mapping, which nobody uses.
    check(unsafe { libc::munmap(place, bytes) }).map(drop)
}

/// How many files this process may have open.
pub(crate) fn open_files_limit() -> io::Result<libc::rlimit> {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the kernel writes just that structure.
    check(unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit) })?;
    Ok(limit)
}

/// Sets how many files this process may have open. Takes no lock and allocates nothing.
pub(crate) fn set_open_files_limit(limit: &libc::rlimit) -> io::Result<()> {
    // SAFETY: the kernel reads just that structure.
    check(unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, limit) }).map(drop)
}

/// A socket that is closed on exec.
pub(crate) fn socket(family: i32, kind: i32, protocol: i32) -> io::Result<OwnedFd> {
    // SAFETY: takes no pointers; the new descriptor is owned by nobody else.
    let fd = check(unsafe { libc::socket(family, kind | libc::SOCK_CLOEXEC, protocol) })?;
    // SAFETY: `fd` was just opened and is not used elsewhere.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// Sets a socket option whose value is a C `int` or `timeval`.
fn set_option<T>(fd: BorrowedFd<'_>, level: i32, name: i32, value: &T) -> io::Result<()> {
    let size = size_of::<T>() as libc::socklen_t;
    let value: *const T = value;
    // SAFETY: the kernel reads `size` bytes from a live value of just that size.
    check(unsafe { libc::setsockopt(fd.as_raw_fd(), level, name, value.cast(), size) }).map(drop)
}

/// Switches a flag of a socket on.
pub(crate) fn switch_on(fd: BorrowedFd<'_>, level: i32, name: i32) -> io::Result<()> {
    set_option(fd, level, name, &1i32)
}

/// Makes reads on `fd` give up after `seconds`.
pub(crate) fn limit_reads(fd: BorrowedFd<'_>, seconds: u32) -> io::Result<()> {
    let limit = libc::timeval { tv_sec: seconds.into(), tv_usec: 0 };
    set_option(fd, libc::SOL_SOCKET, libc::SO_RCVTIMEO, &limit)
}

/// The kernel's number of the socket's network namespace, never used twice between two boots.
pub(crate) fn namespace_cookie(fd: BorrowedFd<'_>) -> io::Result<u64> {
    let mut cookie = 0u64;
    let mut size = size_of::<u64>() as libc::socklen_t;
    let place: *mut u64 = &mut cookie;
    // SAFETY: the kernel writes at most `size` bytes into a live u64.
    check(unsafe {
        libc::getsockopt(fd.as_raw_fd(), libc::SOL_SOCKET, SO_NETNS_COOKIE, place.cast(), &mut size)
    })?;
    Ok(cookie)
}

/// Sends the whole of `bytes` as one message.
pub(crate) fn send(fd: BorrowedFd<'_>, bytes: &[u8]) -> io::Result<()> {
    // SAFETY: the kernel reads just the slice.
    let sent = check_size(unsafe {
        libc::send(fd.as_raw_fd(), bytes.as_ptr().cast(), bytes.len(), libc::MSG_NOSIGNAL)
    })?;
    if sent == bytes.len() { Ok(()) } else { Err(io::ErrorKind::WriteZero.into()) }
}

/// Receives one message and tells its full length, which is more than the buffer's if it was cut.
pub(crate) fn receive(fd: BorrowedFd<'_>, buffer: &mut [u8]) -> io::Result<usize> {
    // SAFETY: the kernel writes within the slice.
    check_size(unsafe {
        let (place, room) = (buffer.as_mut_ptr(), buffer.len());
        libc::recv(fd.as_raw_fd(), place.cast(), room, libc::MSG_TRUNC)
    })
}

/// One ethtool command on the device `name`. `command` must have room for all that the command
/// writes, as its own size fields say: the callers in `offload` size it from the kernel's answers.
pub(crate) fn ethtool(fd: BorrowedFd<'_>, name: &str, command: &mut [u32]) -> io::Result<i32> {
    #[repr(C)]
    struct Request {
        name: [u8; NAME_SIZE],
        data: *mut u32,
        // `struct ifreq` is 40 bytes on 64-bit machines and the kernel copies all of it.
        rest: [usize; 4],
    }
    let mut request = Request { name: [0; NAME_SIZE], data: command.as_mut_ptr(), rest: [0; 4] };
    let room = name.len().min(NAME_SIZE - 1);
    request.name[..room].copy_from_slice(&name.as_bytes()[..room]);
    let place: *mut Request = &mut request;
    // SAFETY: the request is at least as large as `struct ifreq`; its data points to the live slice,
    // whose own size fields bound what the kernel writes there.
    check(unsafe { libc::ioctl(fd.as_raw_fd(), SIOCETHTOOL as _, place) })
}

/// A descriptor that stands for the process `pid` even after its number is used again.
pub(crate) fn open_process(pid: u32) -> io::Result<OwnedFd> {
    // SAFETY: takes no pointers.
    let fd = check_size(unsafe { libc::syscall(libc::SYS_pidfd_open, pid, 0) } as libc::ssize_t)?;
    // SAFETY: the descriptor was just opened for us; descriptors fit an int.
    Ok(unsafe { OwnedFd::from_raw_fd(fd as libc::c_int) })
}

/// Sends `signal` to the process behind the descriptor.
pub(crate) fn signal_process(process: BorrowedFd<'_>, signal: i32) -> io::Result<()> {
    let (call, none) = (libc::SYS_pidfd_send_signal, std::ptr::null::<libc::siginfo_t>());
    // SAFETY: no signal information is passed, and the descriptor is open.
    let result = unsafe { libc::syscall(call, process.as_raw_fd(), signal, none, 0) };
    check_size(result as libc::ssize_t).map(drop)
}

/// The effective user and group, as the own user namespace numbers them.
pub(crate) fn identity() -> (u32, u32) {
    // SAFETY: both calls only return a number and cannot fail.
    unsafe { (libc::geteuid(), libc::getegid()) }
}
