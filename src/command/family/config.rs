//! CONFIG: reads and changes settings.

use crate::command::Context;
use crate::command::args::Args;
use crate::command::error::{CommandError, CommandResult};
use crate::command::help;
use crate::command::spec::{Argument, Flags, Handler, Row};
use crate::config::{rewrite, settings, table};
use crate::glob;
use crate::resp::Reply;

/// The commands of this family.
pub static ROWS: &[Row] = &[Row {
    name: "config",
    summary: "Reads and changes settings.",
    arity: -2,
    since: "2.0.0",
    complexity: "Depends on the subcommand",
    subcommands: &[
        Row {
            name: "get",
            summary: "Gives the settings whose names match glob patterns.",
            handler: Handler::Server(config_get),
            arity: -3,
            flags: Flags::ADMIN.or(Flags::NOSCRIPT).or(Flags::LOADING).or(Flags::STALE),
            since: "2.0.0",
            complexity: "O(N) with N settings",
            history: &[("7.0.0", "Several patterns.")],
            arguments: &[Argument::string("parameter").multiple()],
            ..Row::DEFAULT
        },
        Row {
            name: "help",
            summary: "Lists the subcommands.",
            handler: Handler::Server(config_help),
            arity: 2,
            flags: Flags::LOADING.or(Flags::STALE),
            since: "5.0.0",
            ..Row::DEFAULT
        },
        Row {
            name: "resetstat",
            summary: "Sets the statistics back to zero.",
            handler: Handler::Server(config_resetstat),
            arity: 2,
            flags: Flags::ADMIN.or(Flags::NOSCRIPT).or(Flags::LOADING).or(Flags::STALE),
            tips: &["request_policy:all_nodes", "response_policy:all_succeeded"],
            since: "2.0.0",
            ..Row::DEFAULT
        },
        Row {
            name: "rewrite",
            summary: "Writes the settings in force to the configuration file.",
            handler: Handler::Server(config_rewrite),
            arity: 2,
            flags: Flags::ADMIN.or(Flags::NOSCRIPT).or(Flags::LOADING).or(Flags::STALE),
            tips: &["request_policy:all_nodes", "response_policy:all_succeeded"],
            since: "2.8.0",
            ..Row::DEFAULT
        },
        Row {
            name: "set",
            summary: "Changes settings while the server runs.",
            handler: Handler::Server(config_set),
            arity: -4,
            flags: Flags::ADMIN.or(Flags::NOSCRIPT).or(Flags::LOADING).or(Flags::STALE),
            tips: &["request_policy:all_nodes", "response_policy:all_succeeded"],
            since: "2.0.0",
            complexity: "O(N) with N settings",
            history: &[("7.0.0", "Several settings at once.")],
            arguments: &[
                Argument::block("data", &[Argument::string("parameter"), Argument::string("value")]).multiple()
            ],
            ..Row::DEFAULT
        },
    ],
    ..Row::DEFAULT
}];

fn config_get(context: &mut Context<'_>, args: &Args<'_>, reply: &mut Reply) -> CommandResult {
    // The names to print, each once: as the user wrote them where they name a setting, else as the table has them.
    let mut found: Vec<(Vec<u8>, usize)> = Vec::new();
    let mut add = |name: &[u8], index: usize| {
        if !found.iter().any(|(known, _)| known.eq_ignore_ascii_case(name)) {
            found.push((name.to_vec(), index));
        }
    };
    for pattern in args.from(2) {
        if !pattern.iter().any(|byte| matches!(byte, b'[' | b'*' | b'?')) {
            if let Some(index) = table::find(pattern) {
                add(pattern, index);
            }
            continue;
        }
        for (index, setting) in table::rows().enumerate() {
            for name in [setting.name, setting.alias] {
                if glob::matches(pattern, name.as_bytes(), true) {
                    add(name.as_bytes(), index);
                }
            }
        }
    }
    reply.map(found.len());
    for (name, index) in found {
        reply.bulk(&name);
        reply.bulk(&context.server.settings.print(index));
    }
    Ok(())
}

fn config_set(context: &mut Context<'_>, args: &Args<'_>, reply: &mut Reply) -> CommandResult {
    let words = args.from(2);
    if !words.len().is_multiple_of(2) {
        return Err(CommandError::SYNTAX);
    }
    let pairs: Vec<(&[u8], &[u8])> = words.chunks(2).map(|pair| (pair[0], pair[1])).collect();
    let settings = &context.server.settings;
    let protected_too = context.session.client.is_allowed(settings.enable_protected_configs.get());
    settings.set(&pairs, protected_too).map_err(|error| CommandError::owned(error.to_string()))?;
    reply.ok();
    Ok(())
}

fn config_resetstat(context: &mut Context<'_>, _: &Args<'_>, reply: &mut Reply) -> CommandResult {
    context.server.reset_statistics();
    reply.ok();
    Ok(())
}

fn config_rewrite(context: &mut Context<'_>, _: &Args<'_>, reply: &mut Reply) -> CommandResult {
    let Some(path) = context.server.settings.file() else {
        return Err(CommandError::err("The server is running without a config file"));
    };
    match rewrite::rewrite(&path, &context.server.settings) {
        Ok(()) => {
            tracing::info!("CONFIG REWRITE executed with success.");
            reply.ok();
            Ok(())
        }
        Err(error) => {
            tracing::warn!("CONFIG REWRITE failed: {error}");
            Err(CommandError::owned(format!("Rewriting config file: {}", settings::system_text(&error))))
        }
    }
}

fn config_help(_: &mut Context<'_>, _: &Args<'_>, reply: &mut Reply) -> CommandResult {
    help::reply(&ROWS[0], reply);
    Ok(())
}
