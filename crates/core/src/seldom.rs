//! Parts that most of very many have no use for.

use std::fmt;
use std::ops::{Deref, DerefMut};

/// A value with a form that says that nothing has happened to it.
pub trait Untouched: Default + 'static {
    /// That form, the default.
    const UNTOUCHED: &'static Self;
}

/// A part of something that there is very much of, and that most of them have no use for: it takes the place of a
/// pointer until it is changed for the first time, and reads as its [untouched](Untouched) form.
pub struct Seldom<T>(Option<Box<T>>);

impl<T> Seldom<T> {
    /// Whether it has been changed.
    pub fn is_touched(&self) -> bool {
        self.0.is_some()
    }
}

impl<T> Default for Seldom<T> {
    fn default() -> Seldom<T> {
        Seldom(None)
    }
}

impl<T: Untouched> Deref for Seldom<T> {
    type Target = T;
    #[inline]
    fn deref(&self) -> &T {
        self.0.as_deref().unwrap_or(T::UNTOUCHED)
    }
}

impl<T: Untouched> DerefMut for Seldom<T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        self.0.get_or_insert_default()
    }
}

impl<T: fmt::Debug> fmt::Debug for Seldom<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, Default, PartialEq)]
    struct Part {
        held: Vec<u32>,
    }

    impl Untouched for Part {
        const UNTOUCHED: &'static Part = &Part { held: Vec::new() };
    }

    #[test]
    fn a_part_takes_a_pointer_until_it_is_changed() {
        let mut part = Seldom::<Part>::default();
        assert_eq!((size_of_val(&part), part.held.len()), (size_of::<usize>(), 0));
        assert!(*part == Part::default() && !part.is_touched());
        part.held.push(7);
        assert!(part.is_touched());
        assert_eq!(*part, Part { held: vec![7] });
    }
}
