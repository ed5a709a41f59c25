//! Functions: FUNCTION and FCALL. What a library keeps between calls is told in `script/library.rs`.

use super::scripting::{keys_of, kill};
use crate::command::args::Args;
use crate::command::error::{CommandError, CommandResult};
use crate::command::scripting::{self, Plan};
use crate::command::spec::{Argument, Categories, Flags, Group, Handler, KeyFlags, KeySpec, Row};
use crate::command::{Context, help};
use crate::glob;
use crate::resp::Reply;
use crate::script::payload::{self, Unreadable};
use crate::script::{Collision, Library, Program, declaration};

const ARGUMENTS: &[Argument] = &[
    Argument::string("function"),
    Argument::integer("numkeys"),
    Argument::key("key", 0).optional().multiple(),
    Argument::string("arg").optional().multiple(),
];

const CALL: Row = Row {
    arity: -3,
    flags: Flags::NOSCRIPT.or(Flags::STALE).or(Flags::SKIP_MONITOR).or(Flags::NO_MANDATORY_KEYS),
    categories: Categories::SCRIPTING,
    since: "7.0.0",
    group: Group::Scripting,
    complexity: "That of the function",
    arguments: ARGUMENTS,
    ..Row::DEFAULT
};

const SUBCOMMAND: Row = Row {
    arity: 2,
    flags: Flags::NOSCRIPT,
    categories: Categories::SCRIPTING,
    since: "7.0.0",
    group: Group::Scripting,
    ..Row::DEFAULT
};

const ON_ALL: &[&str] = &["request_policy:all_shards", "response_policy:all_succeeded"];
const NOTE: &str = "What a function does with its keys is not known before, so the most that it may do counts.";

/// The commands of this family.
pub static ROWS: &[Row] = &[
    Row {
        name: "fcall",
        summary: "Calls a function as one transaction.",
        handler: Handler::Script(fcall),
        keys: &[KeySpec::numbered(2, KeyFlags::MODIFY).notes(NOTE)],
        ..CALL
    },
    Row {
        name: "fcall_ro",
        summary: "Calls a function that only reads.",
        handler: Handler::Script(fcall_ro),
        flags: CALL.flags.or(Flags::READONLY),
        keys: &[KeySpec::numbered(2, KeyFlags::READ).notes(NOTE)],
        ..CALL
    },
    Row {
        name: "function",
        summary: "Manages functions and their libraries.",
        arity: -2,
        since: "7.0.0",
        group: Group::Scripting,
        complexity: "Depends on the subcommand",
        subcommands: &[
            Row {
                name: "delete",
                summary: "Removes a library with its functions.",
                handler: Handler::Server(function_delete),
                arity: 3,
                flags: Flags::NOSCRIPT.or(Flags::WRITE),
                tips: ON_ALL,
                arguments: &[Argument::string("library-name")],
                ..SUBCOMMAND
            },
            Row {
                name: "dump",
                summary: "Gives all libraries as one string for FUNCTION RESTORE.",
                handler: Handler::Server(function_dump),
                complexity: "O(N) with N the bytes of all libraries",
                ..SUBCOMMAND
            },
            Row {
                name: "flush",
                summary: "Removes all libraries.",
                handler: Handler::Server(function_flush),
                arity: -2,
                flags: Flags::NOSCRIPT.or(Flags::WRITE),
                tips: ON_ALL,
                complexity: "O(N) with N functions",
                arguments: &[Argument::one_of(
                    "flush-type",
                    &[Argument::word("async", "ASYNC"), Argument::word("sync", "SYNC")],
                )
                .optional()],
                ..SUBCOMMAND
            },
            Row {
                name: "help",
                summary: "Lists the subcommands.",
                handler: Handler::Server(function_help),
                flags: Flags::LOADING.or(Flags::STALE),
                ..SUBCOMMAND
            },
            Row {
                name: "kill",
                summary: "Ends the functions that have run for longer than busy-reply-threshold.",
                handler: Handler::Server(function_kill),
                flags: Flags::NOSCRIPT.or(Flags::ALLOW_BUSY),
                tips: &["request_policy:all_shards", "response_policy:one_succeeded"],
                ..SUBCOMMAND
            },
            Row {
                name: "list",
                summary: "Lists libraries with their functions.",
                handler: Handler::Server(function_list),
                arity: -2,
                tips: &["nondeterministic_output_order"],
                complexity: "O(N) with N functions",
                arguments: &[
                    Argument::string("library-name-pattern").token("LIBRARYNAME").optional(),
                    Argument::word("withcode", "WITHCODE").optional(),
                ],
                ..SUBCOMMAND
            },
            Row {
                name: "load",
                summary: "Makes a library.",
                handler: Handler::Server(function_load),
                arity: -3,
                flags: Flags::NOSCRIPT.or(Flags::WRITE).or(Flags::DENYOOM),
                tips: ON_ALL,
                complexity: "O(N) with N the bytes of the library, and what its code takes",
                arguments: &[Argument::word("replace", "REPLACE").optional(), Argument::string("function-code")],
                ..SUBCOMMAND
            },
            Row {
                name: "restore",
                summary: "Makes the libraries that FUNCTION DUMP has given.",
                handler: Handler::Server(function_restore),
                arity: -3,
                flags: Flags::NOSCRIPT.or(Flags::WRITE).or(Flags::DENYOOM),
                tips: ON_ALL,
                complexity: "O(N) with N functions",
                arguments: &[
                    Argument::string("serialized-value"),
                    Argument::one_of(
                        "policy",
                        &[
                            Argument::word("flush", "FLUSH"),
                            Argument::word("append", "APPEND"),
                            Argument::word("replace", "REPLACE"),
                        ],
                    )
                    .optional(),
                ],
                ..SUBCOMMAND
            },
            Row {
                name: "stats",
                summary: "Counts libraries and functions.",
                handler: Handler::Server(function_stats),
                flags: Flags::NOSCRIPT.or(Flags::ALLOW_BUSY),
                tips: &["nondeterministic_output", "request_policy:all_shards", "response_policy:special"],
                ..SUBCOMMAND
            },
        ],
        ..Row::DEFAULT
    },
];

