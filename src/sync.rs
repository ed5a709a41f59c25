//! The one door to atomics, cells, threads and `Arc`: the standard library's, or loom's in model builds.
//!
//! Everything else is kept from naming `std::sync::atomic` by clippy's `disallowed-types` (see `clippy.toml`).

#[cfg(not(caswell_loom))]
mod door {
    #![allow(clippy::disallowed_types)]
    pub use std::sync::Arc;
    pub use std::sync::atomic::{
        AtomicBool, AtomicI64, AtomicPtr, AtomicU8, AtomicU16, AtomicU32, AtomicU64, AtomicUsize, Ordering, fence,
    };
    pub use std::thread;

    /// Tells the processor (or the model) that this is a wait loop.
    #[inline]
    pub fn spin_loop() {
        std::hint::spin_loop();
    }
}

#[cfg(caswell_loom)]
mod door {
    #![allow(clippy::disallowed_types)]
    pub use loom::sync::Arc;
    pub use loom::sync::atomic::{
        AtomicBool, AtomicI64, AtomicPtr, AtomicU8, AtomicU16, AtomicU32, AtomicU64, AtomicUsize, Ordering, fence,
    };
    pub use loom::thread;

    /// Tells the processor (or the model) that this is a wait loop.
    #[inline]
    pub fn spin_loop() {
        loom::thread::yield_now();
    }
}

pub use door::*;

/// Whether the planted fault `name` is switched on: a line that is wrong on purpose, which the model (or seeded test) of
/// its rule has to catch. Always false, and compiled away, outside model and checking builds.
///
/// A model build runs one model per process, so the environment variable `CASWELL_PLANTED_FAULT` names the fault and one
/// build serves all faults. `loom-tests/README.md` lists rule, model and fault.
#[cfg(not(any(caswell_loom, caswell_checking)))]
#[inline(always)]
pub const fn planted(_name: &str) -> bool {
    false
}

/// Whether the planted fault `name` is switched on (see the definition for shipped builds, which is always false).
#[cfg(any(caswell_loom, caswell_checking))]
pub fn planted(name: &str) -> bool {
    // The standard library's cell on purpose: the choice is made outside the model, and costs it no execution.
    static CHOSEN: std::sync::OnceLock<Option<String>> = std::sync::OnceLock::new();
    CHOSEN.get_or_init(|| std::env::var("CASWELL_PLANTED_FAULT").ok()).as_deref() == Some(name)
}
