//! The keyspace as a whole, and the server itself.

use crate::command::Context;
use crate::command::args::Args;
use crate::command::error::{CommandError, CommandResult};
use crate::command::help;
use crate::command::spec::{Argument, Categories, Flags, Handler, Row};
use crate::resp::Reply;
use crate::server::ShutdownRequest;
use crate::session::Ending;
use crate::sync::Ordering;
use crate::txn::{RuntimeLimits, databases};
use std::time::{SystemTime, UNIX_EPOCH};

const FLUSH_TYPE: Argument = Argument::one_of(
    "flush-type",
    &[Argument::word("async", "ASYNC").since("4.0.0"), Argument::word("sync", "SYNC").since("6.2.0")],
)
.optional();

/// The commands of this family.
pub static ROWS: &[Row] = &[
    Row {
        name: "dbsize",
        summary: "Counts the keys of the database.",
        handler: Handler::Server(dbsize),
        arity: 1,
        flags: Flags::READONLY.or(Flags::FAST),
        categories: Categories::KEYSPACE,
        tips: &["request_policy:all_shards", "response_policy:agg_sum"],
        whole_keyspace: true,
        ..Row::DEFAULT
    },
    Row {
        name: "flushall",
        summary: "Deletes every key of every database.",
        handler: Handler::Server(flushall),
        arity: -1,
        flags: Flags::WRITE,
        categories: Categories::KEYSPACE.or(Categories::DANGEROUS),
        tips: &["request_policy:all_shards", "response_policy:all_succeeded"],
        complexity: "O(N) with N the keys of all databases",
        history: &[("4.0.0", "Modifier `ASYNC`."), ("6.2.0", "Modifier `SYNC`.")],
        arguments: &[FLUSH_TYPE],
        whole_keyspace: true,
        ..Row::DEFAULT
    },
    Row {
        name: "flushdb",
        summary: "Deletes every key of the database.",
        handler: Handler::Server(flushdb),
        arity: -1,
        flags: Flags::WRITE,
        categories: Categories::KEYSPACE.or(Categories::DANGEROUS),
        tips: &["request_policy:all_shards", "response_policy:all_succeeded"],
        complexity: "O(N) with N the keys of the database",
        history: &[("4.0.0", "Modifier `ASYNC`."), ("6.2.0", "Modifier `SYNC`.")],
        arguments: &[FLUSH_TYPE],
        whole_keyspace: true,
        ..Row::DEFAULT
    },
    Row {
        name: "module",
        summary: "Manages modules.",
        arity: -2,
        since: "4.0.0",
        complexity: "Depends on the subcommand",
        subcommands: &[
            Row {
                name: "help",
                summary: "Lists the subcommands.",
                handler: Handler::Server(module_help),
                arity: 2,
                flags: Flags::LOADING.or(Flags::STALE),
                since: "5.0.0",
                ..Row::DEFAULT
            },
            Row {
                name: "list",
                summary: "Lists the loaded modules.",
                handler: Handler::Server(module_list),
                arity: 2,
                flags: Flags::ADMIN.or(Flags::NOSCRIPT),
                tips: &["nondeterministic_output_order"],
                since: "4.0.0",
                complexity: "O(N) with N modules",
                ..Row::DEFAULT
            },
        ],
        ..Row::DEFAULT
    },
    Row {
        name: "monitor",
        summary: "Shows every command that the server runs.",
        handler: Handler::Server(monitor),
        arity: 1,
        flags: Flags::ADMIN.or(Flags::NOSCRIPT).or(Flags::LOADING).or(Flags::STALE),
        complexity: "",
        ..Row::DEFAULT
    },
    Row {
        name: "role",
        summary: "Tells the server's part in replication.",
        handler: Handler::Server(role),
        arity: 1,
        flags: Flags::NOSCRIPT.or(Flags::LOADING).or(Flags::STALE).or(Flags::FAST),
        categories: Categories::ADMIN.or(Categories::DANGEROUS),
        since: "2.8.12",
        ..Row::DEFAULT
    },
    Row {
        name: "shutdown",
        summary: "Saves the data where wanted and stops the server.",
        handler: Handler::Server(shutdown),
        arity: -1,
        flags: Flags::ADMIN
            .or(Flags::NOSCRIPT)
            .or(Flags::LOADING)
            .or(Flags::STALE)
            .or(Flags::NO_MULTI)
            .or(Flags::ALLOW_BUSY),
        complexity: "O(N) with N the keys of all databases when it saves, else O(1)",
        history: &[("7.0.0", "Modifiers `NOW`, `FORCE` and `ABORT`.")],
        arguments: &[
            Argument::one_of("save-selector", &[Argument::word("nosave", "NOSAVE"), Argument::word("save", "SAVE")])
                .optional(),
            Argument::word("now", "NOW").since("7.0.0").optional(),
            Argument::word("force", "FORCE").since("7.0.0").optional(),
            Argument::word("abort", "ABORT").since("7.0.0").optional(),
        ],
        ..Row::DEFAULT
    },
    Row {
        name: "swapdb",
        summary: "Exchanges the contents of two databases.",
        handler: Handler::Server(swapdb),
        arity: 3,
        flags: Flags::WRITE.or(Flags::FAST),
        categories: Categories::KEYSPACE.or(Categories::DANGEROUS),
        since: "4.0.0",
        complexity: "O(N) with N the clients that watch or wait on keys of the two databases",
        arguments: &[Argument::integer("index1"), Argument::integer("index2")],
        whole_keyspace: true,
        ..Row::DEFAULT
    },
    Row {
        name: "time",
        summary: "Gives the server's clock in seconds and microseconds.",
        handler: Handler::Server(time),
        arity: 1,
        flags: Flags::LOADING.or(Flags::STALE).or(Flags::FAST),
        tips: &["nondeterministic_output"],
        since: "2.6.0",
        ..Row::DEFAULT
    },
];

