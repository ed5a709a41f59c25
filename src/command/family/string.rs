//! Strings.

use crate::command::args::Args;
use crate::command::deadline::DeadlineForm;
use crate::command::error::{CommandError, CommandResult};
use crate::command::float_text;
use crate::command::lookup::{prefetch, read, write};
use crate::command::spec::{Argument, Categories, Flags, Group, Handler, KeyFlags, KeySpec, Row};
use crate::command::string_value::{StringValue, from_parts, new_string, new_text};
use crate::limits::ROPE_THRESHOLD_BYTES;
use crate::resp::Reply;
use crate::txn::{EventClass, KeyId, Transaction};
use crate::types::{Attempt, NewRoot, Root, Rope, StringEncoding};
use std::ops::Range;

const KEY: Argument = Argument::key("key", 0);
const VALUE: Argument = Argument::string("value");

/// The commands of this family.
pub static ROWS: &[Row] = &[
    Row {
        name: "append",
        summary: "Adds bytes to the end of a string; a missing key counts as empty.",
        handler: Handler::Data(append),
        arity: 3,
        flags: Flags::WRITE.or(Flags::DENYOOM).or(Flags::FAST),
        categories: Categories::STRING,
        keys: &[KeySpec::one(1, KeyFlags::ADD)],
        since: "2.0.0",
        group: Group::String,
        complexity: "O(1) amortized for a small appended value",
        arguments: &[KEY, VALUE],
        ..Row::DEFAULT
    },
    Row {
        name: "decr",
        summary: "Subtracts one from the integer stored at a key; a missing key counts as 0.",
        handler: Handler::Data(decr),
        arity: 2,
        flags: Flags::WRITE.or(Flags::DENYOOM).or(Flags::FAST),
        categories: Categories::STRING,
        keys: &[KeySpec::one(1, KeyFlags::MODIFY)],
        group: Group::String,
        arguments: &[KEY],
        ..Row::DEFAULT
    },
    Row {
        name: "decrby",
        summary: "Subtracts a number from the integer stored at a key; a missing key counts as 0.",
        handler: Handler::Data(decrby),
        arity: 3,
        flags: Flags::WRITE.or(Flags::DENYOOM).or(Flags::FAST),
        categories: Categories::STRING,
        keys: &[KeySpec::one(1, KeyFlags::MODIFY)],
        group: Group::String,
        arguments: &[KEY, Argument::integer("decrement")],
        ..Row::DEFAULT
    },
    Row {
        name: "get",
        summary: "Gives the string stored at a key.",
        handler: Handler::Data(get),
        arity: 2,
        flags: Flags::READONLY.or(Flags::FAST),
        categories: Categories::STRING,
        keys: &[KeySpec::one(1, KeyFlags::READ)],
        group: Group::String,
        arguments: &[KEY],
        ..Row::DEFAULT
    },
    Row {
        name: "getdel",
        summary: "Gives the string stored at a key and deletes the key.",
        handler: Handler::Data(getdel),
        arity: 2,
        flags: Flags::WRITE.or(Flags::FAST),
        categories: Categories::STRING,
        keys: &[KeySpec::one(1, KeyFlags::TAKE)],
        since: "6.2.0",
        group: Group::String,
        arguments: &[KEY],
        ..Row::DEFAULT
    },
    Row {
        name: "getex",
        summary: "Gives the string stored at a key and changes or drops its deadline.",
        handler: Handler::Data(getex),
        arity: -2,
        flags: Flags::WRITE.or(Flags::FAST),
        categories: Categories::STRING,
        keys: &[KeySpec::one(1, KeyFlags::MODIFY).notes("Changes the deadline")],
        since: "6.2.0",
        group: Group::String,
        arguments: &[
            KEY,
            Argument::one_of(
                "expiration",
                &[
                    Argument::integer("seconds").token("EX"),
                    Argument::integer("milliseconds").token("PX"),
                    Argument::unix_time("unix-time-seconds").token("EXAT"),
                    Argument::unix_time("unix-time-milliseconds").token("PXAT"),
                    Argument::word("persist", "PERSIST"),
                ],
            )
            .optional(),
        ],
        ..Row::DEFAULT
    },
    Row {
        name: "getrange",
        summary: "Gives the part of a string between two offsets.",
        handler: Handler::Data(getrange),
        arity: 4,
        flags: Flags::READONLY,
        categories: Categories::STRING,
        keys: &[KeySpec::one(1, KeyFlags::READ)],
        since: "2.4.0",
        group: Group::String,
        complexity: "O(N) with N the bytes returned",
        arguments: &[KEY, Argument::integer("start"), Argument::integer("end")],
        ..Row::DEFAULT
    },
    Row {
        name: "getset",
        summary: "Stores a string and gives the one that it replaced.",
        handler: Handler::Data(getset),
        arity: 3,
        flags: Flags::WRITE.or(Flags::DENYOOM).or(Flags::FAST),
        categories: Categories::STRING,
        keys: &[KeySpec::one(1, KeyFlags::MODIFY)],
        group: Group::String,
        deprecated: Some(("6.2.0", "`SET` with the `!GET` argument")),
        arguments: &[KEY, VALUE],
        ..Row::DEFAULT
    },
    Row {
        name: "incr",
        summary: "Adds one to the integer stored at a key; a missing key counts as 0.",
        handler: Handler::Data(incr),
        arity: 2,
        flags: Flags::WRITE.or(Flags::DENYOOM).or(Flags::FAST),
        categories: Categories::STRING,
        keys: &[KeySpec::one(1, KeyFlags::MODIFY)],
        group: Group::String,
        arguments: &[KEY],
        ..Row::DEFAULT
    },
    Row {
        name: "incrby",
        summary: "Adds a number to the integer stored at a key; a missing key counts as 0.",
        handler: Handler::Data(incrby),
        arity: 3,
        flags: Flags::WRITE.or(Flags::DENYOOM).or(Flags::FAST),
        categories: Categories::STRING,
        keys: &[KeySpec::one(1, KeyFlags::MODIFY)],
        group: Group::String,
        arguments: &[KEY, Argument::integer("increment")],
        ..Row::DEFAULT
    },
    Row {
        name: "incrbyfloat",
        summary: "Adds a decimal number to the number stored at a key; a missing key counts as 0.",
        handler: Handler::Data(incrbyfloat),
        arity: 3,
        flags: Flags::WRITE.or(Flags::DENYOOM).or(Flags::FAST),
        categories: Categories::STRING,
        keys: &[KeySpec::one(1, KeyFlags::MODIFY)],
        since: "2.6.0",
        group: Group::String,
        arguments: &[KEY, Argument::double("increment")],
        ..Row::DEFAULT
    },
    Row {
        name: "lcs",
        summary: "Compares two strings by their longest common subsequence.",
        handler: Handler::Data(lcs),
        arity: -3,
        flags: Flags::READONLY,
        categories: Categories::STRING,
        keys: &[KeySpec::pair(1, KeyFlags::READ)],
        since: "7.0.0",
        group: Group::String,
        complexity: "O(N*M) with N and M the lengths of the two strings",
        arguments: &[
            Argument::key("key1", 0),
            Argument::key("key2", 0),
            Argument::word("len", "LEN").optional(),
            Argument::word("idx", "IDX").optional(),
            Argument::integer("min-match-len").token("MINMATCHLEN").optional(),
            Argument::word("withmatchlen", "WITHMATCHLEN").optional(),
        ],
        ..Row::DEFAULT
    },
    Row {
        name: "mget",
        summary: "Gives the strings stored at several keys, all of one instant.",
        handler: Handler::Data(mget),
        arity: -2,
        flags: Flags::READONLY.or(Flags::FAST),
        categories: Categories::STRING,
        keys: &[KeySpec::many(1, 1, KeyFlags::READ)],
        tips: &["request_policy:multi_shard"],
        group: Group::String,
        complexity: "O(N) with N keys",
        arguments: &[KEY.multiple()],
        ..Row::DEFAULT
    },
    Row {
        name: "mset",
        summary: "Stores several strings in one atomic step.",
        handler: Handler::Data(mset),
        arity: -3,
        flags: Flags::WRITE.or(Flags::DENYOOM),
        categories: Categories::STRING,
        keys: &[KeySpec::many(1, 2, KeyFlags::REPLACE)],
        tips: &["request_policy:multi_shard", "response_policy:all_succeeded"],
        since: "1.0.1",
        group: Group::String,
        complexity: "O(N) with N keys",
        arguments: &[Argument::block("data", &[KEY, VALUE]).multiple()],
        ..Row::DEFAULT
    },
    Row {
        name: "msetnx",
        summary: "Stores several strings in one atomic step, unless one of the keys exists.",
        handler: Handler::Data(msetnx),
        arity: -3,
        flags: Flags::WRITE.or(Flags::DENYOOM),
        categories: Categories::STRING,
        keys: &[KeySpec::many(1, 2, KeyFlags::CREATE)],
        since: "1.0.1",
        group: Group::String,
        complexity: "O(N) with N keys",
        arguments: &[Argument::block("data", &[KEY, VALUE]).multiple()],
        ..Row::DEFAULT
    },
    Row {
        name: "psetex",
        summary: "Stores a string that expires after some milliseconds.",
        handler: Handler::Data(psetex),
        arity: 4,
        flags: Flags::WRITE.or(Flags::DENYOOM),
        categories: Categories::STRING,
        keys: &[KeySpec::one(1, KeyFlags::REPLACE)],
        since: "2.6.0",
        group: Group::String,
        deprecated: Some(("2.6.12", "`SET` with the `PX` argument")),
        arguments: &[KEY, Argument::integer("milliseconds"), VALUE],
        ..Row::DEFAULT
    },
    Row {
        name: "set",
        summary: "Stores a string, in place of a value of any type.",
        handler: Handler::Data(set),
        arity: -3,
        flags: Flags::WRITE.or(Flags::DENYOOM),
        categories: Categories::STRING,
        keys: &[KeySpec::one(1, KeyFlags::MODIFY).notes("Shows the old value only with `GET`").varying(set_key_flags)],
        group: Group::String,
        history: &[
            ("2.6.12", "Options `EX`, `PX`, `NX` and `XX`."),
            ("6.0.0", "Option `KEEPTTL`."),
            ("6.2.0", "Options `GET`, `EXAT` and `PXAT`."),
            ("7.0.0", "`NX` and `GET` may be combined."),
        ],
        arguments: &[
            KEY,
            VALUE,
            Argument::one_of("condition", &[Argument::word("nx", "NX"), Argument::word("xx", "XX")])
                .since("2.6.12")
                .optional(),
            Argument::word("get", "GET").since("6.2.0").optional(),
            Argument::one_of(
                "expiration",
                &[
                    Argument::integer("seconds").token("EX").since("2.6.12"),
                    Argument::integer("milliseconds").token("PX").since("2.6.12"),
                    Argument::unix_time("unix-time-seconds").token("EXAT").since("6.2.0"),
                    Argument::unix_time("unix-time-milliseconds").token("PXAT").since("6.2.0"),
                    Argument::word("keepttl", "KEEPTTL").since("6.0.0"),
                ],
            )
            .optional(),
        ],
        ..Row::DEFAULT
    },
    Row {
        name: "setex",
        summary: "Stores a string that expires after some seconds.",
        handler: Handler::Data(setex),
        arity: 4,
        flags: Flags::WRITE.or(Flags::DENYOOM),
        categories: Categories::STRING,
        keys: &[KeySpec::one(1, KeyFlags::REPLACE)],
        since: "2.0.0",
        group: Group::String,
        deprecated: Some(("2.6.12", "`SET` with the `EX` argument")),
        arguments: &[KEY, Argument::integer("seconds"), VALUE],
        ..Row::DEFAULT
    },
    Row {
        name: "setnx",
        summary: "Stores a string unless the key exists.",
        handler: Handler::Data(setnx),
        arity: 3,
        flags: Flags::WRITE.or(Flags::DENYOOM).or(Flags::FAST),
        categories: Categories::STRING,
        keys: &[KeySpec::one(1, KeyFlags::CREATE)],
        group: Group::String,
        deprecated: Some(("2.6.12", "`SET` with the `NX` argument")),
        arguments: &[KEY, VALUE],
        ..Row::DEFAULT
    },
    Row {
        name: "setrange",
        summary: "Writes bytes into a string from an offset on, padding with zero bytes where needed.",
        handler: Handler::Data(setrange),
        arity: 4,
        flags: Flags::WRITE.or(Flags::DENYOOM),
        categories: Categories::STRING,
        keys: &[KeySpec::one(1, KeyFlags::CHANGE)],
        since: "2.2.0",
        group: Group::String,
        complexity: "O(1) for a small value, else O(M) with M the length of the value",
        arguments: &[KEY, Argument::integer("offset"), VALUE],
        ..Row::DEFAULT
    },
    Row {
        name: "strlen",
        summary: "Gives the number of bytes of a string.",
        handler: Handler::Data(strlen),
        arity: 2,
        flags: Flags::READONLY.or(Flags::FAST),
        categories: Categories::STRING,
        keys: &[KeySpec::one(1, KeyFlags::RO)],
        since: "2.2.0",
        group: Group::String,
        arguments: &[KEY],
        ..Row::DEFAULT
    },
    Row {
        name: "substr",
        summary: "Gives the part of a string between two offsets; the old name of GETRANGE.",
        handler: Handler::Data(substr),
        arity: 4,
        flags: Flags::READONLY,
        categories: Categories::STRING,
        keys: &[KeySpec::one(1, KeyFlags::READ)],
        group: Group::String,
        complexity: "O(N) with N the bytes returned",
        deprecated: Some(("2.0.0", "`GETRANGE`")),
        arguments: &[KEY, Argument::integer("start"), Argument::integer("end")],
        ..Row::DEFAULT
    },
];

