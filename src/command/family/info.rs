//! INFO: facts and figures about the server.

use crate::command::Context;
use crate::command::args::Args;
use crate::command::error::CommandResult;
use crate::command::spec::{Argument, Categories, Flags, Handler, Row};
use crate::config::EvictionPolicy;
use crate::pubsub::Topic;
use crate::resp::Reply;
use crate::server::process::{self, Who};
use crate::server::{Server, allocation};
use crate::sync::Ordering;
use std::fmt::Write;
use std::time::{SystemTime, UNIX_EPOCH};

/// The commands of this family.
pub static ROWS: &[Row] = &[Row {
    name: "info",
    summary: "Reports facts and figures about the server.",
    handler: Handler::Server(info),
    arity: -1,
    flags: Flags::LOADING.or(Flags::STALE),
    categories: Categories::DANGEROUS,
    tips: &["nondeterministic_output", "request_policy:all_shards", "response_policy:special"],
    history: &[("7.0.0", "Several sections.")],
    arguments: &[Argument::string("section").optional().multiple()],
    ..Row::DEFAULT
}];

/// When a section is shown without being named.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Shown {
    /// By INFO without arguments, `default`, `all` and `everything`.
    ByDefault,
    /// By `all` and `everything`.
    WithAll,
    /// By `default` and `everything`, but not by `all`: the section for what modules add.
    NotWithAll,
}

struct Section {
    /// Its heading; it is named in any case.
    title: &'static str,
    shown: Shown,
    write: fn(&Context<'_>, &mut Text),
}

/// In the order in which they are printed.
static SECTIONS: &[Section] = &[
    Section { title: "Server", shown: Shown::ByDefault, write: server },
    Section { title: "Clients", shown: Shown::ByDefault, write: clients },
    Section { title: "Memory", shown: Shown::ByDefault, write: memory },
    Section { title: "Persistence", shown: Shown::ByDefault, write: persistence },
    Section { title: "Stats", shown: Shown::ByDefault, write: statistics },
    Section { title: "Replication", shown: Shown::ByDefault, write: replication },
    Section { title: "CPU", shown: Shown::ByDefault, write: processor },
    Section { title: "Modules", shown: Shown::NotWithAll, write: |_, _| {} },
    Section { title: "Commandstats", shown: Shown::WithAll, write: command_statistics },
    Section { title: "Errorstats", shown: Shown::ByDefault, write: error_statistics },
    Section { title: "Latencystats", shown: Shown::WithAll, write: latency_statistics },
    Section { title: "Cluster", shown: Shown::ByDefault, write: |_, text| text.line("cluster_enabled", 0) },
    Section { title: "Engine", shown: Shown::ByDefault, write: engine },
    Section { title: "Keyspace", shown: Shown::ByDefault, write: keyspace },
];

/// The answer so far.
struct Text(String);

impl Text {
    fn line(&mut self, name: &str, value: impl std::fmt::Display) {
        // Writing to a string cannot fail.
        let _ = write!(self.0, "{name}:{value}\r\n");
    }

    /// Lines whose figures are constant in this version: names and values.
    fn lines(&mut self, lines: &[(&str, &str)]) {
        lines.iter().for_each(|(name, value)| self.line(name, value));
    }

