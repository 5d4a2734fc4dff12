//! The few system calls behind the ports, with lifetimes and lengths kept by the type system. Failures
//! are bare error numbers; the callers know what they meant.
#![allow(unsafe_code)]

use std::io;
use std::mem::{size_of, zeroed};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::ptr::{NonNull, null_mut};

/// C structures and numbers without padding rules or pointers that the kernel would follow, valid in
/// any bit pattern.
///
/// # Safety
/// Every bit pattern, all zeros included, must be a valid value.
pub(crate) unsafe trait Plain: Copy {}
// SAFETY: integers and C structures of integers.
unsafe impl Plain for i32 {}
// SAFETY: as above.
unsafe impl Plain for libc::sockaddr_ll {}
// SAFETY: as above.
unsafe impl Plain for libc::packet_mreq {}
// SAFETY: as above.
unsafe impl Plain for libc::tpacket_req {}
// SAFETY: as above.
unsafe impl Plain for libc::tpacket_stats {}
// SAFETY: as above.
unsafe impl Plain for u64 {}
// SAFETY: as above.
unsafe impl Plain for libc::sockaddr_xdp {}
// SAFETY: as above.
unsafe impl Plain for libc::xdp_desc {}
// SAFETY: as above.
unsafe impl Plain for libc::xdp_umem_reg {}
// SAFETY: as above.
unsafe impl Plain for libc::xdp_mmap_offsets {}
// SAFETY: as above.
unsafe impl Plain for libc::xdp_statistics {}

/// The error number of the call that just failed.
pub(crate) fn errno() -> i32 {
    io::Error::last_os_error().raw_os_error().unwrap_or(libc::EIO)
}

fn checked(result: i32) -> Result<i32, i32> {
    if result < 0 { Err(errno()) } else { Ok(result) }
}

/// A socket, closed when dropped.
pub(crate) struct Socket(OwnedFd);

/// Attaches a filter to a socket (socket(7), SO_ATTACH_FILTER).
pub(crate) fn attach_filter(
    socket: BorrowedFd<'_>,
    filter: &mut [libc::sock_filter],
) -> Result<(), i32> {
    let length = filter.len() as libc::c_ushort;
    let program = libc::sock_fprog { len: length, filter: filter.as_mut_ptr() };
    let size = size_of::<libc::sock_fprog>() as libc::socklen_t;
    let (level, name) = (libc::SOL_SOCKET, libc::SO_ATTACH_FILTER);
    // SAFETY: `program` is readable for its own size during the call, and the filter that it points to for its length.
    let result = unsafe {
        libc::setsockopt(socket.as_raw_fd(), level, name, (&raw const program).cast(), size)
    };
    checked(result).map(drop)
}

impl Socket {
    /// A new socket, non-blocking and closed on exec.
    pub(crate) fn new(domain: i32, kind: i32, protocol: i32) -> Result<Socket, i32> {
        let kind = kind | libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;
        // SAFETY: takes no pointers.
        let fd = checked(unsafe { libc::socket(domain, kind, protocol) })?;
        // SAFETY: the descriptor is new and nobody else's.
        Ok(Socket(unsafe { OwnedFd::from_raw_fd(fd) }))
    }

    /// The descriptor, lent.
    pub(crate) fn lend(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }

    pub(crate) fn fd(&self) -> RawFd {
        self.0.as_raw_fd()
    }

    /// setsockopt(2).
    pub(crate) fn set<T: Plain>(&self, level: i32, name: i32, value: &T) -> Result<(), i32> {
        let pointer = std::ptr::from_ref(value).cast();
        // SAFETY: `value` is readable for its own size during the call.
        let result = unsafe {
            libc::setsockopt(self.fd(), level, name, pointer, size_of::<T>() as libc::socklen_t)
        };
        checked(result).map(drop)
    }

    /// getsockopt(2).
    pub(crate) fn get<T: Plain>(&self, level: i32, name: i32) -> Result<T, i32> {
        // SAFETY: `Plain` allows zeros.
        let mut value: T = unsafe { zeroed() };
        let mut length = size_of::<T>() as libc::socklen_t;
        let pointer = (&raw mut value).cast();
        // SAFETY: `value` is writable for `length` bytes, and any bytes are a valid `T`.
        checked(unsafe { libc::getsockopt(self.fd(), level, name, pointer, &raw mut length) })?;
        Ok(value)
    }

    /// bind(2).
    pub(crate) fn bind<T: Plain>(&self, address: &T) -> Result<(), i32> {
        let pointer = std::ptr::from_ref(address).cast();
        // SAFETY: `address` is readable for its own size during the call.
        let result = unsafe { libc::bind(self.fd(), pointer, size_of::<T>() as libc::socklen_t) };
        checked(result).map(drop)
    }

    /// getsockname(2).
    pub(crate) fn name<T: Plain>(&self) -> Result<T, i32> {
        // SAFETY: `Plain` allows zeros.
        let mut value: T = unsafe { zeroed() };
        let mut length = size_of::<T>() as libc::socklen_t;
        let pointer = (&raw mut value).cast();
        // SAFETY: `value` is writable for `length` bytes, and any bytes are a valid `T`.
        checked(unsafe { libc::getsockname(self.fd(), pointer, &raw mut length) })?;
        Ok(value)
    }