/// SET shows the old value only with `GET`.
fn set_key_flags(args: &Args<'_>) -> KeyFlags {
    let shows = (3..args.len()).any(|index| args.is(index, "GET"));
    if shows { KeyFlags::MODIFY } else { KeyFlags::REPLACE }
}

const OVERFLOW: CommandError = CommandError::err("increment or decrement would overflow");
const TOO_LONG: CommandError = CommandError::err("string exceeds maximum allowed size (proto-max-bulk-len)");

fn get(tx: &mut Transaction<'_>, args: &Args<'_>, reply: &mut Reply) -> CommandResult {
    let key = read(tx, args.at(1));
    reply_value(tx, key, reply)
}

/// Answers with the string at a key, or with null where there is none.
#[inline]
fn reply_value(tx: &Transaction<'_>, key: KeyId, reply: &mut Reply) -> CommandResult {
    match tx.root(key) {
        Some(root) => StringValue::of(root)?.reply(reply),
        None => reply.null(),
    }
    Ok(())
}

fn getdel(tx: &mut Transaction<'_>, args: &Args<'_>, reply: &mut Reply) -> CommandResult {
    let key = read(tx, args.at(1));
    reply_value(tx, key, reply)?;
    if tx.delete(key) {
        tx.notify(EventClass::GENERIC, "del", key);
    }
    Ok(())
}

