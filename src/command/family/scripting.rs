//! Scripts: EVAL and its kin, SCRIPT. How they run is in `command/scripting.rs`.

use std::ops::Range;
use std::time::{SystemTime, UNIX_EPOCH};

use crate::command::args::Args;
use crate::command::error::{CommandError, CommandResult};
use crate::command::scripting::{self, Plan};
use crate::command::spec::{Argument, Categories, Flags, Group, Handler, KeyFlags, KeySpec, Row};
use crate::command::{Context, help};
use crate::resp::Reply;
use crate::script::{Digest, Program, Script};
use crate::server::running::Kill;
use crate::sync::Arc;

const NO_SCRIPT: CommandError = CommandError::with_code("NOSCRIPT", "No matching script. Please use EVAL.");

const RUN_FLAGS: Flags = Flags::NOSCRIPT.or(Flags::STALE).or(Flags::SKIP_MONITOR).or(Flags::NO_MANDATORY_KEYS);

/// The arguments of a command that runs what its first one says.
macro_rules! run_arguments {
    ($first:literal) => {
        &[
            Argument::string($first),
            Argument::integer("numkeys"),
            Argument::key("key", 0).optional().multiple(),
            Argument::string("arg").optional().multiple(),
        ]
    };
}

const RUN: Row = Row {
    arity: -3,
    flags: RUN_FLAGS,
    categories: Categories::SCRIPTING,
    keys: &[KeySpec::numbered(2, KeyFlags::MODIFY)],
    since: "2.6.0",
    group: Group::Scripting,
    complexity: "That of the script",
    ..Row::DEFAULT
};

const RUN_READ_ONLY: Row =
    Row { flags: RUN_FLAGS.or(Flags::READONLY), keys: &[KeySpec::numbered(2, KeyFlags::READ)], since: "7.0.0", ..RUN };

const SUBCOMMAND: Row = Row {
    arity: 2,
    flags: Flags::NOSCRIPT,
    categories: Categories::SCRIPTING,
    since: "2.6.0",
    group: Group::Scripting,
    ..Row::DEFAULT
};

const NOTE_WRITES: &str = "What a script does with its keys is not known before, so they count as read and written.";
const NOTE_READS: &str = "What a script does with its keys is not known before, so they count as read.";

