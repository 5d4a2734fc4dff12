//! Aeron over UDP, by the samples of its C client, which `scripts/peers/aeron.sh` builds. Each end has a media driver of its
//! own, which runs in one thread and waits as by Aeron's defaults. Its clients look for messages without ever giving up their
//! processor. On two processors the drivers then had their turns only at the ends of the clients' slices, and a round trip
//! took 13 ms; so the clients have the idle class, which gives way to a driver at once.

use super::path::Path;
use super::peers::{Told, both};
use crate::process::{Owned, start};
use anyhow::{Context, Result};
use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

/// The shortest message that its ping sends: a time stamp.
const SHORTEST: u32 = 8;
/// Octets of a datagram at most, so that 8000 octets go whole, and of the buffer in which a sender is ahead of its driver.
const MTU: &str = "8192";
const TERM: &str = "1m";
/// Messages one way, and their octets, at most: many times what waits in buffers when the last is given away.
const MOST: u64 = 400_000;
const MOST_OCTETS: u64 = 200_000_000;
/// A ping of it for so many of the others, as each may take half a millisecond.
const FEWER: u32 = 5;
/// How long a driver may take to start.
const PATIENCE: Duration = Duration::from_secs(10);

/// A program of Aeron's: beside the build of this one.
pub fn program(name: &str) -> PathBuf {
    let own = std::env::current_exe().unwrap_or_default();
    let target = own.ancestors().nth(2).unwrap_or(&own);
    target.join("peers/aeron/bin").join(name)
}

/// The media drivers of both ends, and where they meet their clients.
struct Drivers {
    place: tempfile::TempDir,
    _both: Vec<Owned>,
}

impl Drivers {
    fn start(path: &Path) -> Result<Drivers> {
        // Their clients meet them in shared memory.
        let place = tempfile::tempdir_in("/dev/shm")?;
        let directory = |end: usize| place.path().join(end.to_string());
        let driver = |end: usize| {
            let mut command = Command::new(program("aeronmd"));
            command.env("AERON_DIR", directory(end)).env("AERON_MTU_LENGTH", MTU);
            command.env("AERON_THREADING_MODE", "SHARED").env("AERON_TERM_BUFFER_LENGTH", TERM);
            start(path.at(end, &command))
        };
        let both = (0..2).map(driver).collect::<Result<_>>()?;
        let begin = Instant::now();
        while (0..2).any(|end| !directory(end).join("cnc.dat").exists()) {
            anyhow::ensure!(begin.elapsed() < PATIENCE, "Aeron's media driver does not start");
            std::thread::sleep(Duration::from_millis(50));
        }
        Ok(Drivers { place, _both: both })
    }

    /// A client at an end.
    fn client(&self, name: &str, end: usize) -> Command {
        let mut command = Command::new("chrt");
        command
            .args(["--idle", "0"])
            .arg(program(name))
            .arg("-p")
            .arg(self.place.path().join(end.to_string()));
        command
    }
}

/// Messages of `bytes` there and back, and one way.
pub fn measure(path: &Path, bytes: u32, count: u32) -> Result<Told> {
    let drivers = Drivers::start(path)?;
    let to = |end: usize, port: u16| format!("aeron:udp?endpoint={}:{port}", path.address(end));
    let size = bytes.max(SHORTEST).to_string();
    let told = both(path, |end| {
        let mut command = drivers.client(if end == 0 { "cping" } else { "cpong" }, end);
        command.args(["-c", &to(1, 20123), "-C", &to(0, 20124)]);
        if end == 0 {
            command.args(["-L", &size, "-m", &(count / FEWER).to_string(), "-w", "50"]);
        }
        command
    })?;
    // The times are of round trips.
    let half = |share: f64| percentile(&told, share).map(|it| it / 2.0);
    let rate = one_way(path, &drivers, &to(1, 20121), bytes.max(SHORTEST))?;
    Ok(Told { latency: half(0.5)?, p99: Some(half(0.99)?), rate: Some(rate) })
}

/// Payload one way in bits per second: what a run of twice as many messages takes longer, since the programs count the time in
/// which they find each other.
fn one_way(path: &Path, drivers: &Drivers, channel: &str, bytes: u32) -> Result<f64> {
    let messages = MOST.min(MOST_OCTETS / u64::from(bytes));
    let bits = |messages: u64| (messages * u64::from(bytes) * 8) as f64;
    let time = |messages: u64| -> Result<f64> {
        let told = both(path, |end| {
            let program = if end == 0 { "streaming_publisher" } else { "rate_subscriber" };
            let mut command = drivers.client(program, end);
            command.args(["-c", channel]);
            if end == 0 {
                command.args(["-L", &bytes.to_string(), "-m", &messages.to_string()]);
            }
            command
        })?;
        Ok(bits(messages) / rate(&told)?)
    };
    Ok(bits(messages) / (time(2 * messages)? - time(messages)?))
}

/// The first value of HdrHistogram's table whose share is at least this.
fn percentile(told: &str, share: f64) -> Result<f64> {
    let row = |line: &str| {
        let mut words = line.split_whitespace().map(str::parse::<f64>);
        Some((words.next()?.ok()?, words.next()?.ok()?))
    };
    let found = told.lines().filter_map(row).find(|it| it.1 >= share);
    found.map(|it| it.0).with_context(|| format!("no percentiles were found in: {told}"))
}

/// Payload in bits per second, of the last line that tells it.
fn rate(told: &str) -> Result<f64> {
    let bytes = |line: &str| {
        let before = line.split(" bytes/sec").next()?;
        before.rsplit([' ', ',']).next()?.parse::<f64>().ok()
    };
    let lines = told.lines().filter(|line| line.contains(" bytes/sec"));
    let last = lines.filter_map(bytes).next_back();
    last.map(|it| it * 8.0).with_context(|| format!("no rate was found in: {told}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As `cping` and `streaming_publisher` print them.
    #[test]
    fn figures_are_found_in_what_samples_print() {
        let ping = "Pinging 10 messages of length 8 bytes\n       Value   Percentile   TotalCount 1/(1-Percentile)\n\n\
                    8.123     0.000000            1         1.00\n   10.500     0.500000            6         2.00\n\
                    31.250     0.990000           10       100.00\n#[Mean    =       11.000, StdDeviation   =  2.000]\n";
        assert_eq!(percentile(ping, 0.5).unwrap(), 10.5);
        assert_eq!(percentile(ping, 0.99).unwrap(), 31.25);
        assert!(percentile("Shutting down...", 0.5).is_err());
        let stream = "Publisher back pressure ratio 0.5\nTotal: 1000ms, 1.25e+05 msgs/sec, 1e+09 bytes/sec, totals 3 messages 9 MB payloads\n";
        assert_eq!(rate(stream).unwrap(), 8e9);
        assert!(rate("Done sending.").is_err());
    }
}
