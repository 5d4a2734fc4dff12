//! Copies files as a transfer does, within one machine, and prints what came over.
//!
//! `cargo run --release -p trunkline-transfer --example copy -- DIRECTORY CHUNK PATH...` copies the paths into the
//! directory in chunks of so many bytes. Killed and started again, it goes on where it was.

use std::error::Error;
use std::path::PathBuf;
use trunkline_transfer::{Manifest, Sink, root};

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args_os().skip(1);
    let directory = PathBuf::from(arguments.next().ok_or("name a directory")?);
    let chunk =
        arguments.next().and_then(|it| it.into_string().ok()).ok_or("name a size of chunks")?;
    let chunk: u32 = chunk.parse()?;
    let paths: Vec<PathBuf> = arguments.map(PathBuf::from).collect();

    let (manifest, mut source) = Manifest::scan(&paths, &mut |_, _| {})?;
    let mut sink = Sink::open(&directory, manifest.identity(), chunk)?;
    if sink.manifest().is_none() {
        sink.set_manifest(&manifest.encode(), false)?;
    }
    let (missing, mut data) = (sink.missing(), Vec::new());
    let count: u64 = missing.iter().map(|range| range.end - range.start).sum();
    println!("{}: {count} of {} chunks to copy", manifest.name(), sink.chunks());
    let mut hashes = vec![[0; 32]; usize::try_from(sink.chunks())?];
    for index in 0..sink.chunks() {
        hashes[usize::try_from(index)?] = source.read(index, chunk, &mut data)?;
        if missing.iter().any(|range| range.contains(&index)) {
            sink.write(index, &data)?;
        }
    }
    source.unchanged()?;
    let finished = sink.finish(&root(hashes.into_iter()), &mut |_, _| {})?;
    println!("{} entries, {} files, {} bytes", finished.entries, finished.files, finished.bytes);
    Ok(())
}
