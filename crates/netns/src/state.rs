//! The changes of a run outside of its own namespaces, written down before they are made.

use crate::directory::secure;
use crate::error::Step;
use crate::{LabError, Namespace, NamespaceId, SavedForwarding, SavedOffloads, sweep};
use serde::{Deserialize, Serialize};
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The file whose lock orders the runs that change or restore shared settings.
const LOCK: &str = "lock";
/// The ending of a record that is being written.
const UNFINISHED: &str = "new";

/// A run as its file tells it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Record {
    /// The machine's boot (`/proc/sys/kernel/random/boot_id`): nothing below outlives it.
    pub boot: String,
    /// Process number.
    pub pid: u32,
    /// When the process started, in clock ticks since the machine's boot: tells it from a later process with the
    /// same number.
    pub started: u64,
    /// The namespace that counts as the host's.
    pub host: NamespaceId,
    /// The laboratory's namespaces.
    pub namespaces: Vec<NamespaceId>,
    /// The control socket.
    pub control_socket: Option<PathBuf>,
    /// Masquerading tables in the host's namespace.
    pub nft_tables: Vec<String>,
    /// Devices made in the host's namespace.
    pub host_devices: Vec<String>,
    /// Devices of the host that forward for this run's sake, as they were before it, or before another one still there.
    #[serde(default)]
    pub saved_forwarding: Vec<SavedForwarding>,
    /// Offloads of devices of the host as they were before.
    pub saved_offloads: Vec<SavedOffloads>,
    /// Devices of the host between which it carries frames.
    #[serde(default)]
    pub bridged: Vec<String>,
}

impl Record {
    fn of_this_process(host: NamespaceId) -> Result<Record, LabError> {
        let pid = std::process::id();
        let started = start_time(pid).ok_or_else(|| io::Error::from(io::ErrorKind::NotFound));
        Ok(Record {
            boot: boot(),
            pid,
            started: started.step(|| "read /proc/self/stat".into())?,
            host,
            namespaces: Vec::new(),
            control_socket: None,
            nft_tables: Vec::new(),
            host_devices: Vec::new(),
            saved_forwarding: Vec::new(),
            saved_offloads: Vec::new(),
            bridged: Vec::new(),
        })
    }

    /// Reads the text of a record's file; `None` if it is none.
    pub fn read(text: &[u8]) -> Option<Record> {
        serde_json::from_slice(text).ok()
    }

    /// The text of its file.
    ///
    /// # Errors
    /// If a path in it is no text.
    pub fn text(&self) -> serde_json::Result<Vec<u8>> {
        serde_json::to_vec_pretty(self)
    }

    /// Whether anything on the host has to be undone.
    fn tells_of_changes(&self) -> bool {
        let Record { nft_tables, host_devices, saved_forwarding, saved_offloads, .. } = self;
        !(nft_tables.is_empty()
            && host_devices.is_empty()
            && saved_forwarding.is_empty()
            && saved_offloads.is_empty())
    }

    /// Whether the process that wrote it still runs.
    pub fn is_alive(&self) -> bool {
        // If time is moved, a tick may be lost in the conversion.
        let same = |started: u64| started.abs_diff(self.started) <= 1;
        self.boot == boot() && start_time(self.pid).is_some_and(same)
    }
}

/// The record of this run and its file. Clones share both; the file goes with the last of them, unless it tells of
/// something on the host that is not undone.
#[derive(Debug, Clone)]
pub struct RunState(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    directory: PathBuf,
    record: Mutex<Record>,
}

impl RunState {
    /// Starts the record of this process in `directory` (see [`runtime_dir`](crate::runtime_dir)). Left-overs of a dead
    /// process with the same number are swept first.
    ///
    /// # Errors
    /// If the directory cannot be made or is not this user's alone.
    pub fn create(directory: &Path, host: &Namespace) -> Result<RunState, LabError> {
        secure(directory)?;
        let record = Record::of_this_process(host.id())?;
        let _lock = lock(directory)?;
        let stale = load(directory).into_iter().filter(|old| old.pid == record.pid);
        for line in
            stale.filter(|old| !old.is_alive()).flat_map(|old| sweep::undo(host, directory, &old))
        {
            tracing::info!("{line}");
        }
        let record = Mutex::new(record);
        let state = RunState(Arc::new(Shared { directory: directory.to_owned(), record }));
        state.update(|_| {})?;
        Ok(state)
    }

    /// The directory of its file.
    pub fn directory(&self) -> &Path {
        &self.0.directory
    }

