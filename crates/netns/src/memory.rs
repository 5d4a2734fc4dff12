//! The memory that a run may take.

use std::fs;
use std::path::{Path, PathBuf};

/// One generation of control groups: its mount point, and its files' names.
struct Generation {
    mount: &'static str,
    limit: &'static str,
    used: &'static str,
    /// The field of `memory.stat` with page cache that the kernel gives back when it is short.
    cache: &'static str,
}

/// cgroup-v2.rst, "Memory Interface Files".
const UNIFIED: Generation = Generation {
    mount: "/sys/fs/cgroup",
    limit: "memory.max",
    used: "memory.current",
    cache: "inactive_file",
};
/// cgroup-v1/memory.rst.
const LEGACY: Generation = Generation {
    mount: "/sys/fs/cgroup/memory",
    limit: "memory.limit_in_bytes",
    used: "memory.usage_in_bytes",
    cache: "total_inactive_file",
};

/// Bytes of memory that can be used without swapping: those that the machine has available, or less if
/// this process, its control group or one above it is limited. 0 if the kernel does not tell.
pub fn available_memory() -> u64 {
    let text = fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let machine = field(&text, "MemAvailable:").unwrap_or(0).saturating_mul(1024);
    let limits = fs::read_to_string("/proc/self/limits").unwrap_or_default();
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let own = left_of_limits(&limits, &status).unwrap_or(u64::MAX);
    groups().iter().filter_map(|(at, kind)| room(at, kind)).fold(machine.min(own), u64::min)
}

/// The rest of the process's own limits (getrlimit(2): `RLIMIT_AS`, `RLIMIT_DATA`), the lesser; `None` without any.
fn left_of_limits(limits: &str, status: &str) -> Option<u64> {
    let left = |title: &str, used: &str| {
        let line = limits.lines().find_map(|line| line.strip_prefix(title))?;
        let limit: u64 = line.split_whitespace().next()?.parse().ok()?;
        Some(limit.saturating_sub(field(status, used)?.saturating_mul(1024)))
    };
    let both = [left("Max address space", "VmSize:"), left("Max data size", "VmData:")];
    both.into_iter().flatten().min()
}

/// The directories of the process's memory control groups and of those above them.
fn groups() -> Vec<(PathBuf, &'static Generation)> {
    let text = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    text.lines().filter_map(group).flat_map(|(path, kind)| chain(&path, kind)).collect()
}

/// A line `number:controllers:path`; version 2 has no controllers.
fn group(line: &str) -> Option<(PathBuf, &'static Generation)> {
    let mut parts = line.splitn(3, ':').skip(1);
    let (controllers, path) = (parts.next()?, parts.next()?);
    let kind = match controllers {
        "" => &UNIFIED,
        list if list.split(',').any(|name| name == "memory") => &LEGACY,
        _ => return None,
    };
    Some((Path::new(kind.mount).join(path.trim_start_matches('/')), kind))
}

fn chain(path: &Path, kind: &'static Generation) -> Vec<(PathBuf, &'static Generation)> {
    let inside = path.ancestors().take_while(|at| at.starts_with(kind.mount));
    inside.map(|at| (at.to_owned(), kind)).collect()
}

/// The room that the group's limit leaves; `None` if it has no limit.
fn room(at: &Path, kind: &Generation) -> Option<u64> {
    let number = |name: &str| fs::read_to_string(at.join(name)).ok()?.trim().parse::<u64>().ok();
    let limit = number(kind.limit)?;
    let stat = fs::read_to_string(at.join("memory.stat")).unwrap_or_default();
    let held = number(kind.used)?.saturating_sub(field(&stat, kind.cache).unwrap_or(0));
    Some(limit.saturating_sub(held))
}

/// The number after `name` on its line.
fn field(text: &str, name: &str) -> Option<u64> {
    text.lines().find_map(|line| {
        let mut words = line.split_whitespace();
        (words.next()? == name).then(|| words.next()?.parse().ok())?
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_found() {
        let bytes = available_memory();
        assert!(bytes > 1 << 20 && bytes < 1 << 50, "{bytes}");
    }

    #[test]
    fn limits_of_the_process_leave_what_it_has_not_taken() {
        let limits = |space: &str, data: &str| {
            format!(
                "Limit  Soft Limit\nMax data size {data} unlimited bytes\nMax address space {space} 9 bytes\n"
            )
        };
        let status = "VmPeak: 9 kB\nVmSize:\t  300 kB\nVmData: 100 kB\n";
        let left = |space, data| left_of_limits(&limits(space, data), status);
        assert_eq!(left("unlimited", "unlimited"), None);
        assert_eq!(left("1024000", "unlimited"), Some(1_024_000 - 300 * 1024));
        assert_eq!(left("1024000", "204800"), Some(102_400));
        assert_eq!(left("1000", "unlimited"), Some(0));
    }

    #[test]
    fn groups_of_both_generations_are_found() {
        let (path, kind) = group("0::/user.slice/a:b").unwrap();
        assert_eq!(path, Path::new("/sys/fs/cgroup/user.slice/a:b"));
        assert_eq!(chain(&path, kind).len(), 3);
        let (path, _) = group("4:memory,x:/box").unwrap();
        assert_eq!(path, Path::new("/sys/fs/cgroup/memory/box"));
        assert!(group("5:freezer:/").is_none() && group("rubbish").is_none());
    }

    #[test]
    fn a_limit_leaves_what_is_not_held() {
        let at = std::env::temp_dir().join(format!("tl-memory-{}", std::process::id()));
        fs::create_dir_all(&at).unwrap();
        for (name, text) in [("memory.max", "1000\n"), ("memory.current", "700\n")] {
            fs::write(at.join(name), text).unwrap();
        }
        fs::write(at.join("memory.stat"), "anon 1\ninactive_file 200\n").unwrap();
        let limited = room(&at, &UNIFIED);
        fs::write(at.join("memory.max"), "max\n").unwrap();
        let unlimited = room(&at, &UNIFIED);
        fs::remove_dir_all(&at).unwrap();
        assert_eq!((limited, unlimited), (Some(500), None));
    }
}
