//! Other message layers over the same path: libfabric, UCX, Open MPI and Aeron, by the programs that come with them.

use super::aeron;
use super::count;
use super::path::Path;
use crate::process::{finish, start};
use anyhow::{Context, Result, bail};
use std::path::PathBuf;
use std::process::Command;
use std::thread::sleep;
use std::time::{Duration, Instant};

/// A message layer, and the program that measures it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Peer {
    /// libfabric with this provider, by `fi_pingpong`.
    Fabric(&'static str),
    /// UCX over TCP, by `ucx_perftest`.
    Ucx,
    /// Open MPI over TCP, by NetPIPE.
    Mpi,
    /// Aeron over UDP, by its C samples; a media driver for each end.
    Aeron,
}

/// What a program tells of messages of one size.
#[derive(Debug, Clone, Copy, Default)]
pub struct Told {
    /// Half a round trip in microseconds: the mean, or the median of those that tell it.
    pub latency: f64,
    /// Of a hundred no more than one is longer, in microseconds.
    pub p99: Option<f64>,
    /// Payload one way in bits per second.
    pub rate: Option<f64>,
}

const PATIENCE: Duration = Duration::from_secs(20);
const UCX_PORT: &str = "47831";

impl Peer {
    /// For a table.
    pub fn name(self) -> String {
        match self {
            Peer::Fabric(provider) => format!("libfabric {provider}"),
            Peer::Ucx => "UCX, tcp".into(),
            Peer::Mpi => "Open MPI, tcp".into(),
            Peer::Aeron => "Aeron, udp".into(),
        }
    }

    /// The program that has to be there.
    pub fn program(self) -> PathBuf {
        match self {
            Peer::Fabric(_) => "fi_pingpong".into(),
            Peer::Ucx => "ucx_perftest".into(),
            Peer::Mpi => "NPopenmpi".into(),
            Peer::Aeron => aeron::program("cping"),
        }
    }

    /// Messages of `bytes`, `count` there and back, and some one way of those that have a program for it.
    pub fn measure(self, path: &Path, bytes: u32, count: u32) -> Result<Told> {
        match self {
            Peer::Fabric(provider) => {
                let told = both(path, |end| fabric(path, provider, bytes, count, end))?;
                Ok(Told { latency: column(&told, 6)?, ..Told::default() })
            }
            Peer::Ucx => {
                let latency = |rank: &str| {
                    both(path, |end| ucx(path, "tag_lat", bytes, count, &["-R", rank], end))
                };
                let stream = both(path, |end| ucx(path, "tag_bw", bytes, 4 * count, &[], end))?;
                // A mebibyte is meant by "MB" (UCX's source says 1024 × 1024).
                let rate = column(&stream, 5)? * f64::from(1 << 20) * 8.0;
                Ok(Told {
                    latency: column(&latency("50")?, 2)?,
                    p99: Some(column(&latency("99")?, 2)?),
                    rate: Some(rate),
                })
            }
            Peer::Mpi => {
                let latency = mpi(path, bytes, count, &[], None)?.1;
                let rate = mpi(path, bytes, count, &["-s"], None)?.0;
                let rate = Some(rate * f64::from(1 << 20));
                Ok(Told { latency: latency * 1e6, p99: None, rate })
            }
            Peer::Aeron => aeron::measure(path, bytes, count),
        }
    }

    /// Instructions of one end for a message sent and one received; `None` if they cannot be told from those of an idle one.
    pub fn instructions(
        self,
        path: &Path,
        bytes: u32,
        few: u32,
        place: &std::path::Path,
    ) -> Result<Option<f64>> {
        let file = place.join("count");
        let counted = |command: &dyn Fn(usize) -> Command| {
            both(path, |end| if end == 0 { under(&command(0), &file) } else { command(end) })
        };
        // Aeron's driver looks for datagrams all the time, whether there are any or not.
        if self == Peer::Aeron {
            return Ok(None);
        }
        let per_message = count::per_message(few, |count| {
            match self {
                Peer::Fabric(provider) => {
                    counted(&|end| fabric(path, provider, bytes, count, end)).map(drop)
                }
                Peer::Ucx => counted(&|end| ucx(path, "tag_lat", bytes, count, &[], end)).map(drop),
                Peer::Mpi => mpi(path, bytes, count, &[], Some(&file)).map(drop),
                Peer::Aeron => Ok(()),
            }?;
            count::counted(&file)
        });
        // Who looks in vain for longer in the shorter run has told nothing.
        per_message.map(|found| (found > 0.0).then_some(found))
    }
}

