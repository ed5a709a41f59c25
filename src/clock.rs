//! Time: the wall clock in milliseconds (expiry), and ticks since the store began (commit stamps). Tests inject both.

use crate::sync::{AtomicI64, AtomicU64, Ordering};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

/// Nanoseconds per tick. With 56 bits of ticks, stamps last 36 years of uptime.
const TICK_NANOSECONDS: u64 = 16;

/// One reading of the clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Moment {
    /// Milliseconds of Unix time.
    pub unix_ms: i64,
    /// Ticks since the clock was made.
    pub ticks: u64,
}

/// Where a store takes its time from.
#[derive(Debug)]
pub enum Clock {
    /// The machine's clocks. One is read per section; how far the wall clock is ahead of it is looked at ten times a second.
    System {
        /// When the store began.
        started: Instant,
        /// Microseconds of Unix time at that moment, by the wall clock's latest reading.
        started_at_us: AtomicI64,
    },
    /// A clock that tests set by hand.
    Manual {
        /// Milliseconds of Unix time; a tick is then a millisecond.
        unix_ms: AtomicI64,
    },
    /// A clock whose wall stands still and whose ticks count its readings, for models in which real time has a part.
    Counting {
        /// Milliseconds of Unix time.
        unix_ms: i64,
        /// Readings so far.
        readings: AtomicU64,
    },
}

impl Clock {
    /// The machine's clocks.
    pub fn system() -> Self {
        let clock = Self::System { started: Instant::now(), started_at_us: AtomicI64::new(0) };
        clock.follow_wall();
        clock
    }

    /// Follows the wall clock where it has been set, or runs faster or slower than time since the start.
    pub fn follow_wall(&self) {
        if let Self::System { started, started_at_us } = self {
            let unix_us = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_micros() as i64);
            // Relaxed: a figure of its own; readers may see it a moment late.
            started_at_us.store(unix_us - started.elapsed().as_micros() as i64, Ordering::Relaxed);
        }
    }

    /// A clock that stands at `unix_ms` until [`set`](Self::set).
    pub fn manual(unix_ms: i64) -> Self {
        Self::Manual { unix_ms: AtomicI64::new(unix_ms) }
    }

    /// A clock that stands at `unix_ms` and whose ticks count its readings.
    pub fn counting(unix_ms: i64) -> Self {
        Self::Counting { unix_ms, readings: AtomicU64::new(0) }
    }

    /// Sets a manual clock; the others take no notice.
    pub fn set(&self, now_ms: i64) {
        if let Self::Manual { unix_ms } = self {
            // Relaxed: a test that sets the clock for other threads synchronises with them by its own means.
            unix_ms.store(now_ms, Ordering::Relaxed);
        }
    }

    /// Reads the clock.
    pub fn now(&self) -> Moment {
        match self {
            Self::System { started, started_at_us } => {
                let elapsed = started.elapsed();
                // Relaxed: as in `follow_wall`.
                let unix_us = started_at_us.load(Ordering::Relaxed) + elapsed.as_micros() as i64;
                Moment { unix_ms: unix_us / 1000, ticks: elapsed.as_nanos() as u64 / TICK_NANOSECONDS }
            }
            Self::Manual { unix_ms } => {
                // Relaxed: as in `set`.
                let now_ms = unix_ms.load(Ordering::Relaxed);
                Moment { unix_ms: now_ms, ticks: now_ms.max(0) as u64 }
            }
            Self::Counting { unix_ms, readings } => {
                // AcqRel: a reading that comes after another in real time is larger, as with synchronised clocks.
                Moment { unix_ms: *unix_ms, ticks: readings.fetch_add(1, Ordering::AcqRel) }
            }
        }
    }
}
