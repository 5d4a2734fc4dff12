//! Orders by name, for what has to go by some order: that of declarations decides nothing.

/// The order of a list by the names of its elements.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Order {
    /// The index at each rank.
    indices: Vec<usize>,
    /// The rank of each index.
    ranks: Vec<usize>,
}

impl Order {
    pub(super) fn of<'a>(names: impl Iterator<Item = &'a str>) -> Order {
        let names: Vec<&str> = names.collect();
        let mut indices: Vec<usize> = (0..names.len()).collect();
        indices.sort_by_key(|&index| names[index]);
        let mut ranks = vec![0; names.len()];
        indices.iter().enumerate().for_each(|(rank, &index)| ranks[index] = rank);
        Order { indices, ranks }
    }

    /// The indices in the order of names.
    pub fn indices(&self) -> impl DoubleEndedIterator<Item = usize> + '_ {
        self.indices.iter().copied()
    }

    /// The index of what comes at this place in the order of names, from 0.
    ///
    /// # Panics
    /// If there is no such place.
    pub fn index(&self, rank: usize) -> usize {
        self.indices[rank]
    }

    /// The place in the order of names of what is declared at `index`, from 0.
    ///
    /// # Panics
    /// If nothing is.
    pub fn rank(&self, index: usize) -> usize {
        self.ranks[index]
    }
}
