//! The output buffer: what has been taken out of the discipline and waits for the line.

use crate::Service;
use std::collections::VecDeque;

/// Pieces that have been taken out of the discipline ahead of time, in order (Hawley's output fifo).
#[derive(Debug)]
pub(crate) struct Outlet<P> {
    pieces: VecDeque<(Service<P>, u64)>,
    held: u64,
    size: u64,
}

impl<P> Outlet<P> {
    /// An empty buffer for `size` bytes.
    pub fn new(size: u64) -> Outlet<P> {
        Outlet { pieces: VecDeque::new(), held: 0, size }
    }

    /// Whether it holds less than its size.
    #[inline]
    pub fn is_short(&self) -> bool {
        self.held < self.size
    }

    /// Whether there is room for `weight` more. An empty buffer takes anything.
    pub fn has_room(&self, weight: u64) -> bool {
        self.held == 0 || self.held + weight <= self.size
    }

    /// Keeps room of `weight` for a piece that is on its way.
    pub fn reserve(&mut self, weight: u64) {
        self.held += weight;
    }

    /// Puts in a piece for which room was kept.
    pub fn fill_reserved(&mut self, service: Service<P>, weight: u64) {
        self.pieces.push_back((service, weight));
    }

    /// Puts in a piece, which counts with its user bytes.
    pub fn fill(&mut self, service: Service<P>) {
        let weight = u64::from(service.bytes);
        self.reserve(weight);
        self.fill_reserved(service, weight);
    }

    /// Takes the first piece out.
    #[inline]
    pub fn pop(&mut self) -> Option<Service<P>> {
        let (service, weight) = self.pieces.pop_front()?;
        self.held -= weight;
        Some(service)
    }

    /// All pieces.
    pub fn iter(&self) -> impl Iterator<Item = &Service<P>> {
        self.pieces.iter().map(|(service, _)| service)
    }
}