    /// Receives one datagram without waiting; returns its whole length, which may exceed the buffer's.
    pub(crate) fn receive(&self, buffer: &mut [u8]) -> Result<usize, i32> {
        let flags = libc::MSG_DONTWAIT | libc::MSG_TRUNC;
        // SAFETY: the buffer is writable for its length.
        let got = unsafe { libc::recv(self.fd(), buffer.as_mut_ptr().cast(), buffer.len(), flags) };
        usize::try_from(got).map_err(|_| errno())
    }

    /// Sends one datagram without waiting.
    pub(crate) fn send(&self, octets: &[u8]) -> Result<usize, i32> {
        let flags = libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL;
        // SAFETY: the octets are readable for their length.
        let sent = unsafe { libc::send(self.fd(), octets.as_ptr().cast(), octets.len(), flags) };
        usize::try_from(sent).map_err(|_| errno())
    }

    /// Has an AF_XDP socket send what is in its ring.
    pub(crate) fn kick(&self) -> Result<(), i32> {
        // SAFETY: no data and no address are passed.
        let sent = unsafe {
            libc::sendto(self.fd(), std::ptr::null(), 0, libc::MSG_DONTWAIT, std::ptr::null(), 0)
        };
        if sent < 0 { Err(errno()) } else { Ok(()) }
    }

    /// The number of queues the device receives on: ethtool's channels, combined and receiving.
    pub(crate) fn receive_queues(&self, mut ifreq: libc::ifreq) -> Result<u32, i32> {
        /// `struct ethtool_channels`: command, four limits, then receive, send, other, combined.
        const GET_CHANNELS: u32 = 0x3c;
        let mut channels = [0u32; 9];
        channels[0] = GET_CHANNELS;
        ifreq.ifr_ifru.ifru_data = (&raw mut channels).cast();
        // SAFETY: the structure points at `channels`, which has the size the command writes.
        checked(unsafe { libc::ioctl(self.fd(), libc::SIOCETHTOOL as _, &raw mut ifreq) })?;
        Ok(channels[5] + channels[8])
    }

    /// A device ioctl(2) that reads and writes an `ifreq`.
    pub(crate) fn interface(
        &self,
        request: libc::c_ulong,
        ifreq: &mut libc::ifreq,
    ) -> Result<(), i32> {
        // SAFETY: the SIOCGIF* requests touch only the structure, which is valid and exclusive.
        checked(unsafe { libc::ioctl(self.fd(), request as _, std::ptr::from_mut(ifreq)) })
            .map(drop)
    }
}

/// A shared mapping of a socket's ring, unmapped when dropped.
pub(crate) struct Mapping {
    start: NonNull<u8>,
    length: usize,
}

// SAFETY: the mapping belongs to this value alone; moving it to another thread is moving a pointer.
unsafe impl Send for Mapping {}

impl Mapping {
    /// Maps `length` bytes of the socket's memory from `offset` on.
    pub(crate) fn new(socket: &Socket, length: usize, offset: i64) -> Result<Mapping, i32> {
        Mapping::map(length, libc::MAP_SHARED, socket.fd(), offset)
    }

    /// Fresh memory of `length` bytes, in place already.
    pub(crate) fn anonymous(length: usize) -> Result<Mapping, i32> {
        Mapping::map(length, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS, -1, 0)
    }

    fn map(length: usize, flags: i32, fd: RawFd, offset: i64) -> Result<Mapping, i32> {
        let (protection, flags) = (libc::PROT_READ | libc::PROT_WRITE, flags | libc::MAP_POPULATE);
        // SAFETY: a new mapping at a place of the kernel's choice.
        let start = unsafe { libc::mmap(null_mut(), length, protection, flags, fd, offset) };
        if start == libc::MAP_FAILED {
            return Err(errno());
        }
        NonNull::new(start.cast()).map(|start| Mapping { start, length }).ok_or(libc::ENOMEM)
    }

    /// The start of the mapping; valid for [`Mapping::len`] bytes as long as the value lives.
    pub(crate) fn start(&self) -> *mut u8 {
        self.start.as_ptr()
    }

    pub(crate) fn len(&self) -> usize {
        self.length
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: the range was mapped by `new`, and nothing borrowed from it outlives the value.
        unsafe { libc::munmap(self.start.as_ptr().cast(), self.length) };
    }
}

/// An empty `ifreq` for the device `name`; `None` if the name cannot be a device's.
pub(crate) fn ifreq(name: &str) -> Option<libc::ifreq> {
    // SAFETY: integers and a union of plain members; zeros are valid.
    let mut request: libc::ifreq = unsafe { zeroed() };
    // The last byte stays zero.
    if name.is_empty() || name.len() >= libc::IFNAMSIZ || name.contains('\0') {
        return None;
    }
    for (to, from) in request.ifr_name.iter_mut().zip(name.bytes()) {
        *to = from as libc::c_char;
    }
    Some(request)
}

/// The number in the union of an `ifreq`: index, MTU.
pub(crate) fn ifreq_number(request: &libc::ifreq) -> i32 {
    // SAFETY: an integer, valid in any bit pattern; the structure was zeroed before it was used.
    unsafe { request.ifr_ifru.ifru_ifindex }
}

/// The flags in the union of an `ifreq`.
pub(crate) fn ifreq_flags(request: &libc::ifreq) -> i32 {
    // SAFETY: as above.
    i32::from(unsafe { request.ifr_ifru.ifru_flags })
}

/// An `ifreq` that names a device by its index.
pub(crate) fn ifreq_by_index(index: i32) -> libc::ifreq {
    // SAFETY: integers and a union of plain members; zeros are valid.
    let mut request: libc::ifreq = unsafe { zeroed() };
    request.ifr_ifru.ifru_ifindex = index;
    request
}
