//! `trunkline probe`: measurement of a real path, with a `trunkline serve` at its other end.

mod bulk;
mod fitted;
mod load;
mod rtt;
mod sinks;
mod target;
mod transfers;
mod tried;

use crate::failure::Failure;
use clap::Subcommand;
pub use rtt::Window;

/// Measure a real path to a host that runs `trunkline serve`.
#[derive(clap::Args)]
#[command(subcommand_required = true, arg_required_else_help = true, after_help = EXAMPLES)]
pub struct Args {
    #[command(subcommand)]
    what: What,
}

const EXAMPLES: &str = "\
Examples:
  trunkline probe rtt lab7 --key-file probe.key
  trunkline probe bulk lab7 --key-file probe.key --direction both --duration 10s
  trunkline probe load lab7 --key-file probe.key --rrul --flent load.flent.gz";

#[derive(Subcommand)]
enum What {
    /// Round trips of messages of many sizes: delay, jitter, loss by direction
    Rtt(rtt::Args),
    /// Bulk transfers: goodput at the receiver, retransmissions, loss
    Bulk(bulk::Args),
    /// Delay under load: messages before, beside and after bulk transfers
    Load(load::Args),
}

/// Measures.
pub fn run(args: &Args) -> Result<(), Failure> {
    match &args.what {
        What::Rtt(args) => rtt::run(args),
        What::Bulk(args) => bulk::run(args),
        What::Load(args) => load::run(args),
    }
}
