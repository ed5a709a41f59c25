//! Cluster mode.

use super::super::setting::{Setting, Topic};
use super::super::value::{Kind, Refusal};

const STANDALONE: &str = "This version has no cluster mode.";

fn is_host_name(name: &[u8]) -> Result<(), Refusal> {
    if name.iter().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.')) {
        return Ok(());
    }
    Err("Hostnames may only contain alphanumeric characters, hyphens or dots".into())
}

fn is_address<T: std::str::FromStr>(text: &[u8]) -> Result<(), Refusal> {
    let valid = text.is_empty() || std::str::from_utf8(text).is_ok_and(|text| text.parse::<T>().is_ok());
    let refusal = if size_of::<T>() == 4 { "Invalid IPv4 address" } else { "Invalid IPv6 address" };
    if valid { Ok(()) } else { Err(refusal.into()) }
}

const SETTINGS: &[Setting] = &[
    Setting::yes_no("cluster-enabled", "no", "Whether this server is a node of a cluster.")
        .at_start()
        .only(&["no"], "Cluster mode is not part of this version."),
    Setting::text("cluster-config-file", "nodes.conf", "File that holds the cluster's state.")
        .at_start()
        .no_effect(STANDALONE),
    Setting::choice("cluster-config-save-behavior", &["sync", "best-effort"], "sync", "How that file is written.")
        .no_effect(STANDALONE),
    Setting::integer("cluster-databases", 1, i32::MAX as i64, "1", "Databases in cluster mode.")
        .at_start()
        .no_effect(STANDALONE),
    Setting::integer("cluster-port", 0, 65535, "0", "Port for other nodes.").at_start().no_effect(STANDALONE),
    Setting::integer("cluster-node-timeout", 0, i64::MAX, "15000", "Milliseconds after which a node is suspected.")
        .no_effect(STANDALONE),
    Setting::integer("cluster-migration-barrier", 0, i32::MAX as i64, "1", "Replicas that a primary keeps for itself.")
        .no_effect(STANDALONE),
    Setting::integer(
        "cluster-replica-validity-factor",
        0,
        i32::MAX as i64,
        "10",
        "How old a replica's data may be for it to take over.",
    )
    .alias("cluster-slave-validity-factor")
    .no_effect(STANDALONE),
    Setting::yes_no("cluster-replica-no-failover", "no", "Whether this replica never takes over.")
        .alias("cluster-slave-no-failover")
        .no_effect(STANDALONE),
    Setting::yes_no("cluster-allow-replica-migration", "yes", "Whether replicas change their primary.")
        .no_effect(STANDALONE),
    Setting::yes_no("cluster-require-full-coverage", "yes", "Whether all slots must be served.").no_effect(STANDALONE),
    Setting::yes_no("cluster-allow-reads-when-down", "no", "Whether reads work while the cluster is down.")
        .no_effect(STANDALONE),
    Setting::yes_no("cluster-allow-pubsubshard-when-down", "yes", "Whether sharded channels work while it is down.")
        .no_effect(STANDALONE),
    Setting::memory("cluster-link-sendbuf-limit", 0, "0", "Bytes that may wait for another node.")
        .no_effect(STANDALONE),
    Setting::text("cluster-announce-ip", "", "Address reported to other nodes.").no_effect(STANDALONE),
    Setting::new("cluster-announce-hostname", Kind::Text(is_host_name), "", "Host name reported to other nodes.")
        .no_effect(STANDALONE),
    Setting::text("cluster-announce-human-nodename", "", "Name of this node in logs.").no_effect(STANDALONE),
    Setting::integer("cluster-announce-port", 0, 65535, "0", "Port reported to other nodes.").no_effect(STANDALONE),
    Setting::integer("cluster-announce-tls-port", 0, 65535, "0", "TLS port reported to other nodes.")
        .no_effect(STANDALONE),
    Setting::integer("cluster-announce-bus-port", 0, 65535, "0", "Port for nodes reported to other nodes.")
        .no_effect(STANDALONE),
    Setting::new(
        "cluster-announce-client-ipv4",
        Kind::Text(is_address::<std::net::Ipv4Addr>),
        "",
        "IPv4 address reported to clients.",
    )
    .no_effect(STANDALONE),
    Setting::new(
        "cluster-announce-client-ipv6",
        Kind::Text(is_address::<std::net::Ipv6Addr>),
        "",
        "IPv6 address reported to clients.",
    )
    .no_effect(STANDALONE),
    Setting::integer("cluster-announce-client-port", 0, 65535, "0", "Port reported to clients.").no_effect(STANDALONE),
    Setting::integer("cluster-announce-client-tls-port", 0, 65535, "0", "TLS port reported to clients.")
        .no_effect(STANDALONE),
    Setting::choice(
        "cluster-preferred-endpoint-type",
        &["ip", "hostname", "unknown-endpoint"],
        "ip",
        "How nodes are named to clients.",
    )
    .no_effect(STANDALONE),
    Setting::integer("cluster-blacklist-ttl", 0, i64::MAX, "60", "Seconds for which a forgotten node stays out.")
        .no_effect(STANDALONE),
    Setting::integer(
        "cluster-manual-failover-timeout",
        1,
        i32::MAX as i64,
        "5000",
        "Milliseconds that a requested failover may take.",
    )
    .no_effect(STANDALONE),
    Setting::yes_no("cluster-slot-stats-enabled", "no", "Whether usage is counted per slot.").no_effect(STANDALONE),
    Setting::integer("cluster-slot-migration-log-max-len", 0, i64::MAX, "1000", "Slot migrations that are remembered.")
        .no_effect(STANDALONE),
    Setting::new(
        "slot-migration-max-failover-repl-bytes",
        Kind::Memory(-1, i64::MAX),
        "0",
        "Bytes in flight at which a slot may move.",
    )
    .no_effect(STANDALONE),
    Setting::integer(
        "cluster-compatibility-sample-ratio",
        0,
        100,
        "0",
        "Per cent of commands checked for cluster use.",
    )
    .no_effect(STANDALONE),
];

/// The topic.
pub const TOPIC: Topic = Topic { title: "Cluster", settings: SETTINGS };
