//! A set of small numbers.

/// One bit for each number below a bound.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bits(Box<[u64]>);

impl Bits {
    /// An empty set of numbers below `bound`.
    pub fn new(bound: usize) -> Self {
        Self(vec![0; bound.div_ceil(64)].into_boxed_slice())
    }

    /// Adds a number.
    pub fn add(&mut self, number: usize) {
        self.0[number / 64] |= 1 << (number % 64);
    }

    /// Adds all numbers of another set with the same bound.
    pub fn add_all(&mut self, other: &Self) {
        self.0.iter_mut().zip(&other.0).for_each(|(ours, theirs)| *ours |= theirs);
    }

    /// Whether the number is in the set.
    pub fn has(&self, number: usize) -> bool {
        self.0[number / 64] & 1 << (number % 64) != 0
    }
}
