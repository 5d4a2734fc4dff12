//! The burst that was agreed on, for the whole transfer: NETBLT as RFC 1030 measured it.

use super::Law;
use crate::netblt::wire::Burst;
use trunkline_core::Span;

/// One burst for good.
#[derive(Debug, Clone, Copy)]
pub struct Fixed(pub Burst);

impl Law for Fixed {
    fn offer(&self) -> Burst {
        self.0
    }

    fn quantum(&self) -> Span {
        Span::from_millis(self.0.interval.into())
    }
}
