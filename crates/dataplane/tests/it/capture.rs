//! Captures, read back by others: the `pcap-file` crate, tshark and tcpdump.

use pcap_file::pcapng::blocks::enhanced_packet::EnhancedPacketOption;
use pcap_file::pcapng::blocks::interface_description::InterfaceDescriptionOption;
use pcap_file::pcapng::blocks::interface_statistics::InterfaceStatisticsOption;
use pcap_file::pcapng::blocks::section_header::SectionHeaderOption;
use pcap_file::pcapng::{Block, PcapNgReader};
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::{Duration, Instant};
use trunkline_core::DropCause;
use trunkline_dataplane::capture::{
    Capture, CaptureError, CaptureFilter, CapturePlan, CaptureSummary, CaptureTap,
};
use trunkline_skip::{installed, skipped};

/// 14 November 2023, with nanoseconds that a rounding would show.
const START: u64 = 1_700_000_000_123_456_789;

/// One path without a name.
fn one_path(filter: CaptureFilter) -> CapturePlan {
    CapturePlan::of_paths(&[String::new()], filter)
}

fn both() -> CapturePlan {
    one_path(CaptureFilter::Both)
}

/// The contents of a file, in plain words.
#[derive(Debug, Default)]
struct Contents {
    application: String,
    command_line: String,
    /// Name, description, power of ten of the clock's unit, longest part kept.
    interfaces: Vec<(String, String, u8, u32)>,
    packets: Vec<Seen>,
    /// Received, missed, comment.
    statistics: Vec<(u64, u64, String)>,
}

#[derive(Debug, PartialEq, Eq)]
struct Seen {
    interface: usize,
    nanos: u128,
    data: Vec<u8>,
    length: u32,
    flags: Option<u32>,
    comment: Option<String>,
}

fn read(path: &Path) -> Contents {
    read_from(File::open(path).unwrap())
}

fn read_from(source: impl Read) -> Contents {
    let mut reader = PcapNgReader::new(source).unwrap();
    let mut contents = Contents::default();
    for option in &reader.section().options {
        match option {
            SectionHeaderOption::Comment(text) => contents.command_line = text.to_string(),
            SectionHeaderOption::UserApplication(text) => contents.application = text.to_string(),
            other => panic!("unexpected {other:?}"),
        }
    }
    while let Some(block) = reader.next_block() {
        contents.take(block.unwrap());
    }
    contents
}

impl Contents {
    fn take(&mut self, block: Block<'_>) {
        match block {
            Block::InterfaceDescription(block) => {
                assert_eq!(u32::from(block.linktype), 1, "Ethernet");
                self.interfaces.push(described(&block.options, block.snaplen));
            }
            Block::EnhancedPacket(block) => {
                let mut seen = Seen {
                    interface: block.interface_id as usize,
                    nanos: block.timestamp.as_nanos(),
                    data: block.data.to_vec(),
                    length: block.original_len,
                    flags: None,
                    comment: None,
                };
                for option in block.options {
                    match option {
                        EnhancedPacketOption::Comment(text) => seen.comment = Some(text.into()),
                        EnhancedPacketOption::Flags(flags) => seen.flags = Some(flags),
                        other => panic!("unexpected {other:?}"),
                    }
                }
                self.packets.push(seen);
            }
            Block::InterfaceStatistics(block) => self.statistics.push(counted(&block.options)),
            other => panic!("unexpected {other:?}"),
        }
    }
}

