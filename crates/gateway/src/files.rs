//! What programs read of names: `/etc/hosts` and `/etc/resolv.conf`.

use std::fmt::Write;
use std::fs;
use std::net::{IpAddr, Ipv4Addr};
use std::path::Path;
use trunkline_netns::{Ending, LabError, RESOLVERS, Replacements, RunState, StateFile};

const HOSTS: &str = "/etc/hosts";
/// Sockets by which the C library asks a service of the machine instead of the name servers: what it says would not
/// cross the path, and it does not know the laboratory's names.
const ASIDE: [&str; 3] =
    ["/run/systemd/resolve/io.systemd.Resolve", "/run/nscd/socket", "/var/run/nscd/socket"];

/// A line of `/etc/hosts`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// The address.
    pub address: IpAddr,
    /// Its name.
    pub name: String,
}

/// The files that programs of a laboratory see in place of the machine's, on disk as long as this lives. Programs that
/// have started keep them.
#[derive(Debug)]
pub struct ProgramFiles {
    replacements: Replacements,
    _files: Vec<StateFile>,
}

impl ProgramFiles {
    /// Adds `entries` to the machine's hosts, and has `name_server`, if given, in place of the machine's. A file that
    /// the machine does not have is left out.
    ///
    /// # Errors
    /// If the files cannot be written, or the system does not let a program have files of its own.
    pub fn write(
        state: &RunState,
        entries: &[Entry],
        name_server: Option<Ipv4Addr>,
    ) -> Result<ProgramFiles, LabError> {
        let mut files = ProgramFiles { replacements: Replacements::default(), _files: Vec::new() };
        if let Ok(machine) = fs::read_to_string(HOSTS) {
            files.show(state.file(Ending::Hosts, &hosts(&machine, entries))?, &[HOSTS])?;
        }
        if let (Some(server), Ok(machine)) = (name_server, fs::read_to_string(RESOLVERS)) {
            files
                .show(state.file(Ending::Resolvers, &resolvers(&machine, server))?, &[RESOLVERS])?;
            let aside: Vec<&str> =
                ASIDE.into_iter().filter(|path| Path::new(path).exists()).collect();
            files.show(state.file(Ending::Nothing, "")?, &aside)?;
        }
        files.replacements.check()?;
        Ok(files)
    }

    /// What programs are started with.
    pub fn replacements(&self) -> &Replacements {
        &self.replacements
    }

    fn show(&mut self, file: StateFile, places: &[&str]) -> Result<(), LabError> {
        for place in places {
            self.replacements.show(file.path(), Path::new(place))?;
        }
        self._files.push(file);
        Ok(())
    }
}

/// The machine's hosts, and `entries`.
fn hosts(machine: &str, entries: &[Entry]) -> String {
    let mut text = machine.trim_end().to_owned();
    text.push('\n');
    for Entry { address, name } in entries {
        // Writing to a string does not fail.
        let _ = writeln!(text, "{address} {name}");
    }
    text
}

/// The machine's settings for names, with one name server.
fn resolvers(machine: &str, server: Ipv4Addr) -> String {
    let kept = machine.lines().filter(|line| !line.trim_start().starts_with("nameserver"));
    let mut text: String = kept.flat_map(|line| [line, "\n"]).collect();
    let _ = writeln!(text, "nameserver {server}");
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_added_and_the_name_server_replaced() {
        let entry =
            Entry { address: "10.77.0.254".parse().unwrap(), name: "host.trunkline".into() };
        let expected = "127.0.0.1 localhost\n10.77.0.254 host.trunkline\n";
        assert_eq!(hosts("127.0.0.1 localhost", std::slice::from_ref(&entry)), expected);
        assert_eq!(hosts("127.0.0.1 localhost\n\n", &[entry]), expected);
        let machine = "nameserver 127.0.0.53\noptions edns0 trust-ad\nsearch lan\n";
        let expected = "options edns0 trust-ad\nsearch lan\nnameserver 10.77.0.254\n";
        assert_eq!(resolvers(machine, Ipv4Addr::new(10, 77, 0, 254)), expected);
    }
}
