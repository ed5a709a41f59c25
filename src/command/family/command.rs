//! COMMAND: what the server knows about its commands, for clients and people.

use crate::command::Context;
use crate::command::args::Args;
use crate::command::error::{CommandError, CommandResult};
use crate::command::help;
use crate::command::keys::{KeyPositions, find_keys};
use crate::command::spec::{
    Argument, ArgumentKind, BeginSearch, Categories, FindKeys, Flags, Handler, KeyFlags, KeySpec, Row,
};
use crate::command::table::{Command, Table};
use crate::glob;
use crate::resp::Reply;

/// The commands of this family.
pub static ROWS: &[Row] = &[Row {
    name: "command",
    summary: "Describes all commands.",
    handler: Handler::Server(command),
    arity: -1,
    flags: Flags::LOADING.or(Flags::STALE),
    categories: Categories::CONNECTION,
    tips: &["nondeterministic_output_order"],
    since: "2.8.13",
    complexity: "O(N) with N commands",
    subcommands: &[
        Row {
            name: "count",
            summary: "Counts the commands.",
            handler: Handler::Server(command_count),
            arity: 2,
            flags: Flags::LOADING.or(Flags::STALE),
            categories: Categories::CONNECTION,
            since: "2.8.13",
            ..Row::DEFAULT
        },
        Row {
            name: "docs",
            summary: "Documents commands: summary, history and argument syntax.",
            handler: Handler::Server(command_docs),
            arity: -2,
            flags: Flags::LOADING.or(Flags::STALE),
            categories: Categories::CONNECTION,
            tips: &["nondeterministic_output_order"],
            since: "7.0.0",
            complexity: "O(N) with N the commands looked up",
            arguments: &[Argument::string("command-name").optional().multiple()],
            ..Row::DEFAULT
        },
        Row {
            name: "getkeys",
            summary: "Picks the keys out of a command line.",
            handler: Handler::Server(command_getkeys),
            arity: -3,
            flags: Flags::LOADING.or(Flags::STALE),
            categories: Categories::CONNECTION,
            since: "2.8.13",
            complexity: "O(N) with N the arguments of the command",
            arguments: &[Argument::string("command"), Argument::string("arg").optional().multiple()],
            ..Row::DEFAULT
        },
        Row {
            name: "getkeysandflags",
            summary: "Picks the keys out of a command line, with what happens to them.",
            handler: Handler::Server(command_getkeysandflags),
            arity: -3,
            flags: Flags::LOADING.or(Flags::STALE),
            categories: Categories::CONNECTION,
            since: "7.0.0",
            complexity: "O(N) with N the arguments of the command",
            arguments: &[Argument::string("command"), Argument::string("arg").optional().multiple()],
            ..Row::DEFAULT
        },
        Row {
            name: "help",
            summary: "Lists the subcommands.",
            handler: Handler::Server(command_help),
            arity: 2,
            flags: Flags::LOADING.or(Flags::STALE),
            categories: Categories::CONNECTION,
            since: "5.0.0",
            ..Row::DEFAULT
        },
        Row {
            name: "info",
            summary: "Describes the named commands, or all.",
            handler: Handler::Server(command_info),
            arity: -2,
            flags: Flags::LOADING.or(Flags::STALE),
            categories: Categories::CONNECTION,
            tips: &["nondeterministic_output_order"],
            since: "2.8.13",
            complexity: "O(N) with N the commands looked up",
            history: &[("7.0.0", "Without a name it describes all commands.")],
            arguments: &[Argument::string("command-name").optional().multiple()],
            ..Row::DEFAULT
        },
        Row {
            name: "list",
            summary: "Lists the names of commands, all or filtered.",
            handler: Handler::Server(command_list),
            arity: -2,
            flags: Flags::LOADING.or(Flags::STALE),
            categories: Categories::CONNECTION,
            tips: &["nondeterministic_output_order"],
            since: "7.0.0",
            complexity: "O(N) with N commands",
            arguments: &[Argument::one_of(
                "filterby",
                &[
                    Argument::string("module-name").token("MODULE"),
                    Argument::string("category").token("ACLCAT"),
                    Argument::pattern("pattern").token("PATTERN"),
                ],
            )
            .token("FILTERBY")
            .optional()],
            ..Row::DEFAULT
        },
    ],
    ..Row::DEFAULT
}];

