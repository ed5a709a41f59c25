//! The one door to atomics, cells, threads and `Arc`: the standard library's, or loom's in model builds.
//!
//! Everything else is kept from naming `std::sync::atomic` by clippy's `disallowed-types` (see `clippy.toml`).
//!
#![doc = include_str!("../docs/memory-ordering.md")]

#[cfg(not(caswell_loom))]
mod door {
    #![allow(clippy::disallowed_types, reason = "this is the door")]
    //! Own types around the standard library's: clippy sees through re-exports, so an alias would be refused with what it
    //! names. Every method is the standard library's of the same name.
    #![allow(missing_docs, reason = "the standard library's methods under their own names")]

    use std::sync::atomic;

    pub use std::sync::Arc;
    pub use std::sync::atomic::{Ordering, fence};
    pub use std::thread;

    macro_rules! common {
        ($name:ident, $value:ty) => {
            #[derive(Default, Debug)]
            #[repr(transparent)]
            pub struct $name(atomic::$name);

            common_methods!($name, [], $value);
        };
    }

    macro_rules! common_methods {
        ($name:ident, [$($parameter:ident)?], $value:ty) => {
            impl$(<$parameter>)? $name$(<$parameter>)? {
                #[inline(always)]
                pub const fn new(value: $value) -> Self {
                    Self(atomic::$name::new(value))
                }
                #[inline(always)]
                pub fn load(&self, order: Ordering) -> $value {
                    self.0.load(order)
                }
                #[inline(always)]
                pub fn store(&self, value: $value, order: Ordering) {
                    super::count_write();
                    self.0.store(value, order);
                }
                #[inline(always)]
                pub fn swap(&self, value: $value, order: Ordering) -> $value {
                    super::count_write();
                    self.0.swap(value, order)
                }
                #[inline(always)]
                pub fn compare_exchange(
                    &self,
                    current: $value,
                    new: $value,
                    success: Ordering,
                    failure: Ordering,
                ) -> Result<$value, $value> {
                    super::count_write();
                    self.0.compare_exchange(current, new, success, failure)
                }
                #[inline(always)]
                pub fn compare_exchange_weak(
                    &self,
                    current: $value,
                    new: $value,
                    success: Ordering,
                    failure: Ordering,
                ) -> Result<$value, $value> {
                    super::count_write();
                    self.0.compare_exchange_weak(current, new, success, failure)
                }
                #[inline(always)]
                pub fn fetch_update(
                    &self,
                    success: Ordering,
                    failure: Ordering,
                    update: impl FnMut($value) -> Option<$value>,
                ) -> Result<$value, $value> {
                    super::count_write();
                    self.0.fetch_update(success, failure, update)
                }
                #[inline(always)]
                pub fn get_mut(&mut self) -> &mut $value {
                    self.0.get_mut()
                }
                #[inline(always)]
                pub fn into_inner(self) -> $value {
                    self.0.into_inner()
                }
            }
        };
    }

    macro_rules! modify {
        ($name:ident, $value:ty: $($method:ident),*) => {
            impl $name {
                $(
                    #[inline(always)]
                    pub fn $method(&self, value: $value, order: Ordering) -> $value {
                        super::count_write();
                        self.0.$method(value, order)
                    }
                )*
            }
        };
    }

    macro_rules! integers {
        ($($name:ident, $value:ty;)*) => {
            $(
                common!($name, $value);
                modify!($name, $value: fetch_add, fetch_sub, fetch_and, fetch_or, fetch_xor, fetch_max, fetch_min);
            )*
        };
    }

    integers! {
        AtomicU8, u8;
        AtomicU16, u16;
        AtomicU32, u32;
        AtomicU64, u64;
        AtomicUsize, usize;
        AtomicI64, i64;
    }

    common!(AtomicBool, bool);
    modify!(AtomicBool, bool: fetch_and, fetch_or, fetch_xor);

    #[derive(Debug)]
    #[repr(transparent)]
    pub struct AtomicPtr<T>(atomic::AtomicPtr<T>);

    common_methods!(AtomicPtr, [T], *mut T);

    impl<T> Default for AtomicPtr<T> {
        fn default() -> Self {
            Self::new(std::ptr::null_mut())
        }
    }

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

#[cfg(caswell_checking)]
thread_local! {
    static WRITES: std::cell::Cell<u64> = const { std::cell::Cell::new(0) };
}

/// Counts a write through the door, in checking builds.
#[cfg(not(caswell_loom))]
#[inline(always)]
fn count_write() {
    #[cfg(caswell_checking)]
    WRITES.set(WRITES.get() + 1);
}

/// Writes (stores, exchanges, read-modify-writes) that this thread has made to atomics that other threads may see. `tests/budget.rs` holds
/// commands to a number of them; [`OwnedCounter`]s, which have a line of their own, and plain writes to what is not yet published do not count.
#[cfg(caswell_checking)]
pub fn shared_writes() -> u64 {
    WRITES.get()
}

pub use crossbeam_utils::CachePadded;

/// Waits until `done` says so: spins, then yields the processor, then sleeps in small pieces. For waits that are short by design.
pub fn wait(mut done: impl FnMut() -> bool) {
    const SPINS: u32 = 64;
    const YIELDS: u32 = 64;
    let mut rounds = 0u32;
    while !done() {
        rounds = rounds.saturating_add(1);
        if cfg!(caswell_loom) || rounds <= SPINS {
            spin_loop();
        } else if rounds <= SPINS + YIELDS {
            thread::yield_now();
        } else {
            #[cfg(not(caswell_loom))]
            thread::sleep(std::time::Duration::from_micros(50));
        }
    }
}

/// A statistic with one writing thread, on a cache line of that thread's own: no read-modify-write, and summed by whoever
/// reads. Not a loom type in model builds either: it orders nothing, and costs a model no executions.
#[derive(Debug, Default)]
#[allow(clippy::disallowed_types, reason = "this is the door")]
pub struct OwnedCounter(std::sync::atomic::AtomicU64);

impl OwnedCounter {
    /// Adds to the counter; only its one writer calls this.
    #[inline(always)]
    pub fn add(&self, count: u64) {
        // Relaxed: one writer, and readers want a recent value only.
        let now = self.0.load(Ordering::Relaxed);
        // Relaxed: as above.
        self.0.store(now.wrapping_add(count), Ordering::Relaxed);
    }

    /// The present value, from any thread.
    #[inline(always)]
    pub fn get(&self) -> u64 {
        // Relaxed: a recent value is enough.
        self.0.load(Ordering::Relaxed)
    }
}

/// A cell for any small `Copy` value, for settings and the like that models do not look into.
pub use atomic::Atomic;

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
