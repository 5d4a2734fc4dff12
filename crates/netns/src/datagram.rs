//! Datagrams with the address that they were for, which a UDP socket tells only by control messages.
#![allow(unsafe_code)]

use crate::sys;
use std::io;
use std::mem::{MaybeUninit, size_of, size_of_val};
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::{AsFd, AsRawFd};
use std::ptr;

/// A datagram of a socket that [tells destinations](tell_destinations).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Taken {
    /// Its bytes in the buffer.
    pub length: usize,
    /// Its sender.
    pub from: SocketAddr,
    /// The address that it was for.
    pub to: SocketAddr,
}

/// Lets a UDP socket, of IPv6 or not, have addresses that are not its host's, and take in what
/// [`Redirections::take_in`](crate::Redirections::take_in) hands to it.
///
/// # Errors
/// If this process has no rights over the socket's namespace.
pub fn set_transparent(socket: impl AsFd, v6: bool) -> io::Result<()> {
    match v6 {
        false => sys::switch_on(socket.as_fd(), libc::SOL_IP, libc::IP_TRANSPARENT),
        true => sys::switch_on(socket.as_fd(), libc::SOL_IPV6, libc::IPV6_TRANSPARENT),
    }
}

/// Lets a UDP socket, of IPv6 or not, tell the destination of each datagram to [`receive_taken`].
///
/// # Errors
/// If it is no socket of that family.
pub fn tell_destinations(socket: impl AsFd, v6: bool) -> io::Result<()> {
    // A socket of IPv6 gets datagrams of IPv4 too, unless it is told otherwise, and tells of those in IPv4's way.
    sys::switch_on(socket.as_fd(), libc::SOL_IP, libc::IP_RECVORIGDSTADDR)?;
    match v6 {
        false => Ok(()),
        true => sys::switch_on(socket.as_fd(), libc::SOL_IPV6, libc::IPV6_RECVORIGDSTADDR),
    }
}

/// An address as the kernel writes it, large enough for both families.
type Address = libc::sockaddr_in6;
/// Room for two control messages of one address each.
type Control = [u64; 16];

/// Receives a datagram if one is there, without waiting. What does not fit into `buffer` is cut.
///
/// # Errors
/// `WouldBlock` if none is there. Also if an earlier datagram of the socket was refused, or the socket does not
/// [tell destinations](tell_destinations).
pub fn receive_taken(socket: impl AsFd, buffer: &mut [u8]) -> io::Result<Taken> {
    // SAFETY: these are plain numbers and pointers, for which zeros are values.
    let (mut from, mut message) = unsafe {
        (
            MaybeUninit::<Address>::zeroed().assume_init(),
            MaybeUninit::<libc::msghdr>::zeroed().assume_init(),
        )
    };
    let mut control: Control = [0; 16];
    let mut piece = libc::iovec { iov_base: buffer.as_mut_ptr().cast(), iov_len: buffer.len() };
    message.msg_name = ptr::from_mut(&mut from).cast();
    message.msg_namelen = size_of::<Address>() as libc::socklen_t;
    message.msg_iov = &mut piece;
    message.msg_iovlen = 1;
    message.msg_control = control.as_mut_ptr().cast();
    message.msg_controllen = size_of_val(&control) as _;
    let fd = socket.as_fd().as_raw_fd();
    // SAFETY: the message points to live memory of the sizes that it states.
    let length = unsafe { libc::recvmsg(fd, &mut message, libc::MSG_DONTWAIT) };
    let length = usize::try_from(length).map_err(|_| io::Error::last_os_error())?;
    // SAFETY: the kernel has filled in the message, which points to `control`.
    let to = unsafe { destination(&message) };
    match (address(&from), to) {
        (Some(from), Some(to)) => Ok(Taken { length, from, to }),
        _ => Err(io::Error::other("the kernel did not tell whom a datagram was for")),
    }
}

/// The destination in the control messages.
///
/// # Safety
/// `message` must be as `recvmsg` left it.
unsafe fn destination(message: &libc::msghdr) -> Option<SocketAddr> {
    // SAFETY: the caller's promise; each header is followed by as many bytes as it states.
    unsafe {
        let mut at = libc::CMSG_FIRSTHDR(message);
        while let Some(header) = at.as_ref() {
            let size = match (header.cmsg_level, header.cmsg_type) {
                (libc::SOL_IP, libc::IP_ORIGDSTADDR) => size_of::<libc::sockaddr_in>(),
                (libc::SOL_IPV6, libc::IPV6_ORIGDSTADDR) => size_of::<libc::sockaddr_in6>(),
                _ => 0,
            };
            // Of another type in musl.
            let length: usize = header.cmsg_len as _;
            if size > 0 && length >= libc::CMSG_LEN(size as u32) as usize {
                let mut to = MaybeUninit::<Address>::zeroed();
                ptr::copy_nonoverlapping(libc::CMSG_DATA(at), to.as_mut_ptr().cast::<u8>(), size);
                return address(&to.assume_init());
            }
            at = libc::CMSG_NXTHDR(message, at);
        }
    }
    None
}

/// The address, of IPv4 if it is one of IPv4 in IPv6's clothes.
fn address(raw: &Address) -> Option<SocketAddr> {
    let port = u16::from_be(raw.sin6_port);
    match i32::from(raw.sin6_family) {
        // `struct sockaddr_in` has its address where the other has the flow.
        libc::AF_INET => {
            let v4 = Ipv4Addr::from(raw.sin6_flowinfo.to_ne_bytes());
            Some((v4, port).into())
        }
        libc::AF_INET6 => {
            let v6 = Ipv6Addr::from(raw.sin6_addr.s6_addr);
            let scope = raw.sin6_scope_id;
            Some(match v6.to_ipv4_mapped() {
                Some(v4) => (v4, port).into(),
                None => std::net::SocketAddrV6::new(v6, port, 0, scope).into(),
            })
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::UdpSocket;

    #[test]
    fn a_datagram_tells_whom_it_was_for() {
        let v4 = UdpSocket::bind("0.0.0.0:0").unwrap();
        tell_destinations(&v4, false).unwrap();
        check(&v4, "127.0.0.1:0", &format!("127.0.0.2:{}", v4.local_addr().unwrap().port()));
        let Ok(both) = UdpSocket::bind("[::]:0") else { return trunkline_skip::skipped("no IPv6") };
        tell_destinations(&both, true).unwrap();
        let port = both.local_addr().unwrap().port();
        check(&both, "[::1]:0", &format!("[::1]:{port}"));
        check(&both, "127.0.0.1:0", &format!("127.0.0.2:{port}"));
    }

    fn check(socket: &UdpSocket, from: &str, to: &str) {
        let mut buffer = [0; 9];
        assert_eq!(
            receive_taken(socket, &mut buffer).unwrap_err().kind(),
            io::ErrorKind::WouldBlock
        );
        let sender = UdpSocket::bind(from).unwrap();
        sender.send_to(b"hello", to).unwrap();
        let taken = receive_taken(socket, &mut buffer).unwrap();
        let expected =
            Taken { length: 5, from: sender.local_addr().unwrap(), to: to.parse().unwrap() };
        assert_eq!((taken, &buffer[..5]), (expected, &b"hello"[..]));
    }

    #[test]
    fn a_socket_that_tells_no_destinations_is_an_error() {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        socket.send_to(b"", socket.local_addr().unwrap()).unwrap();
        assert!(receive_taken(&socket, &mut [0; 9]).unwrap_err().to_string().contains("whom"));
    }
}