fn getset(tx: &mut Transaction<'_>, args: &Args<'_>, reply: &mut Reply) -> CommandResult {
    let key = read(tx, args.at(1));
    reply_value(tx, key, reply)?;
    let value = new_string(tx, args.at(2), None);
    tx.set(key, value);
    tx.notify(EventClass::STRING, "set", key);
    Ok(())
}

fn getex(tx: &mut Transaction<'_>, args: &Args<'_>, reply: &mut Reply) -> CommandResult {
    let options = Options::parse(args, 2, OptionsOf::GetEx)?;
    let key = read(tx, args.at(1));
    let Some(root) = tx.root(key) else {
        reply.null();
        return Ok(());
    };
    let value = StringValue::of(root)?;
    let expiry_ms = match options.expiry {
        Expiry::Unnamed | Expiry::Keep => root.expiry_ms(),
        Expiry::Persist => None,
        Expiry::At(form, index) => Some(form.positive(args, index, tx.now_ms(), "getex")?),
    };
    value.reply(reply);
    let given = matches!(options.expiry, Expiry::At(..));
    let changes = expiry_ms != root.expiry_ms();
    if given && expiry_ms.is_some_and(|deadline| deadline <= tx.now_ms()) {
        tx.delete(key);
        tx.notify(EventClass::GENERIC, "del", key);
        return Ok(());
    }
    if changes {
        tx.set_expiry(key, expiry_ms);
    }
    if given {
        tx.notify(EventClass::GENERIC, "expire", key);
    } else if changes {
        tx.notify(EventClass::GENERIC, "persist", key);
    }
    Ok(())
}

