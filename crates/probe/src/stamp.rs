//! Receiving datagrams with the kernel's own time of arrival, and how exact that is.

use crate::clock;
use nix::errno::Errno;
use nix::sys::socket::{
    ControlMessageOwned, MsgFlags, SockaddrStorage, recvmsg, setsockopt, sockopt,
};
use rustix::event::{PollFd, PollFlags, poll};
use serde::{Deserialize, Serialize};
use std::io::{self, IoSliceMut};
use std::net::{Ipv6Addr, SocketAddr, SocketAddrV6, UdpSocket};
use std::os::fd::{AsFd, AsRawFd};
use std::sync::OnceLock;
use std::time::Duration;
use trunkline_core::{Span, Time};
use trunkline_measure::{Percentiles, Times};

/// A stamp older than this is not believed: the wall clock has been set in between.
const OLDEST: u64 = 60_000_000_000;

/// A datagram that has come.
#[derive(Debug, Clone, Copy)]
pub struct Arrival {
    /// Its length; the buffer holds no more than its own.
    pub length: usize,
    /// The sender, if the system says.
    pub from: Option<SocketAddr>,
    /// When it came.
    pub at: Time,
    /// Whether the kernel stamped it. Else `at` is when it was read.
    pub stamped: bool,
}

/// Keeps the kernel stamping. It begins some time after the first socket of all asks for it
/// (`net_enable_timestamp` patches its code by a work queue) and ends with the last; what arrives before is
/// stamped only when it is read.
static KEEPER: OnceLock<Option<UdpSocket>> = OnceLock::new();
/// The longest time that this takes, and much more.
const BEGINNING: Duration = Duration::from_millis(20);

fn keep() -> Option<UdpSocket> {
    let socket = UdpSocket::bind("127.0.0.1:0").ok()?;
    setsockopt(&socket, sockopt::ReceiveTimestampns, &true).ok()?;
    std::thread::sleep(BEGINNING);
    Some(socket)
}

/// Asks the kernel to stamp what arrives (`SO_TIMESTAMPNS`).
///
/// # Errors
/// If the socket does not do that.
pub fn request(socket: &UdpSocket) -> io::Result<()> {
    KEEPER.get_or_init(keep);
    Ok(setsockopt(socket, sockopt::ReceiveTimestampns, &true)?)
}

/// Takes one datagram if there is one.
///
/// # Errors
/// What the socket says, a refused port of the other end included.
pub fn receive(socket: &UdpSocket, buffer: &mut [u8]) -> io::Result<Option<Arrival>> {
    let mut space = nix::cmsg_space!(nix::sys::time::TimeSpec);
    let mut parts = [IoSliceMut::new(buffer)];
    let flags = MsgFlags::MSG_DONTWAIT;
    let message =
        match recvmsg::<SockaddrStorage>(socket.as_raw_fd(), &mut parts, Some(&mut space), flags) {
            Ok(message) => message,
            Err(Errno::EAGAIN | Errno::EINTR) => return Ok(None),
            Err(error) => return Err(error.into()),
        };
    let stamp = message.cmsgs()?.find_map(|control| match control {
        ControlMessageOwned::ScmTimestampns(time) => {
            Some(time.tv_sec().unsigned_abs() * 1_000_000_000 + time.tv_nsec().unsigned_abs())
        }
        _ => None,
    });
    let (at, stamped) = arrived(stamp);
    Ok(Some(Arrival {
        length: message.bytes,
        from: message.address.as_ref().and_then(address),
        at,
        stamped,
    }))
}

/// The stamp by the monotonic clock: now less its age.
fn arrived(stamp: Option<u64>) -> (Time, bool) {
    let (wall, now) = clock::both();
    match stamp.map(|stamp| wall.saturating_sub(stamp)) {
        Some(age) if age < OLDEST => (now.before(Span::from_nanos(age)), true),
        _ => (now, false),
    }
}

fn address(storage: &SockaddrStorage) -> Option<SocketAddr> {
    let v4 = storage.as_sockaddr_in().map(|address| SocketAddr::V4((*address).into()));
    v4.or_else(|| storage.as_sockaddr_in6().map(|address| plain(SocketAddrV6::from(*address))))
}

/// An IPv4 address that a socket of both families shows as IPv6.
fn plain(address: SocketAddrV6) -> SocketAddr {
    match address.ip().to_ipv4_mapped() {
        Some(v4) => SocketAddr::from((v4, address.port())),
        None => SocketAddr::V6(address),
    }
}

/// The address as a socket of both families takes it.
pub fn mapped(address: SocketAddr) -> SocketAddr {
    match address {
        SocketAddr::V4(v4) => {
            let ip: Ipv6Addr = v4.ip().to_ipv6_mapped();
            SocketAddr::from((ip, v4.port()))
        }
        v6 => v6,
    }
}

