//! Firewalls of a host that drop what it passes on: of nf_tables, and of the older ip_tables, which has its tables apart.
#![allow(unsafe_code)]

use crate::{LabError, Namespace, sys};
use std::fs;
use std::io;
use std::os::fd::{AsFd, AsRawFd};

/// The tables of ip_tables that are in force in the caller's namespace, one a line.
const TABLES: &str = "/proc/thread-self/net/ip_tables_names";
/// The table of filters, and its chain for packets that are passed on.
const FILTER: &str = "filter";
const FORWARD: &str = "FORWARD";
/// `IPT_SO_GET_INFO` and `IPT_SO_GET_ENTRIES` (`linux/netfilter_ipv4/ip_tables.h`).
const GET_INFO: libc::c_int = 64;
const GET_ENTRIES: libc::c_int = 65;
/// Bytes of a table's name (`XT_TABLE_MAXNAMELEN`), of `struct ipt_getinfo`, and in front of the entries of `struct
/// ipt_get_entries`.
const NAME: usize = 32;
const INFO: usize = 84;
const FRONT: usize = 40;
/// Places in `struct ipt_getinfo`: where the policy of the chain FORWARD stands among the entries (`underflow[2]`), and
/// the entries' size.
const POLICY: usize = 64;
const SIZE: usize = 80;
/// The largest table that is looked at, bytes.
const LARGEST: usize = 64 << 20;
/// The place of `target_offset` in `struct ipt_entry`, and of the decision behind the head of its target
/// (`struct xt_standard_target`).
const TARGET: usize = 88;
const DECISION: usize = 32;
/// The decision to drop: `-NF_DROP - 1`.
const DROP: i32 = -1;

/// A chain that drops the packets that a host passes on, unless a rule of its own says otherwise: as Docker and ufw
/// make it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ForwardDrop {
    /// The chain's table.
    pub table: String,
    /// Its name.
    pub chain: String,
    /// The program that sets rules of its kind.
    pub set_by: &'static str,
}

impl ForwardDrop {
    /// The commands that let a laboratory's packets through.
    pub fn remedy(&self) -> String {
        let rule = |way| format!("{} -I FORWARD {way} 'tl+' -j ACCEPT", self.set_by);
        format!("{}; {}", rule("-i"), rule("-o"))
    }
}

impl Namespace {
    /// The first chain that drops IPv4 packets which this namespace passes on: of nf_tables, or of ip_tables, the
    /// older mechanism that `iptables-legacy` sets.
    ///
    /// # Errors
    /// If the rules may not be read.
    pub fn forward_drop(&self) -> Result<Option<ForwardDrop>, LabError> {
        match self.nft_forward_drop() {
            Ok(Some(found)) => Ok(Some(found)),
            // A kernel without nf_tables may have the other.
            Ok(None) | Err(_) => self.run(legacy_drop),
        }
    }
}

/// The chain FORWARD of ip_tables in the calling thread's namespace, if it drops. What cannot be read drops nothing.
fn legacy_drop() -> Option<ForwardDrop> {
    // Asking for a table that is not in force would put it into force.
    let tables = fs::read_to_string(TABLES).ok()?;
    if !tables.lines().any(|table| table == FILTER) {
        return None;
    }
    let (info, entries) =
        filter().inspect_err(|error| tracing::debug!(%error, "no ip_tables")).ok()?;
    read_forward_drop(&info, &entries)
}

/// What the kernel tells of the table of filters: `struct ipt_getinfo`, and the entries.
fn filter() -> io::Result<(Vec<u8>, Vec<u8>)> {
    let socket = sys::socket(libc::AF_INET, libc::SOCK_RAW, libc::IPPROTO_RAW)?;
    let mut info = vec![0; INFO];
    info[..FILTER.len()].copy_from_slice(FILTER.as_bytes());
    ask(&socket, GET_INFO, &mut info)?;
    let size = word(&info, SIZE).unwrap_or_default();
    if size as usize > LARGEST {
        return Err(io::ErrorKind::OutOfMemory.into());
    }
    let mut entries = vec![0; FRONT + size as usize];
    entries[..FILTER.len()].copy_from_slice(FILTER.as_bytes());
    entries[NAME..NAME + 4].copy_from_slice(&size.to_ne_bytes());
    ask(&socket, GET_ENTRIES, &mut entries)?;
    entries.drain(..FRONT);
    Ok((info, entries))
}