/// Starts the second end, then the first until it finds the second, and gives the first one's output.
pub fn both(path: &Path, command: impl Fn(usize) -> Command) -> Result<String> {
    let server = start(path.at(1, &command(1)))?;
    let end = Instant::now() + PATIENCE;
    loop {
        sleep(Duration::from_millis(300));
        let output = path.at(0, &command(0)).output()?;
        if output.status.success() {
            drop(server);
            return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
        }
        if Instant::now() > end {
            let said = String::from_utf8_lossy(&output.stderr).into_owned();
            drop(server);
            bail!("the client does not reach its server: {said}");
        }
    }
}

/// A column of the last line that has it as a number.
fn column(told: &str, index: usize) -> Result<f64> {
    let number = |line: &str| line.split_whitespace().nth(index)?.parse().ok();
    told.lines().rev().find_map(number).with_context(|| format!("no figure was found in: {told}"))
}

fn fabric(path: &Path, provider: &str, bytes: u32, count: u32, end: usize) -> Command {
    let mut command = Command::new("fi_pingpong");
    for setting in ["FI_UDP_IFACE", "FI_TCP_IFACE"] {
        command.env(setting, path.device(end));
    }
    command.args(["-p", provider, "-e", "rdm", "-I", &count.to_string()]);
    command.args(["-S", &bytes.to_string()]).args(server(path, end));
    command
}

/// The address that only the first end is told.
fn server(path: &Path, end: usize) -> Option<String> {
    (end == 0).then(|| path.address(1).to_string())
}

fn ucx(path: &Path, test: &str, bytes: u32, count: u32, more: &[&str], end: usize) -> Command {
    let mut command = Command::new("ucx_perftest");
    command.env("UCX_TLS", "tcp,self").env("UCX_NET_DEVICES", path.device(end));
    command.args(server(path, end));
    command.args(["-t", test, "-s", &bytes.to_string(), "-n", &count.to_string()]);
    command.args(["-w", "200", "-f", "-p", UCX_PORT]).args(more);
    command
}

/// NetPIPE's two figures, mebibits per second and seconds for a message one way.
fn mpi(
    path: &Path,
    bytes: u32,
    count: u32,
    more: &[&str],
    file: Option<&std::path::Path>,
) -> Result<(f64, f64)> {
    let place = tempfile::tempdir()?;
    let out = place.path().join("out");
    let program = || {
        let mut command = Command::new("NPopenmpi");
        let size = bytes.to_string();
        command.args(["-l", &size, "-u", &size, "-p", "0", "-n", &count.to_string(), "-o"]);
        command.arg(&out).args(more);
        command
    };
    let first = file.map_or_else(program, |file| under(&program(), file));
    let mut all = Command::new("mpirun");
    // The second end reaches its launcher, which is at the first, over the path too.
    all.env("PMIX_MCA_ptl_tcp_if_include", path.device(0));
    all.env("PMIX_MCA_ptl_tcp_remote_connections", "1");
    all.args(["--allow-run-as-root", "--oversubscribe", "--mca", "btl", "tcp,self"]);
    all.args(["--mca", "btl_tcp_if_include", path.network()]);
    // The first end is where its launcher is.
    for (end, command) in [first, path.at(1, &program())].iter().enumerate() {
        all.args((end > 0).then_some(":")).args(["-n", "1"]);
        all.arg(command.get_program()).args(command.get_args());
    }
    finish(start(path.at(0, &all))?, "mpirun")?;
    let told = std::fs::read_to_string(&out)?;
    Ok((column(&told, 1)?, column(&told, 2)?))
}

/// The same command with its instructions counted into a file.
fn under(plain: &Command, file: &std::path::Path) -> Command {
    let mut command = count::counting(&PathBuf::from(plain.get_program()), file, None);
    command.args(plain.get_args());
    for (name, value) in plain.get_envs() {
        command.env(name, value.unwrap_or_default());
    }
    command
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As `ucx_perftest` and `fi_pingpong` print them.
    #[test]
    fn figures_are_found_in_what_programs_print() {
        let ucx = "Final:   2000  4.874  6.056  6.056  0.63  0.63  165125  165125\n";
        assert_eq!(column(ucx, 2).unwrap(), 4.874);
        let fabric = "bytes   #sent   #ack     total       time     MB/sec    usec/xfer   Mxfers/sec\n\
                      4       2k      =2k      15k         0.08s      0.20      19.92       0.05\n";
        assert_eq!(column(fabric, 6).unwrap(), 19.92);
        assert!(column("nothing", 3).is_err());
    }
}