fn described(
    options: &[InterfaceDescriptionOption<'_>],
    snaplen: u32,
) -> (String, String, u8, u32) {
    let mut all = (String::new(), String::new(), 6, snaplen);
    for option in options {
        match option {
            InterfaceDescriptionOption::IfName(text) => all.0 = text.to_string(),
            InterfaceDescriptionOption::IfDescription(text) => all.1 = text.to_string(),
            InterfaceDescriptionOption::IfTsResol(power) => all.2 = *power,
            other => panic!("unexpected {other:?}"),
        }
    }
    all
}

fn counted(options: &[InterfaceStatisticsOption<'_>]) -> (u64, u64, String) {
    let mut all = (u64::MAX, u64::MAX, String::new());
    for option in options {
        match option {
            InterfaceStatisticsOption::IsbIfRecv(count) => all.0 = *count,
            InterfaceStatisticsOption::IsbIfDrop(count) => all.1 = *count,
            InterfaceStatisticsOption::Comment(text) => all.2 = text.to_string(),
            _ => {}
        }
    }
    all
}

/// An Ethernet frame of an experimental type, `size` bytes long, that starts with `number`.
fn frame(number: u32, size: usize) -> Vec<u8> {
    let mut frame = vec![2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 0x88, 0xB5];
    frame.extend(number.to_be_bytes());
    frame.resize(size, number as u8);
    frame
}

/// One frame each way, and one drop each way.
fn sample(tap: &mut CaptureTap) {
    tap.arrived(0, START, &frame(1, 60));
    tap.arrived(1, START + 1, &frame(2, 61));
    tap.departed(0, START + 10_000_001, &frame(1, 60));
    tap.departed(1, START + 10_000_002, &frame(2, 61));
    tap.dropped(0, START + 3, &frame(3, 62), DropCause::Loss);
    tap.dropped(1, START + 4, &frame(4, 1514), DropCause::QueueLimit);
}

fn captured(path: &Path, filter: CaptureFilter) -> CaptureSummary {
    let command_line = "trunkline shell --delay 10ms -- ping 10.0.0.2";
    let (mut tap, handle) = Capture::start(path, command_line, one_path(filter)).unwrap();
    sample(&mut tap);
    assert_eq!((tap.failed(), handle.failed()), (None, None));
    handle.finish().unwrap()
}

fn passed(interface: usize, after: u128, number: u32, size: usize, flags: u32) -> Seen {
    let (data, length, flags) = (frame(number, size), size as u32, Some(flags));
    Seen { interface, nanos: u128::from(START) + after, data, length, flags, comment: None }
}

fn dropped(after: u128, number: u32, size: usize, comment: &str) -> Seen {
    let seen = passed(2, after, number, size, 0);
    Seen { flags: None, comment: Some(comment.into()), ..seen }
}

#[test]
fn everything_comes_back() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("all.pcapng");
    let summary = captured(&path, CaptureFilter::Both);
    let contents = read(&path);
    assert_eq!(contents.application, concat!("trunkline ", env!("CARGO_PKG_VERSION")));
    assert_eq!(contents.command_line, "trunkline shell --delay 10ms -- ping 10.0.0.2");
    let names: Vec<&str> = contents.interfaces.iter().map(|all| all.0.as_str()).collect();
    assert_eq!(names, ["near", "far", "dropped"]);
    for (name, description, resolution, snaplen) in &contents.interfaces {
        assert!(!description.is_empty(), "{name}");
        assert_eq!((*resolution, *snaplen), (9, 262_144), "{name}");
    }
    let wanted = [
        passed(0, 0, 1, 60, 1),
        passed(1, 1, 2, 61, 1),
        passed(1, 10_000_001, 1, 60, 2),
        passed(0, 10_000_002, 2, 61, 2),
        dropped(3, 3, 62, "dropped: loss (entered at near)"),
        dropped(4, 4, 1514, "dropped: queue-limit (entered at far)"),
    ];
    assert_eq!(contents.packets, wanted);
    assert_eq!(contents.statistics, vec![(2, 0, String::new()); 3]);
    let bytes = path.metadata().unwrap().len();
    assert_eq!(summary, CaptureSummary { written: 6, missed: 0, bytes });
}

#[test]
fn one_end_is_captured_with_the_drops_of_both() {
    let directory = tempfile::tempdir().unwrap();
    for (filter, interface) in [(CaptureFilter::Near, 0), (CaptureFilter::Far, 1)] {
        let path = directory.path().join("one.pcapng");
        assert_eq!(captured(&path, filter).written, 4);
        let seen: Vec<usize> = read(&path).packets.iter().map(|seen| seen.interface).collect();
        assert_eq!(seen, [interface, interface, 2, 2]);
    }
}

#[test]
fn a_frame_beyond_the_longest_part_kept_says_how_long_it_was() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("long.pcapng");
    let (mut tap, handle) = Capture::start(&path, "", both()).unwrap();
    tap.arrived(0, START, &frame(1, 300_000));
    tap.arrived(0, START, &[]);
    handle.finish().unwrap();
    let sizes: Vec<_> =
        read(&path).packets.iter().map(|seen| (seen.data.len(), seen.length)).collect();
    assert_eq!(sizes, [(262_144, 300_000), (0, 0)]);
}