    /// The record as it stands.
    pub fn record(&self) -> Record {
        self.0.lock().clone()
    }

    /// Changes the record and writes it down. Call it *before* the change that it tells of.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn update(&self, change: impl FnOnce(&mut Record)) -> Result<(), LabError> {
        let mut record = self.0.lock();
        change(&mut record);
        let path = file_of(&self.0.directory, record.pid);
        write_whole(&path, &record.text().map_err(io::Error::from))
            .step(|| format!("write {}", path.display()))
    }

    /// Notes a namespace of the laboratory, so that programs left in it can be found.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn note_namespace(&self, namespace: &Namespace) -> Result<(), LabError> {
        self.update(|record| record.namespaces.push(namespace.id()))
    }

    /// Writes a file for the programs of this run, such as their `/etc/hosts`. Everybody may read it once it is shown
    /// to a program; where it lies, only this user may look.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn file(&self, ending: Ending, text: &str) -> Result<StateFile, LabError> {
        let name = format!("{}.{}", self.record().pid, ending.text());
        let file = StateFile(self.directory().join(name));
        let open = fs::Permissions::from_mode(0o644);
        fs::write(&file.0, text)
            .and_then(|()| fs::set_permissions(&file.0, open))
            .step(|| format!("write {}", file.0.display()))?;
        Ok(file)
    }

    /// Switches the offloads of a device of the host off, with the settings from before written down
    /// first: should this process be killed, the next run's [`sweep`](crate::sweep()) puts them back.
    ///
    /// # Errors
    /// If there is no such device or it may not be changed.
    pub fn set_offloads_off(
        &self,
        host: &Namespace,
        device: &str,
    ) -> Result<SavedOffloads, LabError> {
        let saved = host.save_offloads(device)?;
        self.update(|record| record.saved_offloads.push(saved.clone()))?;
        host.set_offloads_off(device)?;
        Ok(saved)
    }

    /// Puts back what [`set_offloads_off`](RunState::set_offloads_off) saved.
    ///
    /// # Errors
    /// If the device is gone or may not be changed.
    pub fn restore_offloads(
        &self,
        host: &Namespace,
        saved: &SavedOffloads,
    ) -> Result<(), LabError> {
        host.restore_offloads(saved)?;
        self.update(|record| record.saved_offloads.retain(|other| other != saved))
    }
}

/// The kinds of files for programs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// Names and addresses of hosts, as `/etc/hosts`.
    Hosts,
    /// Name servers, as `/etc/resolv.conf`.
    Resolvers,
    /// A file with nothing in it.
    Nothing,
}

impl Ending {
    const ALL: [Ending; 3] = [Ending::Hosts, Ending::Resolvers, Ending::Nothing];

    const fn text(self) -> &'static str {
        match self {
            Ending::Hosts => "hosts",
            Ending::Resolvers => "resolv",
            Ending::Nothing => "nothing",
        }
    }
}

/// A file for the programs of a run. It goes with this; if the process is killed, with the next run's
/// [`sweep`](crate::sweep()).
#[derive(Debug)]
pub struct StateFile(PathBuf);

impl StateFile {
    /// The place of the file.
    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for StateFile {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Record> {
        self.record.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        let record = self.lock();
        // What could not be undone (for want of descriptors, say) is left to the next start.
        if !record.tells_of_changes() {
            let _ = fs::remove_file(file_of(&self.directory, record.pid));
        }
    }
}

/// Waits until no other run changes shared settings; the lock ends with the file.
pub(crate) fn lock(directory: &Path) -> Result<File, LabError> {
    let path = directory.join(LOCK);
    let open = || {
        let file = File::options().create(true).append(true).open(&path)?;
        file.lock().map(|()| file)
    };
    open().step(|| format!("lock {}", path.display()))
}

/// All records in the directory, by process number; what is not one is left alone.
pub(crate) fn load(directory: &Path) -> Vec<Record> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    let texts = entries.filter_map(|entry| fs::read(entry.path()).ok());
    let mut records: Vec<Record> = texts.filter_map(|text| Record::read(&text)).collect();
    records.sort_by_key(|record| record.pid);
    records
}

/// The devices of this host that forward for the sake of living runs other than `pid`.
pub(crate) fn forwarding_of_others(
    directory: &Path,
    pid: u32,
    host: NamespaceId,
) -> Vec<SavedForwarding> {
    let others = load(directory).into_iter();
    let living = others.filter(|other| other.pid != pid && other.host == host && other.is_alive());
    living.flat_map(|other| other.saved_forwarding).collect()
}

