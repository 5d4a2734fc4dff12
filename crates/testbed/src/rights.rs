//! The rights that a laboratory needs, got once for the whole process.

use crate::TestbedError;
use std::sync::{Mutex, PoisonError};
use trunkline_lab::{Privilege, enter_user_namespace_if_needed};

/// What was got. Inside of a user namespace nobody can tell any more who one was outside.
static HELD: Mutex<Option<Privilege>> = Mutex::new(None);

/// Gets the rights that a laboratory needs: those of root, or of a user namespace, into which a process can go
/// only while it has one thread. [`run`](crate::run) does it too, which then is too late without root.
///
/// # Errors
/// Where the system allows neither.
pub fn get_rights() -> Result<Privilege, TestbedError> {
    let mut held = HELD.lock().unwrap_or_else(PoisonError::into_inner);
    match *held {
        Some(privilege) => Ok(privilege),
        None => Ok(*held.insert(enter_user_namespace_if_needed()?)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rights_are_got_once() {
        match get_rights() {
            Ok(first) => assert_eq!(get_rights().unwrap(), first),
            Err(error) => assert!(error.is_permission(), "{error}"),
        }
    }
}
