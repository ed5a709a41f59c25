//! Addresses, connections, protocol limits, who may connect.

use super::super::setting::{Setting, Topic};
use super::super::value::Kind;
use super::super::words;

const SETTINGS: &[Setting] = &[
    Setting::integer("port", 0, 65535, "6379", "TCP port; 0 for none.")
        .publish(|settings, value| settings.port.set(value.number() as u16)),
    Setting::new(
        "bind",
        Kind::Words(&words::BIND),
        "* -::*",
        "Addresses to listen on; `*` is every one, and one with `-` in front may be missing.",
    ),
    Setting::text("bind-source-addr", "", "Address from which connections to others are made.")
        .no_effect("This version connects to nobody."),
    Setting::text("unixsocket", "", "Path of a Unix socket to listen on.").at_start(),
    Setting::new(
        "unixsocketperm",
        Kind::Octal(0o777),
        "0",
        "Permissions of the Unix socket; 0 leaves them to the umask.",
    )
    .at_start()
    .publish(|settings, value| settings.unixsocketperm.set(value.number() as u32)),
    Setting::text("unixsocketgroup", "", "Group of the Unix socket.")
        .at_start()
        .only(&[""], "unixsocketgroup is not supported: use unixsocketperm."),
    Setting::integer("tcp-backlog", 0, i32::MAX as i64, "511", "Connections that may wait to be accepted.")
        .at_start()
        .publish(|settings, value| settings.tcp_backlog.set(value.number() as u32)),
    Setting::integer(
        "tcp-keepalive",
        0,
        i32::MAX as i64,
        "300",
        "Seconds of silence after which the kernel probes a connection; 0 for never.",
    )
    .publish(|settings, value| settings.tcp_keepalive_seconds.set(value.number() as u32)),
    Setting::integer(
        "timeout",
        0,
        i32::MAX as i64,
        "0",
        "Seconds after which an idle client is disconnected; 0 for never.",
    )
    .publish(|settings, value| settings.timeout_seconds.set(value.number() as u32)),
    Setting::integer("maxclients", 1, u32::MAX as i64, "10000", "Clients that may be connected at once.")
        .publish(|settings, value| settings.maxclients.set(value.number() as u32)),
    Setting::yes_no(
        "protected-mode",
        "yes",
        "Refuses clients of other machines while no password is set and no address was chosen.",
    )
    .publish(|settings, value| settings.protected_mode.set(value.is_yes())),
    Setting::text("requirepass", "", "Password of the default user; empty for none.")
        .publish(|settings, value| settings.password_required.set(!value.text().is_empty())),
    Setting::memory("proto-max-bulk-len", 1 << 20, "512mb", "Longest argument, and longest string value, in bytes.")
        .publish(|settings, value| settings.proto_max_bulk_len.set(value.number() as u64)),
    Setting::memory(
        "client-query-buffer-limit",
        1 << 20,
        "1gb",
        "Unprocessed input at which a client is disconnected.",
    )
    .publish(|settings, value| settings.client_query_buffer_limit.set(value.number() as u64)),
    Setting::new(
        "client-output-buffer-limit",
        Kind::Words(&words::OUTPUT_LIMITS),
        "normal 0 0 0 slave 256mb 64mb 60 pubsub 32mb 8mb 60",
        "Per class of clients: output at which one is disconnected, and a lower mark with seconds it may stay above.",
    )
    .publish(|settings, value| {
        for (limit, words) in settings.output_limits().iter().zip(value.words().chunks(4)) {
            let number = |word: &[u8]| crate::command::args::parse_integer(word).unwrap_or(0) as u64;
            limit.hard.set(number(&words[1]));
            limit.soft.set(number(&words[2]));
            limit.soft_seconds.set(number(&words[3]));
        }
    }),
    Setting::integer("socket-mark-id", 0, u32::MAX as i64, "0", "Mark of our sockets for packet filters.")
        .at_start()
        .only(&["0"], "socket-mark-id is not supported."),
    Setting::integer(
        "max-new-connections-per-cycle",
        1,
        1000,
        "10",
        "Connections accepted before clients are served again.",
    )
    .no_effect("Each core accepts and serves in turn by itself."),
    Setting::integer("max-new-tls-connections-per-cycle", 1, 1000, "1", "The same for TLS.")
        .no_effect("There is no TLS in this version."),
    Setting::yes_no("mptcp", "no", "Multipath TCP for clients.")
        .at_start()
        .only(&["no"], "Multipath TCP is not supported."),
    Setting::text("rdma-bind", "", "Addresses for RDMA.").only(&[""], "RDMA is not supported."),
    Setting::integer("rdma-port", 0, 65535, "0", "Port for RDMA; 0 for none.").only(&["0"], "RDMA is not supported."),
    Setting::integer("rdma-rx-size", 65536, 16 << 20, "1048576", "Receive buffer of an RDMA connection.")
        .at_start()
        .no_effect("RDMA is not supported."),
    Setting::integer("rdma-completion-vector", -1, 1024, "-1", "Completion vector of RDMA connections.")
        .at_start()
        .no_effect("RDMA is not supported."),
];

/// The topic.
pub const TOPIC: Topic = Topic { title: "Network", settings: SETTINGS };