/// The same with those of `record`, a run's own.
pub(crate) fn forwarding_now(directory: &Path, record: &Record) -> Vec<SavedForwarding> {
    let mut all = record.saved_forwarding.clone();
    all.extend(forwarding_of_others(directory, record.pid, record.host));
    all
}

pub(crate) fn file_of(directory: &Path, pid: u32) -> PathBuf {
    directory.join(format!("{pid}.json"))
}

/// Writes beside and renames, so that a reader sees the old text or the new.
fn write_whole(path: &Path, text: &io::Result<Vec<u8>>) -> io::Result<()> {
    let text = text.as_ref().map_err(|error| io::Error::other(error.to_string()))?;
    let beside = path.with_extension(UNFINISHED);
    let written = fs::write(&beside, text).and_then(|()| fs::rename(&beside, path));
    written.inspect_err(|_| drop(fs::remove_file(&beside)))
}

/// Removes the records that their process did not live to finish, which had changed nothing yet that they tell of
/// first, and the files for its programs.
pub(crate) fn remove_unfinished(directory: &Path) {
    for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
        let path = entry.path();
        let process = path.file_stem().and_then(|stem| stem.to_str()?.parse().ok());
        let ending = path.extension().and_then(|ending| ending.to_str()).unwrap_or_default();
        let ours = ending == UNFINISHED || Ending::ALL.iter().any(|known| known.text() == ending);
        if ours && process.is_some_and(|process| start_time(process).is_none()) {
            let _ = fs::remove_file(path);
        }
    }
}

pub(crate) fn boot() -> String {
    let text = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    text.trim_end().to_owned()
}

/// Nanoseconds of a clock tick as `/proc` counts them (USER_HZ is 100).
const TICK: i128 = 10_000_000;

/// When the process started, in ticks of the machine's own time since boot, whatever time namespace the caller is in.
pub(crate) fn start_time(pid: u32) -> Option<u64> {
    let text = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let offsets = fs::read_to_string("/proc/self/timens_offsets").unwrap_or_default();
    machine_ticks(start_field(&text)?, boot_offset(&offsets))
}

/// The ticks of the machine's time that a time namespace of this offset shows as `shown`. A start before the
/// namespace's own beginning is shown as nanoseconds below zero taken for a number without a sign.
fn machine_ticks(shown: u64, offset: i128) -> Option<u64> {
    let nanos = i128::from(shown) * TICK;
    let signed = if nanos > i128::from(i64::MAX) { nanos - (1 << 64) } else { nanos };
    u64::try_from((signed - offset + TICK / 2).div_euclid(TICK)).ok()
}

/// Nanoseconds by which the time namespace moves the time since boot (time_namespaces(7)); 0 without such.
fn boot_offset(offsets: &str) -> i128 {
    let line = offsets.lines().find_map(|line| line.strip_prefix("boottime"));
    let mut fields = line.unwrap_or_default().split_whitespace().map(|it| it.parse().unwrap_or(0));
    let mut next = || fields.next().unwrap_or(0);
    i128::from(next()) * 1_000_000_000 + i128::from(next())
}

