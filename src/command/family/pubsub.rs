//! Publish and subscribe: channels, patterns of channels, shard channels.

use bytes::Bytes;

use crate::command::Context;
use crate::command::args::Args;
use crate::command::error::{CommandError, CommandResult};
use crate::command::help;
use crate::command::spec::{Argument, Flags, Group, Handler, KeyFlags, KeySpec, Row};
use crate::glob;
use crate::limits::SUBSCRIPTIONS_MAX;
use crate::pubsub::Topic;
use crate::resp::Reply;

const SUBSCRIBING: Flags = Flags::PUBSUB.or(Flags::NOSCRIPT).or(Flags::LOADING).or(Flags::STALE);
const PUBLISHING: Flags = Flags::PUBSUB.or(Flags::LOADING).or(Flags::STALE).or(Flags::FAST);
const ASKING: Flags = Flags::PUBSUB.or(Flags::LOADING).or(Flags::STALE);

/// The commands of this family.
pub static ROWS: &[Row] = &[
    Row {
        name: "psubscribe",
        summary: "Subscribes to all channels that match patterns.",
        handler: Handler::Server(psubscribe),
        arity: -2,
        flags: SUBSCRIBING,
        since: "2.0.0",
        group: Group::PubSub,
        complexity: "O(N) with N the patterns named",
        arguments: &[Argument::pattern("pattern").multiple()],
        ..Row::DEFAULT
    },
    Row {
        name: "publish",
        summary: "Sends a message to all who listen to a channel.",
        handler: Handler::Server(publish),
        arity: 3,
        flags: PUBLISHING,
        since: "2.0.0",
        group: Group::PubSub,
        complexity: "O(N+M) with N the subscribers of the channel and M all patterns subscribed to",
        arguments: &[Argument::string("channel"), Argument::string("message")],
        ..Row::DEFAULT
    },
    Row {
        name: "pubsub",
        summary: "Looks at channels and subscriptions.",
        arity: -2,
        since: "2.8.0",
        group: Group::PubSub,
        complexity: "Depends on the subcommand",
        subcommands: &[
            Row {
                name: "channels",
                summary: "Lists the channels that have subscribers.",
                handler: Handler::Server(pubsub_channels),
                arity: -2,
                flags: ASKING,
                since: "2.8.0",
                group: Group::PubSub,
                complexity: "O(N) with N the channels",
                arguments: &[Argument::pattern("pattern").optional()],
                ..Row::DEFAULT
            },
            Row {
                name: "help",
                summary: "Lists the subcommands.",
                handler: Handler::Server(pubsub_help),
                arity: 2,
                flags: Flags::LOADING.or(Flags::STALE),
                since: "6.2.0",
                group: Group::PubSub,
                ..Row::DEFAULT
            },
            Row {
                name: "numpat",
                summary: "Counts the patterns that have subscribers.",
                handler: Handler::Server(pubsub_numpat),
                arity: 2,
                flags: ASKING,
                since: "2.8.0",
                group: Group::PubSub,
                ..Row::DEFAULT
            },
            Row {
                name: "numsub",
                summary: "Counts the subscribers of channels.",
                handler: Handler::Server(pubsub_numsub),
                arity: -2,
                flags: ASKING,
                since: "2.8.0",
                group: Group::PubSub,
                complexity: "O(N) with N the channels named",
                arguments: &[Argument::string("channel").optional().multiple()],
                ..Row::DEFAULT
            },
            Row {
                name: "shardchannels",
                summary: "Lists the shard channels that have subscribers.",
                handler: Handler::Server(pubsub_shardchannels),
                arity: -2,
                flags: ASKING,
                since: "7.0.0",
                group: Group::PubSub,
                complexity: "O(N) with N the shard channels",
                arguments: &[Argument::pattern("pattern").optional()],
                ..Row::DEFAULT
            },
            Row {
                name: "shardnumsub",
                summary: "Counts the subscribers of shard channels.",
                handler: Handler::Server(pubsub_shardnumsub),
                arity: -2,
                flags: ASKING,
                since: "7.0.0",
                group: Group::PubSub,
                complexity: "O(N) with N the shard channels named",
                arguments: &[Argument::string("shardchannel").optional().multiple()],
                ..Row::DEFAULT
            },
        ],
        ..Row::DEFAULT
    },
    Row {
        name: "punsubscribe",
        summary: "Ends subscriptions to patterns, to all without a name.",
        handler: Handler::Server(punsubscribe),
        arity: -1,
        flags: SUBSCRIBING,
        since: "2.0.0",
        group: Group::PubSub,
        complexity: "O(N) with N the patterns named",
        arguments: &[Argument::pattern("pattern").optional().multiple()],
        ..Row::DEFAULT
    },
    Row {
        name: "spublish",
        summary: "Sends a message to all who listen to a shard channel.",
        handler: Handler::Server(spublish),
        arity: 3,
        flags: PUBLISHING,
        keys: &[KeySpec::one(1, KeyFlags::NOT_KEY)],
        since: "7.0.0",
        group: Group::PubSub,
        complexity: "O(N) with N the subscribers of the shard channel",
        arguments: &[Argument::string("shardchannel"), Argument::string("message")],
        ..Row::DEFAULT
    },
    Row {
        name: "ssubscribe",
        summary: "Subscribes to shard channels.",
        handler: Handler::Server(ssubscribe),
        arity: -2,
        flags: SUBSCRIBING,
        keys: &[KeySpec::many(1, 1, KeyFlags::NOT_KEY)],
        since: "7.0.0",
        group: Group::PubSub,
        complexity: "O(N) with N the shard channels named",
        arguments: &[Argument::string("shardchannel").multiple()],
        ..Row::DEFAULT
    },
    Row {
        name: "subscribe",
        summary: "Subscribes to channels.",
        handler: Handler::Server(subscribe),
        arity: -2,
        flags: SUBSCRIBING,
        since: "2.0.0",
        group: Group::PubSub,
        complexity: "O(N) with N the channels named",
        arguments: &[Argument::string("channel").multiple()],
        ..Row::DEFAULT
    },
    Row {
        name: "sunsubscribe",
        summary: "Ends subscriptions to shard channels, to all without a name.",
        handler: Handler::Server(sunsubscribe),
        arity: -1,
        flags: SUBSCRIBING,
        keys: &[KeySpec::many(1, 1, KeyFlags::NOT_KEY)],
        since: "7.0.0",
        group: Group::PubSub,
        complexity: "O(N) with N the shard channels named",
        arguments: &[Argument::string("shardchannel").optional().multiple()],
        ..Row::DEFAULT
    },
    Row {
        name: "unsubscribe",
        summary: "Ends subscriptions to channels, to all without a name.",
        handler: Handler::Server(unsubscribe),
        arity: -1,
        flags: SUBSCRIBING,
        since: "2.0.0",
        group: Group::PubSub,
        complexity: "O(N) with N the channels named",
        arguments: &[Argument::string("channel").optional().multiple()],
        ..Row::DEFAULT
    },
];