#[test]
fn a_tap_without_a_file_and_a_tap_that_outlives_the_capture_do_nothing() {
    let mut tap = CaptureTap::default();
    sample(&mut tap);
    assert_eq!(tap.failed(), None);
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("ended.pcapng");
    let (mut tap, handle) = Capture::start(&path, "", both()).unwrap();
    handle.finish().unwrap();
    sample(&mut tap);
    assert_eq!(read(&path).packets, []);
}

#[test]
fn a_dropped_handle_still_leaves_a_whole_file() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("dropped.pcapng");
    let (mut tap, handle) = Capture::start(&path, "", both()).unwrap();
    sample(&mut tap);
    drop(handle);
    let contents = read(&path);
    assert_eq!((contents.packets.len(), contents.statistics.len()), (6, 3));
}

/// Who opens a pipe to write waits until somebody reads it: a capture does not.
#[test]
fn a_pipe_that_nobody_reads_is_told() {
    let directory = tempfile::tempdir().unwrap();
    let pipe = directory.path().join("pipe");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let told = Capture::start(&pipe, "", both()).unwrap_err().to_string();
    assert!(told.contains("nobody reads the pipe"), "{told}");
}

/// A pipe that is not emptied holds the writer up for as long as the test wants.
#[test]
fn what_does_not_fit_is_counted_and_said_in_the_file() {
    const COUNT: u32 = 4000;
    let directory = tempfile::tempdir().unwrap();
    let pipe = directory.path().join("pipe");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let mut reader = File::options().read(true).write(true).open(&pipe).unwrap();
    let (mut tap, handle) = Capture::start_with_ring(&pipe, "", both(), 1 << 20).unwrap();
    for number in 0..COUNT {
        tap.arrived(1, START + u64::from(number), &frame(number, 1400));
    }
    let summary = std::thread::scope(|scope| {
        let collected = scope.spawn(|| drain(&mut reader));
        let summary = handle.finish().unwrap();
        let bytes = collected.join().unwrap();
        assert_eq!(bytes.len() as u64, summary.bytes);
        check_overflow(&read_from(&bytes[..]), &summary);
        summary
    });
    assert_eq!(summary.written + summary.missed, u64::from(COUNT));
    assert!(summary.missed > 0 && summary.written > 0, "{summary:?}");
}

/// Reads until nothing has come for a second: this end also holds the pipe open for writing.
fn drain(pipe: &mut File) -> Vec<u8> {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    let mut bytes = Vec::new();
    let mut buffer = vec![0; 1 << 16];
    let second = Timespec { tv_sec: 1, tv_nsec: 0 };
    while poll(&mut [PollFd::new(&*pipe, PollFlags::IN)], Some(&second)).unwrap() > 0 {
        let count = pipe.read(&mut buffer).unwrap();
        bytes.extend_from_slice(&buffer[..count]);
    }
    bytes
}

fn check_overflow(contents: &Contents, summary: &CaptureSummary) {
    assert_eq!(contents.packets.len() as u64, summary.written);
    let (received, missed, comment) = &contents.statistics[1];
    assert_eq!((*received, *missed), (summary.written + summary.missed, summary.missed));
    assert_eq!(*comment, format!("{missed} frames are missing: the disk was too slow"));
    assert_eq!((contents.statistics[0].1, contents.statistics[2].1), (0, 0));
    let stamps: Vec<u128> = contents.packets.iter().map(|seen| seen.nanos).collect();
    assert!(stamps.is_sorted(), "order is kept");
}

#[test]
fn a_file_that_cannot_be_begun_is_refused_at_once() {
    let refusal = |path: &str| Capture::start(Path::new(path), "", both()).map(|_| ()).unwrap_err();
    let full = "cannot write /dev/full: No space left on device; free space or capture elsewhere";
    assert_eq!(refusal("/dev/full").to_string(), full);
    assert!(matches!(refusal("/nowhere/x.pcapng"), CaptureError::Create { .. }));
    let directory = refusal("/").to_string();
    assert!(directory.starts_with("cannot create /: Is a directory;"), "{directory}");
}

const SMALL_DISK: &str = "TRUNKLINE_TEST_SMALL_DISK";

