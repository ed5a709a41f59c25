//! A progress line on a terminal, and nothing elsewhere.

use std::io::{IsTerminal, Write};

const WIDTH: usize = 24;

/// Counts steps towards a known number.
pub struct Progress {
    done: usize,
    steps: usize,
    shown: bool,
}

impl Progress {
    /// Nothing done yet of so many steps.
    pub fn new(steps: usize) -> Self {
        Self { done: 0, steps, shown: std::io::stderr().is_terminal() }
    }

    /// The next step begins; `what` says which.
    pub fn step(&mut self, what: &str) {
        if self.shown {
            let filled = WIDTH * self.done / self.steps.max(1);
            eprint!(
                "\r\x1b[K[{}{}] {}/{} {what}",
                "#".repeat(filled),
                ".".repeat(WIDTH - filled),
                self.done,
                self.steps
            );
            let _ = std::io::stderr().flush();
        }
        self.done += 1;
    }

    /// Takes the line away.
    pub fn clear(&self) {
        if self.shown {
            eprint!("\r\x1b[K");
        }
    }
}
