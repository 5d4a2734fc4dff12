//! Measures the cost of forwarding a frame on either backend, on this machine: `cargo run --release -p
//! trunkline-port --example forward`. Needs root; takes some twenty seconds.
//!
//! A generator floods one veth pair, the forwarder carries its frames over to another. The cost is the
//! time of loops that moved something, per frame; its inverse is the forwarder's ceiling. The backends
//! take turns and the cheapest turn of each counts: what else the machine does can only add.

#[path = "../tests/it/common/mod.rs"]
mod common;

use common::{Space, frame};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};
use trunkline_port::{Backend, Port, PortError, open};

/// Of each turn.
const SPAN: Duration = Duration::from_millis(400);
/// Of each backend.
const TURNS: usize = 6;
/// Frames in one go.
const BUDGET: usize = 256;
/// The time for which the forwarder gathers frames between two looks.
const QUANTUM: Duration = Duration::from_micros(20);

fn main() -> Result<(), PortError> {
    println!(
        "{:>6} {:>9} {:>16} {:>16} {:>6}",
        "bytes", "quantum", "packet ns/frame", "xdp ns/frame", "ratio"
    );
    for bytes in [64, 1414] {
        for quantum in [Duration::ZERO, QUANTUM] {
            let mut best = [f64::INFINITY; 2];
            for _ in 0..TURNS {
                for (best, backend) in best.iter_mut().zip(Backend::ALL) {
                    let Some(cost) = measure(backend, bytes, quantum)? else { return Ok(()) };
                    *best = best.min(cost);
                }
            }
            let [packet, xdp] = best;
            let ratio = packet / xdp;
            println!("{bytes:>6} {quantum:>9?} {packet:>16.0} {xdp:>16.0} {ratio:>6.2}");
        }
    }
    Ok(())
}

/// Nanoseconds per frame; `None`, with a message, if we may not make namespaces.
fn measure(backend: Backend, bytes: usize, quantum: Duration) -> Result<Option<f64>, PortError> {
    let (Some(source), Some(middle)) = (Space::new(), Space::new()) else { return Ok(None) };
    source.veth("tla", &middle, "tlm1", 1500);
    source.veth("tlb", &middle, "tlm2", 1500);
    let mut generator = source.run(|| open("tla", Backend::Packet))?;
    let mut from = middle.run(|| open("tlm1", backend))?;
    let mut to = middle.run(|| open("tlm2", backend))?;
    let done = AtomicBool::new(false);
    let result = thread::scope(|scope| {
        scope.spawn(|| flood(&mut *generator, bytes, &done));
        let result = forward(&mut *from, &mut *to, quantum);
        done.store(true, Ordering::Release);
        result
    });
    let (count, busy) = result?;
    Ok(Some(busy / count.max(1) as f64))
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
