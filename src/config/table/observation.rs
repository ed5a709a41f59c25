//! Statistics, slow log, latency, events, access control logs.

use super::super::setting::{Setting, Topic};
use super::super::value::Kind;
use super::super::words;

const NO_SLOW_LOG: &str = "This version keeps no slow log.";
const NO_USERS: &str = "This version has the default user only.";

const SETTINGS: &[Setting] = &[
    Setting::yes_no("latency-tracking", "yes", "Whether the time of every command is kept, for INFO latencystats.")
        .publish(|settings, value| settings.latency_tracking.set(value.is_yes())),
    Setting::new(
        "latency-tracking-info-percentiles",
        Kind::Words(&words::PERCENTILES),
        "50 99 99.9",
        "Percentiles that INFO latencystats shows.",
    ),
    Setting::integer(
        "latency-monitor-threshold",
        0,
        i64::MAX,
        "0",
        "Milliseconds above which an event is kept for LATENCY.",
    )
    .no_effect("This version has no LATENCY."),
    Setting::integer(
        "slowlog-log-slower-than",
        -1,
        i64::MAX,
        "10000",
        "Microseconds above which a command goes to the slow log; -1 for none.",
    )
    .alias("commandlog-execution-slower-than")
    .publish(|settings, value| settings.slowlog_log_slower_than_us.set(value.number()))
    .no_effect(NO_SLOW_LOG),
    Setting::integer("slowlog-max-len", 0, i64::MAX, "128", "Entries of the slow log.")
        .alias("commandlog-slow-execution-max-len")
        .publish(|settings, value| settings.slowlog_max_len.set(value.number() as u64))
        .no_effect(NO_SLOW_LOG),
    Setting::integer(
        "commandlog-request-larger-than",
        -1,
        i64::MAX,
        "1048576",
        "Bytes above which a request is logged.",
    )
    .no_effect(NO_SLOW_LOG),
    Setting::integer("commandlog-large-request-max-len", 0, i64::MAX, "128", "Entries of that log.")
        .no_effect(NO_SLOW_LOG),
    Setting::integer("commandlog-reply-larger-than", -1, i64::MAX, "1048576", "Bytes above which a reply is logged.")
        .no_effect(NO_SLOW_LOG),
    Setting::integer("commandlog-large-reply-max-len", 0, i64::MAX, "128", "Entries of that log.")
        .no_effect(NO_SLOW_LOG),
    Setting::new(
        "notify-keyspace-events",
        Kind::Words(&words::EVENTS),
        "",
        "Classes of key events that are published.",
    )
    .publish(|settings, value| settings.notify_keyspace_events.set(value.number() as u32)),
    Setting::text("aclfile", "", "File of users.")
        .at_start()
        .only(&[""], "Access control lists are not part of this version: use requirepass."),
    Setting::integer("acllog-max-len", 0, i64::MAX, "128", "Entries of the log of refused commands.")
        .no_effect(NO_USERS),
    Setting::choice(
        "acl-pubsub-default",
        &["allchannels", "resetchannels"],
        "resetchannels",
        "Channels that a new user may use.",
    )
    .no_effect(NO_USERS),
];

/// The topic.
pub const TOPIC: Topic = Topic { title: "Observation and access", settings: SETTINGS };
