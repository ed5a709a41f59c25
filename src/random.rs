//! A small random generator for picks that need not be secret (RANDOMKEY, samples, jitter): SplitMix64 (Steele, Lea, Flood, OOPSLA 2014).

use std::hash::{BuildHasher, Hasher};

/// A stream of random numbers.
#[derive(Debug, Clone)]
pub struct Random(u64);

impl Random {
    /// The stream of this seed.
    pub fn from_seed(seed: u64) -> Self {
        Self(seed)
    }

    /// A stream that nobody can foretell from outside; the standard library's hash keys are its entropy.
    pub fn from_entropy() -> Self {
        Self(std::hash::RandomState::new().build_hasher().finish())
    }

    /// The next 64 bits.
    pub fn next_u64(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ mixed >> 31
    }

    /// A number below `bound`, which is not zero; biased by at most `bound / 2^64`.
    pub fn below(&mut self, bound: u64) -> u64 {
        debug_assert_ne!(bound, 0);
        ((u128::from(self.next_u64()) * u128::from(bound)) >> 64) as u64
    }
}

/// The numbers of C's `lrand48` and `srand48`, which scripts may expect to be the same on every server.
#[derive(Debug, Clone, Copy)]
pub struct Drand48(u64);

impl Drand48 {
    const MASK: u64 = (1 << 48) - 1;

    /// The sequence of this seed.
    pub fn new(seed: u32) -> Self {
        Self(u64::from(seed) << 16 | 0x330e)
    }

    /// The next 31 bits.
    pub fn next_u31(&mut self) -> u32 {
        self.0 = (self.0.wrapping_mul(0x5_deec_e66d) + 0xb) & Self::MASK;
        (self.0 >> 17) as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn drand48_gives_the_numbers_of_the_c_library() {
        let mut numbers = Drand48::new(0);
        assert_eq!([(); 3].map(|()| numbers.next_u31()), [366_850_414, 1_610_402_240, 206_956_554]);
    }
}
