//! The rights that a laboratory needs, got once for the whole process.

use crate::EmuError;
use std::sync::{Mutex, PoisonError};
use trunkline_netns::{Privilege, enter_user_namespace_if_needed};

/// What was got, or why not. Inside of a user namespace nobody can tell any more who one was outside; and who was
/// refused while the process had one thread shall hear that, and not later that it has several.
static HELD: Mutex<Option<Result<Privilege, String>>> = Mutex::new(None);

/// Gets the rights that a laboratory needs: those of root, or of a user namespace, into which a process can go
/// only while it has one thread. [`run`](crate::run) does it too, which then is too late without root.
///
/// # Errors
/// If the system allows neither.
pub fn get_rights() -> Result<Privilege, EmuError> {
    let mut held = HELD.lock().unwrap_or_else(PoisonError::into_inner);
    let found = held
        .get_or_insert_with(|| enter_user_namespace_if_needed().map_err(|error| error.to_string()));
    found.clone().map_err(EmuError::Rights)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rights_are_got_once() {
        match get_rights() {
            Ok(first) => assert_eq!(get_rights().unwrap(), first),
            Err(error) => {
                assert!(error.is_permission(), "{error}");
                assert_eq!(get_rights().unwrap_err().to_string(), error.to_string());
            }
        }
    }
}