/// The commands of this family.
pub static ROWS: &[Row] = &[
    Row {
        name: "eval",
        summary: "Runs a Lua script as one transaction.",
        handler: Handler::Script(eval),
        keys: &[KeySpec::numbered(2, KeyFlags::MODIFY).notes(NOTE_WRITES)],
        arguments: run_arguments!("script"),
        ..RUN
    },
    Row {
        name: "eval_ro",
        summary: "Runs a Lua script that may only read.",
        handler: Handler::Script(eval_ro),
        keys: &[KeySpec::numbered(2, KeyFlags::READ).notes(NOTE_READS)],
        arguments: run_arguments!("script"),
        ..RUN_READ_ONLY
    },
    Row {
        name: "evalsha",
        summary: "Runs a Lua script that the server knows, named by its digest.",
        handler: Handler::Script(evalsha),
        arguments: run_arguments!("sha1"),
        ..RUN
    },
    Row {
        name: "evalsha_ro",
        summary: "Runs a Lua script that the server knows and that may only read.",
        handler: Handler::Script(evalsha_ro),
        arguments: run_arguments!("sha1"),
        ..RUN_READ_ONLY
    },
    Row {
        name: "script",
        summary: "Manages Lua scripts.",
        arity: -2,
        since: "2.6.0",
        group: Group::Scripting,
        complexity: "Depends on the subcommand",
        subcommands: &[
            Row {
                name: "debug",
                summary: "Sets the debugger's mode; there is no debugger, so NO is all that can be set.",
                handler: Handler::Server(script_debug),
                arity: 3,
                since: "3.2.0",
                arguments: &[Argument::one_of(
                    "mode",
                    &[Argument::word("yes", "YES"), Argument::word("sync", "SYNC"), Argument::word("no", "NO")],
                )],
                ..SUBCOMMAND
            },
            Row {
                name: "exists",
                summary: "Tells which scripts the server knows.",
                handler: Handler::Server(script_exists),
                arity: -3,
                tips: &["request_policy:all_shards", "response_policy:agg_logical_and"],
                complexity: "O(N) with N digests",
                arguments: &[Argument::string("sha1").multiple()],
                ..SUBCOMMAND
            },
            Row {
                name: "flush",
                summary: "Forgets all scripts.",
                handler: Handler::Server(script_flush),
                arity: -2,
                tips: &["request_policy:all_nodes", "response_policy:all_succeeded"],
                complexity: "O(N) with N scripts",
                history: &[("6.2.0", "Modifiers `ASYNC` and `SYNC`.")],
                arguments: &[Argument::one_of(
                    "flush-type",
                    &[Argument::word("async", "ASYNC"), Argument::word("sync", "SYNC")],
                )
                .since("6.2.0")
                .optional()],
                ..SUBCOMMAND
            },
            Row {
                name: "help",
                summary: "Lists the subcommands.",
                handler: Handler::Server(script_help),
                flags: Flags::LOADING.or(Flags::STALE),
                since: "5.0.0",
                ..SUBCOMMAND
            },
            Row {
                name: "kill",
                summary: "Ends the scripts that have run for longer than busy-reply-threshold.",
                handler: Handler::Server(script_kill),
                flags: Flags::NOSCRIPT.or(Flags::ALLOW_BUSY),
                tips: &["request_policy:all_shards", "response_policy:one_succeeded"],
                ..SUBCOMMAND
            },
            Row {
                name: "load",
                summary: "Makes a script known without running it.",
                handler: Handler::Server(script_load),
                arity: 3,
                flags: Flags::NOSCRIPT.or(Flags::STALE),
                tips: &["request_policy:all_nodes", "response_policy:all_succeeded"],
                complexity: "O(N) with N the bytes of the script",
                arguments: &[Argument::string("script")],
                ..SUBCOMMAND
            },
            Row {
                name: "show",
                summary: "Shows the source of a script that the server knows.",
                handler: Handler::Server(script_show),
                arity: 3,
                flags: Flags::NOSCRIPT.or(Flags::STALE),
                since: "8.0.0",
                arguments: &[Argument::string("sha1")],
                ..SUBCOMMAND
            },
        ],
        ..Row::DEFAULT
    },
];

fn eval(context: &mut Context<'_>, args: &Args<'_>) -> Result<Plan, CommandError> {
    plan_source(context, args, false)
}

fn eval_ro(context: &mut Context<'_>, args: &Args<'_>) -> Result<Plan, CommandError> {
    plan_source(context, args, true)
}

fn evalsha(context: &mut Context<'_>, args: &Args<'_>) -> Result<Plan, CommandError> {
    plan_digest(context, args, false)
}

fn evalsha_ro(context: &mut Context<'_>, args: &Args<'_>) -> Result<Plan, CommandError> {
    plan_digest(context, args, true)
}

/// Where the keys are, from the number of them that the second argument says.
pub fn keys_of(args: &Args<'_>) -> Result<Range<usize>, CommandError> {
    let count = args.integer(2)?;
    let others = args.len() - 3;
    match usize::try_from(count) {
        Err(_) => Err(CommandError::err("Number of keys can't be negative")),
        Ok(count) if count > others => Err(CommandError::err("Number of keys can't be greater than number of args")),
        Ok(count) => Ok(3..3 + count),
    }
}

fn plan_source(context: &mut Context<'_>, args: &Args<'_>, read_only: bool) -> Result<Plan, CommandError> {
    let keys = keys_of(args)?;
    let source = args.at(1);
    let digest = Digest::of(source);
    if let Some(script) = context.server.scripts.get(&digest) {
        return Ok(Plan { program: Program::Script(script), keys, read_only });
    }
    let script = Arc::new(Script::with_digest(source, digest)?);
    scripting::engine(context)?.compile(&script)?;
    context.server.scripts.evaluate(script.clone());
    Ok(Plan { program: Program::Script(script), keys, read_only })
}

