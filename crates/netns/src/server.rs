//! Servers in a namespace: the ports at which they wait, and how long one that has been started is given until it does.

use crate::{LabError, Namespace, NamespaceId, processes_in};
use std::collections::BTreeSet;
use std::fs;
use std::time::{Duration, Instant};

/// The ports of a namespace at which something waits: TCP sockets that listen, UDP sockets that are bound and not
/// connected.
///
/// # Errors
/// If the namespace cannot be entered.
pub fn listening(namespace: &Namespace) -> Result<BTreeSet<u16>, LabError> {
    namespace.run(|| {
        let tables = [("tcp", "0A"), ("tcp6", "0A"), ("udp", "07"), ("udp6", "07")];
        let read = |(name, state)| {
            // A kernel without IPv6 has no such table. The process's own would be the main thread's.
            let text = fs::read_to_string(format!("/proc/thread-self/net/{name}"));
            ports_of(&text.unwrap_or_default(), state)
        };
        tables.into_iter().flat_map(read).collect()
    })
}

/// Local ports of the sockets in `state`, from a table of `/proc/net`.
fn ports_of(table: &str, state: &str) -> Vec<u16> {
    let port = |line: &str| {
        let mut words = line.split_whitespace().skip(1);
        let (local, _, found) = (words.next()?, words.next()?, words.next()?);
        let (_, port) = local.rsplit_once(':')?;
        u16::from_str_radix(port, 16).ok().filter(|_| found == state)
    };
    table.lines().skip(1).filter_map(port).collect()
}

/// The time that every server has (a choice, as are the three that follow). Some programs never listen.
const LEAST: Duration = Duration::from_secs(3);
/// The time that one has which still computes: a Java machine, an interpreter on a busy machine.
const MOST: Duration = Duration::from_secs(60);
/// The time between two looks at what the namespace's programs compute.
const LOOK: Duration = Duration::from_secs(1);
/// What they compute in that time, or wait for a processor, if one of them is still starting. `ping` takes a
/// hundredth of it.
const BUSY: Duration = Duration::from_millis(50);

/// How long a server that has been started in a namespace is waited for: three seconds, and as much longer as the
/// programs there compute, or wait for a processor or a disk, up to a minute.
#[derive(Debug)]
pub struct Patience {
    namespace: NamespaceId,
    begun: Instant,
    looked: Instant,
    work: Work,
    busy: bool,
}

impl Patience {
    /// The patience with servers of `namespace`, from now on.
    pub fn begin(namespace: &Namespace) -> Patience {
        let now = Instant::now();
        let (begun, looked, work) = (now, now, Work::default());
        Patience { namespace: namespace.id(), begun, looked, work, busy: true }
    }

    /// Whether to wait on.
    pub fn lasts(&mut self) -> bool {
        if self.looked.elapsed() >= LOOK {
            let work = Work::within(self.namespace);
            // What has ended counts no more.
            let computed = work.computed.saturating_sub(self.work.computed);
            self.busy = work.at_it || computed >= BUSY;
            (self.work, self.looked) = (work, Instant::now());
        }
        let waited = self.begun.elapsed();
        waited < LEAST || (self.busy && waited < MOST)
    }
}

/// What the programs of a namespace that still run have done.
#[derive(Debug, Clone, Copy, Default)]
struct Work {
    /// Time for which they have computed, or waited for a processor until they got it.
    computed: Duration,
    /// Whether one computes now, or waits for a processor or a disk. On a busy machine that lasts more than a second.
    at_it: bool,
}

impl Work {
    fn within(namespace: NamespaceId) -> Work {
        let threads =
            |pid| fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
        let mut work = Work::default();
        for thread in processes_in(namespace.inode).into_iter().flat_map(threads) {
            let read = |name| fs::read_to_string(thread.path().join(name)).unwrap_or_default();
            work.computed += computed(&read("schedstat")).unwrap_or_default();
            work.at_it |= is_at_it(&read("stat"));
        }
        work
    }
}

/// The first two figures of `/proc/PID/schedstat`, in nanoseconds: time on a processor, and waiting for one.
fn computed(schedstat: &str) -> Option<Duration> {
    let mut figures = schedstat.split_whitespace().map(|word| word.parse().ok());
    let (ran, waited): (u64, u64) = (figures.next()??, figures.next()??);
    Some(Duration::from_nanos(ran.saturating_add(waited)))
}

/// Whether the state in `/proc/PID/stat`, behind a name in brackets that may hold some itself, is running or waiting
/// for a disk.
fn is_at_it(stat: &str) -> bool {
    let behind = stat.rsplit_once(')').map_or("", |(_, behind)| behind);
    matches!(behind.split_whitespace().next(), Some("R" | "D"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::namespace::tests::namespace;
    use crate::{SpawnOptions, spawn};
    use std::io::Read;
    use std::process::{Command, Stdio};
    use std::thread::{scope, sleep};

    #[test]
    fn the_ports_of_sockets_that_wait_are_read() {
        let table = "  sl  local_address rem_address   st\n   \
                     0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000\n   \
                     1: 0100007F:1F91 0100007F:1F90 01 00000000:00000000 00:00000000 00000000\n";
        assert_eq!(ports_of(table, "0A"), [8080]);
        assert_eq!(ports_of("a head\nrubbish", "0A"), [0; 0]);
    }

    #[test]
    fn time_on_a_processor_and_waiting_for_one_is_read() {
        assert_eq!(computed("5000 2000 9\n"), Some(Duration::from_micros(7)));
        assert_eq!(computed("5000"), None);
        assert_eq!(computed(""), None);
        assert!(is_at_it("17 (a) S) R 1 17") && is_at_it("17 (a b) D 1 17"));
        assert!(!is_at_it("17 (R) S 1 17") && !is_at_it(""));
    }

    /// Whether a shell that goes on with this command, which never listens, is given more than the least.
    fn is_given_more(namespace: &Namespace, command: &str) -> bool {
        let mut shell = Command::new("sh");
        shell.args(["-c", &format!("echo ready; {command}")]);
        shell.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = spawn(namespace, shell, SpawnOptions::default()).unwrap();
        child.stdout.as_mut().unwrap().read_exact(&mut [0; 6]).unwrap();
        let mut patience = Patience::begin(namespace);
        while patience.begun.elapsed() < LEAST {
            assert!(patience.lasts());
            sleep(Duration::from_millis(100));
        }
        // It is looked once more behind that.
        sleep(LOOK);
        let more = patience.lasts();
        patience.begun = patience.begun.checked_sub(MOST).unwrap();
        assert!(!patience.lasts(), "nobody is waited for without end");
        child.kill().unwrap();
        child.wait().unwrap();
        more
    }

    #[test]
    fn who_computes_is_given_more_time_than_who_waits() {
        let (Some(busy), Some(idle)) = (namespace(), namespace()) else { return };
        let computes = scope(|scope| {
            let busy = scope.spawn(|| is_given_more(&busy, "while :; do :; done"));
            let idle = scope.spawn(|| is_given_more(&idle, "read never"));
            (busy.join().unwrap(), idle.join().unwrap())
        });
        assert_eq!(computes, (true, false));
    }
}
