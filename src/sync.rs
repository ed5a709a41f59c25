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
