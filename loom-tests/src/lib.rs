//! Model checks of the shipped lock-free files: one file per protocol under `models`, one [`Model`] per promise.
//!
//! `loom-tests/run` builds this crate with the flags that switch `caswell::sync` and crossbeam-epoch to loom's types and
//! starts the driver (`main.rs`); `README.md` maps each rule to its model and to the planted faults that the model catches.
#![cfg(caswell_loom)]

pub mod models;

use std::time::Instant;

/// One model: a small run of the shipped code that loom repeats under every schedule within the preemption bound.
pub struct Model {
    /// Its name, unique, as the command line and the README give it.
    pub name: &'static str,
    /// What it promises, in one line, with the number of the protocol's rule where there is one.
    pub promise: &'static str,
    /// How many times one execution may preempt a thread that could go on; loom tries all schedules within that.
    pub preemption_bound: usize,
    /// The planted faults (names given to `caswell::sync::planted`) that must make it fail.
    pub faults: &'static [&'static str],
    /// One execution. It starts at most four threads beside its own and joins them all.
    pub run: fn(),
}

/// What a completed search saw.
pub struct Outcome {
    /// Executions, each under another schedule.
    pub executions: u64,
    /// Wall time of the whole search.
    pub seconds: f64,
}

/// Branching points that one execution may have before loom calls it an endless loop. This cuts no search short: an
/// execution that reaches it fails the model.
const BRANCHES_MAX: usize = 20_000;

/// The executions this process has begun. Outside loom's types on purpose: it counts across executions.
#[allow(clippy::disallowed_types, reason = "counts across executions, so it must not be one of loom's")]
static EXECUTIONS: std::sync::atomic::AtomicU64 = std::sync::atomic::AtomicU64::new(0);

/// The number of executions begun so far; after a failure, the number of the one that failed.
pub fn executions() -> u64 {
    // Relaxed: a plain count, read by the thread that wrote it.
    EXECUTIONS.load(std::sync::atomic::Ordering::Relaxed)
}

impl Model {
    /// Runs every schedule within the bound and returns their number; panics, or aborts, where one fails. Once per process:
    /// a failing model that uses the epoch crate takes the process with it.
    ///
    /// The builder is set field by field, so that no `LOOM_*` environment variable can cut the search short.
    pub fn check(&self) -> Outcome {
        let started = Instant::now();
        let run = self.run;
        let mut builder = loom::model::Builder::new();
        builder.preemption_bound = Some(self.preemption_bound);
        builder.max_branches = BRANCHES_MAX;
        builder.max_permutations = None;
        builder.max_duration = None;
        builder.checkpoint_file = None;
        builder.expect_explicit_explore = false;
        builder.check(move || {
            // Relaxed: a plain count; loom runs one execution at a time.
            EXECUTIONS.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
            run();
        });
        Outcome { executions: executions(), seconds: started.elapsed().as_secs_f64() }
    }
}
