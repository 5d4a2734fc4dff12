//! Threads, started only where there is room for them.

use crate::sys;
use std::io;
use std::thread::Builder;

/// What is to become a thread called `name`.
///
/// A thread whose stack is the last that fits finds no room for its alternative signal stack, and the standard library
/// then ends the process, with everything that was made still there. So what a thread needs is asked for first.
///
/// # Errors
/// If a limit of the address space (`ulimit -v`, RLIMIT_AS) leaves too little.
pub fn thread(name: &str) -> io::Result<Builder> {
    sys::address_space(NEEDS)?;
    Ok(Builder::new().name(name.into()))
}

/// Bytes: the stack of a thread of the standard library (2 MiB), and ample room for what its first steps map.
const NEEDS: usize = (2 << 20) + (512 << 10);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_has_its_name_and_too_much_is_refused() {
        let thread =
            thread("tl-name").unwrap().spawn(|| std::thread::current().name().map(str::to_owned));
        assert_eq!(thread.unwrap().join().unwrap().as_deref(), Some("tl-name"));
        let refused = sys::address_space(usize::MAX / 4).unwrap_err();
        assert_eq!(refused.raw_os_error(), Some(libc::ENOMEM));
    }
}