fn dbsize(context: &mut Context<'_>, _: &Args<'_>, reply: &mut Reply) -> CommandResult {
    let sizes = context.worker.database_sizes();
    reply.integer(sizes[context.session.database()].keys as i64);
    Ok(())
}

/// Checks FLUSHALL's and FLUSHDB's option. Both ways are the same here: the databases are empty at once, and what they held
/// is freed in the background.
fn check_flush_type(args: &Args<'_>) -> CommandResult {
    let known = args.len() == 1 || args.len() == 2 && (args.is(1, "sync") || args.is(1, "async"));
    if known { Ok(()) } else { Err(CommandError::SYNTAX) }
}

fn flushall(context: &mut Context<'_>, args: &Args<'_>, reply: &mut Reply) -> CommandResult {
    check_flush_type(args)?;
    databases::flush(context.worker, None);
    context.server.tell_of_flush(context.session.client.worker);
    reply.ok();
    Ok(())
}

fn flushdb(context: &mut Context<'_>, args: &Args<'_>, reply: &mut Reply) -> CommandResult {
    check_flush_type(args)?;
    databases::flush(context.worker, Some(context.session.database()));
    context.server.tell_of_flush(context.session.client.worker);
    reply.ok();
    Ok(())
}

fn swapdb(context: &mut Context<'_>, args: &Args<'_>, reply: &mut Reply) -> CommandResult {
    let index = |at: usize, error: &'static str| {
        let index = args.integer(at).ok().and_then(|index| i32::try_from(index).ok());
        index.ok_or(CommandError::err(error))
    };
    let (first, second) = (index(1, "invalid first DB index")?, index(2, "invalid second DB index")?);
    let database = |index: i32| {
        let index = usize::try_from(index).ok().filter(|index| *index < context.server.store.databases());
        index.ok_or(CommandError::err("DB index is out of range"))
    };
    let (first, second) = (database(first)?, database(second)?);
    if first != second {
        let gate = context.worker.hold_gate();
        databases::swap(context.worker, first, second);
        context.serve_all_waiting(RuntimeLimits::from(&context.server.settings));
        drop(gate);
    }
    reply.ok();
    Ok(())
}

fn time(_: &mut Context<'_>, _: &Args<'_>, reply: &mut Reply) -> CommandResult {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    reply.array(2);
    reply.bulk_integer(now.as_secs() as i64);
    reply.bulk_integer(i64::from(now.subsec_micros()));
    Ok(())
}

/// A primary without replicas whose log begins and ends at 0.
fn monitor(context: &mut Context<'_>, _args: &Args<'_>, reply: &mut Reply) -> CommandResult {
    if !context.may_wait {
        return Err(CommandError::err("MONITOR isn't allowed for DENY BLOCKING client"));
    }
    let client = &context.session.client;
    // Relaxed: a flag that its own worker alone changes. One who watches already is told nothing, as in Redis.
    if !client.is_monitor.swap(true, Ordering::Relaxed) {
        context.server.monitors.add(&client.outbox);
        reply.ok();
    }
    Ok(())
}

fn role(_: &mut Context<'_>, _: &Args<'_>, reply: &mut Reply) -> CommandResult {
    reply.array(3);
    reply.bulk(b"master");
    reply.integer(0);
    reply.array(0);
    Ok(())
}

fn module_list(_: &mut Context<'_>, _: &Args<'_>, reply: &mut Reply) -> CommandResult {
    reply.array(0);
    Ok(())
}

fn module_help(_: &mut Context<'_>, _: &Args<'_>, reply: &mut Reply) -> CommandResult {
    let container = ROWS.iter().find(|row| row.name == "module").expect("this function is a row of it");
    help::reply(container, reply);
    Ok(())
}

fn shutdown(context: &mut Context<'_>, args: &Args<'_>, _: &mut Reply) -> CommandResult {
    let mut request = ShutdownRequest::default();
    let mut abort = false;
    for index in 1..args.len() {
        let option = [
            ("nosave", &mut request.no_save),
            ("save", &mut request.save),
            ("now", &mut request.now),
            ("force", &mut request.force),
            ("abort", &mut abort),
        ]
        .into_iter()
        .find(|(name, _)| args.is(index, name));
        let Some((_, chosen)) = option else { return Err(CommandError::SYNTAX) };
        *chosen = true;
    }
    if request.save && request.no_save || abort && args.len() > 2 {
        return Err(CommandError::SYNTAX);
    }
    if abort {
        // A shutdown that was asked for is under way at once: there are no replicas to wait for.
        return Err(CommandError::err("No shutdown in progress."));
    }
    if request.save && !request.force {
        tracing::warn!("SHUTDOWN SAVE is refused: this version writes no snapshots.");
        return Err(CommandError::err("Errors trying to SHUTDOWN. Check logs."));
    }
    tracing::warn!("User requested shutdown...");
    context.session.end(Ending::Now);
    context.server.shutdown.request(request);
    Ok(())
}