/// Field 22 of the process's status line (proc_pid_stat(5)). The name before it, in brackets, may hold anything.
fn start_field(text: &str) -> Option<u64> {
    let (_, after) = text.rsplit_once(')')?;
    let mut fields = after.split_whitespace();
    // A process that has died and awaits its parent runs no more.
    let dead = matches!(fields.next()?, "Z" | "X");
    fields.nth(18).filter(|_| !dead)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scratch(name: &str) -> PathBuf {
        std::env::temp_dir().join(format!("tl-state-{name}-{}", std::process::id()))
    }

    #[test]
    fn the_start_field_is_found_behind_any_name() {
        let line = "7 (a) b) (c) S 1 7 7 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 4711 99 1";
        assert_eq!(start_field(line), Some(4711));
        assert_eq!(start_field(&line.replace(" S ", " Z ")), None);
        assert_eq!(start_field("rubbish"), None);
    }

    #[test]
    fn starts_are_brought_back_to_the_machines_time() {
        assert_eq!(boot_offset("monotonic   5   0\nboottime  -7  20000000\n"), -6_980_000_000);
        assert_eq!((boot_offset(""), machine_ticks(4711, 0)), (0, Some(4711)));
        let year = 31_536_000 * 1_000_000_000;
        assert_eq!(machine_ticks(3_153_600_000 + 4711, year), Some(4711));
        // Shown by a namespace that began 100 s after boot: 47.11 - 100 s, as the kernel divides it.
        let below = 0_u64.wrapping_sub(100_000_000_000 - 47_110_000_000) / 10_000_000;
        assert!(machine_ticks(below, -100_000_000_000).unwrap().abs_diff(4711) <= 1);
        assert_eq!(machine_ticks(1, year), None);
    }

    #[test]
    fn the_file_lives_as_long_as_the_state() {
        let directory = scratch("life");
        let host = Namespace::current().unwrap();
        let state = RunState::create(&directory, &host).unwrap();
        state.note_namespace(&host).unwrap();
        let clone = state.clone();
        drop(state);
        assert_eq!(load(&directory), [clone.record()]);
        assert!(load(&directory)[0].is_alive());
        drop(clone);
        let left = load(&directory);
        fs::remove_dir_all(&directory).unwrap();
        assert_eq!(left, []);
    }

    #[test]
    fn a_record_of_what_is_not_undone_outlives_the_state() {
        let directory = scratch("undone");
        let host = Namespace::current().unwrap();
        let state = RunState::create(&directory, &host).unwrap();
        state.update(|record| record.nft_tables.push("tl1".into())).unwrap();
        let told = state.record();
        drop(state);
        let left = load(&directory);
        fs::remove_dir_all(&directory).unwrap();
        assert_eq!(left, [told]);
    }

    #[test]
    fn files_for_programs_go_with_the_run_or_with_the_next() {
        let directory = scratch("files");
        let state = RunState::create(&directory, &Namespace::current().unwrap()).unwrap();
        let file = state.file(Ending::Hosts, "127.0.0.1 localhost").unwrap();
        let path = file.path().to_owned();
        assert_eq!(fs::read_to_string(&path).unwrap(), "127.0.0.1 localhost");
        remove_unfinished(&directory);
        assert!(path.exists(), "the run is alive");
        drop(file);
        assert!(!path.exists());
        // No process has this number: it is above the largest that Linux gives (PID_MAX_LIMIT).
        let [dead, other] = ["4194305.hosts", "4194305.txt"].map(|name| directory.join(name));
        [&dead, &other].into_iter().for_each(|path| fs::write(path, "").unwrap());
        remove_unfinished(&directory);
        let left = (dead.exists(), other.exists());
        drop(state);
        fs::remove_dir_all(&directory).unwrap();
        assert_eq!(left, (false, true));
    }

    const ELSEWHERE: &str = "TRUNKLINE_TEST_RECORDS";

    /// Tells of each record in the directory whether its process is alive.
    fn tell(directory: &Path) {
        println!("\nalive={:?}", load(directory).iter().map(Record::is_alive).collect::<Vec<_>>());
    }

    /// A time namespace moves the starts of all processes, those before its own beginning below zero. Who takes a
    /// living run for dead kills its programs.
    #[test]
    fn a_run_is_alive_in_every_time_namespace() {
        if let Some(directory) = std::env::var_os(ELSEWHERE) {
            return tell(Path::new(&directory));
        }
        if !trunkline_skip::installed(&["unshare"]) {
            return;
        }
        let directory = scratch("elsewhere");
        let state = RunState::create(&directory, &Namespace::current().unwrap()).unwrap();
        let dead = Record { pid: 1, ..state.record() };
        fs::write(directory.join("1.json"), serde_json::to_vec(&dead).unwrap()).unwrap();
        let uptime = fs::read_to_string("/proc/uptime").unwrap();
        let uptime: i64 = uptime.split('.').next().unwrap().parse().unwrap();
        // Now, a year ahead, and begun just now.
        for offset in [0, 31_536_000, 1 - uptime] {
            let mut command = std::process::Command::new("unshare");
            command.args([
                "--map-root-user",
                "--time",
                "--fork",
                "--boottime",
                &offset.to_string(),
            ]);
            command.arg(std::env::current_exe().unwrap()).args(["--exact", "--nocapture"]);
            command.arg("state::tests::a_run_is_alive_in_every_time_namespace");
            let output = command.env(ELSEWHERE, &directory).output().unwrap();
            let complaint = String::from_utf8_lossy(&output.stderr);
            if complaint.contains("unshare: ") {
                return trunkline_skip::skipped(complaint);
            }
            let said = String::from_utf8_lossy(&output.stdout);
            assert!(said.contains("alive=[false, true]"), "{offset} s: {said}{complaint}");
        }
        drop(state);
        fs::remove_dir_all(&directory).unwrap();
    }
}
