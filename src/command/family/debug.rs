//! DEBUG: tools for those who test the server.

use crate::command::Context;
use crate::command::args::Args;
use crate::command::error::{CommandError, CommandResult};
use crate::command::spec::{Flags, Handler, Row};
use crate::config::value::parse_memory;
use crate::glob;
use crate::resp::Reply;
use crate::server::{allocation, process};
use crate::txn::{RuntimeLimits, Transaction};
use crate::types::{Root, View, access};
use std::time::Duration;

/// The commands of this family.
pub static ROWS: &[Row] = &[Row {
    name: "debug",
    summary: "Tools for those who test the server.",
    handler: Handler::Server(debug),
    arity: -2,
    flags: Flags::ADMIN.or(Flags::NOSCRIPT).or(Flags::LOADING).or(Flags::STALE),
    complexity: "Depends on the subcommand",
    system: true,
    ..Row::DEFAULT
}];

type Function = fn(&mut Context<'_>, &Args<'_>, &mut Reply) -> CommandResult;

/// One subcommand: name, number of arguments behind it, their names, what it does.
struct Subcommand {
    name: &'static str,
    arguments: usize,
    syntax: &'static str,
    summary: &'static [&'static str],
    function: Function,
}

const fn subcommand(
    name: &'static str,
    arguments: usize,
    syntax: &'static str,
    summary: &'static [&'static str],
    function: Function,
) -> Subcommand {
    Subcommand { name, arguments, syntax, summary, function }
}

static SUBCOMMANDS: &[Subcommand] = &[
    subcommand("CHANGE-REPL-ID", 0, "", &["Begins another history of the data."], change_replication_id),
    subcommand("HTSTATS", 1, " <dbid>", &["Shows the size of a database's table."], table_statistics),
    subcommand("JMAP", 0, "", &["Writes the allocator's figures to the log."], memory_map),
    subcommand("LISTPACK", 1, " <key>", &["Writes a short list's elements to the log."], listpack),
    subcommand("LOG", 1, " <message>", &["Writes to the log."], log),
    subcommand("OBJECT", 1, " <key>", &["Shows how a value is kept."], object),
    subcommand(
        "QUICKLIST-PACKED-THRESHOLD",
        1,
        " <size>",
        &["Accepted for test suites: every element of a list is kept the same way."],
        packed_threshold,
    ),
    subcommand("SET-ACTIVE-EXPIRE", 1, " <0|1>", &["Whether expired keys go without being read."], set_active_expiry),
    subcommand(
        "SLEEP",
        1,
        " <seconds>",
        &["Puts the thread of this client to sleep, with all clients that it serves.", "Decimals are allowed."],
        sleep,
    ),
    subcommand("STRINGMATCH-LEN", 2, " <pattern> <string>", &["Whether a glob pattern matches."], string_match),
    subcommand("HELP", 0, "", &["Prints this help."], help),
];

fn debug(context: &mut Context<'_>, args: &Args<'_>, reply: &mut Reply) -> CommandResult {
    if !context.session.client.is_allowed(context.server.settings.enable_debug_command.get()) {
        return Err(CommandError::err(
            "DEBUG command not allowed. If the enable-debug-command option is set to \"local\", you can run it from a \
             local connection, otherwise you need to set this option in the configuration file, and then restart the server.",
        ));
    }
    let found = SUBCOMMANDS.iter().find(|one| args.is(1, one.name) && args.len() == 2 + one.arguments);
    let Some(found) = found else {
        let before = "unknown subcommand or wrong number of arguments for '";
        return Err(CommandError::quoting(before, args.at(1), "'. Try DEBUG HELP."));
    };
    (found.function)(context, args, reply)
}

fn help(_: &mut Context<'_>, _: &Args<'_>, reply: &mut Reply) -> CommandResult {
    reply.array(1 + SUBCOMMANDS.iter().map(|one| 1 + one.summary.len()).sum::<usize>());
    reply.simple("DEBUG <subcommand> [<arg> [value] [opt] ...]. Subcommands are:");
    for one in SUBCOMMANDS {
        reply.simple(&format!("{}{}", one.name, one.syntax));
        one.summary.iter().for_each(|line| reply.simple(&format!("    {line}")));
    }
    Ok(())
}

fn change_replication_id(context: &mut Context<'_>, _: &Args<'_>, reply: &mut Reply) -> CommandResult {
    context.server.change_replication_id();
    tracing::info!("Changed the replication id.");
    reply.ok();
    Ok(())
}

fn log(_: &mut Context<'_>, args: &Args<'_>, reply: &mut Reply) -> CommandResult {
    tracing::warn!("DEBUG LOG: {}", String::from_utf8_lossy(args.at(2)));
    reply.ok();
    Ok(())
}

fn memory_map(_: &mut Context<'_>, _: &Args<'_>, reply: &mut Reply) -> CommandResult {
    let (used, peak, resident) = (allocation::used(), allocation::peak(), process::resident_bytes());
    tracing::warn!("DEBUG JMAP: {used} bytes in use, {peak} at most so far, {resident} resident");
    reply.ok();
    Ok(())
}