fn mget(tx: &mut Transaction<'_>, args: &Args<'_>, reply: &mut Reply) -> CommandResult {
    prefetch(tx, args, 1, 1);
    reply.array(args.len() - 1);
    for key in args.from(1) {
        let key = read(tx, key);
        match tx.root(key).map(StringValue::of) {
            Some(Ok(value)) => value.reply(reply),
            _ => reply.null(),
        }
    }
    Ok(())
}

fn strlen(tx: &mut Transaction<'_>, args: &Args<'_>, reply: &mut Reply) -> CommandResult {
    let key = read(tx, args.at(1));
    let length = match tx.root(key) {
        Some(root) => StringValue::of(root)?.len(),
        None => 0,
    };
    reply.integer(length as i64);
    Ok(())
}

fn getrange(tx: &mut Transaction<'_>, args: &Args<'_>, reply: &mut Reply) -> CommandResult {
    let (start, end) = (args.integer(2)?, args.integer(3)?);
    let key = read(tx, args.at(1));
    let Some(root) = tx.root(key) else {
        reply.bulk(b"");
        return Ok(());
    };
    let value = StringValue::of(root)?;
    let range = byte_range(start, end, value.len());
    value.reply_range(range, reply);
    Ok(())
}

/// The bytes from `start` to `end`, both included and both counted from the end where negative; an end before the first byte means
/// the first byte, unless both were given from the end and in the wrong order.
fn byte_range(start: i64, end: i64, length: usize) -> Range<usize> {
    if start < 0 && end < 0 && start > end {
        return 0..0;
    }
    let from_front = |index: i64| {
        let index = if index < 0 { index.saturating_add(length as i64) } else { index };
        index.max(0) as usize
    };
    let start = from_front(start);
    let end = from_front(end).saturating_add(1).min(length);
    if start < end { start..end } else { 0..0 }
}

fn substr(tx: &mut Transaction<'_>, args: &Args<'_>, reply: &mut Reply) -> CommandResult {
    getrange(tx, args, reply)
}

/// What is to become of the key's deadline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Expiry {
    /// Not said.
    Unnamed,
    /// `KEEPTTL`
    Keep,
    /// `PERSIST`
    Persist,
    /// `EX`, `PX`, `EXAT` or `PXAT`, and the index of the number.
    At(DeadlineForm, usize),
}

/// The options of SET and GETEX.
#[derive(Clone, Copy, Debug)]
struct Options {
    /// `NX` (false) or `XX` (true): whether the key must exist.
    must_exist: Option<bool>,
    /// `GET`
    get: bool,
    expiry: Expiry,
}

/// Whose options they are.
#[derive(Clone, Copy, PartialEq, Eq)]
enum OptionsOf {
    Set,
    GetEx,
}

impl Options {
    /// Reads the options from argument `first` on. An option may be repeated, the last one counts; two that exclude each other are an
    /// error.
    fn parse(args: &Args<'_>, first: usize, command: OptionsOf) -> Result<Self, CommandError> {
        let mut options = Self { must_exist: None, get: false, expiry: Expiry::Unnamed };
        let mut index = first;
        while index < args.len() {
            let option = args.at(index);
            let is = |keyword: &[u8]| option.eq_ignore_ascii_case(keyword);
            let set = command == OptionsOf::Set;
            if set && is(b"NX") && options.must_exist != Some(true) {
                options.must_exist = Some(false);
            } else if set && is(b"XX") && options.must_exist != Some(false) {
                options.must_exist = Some(true);
            } else if set && is(b"GET") {
                options.get = true;
            } else if set && is(b"KEEPTTL") {
                options.expire(Expiry::Keep)?;
            } else if !set && is(b"PERSIST") {
                options.expire(Expiry::Persist)?;
            } else {
                let form = match option {
                    _ if is(b"EX") => DeadlineForm::EX,
                    _ if is(b"PX") => DeadlineForm::PX,
                    _ if is(b"EXAT") => DeadlineForm::EXAT,
                    _ if is(b"PXAT") => DeadlineForm::PXAT,
                    _ => return Err(CommandError::SYNTAX),
                };
                index += 1;
                if index == args.len() {
                    return Err(CommandError::SYNTAX);
                }
                options.expire(Expiry::At(form, index))?;
            }
            index += 1;
        }
        Ok(options)
    }

