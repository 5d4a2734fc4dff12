//! Options of sockets that no safe library has: some numbers, and what the kernel tells of a connection.
#![allow(unsafe_code)]

use std::io;
use std::mem::size_of;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, TcpStream};
use std::os::fd::{AsFd, AsRawFd};

/// An option whose value is one C `int`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SocketOption {
    /// `SO_NO_CHECK` (socket.h): UDP over IPv4 without check sums.
    NoChecksum,
    /// `TCP_MAXSEG` (tcp(7)), bytes.
    MaxSegment,
    /// `TCP_WINDOW_CLAMP` (tcp(7)), bytes.
    WindowClamp,
    /// `TCP_RTO_MIN_US` (Linux 6.15), microseconds.
    RtoMinMicros,
    /// `TCP_DELACK_MAX_US` (Linux 6.15), microseconds.
    DelayedAckMicros,
}

impl SocketOption {
    /// Level and name, from `asm-generic/socket.h` and `linux/tcp.h`.
    const fn numbers(self) -> (libc::c_int, libc::c_int) {
        match self {
            SocketOption::NoChecksum => (libc::SOL_SOCKET, libc::SO_NO_CHECK),
            SocketOption::MaxSegment => (libc::IPPROTO_TCP, libc::TCP_MAXSEG),
            SocketOption::WindowClamp => (libc::IPPROTO_TCP, libc::TCP_WINDOW_CLAMP),
            SocketOption::RtoMinMicros => (libc::IPPROTO_TCP, 45),
            SocketOption::DelayedAckMicros => (libc::IPPROTO_TCP, 46),
        }
    }
}

