//! The reasons why a port could not be opened, or stopped working.

use crate::Backend;
use std::io;
use thiserror::Error;

/// The reason why a port could not be opened, or stopped working. Each text names the device, the cause and the
/// remedy on one line.
#[derive(Debug, Error)]
pub enum PortError {
    /// The namespace that the calling thread is in has no device of this name.
    #[error(
        "no device '{device}' in this network namespace: check the name (at most 15 bytes), or create it first"
    )]
    NoSuchDevice {
        /// The name asked for.
        device: String,
    },
    /// The kernel refused a privileged step.
    #[error(
        "no permission to {action} on '{device}': run as root or with the capabilities CAP_NET_RAW and CAP_NET_ADMIN (a container: --cap-add NET_RAW --cap-add NET_ADMIN), or {}inside `unshare -Urn`",
        with_backend(.is_for_all)
    )]
    Permission {
        /// The device.
        device: String,
        /// Whether the whole system's rights are needed, not only those of a namespace.
        is_for_all: bool,
        /// The step that was refused.
        action: &'static str,
    },
    /// The device is administratively down (ENETDOWN). The port works again once it is up.
    #[error("device '{device}' is down: set it up, the port then goes on by itself")]
    Down {
        /// The device.
        device: String,
    },
    /// The device was removed or moved to another namespace (ENODEV, ENXIO). The port is of no more use.
    #[error(
        "device '{device}' is gone, and with it the run's way: something removed it or moved it to another namespace; start the run anew"
    )]
    Gone {
        /// The device.
        device: String,
    },
    /// This backend cannot serve this device, or this kernel cannot serve this backend.
    #[error("the {backend} backend cannot be used on '{device}': {why}")]
    Unsupported {
        /// The device.
        device: String,
        /// The backend.
        backend: Backend,
        /// Cause and remedy.
        why: String,
    },
    /// Any other failure of a system call.
    #[error("cannot {action} on '{device}': {source}")]
    System {
        /// The device.
        device: String,
        /// The action that was attempted.
        action: &'static str,
        /// The system's answer.
        source: io::Error,
    },
}

fn with_backend(is_for_all: &bool) -> &'static str {
    if *is_for_all { "use the packet backend " } else { "" }
}

impl PortError {
    /// The error for a system call that failed with `errno` while doing `action` on `device`.
    pub(crate) fn of(device: &str, action: &'static str, errno: i32) -> PortError {
        let device = device.to_owned();
        match errno {
            libc::EPERM | libc::EACCES => {
                PortError::Permission { device, is_for_all: false, action }
            }
            libc::ENETDOWN => PortError::Down { device },
            libc::ENODEV | libc::ENXIO => PortError::Gone { device },
            _ => {
                let source = io::Error::from_raw_os_error(errno);
                PortError::System { device, action, source }
            }
        }
    }

    /// The same while a port is being opened, when it may also turn out that the backend cannot be used.
    pub(crate) fn opening(
        device: &str,
        backend: Backend,
        action: &'static str,
        errno: i32,
    ) -> PortError {
        let why = match errno {
            libc::EPERM | libc::EACCES => {
                let is_for_all = backend == Backend::Xdp;
                return PortError::Permission { device: device.to_owned(), is_for_all, action };
            }
            libc::EBUSY => "another XDP program or socket uses it: remove that one first",
            libc::EAFNOSUPPORT | libc::ENOSYS | libc::EOPNOTSUPP | libc::ENOPROTOOPT => {
                "this kernel or device does not offer it: use the other backend (packet, xdp)"
            }
            _ => return PortError::of(device, action, errno),
        };
        PortError::unsupported(device, backend, why.to_owned())
    }

    /// The backend cannot serve the device, with cause and remedy.
    pub(crate) fn unsupported(device: &str, backend: Backend, why: String) -> PortError {
        PortError::Unsupported { device: device.to_owned(), backend, why }
    }

    /// Whether the port comes back by itself once the cause is mended.
    pub fn is_passing(&self) -> bool {
        matches!(self, PortError::Down { .. })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_systems_answers_have_their_own_words() {
        let of = |errno| PortError::of("tl0", "do it", errno);
        for errno in [libc::EPERM, libc::EACCES] {
            assert!(matches!(of(errno), PortError::Permission { .. }), "{errno}");
        }
        for (backend, says) in [
            (Backend::Packet, "NET_ADMIN), or inside `unshare -Urn`"),
            (Backend::Xdp, "or use the packet backend inside `unshare -Urn`"),
        ] {
            let told = PortError::opening("tl0", backend, "do it", libc::EPERM).to_string();
            assert!(told.ends_with(says), "{told}");
        }
        assert!(matches!(of(libc::ENETDOWN), PortError::Down { .. }));
        for errno in [libc::ENODEV, libc::ENXIO] {
            assert!(matches!(of(errno), PortError::Gone { .. }), "{errno}");
        }
        let PortError::System { source, .. } = of(libc::EIO) else { panic!() };
        assert_eq!(source.raw_os_error(), Some(libc::EIO));
    }
}
