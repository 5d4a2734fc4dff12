//! `trunkline-bench`: what the emulator costs on this machine, as ratios within one run.

mod figure;
mod flood;
mod gate;
mod loops;
mod machine;
mod parts;
mod throughput;

use anyhow::Result;
use std::time::Duration;

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().collect();
    if arguments.get(1).is_some_and(|it| it == "part") {
        return parts::run(&arguments[2], arguments[3].parse()?);
    }
    let mut machine = machine::Machine::before();
    println!("{machine}");
    let all = throughput::measure(throughput::Effort { rounds: 2, turn: Duration::from_millis(300) })?;
    println!("{}", all.text());
    machine.finish();
    println!("{machine}\n{:?}", machine.warning());
    Ok(())
}
