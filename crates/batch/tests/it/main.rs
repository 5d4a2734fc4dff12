//! Cells and their engines: what runs, in what order, what is kept of it, and what theory says of the figures.

mod agree;
mod batch;
mod engines;
mod figures;
mod kept;
mod order;
mod promises;
mod textbook;
mod textbook_transfers;
