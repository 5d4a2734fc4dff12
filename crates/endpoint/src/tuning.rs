//! The kernel's TCP as a scenario's parameters ask for it, and how it differs.

use crate::EndpointError;
use crate::error::Doing;
use rustix::io::Errno;
use rustix::net::sockopt;
use std::fs;
use std::net::Ipv4Addr;
use std::os::fd::OwnedFd;
use std::sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use trunkline_core::Span;
use trunkline_netns::{Namespace, SocketOption, TcpInfo, set_socket_option, socket_option};
use trunkline_scenario::TcpSettings;
use trunkline_transport::tcp::congestion::Algorithm;

/// Bytes of IPv4's and TCP's headers without options.
const HEADERS: u32 = 20 + 20;
/// The largest value of `TCP_MAXSEG` (`MAX_TCP_WINDOW` of `net/tcp.h`).
const MOST_SEGMENT: u32 = 32_767;
/// The smallest value (`TCP_MIN_MSS` there). Smaller segments come about by the route's metrics alone.
const LEAST_OPTION: u32 = 88;
/// The smallest segment that the kernel sends (`tcp_min_snd_mss`, which cannot be lower).
const LEAST_SEGMENT: u32 = 48;
/// The largest window without scaling (RFC 9293 §3.1).
const UNSCALED: u64 = 65_535;

/// What connections agree upon at their beginning is set for a namespace: those that find it set as they want
/// it are made at the same time, one for which it has to be changed alone.
static CONNECTING: RwLock<()> = RwLock::new(());

/// Waits until nobody changes a namespace's settings, and keeps them from being changed.
pub(crate) fn share() -> RwLockReadGuard<'static, ()> {
    CONNECTING.read().unwrap_or_else(PoisonError::into_inner)
}

/// Waits until no other connection is being made, and keeps others from being made.
pub(crate) fn hold() -> RwLockWriteGuard<'static, ()> {
    CONNECTING.write().unwrap_or_else(PoisonError::into_inner)
}

/// The settings of one end of a connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Tuning {
    congestion: &'static str,
    segment: u32,
    window: Option<i32>,
    initial_window: Option<u32>,
    min_rto: Option<Span>,
    delayed_ack: Option<Span>,
    sack: bool,
    timestamps: bool,
    window_scaling: bool,
    ecn: bool,
    notes: Vec<String>,
}

impl Tuning {
    /// The tuning that `settings` ask for if the largest packet is of `mtu` bytes.
    pub fn new(settings: &TcpSettings, mtu: u32) -> Result<Tuning, EndpointError> {
        let old = settings.profile == "bsd-reno";
        let window_scaling = settings.window_scaling.unwrap_or(!old);
        let window = settings.window.map(|window| window.bytes());
        let window = window.or((!window_scaling).then_some(UNSCALED));
        let most = if window_scaling { i32::MAX as u64 } else { UNSCALED };
        let segment = settings.mss.unwrap_or(mtu.saturating_sub(HEADERS));
        if segment < LEAST_SEGMENT {
            return Err(EndpointError::Transport(format!(
                "the kernel's TCP sends no segments of {segment} bytes: give mss {LEAST_SEGMENT} or more, or mtu {} or more",
                LEAST_SEGMENT + HEADERS
            )));
        }
        Ok(Tuning {
            congestion: congestion(settings)?,
            segment: segment.min(MOST_SEGMENT),
            window: window.map(|window| window.min(most) as i32),
            initial_window: settings.initial_window,
            min_rto: settings.min_rto,
            delayed_ack: settings.delayed_ack,
            sack: settings.sack.unwrap_or(!old),
            timestamps: settings.timestamps.unwrap_or(!old),
            window_scaling,
            ecn: settings.offers_ecn().unwrap_or(false),
            notes: notes(settings),
        })
    }

    /// Notes for the reader.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// The window, if it is a stated one, in bytes.
    pub fn window(&self) -> Option<u64> {
        self.window.and_then(|window| window.try_into().ok())
    }

