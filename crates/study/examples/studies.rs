//! Runs studies with the simulator and prints goals and verdicts: `studies [--out DIRECTORY] [NAME ...]`, all
//! built-in ones without a name.

use std::path::PathBuf;
use std::time::Instant;
use trunkline_study::{names, run};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut wanted: Vec<String> = std::env::args().skip(1).collect();
    let out = match wanted.first().map(String::as_str) {
        Some("--out") if wanted.len() > 1 => {
            let directory = PathBuf::from(wanted.remove(1));
            wanted.remove(0);
            Some(directory)
        }
        _ => None,
    };
    let mut chosen: Vec<&str> = wanted.iter().map(String::as_str).collect();
    if chosen.is_empty() {
        chosen = names();
    }
    let threads = std::thread::available_parallelism()?.get();
    let begun = Instant::now();
    let progress = |now: trunkline_study::Progress| {
        eprintln!(
            "{:7.2} s {:3} of {} {}",
            begun.elapsed().as_secs_f64(),
            now.done,
            now.total,
            now.label
        );
    };
    for result in run(&chosen, &trunkline_sim::run, threads, &progress)? {
        println!("{}\n", result.summary());
        if let Some(directory) = &out {
            trunkline_report::write(&directory.join(&result.name), &result.report("", Vec::new()))?;
        }
    }
    println!("{:.1} s", begun.elapsed().as_secs_f64());
    Ok(())
}
