//! A test's account of which nodes are alive: catches leaks, double frees and nodes that two values share.

use super::{Attempt, NodePtr};
use std::collections::HashSet;

/// Runs attempts on values and checks after each that the nodes alive are exactly those that the values reach.
#[derive(Default)]
pub(crate) struct Ledger {
    pub(crate) attempt: Attempt,
    attempts: u64,
    alive: HashSet<NodePtr>,
}

impl Ledger {
    pub(crate) fn begin(&mut self) -> &mut Attempt {
        self.attempts += 1;
        self.attempt.begin(self.attempts);
        &mut self.attempt
    }

    /// The attempt succeeded: what it replaced, to be freed with `free` once no snapshot needs it.
    pub(crate) fn succeed(&mut self) -> Vec<NodePtr> {
        for node in self.attempt.made() {
            assert!(self.alive.insert(*node), "a node is made once");
        }
        let replaced: Vec<_> = self.attempt.succeed().collect();
        for node in &replaced {
            assert!(self.alive.remove(node), "a node is replaced once, and was alive");
        }
        replaced
    }

    pub(crate) fn fail(&mut self) {
        self.attempt.fail();
    }

    /// Asserts that the values reach exactly the nodes that are alive, each once.
    pub(crate) fn check(&self, reached: impl IntoIterator<Item = NodePtr>) {
        let mut seen = HashSet::new();
        for node in reached {
            assert!(seen.insert(node), "a node is reached once");
            assert!(self.alive.contains(&node), "a node that is reached is alive");
        }
        assert_eq!(seen.len(), self.alive.len(), "every node alive is reached");
    }

    /// Frees nodes that `succeed` gave.
    pub(crate) fn free(nodes: Vec<NodePtr>) {
        for node in nodes {
            // SAFETY: each node was replaced once (`succeed` asserts it), and the test holds no value that reaches it any more.
            unsafe { node.free() }
        }
    }

    /// Ends the test: frees what the values reach.
    pub(crate) fn end(mut self, reached: impl IntoIterator<Item = NodePtr>) {
        let reached: Vec<_> = reached.into_iter().collect();
        self.check(reached.iter().copied());
        self.alive.clear();
        Self::free(reached);
    }
}

/// A small generator of random numbers (xorshift64*), so that a printed seed repeats a run.
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_F491_4F6C_DD1D)
    }

    /// A number below `bound`.
    pub(crate) fn below(&mut self, bound: usize) -> usize {
        ((u128::from(self.next()) * bound as u128) >> 64) as usize
    }

    pub(crate) fn bytes(&mut self, length: usize) -> Vec<u8> {
        (0..length).map(|_| b'a' + self.below(26) as u8).collect()
    }
}

/// Seeds of a property test: a few, or many in the long form (`CASWELL_LONG=1`), or the one that `CASWELL_SEED` names.
pub(crate) fn seeds(few: u64, many: u64) -> std::ops::Range<u64> {
    if let Some(seed) = std::env::var("CASWELL_SEED").ok().and_then(|seed| seed.parse().ok()) {
        return seed..seed + 1;
    }
    0..if std::env::var_os("CASWELL_LONG").is_some() { many } else { few }
}