fn fcall(context: &mut Context<'_>, args: &Args<'_>) -> Result<Plan, CommandError> {
    plan(context, args, false)
}

fn fcall_ro(context: &mut Context<'_>, args: &Args<'_>) -> Result<Plan, CommandError> {
    plan(context, args, true)
}

fn plan(context: &mut Context<'_>, args: &Args<'_>, read_only: bool) -> Result<Plan, CommandError> {
    let function = context.server.libraries.function(args.at(1)).ok_or(CommandError::err("Function not found"))?;
    args.integer(2).map_err(|_| CommandError::err("Bad number of keys provided"))?;
    Ok(Plan { program: Program::Function(function), keys: keys_of(args)?, read_only })
}

/// Runs a library's code once, and gives the library with the functions that it registers.
fn examine(context: &mut Context<'_>, code: &[u8]) -> Result<Library, CommandError> {
    let declaration = declaration(code)?;
    let functions = scripting::engine(context)?.examine(&code[declaration.body_at..])?;
    let id = context.server.libraries.new_id();
    Ok(Library { id, name: declaration.name, code: code.into(), body_at: declaration.body_at, functions })
}

fn function_load(context: &mut Context<'_>, args: &Args<'_>, reply: &mut Reply) -> CommandResult {
    let mut collision = Collision::Refuse;
    for index in 2..args.len() - 1 {
        if !args.is(index, "replace") {
            return Err(CommandError::quoting("Unknown option given: ", args.at(index), ""));
        }
        collision = Collision::Replace;
    }
    let library = examine(context, args.at(args.len() - 1))?;
    let name = library.name.clone();
    context.server.libraries.add(vec![library], collision, false)?;
    reply.bulk(name.as_bytes());
    Ok(())
}

fn function_delete(context: &mut Context<'_>, args: &Args<'_>, reply: &mut Reply) -> CommandResult {
    if !context.server.libraries.remove(args.at(2)) {
        return Err(CommandError::err("Library not found"));
    }
    reply.ok();
    Ok(())
}

fn function_flush(context: &mut Context<'_>, args: &Args<'_>, reply: &mut Reply) -> CommandResult {
    if args.len() > 3 {
        return Err(surplus(args));
    }
    let known = args.len() == 2 || args.is(2, "sync") || args.is(2, "async");
    if !known {
        return Err(CommandError::err("FUNCTION FLUSH only supports SYNC|ASYNC option"));
    }
    context.server.libraries.flush();
    reply.ok();
    Ok(())
}

fn surplus(args: &Args<'_>) -> CommandError {
    let before = "unknown subcommand or wrong number of arguments for '";
    CommandError::quoting(before, args.at(1), "'. Try FUNCTION HELP.")
}

