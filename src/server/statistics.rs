//! Counters: one slot per worker with that worker as its only writer, summed when somebody reads them.
//!
//! A counter is an [`OwnedCounter`], which costs what a plain increment costs; no shared cache line is written per command.
//! Relaxed is enough throughout: every figure stands for itself and orders nothing.
//!
//! CONFIG RESETSTAT does not write to the slots either, which would race with their owners. It raises a shared generation;
//! a worker that finds its slot to be of an older generation clears it when its next batch begins, and readers count such
//! a slot as zero.
//!
//! # The time of a command
//!
//! A pipelined command takes a few hundred nanoseconds, a clock read some twenty. So the clock is read when a batch begins
//! and when a *run* ends. A run is a sequence of commands of one row that is *quick*: flagged `fast`, or of complexity O(1);
//! its time is divided evenly over its commands. Every other command is a run of its own. So a batch of a thousand GETs
//! reads the clock twice, and a slow LRANGE between two of them is timed by itself. The figures then include the
//! command's share of decoding and dispatch between two runs, but no socket time.

use std::sync::OnceLock;
use std::time::Instant;

use crossbeam_utils::CachePadded;

use crate::sync::{AtomicU64, Ordering, OwnedCounter};

/// Sets a counter to zero. Only its owner may call it.
fn clear(counter: &OwnedCounter) {
    counter.add(counter.get().wrapping_neg());
}