    /// Bytes, once as a number and once for people.
    fn bytes(&mut self, name: &str, bytes: u64) {
        self.line(name, bytes);
        self.line(&format!("{name}_human"), human(bytes));
    }
}

/// `943.27K` and the like.
fn human(bytes: u64) -> String {
    const UNITS: [&str; 5] = ["K", "M", "G", "T", "P"];
    if bytes < 1024 {
        return format!("{bytes}B");
    }
    let unit = (bytes.ilog2() / 10).min(UNITS.len() as u32);
    format!("{:.2}{}", bytes as f64 / (1_u64 << (10 * unit)) as f64, UNITS[unit as usize - 1])
}

fn ratio(one: u64, other: u64) -> f64 {
    if other == 0 { 0.0 } else { one as f64 / other as f64 }
}

fn info(context: &mut Context<'_>, args: &Args<'_>, reply: &mut Reply) -> CommandResult {
    let named = |name: &str| args.from(1).iter().any(|argument| argument.eq_ignore_ascii_case(name.as_bytes()));
    let (default, all, everything) = (args.len() == 1 || named("default"), named("all"), named("everything"));
    let mut text = Text(String::with_capacity(4096));
    for section in SECTIONS {
        let wanted = match section.shown {
            Shown::ByDefault => default || all || everything,
            Shown::WithAll => all || everything,
            Shown::NotWithAll => default || everything,
        };
        if wanted || named(section.title) {
            if !text.0.is_empty() {
                text.0.push_str("\r\n");
            }
            let _ = write!(text.0, "# {}\r\n", section.title);
            (section.write)(context, &mut text);
        }
    }
    reply.verbatim("txt", text.0.as_bytes());
    Ok(())
}

fn server(context: &Context<'_>, text: &mut Text) {
    let server = context.server;
    let settings = &server.settings;
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let uptime = server.started.elapsed().as_secs();
    let executable = std::env::current_exe().unwrap_or_default();
    text.line("redis_version", crate::REDIS_VERSION);
    text.line("caswell_version", env!("CARGO_PKG_VERSION"));
    text.lines(&[("redis_git_sha1", "00000000"), ("redis_git_dirty", "0"), ("redis_build_id", "0")]);
    text.line("redis_mode", "standalone");
    text.line("os", process::operating_system());
    text.line("arch_bits", usize::BITS);
    text.line("monotonic_clock", "POSIX clock_gettime");
    text.line("multiplexing_api", "epoll");
    text.lines(&[("atomicvar_api", "rust-builtin"), ("gcc_version", "0.0.0")]);
    text.line("process_id", std::process::id());
    text.line("process_supervised", if std::env::var_os("NOTIFY_SOCKET").is_some() { "systemd" } else { "no" });
    text.line("run_id", &server.run_id);
    text.line("tcp_port", settings.port.get());
    text.line("server_time_usec", now.as_micros());
    text.line("uptime_in_seconds", uptime);
    text.line("uptime_in_days", uptime / 86_400);
    text.line("hz", settings.hz.get());
    text.line("configured_hz", settings.hz.get());
    text.line("lru_clock", now.as_secs() & 0xff_ffff);
    text.line("executable", executable.display());
    text.line("config_file", settings.file().unwrap_or_default().display());
    text.line("io_threads_active", u8::from(settings.threads.get() > 1));
    text.line("threads", settings.threads.get());
    let addresses = |name: &str| settings.strings(name).iter().map(|bind| format!(",bind={bind}")).collect::<String>();
    if settings.port.get() != 0 {
        text.line("listener0", format_args!("name=tcp{},port={}", addresses("bind"), settings.port.get()));
    }
    let path = settings.string("unixsocket");
    if !path.is_empty() {
        let number = usize::from(settings.port.get() != 0);
        text.line(&format!("listener{number}"), format_args!("name=unix,bind={path}"));
    }
}

fn clients(context: &Context<'_>, text: &mut Text) {
    let server = context.server;
    let clients = server.clients.snapshot();
    // Relaxed: figures of other workers that order nothing.
    let input = clients.iter().map(|client| client.query_buffer.load(Ordering::Relaxed)).max();
    let output = clients.iter().map(|client| client.output_buffer()).max();
    let subscribers = clients.iter().filter(|client| client.is_subscriber()).count();
    text.line("connected_clients", clients.len());
    text.line("cluster_connections", 0);
    text.line("maxclients", server.settings.maxclients.get());
    text.line("client_recent_max_input_buffer", input.unwrap_or(0));
    text.line("client_recent_max_output_buffer", output.unwrap_or(0));
    // Relaxed, all: as above.
    let blocked = clients.iter().filter(|client| client.is_blocked.load(Ordering::Relaxed)).count();
    let watched: Vec<usize> = clients.iter().map(|client| client.watched.load(Ordering::Relaxed)).collect();
    text.line("blocked_clients", blocked);
    text.line("tracking_clients", server.trackers.counts().0);
    text.line("pubsub_clients", subscribers);
    text.line("watching_clients", watched.iter().filter(|keys| **keys > 0).count());
    text.line("clients_in_timeout_table", 0);
    text.line("total_watched_keys", watched.iter().sum::<usize>());
    text.lines(&[("total_blocking_keys", "0"), ("total_blocking_keys_on_nokey", "0")]);
}

/// Bytes of all clients' buffers and records.
fn client_bytes(server: &Server) -> u64 {
    let bytes = |client: &crate::server::ClientInfo| {
        // Relaxed, twice: figures of other workers that order nothing.
        client.query_buffer.load(Ordering::Relaxed)
            + client.query_buffer_free.load(Ordering::Relaxed)
            + client.output_buffer()
            + size_of::<crate::server::ClientInfo>()
    };
    server.clients.snapshot().iter().map(|client| bytes(client) as u64).sum()
}

fn memory(context: &Context<'_>, text: &mut Text) {
    let server = context.server;
    let settings = &server.settings;
    let (used, peak) = (allocation::used(), allocation::peak());
    let (resident, machine) = (process::resident_bytes(), process::machine_bytes());
    // Relaxed: written once before the first client.
    let startup = server.startup_memory.load(Ordering::Relaxed).min(used);
    let clients = client_bytes(server);
    let heads: u64 = context.worker.database_sizes().iter().map(|size| size.buckets * 8).sum();
    let overhead = (startup + clients + heads).min(used);
    let dataset = used - overhead;
    text.bytes("used_memory", used);
    text.bytes("used_memory_rss", resident);
    text.bytes("used_memory_peak", peak);
    text.line("used_memory_peak_perc", format_args!("{:.2}%", 100.0 * ratio(used, peak)));
    text.line("used_memory_overhead", overhead);
    text.line("used_memory_startup", startup);
    text.line("used_memory_dataset", dataset);
    text.line("used_memory_dataset_perc", format_args!("{:.2}%", 100.0 * ratio(dataset, used - startup)));
    text.line("allocator_allocated", used);
    text.line("allocator_active", resident.max(used));
    text.line("allocator_resident", resident);
    text.bytes("total_system_memory", machine);
    text.lines(&[
        ("used_memory_lua", "0"),
        ("used_memory_vm_eval", "0"),
        ("used_memory_lua_human", "0B"),
        ("used_memory_scripts_eval", "0"),
        ("number_of_cached_scripts", "0"),
        ("number_of_functions", "0"),
        ("number_of_libraries", "0"),
        ("used_memory_vm_functions", "0"),
        ("used_memory_vm_total", "0"),
        ("used_memory_vm_total_human", "0B"),
        ("used_memory_functions", "0"),
        ("used_memory_scripts", "0"),
        ("used_memory_scripts_human", "0B"),
    ]);
    text.bytes("maxmemory", settings.maxmemory.get());
    text.line("maxmemory_policy", EvictionPolicy::name(settings.maxmemory_policy.get()));
    let waste = resident as i64 - used as i64;
    text.line("allocator_frag_ratio", format_args!("{:.2}", ratio(resident.max(used), used)));
    text.line("allocator_frag_bytes", waste.max(0));
    text.lines(&[
        ("allocator_rss_ratio", "1.00"),
        ("allocator_rss_bytes", "0"),
        ("rss_overhead_ratio", "1.00"),
        ("rss_overhead_bytes", "0"),
    ]);
    text.line("mem_fragmentation_ratio", format_args!("{:.2}", ratio(resident, used)));
    text.line("mem_fragmentation_bytes", waste);
    text.lines(&[
        ("mem_not_counted_for_evict", "0"),
        ("mem_replication_backlog", "0"),
        ("mem_total_replication_buffers", "0"),
        ("mem_clients_slaves", "0"),
    ]);
    text.line("mem_clients_normal", clients);
    text.lines(&[
        ("mem_cluster_links", "0"),
        ("mem_aof_buffer", "0"),
        ("mem_allocator", "mimalloc"),
        ("active_defrag_running", "0"),
        ("lazyfree_pending_objects", "0"),
        ("lazyfreed_objects", "0"),
    ]);
}

/// Nothing is written to disk in this version.
fn persistence(context: &Context<'_>, text: &mut Text) {
    let started = context.server.started_at.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    text.lines(&[
        ("loading", "0"),
        ("async_loading", "0"),
        ("current_cow_peak", "0"),
        ("current_cow_size", "0"),
        ("current_cow_size_age", "0"),
        ("current_fork_perc", "0.00"),
        ("current_save_keys_processed", "0"),
        ("current_save_keys_total", "0"),
        ("rdb_changes_since_last_save", "0"),
        ("rdb_bgsave_in_progress", "0"),
    ]);
    text.line("rdb_last_save_time", started);
    text.lines(&[
        ("rdb_last_bgsave_status", "ok"),
        ("rdb_last_bgsave_time_sec", "-1"),
        ("rdb_current_bgsave_time_sec", "-1"),
        ("rdb_saves", "0"),
        ("rdb_last_cow_size", "0"),
        ("rdb_last_load_keys_expired", "0"),
        ("rdb_last_load_keys_loaded", "0"),
        ("aof_enabled", "0"),
        ("aof_rewrite_in_progress", "0"),
        ("aof_rewrite_scheduled", "0"),
        ("aof_last_rewrite_time_sec", "-1"),
        ("aof_current_rewrite_time_sec", "-1"),
        ("aof_last_bgrewrite_status", "ok"),
        ("aof_rewrites", "0"),
        ("aof_rewrites_consecutive_failures", "0"),
        ("aof_last_write_status", "ok"),
        ("aof_last_cow_size", "0"),
        ("module_fork_in_progress", "0"),
        ("module_fork_last_cow_size", "0"),
    ]);
}

fn statistics(context: &Context<'_>, text: &mut Text) {
    let server = context.server;
    let totals = server.statistics.totals();
    let store = server.store_statistics();
    let kilobytes = |bytes: u64| format!("{:.2}", bytes as f64 / 1024.0);
    text.line("total_connections_received", totals.connections_received);
    text.line("total_commands_processed", totals.commands_processed);
    text.line("instantaneous_ops_per_sec", server.rates.commands());
    text.line("total_net_input_bytes", totals.net_input_bytes);
    text.line("total_net_output_bytes", totals.net_output_bytes);
    text.lines(&[("total_net_repl_input_bytes", "0"), ("total_net_repl_output_bytes", "0")]);
    text.line("instantaneous_input_kbps", kilobytes(server.rates.input_bytes()));
    text.line("instantaneous_output_kbps", kilobytes(server.rates.output_bytes()));
    text.lines(&[("instantaneous_input_repl_kbps", "0.00"), ("instantaneous_output_repl_kbps", "0.00")]);
    text.line("rejected_connections", totals.connections_rejected);
    text.lines(&[("sync_full", "0"), ("sync_partial_ok", "0"), ("sync_partial_err", "0")]);
    text.line("expired_keys", store.expired_keys);
    text.lines(&[
        ("expired_stale_perc", "0.00"),
        ("expired_time_cap_reached_count", "0"),
        ("expire_cycle_cpu_milliseconds", "0"),
        ("evicted_keys", "0"),
        ("evicted_clients", "0"),
        ("evicted_scripts", "0"),
        ("total_eviction_exceeded_time", "0"),
        ("current_eviction_exceeded_time", "0"),
    ]);
    text.line("keyspace_hits", store.keyspace_hits);
    text.line("keyspace_misses", store.keyspace_misses);
    text.line("pubsub_channels", server.hub.count(Topic::Channel));
    text.line("pubsub_patterns", server.hub.count(Topic::Pattern));
    text.line("pubsubshard_channels", server.hub.count(Topic::ShardChannel));
    text.lines(&[
        ("latest_fork_usec", "0"),
        ("total_forks", "0"),
        ("migrate_cached_sockets", "0"),
        ("slave_expires_tracked_keys", "0"),
        ("active_defrag_hits", "0"),
        ("active_defrag_misses", "0"),
        ("active_defrag_key_hits", "0"),
        ("active_defrag_key_misses", "0"),
        ("total_active_defrag_time", "0"),
        ("current_active_defrag_time", "0"),
    ]);
    let (keys, items) = server.trackers.remembered();
    text.line("tracking_total_keys", keys);
    text.line("tracking_total_items", items);
    text.line("tracking_total_prefixes", server.trackers.counts().1);
    text.lines(&[("unexpected_error_replies", "0")]);
    text.line("total_error_replies", totals.error_replies);
    text.line("dump_payload_sanitizations", 0);
    text.line("total_reads_processed", totals.reads_processed);
    text.line("total_writes_processed", totals.writes_processed);
    // Every thread reads and writes for itself; those beside the first are what Redis calls I/O threads.
    let beside = server.statistics.totals_beside_first();
    text.line("io_threaded_reads_processed", beside.reads_processed);
    text.line("io_threaded_writes_processed", beside.writes_processed);
    text.line("client_query_buffer_limit_disconnections", totals.query_buffer_limit_disconnections);
    text.line("client_output_buffer_limit_disconnections", totals.output_buffer_limit_disconnections);
    text.lines(&[("reply_buffer_shrinks", "0"), ("reply_buffer_expands", "0")]);
    text.line("eventloop_cycles", totals.batches_processed);
    text.line("eventloop_duration_sum", processor_microseconds());
    text.line("eventloop_duration_cmd_sum", totals.command_nanoseconds / 1000);
    let batches = server.rates.batches();
    text.line("instantaneous_eventloop_cycles_per_sec", batches);
    text.line(
        "instantaneous_eventloop_duration_usec",
        server.rates.command_nanoseconds().checked_div(batches).unwrap_or(0) / 1000,
    );
    text.line("acl_access_denied_auth", totals.acl_access_denied_auth);
    text.lines(&[("acl_access_denied_cmd", "0"), ("acl_access_denied_key", "0"), ("acl_access_denied_channel", "0")]);
}

fn processor_microseconds() -> u128 {
    let time = process::processor_time(Who::Process);
    (time.system + time.user).as_micros()
}

/// A primary without replicas.
fn replication(context: &Context<'_>, text: &mut Text) {
    text.lines(&[("role", "master"), ("connected_slaves", "0"), ("master_failover_state", "no-failover")]);
    text.line("master_replid", context.server.replication_id());
    text.lines(&[
        ("master_replid2", "0000000000000000000000000000000000000000"),
        ("master_repl_offset", "0"),
        ("second_repl_offset", "-1"),
        ("repl_backlog_active", "0"),
    ]);
    text.line("repl_backlog_size", context.server.settings.value("repl-backlog-size").number());
    text.lines(&[("repl_backlog_first_byte_offset", "0"), ("repl_backlog_histlen", "0")]);
}

fn processor(_: &Context<'_>, text: &mut Text) {
    // "Main thread" is the thread of the client that asks: here every thread is a main thread.
    for (who, suffix) in [(Who::Process, ""), (Who::Children, "_children"), (Who::Thread, "_main_thread")] {
        let time = process::processor_time(who);
        text.line(&format!("used_cpu_sys{suffix}"), format_args!("{:.6}", time.system.as_secs_f64()));
        text.line(&format!("used_cpu_user{suffix}"), format_args!("{:.6}", time.user.as_secs_f64()));
    }
}

fn command_statistics(context: &Context<'_>, text: &mut Text) {
    for command in context.table.all() {
        let totals = context.server.statistics.command(command.index);
        if totals.calls == 0 && totals.rejected_calls == 0 {
            continue;
        }
        let microseconds = totals.nanoseconds / 1000;
        let per_call = ratio(totals.nanoseconds, totals.calls) / 1000.0;
        text.line(
            &format!("cmdstat_{}", command.full_name),
            format_args!(
                "calls={},usec={microseconds},usec_per_call={per_call:.2},rejected_calls={},failed_calls={}",
                totals.calls, totals.rejected_calls, totals.failed_calls
            ),
        );
    }
}

fn error_statistics(context: &Context<'_>, text: &mut Text) {
    for (code, count) in context.server.statistics.errors() {
        text.line(&format!("errorstat_{code}"), format_args!("count={count}"));
    }
}

fn latency_statistics(context: &Context<'_>, text: &mut Text) {
    if !context.server.settings.latency_tracking.get() {
        return;
    }
    let percentiles: Vec<(String, f64)> = context
        .server
        .settings
        .strings("latency-tracking-info-percentiles")
        .into_iter()
        .filter_map(|text| text.parse().ok().map(|number| (text, number)))
        .collect();
    for command in context.table.all() {
        let latency = context.server.statistics.command(command.index).latency;
        if latency.count() == 0 {
            continue;
        }
        let values: Vec<String> = percentiles
            .iter()
            .map(|(name, percentile)| format!("p{name}={:.3}", latency.percentile(*percentile) as f64 / 1000.0))
            .collect();
        text.line(&format!("latency_percentiles_usec_{}", command.full_name), values.join(","));
    }
}

/// What only Caswell has: how its lock-free core fares.
fn engine(context: &Context<'_>, text: &mut Text) {
    let store = context.server.store_statistics();
    text.line("commit_conflicts", store.conflicts);
    text.line("commits_of_several_keys", store.multi_commits);
    text.line("commits_aborted", store.aborts);
    text.line("elder_transactions", store.elders);
    text.line("gates_taken", store.gates);
    text.line("table_growths", store.growths);
    text.line("garbage_bytes_total", store.retired_bytes);
    text.line("garbage_bytes_waiting", store.garbage_bytes);
}

fn keyspace(context: &Context<'_>, text: &mut Text) {
    for (database, size) in context.worker.database_sizes().iter().enumerate() {
        if size.keys > 0 {
            // The average time to live is not kept: that would be a shared counter for every write.
            text.line(
                &format!("db{database}"),
                format_args!("keys={},expires={},avg_ttl=0", size.keys, size.expiring_keys),
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_for_people_have_two_decimals() {
        let cases = [(0, "0B"), (1023, "1023B"), (1024, "1.00K"), (965_904, "943.27K"), (12_427_264, "11.85M")];
        for (bytes, expected) in cases {
            assert_eq!(human(bytes), expected);
        }
        assert_eq!(human(25_276_510_208), "23.54G");
        assert_eq!(human(u64::MAX), "16384.00P");
    }
}
