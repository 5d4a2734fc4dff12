//! The properties of a device that the kernel tells.

use crate::PortError;
use crate::sys::{self, Socket};

/// A device, found once by name and afterwards asked by index in the namespace it was found in.
pub(crate) struct Device {
    pub(crate) name: String,
    pub(crate) index: i32,
    pub(crate) mtu: u32,
    /// Belongs to the namespace of the thread that opened it, wherever it is used later.
    control: Socket,
    /// Its socket has lost it for ever, even if a device of the same index appears again.
    lost: bool,
}

impl Device {
    /// Finds `name` in the calling thread's network namespace.
    pub(crate) fn find(name: &str) -> Result<Device, PortError> {
        let missing = || PortError::NoSuchDevice { device: name.to_owned() };
        let control = Socket::new(libc::AF_UNIX, libc::SOCK_DGRAM, 0)
            .map_err(|errno| PortError::of(name, "open a control socket", errno))?;
        let mut request = sys::ifreq(name).ok_or_else(missing)?;
        match control.interface(libc::SIOCGIFINDEX, &mut request) {
            Err(libc::ENODEV) => return Err(missing()),
            other => other.map_err(|errno| PortError::of(name, "find the index", errno))?,
        }
        let index = sys::ifreq_number(&request);
        let mut device = Device { name: name.to_owned(), index, mtu: 0, control, lost: false };
        match device.check() {
            Ok(()) | Err(PortError::Down { .. }) => Ok(device),
            Err(error) => Err(error),
        }
    }

    /// Reads the MTU again; says whether the device is up, down or gone.
    pub(crate) fn check(&mut self) -> Result<(), PortError> {
        if self.lost {
            return Err(self.lose());
        }
        // By index, because a device may be renamed while a port is open on it.
        let mut request = sys::ifreq_by_index(self.index);
        self.ask(libc::SIOCGIFNAME, &mut request)?;
        self.ask(libc::SIOCGIFMTU, &mut request)?;
        self.mtu = u32::try_from(sys::ifreq_number(&request)).unwrap_or(0);
        self.ask(libc::SIOCGIFFLAGS, &mut request)?;
        match sys::ifreq_flags(&request) & libc::IFF_UP {
            0 => Err(self.error("use it", libc::ENETDOWN)),
            _ => Ok(()),
        }
    }

    /// Marks the device as lost for ever, and says so.
    pub(crate) fn lose(&mut self) -> PortError {
        self.lost = true;
        self.error("use it", libc::ENODEV)
    }

    fn ask(&self, what: libc::c_ulong, request: &mut libc::ifreq) -> Result<(), PortError> {
        let answer = self.control.interface(what, request);
        answer.map_err(|errno| self.error("ask for its state", errno))
    }

    /// The error for a failed `action` on this device.
    pub(crate) fn error(&self, action: &'static str, errno: i32) -> PortError {
        PortError::of(&self.name, action, errno)
    }

    /// The number of queues it receives on; 0 if the driver does not say.
    pub(crate) fn receive_queues(&self) -> u32 {
        let request = sys::ifreq(&self.name);
        request.and_then(|request| self.control.receive_queues(request).ok()).unwrap_or(0)
    }
}