/// Runs itself once more in a mount namespace of its own, in which a disk of 1 MiB is mounted.
#[test]
fn a_disk_that_fills_up_ends_the_capture_and_leaves_whole_blocks() {
    if let Some(directory) = std::env::var_os(SMALL_DISK) {
        return fill(&PathBuf::from(directory).join("full.pcapng"));
    }
    let directory = tempfile::tempdir().unwrap();
    let unshare = || {
        let mut command = Command::new("unshare");
        command.args(["--user", "--map-root-user", "--mount", "sh", "-c"]);
        command
    };
    let mount = format!("mount -t tmpfs -o size=1m tltest {}", directory.path().display());
    if !installed(&["unshare"]) {
        return;
    }
    if !unshare().arg(&mount).output().unwrap().status.success() {
        return skipped("no mount namespace with a small disk can be had here");
    }
    let name = "capture::a_disk_that_fills_up_ends_the_capture_and_leaves_whole_blocks";
    let run = format!("{mount} && exec \"$0\" --exact {name} --nocapture");
    let mut command = unshare();
    let output = command
        .arg(&run)
        .arg(std::env::current_exe().unwrap())
        .env(SMALL_DISK, directory.path())
        .output()
        .unwrap();
    let text = printed(&output);
    assert!(output.status.success() && text.contains("1 passed"), "{text}");
}

fn printed(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
}

fn fill(path: &Path) {
    let (mut tap, handle) = Capture::start(path, "", both()).unwrap();
    // Twice the disk, in frames whose blocks do not end at the ends of pages.
    for number in 0..2000 {
        tap.arrived(0, START, &frame(number, 1021));
    }
    let patience = Instant::now() + Duration::from_secs(20);
    while handle.failed().is_none() && Instant::now() < patience {
        std::thread::sleep(Duration::from_millis(1));
    }
    let wanted = format!(
        "cannot write {}: No space left on device; free space or capture elsewhere",
        path.display()
    );
    assert_eq!(handle.failed().as_ref(), Some(&wanted));
    assert_eq!(tap.failed().as_ref(), Some(&wanted));
    tap.arrived(0, START, &frame(9, 60));
    assert_eq!(handle.finish().unwrap_err().to_string(), wanted);
    let contents = read(path);
    assert!(contents.packets.len() > 500, "{}", contents.packets.len());
    for (number, seen) in contents.packets.iter().enumerate() {
        assert_eq!(seen.data, frame(number as u32, 1021));
    }
}

/// Returns what `program` prints, or `None` and a note if it is not installed.
fn run(program: &str, arguments: &[&str]) -> Option<String> {
    let output = installed(&[program]).then(|| {
        let path = format!("{}:/usr/sbin:/sbin", std::env::var("PATH").unwrap_or_default());
        Command::new(program).args(arguments).env("PATH", path).output().unwrap()
    })?;
    assert!(output.status.success(), "{program}: {}", printed(&output));
    Some(String::from_utf8_lossy(&output.stdout).into_owned())
}

#[test]
fn tshark_reads_it() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("tshark.pcapng");
    captured(&path, CaptureFilter::Both);
    let fields = ["frame.interface_name", "frame.time_epoch", "frame.len", "frame.comment"];
    let path = path.to_str().unwrap();
    let mut arguments = vec!["-n", "-r", path, "-T", "fields", "-E", "separator=|"];
    fields.iter().for_each(|field| arguments.extend(["-e", field]));
    let Some(text) = run("tshark", &arguments) else { return };
    let wanted = "near|1700000000.123456789|60|\n\
                  far|1700000000.123456790|61|\n\
                  far|1700000000.133456790|60|\n\
                  near|1700000000.133456791|61|\n\
                  dropped|1700000000.123456792|62|dropped: loss (entered at near)\n\
                  dropped|1700000000.123456793|1514|dropped: queue-limit (entered at far)\n";
    assert_eq!(text, wanted);
}

#[test]
fn tcpdump_reads_it() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("tcpdump.pcapng");
    captured(&path, CaptureFilter::Both);
    let arguments = ["-n", "-tt", "--nano", "-r", path.to_str().unwrap()];
    let Some(text) = run("tcpdump", &arguments) else { return };
    let stamps: Vec<&str> = text
        .lines()
        .filter(|line| line.starts_with("17"))
        .filter_map(|line| line.split(' ').next())
        .collect();
    assert_eq!(stamps.len(), 6, "{text}");
    assert_eq!((stamps[0], stamps[3]), ("1700000000.123456789", "1700000000.133456791"));
}