fn command(context: &mut Context<'_>, _args: &Args<'_>, reply: &mut Reply) -> CommandResult {
    write_all_info(context.table, reply);
    Ok(())
}

fn command_count(context: &mut Context<'_>, _args: &Args<'_>, reply: &mut Reply) -> CommandResult {
    reply.integer(context.table.commands().len() as i64);
    Ok(())
}

fn command_info(context: &mut Context<'_>, args: &Args<'_>, reply: &mut Reply) -> CommandResult {
    let names = args.from(2);
    if names.is_empty() {
        write_all_info(context.table, reply);
        return Ok(());
    }
    reply.array(names.len());
    for name in names {
        match context.table.find_full(name) {
            Some(command) => write_info(command, reply),
            None => reply.null(),
        }
    }
    Ok(())
}

fn command_docs(context: &mut Context<'_>, args: &Args<'_>, reply: &mut Reply) -> CommandResult {
    let names = args.from(2);
    let commands: Vec<&Command> = if names.is_empty() {
        context.table.commands().collect()
    } else {
        names.iter().filter_map(|name| context.table.find_full(name)).collect()
    };
    write_docs(commands.into_iter(), reply);
    Ok(())
}

fn command_getkeys(context: &mut Context<'_>, args: &Args<'_>, reply: &mut Reply) -> CommandResult {
    let (line, keys) = keys_of_inner(context.table, args)?;
    reply.array(keys.len());
    keys.iter().for_each(|key| reply.bulk(line.at(key.index)));
    Ok(())
}

fn command_getkeysandflags(context: &mut Context<'_>, args: &Args<'_>, reply: &mut Reply) -> CommandResult {
    let (line, keys) = keys_of_inner(context.table, args)?;
    reply.array(keys.len());
    for key in &keys {
        reply.array(2);
        reply.bulk(line.at(key.index));
        write_names(key.flags.names(), reply);
    }
    Ok(())
}

/// The command line that stands in the arguments from the third on, and its keys.
fn keys_of_inner<'a>(table: &Table, args: &Args<'a>) -> Result<(Args<'a>, KeyPositions), CommandError> {
    let line = Args::new(args.from(2));
    let command = table.find_line(&line).ok_or(CommandError::err("Invalid command specified"))?;
    if command.row.keys.iter().all(|spec| spec.flags.has(KeyFlags::NOT_KEY)) {
        return Err(CommandError::err("The command has no key arguments"));
    }
    if !command.fits(line.len()) {
        return Err(CommandError::err("Invalid number of arguments specified for command"));
    }
    let keys = match find_keys(command.row, &line) {
        Ok(keys) => keys,
        Err(_) if command.row.flags.has(Flags::NO_MANDATORY_KEYS) => KeyPositions::new(),
        Err(_) => return Err(CommandError::err("Invalid arguments specified for command")),
    };
    Ok((line, keys))
}

fn command_help(_context: &mut Context<'_>, _args: &Args<'_>, reply: &mut Reply) -> CommandResult {
    help::reply(&ROWS[0], reply);
    Ok(())
}

/// What COMMAND LIST FILTERBY asks for.
enum Filter<'a> {
    Nothing,
    Everything,
    Category(Categories),
    Pattern(&'a [u8]),
}