fn plan_digest(context: &mut Context<'_>, args: &Args<'_>, read_only: bool) -> Result<Plan, CommandError> {
    let digest = Digest::named(args.at(1)).ok_or(NO_SCRIPT)?;
    let keys = keys_of(args)?;
    let script = context.server.scripts.get(&digest).ok_or(NO_SCRIPT)?;
    Ok(Plan { program: Program::Script(script), keys, read_only })
}

fn script_debug(_: &mut Context<'_>, args: &Args<'_>, reply: &mut Reply) -> CommandResult {
    if args.is(2, "no") {
        reply.ok();
        return Ok(());
    }
    if args.is(2, "yes") || args.is(2, "sync") {
        return Err(CommandError::err("There is no script debugger in this server"));
    }
    Err(CommandError::err("Use SCRIPT DEBUG YES/SYNC/NO"))
}

fn script_exists(context: &mut Context<'_>, args: &Args<'_>, reply: &mut Reply) -> CommandResult {
    let names = args.from(2);
    reply.array(names.len());
    for name in names {
        let is_known = Digest::named(name).is_some_and(|digest| context.server.scripts.contains(&digest));
        reply.integer(is_known.into());
    }
    Ok(())
}

fn script_flush(context: &mut Context<'_>, args: &Args<'_>, reply: &mut Reply) -> CommandResult {
    let known = args.len() == 2 || args.len() == 3 && (args.is(2, "sync") || args.is(2, "async"));
    if !known {
        return Err(CommandError::err("SCRIPT FLUSH only support SYNC|ASYNC option"));
    }
    context.server.scripts.flush();
    reply.ok();
    Ok(())
}

fn script_help(_: &mut Context<'_>, _: &Args<'_>, reply: &mut Reply) -> CommandResult {
    let container = ROWS.iter().find(|row| row.name == "script").expect("this function is a row of it");
    help::reply(container, reply);
    Ok(())
}

fn script_kill(context: &mut Context<'_>, _: &Args<'_>, reply: &mut Reply) -> CommandResult {
    kill(context, false, reply)
}

/// Ends what has run for longer than the setting says.
pub fn kill(context: &mut Context<'_>, functions: bool, reply: &mut Reply) -> CommandResult {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_millis() as i64;
    let threshold = context.server.settings.busy_reply_threshold_ms.get();
    match context.server.running.kill(functions, now, threshold) {
        Kill::Done => reply.ok(),
        Kill::NothingRuns => {
            return Err(CommandError::with_code("NOTBUSY", "No scripts in execution right now."));
        }
        Kill::HasWritten => {
            return Err(CommandError::with_code(
                "UNKILLABLE",
                "Sorry the script already executed write commands against the dataset. You can either wait the \
                 script termination or kill the server in a hard way using the SHUTDOWN NOSAVE command.",
            ));
        }
        Kill::OtherKind => {
            let text = match functions {
                false => "Redis is busy running a script. You can only call FUNCTION KILL or SHUTDOWN NOSAVE.",
                true => "Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE.",
            };
            return Err(CommandError::with_code("BUSY", text));
        }
    }
    Ok(())
}

fn script_show(context: &mut Context<'_>, args: &Args<'_>, reply: &mut Reply) -> CommandResult {
    let script = Digest::named(args.at(2)).and_then(|digest| context.server.scripts.get(&digest));
    reply.bulk(script.ok_or(CommandError::with_code("NOSCRIPT", "No matching script."))?.source());
    Ok(())
}

fn script_load(context: &mut Context<'_>, args: &Args<'_>, reply: &mut Reply) -> CommandResult {
    let digest = Digest::of(args.at(2));
    let script = match context.server.scripts.get(&digest) {
        Some(script) => script,
        None => {
            let script = Arc::new(Script::with_digest(args.at(2), digest)?);
            scripting::engine(context)?.compile(&script)?;
            script
        }
    };
    context.server.scripts.load(script);
    reply.bulk(digest.as_bytes());
    Ok(())
}
