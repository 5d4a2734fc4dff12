//! Values that many hold and few change.

use std::fmt;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;

/// A value that may be shared with others who hold the same. Whoever changes it gets a copy of its own first, so that
/// it behaves as if each held it alone, in less memory.
#[derive(Default)]
pub struct Shared<T>(Arc<T>);

impl<T> Clone for Shared<T> {
    fn clone(&self) -> Shared<T> {
        Shared(Arc::clone(&self.0))
    }
}

impl<T> From<T> for Shared<T> {
    fn from(value: T) -> Shared<T> {
        Shared(Arc::new(value))
    }
}

impl<T> From<Shared<T>> for Arc<T> {
    fn from(value: Shared<T>) -> Arc<T> {
        value.0
    }
}

impl<T> Deref for Shared<T> {
    type Target = T;
    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T: Clone> DerefMut for Shared<T> {
    fn deref_mut(&mut self) -> &mut T {
        Arc::make_mut(&mut self.0)
    }
}

impl<T: PartialEq> PartialEq for Shared<T> {
    fn eq(&self, other: &Shared<T>) -> bool {
        Arc::ptr_eq(&self.0, &other.0) || *self.0 == *other.0
    }
}

impl<T: fmt::Debug> fmt::Debug for Shared<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl<T: fmt::Display> fmt::Display for Shared<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Different values that are remembered: so many kinds of links or connections take turns in a list at most, or equal
/// ones are no longer found.
const REMEMBERED: usize = 8;

/// The values that came last, so that equal ones are shared.
#[derive(Debug, Clone)]
pub struct Recent<T> {
    known: Vec<Shared<T>>,
    /// The place of the one that is forgotten next.
    oldest: usize,
}

impl<T> Default for Recent<T> {
    fn default() -> Recent<T> {
        Recent { known: Vec::new(), oldest: 0 }
    }
}

impl<T: PartialEq> Recent<T> {
    /// `value`, shared with an equal one if that came lately.
    pub fn share(&mut self, value: T) -> Shared<T> {
        if let Some(known) = self.known.iter().find(|known| ***known == value) {
            return known.clone();
        }
        let value = Shared::from(value);
        match self.known.get_mut(self.oldest) {
            Some(oldest) => *oldest = value.clone(),
            None => self.known.push(value.clone()),
        }
        self.oldest = (self.oldest + 1) % REMEMBERED;
        value
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_values_are_one_until_somebody_changes_his() {
        let mut recent = Recent::default();
        let [one, mut other, different] = ["a", "a", "b"].map(|it| recent.share(it.to_string()));
        assert!(Arc::ptr_eq(&one.0, &other.0) && !Arc::ptr_eq(&one.0, &different.0));
        other.push('c');
        assert_eq!(
            (one.as_str(), other.as_str(), format!("{other:?}")),
            ("a", "ac", "\"ac\"".into())
        );
        assert!(one != other && one == Shared::from("a".to_string()));
    }

    #[test]
    fn the_last_few_are_remembered() {
        let mut recent = Recent::default();
        let first = recent.share(0);
        let again = |recent: &mut Recent<usize>| Arc::ptr_eq(&recent.share(0).0, &first.0);
        (1..REMEMBERED).for_each(|value| drop(recent.share(value)));
        assert!(again(&mut recent));
        recent.share(REMEMBERED);
        assert!(!again(&mut recent), "the oldest has been forgotten");
    }
}