impl Filter<'_> {
    fn parse<'a>(args: &Args<'a>) -> Result<Filter<'a>, CommandError> {
        let value = match args.len() {
            2 => return Ok(Filter::Everything),
            5 if args.is(2, "FILTERBY") => args.at(4),
            _ => return Err(CommandError::SYNTAX),
        };
        if args.is(3, "MODULE") {
            // No module is ever loaded.
            Ok(Filter::Nothing)
        } else if args.is(3, "ACLCAT") {
            let named = |(_, name): &&(Categories, &str)| value.eq_ignore_ascii_case(&name.as_bytes()[1..]);
            Ok(Categories::ALL.iter().find(named).map_or(Filter::Nothing, |(category, _)| Filter::Category(*category)))
        } else if args.is(3, "PATTERN") {
            Ok(Filter::Pattern(value))
        } else {
            Err(CommandError::SYNTAX)
        }
    }

    fn passes(&self, command: &Command) -> bool {
        match self {
            Filter::Nothing => false,
            Filter::Everything => true,
            Filter::Category(category) => command.row.all_categories().has(*category),
            Filter::Pattern(pattern) => glob::matches(pattern, command.full_name.as_bytes(), true),
        }
    }
}

fn command_list(context: &mut Context<'_>, args: &Args<'_>, reply: &mut Reply) -> CommandResult {
    let filter = Filter::parse(args)?;
    let with_subcommands =
        context.table.commands().flat_map(|command| std::iter::once(command).chain(command.subcommands()));
    let names: Vec<&str> =
        with_subcommands.filter(|command| filter.passes(command)).map(|command| &*command.full_name).collect();
    reply.array(names.len());
    names.iter().for_each(|name| reply.bulk(name.as_bytes()));
    Ok(())
}

fn write_all_info(table: &Table, reply: &mut Reply) {
    let commands = table.commands();
    reply.array(commands.len());
    commands.for_each(|command| write_info(command, reply));
}

fn write_info(command: &Command, reply: &mut Reply) {
    let row = command.row;
    reply.array(10);
    reply.bulk(command.full_name.as_bytes());
    reply.integer(row.arity.into());
    write_names(row.all_flags().names(), reply);
    let (first, last, step) = command.key_range;
    [first, last, step].into_iter().for_each(|number| reply.integer(number.into()));
    write_names(row.all_categories().names(), reply);
    reply.set(row.tips.len());
    row.tips.iter().for_each(|tip| reply.bulk(tip.as_bytes()));
    reply.set(row.keys.len());
    row.keys.iter().for_each(|spec| write_key_spec(spec, reply));
    reply.set(command.subcommands().len());
    command.subcommands().iter().for_each(|command| write_info(command, reply));
}

fn write_names(names: impl Iterator<Item = &'static str>, reply: &mut Reply) {
    let names: Vec<_> = names.collect();
    reply.set(names.len());
    names.iter().for_each(|name| reply.simple(name));
}

fn write_key_spec(spec: &KeySpec, reply: &mut Reply) {
    reply.map(3 + usize::from(!spec.notes.is_empty()));
    if !spec.notes.is_empty() {
        write_text("notes", spec.notes, reply);
    }
    reply.bulk(b"flags");
    write_names(spec.flags.names(), reply);
    reply.bulk(b"begin_search");
    match spec.begin {
        BeginSearch::Index(index) => write_search("index", &[("index", index)], reply),
        BeginSearch::Keyword(keyword, from) => {
            write_search_kind("keyword", 2, reply);
            write_text("keyword", keyword, reply);
            write_number("startfrom", from, reply);
        }
        BeginSearch::Unknown => write_search("unknown", &[], reply),
    }
    reply.bulk(b"find_keys");
    match spec.find {
        FindKeys::Range(last, step, limit) => {
            write_search("range", &[("lastkey", last), ("keystep", step), ("limit", limit)], reply);
        }
        FindKeys::KeyNumber(number, first, step) => {
            write_search("keynum", &[("keynumidx", number), ("firstkey", first), ("keystep", step)], reply);
        }
        FindKeys::Unknown => write_search("unknown", &[], reply),
    }
}

fn write_search(kind: &str, numbers: &[(&str, i32)], reply: &mut Reply) {
    write_search_kind(kind, numbers.len(), reply);
    numbers.iter().for_each(|(name, number)| write_number(name, *number, reply));
}

fn write_search_kind(kind: &str, entries: usize, reply: &mut Reply) {
    reply.map(2);
    write_text("type", kind, reply);
    reply.bulk(b"spec");
    reply.map(entries);
}