fn table_statistics(context: &mut Context<'_>, args: &Args<'_>, reply: &mut Reply) -> CommandResult {
    let database = args.integer(2)?;
    let sizes = context.worker.database_sizes();
    let size = usize::try_from(database).ok().and_then(|database| sizes.get(database));
    let Some(size) = size else { return Err(CommandError::err("Out of range database")) };
    let mut text = String::from("[Dictionary HT]\n");
    if size.keys == 0 {
        text.push_str("Hash table 0 stats (main hash table):\nNo stats available for empty dictionaries\n");
    } else {
        text.push_str(&format!(
            "Hash table 0 stats (main hash table):\n table size: {}\n number of elements: {}\n",
            size.buckets, size.keys
        ));
    }
    text.push_str("[Expires HT]\n");
    text.push_str(&match size.expiring_keys {
        0 => "Hash table 0 stats (main hash table):\nNo stats available for empty dictionaries\n".to_owned(),
        keys => format!("Hash table 0 stats (main hash table):\n number of elements: {keys}\n"),
    });
    reply.verbatim("txt", text.as_bytes());
    Ok(())
}

/// Runs `look` on the key's value without counting as a use of it.
fn peek<T>(context: &mut Context<'_>, key: &[u8], mut look: impl FnMut(&Root, i64) -> T) -> Result<T, CommandError> {
    let limits = RuntimeLimits::from(&context.server.settings);
    let mut transaction = Transaction::new(context.worker, context.scratch, context.session.database(), limits);
    transaction.run(|transaction| {
        let key = transaction.open(key);
        let now_ms = transaction.now_ms();
        transaction.root(key).map(|root| look(root, now_ms)).ok_or(CommandError::NO_SUCH_KEY)
    })
}

fn object(context: &mut Context<'_>, args: &Args<'_>, reply: &mut Reply) -> CommandResult {
    let text = peek(context, args.at(2), |root, now_ms| {
        let encoding = super::generic::encoding_name(root);
        // The length that a snapshot would give the value, to a few bytes.
        let length = match root.view() {
            Some(View::Integer(number)) if i8::try_from(number).is_ok() => 2,
            Some(View::Integer(number)) if i16::try_from(number).is_ok() => 3,
            Some(View::Integer(number)) if i32::try_from(number).is_ok() => 5,
            Some(View::Integer(number)) => number.to_string().len() + 1,
            Some(View::Bytes(bytes)) => bytes.len() + 1,
            Some(View::Rope(rope)) => rope.len() + 5,
            Some(View::List(list)) => list.bytes() + 1,
            None => 0,
        };
        let (seconds, idle) = ((now_ms / 1000) & 0xff_ffff, access::idle_seconds(root.access(), now_ms));
        format!(
            "Value at:{root:p} refcount:1 encoding:{encoding} serializedlength:{length} lru:{seconds} \
             lru_seconds_idle:{idle}"
        )
    })?;
    reply.simple(&text);
    Ok(())
}

fn listpack(context: &mut Context<'_>, args: &Args<'_>, reply: &mut Reply) -> CommandResult {
    let elements = peek(context, args.at(2), |root, _| match root.view() {
        Some(View::List(list)) if list.is_listpack() => {
            Some(list.iter_from(0).map(|element| String::from_utf8_lossy(element).into_owned()).collect::<Vec<_>>())
        }
        _ => None,
    })?;
    let Some(elements) = elements else { return Err(CommandError::err("Not a listpack encoded object.")) };
    tracing::warn!("DEBUG LISTPACK: {elements:?}");
    reply.simple("Listpack structure printed on stdout");
    Ok(())
}

fn packed_threshold(_: &mut Context<'_>, args: &Args<'_>, reply: &mut Reply) -> CommandResult {
    match parse_memory(args.at(2)) {
        Some(bytes) if (0..=1 << 32).contains(&bytes) => reply.ok(),
        _ => {
            return Err(CommandError::err("argument must be a memory value bigger than 1 and smaller than 4gb"));
        }
    }
    Ok(())
}

fn set_active_expiry(context: &mut Context<'_>, args: &Args<'_>, reply: &mut Reply) -> CommandResult {
    // As Redis reads it: what does not begin with a number is zero.
    context.server.store.set_active_expiry(leading_number(args.at(2)) != 0.0);
    reply.ok();
    Ok(())
}

fn sleep(_: &mut Context<'_>, args: &Args<'_>, reply: &mut Reply) -> CommandResult {
    let seconds = leading_number(args.at(2));
    // What is negative, not a number or beyond counting does not sleep.
    if let Ok(duration) = Duration::try_from_secs_f64(seconds) {
        crate::sync::thread::sleep(duration);
    }
    reply.ok();
    Ok(())
}

/// The number that the text begins with, as C's `strtod` finds it, in decimals only; zero if there is none.
fn leading_number(text: &[u8]) -> f64 {
    let length = text.iter().take_while(|byte| byte.is_ascii_digit() || matches!(byte, b'.' | b'-')).count();
    std::str::from_utf8(&text[..length]).ok().and_then(|text| text.parse().ok()).unwrap_or(0.0)
}

fn string_match(_: &mut Context<'_>, args: &Args<'_>, reply: &mut Reply) -> CommandResult {
    reply.integer(i64::from(glob::matches(args.at(2), args.at(3), false)));
    Ok(())
}
