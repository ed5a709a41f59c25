//! Every bound of Caswell, in one place: a normal column and, where a large value hides bugs, a checking column that loom,
//! the fuzzers and the sanitizers use (`--cfg caswell_checking` or `--cfg caswell_loom`).

/// Picks the checking value in model, fuzz and sanitizer builds.
const fn pick(normal: usize, checking: usize) -> usize {
    if cfg!(any(caswell_loom, caswell_checking)) { checking } else { normal }
}

/// Threads that may register with one store (workers and background threads); stamps keep the slot in their low bits.
pub const WORKER_SLOTS: usize = pick(256, 8);

/// Commands of one pipelined batch that run under one pin, between two repins.
pub const BATCH_COMMANDS_MAX: usize = pick(64, 4);

/// Strings above this many bytes are ropes of chunks; chunks of at least this size leave by reference.
pub const ROPE_THRESHOLD_BYTES: usize = pick(16 * 1024, 64);
