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

/// Slots of a node of the sequence tree behind lists and long strings; 31 slots of 16 bytes and a header of 16 make 512 bytes.
pub const SEQUENCE_FANOUT: usize = pick(31, 4);

/// Largest allocation for a packed chunk of list elements. A change in the middle of a list copies one.
pub const LIST_CHUNK_BYTES: usize = pick(4096, 128);

/// List elements above this many bytes get a chunk of their own, so that a packed chunk is never filled badly.
pub const LIST_PACKED_ELEMENT_BYTES_MAX: usize = pick(1024, 24);

/// A push that finds no claimable room in the outermost chunk copies the chunk's elements if they take no more than this, else it
/// begins a new chunk.
pub const LIST_COPY_BYTES_MAX: usize = pick(512, 32);

/// Largest allocation for a chunk of a rope: what a change of one byte in a long string copies, beside the path to it.
pub const ROPE_CHUNK_BYTES: usize = pick(4096, 128);

/// Bytes of the commands that a client may queue between MULTI and EXEC.
pub const MULTI_QUEUE_BYTES_MAX: usize = 1 << 30;

/// Input that one decoder call looks at, and so the longest command, in bytes: places in it have 32 bits.
pub const DECODER_INPUT_BYTES_MAX: usize = u32::MAX as usize;

/// One argument of a command, in bytes, whatever `proto-max-bulk-len` says.
pub const BULK_BYTES_MAX: usize = DECODER_INPUT_BYTES_MAX - PROTOCOL_LINE_BYTES_MAX;

/// An inline request, or a line with a count or a length, in bytes without its end (as in Redis).
pub const PROTOCOL_LINE_BYTES_MAX: usize = 64 * 1024;

/// Arguments of one command (as in Redis 7).
pub const MULTIBULK_ARGUMENTS_MAX: i64 = i32::MAX as i64;

/// Arguments of one command of a client that has yet to authenticate (as in Redis).
pub const UNAUTHENTICATED_ARGUMENTS_MAX: i64 = 10;

/// Bytes of one argument of a client that has yet to authenticate (as in Redis).
pub const UNAUTHENTICATED_BULK_BYTES_MAX: usize = 16 * 1024;

/// Arguments for which a decoded batch keeps its room.
pub const BATCH_ARGUMENTS_KEPT: usize = 16 * 1024;

/// Opened keys for which a worker keeps its room from one transaction to the next.
pub const SCRATCH_KEYS_KEPT: usize = pick(2048, 8);

/// Bytes of opened keys for which a worker keeps its room from one transaction to the next.
pub const SCRATCH_KEY_BYTES_KEPT: usize = pick(256 * 1024, 256);

/// Bytes of a configuration file, or of the configuration on standard input.
pub const CONFIG_FILE_BYTES_MAX: usize = 16 * 1024 * 1024;

/// Files included from files included from ... the configuration file.
pub const CONFIG_INCLUDE_DEPTH_MAX: usize = 16;

/// Addresses of `bind`, as in Redis.
pub const BIND_ADDRESSES_MAX: usize = 16;

/// Save points, and percentiles of `latency-tracking-info-percentiles`.
pub const CONFIG_LIST_MAX: usize = 64;

/// Workers that serve clients; leaves slots for background threads.
pub const THREADS_MAX: usize = 128;
/// Bits of the smallest table: it starts with two to this power buckets.
pub const TABLE_BITS_MIN: u32 = pick(4, 1) as u32;

/// Bits of the largest table.
pub const TABLE_BITS_MAX: u32 = 40;

/// A table grows when it has more entries than this many hundredths of its buckets.
pub const TABLE_LOAD_PERCENT: usize = pick(50, 100);

/// Entries that a worker adds between two looks at the table's load.
pub const TABLE_GROW_CHECK_INTERVAL: u64 = pick(64, 1) as u64;

/// Unlinked items that a worker gathers before it hands them to the collector in one piece. Not small in models: the collector's own atomics would
/// multiply their schedules.
pub const GARBAGE_BAG_ITEMS: usize = if cfg!(caswell_loom) { 64 } else { pick(64, 2) };

/// Bytes of unlinked items after which a worker hands them over though the bag is not full.
pub const GARBAGE_BAG_BYTES: usize = if cfg!(caswell_loom) { 64 * 1024 } else { pick(256 * 1024, 1024) };

/// Large values that wait for the background thread; more are freed on the spot.
pub const DROP_QUEUE_ITEMS: usize = 1024;

/// A value with more own bytes than this is dropped on the background thread.
pub const DROP_INLINE_BYTES_MAX: usize = pick(64 * 1024, 256);

/// Deleted entries that wait together for one grace period.
pub const REAPER_BATCH: usize = pick(64, 2);

/// Entries unlinked, or deadlines looked at, in one housekeeping step, so that commands wait for some microseconds only.
pub const TICK_ITEMS: usize = pick(128, 4);

/// Records in an index of deadlines, beyond two for each key that has one, that call for a sweep.
pub const STALE_DEADLINES_MAX: usize = pick(4096, 8);

/// Attempts lost before a transaction takes the elder token. Models make elders by hand: one that came about by itself would multiply their
/// schedules.
pub const LOST_ATTEMPTS_BEFORE_ELDER: u32 = if cfg!(caswell_loom) { 1_000 } else { pick(8, 2) as u32 };

/// Times a writer looks at an undecided claim of another commit before it aborts it. In models it does so at once: each look would be another
/// choice of schedule.
pub const CLAIM_PATIENCE: u32 = if cfg!(caswell_loom) { 0 } else { pick(64, 1) as u32 };

