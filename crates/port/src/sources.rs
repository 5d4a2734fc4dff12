//! A socket that takes datagrams of some sources alone.

use crate::sys::attach_filter;
use std::io;
use std::net::SocketAddr;
use std::os::fd::BorrowedFd;

/// Where the network header begins, to the kernel's filters (linux/filter.h), and the source's address in it.
const NETWORK: u32 = 0xfff0_0000;
const OF_IPV4: u32 = 12;
const OF_IPV6: u32 = 8;
/// Most instructions of a filter (linux/bpf_common.h).
const MOST: usize = 4096;

/// Lets a UDP socket take datagrams of these sources alone: the kernel drops all others as they come, before they take any of
/// the socket's memory, and counts them with those for which there was none. What waits already stays.
///
/// # Errors
/// What the kernel says: `ENOMEM` if the filter is longer than its limit (`net.core.optmem_max`), `EINVAL` if there are more
/// sources than a filter can have, some hundreds.
pub fn take_only_from(socket: BorrowedFd<'_>, sources: &[SocketAddr]) -> io::Result<()> {
    let mut filter = filter(sources);
    if filter.len() > MOST {
        return Err(io::Error::from_raw_os_error(libc::EINVAL));
    }
    attach_filter(socket, &mut filter).map_err(io::Error::from_raw_os_error)
}

/// For each source the comparisons of its address and port, then an acceptance; behind all a refusal. The data of a UDP
/// socket's filter begin with the UDP header, and so with the port.
fn filter(sources: &[SocketAddr]) -> Vec<libc::sock_filter> {
    let mut filter: Vec<_> = sources.iter().flat_map(of_source).collect();
    filter.push(statement(libc::BPF_RET, 0));
    filter
}

fn of_source(source: &SocketAddr) -> Vec<libc::sock_filter> {
    let words: Vec<(u32, u32)> = match source {
        SocketAddr::V4(it) => vec![(OF_IPV4, it.ip().to_bits())],
        SocketAddr::V6(it) => {
            let bits = it.ip().to_bits();
            (0..4).map(|word| (OF_IPV6 + 4 * word, (bits >> (96 - 32 * word)) as u32)).collect()
        }
    };
    let address = words.into_iter().map(|(at, word)| (libc::BPF_W, NETWORK + at, word));
    let compared: Vec<_> = address.chain([(libc::BPF_H, 0, u32::from(source.port()))]).collect();
    let mut filter = Vec::new();
    for (index, &(size, at, wanted)) in compared.iter().enumerate() {
        filter.push(statement(libc::BPF_LD | size | libc::BPF_ABS, at));
        // Past what is compared yet, and the acceptance.
        let past = 2 * (compared.len() - 1 - index) + 1;
        let equals = statement(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, wanted);
        filter.push(libc::sock_filter { jf: past as u8, ..equals });
    }
    filter.push(statement(libc::BPF_RET, u32::MAX));
    filter
}

fn statement(code: u32, k: u32) -> libc::sock_filter {
    libc::sock_filter { code: code as u16, jt: 0, jf: 0, k }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::UdpSocket;
    use std::os::fd::AsFd;
    use std::time::Duration;

    fn takes_only_from(address: &str) {
        let open = || UdpSocket::bind((address, 0)).unwrap();
        let [here, one, other, stranger] = [(); 4].map(|()| open());
        here.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
        let at = |socket: &UdpSocket| socket.local_addr().unwrap();
        take_only_from(here.as_fd(), &[at(&one), at(&other)]).unwrap();
        for (octets, from) in [(1, &stranger), (2, &one), (3, &stranger), (4, &other)] {
            from.send_to(&[octets; 9], at(&here)).unwrap();
        }
        let mut octets = [0; 16];
        for wanted in [2, 4] {
            assert_eq!(here.recv(&mut octets).unwrap(), 9);
            assert_eq!(octets[..9], [wanted; 9]);
        }
        here.set_nonblocking(true).unwrap();
        assert!(here.recv(&mut octets).is_err(), "of a stranger");
    }

    #[test]
    fn strangers_datagrams_are_not_taken() {
        takes_only_from("127.0.0.1");
        if UdpSocket::bind("[::1]:0").is_ok() {
            takes_only_from("::1");
        }
        let many = vec![SocketAddr::from(([10, 0, 0, 1], 7)); 1000];
        let here = UdpSocket::bind("127.0.0.1:0").unwrap();
        assert!(take_only_from(here.as_fd(), &many).is_err());
    }
}
