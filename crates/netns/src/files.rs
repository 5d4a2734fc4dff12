//! Files that the programs of a laboratory see in place of the machine's.
//!
//! Only the network is separate in a laboratory, and so `/etc/hosts` and `/etc/resolv.conf` are the machine's. A program
//! that is to see others gets a mount namespace of its own in which they are bound over the machine's, as `ip netns exec`
//! does with those of `/etc/netns`.
#![allow(unsafe_code)]

use crate::LabError;
use crate::error::Step;
use crate::{namespace, sys};
use std::ffi::{CStr, CString};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// Files in place of others.
#[derive(Debug, Clone, Default)]
pub struct Replacements(Vec<Replacement>);

#[derive(Debug, Clone)]
struct Replacement {
    shown: CString,
    at: CString,
}

impl Replacements {
    /// Shows the file `shown` to programs that look at `at`, which must exist.
    ///
    /// # Errors
    /// If a path has a zero in it.
    pub fn show(&mut self, shown: &Path, at: &Path) -> Result<(), LabError> {
        let text = |path: &Path| {
            let wrong = || format!("show {}", path.display());
            CString::new(path.as_os_str().as_bytes()).map_err(io::Error::from).step(wrong)
        };
        self.0.push(Replacement { shown: text(shown)?, at: text(at)? });
        Ok(())
    }

    /// Tries it, and leaves everything as it was.
    ///
    /// # Errors
    /// If the system does not allow it, as in some containers.
    pub fn check(&self) -> Result<(), LabError> {
        namespace::on_thread(|| {
            self.apply().step(|| "show files of the laboratory's own to its programs".into())
        })
    }

    /// Moves the calling thread, or the process between fork and exec, to where it sees the files. Allocates nothing.
    pub(crate) fn apply(&self) -> io::Result<()> {
        if self.0.is_empty() {
            return Ok(());
        }
        sys::unshare(libc::CLONE_NEWNS)?;
        // Mounts of the machine still arrive; ours do not leave.
        mount(None, c"/", libc::MS_REC | libc::MS_SLAVE)?;
        self.0.iter().try_for_each(|one| mount(Some(&one.shown), &one.at, libc::MS_BIND))
    }
}

fn mount(from: Option<&CStr>, at: &CStr, flags: libc::c_ulong) -> io::Result<()> {
    let from = from.map_or(std::ptr::null(), CStr::as_ptr);
    // SAFETY: both paths end with a zero and are alive; neither a type nor data is read with these flags.
    let done = unsafe { libc::mount(from, at.as_ptr(), std::ptr::null(), flags, std::ptr::null()) };
    if done < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn a_file_is_shown_on_one_thread_alone() {
        if namespace::tests::namespace().is_none() {
            return;
        }
        let place = std::env::temp_dir().join(format!("tl-files-{}", std::process::id()));
        fs::create_dir_all(&place).unwrap();
        let (shown, at) = (place.join("shown"), place.join("at"));
        fs::write(&shown, "shown").unwrap();
        fs::write(&at, "the machine's").unwrap();
        let mut files = Replacements::default();
        files.show(&shown, &at).unwrap();
        let seen = namespace::on_thread(|| {
            files.apply().unwrap();
            Ok(fs::read_to_string(&at).unwrap())
        });
        assert_eq!(seen.unwrap(), "shown");
        files.check().unwrap();
        assert_eq!(fs::read_to_string(&at).unwrap(), "the machine's");
        let mut absent = Replacements::default();
        absent.show(&shown, &place.join("absent")).unwrap();
        assert!(absent.check().unwrap_err().to_string().contains("show files"));
        fs::remove_dir_all(&place).unwrap();
    }
}
