//! `trunkline probe rtt --fit`: what the path seems to be, in words and as a scenario.

use super::sinks::{self, millis};
use super::tried;
use crate::failure::Failure;
use crate::files;
use std::path::Path;
use trunkline_fit::{CannotTell, Fitted, Over, Sweep, Trial, Waits, Wanted};
use trunkline_probe::client::fitting::Found;
use trunkline_probe::client::rtt::RttResult;
use trunkline_probe::result::{SegmentFigures, ToldBy};
use trunkline_probe::wire::datagram;
use trunkline_probe::wire::message::Transport;

/// Messages of each size in the scenario.
const REPEAT: u32 = 10;
/// The part of a round trip by which a scenario must be off to be no description of the path.
const STRANGE: f64 = 0.05;

/// The sweep of a fit over a transport, before anything is known.
pub fn sweep(transport: Transport) -> Sweep {
    let largest = match transport {
        Transport::Udp => datagram::MOST_USER,
        Transport::Tcp | Transport::Urp => Sweep::default().largest,
    };
    Sweep { largest, ..Sweep::default() }
}

/// Writes the scenario, and returns what the path seems to be, in lines.
pub fn write(result: &RttResult, found: &Found, file: &Path) -> Result<Vec<String>, Failure> {
    let mut lines = sayings(result, found);
    let wanted = Wanted {
        name: "fitted".into(),
        about: format!(
            "measured to {} by {}, {} messages",
            result.server, result.transport, result.sent
        ),
        sizes: sizes(result, found),
        repeat: REPEAT,
        reply: 0,
        over: found.over.clone(),
    };
    let written = found.fit.scenario(&wanted).map_err(Failure::failed)?;
    let trials = tried::trials(&written.text, result, found).map_err(Failure::failed)?;
    let (written, worst) = written.tried(&trials);
    files::write(Some(file), |out| out.write_all(written.text.as_bytes()))?;
    lines.push(format!(
        "{} reproduces the round trips within {} ms",
        file.display(),
        millis(written.error)
    ));
    let strange = worst.filter(|worst| worst.off() > STRANGE * worst.median);
    lines.extend(strange.as_ref().map(told));
    Ok(lines)
}

/// That the scenario is less like the path than the fit expected.
fn told(worst: &Trial) -> String {
    format!(
        "WARNING: {} bytes take {} ms in the scenario and took {} to {} ms: something else than a line, a \
         window and noise may delay longer messages here, such as a token bucket or other traffic; \
         measure again, or describe the path by hand",
        worst.size,
        millis(worst.simulated),
        millis(worst.quick),
        millis(worst.median)
    )
}

/// The sizes measured, as far as the fit describes them.
fn sizes(result: &RttResult, found: &Found) -> Vec<u32> {
    let all = result.sizes.iter().map(|size| size.size_octets + found.head);
    let described = found.described();
    all.filter(|size| *size <= described).collect()
}

fn figure(what: &str, figure: &Result<Fitted, CannotTell>, show: fn(f64) -> String) -> String {
    match figure {
        Ok(it) => {
            let (low, high) = (show(it.interval.low), show(it.interval.high));
            format!("{what}: {} ({low} to {high})", show(it.value))
        }
        Err(why) => format!("{what}: {why}"),
    }
}

fn sayings(result: &RttResult, found: &Found) -> Vec<String> {
    let ms = |value: f64| format!("{} ms", millis(value));
    let fit = &found.fit;
    let mut lines = vec![window(found)];
    lines.extend(initial(found));
    lines.extend(result.path.as_ref().and_then(|path| path.segment).map(|it| segment(found, &it)));
    lines.extend(rates(found));
    lines.extend([
        figure("one-way propagation, half of both", &fit.delay, ms),
        figure("both hosts, for each message", &fit.per_message, ms),
        figure("each packet besides its bytes", &fit.per_packet, ms),
    ]);
    lines
}

/// One rate for both ways, and that of each if they are not alike.
fn rates(found: &Found) -> Vec<String> {
    let Some([up, down]) = found.fit.known.line.and_then(|line| line.rates()) else {
        return vec![figure("rate", &found.fit.rate, sinks::rate)];
    };
    vec![
        figure("rate up", &Ok(up), sinks::rate),
        figure("rate down", &Ok(down), sinks::rate),
        figure("rate, if it were one for both ways", &found.fit.rate, sinks::rate),
    ]
}

fn window(found: &Found) -> String {
    let bytes = match &found.fit.window {
        Err(why) => return format!("window: {why}"),
        Ok(bytes) => bytes,
    };
    let with_head = match found.head {
        0 => String::new(),
        head => format!(", with the head of {head} bytes of each message"),
    };
    let ways = match found.fit.known.waits {
        Waits::Out => "; only messages wait for it, answers do not",
        Waits::Back => "; only answers wait for it, messages do not",
        Waits::AllWays | Waits::Never => "",
    };
    format!("window: {bytes} bytes{with_head}{ways}")
}

fn initial(found: &Found) -> Option<String> {
    let Over::Tcp(tcp) = &found.over else { return None };
    Some(match found.initial.as_ref()? {
        Err(why) => format!("initial window: {why}"),
        Ok(bytes) => match tcp.initial {
            Some(1) => format!("initial window: {bytes} bytes, 1 segment of {}", tcp.congestion),
            Some(count) => {
                format!("initial window: {bytes} bytes, {count} segments of {}", tcp.congestion)
            }
            None => format!(
                "initial window: {bytes} bytes, which are no whole segments: what the receiver of a \
                 fresh connection has room for"
            ),
        },
    })
}

fn segment(found: &Found, it: &SegmentFigures) -> String {
    let (what, says) = match &found.over {
        Over::Udp(_) => ("largest message in one packet", "IP_MTU"),
        _ => ("segment", "TCP_INFO"),
    };
    let jump = it.jump_ms.map(|jump| {
        let error =
            it.jump_error_ms.map_or(String::new(), |error| format!(" ±{}", millis(2.0 * error)));
        format!("{}{error} ms", millis(jump))
    });
    let how = match (it.told_by, jump) {
        (ToldBy::Measurement, Some(jump)) => format!("measured: one byte more takes {jump} longer"),
        (_, Some(jump)) => {
            format!("not measured, the socket says so ({says}); one byte more takes {jump} longer")
        }
        (_, None) => format!("not measured, the socket says so ({says})"),
    };
    format!("{what}: {} bytes, {how}", it.octets)
}
