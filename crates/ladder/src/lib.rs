//! The truth ladder: one scenario predicted, simulated and emulated, and whether the three agree.
//!
//! Each [`Row`] is one figure of one traffic with its value in every engine. The simulator is the middle rung:
//! the formulas and the emulator are each held against it. If two differ by more than the
//! [tolerance](Tolerances), the row says why as far as the ledgers, the counts of losses and the engines' own
//! notes tell; a difference that these do not explain is called unexplained.

mod because;
mod climb;
mod figure;
mod ladder;
mod phase;
mod shorten;
mod text;
mod verdict;

pub use climb::{Climb, Climbed};
pub use figure::{Figure, What, figures};
pub use ladder::{Figures, Ladder, Row, Tally, figures_of};
pub use phase::Moves;
pub use shorten::{chosen, shortened};
pub use text::{section, terminal};
pub use verdict::{Judgement, Range, Tolerances, Verdict, judge};