macro_rules! counters {
    ($( #[doc = $doc:literal] $field:ident ),* $(,)?) => {
        /// The plain counters of one worker.
        #[derive(Default, Debug)]
        pub struct Counters { $( #[doc = $doc] pub $field: OwnedCounter, )* }

        /// The sums of all workers' counters at one moment.
        #[derive(Default, Clone, Copy, Debug, PartialEq, Eq)]
        pub struct Totals { $( #[doc = $doc] pub $field: u64, )* }

        impl Counters {
            fn clear(&self) { $( clear(&self.$field); )* }
            fn add_to(&self, totals: &mut Totals) { $( totals.$field += self.$field.get(); )* }
        }

        impl Totals {
            /// Every figure with its name, for export.
            pub fn named(&self) -> Vec<(&'static str, u64)> { vec![ $( (stringify!($field), self.$field), )* ] }

            /// Every figure's name and what it counts.
            pub fn described() -> Vec<(&'static str, &'static str)> {
                vec![ $( (stringify!($field), $doc.trim_ascii()), )* ]
            }
        }
    };
}

counters! {
    /// Commands that ran (rejected ones are not counted).
    commands_processed,
    /// Connections that were accepted.
    connections_received,
    /// Connections that were closed at once because `maxclients` was reached.
    connections_rejected,
    /// Bytes read from clients.
    net_input_bytes,
    /// Bytes written to clients.
    net_output_bytes,
    /// Reads from sockets.
    reads_processed,
    /// Writes to sockets.
    writes_processed,
    /// Clients closed because of `client-query-buffer-limit`.
    query_buffer_limit_disconnections,
    /// Clients closed because of `client-output-buffer-limit`.
    output_buffer_limit_disconnections,
    /// Failed AUTH and HELLO AUTH attempts.
    acl_access_denied_auth,
    /// Error replies.
    error_replies,
    /// Batches of pipelined commands that were executed.
    batches_processed,
    /// Nanoseconds that commands ran.
    command_nanoseconds,
}

/// What is counted per command row.
#[derive(Default)]
pub struct CommandCounters {
    /// Times it ran.
    pub calls: OwnedCounter,
    /// Nanoseconds it ran.
    pub nanoseconds: OwnedCounter,
    /// Times it was refused before it ran (wrong arity, no authentication, out of memory).
    pub rejected_calls: OwnedCounter,
    /// Times it ran and answered with an error.
    pub failed_calls: OwnedCounter,
    latency: OnceLock<Box<LatencyHistogram>>,
}

impl CommandCounters {
    fn clear(&self) {
        clear(&self.calls);
        clear(&self.nanoseconds);
        clear(&self.rejected_calls);
        clear(&self.failed_calls);
        if let Some(latency) = self.latency.get() {
            latency.0.iter().for_each(clear);
        }
    }
}

/// The sums of all workers' figures of one command row.
#[derive(Default, Clone, Debug)]
pub struct CommandTotals {
    /// Times it ran.
    pub calls: u64,
    /// Nanoseconds it ran.
    pub nanoseconds: u64,
    /// Times it was refused before it ran.
    pub rejected_calls: u64,
    /// Times it ran and answered with an error.
    pub failed_calls: u64,
    /// How long it took.
    pub latency: Latencies,
}

/// Each power of two is divided into this many buckets, so that a percentile is exact to 1/32.
const BUCKETS_PER_OCTAVE_LOG2: u32 = 5;
/// Times of a second and more share the last bucket.
const OCTAVES: u32 = 31;
const BUCKETS: usize = ((OCTAVES - BUCKETS_PER_OCTAVE_LOG2 + 1) << BUCKETS_PER_OCTAVE_LOG2) as usize;

/// Counts of durations in nanoseconds, log-linear: 32 buckets per power of two.
struct LatencyHistogram([OwnedCounter; BUCKETS]);

impl Default for LatencyHistogram {
    fn default() -> Self {
        Self(std::array::from_fn(|_| OwnedCounter::default()))
    }
}

fn bucket_of(nanoseconds: u64) -> usize {
    let value = nanoseconds.min((1 << OCTAVES) - 1);
    let octave = (u64::BITS - value.leading_zeros()).saturating_sub(BUCKETS_PER_OCTAVE_LOG2 + 1);
    ((u64::from(octave) << BUCKETS_PER_OCTAVE_LOG2) + (value >> octave)) as usize
}

/// The largest duration that falls into `bucket`.
fn bucket_end(bucket: usize) -> u64 {
    let bucket = bucket as u64;
    let width = 1 << BUCKETS_PER_OCTAVE_LOG2;
    if bucket < 2 * width {
        return bucket;
    }
    let octave = (bucket >> BUCKETS_PER_OCTAVE_LOG2) - 1;
    (((bucket - (octave << BUCKETS_PER_OCTAVE_LOG2)) + 1) << octave) - 1
}

/// Durations of a command, summed over the workers.
#[derive(Clone, Debug, Default)]
pub struct Latencies {
    counts: Vec<u64>,
}

impl Latencies {
    fn add(&mut self, histogram: &LatencyHistogram) {
        self.counts.resize(BUCKETS, 0);
        for (count, counter) in self.counts.iter_mut().zip(&histogram.0) {
            *count += counter.get();
        }
    }

    /// How many durations were recorded.
    pub fn count(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// The duration in nanoseconds that `percentile` per cent of the calls did not exceed (to 1/32); zero without calls.
    pub fn percentile(&self, percentile: f64) -> u64 {
        let count = self.count();
        let wanted = ((percentile / 100.0 * count as f64).ceil() as u64).clamp(1, count.max(1));
        let mut seen = 0;
        for (bucket, bucket_count) in self.counts.iter().enumerate() {
            seen += bucket_count;
            if seen >= wanted {
                return bucket_end(bucket);
            }
        }
        0
    }

    /// `(largest duration, calls up to it)` for each bucket that is not empty.
    pub fn cumulative(&self) -> Vec<(u64, u64)> {
        let mut seen = 0;
        let filled = self.counts.iter().enumerate().filter(|(_, count)| **count > 0);
        filled
            .map(|(bucket, count)| {
                seen += count;
                (bucket_end(bucket), seen)
            })
            .collect()
    }
}

/// One worker's slot. All methods that write are for that worker alone.
pub struct WorkerStatistics {
    /// The plain counters.
    pub counters: Counters,
    commands: Box<[CommandCounters]>,
    errors: flurry::HashMap<&'static str, OwnedCounter>,
    generation: AtomicU64,
}

impl WorkerStatistics {
    fn new(commands: usize) -> Self {
        Self {
            counters: Counters::default(),
            commands: (0..commands).map(|_| CommandCounters::default()).collect(),
            errors: flurry::HashMap::new(),
            generation: AtomicU64::new(0),
        }
    }

    /// A command was refused before it ran.
    pub fn count_rejected(&self, row: usize) {
        self.commands[row].rejected_calls.add(1);
    }

    /// A command ran and answered with an error.
    pub fn count_failed(&self, row: usize) {
        self.commands[row].failed_calls.add(1);
    }

    /// An error reply was made, with this code as its first word.
    pub fn count_error(&self, code: &'static str) {
        self.counters.error_replies.add(1);
        let errors = self.errors.pin();
        match errors.get(code) {
            Some(counter) => counter.add(1),
            None => {
                let counter = OwnedCounter::default();
                counter.add(1);
                // The codes are literals of the program, so the map is bounded by their number.
                errors.insert(code, counter);
            }
        }
    }

    fn count_run(&self, row: usize, calls: u64, nanoseconds: u64, track_latency: bool) {
        let command = &self.commands[row];
        command.calls.add(calls);
        command.nanoseconds.add(nanoseconds);
        self.counters.commands_processed.add(calls);
        self.counters.command_nanoseconds.add(nanoseconds);
        if track_latency {
            command.latency.get_or_init(Box::default).0[bucket_of(nanoseconds / calls)].add(calls);
        }
    }

    fn clear(&self) {
        self.counters.clear();
        self.commands.iter().for_each(CommandCounters::clear);
        self.errors.pin().clear();
    }
}

/// Times the commands of one batch; see the module's text for how.
pub struct BatchTimer<'a> {
    statistics: &'a WorkerStatistics,
    track_latency: bool,
    run_started: Instant,
    run_row: usize,
    run_is_quick: bool,
    run_calls: u64,
}

impl<'a> BatchTimer<'a> {
    /// Call before a command runs. `row` is its row's number, `quick` whether it belongs to runs.
    #[inline]
    pub fn command_starts(&mut self, row: usize, quick: bool) {
        if self.run_calls > 0 && !(quick && row == self.run_row) {
            self.end_run();
        }
        self.run_row = row;
        self.run_is_quick = quick;
    }

    /// Call after the command ran.
    #[inline]
    pub fn command_done(&mut self) {
        self.run_calls += 1;
        if !self.run_is_quick {
            self.end_run();
        }
    }

    fn end_run(&mut self) {
        let now = Instant::now();
        let nanoseconds = now.duration_since(self.run_started).as_nanos() as u64;
        self.statistics.count_run(self.run_row, self.run_calls, nanoseconds, self.track_latency);
        self.run_started = now;
        self.run_calls = 0;
    }

    /// When the commands being timed began.
    pub fn run_started(&self) -> Instant {
        self.run_started
    }

    /// The worker's slot.
    pub fn statistics(&self) -> &'a WorkerStatistics {
        self.statistics
    }
}

impl Drop for BatchTimer<'_> {
    fn drop(&mut self) {
        if self.run_calls > 0 {
            self.end_run();
        }
    }
}

/// All workers' slots.
pub struct Statistics {
    workers: Box<[CachePadded<WorkerStatistics>]>,
    generation: CachePadded<AtomicU64>,
}

impl Statistics {
    /// Slots for `workers` workers, each with counters for `commands` command rows.
    pub fn new(workers: usize, commands: usize) -> Self {
        Self {
            workers: (0..workers).map(|_| CachePadded::new(WorkerStatistics::new(commands))).collect(),
            generation: CachePadded::new(AtomicU64::new(0)),
        }
    }

    /// The slot of one worker. Only that worker may write to it.
    pub fn worker(&self, worker: usize) -> &WorkerStatistics {
        &self.workers[worker]
    }

    /// Begins a batch of commands on `worker`, which must be the calling thread's. `track_latency` is the setting
    /// `latency-tracking`.
    pub fn begin_batch(&self, worker: usize, track_latency: bool) -> BatchTimer<'_> {
        let statistics = &self.workers[worker];
        // Relaxed, all three: the generation guards no other data; a reader that sees the new generation with an old
        // figure shows that figure once more.
        let generation = self.generation.load(Ordering::Relaxed);
        if statistics.generation.load(Ordering::Relaxed) != generation {
            statistics.clear();
            statistics.generation.store(generation, Ordering::Relaxed);
        }
        statistics.counters.batches_processed.add(1);
        BatchTimer {
            statistics,
            track_latency,
            run_started: Instant::now(),
            run_row: 0,
            run_is_quick: false,
            run_calls: 0,
        }
    }

    /// Sets every figure to zero. The calling worker's slot is cleared with its next batch, like the others.
    pub fn reset(&self) {
        // Relaxed: see `begin_batch`.
        self.generation.fetch_add(1, Ordering::Relaxed);
    }

    fn current(&self) -> impl Iterator<Item = &WorkerStatistics> {
        // Relaxed, both: see `begin_batch`.
        let generation = self.generation.load(Ordering::Relaxed);
        self.workers
            .iter()
            .map(|worker| &**worker)
            .filter(move |worker| worker.generation.load(Ordering::Relaxed) == generation)
    }

    /// The sums of the plain counters. O(workers).
    pub fn totals(&self) -> Totals {
        let mut totals = Totals::default();
        self.current().for_each(|worker| worker.counters.add_to(&mut totals));
        totals
    }

    /// The sums of the plain counters without the first worker's. O(workers).
    pub fn totals_beside_first(&self) -> Totals {
        let mut totals = Totals::default();
        let first: *const WorkerStatistics = self.worker(0);
        self.current()
            .filter(|worker| !std::ptr::eq(*worker, first))
            .for_each(|worker| worker.counters.add_to(&mut totals));
        totals
    }

    /// The sums of one command row's figures. O(workers).
    pub fn command(&self, row: usize) -> CommandTotals {
        let mut totals = CommandTotals::default();
        for worker in self.current() {
            let command = &worker.commands[row];
            totals.calls += command.calls.get();
            totals.nanoseconds += command.nanoseconds.get();
            totals.rejected_calls += command.rejected_calls.get();
            totals.failed_calls += command.failed_calls.get();
            if let Some(latency) = command.latency.get() {
                totals.latency.add(latency);
            }
        }
        totals
    }

    /// The number of error replies by code, in the codes' order.
    pub fn errors(&self) -> Vec<(&'static str, u64)> {
        let mut sums = std::collections::BTreeMap::new();
        for worker in self.current() {
            for (code, counter) in worker.errors.pin().iter() {
                *sums.entry(*code).or_insert(0) += counter.get();
            }
        }
        sums.into_iter().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_are_ordered_and_contain_their_values() {
        let mut last = 0;
        for value in (0..5000).chain((12..40).flat_map(|shift| [(1 << shift) - 1, 1 << shift, (1 << shift) + 12345])) {
            let bucket = bucket_of(value);
            let capped = value.min((1 << OCTAVES) - 1);
            assert!(bucket_end(bucket) >= capped, "{value}");
            assert!(bucket == 0 || bucket_end(bucket - 1) < capped, "{value}");
            assert!(bucket >= last || value < 1 << 31);
            assert!(bucket < BUCKETS);
            last = bucket;
        }
    }

    #[test]
    fn a_batch_counts_calls_per_row_and_shares_time_within_runs() {
        let statistics = Statistics::new(2, 3);
        {
            let mut timer = statistics.begin_batch(1, true);
            for (row, fast) in [(0, true), (0, true), (2, false), (2, false), (0, true), (1, true)] {
                timer.command_starts(row, fast);
                timer.command_done();
            }
        }
        assert_eq!([0, 1, 2].map(|row| statistics.command(row).calls), [3, 1, 2]);
        assert_eq!(statistics.totals().commands_processed, 6);
        assert_eq!(statistics.command(0).latency.count(), 3);
        assert!(statistics.command(0).latency.percentile(50.0) > 0);
    }

    #[test]
    fn reset_shows_zero_at_once_and_counts_afresh() {
        let statistics = Statistics::new(1, 1);
        drop(statistics.begin_batch(0, false));
        statistics.worker(0).count_error("ERR");
        statistics.worker(0).count_error("ERR");
        assert_eq!(statistics.errors(), [("ERR", 2)]);
        statistics.reset();
        assert_eq!(statistics.totals(), Totals::default());
        assert_eq!(statistics.errors(), []);
        drop(statistics.begin_batch(0, false));
        assert_eq!(statistics.totals().batches_processed, 1);
        assert_eq!(statistics.errors(), []);
    }

    #[test]
    fn percentiles_take_the_bucket_that_reaches_the_share() {
        let histogram = LatencyHistogram::default();
        histogram.0[bucket_of(10)].add(98);
        histogram.0[bucket_of(1000)].add(2);
        let mut latencies = Latencies::default();
        latencies.add(&histogram);
        assert_eq!(latencies.percentile(50.0), 10);
        assert_eq!(latencies.percentile(98.0), 10);
        assert!((1000..1032).contains(&latencies.percentile(99.0)));
        assert_eq!(latencies.cumulative().last().map(|last| last.1), Some(100));
        assert_eq!(Latencies::default().percentile(50.0), 0);
    }
}
