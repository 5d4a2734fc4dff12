//! The directory for what runs write down: their records, and the sockets by which they are looked at.

use crate::error::Step;
use crate::{LabError, sys};
use std::fs::{self, DirBuilder, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// The place in the own home.
const AT_HOME: &str = ".cache/trunkline/run";

/// The possible places of this user's directory, the best first.
///
/// `/run/trunkline` for root. For others `$XDG_RUNTIME_DIR/trunkline`, `/run/user/UID/trunkline`, `/tmp/trunkline-UID`
/// and `$HOME/.cache/trunkline/run`: anybody can make a directory of any name in `/tmp`, and the place in the own home
/// is there for when somebody has. A run of an ordinary user is root in a user namespace; what counts is who it is
/// outside.
pub fn runtime_dirs() -> Vec<PathBuf> {
    let of = |name| std::env::var_os(name).map(PathBuf::from);
    let map = fs::read_to_string("/proc/self/uid_map").unwrap_or_default();
    places(uid_outside(sys::identity().0, &map), of("XDG_RUNTIME_DIR"), of("HOME"))
}

/// The number that `own` has outside of the user namespace that a run makes for an ordinary user. That one has a
/// map of one user; in others, such as a container's, everybody keeps the number.
fn uid_outside(own: u32, map: &str) -> u32 {
    let numbers: Vec<u32> = map.split_whitespace().flat_map(str::parse).collect();
    match numbers[..] {
        [inside, outside, 1] if inside == own => outside,
        _ => own,
    }
}

fn places(uid: u32, session: Option<PathBuf>, home: Option<PathBuf>) -> Vec<PathBuf> {
    if uid == 0 {
        return vec![PathBuf::from("/run/trunkline")];
    }
    // The XDG base directory specification wants relative paths ignored.
    let whole = |path: &PathBuf| path.is_absolute();
    let session = session.filter(whole).map(|session| session.join("trunkline"));
    let login = PathBuf::from(format!("/run/user/{uid}/trunkline"));
    let common = PathBuf::from(format!("/tmp/trunkline-{uid}"));
    let own = home.filter(whole).map(|home| home.join(AT_HOME));
    let mut places: Vec<PathBuf> = session.into_iter().chain([login, common]).chain(own).collect();
    places.dedup();
    places
}

/// The directory for a new run of this user: the first place that is this user's alone, or can be made so.
///
/// # Errors
/// With the reason for each place, if there is none.
pub fn runtime_dir() -> Result<PathBuf, LabError> {
    first(&runtime_dirs())
}

fn first(places: &[PathBuf]) -> Result<PathBuf, LabError> {
    let mut reasons = Vec::new();
    for place in places {
        match make_way(place).and_then(|()| secure(place)) {
            Ok(()) => return Ok(place.clone()),
            Err(error) => reasons.push(error),
        }
    }
    Err(match reasons.len() {
        1 => reasons.remove(0),
        _ => LabError::NoRuntimeDirectory { reasons },
    })
}

/// In the own home, what is above the directory may be missing too.
fn make_way(place: &Path) -> Result<(), LabError> {
    match place.parent().filter(|_| place.ends_with(AT_HOME)) {
        Some(above) => {
            let made = DirBuilder::new().mode(0o700).recursive(true).create(above);
            made.step(|| format!("make {}", above.display()))
        }
        None => Ok(()),
    }
}

/// Every place that is there and this user's alone: runs may have begun in any of them.
pub fn runtime_dirs_in_use() -> Vec<PathBuf> {
    runtime_dirs().into_iter().filter(|place| check(place).is_ok()).collect()
}

/// Makes the directory, or checks that nobody else can have put files into it.
pub(crate) fn secure(directory: &Path) -> Result<(), LabError> {
    let made = DirBuilder::new().mode(0o700).create(directory);
    if let Err(error) = made
        && error.kind() != io::ErrorKind::AlreadyExists
    {
        return Err(error).step(|| format!("make {}", directory.display()));
    }
    narrow(directory)?;
    check(directory)
}

/// Takes the right to look into this user's directory away from others. If they could write, it is too late.
fn narrow(directory: &Path) -> Result<(), LabError> {
    let look = || format!("look at {}", directory.display());
    let found = fs::symlink_metadata(directory).step(look)?;
    let (uid, _) = sys::identity();
    let mode = found.mode() & 0o777;
    if found.is_dir() && found.uid() == uid && mode != 0o700 && mode & 0o022 == 0 {
        let narrowed = fs::set_permissions(directory, Permissions::from_mode(0o700));
        return narrowed.step(|| format!("take rights over {} from others", directory.display()));
    }
    Ok(())
}

/// Whether the directory is one, no link, and this user's alone.
fn check(directory: &Path) -> Result<(), LabError> {
    let found =
        fs::symlink_metadata(directory).step(|| format!("look at {}", directory.display()))?;
    let (uid, _) = sys::identity();
    let ours = found.is_dir() && found.uid() == uid && found.mode() & 0o777 == 0o700;
    let path = directory.display().to_string();
    if ours { Ok(()) } else { Err(LabError::RuntimeDirectory { path }) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    fn scratch(name: &str) -> PathBuf {
        let path = std::env::temp_dir().join(format!("tl-directory-{name}-{}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        path
    }

    #[test]
    fn each_user_has_places() {
        let told = |uid, session: Option<&str>, home: Option<&str>| {
            let places = places(uid, session.map(PathBuf::from), home.map(PathBuf::from));
            places.iter().map(|place| place.display().to_string()).collect::<Vec<_>>()
        };
        assert_eq!(told(0, Some("/run/user/0"), Some("/root")), ["/run/trunkline"]);
        assert_eq!(
            told(7, Some("/s"), Some("/home/x")),
            [
                "/s/trunkline",
                "/run/user/7/trunkline",
                "/tmp/trunkline-7",
                "/home/x/.cache/trunkline/run"
            ]
        );
        let plain = ["/run/user/7/trunkline", "/tmp/trunkline-7"];
        assert_eq!(told(7, Some("here"), None), plain);
        assert_eq!(told(7, Some("/run/user/7"), Some("there")), plain);
    }

    #[test]
    fn root_of_a_namespace_for_one_is_the_user_outside() {
        assert_eq!(uid_outside(0, "         0       1000          1\n"), 1000);
        assert_eq!(uid_outside(0, "         0          0 4294967295\n"), 0);
        assert_eq!(uid_outside(1000, "         0          0 4294967295\n"), 1000);
        assert_eq!(uid_outside(0, "0 1000 1\n1 100000 65536\n"), 0, "a container");
        assert_eq!(uid_outside(5, ""), 5);
    }

    #[test]
    fn a_place_of_somebody_elses_is_passed_over() {
        let base = scratch("places");
        let (open, link, file) = (base.join("open"), base.join("link"), base.join("file"));
        fs::create_dir(&open).unwrap();
        fs::set_permissions(&open, Permissions::from_mode(0o775)).unwrap();
        symlink(base.join("target"), &link).unwrap();
        fs::write(&file, "").unwrap();
        let missing = base.join("none/there");
        let home = base.join("home/.cache/trunkline/run");
        let bad = [open, link, file, missing];
        let found = first(&[&bad[..], std::slice::from_ref(&home)].concat());
        let refused = first(&bad).unwrap_err().to_string();
        let mode = fs::symlink_metadata(&home).map(|found| found.mode() & 0o777);
        fs::remove_dir_all(&base).unwrap();
        assert_eq!(found.unwrap(), home);
        assert_eq!(mode.unwrap(), 0o700);
        let told = ["open", "link", "file", "none/there"].map(|place| refused.contains(place));
        assert_eq!(told, [true; 4], "{refused}");
        assert!(refused.contains("XDG_RUNTIME_DIR") && refused.contains("0700"), "{refused}");
    }

    #[test]
    fn a_directory_that_others_could_only_look_into_is_narrowed() {
        let base = scratch("narrow");
        let open = base.join("open");
        fs::create_dir(&open).unwrap();
        fs::set_permissions(&open, Permissions::from_mode(0o755)).unwrap();
        let narrowed = secure(&open);
        let mode = fs::symlink_metadata(&open).unwrap().mode() & 0o777;
        fs::remove_dir_all(&base).unwrap();
        assert!(narrowed.is_ok() && mode == 0o700, "{narrowed:?} {mode:o}");
    }
}
