//! Snapshots and the append-only file.

use super::super::setting::{Setting, Topic};
use super::super::value::{Kind, Refusal};
use super::super::words;

const NOT_DURABLE: &str = "This version keeps data in memory only.";

const fn plain_name(
    name: &'static str,
    default: &'static str,
    doc: &'static str,
    check: fn(&[u8]) -> Result<(), Refusal>,
) -> Setting {
    Setting::new(name, Kind::Text(check), default, doc)
}

fn is_plain(name: &[u8], refusal: &'static str) -> Result<(), Refusal> {
    if name.contains(&b'/') { Err(refusal.into()) } else { Ok(()) }
}

const SETTINGS: &[Setting] = &[
    Setting::new(
        "save",
        Kind::Words(&words::SAVE),
        "\"\"",
        "Save points: seconds and changes after which a snapshot is written.",
    )
    .no_effect(NOT_DURABLE),
    plain_name("dbfilename", "dump.rdb", "Name of the snapshot file.", |name| {
        is_plain(name, "dbfilename can't be a path, just a filename")
    })
    .protected()
    .no_effect(NOT_DURABLE),
    Setting::yes_no("rdbcompression", "yes", "Whether snapshots are compressed.").no_effect(NOT_DURABLE),
    Setting::yes_no("rdbchecksum", "yes", "Whether snapshots end with a checksum.").at_start().no_effect(NOT_DURABLE),
    Setting::yes_no("rdb-del-sync-files", "no", "Whether snapshots made for replicas are deleted.")
        .no_effect(NOT_DURABLE),
    Setting::yes_no("rdb-save-incremental-fsync", "yes", "Whether snapshots are synced piece by piece.")
        .no_effect(NOT_DURABLE),
    Setting::choice("rdb-version-check", &["strict", "relaxed"], "strict", "Whether newer snapshot files are refused.")
        .no_effect(NOT_DURABLE),
    Setting::choice("sanitize-dump-payload", &["no", "yes", "clients"], "no", "Whose payloads are checked in depth.")
        .no_effect(NOT_DURABLE),
    Setting::yes_no("stop-writes-on-bgsave-error", "yes", "Whether writes are refused after a snapshot failed.")
        .no_effect(NOT_DURABLE),
    Setting::yes_no("appendonly", "no", "Whether every write goes to the append-only file.")
        .only(&["no"], "The append-only file is not part of this version: data is kept in memory only."),
    plain_name("appendfilename", "appendonly.aof", "First part of the append-only files' names.", |name| {
        is_plain(name, "appendfilename can't be a path, just a filename")
    })
    .at_start()
    .no_effect(NOT_DURABLE),
    plain_name("appenddirname", "appendonlydir", "Directory of the append-only files.", |name| {
        is_plain(name, "appenddirname can't be a path, just a dirname")
    })
    .at_start()
    .no_effect(NOT_DURABLE),
    Setting::choice("appendfsync", &["everysec", "always", "no"], "everysec", "When the append-only file is synced.")
        .no_effect(NOT_DURABLE),
    Setting::yes_no("no-appendfsync-on-rewrite", "no", "Whether syncing stops while files are rewritten.")
        .no_effect(NOT_DURABLE),
    Setting::integer(
        "auto-aof-rewrite-percentage",
        0,
        i32::MAX as i64,
        "100",
        "Growth of the append-only file in per cent at which it is rewritten.",
    )
    .no_effect(NOT_DURABLE),
    Setting::memory("auto-aof-rewrite-min-size", 0, "64mb", "Size below which it is not rewritten.")
        .no_effect(NOT_DURABLE),
    Setting::yes_no("aof-load-truncated", "yes", "Whether a file that ends half way through is loaded.")
        .no_effect(NOT_DURABLE),
    Setting::yes_no("aof-use-rdb-preamble", "yes", "Whether a rewritten file begins with a snapshot.")
        .no_effect(NOT_DURABLE),
    Setting::yes_no("aof-rewrite-incremental-fsync", "yes", "Whether a rewritten file is synced piece by piece.")
        .no_effect(NOT_DURABLE),
    Setting::yes_no("aof-timestamp-enabled", "no", "Whether the append-only file holds times.").no_effect(NOT_DURABLE),
    Setting::yes_no("aof-disable-auto-gc", "no", "Whether old append-only files are kept.").no_effect(NOT_DURABLE),
    Setting::choice(
        "propagation-error-behavior",
        &["ignore", "panic", "panic-on-replicas"],
        "ignore",
        "What happens if a replicated command fails.",
    )
    .no_effect(NOT_DURABLE),
];

/// The topic.
pub const TOPIC: Topic = Topic { title: "Persistence", settings: SETTINGS };
