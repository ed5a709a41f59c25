//! Threads, databases, files of the process, logs, and who may use dangerous commands.

use super::super::setting::{Setting, Topic};
use super::super::settings::{Allow, LogLevel};
use super::super::value::Kind;
use super::super::words;

const AFFINITY: &str = "Threads are not bound to processors: use taskset or cgroups.";
const SIGNAL_CHOICES: &[&str] = &["default", "save", "nosave", "now", "force", "safe", "failover"];

const SETTINGS: &[Setting] = &[
    Setting::integer(
        "threads",
        1,
        crate::limits::THREADS_MAX as i64,
        "(cores)",
        "Threads that serve clients, each with its own; one per core if not set.",
    )
    .alias("io-threads")
    .at_start()
    .publish(|settings, value| settings.threads.set(value.number() as u16)),
    Setting::yes_no("io-threads-do-reads", "no", "Whether extra threads read from sockets.")
        .at_start()
        .no_effect("Every thread reads, executes and writes."),
    Setting::integer("prefetch-batch-max-size", 0, 128, "16", "Commands whose keys are prefetched together.")
        .no_effect("Batches are prefetched whole, up to a fixed bound."),
    Setting::integer("databases", 1, i32::MAX as i64, "16", "Number of databases.")
        .at_start()
        .publish(|settings, value| settings.databases.set(value.number() as u32)),
    Setting::yes_no("daemonize", "no", "Whether the server leaves the terminal and runs in the background.")
        .at_start()
        .publish(|settings, value| settings.daemonize.set(value.is_yes())),
    Setting::choice(
        "supervised",
        &["upstart", "systemd", "auto", "no"],
        "no",
        "Who is told that the server is ready: systemd, if it asks (`auto`, `systemd`); upstart is not.",
    )
    .at_start(),
    Setting::text("pidfile", "", "File that holds the process id while the server runs.").at_start(),
    Setting::text("dir", "(current)", "Working directory.").protected(),
    Setting::choice("loglevel", LogLevel::NAMES, "notice", "How much is logged.")
        .publish(|settings, value| settings.loglevel.set(LogLevel::of(value))),
    Setting::text("logfile", "", "File to log to; empty for standard output.").at_start(),
    Setting::choice("log-format", &["legacy", "logfmt", "json"], "legacy", "Form of a log line.")
        .only(&["legacy"], "Only the log format legacy is supported."),
    Setting::choice(
        "log-timestamp-format",
        &["legacy", "iso8601", "milliseconds"],
        "legacy",
        "Form of the time in a log line.",
    )
    .only(&["legacy"], "Only the timestamp format legacy is supported."),
    Setting::yes_no("hide-user-data-from-log", "yes", "Whether keys and values are kept out of the log.")
        .no_effect("Keys and values are never logged."),
    Setting::yes_no("syslog-enabled", "no", "Whether to log to the system log too.")
        .at_start()
        .no_effect("Logs go to logfile or standard output, which supervisors collect."),
    Setting::text("syslog-ident", "caswell", "Name in the system log.").at_start().no_effect("See syslog-enabled."),
    Setting::choice(
        "syslog-facility",
        &["user", "local0", "local1", "local2", "local3", "local4", "local5", "local6", "local7"],
        "local0",
        "Facility of the system log.",
    )
    .at_start()
    .no_effect("See syslog-enabled."),
    Setting::yes_no("always-show-logo", "no", "Whether the start-up message has a picture.")
        .at_start()
        .no_effect("The start-up message has no picture; LOLWUT does."),
    Setting::yes_no("set-proc-title", "yes", "Whether the process title shows addresses and mode.")
        .at_start()
        .no_effect("The process keeps its command line as title."),
    Setting::text("proc-title-template", "{title} {listen-addr} {server-mode}", "Form of the process title.")
        .no_effect("See set-proc-title."),
    Setting::choice("enable-debug-command", Allow::NAMES, "no", "Who may use DEBUG.")
        .at_start()
        .publish(|settings, value| settings.enable_debug_command.set(Allow::of(value))),
    Setting::choice("enable-module-command", Allow::NAMES, "no", "Who may use MODULE.")
        .at_start()
        .no_effect("Modules cannot be loaded."),
    Setting::choice("enable-protected-configs", Allow::NAMES, "no", "Who may change protected settings by CONFIG SET.")
        .at_start()
        .publish(|settings, value| settings.enable_protected_configs.set(Allow::of(value))),
    Setting::integer("hz", 0, i32::MAX as i64, "10", "Rounds of housekeeping per second, from 1 to 500.")
        .publish(|settings, value| settings.hz.set(value.number() as u32))
        .no_effect("Every core keeps house ten times a second, and goes on while there is work; INFO shows the value."),
    Setting::yes_no("dynamic-hz", "yes", "Whether housekeeping runs more often with more clients.")
        .no_effect("Each core keeps its own house, so its work is bounded."),
    Setting::integer("shutdown-timeout", 0, i32::MAX as i64, "10", "Seconds to wait for replicas at shutdown.")
        .no_effect("This version has no replicas."),
    Setting::new("shutdown-on-sigint", Kind::Choices(SIGNAL_CHOICES), "default", "How SIGINT stops the server.")
        .publish(|settings, value| settings.shutdown_on_sigint.set(value.number() as u32)),
    Setting::new("shutdown-on-sigterm", Kind::Choices(SIGNAL_CHOICES), "default", "How SIGTERM stops the server.")
        .publish(|settings, value| settings.shutdown_on_sigterm.set(value.number() as u32)),
    Setting::yes_no("crash-log-enabled", "yes", "Whether a crash is described in the log.")
        .no_effect("A panic is always described in the log."),
    Setting::yes_no("crash-memcheck-enabled", "yes", "Whether memory is tested after a crash.")
        .no_effect("Use a memory tester."),
    Setting::yes_no("disable-thp", "yes", "Whether transparent huge pages are off for the process.")
        .at_start()
        .no_effect("Nothing forks here, so huge pages copy nothing."),
    Setting::choice(
        "oom-score-adj",
        &["no", "yes", "relative", "absolute"],
        "no",
        "Whether the kernel's out-of-memory score is adjusted.",
    )
    .only(&["no"], "oom-score-adj is not supported: set OOMScoreAdjust in the service unit."),
    Setting::new(
        "oom-score-adj-values",
        Kind::Words(&words::OOM_SCORES),
        "0 200 800",
        "Scores of primary, replica and background processes.",
    )
    .no_effect("See oom-score-adj."),
    Setting::text("server-cpulist", "", "Processors for threads that serve clients.")
        .alias("server_cpulist")
        .at_start()
        .no_effect(AFFINITY),
    Setting::text("bio-cpulist", "", "Processors for background threads.")
        .alias("bio_cpulist")
        .at_start()
        .no_effect(AFFINITY),
    Setting::text("aof-rewrite-cpulist", "", "Processors for rewriting the append-only file.")
        .alias("aof_rewrite_cpulist")
        .at_start()
        .no_effect(AFFINITY),
    Setting::text("bgsave-cpulist", "", "Processors for snapshots.")
        .alias("bgsave_cpulist")
        .at_start()
        .no_effect(AFFINITY),
    Setting::text("ignore-warnings", "", "Warnings not to stop at.").no_effect("The server never stops at a warning."),
    Setting::text("locale-collate", "", "Locale for sorting text.").no_effect("Text is compared by bytes."),
    Setting::text("availability-zone", "", "Where this server stands."),
    Setting::text("hash-seed", "", "Seed of hash functions, for repeatable SCAN orders.")
        .at_start()
        .only(&[""], "hash-seed is not supported: the seed is random so that clients cannot choose collisions."),
    Setting::yes_no("extended-redis-compatibility", "no", "Whether the server calls itself Redis more often.")
        .no_effect("Caswell always answers as Redis does."),
];

/// The topic.
pub const TOPIC: Topic = Topic { title: "Process", settings: SETTINGS };