fn function_dump(context: &mut Context<'_>, _: &Args<'_>, reply: &mut Reply) -> CommandResult {
    let libraries = context.server.libraries.all();
    reply.bulk(&payload::dump(libraries.iter().map(|library| &*library.code)));
    Ok(())
}

fn function_restore(context: &mut Context<'_>, args: &Args<'_>, reply: &mut Reply) -> CommandResult {
    let policies = [
        ("append", Collision::Refuse, false),
        ("replace", Collision::Replace, false),
        ("flush", Collision::Refuse, true),
    ];
    let wanted = match args.len() {
        3 => Some(&policies[0]),
        4 => policies.iter().find(|(name, ..)| args.is(3, name)),
        _ => return Err(surplus(args)),
    };
    let Some(&(_, collision, flush)) = wanted else {
        let text = "Wrong restore policy given, value should be either FLUSH, APPEND or REPLACE.";
        return Err(CommandError::err(text));
    };
    let codes = payload::restore(args.at(2)).map_err(|why| match why {
        Unreadable::VersionOrChecksum => CommandError::err("DUMP payload version or checksum are wrong"),
        Unreadable::Contents => CommandError::err("given type is not a function"),
    })?;
    let libraries = codes.iter().map(|code| examine(context, code)).collect::<Result<Vec<_>, _>>()?;
    context.server.libraries.add(libraries, collision, flush).map_err(restored)?;
    reply.ok();
    Ok(())
}

/// RESTORE names a library without quotes.
fn restored(error: CommandError) -> CommandError {
    let message: Vec<u8> = error.message.iter().copied().filter(|byte| *byte != b'\'').collect();
    CommandError { message: message.into(), ..error }
}

fn function_list(context: &mut Context<'_>, args: &Args<'_>, reply: &mut Reply) -> CommandResult {
    let (mut pattern, mut with_code, mut index) = (None, false, 2);
    while index < args.len() {
        if !with_code && args.is(index, "withcode") {
            with_code = true;
        } else if pattern.is_none() && args.is(index, "libraryname") {
            index += 1;
            pattern = Some(args.get(index).ok_or(CommandError::err("library name argument was not given"))?);
        } else {
            return Err(CommandError::quoting("Unknown argument ", args.at(index), ""));
        }
        index += 1;
    }
    let mut libraries = context.server.libraries.all();
    libraries.retain(|library| pattern.is_none_or(|pattern| glob::matches(pattern, library.name.as_bytes(), true)));
    reply.array(libraries.len());
    for library in libraries {
        reply.map(3 + usize::from(with_code));
        reply.bulk(b"library_name");
        reply.bulk(library.name.as_bytes());
        reply.bulk(b"engine");
        reply.bulk(b"LUA");
        reply.bulk(b"functions");
        reply.array(library.functions.len());
        for function in &library.functions {
            reply.map(3);
            reply.bulk(b"name");
            reply.bulk(function.name.as_bytes());
            reply.bulk(b"description");
            match &function.description {
                Some(description) => reply.bulk(description),
                None => reply.null(),
            }
            reply.bulk(b"flags");
            let flags = function.flags();
            reply.set(flags.len());
            flags.iter().for_each(|flag| reply.simple(flag));
        }
        if with_code {
            reply.bulk(b"library_code");
            reply.bulk(&library.code);
        }
    }
    Ok(())
}

fn function_stats(context: &mut Context<'_>, _: &Args<'_>, reply: &mut Reply) -> CommandResult {
    let libraries = context.server.libraries.all();
    reply.map(2);
    reply.bulk(b"running_script");
    // Whoever asks is served, so no script runs on this worker; those of others are their own.
    reply.null();
    reply.bulk(b"engines");
    reply.map(1);
    reply.bulk(b"LUA");
    reply.map(2);
    reply.bulk(b"libraries_count");
    reply.integer(libraries.len() as i64);
    reply.bulk(b"functions_count");
    reply.integer(libraries.iter().map(|library| library.functions.len() as i64).sum());
    Ok(())
}

fn function_kill(context: &mut Context<'_>, _: &Args<'_>, reply: &mut Reply) -> CommandResult {
    kill(context, true, reply)
}

fn function_help(_: &mut Context<'_>, _: &Args<'_>, reply: &mut Reply) -> CommandResult {
    let container = ROWS.iter().find(|row| row.name == "function").expect("this function is a row of it");
    help::reply(container, reply);
    Ok(())
}
