//! How values are kept.

use super::super::setting::{Setting, Topic};

const OTHER_TYPES: &str = "This version holds strings and lists only.";

const SETTINGS: &[Setting] = &[
    Setting::integer(
        "list-max-listpack-size",
        i32::MIN as i64,
        i32::MAX as i64,
        "-2",
        "Size up to which a list is one flat array: elements, or -1 to -5 for 4 to 64 KiB.",
    )
    .alias("list-max-ziplist-size")
    .publish(|settings, value| settings.list_max_listpack_size.set(value.number() as i32)),
    Setting::integer(
        "list-compress-depth",
        0,
        i32::MAX as i64,
        "0",
        "Nodes at both ends of a list that are not compressed; 0 compresses none.",
    )
    .no_effect("Lists are not compressed."),
    Setting::integer("hash-max-listpack-entries", 0, i64::MAX, "512", "Fields up to which a hash is one flat array.")
        .alias("hash-max-ziplist-entries")
        .no_effect(OTHER_TYPES),
    Setting::memory(
        "hash-max-listpack-value",
        0,
        "64",
        "Bytes of a field or value up to which a hash is one flat array.",
    )
    .alias("hash-max-ziplist-value")
    .no_effect(OTHER_TYPES),
    Setting::integer(
        "set-max-intset-entries",
        0,
        i64::MAX,
        "512",
        "Members up to which a set of integers is one flat array.",
    )
    .no_effect(OTHER_TYPES),
    Setting::integer("set-max-listpack-entries", 0, i64::MAX, "128", "Members up to which a set is one flat array.")
        .no_effect(OTHER_TYPES),
    Setting::memory("set-max-listpack-value", 0, "64", "Bytes of a member up to which a set is one flat array.")
        .no_effect(OTHER_TYPES),
    Setting::integer(
        "zset-max-listpack-entries",
        0,
        i64::MAX,
        "128",
        "Members up to which a sorted set is one flat array.",
    )
    .alias("zset-max-ziplist-entries")
    .no_effect(OTHER_TYPES),
    Setting::memory(
        "zset-max-listpack-value",
        0,
        "64",
        "Bytes of a member up to which a sorted set is one flat array.",
    )
    .alias("zset-max-ziplist-value")
    .no_effect(OTHER_TYPES),
    Setting::memory("hll-sparse-max-bytes", 0, "3000", "Bytes up to which a HyperLogLog is sparse.")
        .no_effect(OTHER_TYPES),
    Setting::memory("stream-node-max-bytes", 0, "4096", "Bytes of one node of a stream.").no_effect(OTHER_TYPES),
    Setting::integer("stream-node-max-entries", 0, i64::MAX, "100", "Entries of one node of a stream.")
        .no_effect(OTHER_TYPES),
    Setting::yes_no("vset-force-single-threaded-execution", "no", "Whether vector sets use one thread.")
        .no_effect(OTHER_TYPES),
    Setting::integer(
        "tracking-table-max-keys",
        0,
        i64::MAX,
        "1000000",
        "Keys remembered for client-side caching; 0 for any number.",
    )
    .publish(|settings, value| settings.tracking_table_max_keys.set(value.number() as u64)),
    Setting::integer("busy-reply-threshold", 0, i64::MAX, "5000", "Milliseconds after which a script may be ended.")
        .alias("lua-time-limit")
        .publish(|settings, value| settings.busy_reply_threshold_ms.set(value.number())),
];

/// The topic.
pub const TOPIC: Topic = Topic { title: "Values", settings: SETTINGS };
