//! How many files a process may have open.

use crate::sys;
use std::io;
use std::sync::OnceLock;

/// This process's limit before it was raised: what the programs that it starts get.
static BEFORE: OnceLock<libc::rlimit> = OnceLock::new();

/// Lets this process have as many files open as the system lets it (the hard limit of getrlimit(2), `RLIMIT_NOFILE`):
/// each namespace, device and connection is one or more of them, and the usual soft limit is 1024. Programs started with
/// [`spawn`](crate::spawn) have the limit that this process had: some of them close all descriptors up to it, or keep
/// them in a set of 1024 (select(2)).
pub fn raise_open_files() {
    if let Err(error) = sys::open_files_limit().and_then(raise) {
        tracing::debug!(%error, "the limit of open files stays as it is");
    }
}

fn raise(limit: libc::rlimit) -> io::Result<()> {
    if limit.rlim_cur == limit.rlim_max {
        return Ok(());
    }
    let _ = BEFORE.set(limit);
    sys::set_open_files_limit(&libc::rlimit { rlim_cur: limit.rlim_max, ..limit })
}

/// The limit from before [`raise_open_files`], if that raised it.
pub(crate) fn before() -> Option<libc::rlimit> {
    BEFORE.get().copied()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Namespace, SpawnOptions, spawn};
    use std::process::{Command, Stdio};

    #[test]
    fn this_process_gets_all_and_its_programs_what_it_had() {
        let whole = sys::open_files_limit().unwrap();
        let few = libc::rlimit { rlim_cur: whole.rlim_max.min(501) - 1, ..whole };
        sys::set_open_files_limit(&few).unwrap();
        raise_open_files();
        raise_open_files();
        assert_eq!(sys::open_files_limit().unwrap().rlim_cur, whole.rlim_max);

        let Ok(namespace) = Namespace::create() else {
            return trunkline_skip::skipped("network namespaces need root");
        };
        let mut command = Command::new("sh");
        command.args(["-c", "ulimit -Sn"]).stdout(Stdio::piped());
        let program = spawn(&namespace, command, SpawnOptions::default()).unwrap();
        let told = String::from_utf8(program.wait_with_output().unwrap().stdout).unwrap();
        // Another test may have raised it first.
        assert_eq!(told.trim(), before().unwrap().rlim_cur.to_string());
    }
}
