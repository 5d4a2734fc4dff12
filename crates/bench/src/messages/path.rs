//! The path between the two ends: a pair of devices between two namespaces, or loopback without the right to make those.

use anyhow::{Context, Result};
use std::net::Ipv4Addr;
use std::os::fd::AsRawFd;
use std::process::Command;
use trunkline_netns::{End, IpNet, Namespace, create_veth};

/// The devices of the two ends.
const DEVICES: [&str; 2] = ["tl0", "tl1"];
/// What is run in a namespace: the program, with the devices of the namespace in `/sys`, where UCX looks for them. It ends with
/// whoever measures: one that spins would disturb all that is measured later.
const INSIDE: &str = r#"mount -t sysfs none /sys && exec setpriv --pdeathsig KILL "$0" "$@""#;
/// Frames of 8000 octets with their headers go whole.
const MTU: u32 = 9000;

/// Where the two ends of a measurement are. The first is the one that asks.
#[derive(Debug)]
pub struct Path {
    /// None if both are on loopback.
    spaces: Option<[Namespace; 2]>,
}

impl Path {
    /// A path between two namespaces; loopback if none can be made.
    ///
    /// # Errors
    /// If the namespaces cannot be joined.
    pub fn new() -> Result<Path> {
        let (Ok(here), Ok(there)) = (Namespace::create(), Namespace::create()) else {
            return Ok(Path { spaces: None });
        };
        let path = Path { spaces: Some([here, there]) };
        if let Some([here, there]) = &path.spaces {
            create_veth(&End::new(here, DEVICES[0]), &End::new(there, DEVICES[1]), MTU)?;
            for (end, space) in [here, there].into_iter().enumerate() {
                let net = IpNet::new(path.address(end), 24).context("24 bits are a prefix")?;
                space.add_address(path.device(end), net)?;
            }
        }
        Ok(path)
    }

    /// A description for a title.
    pub fn name(&self) -> &'static str {
        match self.spaces {
            Some(_) => "a pair of devices between two namespaces",
            None => "loopback",
        }
    }

    /// The address of an end.
    pub fn address(&self, end: usize) -> Ipv4Addr {
        match self.spaces {
            Some(_) => Ipv4Addr::new(10, 77, 9, end as u8 + 1),
            None => Ipv4Addr::LOCALHOST,
        }
    }

    /// The network in which both ends are.
    pub fn network(&self) -> &'static str {
        match self.spaces {
            Some(_) => "10.77.9.0/24",
            None => "127.0.0.0/8",
        }
    }

    /// The device of an end.
    pub fn device(&self, end: usize) -> &'static str {
        match self.spaces {
            Some(_) => DEVICES[end],
            None => "lo",
        }
    }

    /// The same command at an end. Its input and outputs are to be set afterwards.
    pub fn at(&self, end: usize, plain: &Command) -> Command {
        let mut command = match &self.spaces {
            Some(spaces) => {
                let (own, space) = (std::process::id(), spaces[end].fd().as_raw_fd());
                let mut command = Command::new("unshare");
                command.args(["--mount", "nsenter", &format!("--net=/proc/{own}/fd/{space}")]);
                command.args(["sh", "-c", INSIDE]).arg(plain.get_program());
                command
            }
            None => Command::new(plain.get_program()),
        };
        command.args(plain.get_args());
        for (name, value) in plain.get_envs() {
            command.env(name, value.unwrap_or_default());
        }
        command
    }
}
