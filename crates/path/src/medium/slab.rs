//! A table of things that come and go, each under a number until it is taken out.

/// Things by number. A number that is free again is given to the next thing.
#[derive(Debug)]
pub(super) struct Slab<T> {
    places: Vec<Option<T>>,
    free: Vec<u32>,
}

impl<T> Default for Slab<T> {
    fn default() -> Slab<T> {
        Slab { places: Vec::new(), free: Vec::new() }
    }
}

impl<T> Slab<T> {
    /// Puts a thing in. Returns its number.
    pub fn insert(&mut self, thing: T) -> u32 {
        if let Some(number) = self.free.pop() {
            self.places[number as usize] = Some(thing);
            return number;
        }
        self.places.push(Some(thing));
        self.places.len() as u32 - 1
    }

    /// The thing with a number.
    pub fn get_mut(&mut self, number: u32) -> Option<&mut T> {
        self.places.get_mut(number as usize)?.as_mut()
    }

    /// Takes a thing out.
    pub fn remove(&mut self, number: u32) -> Option<T> {
        let thing = self.places.get_mut(number as usize)?.take();
        if thing.is_some() {
            self.free.push(number);
        }
        thing
    }
}
