//! The settings of transfers on the command line.

use super::rtt::Window;
use crate::options::lasting;
use trunkline_core::{Rate, Span};
use trunkline_probe::client::transfer::{Transfer, Ways};
use trunkline_probe::wire::message::Transport;

/// Bulk transfers.
#[derive(clap::Args)]
#[command(next_help_heading = "Transfers")]
pub struct TransferArgs {
    /// Which way: up (to the server), down or both
    #[arg(long, value_name = "WAY", default_value = "up")]
    pub direction: Ways,
    /// Parallel TCP connections each way
    #[arg(long, value_name = "N", default_value_t = 1,
          value_parser = clap::value_parser!(u16).range(1..=64))]
    pub streams: u16,
    /// How long to send and count, after the warm-up; made up to whole intervals
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = lasting)]
    pub duration: Span,
    /// Time left out at the beginning [default: 1s; of load: 2s]
    #[arg(long, value_name = "TIME")]
    pub warmup: Option<Span>,
    /// TCP: the congestion control of both ends [default: the system's]
    #[arg(long, value_name = "NAME")]
    pub congestion: Option<String>,
    /// Rate in bits per second: of the datagrams' payload (required), or of TCP's user bytes
    #[arg(long, value_name = "RATE")]
    pub rate: Option<Rate>,
    /// URP: octets of a block, and blocks outstanding
    #[arg(long, value_name = "BLOCKxN", default_value = "1024x7")]
    pub window: Window,
}

impl TransferArgs {
    /// The transfer, counted in these intervals.
    pub fn plan(&self, transport: Transport, size: Option<u32>, interval: Span) -> Transfer {
        Transfer {
            transport,
            streams: self.streams,
            size,
            rate: self.rate,
            duration: self.duration,
            interval,
            congestion: self.congestion.clone(),
            window: (self.window.0, self.window.1),
        }
    }
}
