//! Memory limits, eviction, expiry, freeing in the background.

use super::super::setting::{Setting, Topic};
use super::super::settings::EvictionPolicy;
use super::super::value::Kind;

const ALWAYS_LAZY: &str = "Large values are always freed in the background.";
const NO_DEFRAGMENTER: &str = "The allocator needs no defragmentation by the server.";

const SETTINGS: &[Setting] = &[
    Setting::memory(
        "maxmemory",
        0,
        "0",
        "Used memory above which commands that need more are refused; 0 for no limit.",
    )
    .publish(|settings, value| settings.maxmemory.set(value.number() as u64)),
    Setting::choice(
        "maxmemory-policy",
        EvictionPolicy::NAMES,
        "noeviction",
        "What is evicted when memory is full: nothing yet, commands are refused; OBJECT FREQ and IDLETIME follow it.",
    )
    .publish(|settings, value| settings.maxmemory_policy.set(EvictionPolicy::of(value))),
    Setting::integer("maxmemory-samples", 1, i32::MAX as i64, "5", "Keys looked at to choose one to evict.")
        .no_effect("This version evicts nothing."),
    Setting::integer("maxmemory-eviction-tenacity", 0, 100, "10", "How long a command may spend evicting.")
        .no_effect("This version evicts nothing."),
    Setting::new(
        "maxmemory-clients",
        Kind::MemoryOrPercent,
        "0",
        "Memory of all clients above which the largest are disconnected; 0 for no limit.",
    )
    .no_effect("Each client is bounded by client-query-buffer-limit and client-output-buffer-limit."),
    Setting::integer(
        "lfu-log-factor",
        0,
        i32::MAX as i64,
        "10",
        "How slowly the access counter of the LFU policies grows.",
    )
    .publish(|settings, value| settings.lfu_log_factor.set(value.number() as u32)),
    Setting::integer("lfu-decay-time", 0, i32::MAX as i64, "1", "Minutes after which that counter falls by one.")
        .publish(|settings, value| settings.lfu_decay_time.set(value.number() as u32)),
    Setting::integer("active-expire-effort", 1, 10, "1", "How much housekeeping looks for keys that have expired.")
        .no_effect(
            "Expiry follows an index of deadlines, so that it finds every key in time without looking at others.",
        ),
    Setting::yes_no("lazyfree-lazy-eviction", "no", "Whether evicted values are freed in the background.")
        .no_effect(ALWAYS_LAZY),
    Setting::yes_no("lazyfree-lazy-expire", "no", "Whether expired values are freed in the background.")
        .no_effect(ALWAYS_LAZY),
    Setting::yes_no("lazyfree-lazy-server-del", "no", "Whether overwritten values are freed in the background.")
        .no_effect(ALWAYS_LAZY),
    Setting::yes_no("lazyfree-lazy-user-del", "no", "Whether DEL frees in the background.").no_effect(ALWAYS_LAZY),
    Setting::yes_no("lazyfree-lazy-user-flush", "no", "Whether FLUSHALL and FLUSHDB free in the background.")
        .no_effect(ALWAYS_LAZY),
    Setting::yes_no("activerehashing", "yes", "Whether housekeeping moves entries of growing tables.")
        .no_effect("Growing moves no entry."),
    Setting::yes_no("activedefrag", "no", "Whether memory is defragmented while the server runs.")
        .only(&["no"], "Active defragmentation is not supported by the allocator."),
    Setting::integer("active-defrag-cycle-min", 1, 99, "1", "Least effort of defragmentation in per cent.")
        .no_effect(NO_DEFRAGMENTER),
    Setting::integer("active-defrag-cycle-max", 1, 99, "25", "Largest effort of defragmentation in per cent.")
        .no_effect(NO_DEFRAGMENTER),
    Setting::integer("active-defrag-cycle-us", 0, 100_000, "500", "Microseconds of one round of defragmentation.")
        .no_effect(NO_DEFRAGMENTER),
    Setting::memory("active-defrag-ignore-bytes", 1, "100mb", "Waste below which nothing is defragmented.")
        .no_effect(NO_DEFRAGMENTER),
    Setting::integer(
        "active-defrag-threshold-lower",
        0,
        1000,
        "10",
        "Per cent of waste at which defragmentation starts.",
    )
    .no_effect(NO_DEFRAGMENTER),
    Setting::integer(
        "active-defrag-threshold-upper",
        0,
        1000,
        "100",
        "Per cent of waste at which it takes its largest effort.",
    )
    .no_effect(NO_DEFRAGMENTER),
    Setting::integer("active-defrag-max-scan-fields", 1, i64::MAX, "1000", "Fields of a value that are moved at once.")
        .no_effect(NO_DEFRAGMENTER),
    Setting::yes_no("jemalloc-bg-thread", "yes", "Whether jemalloc purges in the background.")
        .no_effect("The allocator is mimalloc."),
];

/// The topic.
pub const TOPIC: Topic = Topic { title: "Memory and expiry", settings: SETTINGS };