fn ask(socket: impl AsFd, option: libc::c_int, answer: &mut [u8]) -> io::Result<()> {
    let mut size = answer.len() as libc::socklen_t;
    let (fd, place) = (socket.as_fd().as_raw_fd(), answer.as_mut_ptr());
    // SAFETY: the kernel writes at most `size` bytes into the live slice; neither structure holds addresses.
    let result = unsafe { libc::getsockopt(fd, libc::SOL_IP, option, place.cast(), &mut size) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// The chain FORWARD, if the table whose `struct ipt_getinfo` and entries these are drops what comes to its end.
pub(crate) fn read_forward_drop(info: &[u8], entries: &[u8]) -> Option<ForwardDrop> {
    let policy = entries.get(word(info, POLICY)? as usize..)?;
    let target = policy.get(TARGET..TARGET + 2)?;
    let target = usize::from(u16::from_ne_bytes(target.try_into().ok()?));
    let drops = word(policy, target + DECISION)?.cast_signed() == DROP;
    drops.then(|| ForwardDrop {
        table: FILTER.into(),
        chain: FORWARD.into(),
        set_by: "iptables-legacy",
    })
}

fn word(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    /// Runs `iptables-legacy` with these arguments in the calling thread's namespace.
    fn legacy(arguments: &str) -> bool {
        let status = Command::new("iptables-legacy").args(arguments.split(' ')).status().unwrap();
        status.success()
    }

    #[test]
    fn a_drop_of_ip_tables_is_found() {
        let Some(namespace) = crate::namespace::tests::namespace() else { return };
        if !trunkline_skip::installed(&["iptables-legacy"]) {
            return;
        }
        assert_eq!(namespace.forward_drop().unwrap(), None, "no table");
        if !namespace.run(|| legacy("-P INPUT DROP")).unwrap() {
            return trunkline_skip::skipped("this kernel has no ip_tables");
        }
        assert_eq!(namespace.forward_drop().unwrap(), None, "another chain");
        // Rules in front, so that the policy does not stand at the table's beginning.
        for rule in
            ["-A INPUT -s 192.0.2.1 -j ACCEPT", "-A FORWARD -i tl+ -j ACCEPT", "-P FORWARD DROP"]
        {
            assert!(namespace.run(|| legacy(rule)).unwrap());
        }
        let found = namespace.forward_drop().unwrap().unwrap();
        assert_eq!((found.table.as_str(), found.chain.as_str()), ("filter", "FORWARD"));
        assert!(namespace.run(|| legacy("-P FORWARD ACCEPT")).unwrap());
        assert_eq!(namespace.forward_drop().unwrap(), None);
    }

    #[test]
    fn looking_puts_no_table_into_force() {
        let Some(namespace) = crate::namespace::tests::namespace() else { return };
        assert_eq!(namespace.forward_drop().unwrap(), None);
        let tables = namespace.run(|| fs::read_to_string(TABLES)).unwrap();
        assert_eq!(tables.unwrap_or_default(), "");
    }

    #[test]
    fn tables_that_are_cut_drop_nothing() {
        let mut info = vec![0; INFO];
        info[POLICY..POLICY + 4].copy_from_slice(&8_u32.to_ne_bytes());
        let mut entries = vec![0; 8 + 112 + 40];
        entries[8 + TARGET..8 + TARGET + 2].copy_from_slice(&112_u16.to_ne_bytes());
        entries[8 + 112 + DECISION..8 + 112 + DECISION + 4].copy_from_slice(&DROP.to_ne_bytes());
        assert!(read_forward_drop(&info, &entries).is_some());
        for end in 0..8 + 112 + DECISION + 4 {
            assert_eq!(read_forward_drop(&info, &entries[..end]), None, "{end}");
        }
        info[POLICY..POLICY + 4].copy_from_slice(&[255; 4]);
        assert_eq!(read_forward_drop(&info, &entries), None);
    }
}
