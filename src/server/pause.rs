//! CLIENT PAUSE: for a while no client's commands run, or none that write.

use std::time::{Duration, Instant};

use crate::sync::{AtomicBool, AtomicU64, Ordering};

/// Whether clients are paused, and until when. Read once per slice of commands: one load while nobody has paused anything.
pub struct Pause {
    began: Instant,
    /// Milliseconds after `began` at which the pause ends; zero for none.
    end_ms: AtomicU64,
    /// Whether reading commands are paused too.
    all: AtomicBool,
}

/// A pause that is on.
#[derive(Clone, Copy, Debug)]
pub struct Paused {
    /// When it ends.
    pub until: Instant,
    /// Whether reading commands are paused too.
    pub all: bool,
}

impl Default for Pause {
    fn default() -> Self {
        Self { began: Instant::now(), end_ms: AtomicU64::new(0), all: AtomicBool::new(false) }
    }
}

impl Pause {
    /// The pause that is on, if one is.
    #[inline]
    pub fn current(&self) -> Option<Paused> {
        // Acquire: pairs with the Release in `begin`: `all` is that of this pause.
        let end_ms = self.end_ms.load(Ordering::Acquire);
        if end_ms == 0 {
            return None;
        }
        let until = self.began + Duration::from_millis(end_ms);
        // Relaxed: ordered by the Acquire above.
        (Instant::now() < until).then(|| Paused { until, all: self.all.load(Ordering::Relaxed) })
    }

    /// Begins a pause. One that is on already is never shortened, and goes on to stop what it stops.
    pub fn begin(&self, milliseconds: u64, all: bool) {
        let now_ms = self.began.elapsed().as_millis() as u64;
        let before = self.current();
        // Relaxed: the store below publishes it. Two clients that pause at once may each overwrite the other's wish, as either might have come later.
        self.all.store(all || before.is_some_and(|paused| paused.all), Ordering::Relaxed);
        let end_ms = now_ms.saturating_add(milliseconds).clamp(1, u64::MAX / 4);
        // Relaxed: compared with what this thread may have seen before.
        let end_ms = if before.is_some() { end_ms.max(self.end_ms.load(Ordering::Relaxed)) } else { end_ms };
        // Release: pairs with the Acquire in `current`.
        self.end_ms.store(end_ms, Ordering::Release);
    }

    /// Ends the pause.
    pub fn end(&self) {
        // Release: pairs with the Acquire in `current`.
        self.end_ms.store(0, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pause_is_never_shortened_or_weakened() {
        let pause = Pause::default();
        assert!(pause.current().is_none());
        pause.begin(1_000_000, true);
        pause.begin(1, false);
        let paused = pause.current().expect("a pause is on");
        assert!(paused.all && paused.until > Instant::now() + Duration::from_secs(500));
        pause.end();
        assert!(pause.current().is_none());
    }
}
