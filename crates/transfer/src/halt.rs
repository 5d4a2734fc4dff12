//! Work on many files that somebody else may stop.

use crate::TransferError;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Tells whoever holds a copy of it to stop. What it has done till then stays.
#[derive(Debug, Clone, Default)]
pub struct Halt(Arc<AtomicBool>);

impl Halt {
    /// Tells it, for good.
    pub fn set(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Asked before each step whether to go on.
    ///
    /// # Errors
    /// [`TransferError::Stopped`] if not.
    pub fn check(&self) -> Result<(), TransferError> {
        if self.0.load(Ordering::Relaxed) { Err(TransferError::Stopped) } else { Ok(()) }
    }
}