    /// Takes one more word on the deadline, which must not contradict the one before.
    fn expire(&mut self, expiry: Expiry) -> CommandResult {
        let agree = match (self.expiry, expiry) {
            (Expiry::Unnamed, _) => true,
            (Expiry::At(before, _), Expiry::At(form, _)) => before == form,
            (before, _) => before == expiry,
        };
        if !agree {
            return Err(CommandError::SYNTAX);
        }
        self.expiry = expiry;
        Ok(())
    }
}

fn set(tx: &mut Transaction<'_>, args: &Args<'_>, reply: &mut Reply) -> CommandResult {
    if args.len() > 3 {
        return set_with_options(tx, args, reply);
    }
    let key = tx.open(args.at(1));
    let value = new_string(tx, args.at(2), None);
    tx.set(key, value);
    tx.notify(EventClass::STRING, "set", key);
    reply.ok();
    Ok(())
}

fn set_with_options(tx: &mut Transaction<'_>, args: &Args<'_>, reply: &mut Reply) -> CommandResult {
    let options = Options::parse(args, 3, OptionsOf::Set)?;
    let deadline = match options.expiry {
        Expiry::At(form, index) => Some(form.positive(args, index, tx.now_ms(), "set")?),
        _ => None,
    };
    let key = if options.get { read(tx, args.at(1)) } else { write(tx, args.at(1)) };
    if options.get {
        reply_value(tx, key, reply)?;
    }
    let old = tx.root(key);
    if options.must_exist.is_some_and(|must_exist| must_exist != old.is_some()) {
        if !options.get {
            reply.null();
        }
        return Ok(());
    }
    let expiry_ms = if options.expiry == Expiry::Keep { old.and_then(Root::expiry_ms) } else { deadline };
    put(tx, key, args.at(2), expiry_ms, deadline.is_some());
    if !options.get {
        reply.ok();
    }
    Ok(())
}

/// Sets a key; a deadline that has passed deletes it instead. `is_new_deadline` is whether the command gave the deadline.
fn put(tx: &mut Transaction<'_>, key: KeyId, bytes: &[u8], expiry_ms: Option<i64>, is_new_deadline: bool) {
    if expiry_ms.is_some_and(|deadline| deadline < tx.now_ms()) {
        // What happens is that the key is set and goes at once.
        if tx.root(key).is_none() {
            tx.notify(EventClass::NEW, "new", key);
        }
        tx.delete(key);
        tx.notify(EventClass::STRING, "set", key);
        tx.notify(EventClass::GENERIC, "expire", key);
        tx.notify(EventClass::EXPIRED, "expired", key);
        return;
    }
    let value = new_string(tx, bytes, expiry_ms);
    tx.set(key, value);
    tx.notify(EventClass::STRING, "set", key);
    if is_new_deadline {
        tx.notify(EventClass::GENERIC, "expire", key);
    }
}

fn setnx(tx: &mut Transaction<'_>, args: &Args<'_>, reply: &mut Reply) -> CommandResult {
    let key = write(tx, args.at(1));
    let absent = tx.root(key).is_none();
    if absent {
        put(tx, key, args.at(2), None, false);
    }
    reply.integer(absent.into());
    Ok(())
}

fn setex(tx: &mut Transaction<'_>, args: &Args<'_>, reply: &mut Reply) -> CommandResult {
    set_for(tx, args, reply, DeadlineForm::EX, "setex")
}

fn psetex(tx: &mut Transaction<'_>, args: &Args<'_>, reply: &mut Reply) -> CommandResult {
    set_for(tx, args, reply, DeadlineForm::PX, "psetex")
}

fn set_for(
    tx: &mut Transaction<'_>,
    args: &Args<'_>,
    reply: &mut Reply,
    form: DeadlineForm,
    command: &str,
) -> CommandResult {
    let deadline = form.positive(args, 2, tx.now_ms(), command)?;
    let key = tx.open(args.at(1));
    put(tx, key, args.at(3), Some(deadline), true);
    reply.ok();
    Ok(())
}

fn mset(tx: &mut Transaction<'_>, args: &Args<'_>, reply: &mut Reply) -> CommandResult {
    if args.len().is_multiple_of(2) {
        return Err(CommandError::wrong_arity("mset"));
    }
    prefetch(tx, args, 1, 2);
    set_pairs(tx, args);
    reply.ok();
    Ok(())
}

fn set_pairs(tx: &mut Transaction<'_>, args: &Args<'_>) {
    for pair in args.from(1).chunks_exact(2) {
        let key = tx.open(pair[0]);
        put(tx, key, pair[1], None, false);
    }
}

fn msetnx(tx: &mut Transaction<'_>, args: &Args<'_>, reply: &mut Reply) -> CommandResult {
    if args.len().is_multiple_of(2) {
        return Err(CommandError::wrong_arity("msetnx"));
    }
    prefetch(tx, args, 1, 2);
    for pair in args.from(1).chunks_exact(2) {
        let key = write(tx, pair[0]);
        if tx.root(key).is_some() {
            reply.integer(0);
            return Ok(());
        }
    }
    set_pairs(tx, args);
    reply.integer(1);
    Ok(())
}

