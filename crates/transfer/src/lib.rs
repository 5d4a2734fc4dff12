//! Transfers of files, without their network.
//!
//! A [`Manifest`] lists what is sent: directories, regular files with the extents of their data, symbolic links. Its
//! BLAKE3 is the transfer's identity. The data of all files, one after the other, are the stream; the stream is cut
//! into chunks of equal size. A [`Source`] reads chunks from the sender's files. A [`Sink`] writes them beneath the
//! receiver's directory, in any order, and keeps a [`journal`] of those that it has, so that a transfer that was
//! killed goes on with the next chunk. A name appears in the directory only when its file is whole.
//!
//! ```
//! use trunkline_transfer::{Manifest, Sink, TransferError, root};
//!
//! fn copy(from: &std::path::Path, to: &std::path::Path) -> Result<u64, TransferError> {
//!     let chunk = 65_536;
//!     let (manifest, mut source) = Manifest::scan(&[from.to_path_buf()], &mut |_, _| {})?;
//!     let mut sink = Sink::open(to, manifest.identity(), chunk)?;
//!     sink.set_manifest(&manifest.encode(), false)?;
//!     let (mut data, mut hashes) = (Vec::new(), Vec::new());
//!     for index in sink.missing().into_iter().flatten() {
//!         hashes.push(source.read(index, chunk, &mut data)?);
//!         sink.write(index, &data)?;
//!     }
//!     source.unchanged()?;
//!     Ok(sink.finish(&root(hashes.into_iter()), &mut |_, _| {})?.files)
//! }
//! # let (from, to) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
//! # std::fs::write(from.path().join("file"), "data").unwrap();
//! # assert_eq!(copy(&from.path().join("file"), to.path()).unwrap(), 1);
//! # assert_eq!(std::fs::read(to.path().join("file")).unwrap(), b"data");
//! ```

mod error;
mod halt;
mod hash;
pub mod journal;
mod manifest;
mod recent;
mod scan;
mod sink;
mod source;
mod stream;

pub use error::TransferError;
pub use halt::Halt;
pub use hash::root;
pub use manifest::{Entry, Extent, Kind, MOST_DEPTH, MOST_NAME, MOST_PATH, Manifest, Mtime};
pub use sink::{Finished, Sink, Standing};
pub use source::Source;