    /// Sets everything that is a socket's own, before it is connected or listens.
    pub fn apply(&self, socket: &OwnedFd, address: Ipv4Addr) -> Result<(), EndpointError> {
        sockopt::set_tcp_congestion(socket, self.congestion)
            .map_err(|error| EndpointError::Transport(refused(self.congestion, error)))?;
        sockopt::set_tcp_nodelay(socket, true).doing("send small segments at once", address)?;
        if self.segment >= LEAST_OPTION {
            set_socket_option(socket, SocketOption::MaxSegment, self.segment as i32)
                .doing("set the segment size", address)?;
        }
        if let Some(window) = self.window {
            // The kernel doubles it. With less, packets that fill their buffers badly would close the window
            // before it is used up.
            let buffer = (window as usize).saturating_mul(2);
            sockopt::set_socket_recv_buffer_size_force(socket, buffer)
                .or_else(|_| sockopt::set_socket_recv_buffer_size(socket, buffer))
                .doing("set the receive buffer", address)?;
            set_socket_option(socket, SocketOption::WindowClamp, window)
                .doing("set the window", address)?;
        }
        self.set_timers(socket);
        Ok(())
    }

    /// The timers that the kernel lets be set, within its own bounds; [`notes`] tells of the others.
    fn set_timers(&self, socket: &OwnedFd) {
        for (option, span) in [
            (SocketOption::RtoMinMicros, self.min_rto),
            (SocketOption::DelayedAckMicros, self.delayed_ack.filter(|span| !span.is_zero())),
        ] {
            let Some(span) = span else { continue };
            let micros = i32::try_from(span.as_nanos() / 1000).unwrap_or(i32::MAX);
            if let Err(error) = set_socket_option(socket, option, micros) {
                tracing::debug!(%error, ?option, micros, "the kernel keeps its own timer");
            }
        }
    }

    /// The options to agree upon with the other end when a connection begins: SACK, time stamps, window scaling,
    /// ECN.
    pub fn agreement(&self) -> [bool; 4] {
        [self.sack, self.timestamps, self.window_scaling, self.ecn]
    }

    /// To be called after each read. The kernel forgets the window whenever it learns how well packets fill
    /// their buffers (`tcp_measure_rcv_mss`, since Linux 6.10), and leaves quick acknowledging by itself.
    pub fn after_read(&self, socket: &OwnedFd) {
        if let Some(window) = self.window
            && socket_option(socket, SocketOption::WindowClamp).is_ok_and(|clamp| clamp != window)
        {
            // It was accepted when the socket was opened.
            let _ = set_socket_option(socket, SocketOption::WindowClamp, window);
        }
        if self.delayed_ack.is_some_and(Span::is_zero) {
            // At worst this acknowledgement is held back.
            let _ = sockopt::set_tcp_quickack(socket, true);
        }
    }

    /// The settings of a namespace that a connection's beginning depends on.
    fn settings(&self) -> [(&'static str, &'static str); 5] {
        let flag = |on: bool| if on { "1" } else { "0" };
        [
            ("tcp_sack", flag(self.sack)),
            ("tcp_timestamps", flag(self.timestamps)),
            ("tcp_window_scaling", flag(self.window_scaling)),
            ("tcp_ecn", flag(self.ecn)),
            // What one connection has learnt of the path is not for the next one.
            ("tcp_no_metrics_save", "1"),
        ]
    }

    /// Whether all that a connection agrees upon is set in the namespace as wanted.
    pub fn finds_all_set(&self, namespace: &Namespace) -> Result<bool, EndpointError> {
        let wanted = self.settings();
        Ok(namespace.run(|| {
            wanted.iter().all(|(setting, value)| {
                fs::read_to_string(path(setting)).is_ok_and(|found| found.trim_end() == *value)
            })
        })?)
    }

    /// Sets what a connection agrees upon at its beginning in the namespace of the end, until the guard is
    /// dropped.
    pub fn for_connecting(&self, namespace: &Namespace) -> Result<Restore, EndpointError> {
        let wanted = self.settings();
        let before = namespace.run(|| change(&wanted))?;
        let before = before.map_err(|(setting, error)| {
            let reason = format!("cannot set net/ipv4/{setting} for TCP: {error}; run as root");
            EndpointError::Transport(reason)
        })?;
        Ok(Restore { namespace: namespace.clone(), before })
    }

    /// Notes on what was agreed upon otherwise than wanted, because of the other end or the kernel.
    pub fn disagreements(&self, info: &TcpInfo) -> Vec<String> {
        let pairs = [
            ("SACK", self.sack, info.sack()),
            ("time stamps", self.timestamps, info.timestamps()),
            ("window scaling", self.window_scaling, info.window_scaling()),
            ("ECN", self.ecn, info.ecn()),
        ];
        let differ = pairs.into_iter().filter(|(_, wanted, agreed)| wanted != agreed);
        let text = |name| format!("the kernel's TCP did not agree upon {name} as asked");
        let notes = differ.map(|(name, ..)| text(name));
        let rto = Span::from_micros(info.rto_micros.into());
        let short = self.min_rto.filter(|&least| rto < least);
        let short =
            short.map(|least| format!("the kernel's time-out was {rto}, not {least} at least"));
        notes.chain(short).collect()
    }