fn incr(tx: &mut Transaction<'_>, args: &Args<'_>, reply: &mut Reply) -> CommandResult {
    add(tx, args.at(1), 1, reply)
}

fn decr(tx: &mut Transaction<'_>, args: &Args<'_>, reply: &mut Reply) -> CommandResult {
    add(tx, args.at(1), -1, reply)
}

fn incrby(tx: &mut Transaction<'_>, args: &Args<'_>, reply: &mut Reply) -> CommandResult {
    add(tx, args.at(1), args.integer(2)?, reply)
}

fn decrby(tx: &mut Transaction<'_>, args: &Args<'_>, reply: &mut Reply) -> CommandResult {
    let decrement = args.integer(2)?;
    let increment = decrement.checked_neg().ok_or(CommandError::err("decrement would overflow"))?;
    add(tx, args.at(1), increment, reply)
}

fn add(tx: &mut Transaction<'_>, key: &[u8], increment: i64, reply: &mut Reply) -> CommandResult {
    let key = tx.open(key);
    // A failure counts as use, as any look-up does.
    let sum = sum(tx.root(key), increment).inspect_err(|_| tx.touch(key))?;
    let expiry_ms = tx.root(key).and_then(Root::expiry_ms);
    tx.set(key, NewRoot::integer(sum, expiry_ms));
    tx.notify(EventClass::STRING, "incrby", key);
    reply.integer(sum);
    Ok(())
}

/// The number at a key (zero where there is none) with another one added.
#[inline]
fn sum(root: Option<&Root>, increment: i64) -> Result<i64, CommandError> {
    let number = match root {
        Some(root) => StringValue::of(root)?.integer().ok_or(CommandError::NOT_AN_INTEGER)?,
        None => 0,
    };
    number.checked_add(increment).ok_or(OVERFLOW)
}

fn incrbyfloat(tx: &mut Transaction<'_>, args: &Args<'_>, reply: &mut Reply) -> CommandResult {
    let key = write(tx, args.at(1));
    let (number, expiry_ms) = match tx.root(key) {
        Some(root) => {
            let number = match StringValue::of(root)? {
                StringValue::Integer(number) => Some(float_text::from_integer(number)),
                value if value.len() > float_text::TEXT_BYTES_MAX => None,
                value => float_text::parse(&value.bytes(&mut itoa::Buffer::new())),
            };
            (number.ok_or(CommandError::NOT_A_FLOAT)?, root.expiry_ms())
        }
        None => (float_text::from_integer(0), None),
    };
    let increment = float_text::parse(args.at(2)).ok_or(CommandError::NOT_A_FLOAT)?;
    let sum = float_text::add(number, increment).ok_or(CommandError::err("increment would produce NaN or Infinity"))?;
    let text = float_text::format(sum);
    let value = new_text(tx, &text, expiry_ms);
    tx.set(key, value);
    tx.notify(EventClass::STRING, "incrbyfloat", key);
    reply.bulk(&text);
    Ok(())
}

/// The length that a string of `length` bytes has with `added` more, or the error that it is too long.
fn checked_length(tx: &Transaction<'_>, length: usize, added: usize) -> Result<usize, CommandError> {
    let total = length.checked_add(added).ok_or(TOO_LONG)?;
    if total as u64 > tx.limits().proto_max_bulk_len { Err(TOO_LONG) } else { Ok(total) }
}

fn append(tx: &mut Transaction<'_>, args: &Args<'_>, reply: &mut Reply) -> CommandResult {
    let key = write(tx, args.at(1));
    let added = args.at(2);
    let Some(root) = tx.root(key) else {
        let value = new_string(tx, added, None);
        tx.set(key, value);
        tx.notify(EventClass::STRING, "append", key);
        reply.integer(added.len() as i64);
        return Ok(());
    };
    let value = StringValue::of(root)?;
    let length = checked_length(tx, value.len(), added.len())?;
    if let StringValue::Rope(_) = value {
        edit_rope(tx, key, |rope, attempt| rope.append(added, attempt));
    } else {
        rebuild(tx, key, |old, expiry_ms, attempt| from_parts(&[old, added], StringEncoding::Raw, expiry_ms, attempt))?;
    }
    tx.notify(EventClass::STRING, "append", key);
    reply.integer(length as i64);
    Ok(())
}

fn setrange(tx: &mut Transaction<'_>, args: &Args<'_>, reply: &mut Reply) -> CommandResult {
    let offset = args.integer(2)?;
    let offset = usize::try_from(offset).map_err(|_| CommandError::err("offset is out of range"))?;
    let written = args.at(3);
    let key = write(tx, args.at(1));
    let value = match tx.root(key) {
        Some(root) => StringValue::of(root)?,
        None => StringValue::Bytes(&[]),
    };
    if written.is_empty() {
        reply.integer(value.len() as i64);
        return Ok(());
    }
    let end = checked_length(tx, offset, written.len())?;
    let length = value.len().max(end);
    if let StringValue::Rope(_) = value {
        edit_rope(tx, key, |rope, attempt| rope.write(offset, written, attempt));
    } else if length > ROPE_THRESHOLD_BYTES {
        rebuild(tx, key, |old, expiry_ms, attempt| {
            let mut rope = Rope::new(&[old], attempt);
            rope.write(offset, written, attempt);
            NewRoot::rope(rope, expiry_ms)
        })?;
    } else {
        rebuild(tx, key, |old, expiry_ms, attempt| {
            let kept = &old[..offset.min(old.len())];
            let padding = &ZEROS[..offset - kept.len()];
            let rest = old.get(end..).unwrap_or(&[]);
            from_parts(&[kept, padding, written, rest], StringEncoding::Raw, expiry_ms, attempt)
        })?;
    }
    tx.notify(EventClass::STRING, "setrange", key);
    reply.integer(length as i64);
    Ok(())
}