/// Sets an option.
///
/// # Errors
/// If the kernel does not know it, or does not take the value.
pub fn set_socket_option(fd: impl AsFd, option: SocketOption, value: i32) -> io::Result<()> {
    let (level, name) = option.numbers();
    let place: *const i32 = &value;
    let size = size_of::<i32>() as libc::socklen_t;
    // SAFETY: every option of the list takes an int, and the kernel reads just that from a live one.
    let result =
        unsafe { libc::setsockopt(fd.as_fd().as_raw_fd(), level, name, place.cast(), size) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Reads an option.
///
/// # Errors
/// If the kernel does not know it.
pub fn socket_option(fd: impl AsFd, option: SocketOption) -> io::Result<i32> {
    let (level, name) = option.numbers();
    let mut bytes = [0; size_of::<i32>()];
    read(&fd, level, name, &mut bytes)?;
    Ok(i32::from_ne_bytes(bytes))
}

/// The state of a TCP connection as the kernel tells it (`struct tcp_info` of `linux/tcp.h`). What an older kernel
/// does not tell is 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TcpInfo {
    /// The time-out for retransmission, microseconds.
    pub rto_micros: u32,
    /// Largest segment that it sends, bytes.
    pub send_mss: u32,
    /// The smoothed round-trip time, microseconds.
    pub rtt_micros: u32,
    /// The shortest round-trip time, microseconds.
    pub min_rtt_micros: u32,
    /// Congestion window, segments.
    pub congestion_window: u32,
    /// Segments sent again, in all.
    pub retransmitted: u32,
    /// Data segments sent, retransmissions included.
    pub data_segments_sent: u32,
    /// Bytes acknowledged by the other end.
    pub bytes_acked: u64,
    /// Bytes handed over and never sent so far.
    pub unsent: u32,
    /// Segments under way.
    pub unacked: u32,
    /// Microseconds in which there was something to send or to be acknowledged,
    pub busy_micros: u64,
    /// of these with the other end's window closed,
    pub window_limited_micros: u64,
    /// and with the own buffer full.
    pub buffer_limited_micros: u64,
    /// The window that the other end advertises, bytes (Linux 5.4).
    pub send_window: u32,
    /// The window that this end advertises, bytes (Linux 6.2).
    pub receive_window: u32,
    /// The number of times that the retransmission timer has run out (Linux 6.7).
    pub timeouts: u16,
    /// SACK, time stamps, window scaling, ECN: bits 1, 0, 2 and 3 (`TCPI_OPT_…`).
    pub options: u8,
}

impl TcpInfo {
    /// Whether SACK is in force.
    pub const fn sack(&self) -> bool {
        self.options & 2 != 0
    }
    /// Whether time stamps are.
    pub const fn timestamps(&self) -> bool {
        self.options & 1 != 0
    }
    /// Whether window scaling is.
    pub const fn window_scaling(&self) -> bool {
        self.options & 4 != 0
    }
    /// Whether ECN is.
    pub const fn ecn(&self) -> bool {
        self.options & 8 != 0
    }

    /// From the kernel's structure, by the offsets of its fields.
    fn of(bytes: &[u8; INFO]) -> TcpInfo {
        let four = |at| u32::from_ne_bytes(take(bytes, at));
        let eight = |at| u64::from_ne_bytes(take(bytes, at));
        TcpInfo {
            options: bytes[5],
            rto_micros: four(8),
            send_mss: four(16),
            unacked: four(24),
            rtt_micros: four(68),
            congestion_window: four(80),
            retransmitted: four(100),
            bytes_acked: eight(120),
            unsent: four(144),
            min_rtt_micros: four(148),
            data_segments_sent: four(156),
            busy_micros: eight(168),
            window_limited_micros: eight(176),
            buffer_limited_micros: eight(184),
            send_window: four(228),
            receive_window: four(232),
            timeouts: u16::from_ne_bytes(take(bytes, 240)),
        }
    }
}

/// As much of `struct tcp_info` as is read.
const INFO: usize = 248;

fn take<const N: usize>(bytes: &[u8], at: usize) -> [u8; N] {
    let mut taken = [0; N];
    taken.copy_from_slice(&bytes[at..at + N]);
    taken
}

/// Asks the kernel about a TCP socket.
///
/// # Errors
/// If it is none.
pub fn tcp_info(fd: impl AsFd) -> io::Result<TcpInfo> {
    let mut bytes = [0; INFO];
    read(&fd, libc::IPPROTO_TCP, libc::TCP_INFO, &mut bytes)?;
    Ok(TcpInfo::of(&bytes))
}

/// `SO_ORIGINAL_DST` of `linux/netfilter_ipv4.h`, and `IP6T_SO_ORIGINAL_DST`.
const ORIGINAL: libc::c_int = 80;

/// Whom a connection was for that this host took in instead ([`Redirections`](crate::Redirections)).
///
/// # Errors
/// If the kernel does not know, because it keeps no list of connections.
pub fn original_destination(connection: &TcpStream) -> io::Result<SocketAddr> {
    if connection.local_addr()?.is_ipv4() {
        // `struct sockaddr_in`: family, port, address.
        let mut bytes = [0; 16];
        read(&connection, libc::SOL_IP, ORIGINAL, &mut bytes)?;
        let address: [u8; 4] = take(&bytes, 4);
        Ok((Ipv4Addr::from(address), u16::from_be_bytes(take(&bytes, 2))).into())
    } else {
        // `struct sockaddr_in6`: family, port, flow, address, scope.
        let mut bytes = [0; 28];
        read(&connection, libc::SOL_IPV6, ORIGINAL, &mut bytes)?;
        let address: [u8; 16] = take(&bytes, 8);
        Ok((Ipv6Addr::from(address), u16::from_be_bytes(take(&bytes, 2))).into())
    }
}

fn read(fd: &impl AsFd, level: libc::c_int, name: libc::c_int, to: &mut [u8]) -> io::Result<()> {
    let mut size = to.len() as libc::socklen_t;
    let place = to.as_mut_ptr();
    let fd = fd.as_fd().as_raw_fd();
    // SAFETY: the options asked for hold no addresses, and the kernel writes at most `size` bytes.
    let result = unsafe { libc::getsockopt(fd, level, name, place.cast(), &mut size) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};
    use std::net::{TcpListener, UdpSocket};

    #[test]
    fn a_connection_tells_of_itself() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        set_socket_option(&listener, SocketOption::MaxSegment, 1000).unwrap();
        let mut near = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (mut far, _) = listener.accept().unwrap();
        near.write_all(&[7; 5000]).unwrap();
        far.read_exact(&mut [0; 5000]).unwrap();
        let info = tcp_info(&near).unwrap();
        // Time stamps take 12 bytes of each segment.
        assert_eq!(info.send_mss, if info.timestamps() { 988 } else { 1000 });
        assert!(info.data_segments_sent >= 1 && info.retransmitted == 0, "{info:?}");
        assert!(info.send_window > 0 && info.rto_micros >= 200_000, "{info:?}");
        assert!(tcp_info(UdpSocket::bind("127.0.0.1:0").unwrap()).is_err());
    }

    #[test]
    fn options_are_read_as_they_were_set() {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        set_socket_option(&socket, SocketOption::NoChecksum, 1).unwrap();
        assert_eq!(socket_option(&socket, SocketOption::NoChecksum).unwrap(), 1);
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        set_socket_option(&listener, SocketOption::WindowClamp, 65_535).unwrap();
        assert_eq!(socket_option(&listener, SocketOption::WindowClamp).unwrap(), 65_535);
        assert!(set_socket_option(&listener, SocketOption::MaxSegment, 1 << 20).is_err());
    }
}
