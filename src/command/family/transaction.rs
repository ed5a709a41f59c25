//! Transactions: MULTI, EXEC, DISCARD, WATCH, UNWATCH. How EXEC runs is in `command/exec.rs`.

use crate::command::args::Args;
use crate::command::error::{CommandError, CommandResult};
use crate::command::spec::{Argument, Categories, Flags, Group, Handler, KeyFlags, KeySpec, Row};
use crate::command::{Context, exec};
use crate::resp::Reply;
use crate::session::Queue;

const FLAGS: Flags = Flags::NOSCRIPT.or(Flags::LOADING).or(Flags::STALE);

/// The commands of this family.
pub static ROWS: &[Row] = &[
    Row {
        name: "discard",
        summary: "Forgets the commands queued since MULTI.",
        handler: Handler::Server(discard),
        flags: FLAGS.or(Flags::FAST).or(Flags::ALLOW_BUSY),
        categories: Categories::TRANSACTION,
        since: "2.0.0",
        group: Group::Transactions,
        complexity: "O(N) with N the queued commands",
        ..Row::DEFAULT
    },
    Row {
        name: "exec",
        summary: "Runs the commands queued since MULTI as one.",
        handler: Handler::Server(exec::exec),
        flags: FLAGS.or(Flags::SKIP_SLOWLOG),
        categories: Categories::TRANSACTION,
        since: "1.2.0",
        group: Group::Transactions,
        complexity: "That of the queued commands together",
        ..Row::DEFAULT
    },
    Row {
        name: "multi",
        summary: "Begins to queue commands that EXEC will run as one.",
        handler: Handler::Server(multi),
        flags: FLAGS.or(Flags::FAST).or(Flags::ALLOW_BUSY),
        categories: Categories::TRANSACTION,
        since: "1.2.0",
        group: Group::Transactions,
        ..Row::DEFAULT
    },
    Row {
        name: "unwatch",
        summary: "Stops watching keys.",
        handler: Handler::Server(unwatch),
        flags: FLAGS.or(Flags::FAST).or(Flags::ALLOW_BUSY),
        categories: Categories::TRANSACTION,
        since: "2.2.0",
        group: Group::Transactions,
        ..Row::DEFAULT
    },
    Row {
        name: "watch",
        summary: "Lets the next EXEC run only if these keys have not changed.",
        handler: Handler::Server(watch),
        arity: -2,
        flags: FLAGS.or(Flags::FAST).or(Flags::ALLOW_BUSY),
        categories: Categories::TRANSACTION,
        keys: &[KeySpec::many(1, 1, KeyFlags::RO)],
        since: "2.2.0",
        group: Group::Transactions,
        complexity: "O(1) per key",
        arguments: &[Argument::key("key", 0).multiple()],
        ..Row::DEFAULT
    },
];

fn multi(context: &mut Context<'_>, _: &Args<'_>, reply: &mut Reply) -> CommandResult {
    if context.session.multi.is_some() {
        return Err(CommandError::err("MULTI calls can not be nested"));
    }
    context.session.multi = Some(Queue::default());
    context.session.note_transaction();
    reply.ok();
    Ok(())
}

fn discard(context: &mut Context<'_>, _: &Args<'_>, reply: &mut Reply) -> CommandResult {
    if context.session.multi.take().is_none() {
        return Err(CommandError::err("DISCARD without MULTI"));
    }
    exec::unwatch_all(context);
    reply.ok();
    Ok(())
}

fn watch(context: &mut Context<'_>, args: &Args<'_>, reply: &mut Reply) -> CommandResult {
    if context.session.multi.is_some() {
        return Err(CommandError::err("WATCH inside MULTI is not allowed"));
    }
    exec::watch(context, args.from(1));
    reply.ok();
    Ok(())
}

fn unwatch(context: &mut Context<'_>, _: &Args<'_>, reply: &mut Reply) -> CommandResult {
    exec::unwatch_all(context);
    reply.ok();
    Ok(())
}
