//! What forwarding a frame costs on either backend, on this machine: `cargo run --release -p
//! trunkline-port --example forward`. Needs root; takes some ten seconds.
//!
//! A generator floods one veth pair, the forwarder carries its frames over to another. The cost is the
//! time of loops that moved something, per frame; its inverse is the forwarder's ceiling.

#[path = "../tests/common/mod.rs"]
mod common;

use common::{Space, frame};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};
use trunkline_port::{Backend, Port, PortError, open};

/// Of each measurement.
const SPAN: Duration = Duration::from_secs(2);
/// Frames in one go.
const BUDGET: usize = 64;
/// How long the forwarder gathers frames between two looks.
const QUANTUM: Duration = Duration::from_micros(20);

fn main() -> Result<(), PortError> {
    println!(
        "{:<15} {:>6} {:>12} {:>12} {:>12}",
        "backend", "bytes", "frames/s", "ns/frame", "Mpps"
    );
    for bytes in [64, 1414] {
        for quantum in [Duration::ZERO, QUANTUM] {
            let costs: Vec<f64> = Backend::ALL
                .into_iter()
                .filter_map(|backend| measure(backend, bytes, quantum).transpose())
                .collect::<Result<_, _>>()?;
            if let [packet, xdp] = costs[..] {
                println!("  quantum {quantum:?}: xdp carries {:.2} times as much", packet / xdp);
            }
        }
    }
    Ok(())
}

/// Nanoseconds per frame; `None`, with a message, where we may not make namespaces.
fn measure(backend: Backend, bytes: usize, quantum: Duration) -> Result<Option<f64>, PortError> {
    let (Some(source), Some(middle)) = (Space::new(), Space::new()) else { return Ok(None) };
    source.veth("tla", &middle, "tlm1", 1500);
    source.veth("tlb", &middle, "tlm2", 1500);
    let mut generator = source.run(|| open("tla", Backend::Packet))?;
    let mut from = middle.run(|| open("tlm1", backend))?;
    let mut to = middle.run(|| open("tlm2", backend))?;
    let done = AtomicBool::new(false);
    let (count, busy) = thread::scope(|scope| {
        scope.spawn(|| flood(&mut *generator, bytes, &done));
        let result = forward(&mut *from, &mut *to, quantum);
        done.store(true, Ordering::Release);
        result
    })?;
    let (rate, cost) = (count as f64 / SPAN.as_secs_f64(), busy / count.max(1) as f64);
    let name = from.backend_name();
    println!("{name:<15} {bytes:>6} {rate:>12.0} {cost:>12.0} {:>12.3}", 1e3 / cost);
    Ok(Some(cost))
}

fn flood(port: &mut dyn Port, bytes: usize, done: &AtomicBool) {
    let frames = vec![frame(bytes, &[], 1); BUDGET];
    while !done.load(Ordering::Acquire) {
        let _ = port.send(&mut frames.iter().map(Vec::as_slice), &mut |_, _| {});
    }
}

/// Frames forwarded, and nanoseconds spent on them.
fn forward(
    from: &mut dyn Port,
    to: &mut dyn Port,
    quantum: Duration,
) -> Result<(usize, f64), PortError> {
    let mut store = vec![[0u8; 2048]; 2 * BUDGET];
    let mut lengths = Vec::with_capacity(store.len());
    let (mut count, mut busy) = (0, Duration::ZERO);
    let start = Instant::now();
    loop {
        let before = Instant::now();
        if before - start > SPAN {
            return Ok((count, busy.as_nanos() as f64));
        }
        lengths.clear();
        let moved = from.receive(BUDGET, &mut |got| {
            store[lengths.len()][..got.bytes.len()].copy_from_slice(got.bytes);
            lengths.push(got.bytes.len());
        })?;
        if moved > 0 {
            let mut frames = store.iter().zip(&lengths).map(|(room, &length)| &room[..length]);
            to.send(&mut frames, &mut |_, _| {})?;
            count += moved;
            busy += before.elapsed();
        }
        while before.elapsed() < quantum {
            std::hint::spin_loop();
        }
    }
}
