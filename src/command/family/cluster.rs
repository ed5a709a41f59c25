//! CLUSTER and what belongs to it: this server stands alone, so every one of them says so.

use crate::command::Context;
use crate::command::args::Args;
use crate::command::error::{CommandError, CommandResult};
use crate::command::spec::{Argument, Flags, Group, Handler, Row};
use crate::resp::Reply;

const SLOT_RANGE: Argument =
    Argument::block("range", &[Argument::integer("start-slot"), Argument::integer("end-slot")]).multiple();

/// The commands of this family.
pub static ROWS: &[Row] = &[Row {
    name: "cluster",
    summary: "Looks at a cluster and manages it.",
    arity: -2,
    since: "3.0.0",
    group: Group::Cluster,
    complexity: "Depends on the subcommand",
    subcommands: &[
        Row {
            name: "addslots",
            summary: "Assigns slots to this node.",
            handler: Handler::Server(cluster_disabled),
            arity: -3,
            flags: Flags::ADMIN.or(Flags::STALE).or(Flags::NO_ASYNC_LOADING),
            since: "3.0.0",
            group: Group::Cluster,
            complexity: "O(N) with N the slots named",
            arguments: &[Argument::integer("slot").multiple()],
            ..Row::DEFAULT
        },
        Row {
            name: "addslotsrange",
            summary: "Assigns ranges of slots to this node.",
            handler: Handler::Server(cluster_disabled),
            arity: -4,
            flags: Flags::ADMIN.or(Flags::STALE).or(Flags::NO_ASYNC_LOADING),
            since: "7.0.0",
            group: Group::Cluster,
            complexity: "O(N) with N the slots in the ranges",
            arguments: &[SLOT_RANGE],
            ..Row::DEFAULT
        },
        Row {
            name: "bumpepoch",
            summary: "Raises the configuration epoch.",
            handler: Handler::Server(cluster_disabled),
            arity: 2,
            flags: Flags::ADMIN.or(Flags::STALE).or(Flags::NO_ASYNC_LOADING),
            tips: &["nondeterministic_output"],
            since: "3.0.0",
            group: Group::Cluster,
            ..Row::DEFAULT
        },
        Row {
            name: "count-failure-reports",
            summary: "Counts the open reports that a node has failed.",
            handler: Handler::Server(cluster_disabled),
            arity: 3,
            flags: Flags::ADMIN.or(Flags::STALE),
            tips: &["nondeterministic_output"],
            since: "3.0.0",
            group: Group::Cluster,
            complexity: "O(N) with N reports",
            arguments: &[Argument::string("node-id")],
            ..Row::DEFAULT
        },
        Row {
            name: "countkeysinslot",
            summary: "Counts the keys of a slot.",
            handler: Handler::Server(cluster_disabled),
            arity: 3,
            flags: Flags::STALE,
            since: "3.0.0",
            group: Group::Cluster,
            arguments: &[Argument::integer("slot")],
            ..Row::DEFAULT
        },
        Row {
            name: "delslots",
            summary: "Takes slots off this node.",
            handler: Handler::Server(cluster_disabled),
            arity: -3,
            flags: Flags::ADMIN.or(Flags::STALE).or(Flags::NO_ASYNC_LOADING),
            since: "3.0.0",
            group: Group::Cluster,
            complexity: "O(N) with N the slots named",
            arguments: &[Argument::integer("slot").multiple()],
            ..Row::DEFAULT
        },
        Row {
            name: "delslotsrange",
            summary: "Takes ranges of slots off this node.",
            handler: Handler::Server(cluster_disabled),
            arity: -4,
            flags: Flags::ADMIN.or(Flags::STALE).or(Flags::NO_ASYNC_LOADING),
            since: "7.0.0",
            group: Group::Cluster,
            complexity: "O(N) with N the slots in the ranges",
            arguments: &[SLOT_RANGE],
            ..Row::DEFAULT
        },
        Row {
            name: "failover",
            summary: "Makes this replica take over from its primary.",
            handler: Handler::Server(cluster_disabled),
            arity: -2,
            flags: Flags::ADMIN.or(Flags::STALE).or(Flags::NO_ASYNC_LOADING),
            since: "3.0.0",
            group: Group::Cluster,
            arguments: &[Argument::one_of(
                "options",
                &[Argument::word("force", "FORCE"), Argument::word("takeover", "TAKEOVER")],
            )
            .optional()],
            ..Row::DEFAULT
        },
        Row {
            name: "flushslots",
            summary: "Takes all slots off this node.",
            handler: Handler::Server(cluster_disabled),
            arity: 2,
            flags: Flags::ADMIN.or(Flags::STALE).or(Flags::NO_ASYNC_LOADING),
            since: "3.0.0",
            group: Group::Cluster,
            ..Row::DEFAULT
        },
        Row {
            name: "forget",
            summary: "Drops a node from the list of known nodes.",
            handler: Handler::Server(cluster_disabled),
            arity: 3,
            flags: Flags::ADMIN.or(Flags::STALE).or(Flags::NO_ASYNC_LOADING),
            since: "3.0.0",
            group: Group::Cluster,
            arguments: &[Argument::string("node-id")],
            ..Row::DEFAULT
        },
        Row {
            name: "getkeysinslot",
            summary: "Lists keys of a slot.",
            handler: Handler::Server(cluster_disabled),
            arity: 4,
            flags: Flags::STALE,
            tips: &["nondeterministic_output"],
            since: "3.0.0",
            group: Group::Cluster,
            complexity: "O(N) with N the keys asked for",
            arguments: &[Argument::integer("slot"), Argument::integer("count")],
            ..Row::DEFAULT
        },
        Row {
            name: "help",
            summary: "Lists the subcommands.",
            handler: Handler::Server(cluster_disabled),
            arity: 2,
            flags: Flags::LOADING.or(Flags::STALE),
            since: "5.0.0",
            group: Group::Cluster,
            ..Row::DEFAULT
        },
        Row {
            name: "info",
            summary: "Describes the state of the cluster as this node sees it.",
            handler: Handler::Server(cluster_disabled),
            arity: 2,
            flags: Flags::STALE,
            tips: &["nondeterministic_output"],
            since: "3.0.0",
            group: Group::Cluster,
            ..Row::DEFAULT
        },
        Row {
            name: "keyslot",
            summary: "Gives the slot that a key belongs to.",
            handler: Handler::Server(cluster_disabled),
            arity: 3,
            flags: Flags::STALE,
            since: "3.0.0",
            group: Group::Cluster,
            complexity: "O(N) with N the bytes of the key",
            arguments: &[Argument::string("key")],
            ..Row::DEFAULT
        },
        Row {
            name: "links",
            summary: "Lists the connections to and from other nodes.",
            handler: Handler::Server(cluster_disabled),
            arity: 2,
            flags: Flags::STALE,
            tips: &["nondeterministic_output"],
            since: "7.0.0",
            group: Group::Cluster,
            complexity: "O(N) with N nodes",
            ..Row::DEFAULT
        },
        Row {
            name: "meet",
            summary: "Introduces another node to this one.",
            handler: Handler::Server(cluster_disabled),
            arity: -4,
            flags: Flags::ADMIN.or(Flags::STALE).or(Flags::NO_ASYNC_LOADING),
            since: "3.0.0",
            group: Group::Cluster,
            history: &[("4.0.0", "A bus port may be given.")],
            arguments: &[
                Argument::string("ip"),
                Argument::integer("port"),
                Argument::integer("cluster-bus-port").since("4.0.0").optional(),
            ],
            ..Row::DEFAULT
        },
        Row {
            name: "myid",
            summary: "Gives the identity of this node.",
            handler: Handler::Server(cluster_disabled),
            arity: 2,
            flags: Flags::STALE,
            since: "3.0.0",
            group: Group::Cluster,
            ..Row::DEFAULT
        },
        Row {
            name: "myshardid",
            summary: "Gives the identity of this node's shard.",
            handler: Handler::Server(cluster_disabled),
            arity: 2,
            flags: Flags::STALE,
            tips: &["nondeterministic_output"],
            since: "7.2.0",
            group: Group::Cluster,
            ..Row::DEFAULT
        },
        Row {
            name: "nodes",
            summary: "Lists the nodes with their state and slots.",
            handler: Handler::Server(cluster_disabled),
            arity: 2,
            flags: Flags::STALE,
            tips: &["nondeterministic_output"],
            since: "3.0.0",
            group: Group::Cluster,
            complexity: "O(N) with N nodes",
            ..Row::DEFAULT
        },
        Row {
            name: "replicas",
            summary: "Lists the replicas of a primary.",
            handler: Handler::Server(cluster_disabled),
            arity: 3,
            flags: Flags::ADMIN.or(Flags::STALE),
            tips: &["nondeterministic_output"],
            since: "5.0.0",
            group: Group::Cluster,
            complexity: "O(N) with N replicas",
            arguments: &[Argument::string("node-id")],
            ..Row::DEFAULT
        },
        Row {
            name: "replicate",
            summary: "Makes this node a replica of another one.",
            handler: Handler::Server(cluster_disabled),
            arity: 3,
            flags: Flags::ADMIN.or(Flags::STALE).or(Flags::NO_ASYNC_LOADING),
            since: "3.0.0",
            group: Group::Cluster,
            arguments: &[Argument::string("node-id")],
            ..Row::DEFAULT
        },
        Row {
            name: "reset",
            summary: "Makes this node forget the cluster.",
            handler: Handler::Server(cluster_disabled),
            arity: -2,
            flags: Flags::ADMIN.or(Flags::NOSCRIPT).or(Flags::STALE),
            since: "3.0.0",
            group: Group::Cluster,
            complexity: "O(N) with N the known nodes",
            arguments: &[Argument::one_of(
                "reset-type",
                &[Argument::word("hard", "HARD"), Argument::word("soft", "SOFT")],
            )
            .optional()],
            ..Row::DEFAULT
        },
        Row {
            name: "saveconfig",
            summary: "Writes the cluster's configuration to disk.",
            handler: Handler::Server(cluster_disabled),
            arity: 2,
            flags: Flags::ADMIN.or(Flags::STALE).or(Flags::NO_ASYNC_LOADING),
            since: "3.0.0",
            group: Group::Cluster,
            ..Row::DEFAULT
        },
        Row {
            name: "set-config-epoch",
            summary: "Sets the configuration epoch of a new node.",
            handler: Handler::Server(cluster_disabled),
            arity: 3,
            flags: Flags::ADMIN.or(Flags::STALE).or(Flags::NO_ASYNC_LOADING),
            since: "3.0.0",
            group: Group::Cluster,
            arguments: &[Argument::integer("config-epoch")],
            ..Row::DEFAULT
        },
        Row {
            name: "setslot",
            summary: "Changes whom a slot belongs to, or its migration.",
            handler: Handler::Server(cluster_disabled),
            arity: -4,
            flags: Flags::ADMIN.or(Flags::STALE).or(Flags::NO_ASYNC_LOADING),
            since: "3.0.0",
            group: Group::Cluster,
            arguments: &[
                Argument::integer("slot"),
                Argument::one_of(
                    "subcommand",
                    &[
                        Argument::string("importing").token("IMPORTING").shown_as("node-id"),
                        Argument::string("migrating").token("MIGRATING").shown_as("node-id"),
                        Argument::string("node").token("NODE").shown_as("node-id"),
                        Argument::word("stable", "STABLE"),
                    ],
                ),
            ],
            ..Row::DEFAULT
        },
        Row {
            name: "shards",
            summary: "Lists the shards with their slots and nodes.",
            handler: Handler::Server(cluster_disabled),
            arity: 2,
            flags: Flags::LOADING.or(Flags::STALE),
            tips: &["nondeterministic_output"],
            since: "7.0.0",
            group: Group::Cluster,
            complexity: "O(N) with N nodes",
            ..Row::DEFAULT
        },
        Row {
            name: "slaves",
            summary: "Lists the replicas of a primary; the old name of CLUSTER REPLICAS.",
            handler: Handler::Server(cluster_disabled),
            arity: 3,
            flags: Flags::ADMIN.or(Flags::STALE),
            tips: &["nondeterministic_output"],
            since: "3.0.0",
            group: Group::Cluster,
            complexity: "O(N) with N replicas",
            deprecated: Some(("5.0.0", "`CLUSTER REPLICAS`")),
            arguments: &[Argument::string("node-id")],
            ..Row::DEFAULT
        },
        Row {
            name: "slots",
            summary: "Lists the ranges of slots with their nodes.",
            handler: Handler::Server(cluster_disabled),
            arity: 2,
            flags: Flags::LOADING.or(Flags::STALE),
            tips: &["nondeterministic_output"],
            since: "3.0.0",
            group: Group::Cluster,
            complexity: "O(N) with N nodes",
            history: &[("4.0.0", "Identities of nodes."), ("7.0.0", "More facts about the network.")],
            deprecated: Some(("7.0.0", "`CLUSTER SHARDS`")),
            ..Row::DEFAULT
        },
    ],
    ..Row::DEFAULT
}];

const DISABLED: CommandError = CommandError::err("This instance has cluster support disabled");

fn cluster_disabled(_: &mut Context<'_>, _: &Args<'_>, _: &mut Reply) -> CommandResult {
    Err(DISABLED)
}
