//! The description of a path, as people write it.
//!
//! A path is described by *settings*, each a name and a text: `delay=80ms`, `loss=1%`. The same
//! settings serve the command line (`--delay 80ms`), presets, and live changes (`trunkline set
//! delay=80ms`). A plain setting holds for both directions; `up-` and `down-` before it mean one.

mod path;
mod preset;
mod setting;

pub use path::{Direction, PathSpec, SettingError, Settings};
pub use preset::{PRESETS, Preset};
pub use setting::{SETTINGS, Setting};