fn subscribe(context: &mut Context<'_>, args: &Args<'_>, reply: &mut Reply) -> CommandResult {
    add(context, args, reply, Topic::Channel, "subscribe")
}

fn psubscribe(context: &mut Context<'_>, args: &Args<'_>, reply: &mut Reply) -> CommandResult {
    add(context, args, reply, Topic::Pattern, "psubscribe")
}

fn ssubscribe(context: &mut Context<'_>, args: &Args<'_>, reply: &mut Reply) -> CommandResult {
    add(context, args, reply, Topic::ShardChannel, "ssubscribe")
}

/// Subscribes to each name and confirms each.
fn add(context: &mut Context<'_>, args: &Args<'_>, reply: &mut Reply, topic: Topic, kind: &str) -> CommandResult {
    let outbox = context.session.client.outbox.clone();
    for name in args.from(1) {
        // What is kept must not hold the whole request's buffer.
        let owned = Bytes::copy_from_slice(name);
        if context.session.subscriptions().len() >= SUBSCRIPTIONS_MAX {
            return Err(CommandError::err("too many subscriptions"));
        }
        if context.session.change_subscriptions(|subscriptions| subscriptions.add(topic, owned.clone())) {
            context.server.hub.subscribe(topic, &owned, &outbox);
        }
        confirm(context, reply, topic, kind, Some(name));
    }
    Ok(())
}

fn unsubscribe(context: &mut Context<'_>, args: &Args<'_>, reply: &mut Reply) -> CommandResult {
    remove(context, args, reply, Topic::Channel, "unsubscribe")
}

fn punsubscribe(context: &mut Context<'_>, args: &Args<'_>, reply: &mut Reply) -> CommandResult {
    remove(context, args, reply, Topic::Pattern, "punsubscribe")
}