/// What SETRANGE pads a short string with.
static ZEROS: [u8; ROPE_THRESHOLD_BYTES] = [0; ROPE_THRESHOLD_BYTES];

/// Changes the rope at a key in place.
fn edit_rope(tx: &mut Transaction<'_>, key: KeyId, change: impl FnOnce(&mut Rope, &mut Attempt)) {
    let (root, attempt) = tx.edit(key).expect("the caller has seen a string");
    change(root.rope_mut().expect("the caller has seen a rope"), attempt);
}

/// Replaces a string by what `build` makes from its bytes (none where there is no key) and its deadline.
fn rebuild(
    tx: &mut Transaction<'_>,
    key: KeyId,
    build: impl FnOnce(&[u8], Option<i64>, &mut Attempt) -> NewRoot,
) -> CommandResult {
    let (root, attempt) = tx.root_and_attempt(key);
    let value = match root {
        Some(root) => StringValue::of(root)?,
        None => StringValue::Bytes(&[]),
    };
    let new = build(&value.bytes(&mut itoa::Buffer::new()), root.and_then(Root::expiry_ms), attempt);
    tx.set(key, new);
    Ok(())
}

/// The options of LCS.
struct LcsOptions {
    indexes: bool,
    length: bool,
    match_lengths: bool,
    match_length_min: u64,
}

impl LcsOptions {
    fn parse(args: &Args<'_>) -> Result<Self, CommandError> {
        let mut options = Self { indexes: false, length: false, match_lengths: false, match_length_min: 0 };
        let mut index = 3;
        while index < args.len() {
            if args.is(index, "IDX") {
                options.indexes = true;
            } else if args.is(index, "LEN") {
                options.length = true;
            } else if args.is(index, "WITHMATCHLEN") {
                options.match_lengths = true;
            } else if args.is(index, "MINMATCHLEN") && index + 1 < args.len() {
                index += 1;
                options.match_length_min = args.integer(index)?.max(0) as u64;
            } else {
                return Err(CommandError::SYNTAX);
            }
            index += 1;
        }
        if options.indexes && options.length {
            return Err(CommandError::err("If you want both the length and indexes, please just use IDX."));
        }
        Ok(options)
    }
}

fn lcs(tx: &mut Transaction<'_>, args: &Args<'_>, reply: &mut Reply) -> CommandResult {
    let (first, second) = (read(tx, args.at(1)), read(tx, args.at(2)));
    let string_at = |key| match tx.root(key).map(StringValue::of) {
        None => Ok(StringValue::Bytes(&[])),
        Some(Ok(value)) => Ok(value),
        Some(Err(_)) => Err(CommandError::err("The specified keys must contain string values")),
    };
    let (first, second) = (string_at(first)?, string_at(second)?);
    let options = LcsOptions::parse(args)?;
    let (mut first_digits, mut second_digits) = (itoa::Buffer::new(), itoa::Buffer::new());
    let (first, second) = (first.bytes(&mut first_digits), second.bytes(&mut second_digits));
    let table = LcsTable::new(&first, &second, tx.limits().proto_max_bulk_len)?;
    if options.indexes {
        reply.map(2);
        reply.bulk(b"matches");
        let mark = reply.mark();
        let mut matches = 0;
        table.for_each_match(|first, second, length| {
            if (length as u64) < options.match_length_min {
                return;
            }
            matches += 1;
            reply.array(if options.match_lengths { 3 } else { 2 });
            for start in [first, second] {
                reply.array(2);
                reply.integer(start as i64);
                reply.integer((start + length - 1) as i64);
            }
            if options.match_lengths {
                reply.integer(length as i64);
            }
        });
        reply.array_at(mark, matches);
        reply.bulk(b"len");
        reply.integer(table.length() as i64);
    } else if options.length {
        reply.integer(table.length() as i64);
    } else {
        reply.bulk(&table.subsequence());
    }
    Ok(())
}

/// The longest common subsequence of two strings by dynamic programming: for each pair of prefixes the length of theirs.
struct LcsTable<'a> {
    first: &'a [u8],
    second: &'a [u8],
    lengths: Vec<u32>,
}

impl<'a> LcsTable<'a> {
    /// Fills the table. Time and memory grow with the product of the lengths; more than `bytes_max` of memory is an error.
    fn new(first: &'a [u8], second: &'a [u8], bytes_max: u64) -> Result<Self, CommandError> {
        if first.len().max(second.len()) >= u32::MAX as usize - 1 {
            return Err(CommandError::err("String too long for LCS"));
        }
        let (rows, columns) = (first.len() + 1, second.len() + 1);
        // Two factors below 2^32 and one of four fit 66 bits.
        if rows as u128 * columns as u128 * 4 > u128::from(bytes_max) {
            return Err(CommandError::err("Insufficient memory, transient memory for LCS exceeds proto-max-bulk-len"));
        }
        let mut lengths = Vec::new();
        lengths
            .try_reserve_exact(rows * columns)
            .map_err(|_| CommandError::err("Insufficient memory, failed allocating transient memory for LCS"))?;
        lengths.resize(columns, 0);
        for byte in first {
            let above = lengths.len() - columns;
            lengths.push(0);
            for (index, other) in second.iter().enumerate() {
                let length = if byte == other {
                    lengths[above + index] + 1
                } else {
                    lengths[above + index + 1].max(lengths[above + columns + index])
                };
                lengths.push(length);
            }
        }
        Ok(Self { first, second, lengths })
    }

