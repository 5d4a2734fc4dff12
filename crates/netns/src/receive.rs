//! The choice of the processors that do the protocol work for frames that a device receives.
#![allow(unsafe_code)]

use crate::error::Step;
use crate::{LabError, Namespace, sys};
use std::fs;
use std::io;

impl Namespace {
    /// Has the frames that arrive at `device` worked on by `processors` only (receive packet steering,
    /// scaling.rst). Without it, whoever sends into a virtual pair does the receiver's work as well.
    ///
    /// # Errors
    /// If the device does not exist, or `/sys` may not be mounted, as in some containers.
    pub fn steer_receive(&self, device: &str, processors: &[usize]) -> Result<(), LabError> {
        let path = format!("/sys/class/net/{device}/queues/rx-0/rps_cpus");
        self.run(|| {
            mount_own_sys().step(|| "mount /sys for a laboratory".into())?;
            fs::write(&path, mask(processors)).step(|| format!("write to {path}"))
        })?
    }
}

/// Gives the calling thread a view of the file system of its own, in which `/sys` shows the devices of
/// its network namespace. The view goes with the thread.
fn mount_own_sys() -> io::Result<()> {
    sys::unshare(libc::CLONE_NEWNS)?;
    let private = libc::MS_REC | libc::MS_PRIVATE;
    // SAFETY: all strings end with a zero, and a null pointer stands for "none".
    let made_private = unsafe {
        libc::mount(c"none".as_ptr(), c"/".as_ptr(), std::ptr::null(), private, std::ptr::null())
    };
    if made_private < 0 {
        return Err(io::Error::last_os_error());
    }
    let (none, target, kind) = (c"none".as_ptr(), c"/sys".as_ptr(), c"sysfs".as_ptr());
    // SAFETY: as above.
    match unsafe { libc::mount(none, target, kind, 0, std::ptr::null()) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// The kernel's way to write a set of processors: 32 at a time in hexadecimal, the highest first.
fn mask(processors: &[usize]) -> String {
    let groups = processors.iter().max().map_or(1, |most| most / 32 + 1);
    let group = |index: usize| {
        let inside = processors.iter().filter(|&&number| number / 32 == index);
        inside.fold(0u32, |bits, number| bits | 1 << (number % 32))
    };
    let words: Vec<String> =
        (0..groups).rev().map(|index| format!("{:08x}", group(index))).collect();
    words.join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn masks_are_written_as_the_kernel_reads_them() {
        assert_eq!(mask(&[0]), "00000001");
        assert_eq!(mask(&[1, 3]), "0000000a");
        assert_eq!(mask(&[0, 33]), "00000002,00000001");
        assert_eq!(mask(&[]), "00000000");
    }
}
