//! What the in-process benches share: medians of repeated samples, and a value that is replaced as a key's value is.
#![allow(dead_code, reason = "each bench uses a part")]

pub mod commands;

use caswell::types::{Attempt, NewRoot};
use std::time::Duration;

/// Samples of which the median is taken.
const SAMPLES: usize = 41;

/// Prints the median nanoseconds per operation. `sample` runs some operations and returns how many, and how long they took.
pub fn report(name: &str, mut sample: impl FnMut() -> (usize, Duration)) -> f64 {
    // The first sample only warms up.
    sample();
    let mut figures: Vec<f64> = (0..SAMPLES)
        .map(|_| {
            let (count, elapsed) = sample();
            elapsed.as_nanos() as f64 / count as f64
        })
        .collect();
    figures.sort_by(f64::total_cmp);
    let median = figures[SAMPLES / 2];
    println!("{name:<58} {median:>9.1} ns   ({:.1} to {:.1})", figures[SAMPLES / 10], figures[SAMPLES * 9 / 10]);
    median
}

/// The processor time that one piece of work takes: other programs on the machine disturb it less than they disturb the wall clock.
pub fn timed(work: impl FnOnce()) -> Duration {
    let started = thread_time();
    work();
    thread_time() - started
}

fn thread_time() -> Duration {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the pointer is to a timespec of ours; the clock exists on every Linux.
    let failed = unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &raw mut time) };
    assert_eq!(failed, 0, "the thread's clock can be read");
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

/// One key's value, with the attempt that changes it. Each change makes a new root, as a command does; what it replaces is freed at once, as
/// nobody else reads.
pub struct Value {
    root: NewRoot,
    attempt: Attempt,
    attempts: u64,
}

impl Value {
    /// The value that `make` builds.
    pub fn new(make: impl FnOnce(&mut Attempt) -> NewRoot) -> Self {
        let mut attempt = Attempt::default();
        attempt.begin(1);
        let root = make(&mut attempt);
        assert!(attempt.succeed().next().is_none());
        Self { root, attempt, attempts: 1 }
    }

    /// The present root.
    pub fn root(&self) -> &NewRoot {
        &self.root
    }

    /// One command that changes the value; the bytes that it copied from existing nodes.
    #[inline(always)]
    pub fn change(&mut self, change: impl FnOnce(&mut NewRoot, &mut Attempt)) -> u64 {
        self.attempts += 1;
        self.attempt.begin(self.attempts);
        let mut root = NewRoot::with_expiry(self.root.root(), None);
        change(&mut root, &mut self.attempt);
        root.stamp(self.attempts);
        let copied = self.attempt.copied_bytes();
        for node in self.attempt.succeed() {
            // SAFETY: the change replaced the node, and nobody but this value reaches it.
            unsafe { node.free() }
        }
        self.root = root;
        copied
    }
}

impl Drop for Value {
    fn drop(&mut self) {
        // SAFETY: the value owns its nodes, and nobody else reaches them.
        unsafe { self.root.root().for_each_node(&mut |node| node.free()) }
    }
}
