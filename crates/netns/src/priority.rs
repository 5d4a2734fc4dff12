//! A thread's place among the others.
#![allow(unsafe_code)]

use std::io;
use std::mem::size_of;

/// `struct sched_attr` of sched_setattr(2), its first version.
#[repr(C)]
#[derive(Default)]
struct Attributes {
    size: u32,
    policy: u32,
    flags: u64,
    nice: i32,
    priority: u32,
    runtime: u64,
    deadline: u64,
    period: u64,
}

/// Gives the calling thread a nice value and a slice of so many nanoseconds in the ordinary class. A woken
/// thread with a shorter slice than the running one's (3 ms by default) runs at once instead of waiting for that
/// slice to end (Linux 6.12; older kernels take the nice value alone).
///
/// # Errors
/// If the nice value is below what the user may have.
pub fn prefer_thread(nice: i32, slice_nanos: u64) -> io::Result<()> {
    let attributes = Attributes {
        size: size_of::<Attributes>() as u32,
        policy: libc::SCHED_OTHER as u32,
        nice,
        runtime: slice_nanos,
        ..Attributes::default()
    };
    // SAFETY: `attributes` is laid out as the kernel expects and outlives the call; 0 is this thread.
    let result = unsafe { libc::syscall(libc::SYS_sched_setattr, 0, &raw const attributes, 0) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_user_may_be_nicer() {
        let nicer = std::thread::spawn(|| {
            prefer_thread(7, 100_000).unwrap();
            // The nineteenth field is the nice value (proc_pid_stat(5)), the third after the name.
            let stat = std::fs::read_to_string("/proc/thread-self/stat").unwrap();
            let mut fields = stat.rsplit(") ").next().unwrap().split(' ');
            fields.nth(16).unwrap().parse::<i32>().unwrap()
        });
        assert_eq!(nicer.join().unwrap(), 7);
    }
}