    /// A note if a connection that has just been made begins with another window than wanted.
    pub fn differs_at_first(&self, info: &TcpInfo) -> Option<String> {
        let (wanted, found) = (self.initial_window?, info.congestion_window);
        let text = || format!("the kernel's TCP begins with {found} segments, not with {wanted}");
        (wanted != found).then(text)
    }

    /// Adds what a reader has to know.
    pub fn note(&mut self, text: Option<String>) {
        self.notes.extend(text);
    }
}

fn path(setting: &str) -> String {
    format!("/proc/sys/net/ipv4/{setting}")
}

/// Writes settings of the calling thread's namespace; what they were before.
fn change(wanted: &[(&'static str, &str)]) -> Result<Vec<(&'static str, String)>, Refusal> {
    let mut before = Vec::new();
    for &(setting, value) in wanted {
        let old = fs::read_to_string(path(setting)).map_err(|error| (setting, error))?;
        fs::write(path(setting), value).map_err(|error| (setting, error))?;
        before.push((setting, old));
    }
    Ok(before)
}

type Refusal = (&'static str, std::io::Error);

/// Gives a namespace its settings back.
#[derive(Debug)]
pub(crate) struct Restore {
    namespace: Namespace,
    before: Vec<(&'static str, String)>,
}

impl Drop for Restore {
    fn drop(&mut self) {
        let before: Vec<(&'static str, &str)> =
            self.before.iter().map(|(setting, value)| (*setting, value.trim_end())).collect();
        // The metrics of this laboratory's connections are never of use.
        let back = before.into_iter().filter(|(setting, _)| *setting != "tcp_no_metrics_save");
        let back: Vec<_> = back.collect();
        if !matches!(self.namespace.run(|| change(&back)), Ok(Ok(_))) {
            tracing::warn!("TCP's settings in a laboratory namespace were not restored");
        }
    }
}

/// The kernel's module for the congestion control asked for, or the profile's.
fn congestion(settings: &TcpSettings) -> Result<&'static str, EndpointError> {
    let by_profile = if settings.profile == "linux" { "cubic" } else { "reno" };
    let name = settings.congestion.as_deref().unwrap_or(by_profile);
    let kind: Algorithm =
        name.parse().map_err(|error| EndpointError::Transport(format!("{error}")))?;
    kind.entry().kernel.ok_or_else(|| EndpointError::Transport(without(name)))
}

/// The reason why the kernel's TCP cannot have the congestion control `name`, and those it can have.
fn without(name: &str) -> String {
    let known = Algorithm::ALL.iter().filter(|kind| kind.entry().kernel.is_some());
    let known: Vec<&str> = known.map(|kind| kind.name()).collect();
    format!(
        "the kernel's TCP has no congestion control '{name}': use one of {}, or the simulator",
        known.join(", ")
    )
}

/// The reason why the kernel did not take a congestion control that it could have.
fn refused(module: &str, error: Errno) -> String {
    match error {
        Errno::NOENT => format!(
            "this kernel offers no congestion control '{module}': load it (modprobe tcp_{module}), use another one, or \
             the simulator"
        ),
        Errno::PERM => format!(
            "the congestion control '{module}' is not for ordinary users: run as root, or add it to \
             net.ipv4.tcp_allowed_congestion_control"
        ),
        error => format!("cannot choose the congestion control '{module}': {error}"),
    }
}

/// Notes on what the kernel does otherwise than asked.
fn notes(settings: &TcpSettings) -> Vec<String> {
    let mut notes = vec![
        "TCP is the kernel's: where its time went is one step, for its segments carry no record"
            .into(),
    ];
    if settings.profile == "bsd-reno" {
        notes.push(
            "TCP is the kernel's: of the bsd-reno profile it takes the options and the window, \
             not the 500 ms clock"
                .into(),
        );
    }
    // The first window and a shortest time-out of any length are the route's, whoever builds the hosts.
    let bound = Span::from_millis(200);
    if let Some(span) = settings.delayed_ack.filter(|&span| span > bound) {
        notes.push(format!("the kernel delays acknowledgements for at most {bound}, not {span}"));
    }
    notes
}

#[cfg(test)]
mod tests {
    use super::*;
    use trunkline_core::Size;

    #[test]
    fn profiles_and_names_become_modules_of_the_kernel() {
        let of = |profile: &str, congestion: Option<&str>| {
            let congestion = congestion.map(Into::into);
            let settings =
                TcpSettings { profile: profile.into(), congestion, ..Default::default() };
            Tuning::new(&settings, 1500).map(|tuning| tuning.congestion)
        };
        assert_eq!(of("linux", None).unwrap(), "cubic");
        assert_eq!(of("trunkline", None).unwrap(), "reno");
        assert_eq!(of("linux", Some("newreno")).unwrap(), "reno");
        assert_eq!(of("bsd-reno", Some("bbr")).unwrap(), "bbr");
        assert_eq!(of("linux", Some("dctcp")).unwrap(), "dctcp");
        let refused = of("linux", Some("constant-rate")).unwrap_err().to_string();
        assert!(refused.contains("constant-rate") && !refused.contains('\n'), "{refused}");
    }

    /// A module that is not there is refused with what to do, each other failure with its cause.
    #[test]
    fn a_congestion_control_that_the_kernel_lacks_is_refused_with_the_remedy() {
        for (error, remedy) in [
            (Errno::NOENT, "modprobe tcp_dctcp"),
            (Errno::PERM, "net.ipv4.tcp_allowed_congestion_control"),
            (Errno::INVAL, "cannot choose"),
        ] {
            let text = super::refused("dctcp", error);
            assert!(text.contains(remedy) && text.contains("'dctcp'"), "{text}");
            assert!(!text.contains('\n') && !text.contains("  "), "{text}");
        }
    }

    #[test]
    fn a_congestion_control_that_lives_on_marks_offers_them() {
        let settings = TcpSettings { congestion: Some("dctcp".into()), ..Default::default() };
        assert!(Tuning::new(&settings, 1500).unwrap().ecn);
        assert!(!Tuning::new(&TcpSettings::default(), 1500).unwrap().ecn);
    }

    #[test]
    fn the_old_profile_has_no_options_and_a_window_that_needs_none() {
        let settings = TcpSettings { profile: "bsd-reno".into(), ..Default::default() };
        let tuning = Tuning::new(&settings, 576).unwrap();
        assert!(!tuning.sack && !tuning.timestamps && !tuning.window_scaling);
        assert_eq!((tuning.window, tuning.segment), (Some(65_535), 536));
        let large = TcpSettings { window: Some(Size::from_bytes(1 << 20)), ..settings };
        assert_eq!(Tuning::new(&large, 576).unwrap().window, Some(65_535));
    }

    #[test]
    fn a_segment_that_the_kernel_does_not_take_is_refused() {
        let settings = TcpSettings { mss: Some(47), ..Default::default() };
        let small = Tuning::new(&TcpSettings::default(), 87);
        for refused in [Tuning::new(&settings, 1500), small] {
            let refused = refused.unwrap_err().to_string();
            let parts = ["segments of 47 bytes", "mss 48", "mtu 88"];
            assert!(parts.iter().all(|part| refused.contains(part)), "{refused}");
        }
        assert!(Tuning::new(&TcpSettings { mss: Some(48), ..settings }, 1500).is_ok());
        assert_eq!(Tuning::new(&TcpSettings::default(), 65_535).unwrap().segment, MOST_SEGMENT);
    }

    #[test]
    fn what_cannot_be_had_is_said() {
        let delayed_ack = Some(Span::from_millis(500));
        let settings = TcpSettings { delayed_ack, ..Default::default() };
        let notes = Tuning::new(&settings, 1500).unwrap().notes;
        assert_eq!(notes.len(), 2);
        assert!(notes[1].contains("not 500ms"), "{notes:?}");
    }

    #[test]
    fn what_the_kernel_has_made_of_it_is_compared() {
        let settings = TcpSettings {
            initial_window: Some(1),
            min_rto: Some(Span::from_secs(1)),
            ..Default::default()
        };
        let tuning = Tuning::new(&settings, 1500).unwrap();
        let (rto_micros, congestion_window) = (204_000, 10);
        let found = TcpInfo { options: 7, rto_micros, congestion_window, ..TcpInfo::default() };
        let first = tuning.differs_at_first(&found).unwrap();
        assert!(first.contains("10 segments, not with 1"), "{first}");
        assert!(tuning.disagreements(&found)[0].contains("204ms"));
        let right = TcpInfo { rto_micros: 1_000_000, congestion_window: 1, ..found };
        assert_eq!((tuning.differs_at_first(&right), tuning.disagreements(&right)), (None, vec![]));
    }
}
