//! Replicas.

use super::super::setting::{Setting, Topic};
use super::super::value::Kind;
use super::super::words;

const ALONE: &str = "This version has no replication.";

const SETTINGS: &[Setting] = &[
    Setting::new("replicaof", Kind::Words(&words::PRIMARY), "", "Host and port of the primary to copy.")
        .alias("slaveof")
        .at_start()
        .only(&[""], "Replication is not part of this version."),
    Setting::text("masteruser", "", "User for the primary.").alias("primaryuser").no_effect(ALONE),
    Setting::text("masterauth", "", "Password for the primary.").alias("primaryauth").no_effect(ALONE),
    Setting::yes_no("replica-serve-stale-data", "yes", "Whether a replica without its primary answers.")
        .alias("slave-serve-stale-data")
        .no_effect(ALONE),
    Setting::yes_no("replica-read-only", "yes", "Whether a replica refuses writes.")
        .alias("slave-read-only")
        .no_effect(ALONE),
    Setting::yes_no("replica-lazy-flush", "no", "Whether a replica drops old data in the background.")
        .alias("slave-lazy-flush")
        .no_effect(ALONE),
    Setting::yes_no("replica-ignore-maxmemory", "yes", "Whether a replica leaves eviction to its primary.")
        .alias("slave-ignore-maxmemory")
        .no_effect(ALONE),
    Setting::yes_no("replica-ignore-disk-write-errors", "no", "Whether a replica goes on when its disk fails.")
        .no_effect(ALONE),
    Setting::integer("replica-priority", 0, i32::MAX as i64, "100", "Rank for a sentinel's choice; 0 for never.")
        .alias("slave-priority")
        .no_effect(ALONE),
    Setting::yes_no("replica-announced", "yes", "Whether sentinels report this replica.").no_effect(ALONE),
    Setting::text("replica-announce-ip", "", "Address that a replica reports.")
        .alias("slave-announce-ip")
        .no_effect(ALONE),
    Setting::integer("replica-announce-port", 0, 65535, "0", "Port that a replica reports.")
        .alias("slave-announce-port")
        .no_effect(ALONE),
    Setting::memory("replica-full-sync-buffer-limit", 0, "0", "Bytes that a replica buffers during a full copy.")
        .no_effect(ALONE),
    Setting::integer("repl-ping-replica-period", 1, i32::MAX as i64, "10", "Seconds between pings to replicas.")
        .alias("repl-ping-slave-period")
        .no_effect(ALONE),
    Setting::integer("repl-timeout", 1, i32::MAX as i64, "60", "Seconds after which the other side is given up.")
        .no_effect(ALONE),
    Setting::memory("repl-backlog-size", 1, "1mb", "Bytes kept for replicas that come back.").no_effect(ALONE),
    Setting::integer("repl-backlog-ttl", 0, i64::MAX, "3600", "Seconds they are kept without a replica.")
        .no_effect(ALONE),
    Setting::yes_no("repl-disable-tcp-nodelay", "no", "Whether small packets to replicas are gathered.")
        .no_effect(ALONE),
    Setting::yes_no("repl-diskless-sync", "yes", "Whether a full copy goes straight to the socket.").no_effect(ALONE),
    Setting::integer(
        "repl-diskless-sync-delay",
        0,
        i32::MAX as i64,
        "5",
        "Seconds to wait for more replicas before a full copy.",
    )
    .no_effect(ALONE),
    Setting::integer("repl-diskless-sync-max-replicas", 0, i32::MAX as i64, "0", "Replicas that end that wait.")
        .no_effect(ALONE),
    Setting::choice(
        "repl-diskless-load",
        &["disabled", "on-empty-db", "swapdb", "flush-before-load"],
        "disabled",
        "Whether a replica loads from the socket.",
    )
    .no_effect(ALONE),
    Setting::yes_no("repl-mptcp", "no", "Multipath TCP for replication.").at_start().no_effect(ALONE),
    Setting::yes_no("dual-channel-replication-enabled", "no", "Whether a full copy uses a second connection.")
        .no_effect(ALONE),
    Setting::integer("min-replicas-to-write", 0, i32::MAX as i64, "0", "Replicas without which writes are refused.")
        .alias("min-slaves-to-write")
        .only(&["0"], "This version has no replicas, so that every write would be refused."),
    Setting::integer("min-replicas-max-lag", 0, i32::MAX as i64, "10", "Seconds that such a replica may lag.")
        .alias("min-slaves-max-lag")
        .no_effect(ALONE),
    Setting::yes_no("import-mode", "no", "Whether data is being imported, so that nothing expires.")
        .only(&["no"], "Import mode is not supported."),
];

/// The topic.
pub const TOPIC: Topic = Topic { title: "Replication", settings: SETTINGS };