fn sunsubscribe(context: &mut Context<'_>, args: &Args<'_>, reply: &mut Reply) -> CommandResult {
    remove(context, args, reply, Topic::ShardChannel, "sunsubscribe")
}

/// Ends the subscription to each name, or to all, and confirms each; one confirmation at least.
fn remove(context: &mut Context<'_>, args: &Args<'_>, reply: &mut Reply, topic: Topic, kind: &str) -> CommandResult {
    let outbox = context.session.client.outbox.clone();
    let names: Vec<Bytes> = match args.from(1) {
        [] => context.session.subscriptions().of(topic).iter().cloned().collect(),
        names => names.iter().map(|name| Bytes::copy_from_slice(name)).collect(),
    };
    for name in &names {
        if context.session.change_subscriptions(|subscriptions| subscriptions.remove(topic, name)) {
            context.server.hub.unsubscribe(topic, name, &outbox);
            // No message comes by it any more; those that came before must not be told after the confirmation.
            context.deliver(reply);
        }
        confirm(context, reply, topic, kind, Some(name));
    }
    if names.is_empty() {
        confirm(context, reply, topic, kind, None);
    }
    Ok(())
}

/// Tells the client of a change: the kind, the name and the number of subscriptions it has now. This is told whether it wants replies or not.
fn confirm(context: &Context<'_>, reply: &mut Reply, topic: Topic, kind: &str, name: Option<&[u8]>) {
    reply.push(3);
    reply.bulk(kind.as_bytes());
    match name {
        Some(name) => reply.bulk(name),
        None => reply.null(),
    }
    reply.integer(context.session.subscriptions().told_count(topic) as i64);
    reply.keep();
}

fn publish(context: &mut Context<'_>, args: &Args<'_>, reply: &mut Reply) -> CommandResult {
    let receivers = context.server.publish(context.session.client.worker, args.at(1), args.at(2));
    reply.integer(receivers as i64);
    Ok(())
}

fn spublish(context: &mut Context<'_>, args: &Args<'_>, reply: &mut Reply) -> CommandResult {
    let receivers = context.server.publish_shard(context.session.client.worker, args.at(1), args.at(2));
    reply.integer(receivers as i64);
    Ok(())
}

fn pubsub_channels(context: &mut Context<'_>, args: &Args<'_>, reply: &mut Reply) -> CommandResult {
    list(context, args, reply, Topic::Channel)
}

fn pubsub_shardchannels(context: &mut Context<'_>, args: &Args<'_>, reply: &mut Reply) -> CommandResult {
    list(context, args, reply, Topic::ShardChannel)
}

fn list(context: &mut Context<'_>, args: &Args<'_>, reply: &mut Reply, topic: Topic) -> CommandResult {
    if args.len() > 3 {
        let before = "unknown subcommand or wrong number of arguments for '";
        return Err(CommandError::quoting(before, args.at(1), "'. Try PUBSUB HELP."));
    }
    let mut names = context.server.hub.names(topic);
    if let Some(pattern) = args.get(2) {
        names.retain(|name| glob::matches(pattern, name, false));
    }
    reply.array(names.len());
    names.iter().for_each(|name| reply.bulk(name));
    Ok(())
}

fn pubsub_numpat(context: &mut Context<'_>, _args: &Args<'_>, reply: &mut Reply) -> CommandResult {
    reply.integer(context.server.hub.count(Topic::Pattern) as i64);
    Ok(())
}

fn pubsub_numsub(context: &mut Context<'_>, args: &Args<'_>, reply: &mut Reply) -> CommandResult {
    count(context, args, reply, Topic::Channel)
}

fn pubsub_shardnumsub(context: &mut Context<'_>, args: &Args<'_>, reply: &mut Reply) -> CommandResult {
    count(context, args, reply, Topic::ShardChannel)
}

fn count(context: &mut Context<'_>, args: &Args<'_>, reply: &mut Reply, topic: Topic) -> CommandResult {
    let names = args.from(2);
    reply.array(2 * names.len());
    for name in names {
        reply.bulk(name);
        reply.integer(context.server.hub.subscribers(topic, name) as i64);
    }
    Ok(())
}

fn pubsub_help(_context: &mut Context<'_>, _args: &Args<'_>, reply: &mut Reply) -> CommandResult {
    if let Some(row) = ROWS.iter().find(|row| row.name == "pubsub") {
        help::reply(row, reply);
    }
    Ok(())
}
