//! The receive buffers of a node's adapter.

use super::{BufferId, NodeId};

/// The receive buffers that were used so far, of a frame each.
#[derive(Debug, Clone, Default)]
pub(super) struct Buffers {
    all: Vec<Buffer>,
    /// Those without users.
    free: Vec<BufferId>,
}

/// A receive buffer, with a frame in it if it has users.
#[derive(Debug, Clone, Copy)]
struct Buffer {
    /// The peer that sent the frame.
    owner: NodeId,
    /// Those that have not done with it: the application, and nodes to which it is handed on.
    users: u32,
}

impl Buffers {
    /// How many are taken.
    pub fn taken(&self) -> u32 {
        self.most() - self.free.len() as u32
    }

    /// How many were taken at once at most: a further one is used only when there is none free.
    pub fn most(&self) -> u32 {
        self.all.len() as u32
    }

    /// Takes one for a frame of a peer, with so many users.
    #[inline]
    pub fn take(&mut self, owner: NodeId, users: u32) -> BufferId {
        let buffer = self.free.pop().unwrap_or(BufferId(self.all.len() as u32));
        match self.all.get_mut(buffer.0 as usize) {
            Some(place) => *place = Buffer { owner, users },
            None => self.all.push(Buffer { owner, users }),
        }
        buffer
    }

    /// One of its users has done with a buffer. Returns whose frame was in it if that was the last.
    #[inline]
    pub fn give_back(&mut self, buffer: BufferId) -> Option<NodeId> {
        let place = self.all.get_mut(buffer.0 as usize)?;
        place.users = place.users.checked_sub(1)?;
        if place.users > 0 {
            return None;
        }
        self.free.push(buffer);
        Some(place.owner)
    }

    /// Whose frame is in a buffer, or was last.
    pub fn owner(&self, BufferId(place): BufferId) -> Option<NodeId> {
        self.all.get(place as usize).map(|it| it.owner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A buffer is free behind the last of its users and no sooner, and given back more often it stays so.
    #[test]
    fn a_buffer_is_free_behind_its_last_user() {
        let mut buffers = Buffers::default();
        let [one, other] =
            [(1, 2), (2, 1)].map(|(owner, users)| buffers.take(NodeId(owner), users));
        assert_eq!((buffers.taken(), buffers.most()), (2, 2));
        assert_eq!((buffers.give_back(one), buffers.taken()), (None, 2));
        assert_eq!((buffers.give_back(one), buffers.taken()), (Some(NodeId(1)), 1));
        assert_eq!((buffers.give_back(one), buffers.taken()), (None, 1));
        assert_eq!(buffers.give_back(BufferId(9)), None);
        assert_eq!((buffers.take(NodeId(3), 1), buffers.owner(one)), (one, Some(NodeId(3))));
        assert_eq!(
            (buffers.owner(other), buffers.taken(), buffers.most()),
            (Some(NodeId(2)), 2, 2)
        );
    }
}