fn write_text(name: &str, text: &str, reply: &mut Reply) {
    reply.bulk(name.as_bytes());
    reply.bulk(text.as_bytes());
}

fn write_number(name: &str, number: i32, reply: &mut Reply) {
    reply.bulk(name.as_bytes());
    reply.integer(number.into());
}

fn write_docs<'a>(commands: impl ExactSizeIterator<Item = &'a Command>, reply: &mut Reply) {
    reply.map(commands.len());
    for command in commands {
        reply.bulk(command.full_name.as_bytes());
        write_doc(command, reply);
    }
}

fn write_doc(command: &Command, reply: &mut Reply) {
    let row = command.row;
    let flags = chosen(&[(row.deprecated.is_some(), "deprecated"), (row.system, "syscmd")]);
    let entries = 3
        + usize::from(!row.complexity.is_empty())
        + usize::from(!flags.is_empty())
        + 2 * usize::from(row.deprecated.is_some())
        + usize::from(!row.history.is_empty())
        + usize::from(!row.arguments.is_empty())
        + usize::from(!row.subcommands.is_empty());
    reply.map(entries);
    write_text("summary", row.summary, reply);
    write_text("since", row.since, reply);
    write_text("group", row.group.name(), reply);
    if !row.complexity.is_empty() {
        write_text("complexity", row.complexity, reply);
    }
    if !flags.is_empty() {
        reply.bulk(b"doc_flags");
        write_names(flags.into_iter(), reply);
    }
    if let Some((since, replacement)) = row.deprecated {
        write_text("deprecated_since", since, reply);
        write_text("replaced_by", replacement, reply);
    }
    if !row.history.is_empty() {
        reply.bulk(b"history");
        reply.set(row.history.len());
        for (version, change) in row.history {
            reply.array(2);
            reply.bulk(version.as_bytes());
            reply.bulk(change.as_bytes());
        }
    }
    if !row.arguments.is_empty() {
        reply.bulk(b"arguments");
        write_arguments(row.arguments, reply);
    }
    if !row.subcommands.is_empty() {
        reply.bulk(b"subcommands");
        write_docs(command.subcommands().iter(), reply);
    }
}

fn chosen(flags: &[(bool, &'static str)]) -> Vec<&'static str> {
    flags.iter().filter(|flag| flag.0).map(|flag| flag.1).collect()
}

fn write_arguments(arguments: &[Argument], reply: &mut Reply) {
    reply.array(arguments.len());
    arguments.iter().for_each(|argument| write_argument(argument, reply));
}

fn write_argument(argument: &Argument, reply: &mut Reply) {
    let flags = chosen(&[
        (argument.optional, "optional"),
        (argument.multiple, "multiple"),
        (argument.multiple_token, "multiple_token"),
    ]);
    let nested = matches!(argument.kind, ArgumentKind::OneOf | ArgumentKind::Block);
    let texts = [
        ("token", argument.token),
        ("summary", argument.summary),
        ("since", argument.since),
        ("deprecated_since", argument.deprecated_since),
    ];
    let texts = texts.iter().filter(|(_, text)| !text.is_empty());
    // Either the display text or the nested arguments, beside name and kind.
    reply.map(3 + usize::from(argument.key_spec.is_some()) + texts.clone().count() + usize::from(!flags.is_empty()));
    write_text("name", argument.name, reply);
    write_text("type", argument.kind.name(), reply);
    if !nested {
        let shown = if argument.display_text.is_empty() { argument.name } else { argument.display_text };
        write_text("display_text", shown, reply);
    }
    if let Some(index) = argument.key_spec {
        write_number("key_spec_index", index.into(), reply);
    }
    texts.for_each(|(name, text)| write_text(name, text, reply));
    if !flags.is_empty() {
        reply.bulk(b"flags");
        write_names(flags.into_iter(), reply);
    }
    if nested {
        reply.bulk(b"arguments");
        write_arguments(argument.arguments, reply);
    }
}