    /// The length for the first `row` and `column` bytes.
    fn at(&self, row: usize, column: usize) -> u32 {
        self.lengths[row * (self.second.len() + 1) + column]
    }

    /// The length for the whole strings.
    fn length(&self) -> usize {
        self.at(self.first.len(), self.second.len()) as usize
    }

    /// Walks back through the table and calls `visit` with each run of bytes that both strings share: where it starts in each, and its
    /// length; the last run first.
    fn for_each_match(&self, mut visit: impl FnMut(usize, usize, usize)) {
        let (mut row, mut column) = (self.first.len(), self.second.len());
        let mut run = 0;
        while row > 0 && column > 0 {
            if self.first[row - 1] == self.second[column - 1] {
                run += 1;
                row -= 1;
                column -= 1;
                continue;
            }
            if run > 0 {
                visit(row, column, run);
                run = 0;
            }
            if self.at(row - 1, column) > self.at(row, column - 1) {
                row -= 1;
            } else {
                column -= 1;
            }
        }
        if run > 0 {
            visit(row, column, run);
        }
    }

    fn subsequence(&self) -> Vec<u8> {
        let mut reversed = Vec::with_capacity(self.length());
        self.for_each_match(|first, _, length| {
            reversed.extend(self.first[first..first + length].iter().rev());
        });
        reversed.reverse();
        reversed
    }
}

#[cfg(test)]
mod tests {
    use super::ROWS;
    use crate::command::family::testing::{Client, check};

    #[test]
    fn replies_are_those_of_redis() {
        check(ROWS, include_str!("cases/string.txt"));
    }

    #[test]
    fn strings_have_a_largest_length() {
        let mut client = Client::new();
        client.limits.proto_max_bulk_len = 1000;
        client.run(&format!("SET k {}", "x".repeat(999)));
        let too_long = "-ERR string exceeds maximum allowed size (proto-max-bulk-len)";
        assert_eq!(client.run("APPEND k ab"), too_long);
        assert_eq!(client.run("APPEND k a"), ":1000");
        assert_eq!(client.run("APPEND k a"), too_long);
        assert_eq!(client.run("SETRANGE k 999 b"), ":1000");
        assert_eq!(client.run("SETRANGE k 1000 b"), too_long);
        assert_eq!(client.run("STRLEN k"), ":1000");
        let lcs = "-ERR Insufficient memory, transient memory for LCS exceeds proto-max-bulk-len";
        assert_eq!(client.run("LCS k k LEN"), lcs);
    }

    #[test]
    fn strings_keep_their_bytes_across_the_length_of_a_rope() {
        let mut client = Client::new();
        let mut expected = Vec::new();
        for step in 0..40_u8 {
            let part = vec![step; 1 + usize::from(step) * 40];
            client.run_args(&[b"APPEND", b"k", &part]);
            expected.extend_from_slice(&part);
            let offset = expected.len() / 3;
            client.run_args(&[b"SETRANGE", b"k", offset.to_string().as_bytes(), b"written"]);
            let end = (offset + 7).max(expected.len());
            expected.resize(end, 0);
            expected[offset..offset + 7].copy_from_slice(b"written");
        }
        assert!(expected.len() > 20_000);
        assert_eq!(client.run("STRLEN k"), format!(":{}", expected.len()));
        client.run_args(&[b"SET", b"whole", &expected]);
        for (start, end) in [(0, -1), (0, 10), (-10, -1), (16_000, 17_000), (1000, 30_000)] {
            let whole = client.run(&format!("GETRANGE whole {start} {end}"));
            assert_eq!(client.run(&format!("GETRANGE k {start} {end}")), whole);
        }
        assert_eq!(client.run("GET k"), client.run("GET whole"));
        assert_eq!(client.run("LCS k missing LEN"), ":0");
    }

    #[test]
    fn values_past_their_deadline_are_not_set() {
        let mut client = Client::new();
        for line in ["SET k v PXAT 1", "SET k v EXAT 1", "SET k v"] {
            assert_eq!(client.run(line), "+OK");
        }
        assert_eq!(client.run("GETEX k EXAT 1"), "$1|v");
        assert_eq!(client.run("EXISTS k"), ":0");
        assert_eq!(client.run("SET k v PX 5"), "+OK");
        client.set_time(4);
        assert_eq!(client.run("GETEX k PX 5"), "$1|v");
        client.set_time(8);
        assert_eq!(client.run("SET k w KEEPTTL"), "+OK");
        assert_eq!(client.run("PTTL k"), ":1");
        client.set_time(10);
        assert_eq!(client.run("INCR k"), ":1");
        assert_eq!(client.run("TTL k"), ":-1");
    }
}