/// Waits until the socket has something or `until` comes; `true` if there is something.
///
/// # Errors
/// If the system cannot wait.
pub fn wait(socket: impl AsFd, flags: PollFlags, until: Time) -> io::Result<bool> {
    let mut fds = [PollFd::new(&socket, flags)];
    let left = clock::timespec(until.since(clock::now()));
    match poll(&mut fds, Some(&left)) {
        Ok(ready) => Ok(ready > 0),
        Err(rustix::io::Errno::INTR) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// The accuracy of a measurement's times, found out on this host just before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct TimingError {
    /// Whether the kernel stamps arrivals. Else they are read off the clock when the program wakes.
    pub kernel_stamps: bool,
    /// The clock's smallest step.
    pub clock_step: Span,
    /// From the instant noted before a send call to the kernel's stamp, over loopback: what a one-way
    /// delay is too long by.
    pub send_to_stamp: Percentiles,
    /// From the kernel's stamp until the program has read the datagram: the error if there is none.
    pub stamp_to_read: Percentiles,
    /// The lateness with which a timer wakes the program: paced messages leave late by it, which counts as delay,
    /// since they are measured from the intended instant.
    pub timer_late: Percentiles,
}

impl TimingError {
    /// The error of a round trip: what 99 in 100 are wrong by at most, the median being what all are
    /// too long by.
    pub fn round_trip(&self) -> Span {
        let far = self.send_to_stamp.p99 + self.send_to_stamp.p99;
        if self.kernel_stamps { far } else { far + self.stamp_to_read.p99 }
    }
}

const TRIALS: usize = 200;
const SLEEPS: usize = 40;

/// Measures the errors; takes a tenth of a second. If there is no loopback, only the timer's.
pub fn calibrate() -> TimingError {
    clock::wake_exactly();
    let (sends, reads, stamped) = loopback().unwrap_or_default();
    let mut late = Times::default();
    for _ in 0..SLEEPS {
        let due = clock::now() + Span::from_millis(1);
        std::thread::sleep(due.since(clock::now()).to_duration());
        late.record(clock::now().since(due));
    }
    TimingError {
        kernel_stamps: stamped,
        clock_step: clock::resolution(),
        send_to_stamp: sends.percentiles(),
        stamp_to_read: reads.percentiles(),
        timer_late: late.percentiles(),
    }
}

fn loopback() -> io::Result<(Times, Times, bool)> {
    let (near, far) = (UdpSocket::bind("127.0.0.1:0")?, UdpSocket::bind("127.0.0.1:0")?);
    request(&far)?;
    near.connect(far.local_addr()?)?;
    let (mut sends, mut reads, mut stamped) = (Times::default(), Times::default(), true);
    for _ in 0..TRIALS {
        let sent = clock::now();
        near.send(&[0; 64])?;
        wait(&far, PollFlags::IN, sent + Span::from_millis(20))?;
        if let Some(arrival) = receive(&far, &mut [0; 64])? {
            sends.record(arrival.at.since(sent));
            reads.record(clock::now().since(arrival.at));
            stamped &= arrival.stamped;
        }
    }
    let stamped = stamped && sends.count() > 0;
    Ok((sends, reads, stamped))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_datagram_is_stamped_between_sending_and_reading() {
        let (near, far) =
            (UdpSocket::bind("127.0.0.1:0").unwrap(), UdpSocket::bind("[::]:0").unwrap());
        request(&far).unwrap();
        let to = SocketAddr::from(([127, 0, 0, 1], far.local_addr().unwrap().port()));
        assert!(receive(&far, &mut [0; 8]).unwrap().is_none());
        let sent = clock::now();
        near.send_to(b"stamped", to).unwrap();
        assert!(wait(&far, PollFlags::IN, sent + Span::from_secs(5)).unwrap());
        std::thread::sleep(std::time::Duration::from_millis(3));
        let before_reading = clock::now();
        let arrival = receive(&far, &mut [0; 4]).unwrap().unwrap();
        assert!(
            arrival.stamped && sent <= arrival.at && arrival.at < before_reading,
            "{arrival:?}"
        );
        assert_eq!(arrival.from, near.local_addr().ok());
        assert_eq!(arrival.length, 4);
    }

    #[test]
    fn the_calibration_says_something_of_everything() {
        let error = calibrate();
        assert!(error.kernel_stamps && error.send_to_stamp.count > 100, "{error:?}");
        assert_eq!(error.timer_late.count, SLEEPS as u64);
        assert!(error.round_trip() >= error.send_to_stamp.p50);
    }

    #[test]
    fn a_stamp_that_cannot_be_is_not_believed() {
        let (at, stamped) = arrived(Some(1));
        assert!(!stamped && at <= clock::now());
    }
}