/// Bytes that must have become free before memory is given back to the system.
pub const TRIM_BYTES_MIN: u64 = 16 * 1024 * 1024;

/// Further looks at which memory is given back after much of it has become free.
pub const TRIM_REPEATS: u32 = 4;

/// Threads that have a slot of their own in the allocator's count; the others share one.
pub const ALLOCATION_SLOTS: usize = 256;

/// Threads besides those that serve clients which may register with the store.
pub const BACKGROUND_WORKERS_MAX: usize = 16;

/// The buffer that all connections of a worker read into, in bytes.
pub const SHARED_INPUT_BYTES: usize = pick(64 * 1024, 1024);

/// Unparsed input of a client whose command waits, in bytes; it is read from no more beyond.
pub const WAITING_INPUT_BYTES_MAX: usize = 256 * 1024;

/// Room that is made at once for a large argument that has been announced, in bytes.
pub const INPUT_BYTES_AHEAD: usize = 256 * 1024;

/// Commands that one connection runs before others have their turn.
pub const TURN_COMMANDS_MAX: usize = pick(1024, 8);

/// Bytes of replies after which a batch pauses to send them; one reply more may be added to them.
pub const REPLY_BYTES_PAUSE: usize = pick(128 * 1024, 1024);

/// Bytes of room that a worker's reply buffer keeps from one batch to the next.
pub const REPLY_BYTES_KEPT: usize = 4 * REPLY_BYTES_PAUSE;

/// Output of a connection that waits is gathered in chunks of this many bytes.
pub const OUTPUT_CHUNK_BYTES: usize = 16 * 1024;

/// Output that may wait for any one connection before it is read from no more, in bytes.
pub const OUTPUT_BYTES_MIN: usize = 64 * 1024;

/// Output that may wait for all connections of a worker, beyond [`OUTPUT_BYTES_MIN`] for each, in bytes.
pub const OUTPUT_POOL_BYTES: usize = 256 * 1024 * 1024;

/// Time between two looks of a client that is read from no more at whether its share of the pool has grown, in milliseconds.
pub const OUTPUT_SHARE_CHECK_INTERVAL_MS: u64 = 250;

/// Locks that the keys are divided over while key events are published; a set of them is kept as bits of a word.
pub const EVENT_STRIPES: usize = pick(64, 2);

/// Messages that may wait for one subscriber, and output that waits with them, in bytes, where `client-output-buffer-limit` sets no limit or a
/// larger one.
pub const OUTBOX_BYTES_MAX: u64 = 1 << 30;

/// Subscriptions of one client.
pub const SUBSCRIPTIONS_MAX: usize = 1 << 20;

/// Prefixes of keys that one client may ask to be told of.
pub const TRACKING_PREFIXES_MAX: usize = 1 << 16;

/// Locks that the channels are divided over.
pub const PUBSUB_STRIPES: usize = pick(256, 2);

/// Slices that one system call writes.
pub const WRITE_SLICES_MAX: usize = 64;

/// Unparsed input of a client that has yet to authenticate, in bytes (as in Redis).
pub const UNAUTHENTICATED_QUERY_BYTES_MAX: usize = 1024 * 1024;

/// Sockets on their way to one worker.
pub const ACCEPT_QUEUE_SOCKETS: usize = 1024;

/// Pause after the system had no descriptor for another client, in milliseconds.
pub const ACCEPT_PAUSE_MS: u64 = 100;

/// File descriptors that are not for clients (as in Redis).
pub const DESCRIPTORS_RESERVED: u64 = 32;

/// Time between two looks for idle clients, in milliseconds.
pub const IDLE_CHECK_INTERVAL_MS: u64 = 500;

/// Time between two rounds of a worker's housekeeping, in milliseconds.
pub const HOUSEKEEPING_INTERVAL_MS: u64 = 100;

/// Changes of the addresses to listen on that may wait for the worker that accepts.
pub const LISTENER_CHANGES_MAX: usize = 8;

/// Memory of one worker's Lua state, and of one script's result, in bytes. A script that wants more fails.
pub const SCRIPT_MEMORY_BYTES_MAX: usize = pick(1024 * 1024 * 1024, 16 * 1024 * 1024);

/// Memory of a Lua state beyond which all garbage is collected, and what scripts compiled to is forgotten, when a script has ended, in bytes.
pub const SCRIPT_IDLE_BYTES_MAX: usize = pick(16 * 1024 * 1024, 1024 * 1024);

/// Stack of a worker's thread, in bytes: Lua lets tables nest some thousand levels deep, in results and in JSON. Only what is used takes memory.
pub const WORKER_STACK_BYTES: usize = 64 * 1024 * 1024;

/// Scripts that one worker keeps compiled.
pub const COMPILED_SCRIPTS_MAX: usize = pick(1024, 2);

/// Libraries of functions that one worker keeps loaded.
pub const LOADED_LIBRARIES_MAX: usize = pick(256, 2);

/// Breaths of a library while it is loaded; one that wants more is not loaded.
pub const LIBRARY_LOAD_BREATHS_MAX: u32 = 2_000;

/// Scripts that are known only because EVAL has brought them; the oldest is forgotten for another (as in Redis 7.4).
pub const EVALUATED_SCRIPTS_MAX: usize = pick(500, 4);

/// Instructions of a script between two looks at whether it is to end.
pub const SCRIPT_INSTRUCTIONS_PER_BREATH: i32 = pick(10_000, 10) as i32;

/// Commands of a script between two looks at whether it is to end.
pub const SCRIPT_CALLS_PER_BREATH: u32 = pick(100, 2) as u32;

/// Keys of a script's transaction that are looked up again per such look.
pub const SCRIPT_KEYS_PER_BREATH: usize = pick(64, 1);
