//! Keys of any type.

use crate::command::args::Args;
use crate::command::deadline::{DeadlineForm, invalid_expire_time};
use crate::command::error::{CommandError, CommandResult};
use crate::command::help;
use crate::command::lookup::{inspect, peek, prefetch, read, write, write_in};
use crate::command::spec::{Argument, Categories, Flags, Group, Handler, KeyFlags, KeySpec, Row};
use crate::glob;
use crate::resp::Reply;
use crate::txn::{EventClass, KeyId, Transaction};
use crate::types::{Kind, NewRoot, Root, StringEncoding, View, access};

const KEY: Argument = Argument::key("key", 0);
const EXPIRE_CONDITION: Argument = Argument::one_of(
    "condition",
    &[Argument::word("nx", "NX"), Argument::word("xx", "XX"), Argument::word("gt", "GT"), Argument::word("lt", "LT")],
)
.since("7.0.0")
.optional();

/// The commands of this family.
pub static ROWS: &[Row] = &[
    Row {
        name: "copy",
        summary: "Stores a copy of a value under another key.",
        handler: Handler::Data(copy),
        arity: -3,
        flags: Flags::WRITE.or(Flags::DENYOOM),
        categories: Categories::KEYSPACE,
        keys: &[KeySpec::one(1, KeyFlags::READ), KeySpec::one(2, KeyFlags::REPLACE)],
        since: "6.2.0",
        group: Group::Generic,
        complexity: "O(N) with N the nested items of a collection, O(1) for strings",
        arguments: &[
            Argument::key("source", 0),
            Argument::key("destination", 1),
            Argument::integer("destination-db").token("DB").optional(),
            Argument::word("replace", "REPLACE").optional(),
        ],
        ..Row::DEFAULT
    },
    Row {
        name: "del",
        summary: "Deletes keys.",
        handler: Handler::Data(del),
        arity: -2,
        flags: Flags::WRITE,
        categories: Categories::KEYSPACE,
        keys: &[KeySpec::many(1, 1, KeyFlags::REMOVE)],
        tips: &["request_policy:multi_shard", "response_policy:agg_sum"],
        group: Group::Generic,
        complexity: "O(N) with N keys, and for each collection O(M) with M its elements",
        arguments: &[KEY.multiple()],
        ..Row::DEFAULT
    },
    Row {
        name: "exists",
        summary: "Counts how many of the named keys exist; a key named twice counts twice.",
        handler: Handler::Data(exists),
        arity: -2,
        flags: Flags::READONLY.or(Flags::FAST),
        categories: Categories::KEYSPACE,
        keys: &[KeySpec::many(1, 1, KeyFlags::RO)],
        tips: &["request_policy:multi_shard", "response_policy:agg_sum"],
        group: Group::Generic,
        complexity: "O(N) with N keys",
        history: &[("3.0.3", "Several keys.")],
        arguments: &[KEY.multiple()],
        ..Row::DEFAULT
    },
    Row {
        name: "expire",
        summary: "Lets a key expire after some seconds.",
        handler: Handler::Data(expire),
        arity: -3,
        flags: Flags::WRITE.or(Flags::FAST),
        categories: Categories::KEYSPACE,
        keys: &[KeySpec::one(1, KeyFlags::CHANGE)],
        group: Group::Generic,
        history: &[("7.0.0", "Options `NX`, `XX`, `GT` and `LT`.")],
        arguments: &[KEY, Argument::integer("seconds"), EXPIRE_CONDITION],
        ..Row::DEFAULT
    },
    Row {
        name: "expireat",
        summary: "Lets a key expire at a Unix time in seconds.",
        handler: Handler::Data(expireat),
        arity: -3,
        flags: Flags::WRITE.or(Flags::FAST),
        categories: Categories::KEYSPACE,
        keys: &[KeySpec::one(1, KeyFlags::CHANGE)],
        since: "1.2.0",
        group: Group::Generic,
        history: &[("7.0.0", "Options `NX`, `XX`, `GT` and `LT`.")],
        arguments: &[KEY, Argument::unix_time("unix-time-seconds"), EXPIRE_CONDITION],
        ..Row::DEFAULT
    },
    Row {
        name: "expiretime",
        summary: "Gives the Unix time in seconds at which a key expires.",
        handler: Handler::Data(expiretime),
        arity: 2,
        flags: Flags::READONLY.or(Flags::FAST),
        categories: Categories::KEYSPACE,
        keys: &[KeySpec::one(1, KeyFlags::READ)],
        since: "7.0.0",
        group: Group::Generic,
        arguments: &[KEY],
        ..Row::DEFAULT
    },
    Row {
        name: "keys",
        summary: "Lists the keys whose names match a glob pattern.",
        handler: Handler::Data(keys),
        arity: 2,
        flags: Flags::READONLY,
        categories: Categories::KEYSPACE.or(Categories::DANGEROUS),
        tips: &["request_policy:all_shards", "nondeterministic_output_order"],
        group: Group::Generic,
        complexity: "O(N) with N the keys of the database",
        arguments: &[Argument::pattern("pattern")],
        whole_keyspace: true,
        ..Row::DEFAULT
    },
    Row {
        name: "memory",
        summary: "Looks at the use of memory.",
        arity: -2,
        since: "4.0.0",
        complexity: "Depends on the subcommand",
        subcommands: &[
            Row {
                name: "help",
                summary: "Lists the subcommands.",
                handler: Handler::Data(memory_help),
                arity: 2,
                flags: Flags::LOADING.or(Flags::STALE),
                since: "4.0.0",
                ..Row::DEFAULT
            },
            Row {
                name: "usage",
                summary: "Estimates how many bytes a key takes with its value.",
                handler: Handler::Data(memory_usage),
                arity: -3,
                flags: Flags::READONLY,
                keys: &[KeySpec::one(2, KeyFlags::RO)],
                since: "4.0.0",
                complexity: "O(N) with N samples",
                arguments: &[KEY, Argument::integer("count").token("SAMPLES").optional()],
                ..Row::DEFAULT
            },
        ],
        ..Row::DEFAULT
    },
    Row {
        name: "move",
        summary: "Moves a key into another database.",
        handler: Handler::Data(move_key),
        arity: 3,
        flags: Flags::WRITE.or(Flags::FAST),
        categories: Categories::KEYSPACE,
        keys: &[KeySpec::one(1, KeyFlags::MODIFY)],
        group: Group::Generic,
        arguments: &[KEY, Argument::integer("db")],
        ..Row::DEFAULT
    },
    Row {
        name: "object",
        summary: "Looks at how values are stored.",
        arity: -2,
        since: "2.2.3",
        group: Group::Generic,
        complexity: "Depends on the subcommand",
        subcommands: &[
            Row {
                name: "encoding",
                summary: "Names the form in which a value is held in memory.",
                handler: Handler::Data(object_encoding),
                arity: 3,
                flags: Flags::READONLY,
                categories: Categories::KEYSPACE,
                keys: &[KeySpec::one(2, KeyFlags::RO)],
                tips: &["nondeterministic_output"],
                since: "2.2.3",
                group: Group::Generic,
                arguments: &[KEY],
                ..Row::DEFAULT
            },
            Row {
                name: "freq",
                summary: "Gives how often a value is used, as a logarithmic counter.",
                handler: Handler::Data(object_freq),
                arity: 3,
                flags: Flags::READONLY,
                categories: Categories::KEYSPACE,
                keys: &[KeySpec::one(2, KeyFlags::RO)],
                tips: &["nondeterministic_output"],
                since: "4.0.0",
                group: Group::Generic,
                arguments: &[KEY],
                ..Row::DEFAULT
            },
            Row {
                name: "help",
                summary: "Lists the subcommands.",
                handler: Handler::Data(object_help),
                arity: 2,
                flags: Flags::LOADING.or(Flags::STALE),
                categories: Categories::KEYSPACE,
                since: "6.2.0",
                group: Group::Generic,
                ..Row::DEFAULT
            },
            Row {
                name: "idletime",
                summary: "Gives the seconds since a value was last used.",
                handler: Handler::Data(object_idletime),
                arity: 3,
                flags: Flags::READONLY,
                categories: Categories::KEYSPACE,
                keys: &[KeySpec::one(2, KeyFlags::RO)],
                tips: &["nondeterministic_output"],
                since: "2.2.3",
                group: Group::Generic,
                arguments: &[KEY],
                ..Row::DEFAULT
            },
            Row {
                name: "refcount",
                summary: "Gives the number of references to a value.",
                handler: Handler::Data(object_refcount),
                arity: 3,
                flags: Flags::READONLY,
                categories: Categories::KEYSPACE,
                keys: &[KeySpec::one(2, KeyFlags::RO)],
                tips: &["nondeterministic_output"],
                since: "2.2.3",
                group: Group::Generic,
                arguments: &[KEY],
                ..Row::DEFAULT
            },
        ],
        ..Row::DEFAULT
    },
    Row {
        name: "persist",
        summary: "Takes the deadline off a key.",
        handler: Handler::Data(persist),
        arity: 2,
        flags: Flags::WRITE.or(Flags::FAST),
        categories: Categories::KEYSPACE,
        keys: &[KeySpec::one(1, KeyFlags::CHANGE)],
        since: "2.2.0",
        group: Group::Generic,
        arguments: &[KEY],
        ..Row::DEFAULT
    },
    Row {
        name: "pexpire",
        summary: "Lets a key expire after some milliseconds.",
        handler: Handler::Data(pexpire),
        arity: -3,
        flags: Flags::WRITE.or(Flags::FAST),
        categories: Categories::KEYSPACE,
        keys: &[KeySpec::one(1, KeyFlags::CHANGE)],
        since: "2.6.0",
        group: Group::Generic,
        history: &[("7.0.0", "Options `NX`, `XX`, `GT` and `LT`.")],
        arguments: &[KEY, Argument::integer("milliseconds"), EXPIRE_CONDITION],
        ..Row::DEFAULT
    },
    Row {
        name: "pexpireat",
        summary: "Lets a key expire at a Unix time in milliseconds.",
        handler: Handler::Data(pexpireat),
        arity: -3,
        flags: Flags::WRITE.or(Flags::FAST),
        categories: Categories::KEYSPACE,
        keys: &[KeySpec::one(1, KeyFlags::CHANGE)],
        since: "2.6.0",
        group: Group::Generic,
        history: &[("7.0.0", "Options `NX`, `XX`, `GT` and `LT`.")],
        arguments: &[KEY, Argument::unix_time("unix-time-milliseconds"), EXPIRE_CONDITION],
        ..Row::DEFAULT
    },
    Row {
        name: "pexpiretime",
        summary: "Gives the Unix time in milliseconds at which a key expires.",
        handler: Handler::Data(pexpiretime),
        arity: 2,
        flags: Flags::READONLY.or(Flags::FAST),
        categories: Categories::KEYSPACE,
        keys: &[KeySpec::one(1, KeyFlags::READ)],
        since: "7.0.0",
        group: Group::Generic,
        arguments: &[KEY],
        ..Row::DEFAULT
    },
    Row {
        name: "pttl",
        summary: "Gives the milliseconds that a key has left.",
        handler: Handler::Data(pttl),
        arity: 2,
        flags: Flags::READONLY.or(Flags::FAST),
        categories: Categories::KEYSPACE,
        keys: &[KeySpec::one(1, KeyFlags::READ)],
        tips: &["nondeterministic_output"],
        since: "2.6.0",
        group: Group::Generic,
        history: &[("2.8.0", "-2 for a key that does not exist.")],
        arguments: &[KEY],
        ..Row::DEFAULT
    },
    Row {
        name: "randomkey",
        summary: "Names a key of the database, each with the same chance.",
        handler: Handler::Data(randomkey),
        arity: 1,
        flags: Flags::READONLY,
        categories: Categories::KEYSPACE,
        tips: &["request_policy:all_shards", "response_policy:special", "nondeterministic_output"],
        group: Group::Generic,
        whole_keyspace: true,
        ..Row::DEFAULT
    },
    Row {
        name: "rename",
        summary: "Gives a key another name, in place of any key of that name.",
        handler: Handler::Data(rename),
        arity: 3,
        flags: Flags::WRITE,
        categories: Categories::KEYSPACE,
        keys: &[KeySpec::one(1, KeyFlags::TAKE), KeySpec::one(2, KeyFlags::REPLACE)],
        group: Group::Generic,
        arguments: &[KEY, Argument::key("newkey", 1)],
        ..Row::DEFAULT
    },
    Row {
        name: "renamenx",
        summary: "Gives a key another name, unless that name is taken.",
        handler: Handler::Data(renamenx),
        arity: 3,
        flags: Flags::WRITE.or(Flags::FAST),
        categories: Categories::KEYSPACE,
        keys: &[KeySpec::one(1, KeyFlags::TAKE), KeySpec::one(2, KeyFlags::CREATE)],
        group: Group::Generic,
        history: &[("3.2.0", "Equal names are no error any more.")],
        arguments: &[KEY, Argument::key("newkey", 1)],
        ..Row::DEFAULT
    },
    Row {
        name: "scan",
        summary: "Walks the key names of the database piece by piece.",
        handler: Handler::Data(scan),
        arity: -2,
        flags: Flags::READONLY,
        categories: Categories::KEYSPACE,
        tips: &["nondeterministic_output", "request_policy:special", "response_policy:special"],
        since: "2.8.0",
        group: Group::Generic,
        complexity: "O(1) for each call, O(N) for a whole walk over N keys",
        history: &[("6.0.0", "Option `TYPE`.")],
        arguments: &[
            Argument::integer("cursor"),
            Argument::pattern("pattern").token("MATCH").optional(),
            Argument::integer("count").token("COUNT").optional(),
            Argument::string("type").token("TYPE").since("6.0.0").optional(),
        ],
        whole_keyspace: true,
        ..Row::DEFAULT
    },
    Row {
        name: "touch",
        summary: "Marks keys as just used and counts those that exist.",
        handler: Handler::Data(touch),
        arity: -2,
        flags: Flags::READONLY.or(Flags::FAST),
        categories: Categories::KEYSPACE,
        keys: &[KeySpec::many(1, 1, KeyFlags::RO)],
        tips: &["request_policy:multi_shard", "response_policy:agg_sum"],
        since: "3.2.1",
        group: Group::Generic,
        complexity: "O(N) with N keys",
        arguments: &[KEY.multiple()],
        ..Row::DEFAULT
    },
    Row {
        name: "ttl",
        summary: "Gives the seconds that a key has left.",
        handler: Handler::Data(ttl),
        arity: 2,
        flags: Flags::READONLY.or(Flags::FAST),
        categories: Categories::KEYSPACE,
        keys: &[KeySpec::one(1, KeyFlags::READ)],
        tips: &["nondeterministic_output"],
        group: Group::Generic,
        history: &[("2.8.0", "-2 for a key that does not exist.")],
        arguments: &[KEY],
        ..Row::DEFAULT
    },
    Row {
        name: "type",
        summary: "Names the type of the value stored at a key.",
        handler: Handler::Data(type_of),
        arity: 2,
        flags: Flags::READONLY.or(Flags::FAST),
        categories: Categories::KEYSPACE,
        keys: &[KeySpec::one(1, KeyFlags::RO)],
        group: Group::Generic,
        arguments: &[KEY],
        ..Row::DEFAULT
    },
    Row {
        name: "unlink",
        summary: "Deletes keys and frees their values in the background.",
        handler: Handler::Data(unlink),
        arity: -2,
        flags: Flags::WRITE.or(Flags::FAST),
        categories: Categories::KEYSPACE,
        keys: &[KeySpec::many(1, 1, KeyFlags::REMOVE)],
        tips: &["request_policy:multi_shard", "response_policy:agg_sum"],
        since: "4.0.0",
        group: Group::Generic,
        complexity: "O(1) for each key, and O(N) in the background with N the parts of the values",
        arguments: &[KEY.multiple()],
        ..Row::DEFAULT
    },
];

fn del(tx: &mut Transaction<'_>, args: &Args<'_>, reply: &mut Reply) -> CommandResult {
    prefetch(tx, args, 1, 1);
    let mut deleted = 0;
    for key in args.from(1) {
        let key = tx.open(key);
        if tx.delete(key) {
            tx.notify(EventClass::GENERIC, "del", key);
            deleted += 1;
        }
    }
    reply.integer(deleted);
    Ok(())
}

/// Large values are always freed in the background, so this is DEL.
fn unlink(tx: &mut Transaction<'_>, args: &Args<'_>, reply: &mut Reply) -> CommandResult {
    del(tx, args, reply)
}

fn exists(tx: &mut Transaction<'_>, args: &Args<'_>, reply: &mut Reply) -> CommandResult {
    count_keys(tx, args, reply, peek)
}

fn touch(tx: &mut Transaction<'_>, args: &Args<'_>, reply: &mut Reply) -> CommandResult {
    count_keys(tx, args, reply, read)
}

fn count_keys(
    tx: &mut Transaction<'_>,
    args: &Args<'_>,
    reply: &mut Reply,
    open: fn(&mut Transaction<'_>, &[u8]) -> KeyId,
) -> CommandResult {
    prefetch(tx, args, 1, 1);
    let mut found = 0;
    for key in args.from(1) {
        let key = open(tx, key);
        found += i64::from(tx.root(key).is_some());
    }
    reply.integer(found);
    Ok(())
}

fn type_of(tx: &mut Transaction<'_>, args: &Args<'_>, reply: &mut Reply) -> CommandResult {
    let key = peek(tx, args.at(1));
    reply.simple(tx.root(key).map_or("none", type_name));
    Ok(())
}

/// The type of a value, as TYPE names it.
fn type_name(root: &Root) -> &'static str {
    match root.kind() {
        Kind::Tombstone => "none",
        Kind::Integer | Kind::Bytes | Kind::Rope => "string",
        Kind::List => "list",
    }
}

fn expire(tx: &mut Transaction<'_>, args: &Args<'_>, reply: &mut Reply) -> CommandResult {
    set_deadline(tx, args, reply, DeadlineForm::EX, "expire")
}

fn pexpire(tx: &mut Transaction<'_>, args: &Args<'_>, reply: &mut Reply) -> CommandResult {
    set_deadline(tx, args, reply, DeadlineForm::PX, "pexpire")
}

fn expireat(tx: &mut Transaction<'_>, args: &Args<'_>, reply: &mut Reply) -> CommandResult {
    set_deadline(tx, args, reply, DeadlineForm::EXAT, "expireat")
}

fn pexpireat(tx: &mut Transaction<'_>, args: &Args<'_>, reply: &mut Reply) -> CommandResult {
    set_deadline(tx, args, reply, DeadlineForm::PXAT, "pexpireat")
}

/// When EXPIRE and its like set a deadline.
#[derive(Clone, Copy, Default)]
struct ExpireConditions {
    /// `NX`: only where there is none.
    absent: bool,
    /// `XX`: only where there is one.
    present: bool,
    /// `GT`: only where there is an earlier one.
    later: bool,
    /// `LT`: only where there is a later one, or none.
    earlier: bool,
}

impl ExpireConditions {
    fn parse(args: &Args<'_>, first: usize) -> Result<Self, CommandError> {
        let mut conditions = Self::default();
        for option in args.from(first) {
            let condition = match option {
                _ if option.eq_ignore_ascii_case(b"NX") => &mut conditions.absent,
                _ if option.eq_ignore_ascii_case(b"XX") => &mut conditions.present,
                _ if option.eq_ignore_ascii_case(b"GT") => &mut conditions.later,
                _ if option.eq_ignore_ascii_case(b"LT") => &mut conditions.earlier,
                _ => return Err(CommandError::quoting("Unsupported option ", option, "")),
            };
            *condition = true;
        }
        let Self { absent, present, later, earlier } = conditions;
        if absent && (present || later || earlier) {
            return Err(CommandError::err("NX and XX, GT or LT options at the same time are not compatible"));
        }
        if later && earlier {
            return Err(CommandError::err("GT and LT options at the same time are not compatible"));
        }
        Ok(conditions)
    }

    fn allow(self, old: Option<i64>, new: i64) -> bool {
        // No deadline counts as one that never comes.
        let grows = old.is_some_and(|old| new > old);
        let shrinks = old.is_none_or(|old| new < old);
        (!self.absent || old.is_none())
            && (!self.present || old.is_some())
            && (!self.later || grows)
            && (!self.earlier || shrinks)
    }
}

fn set_deadline(
    tx: &mut Transaction<'_>,
    args: &Args<'_>,
    reply: &mut Reply,
    form: DeadlineForm,
    command: &str,
) -> CommandResult {
    let conditions = ExpireConditions::parse(args, 3)?;
    let deadline = form.resolve(args.integer(2)?, tx.now_ms()).ok_or_else(|| invalid_expire_time(command))?;
    let key = write(tx, args.at(1));
    let applies = tx.root(key).is_some_and(|root| conditions.allow(root.expiry_ms(), deadline));
    if applies {
        if deadline <= tx.now_ms() {
            tx.delete(key);
            tx.notify(EventClass::GENERIC, "del", key);
        } else {
            tx.set_expiry(key, Some(deadline));
            tx.notify(EventClass::GENERIC, "expire", key);
        }
    }
    reply.integer(applies.into());
    Ok(())
}

fn persist(tx: &mut Transaction<'_>, args: &Args<'_>, reply: &mut Reply) -> CommandResult {
    let key = write(tx, args.at(1));
    let expires = tx.root(key).is_some_and(|root| root.expiry_ms().is_some());
    if expires {
        tx.set_expiry(key, None);
        tx.notify(EventClass::GENERIC, "persist", key);
    }
    reply.integer(expires.into());
    Ok(())
}

fn ttl(tx: &mut Transaction<'_>, args: &Args<'_>, reply: &mut Reply) -> CommandResult {
    let now_ms = tx.now_ms();
    reply_deadline(tx, args, reply, |deadline| to_seconds(deadline - now_ms))
}

fn pttl(tx: &mut Transaction<'_>, args: &Args<'_>, reply: &mut Reply) -> CommandResult {
    let now_ms = tx.now_ms();
    reply_deadline(tx, args, reply, |deadline| deadline - now_ms)
}

fn expiretime(tx: &mut Transaction<'_>, args: &Args<'_>, reply: &mut Reply) -> CommandResult {
    reply_deadline(tx, args, reply, to_seconds)
}

fn pexpiretime(tx: &mut Transaction<'_>, args: &Args<'_>, reply: &mut Reply) -> CommandResult {
    reply_deadline(tx, args, reply, |deadline| deadline)
}

/// Rounds to whole seconds, half up; in more bits, since the latest deadline rounds up too.
fn to_seconds(milliseconds: i64) -> i64 {
    ((i128::from(milliseconds) + 500) / 1000) as i64
}

/// Answers with what `show` makes of the key's deadline, -1 where it has none, -2 where there is no key.
fn reply_deadline(
    tx: &mut Transaction<'_>,
    args: &Args<'_>,
    reply: &mut Reply,
    show: impl FnOnce(i64) -> i64,
) -> CommandResult {
    let key = peek(tx, args.at(1));
    reply.integer(match tx.root(key).map(Root::expiry_ms) {
        None => -2,
        Some(None) => -1,
        Some(Some(deadline)) => show(deadline).max(0),
    });
    Ok(())
}

const SAME_OBJECT: CommandError = CommandError::err("source and destination objects are the same");

fn rename(tx: &mut Transaction<'_>, args: &Args<'_>, reply: &mut Reply) -> CommandResult {
    move_value(tx, args, false)?;
    reply.ok();
    Ok(())
}

fn renamenx(tx: &mut Transaction<'_>, args: &Args<'_>, reply: &mut Reply) -> CommandResult {
    let moved = move_value(tx, args, true)?;
    reply.integer(moved.into());
    Ok(())
}

/// Moves a value with its deadline to another key; whether it did.
fn move_value(tx: &mut Transaction<'_>, args: &Args<'_>, only_to_absent: bool) -> Result<bool, CommandError> {
    prefetch(tx, args, 1, 1);
    let source = write(tx, args.at(1));
    if tx.root(source).is_none() {
        return Err(CommandError::NO_SUCH_KEY);
    }
    let destination = write(tx, args.at(2));
    if source == destination {
        return Ok(false);
    }
    if only_to_absent && tx.root(destination).is_some() {
        return Ok(false);
    }
    let value = tx.take(source).expect("the source was seen above");
    set_anew(tx, destination, value);
    tx.notify(EventClass::GENERIC, "rename_from", source);
    tx.notify(EventClass::GENERIC, "rename_to", destination);
    Ok(true)
}

/// Sets a key whose old value, if any, counts as deleted first: the key is a new one in any case.
fn set_anew(tx: &mut Transaction<'_>, key: KeyId, value: NewRoot) {
    if tx.root(key).is_some() {
        tx.notify(EventClass::NEW, "new", key);
    }
    tx.set(key, value);
}

/// The database that an argument names.
fn database(tx: &Transaction<'_>, args: &Args<'_>, index: usize) -> Result<usize, CommandError> {
    let number = i32::try_from(args.integer(index)?)
        .map_err(|_| CommandError::err("value is out of range, value must between -2147483648 and 2147483647"))?;
    let database = usize::try_from(number).ok().filter(|database| *database < tx.databases());
    database.ok_or(CommandError::err("DB index is out of range"))
}

fn move_key(tx: &mut Transaction<'_>, args: &Args<'_>, reply: &mut Reply) -> CommandResult {
    let database = database(tx, args, 2)?;
    if database == tx.database() {
        return Err(SAME_OBJECT);
    }
    let source = write(tx, args.at(1));
    let mut moved = false;
    if tx.root(source).is_some() {
        let destination = write_in(tx, database, args.at(1));
        if tx.root(destination).is_none()
            && let Some(value) = tx.take(source)
        {
            tx.set(destination, value);
            tx.notify(EventClass::GENERIC, "move_from", source);
            tx.notify(EventClass::GENERIC, "move_to", destination);
            moved = true;
        }
    }
    reply.integer(moved.into());
    Ok(())
}

fn copy(tx: &mut Transaction<'_>, args: &Args<'_>, reply: &mut Reply) -> CommandResult {
    let mut target = tx.database();
    let mut replace = false;
    let mut index = 3;
    while index < args.len() {
        if args.is(index, "REPLACE") {
            replace = true;
        } else if args.is(index, "DB") && index + 1 < args.len() {
            index += 1;
            target = database(tx, args, index)?;
        } else {
            return Err(CommandError::SYNTAX);
        }
        index += 1;
    }
    if target == tx.database() && args.at(1) == args.at(2) {
        return Err(SAME_OBJECT);
    }
    let source = read(tx, args.at(1));
    let mut copied = false;
    if tx.root(source).is_some() {
        let destination = write_in(tx, target, args.at(2));
        if replace || tx.root(destination).is_none() {
            let (root, attempt) = tx.root_and_attempt(source);
            if let Some(value) = root.map(|root| NewRoot::copy_of(root, attempt)) {
                set_anew(tx, destination, value);
                tx.notify(EventClass::GENERIC, "copy_to", destination);
                copied = true;
            }
        }
    }
    reply.integer(copied.into());
    Ok(())
}

fn keys(tx: &mut Transaction<'_>, args: &Args<'_>, reply: &mut Reply) -> CommandResult {
    let pattern = Pattern::new(args.at(1));
    let mark = reply.mark();
    let mut found = 0;
    let end = tx.scan(0, usize::MAX, &mut |key, _| {
        if pattern.matches(key) {
            found += 1;
            reply.bulk(key);
        }
    });
    debug_assert_eq!(end, 0, "all buckets were asked for");
    reply.array_at(mark, found);
    Ok(())
}

/// A pattern of keys.
struct Pattern<'a>(Option<&'a [u8]>);

impl<'a> Pattern<'a> {
    /// `*` alone matches every key, the empty one too, which [`glob::matches`] would not.
    fn new(pattern: &'a [u8]) -> Self {
        Self((pattern != b"*").then_some(pattern))
    }

    fn matches(&self, key: &[u8]) -> bool {
        self.0.is_none_or(|pattern| glob::matches(pattern, key, false))
    }
}

fn randomkey(tx: &mut Transaction<'_>, _args: &Args<'_>, reply: &mut Reply) -> CommandResult {
    match tx.random_key() {
        Some(key) => reply.bulk(&key),
        None => reply.null(),
    }
    Ok(())
}

fn scan(tx: &mut Transaction<'_>, args: &Args<'_>, reply: &mut Reply) -> CommandResult {
    let mut cursor = parse_cursor(args.at(1)).ok_or(CommandError::err("invalid cursor"))?;
    let mut pattern = Pattern(None);
    let mut wanted_type = None;
    let mut count = SCAN_COUNT;
    // Each option has a value.
    for index in (2..args.len()).step_by(2) {
        let Some(value) = args.get(index + 1) else { return Err(CommandError::SYNTAX) };
        if args.is(index, "COUNT") {
            count = usize::try_from(args.integer(index + 1)?).unwrap_or(0);
            if count == 0 {
                return Err(CommandError::SYNTAX);
            }
        } else if args.is(index, "MATCH") {
            pattern = Pattern::new(value);
        } else if args.is(index, "TYPE") {
            wanted_type = Some(value);
        } else {
            return Err(CommandError::SYNTAX);
        }
    }
    let mark = reply.mark();
    let (mut seen, mut found) = (0, 0);
    let mut buckets_left = count.saturating_mul(SCAN_BUCKETS_PER_KEY);
    // Ends because each round takes at least one bucket from a bounded number.
    loop {
        let buckets = (count - seen).min(buckets_left);
        buckets_left -= buckets;
        cursor = tx.scan(cursor, buckets, &mut |key, root| {
            seen += 1;
            let wanted = wanted_type.is_none_or(|name| name.eq_ignore_ascii_case(type_name(root).as_bytes()));
            if wanted && pattern.matches(key) {
                found += 1;
                reply.bulk(key);
            }
        });
        if cursor == 0 || buckets_left == 0 || seen >= count {
            break;
        }
    }
    reply.insert_at(mark, |reply| {
        reply.array(2);
        reply.bulk(itoa::Buffer::new().format(cursor).as_bytes());
        reply.array(found);
    });
    Ok(())
}

/// Keys that SCAN looks at without COUNT.
const SCAN_COUNT: usize = 10;

/// Buckets that SCAN visits at most for each key it was asked for, so that a sparse table does not hold it up.
const SCAN_BUCKETS_PER_KEY: usize = 10;

/// Reads a cursor as C's `strtoul` does, which is what clients may rely on: a sign is allowed before the digits, a negative number
/// counts from the end of the range, nothing at all is 0, and a zero byte ends the text. Blanks at the beginning are refused.
fn parse_cursor(text: &[u8]) -> Option<u64> {
    let text = text.split(|byte| *byte == 0).next().unwrap_or_default();
    let (negative, digits) = match text {
        [] => return Some(0),
        [b'-', digits @ ..] => (true, digits),
        [b'+', digits @ ..] => (false, digits),
        digits => (false, digits),
    };
    if digits.is_empty() {
        return None;
    }
    let mut number: u64 = 0;
    for digit in digits {
        let digit = digit.is_ascii_digit().then(|| u64::from(digit - b'0'))?;
        number = number.checked_mul(10)?.checked_add(digit)?;
    }
    Some(if negative { number.wrapping_neg() } else { number })
}

fn object_encoding(tx: &mut Transaction<'_>, args: &Args<'_>, reply: &mut Reply) -> CommandResult {
    let key = inspect(tx, args.at(2));
    match tx.root(key) {
        Some(root) => reply.bulk(encoding_name(root).as_bytes()),
        None => reply.null(),
    }
    Ok(())
}

/// Longest string that Redis keeps in one allocation with its header.
const EMBEDDED_BYTES_MAX: usize = 44;

/// The form in which Redis 7.2 would hold the value.
pub(super) fn encoding_name(root: &Root) -> &'static str {
    match root.view() {
        None => "none",
        Some(View::Integer(_)) => "int",
        Some(View::Bytes(bytes)) => {
            let embedded = bytes.len() <= EMBEDDED_BYTES_MAX && root.string_encoding() == StringEncoding::Whole;
            if embedded { "embstr" } else { "raw" }
        }
        Some(View::Rope(_)) => "raw",
        Some(View::List(list)) if list.is_listpack() => "listpack",
        Some(View::List(_)) => "quicklist",
    }
}

fn object_refcount(tx: &mut Transaction<'_>, args: &Args<'_>, reply: &mut Reply) -> CommandResult {
    let key = inspect(tx, args.at(2));
    match tx.root(key).map(Root::view) {
        // Redis shares the objects of the smallest integers and shows their count as the largest.
        Some(Some(View::Integer(0..10_000))) if tx.limits().shared_integers => reply.integer(i32::MAX.into()),
        Some(_) => reply.integer(1),
        None => reply.null(),
    }
    Ok(())
}

fn object_idletime(tx: &mut Transaction<'_>, args: &Args<'_>, reply: &mut Reply) -> CommandResult {
    let key = inspect(tx, args.at(2));
    match tx.root(key) {
        None => reply.null(),
        Some(_) if tx.limits().lfu => {
            return Err(CommandError::err(
                "An LFU maxmemory policy is selected, idle time not tracked. Please note that when switching between \
                 policies at runtime LRU and LFU data will take some time to adjust.",
            ));
        }
        Some(root) => reply.integer(access::idle_seconds(root.access(), tx.now_ms()).into()),
    }
    Ok(())
}

fn object_freq(tx: &mut Transaction<'_>, args: &Args<'_>, reply: &mut Reply) -> CommandResult {
    let key = inspect(tx, args.at(2));
    match tx.root(key) {
        None => reply.null(),
        Some(root) if tx.limits().lfu => {
            let counter = access::lfu_counter(root.access(), tx.now_ms(), tx.limits().lfu_decay_minutes);
            reply.integer(counter.into());
        }
        Some(_) => {
            return Err(CommandError::err(
                "An LFU maxmemory policy is not selected, access frequency not tracked. Please note that when switching \
                 between policies at runtime LRU and LFU data will take some time to adjust.",
            ));
        }
    }
    Ok(())
}

fn object_help(_tx: &mut Transaction<'_>, _args: &Args<'_>, reply: &mut Reply) -> CommandResult {
    reply_help("object", reply);
    Ok(())
}

fn reply_help(container: &str, reply: &mut Reply) {
    if let Some(row) = ROWS.iter().find(|row| row.name == container) {
        help::reply(row, reply);
    }
}

fn memory_usage(tx: &mut Transaction<'_>, args: &Args<'_>, reply: &mut Reply) -> CommandResult {
    for index in (3..args.len()).step_by(2) {
        // The nodes of a value are few beside its elements, so all are counted whatever the number of samples.
        if !args.is(index, "SAMPLES") || index + 1 == args.len() || args.integer(index + 1)? < 0 {
            return Err(CommandError::SYNTAX);
        }
    }
    let key = tx.open(args.at(2));
    match tx.memory_bytes(key) {
        Some(bytes) => reply.integer(bytes as i64),
        None => reply.null(),
    }
    Ok(())
}

fn memory_help(_tx: &mut Transaction<'_>, _args: &Args<'_>, reply: &mut Reply) -> CommandResult {
    reply_help("memory", reply);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::ROWS;
    use crate::command::family::testing::{Client, check};

    #[test]
    fn replies_are_those_of_redis() {
        check(ROWS, include_str!("cases/generic.txt"));
    }

    #[test]
    fn a_key_lives_until_its_deadline_and_not_longer() {
        let mut client = Client::new();
        client.run("SET k v EX 10");
        client.set_time(1);
        assert_eq!(client.run("PTTL k"), ":9999");
        assert_eq!(client.run("TTL k"), ":10");
        client.set_time(501);
        assert_eq!(client.run("TTL k"), ":9");
        client.set_time(10_000);
        assert_eq!(client.run("PTTL k"), ":0");
        assert_eq!(client.run("GET k"), "$1|v");
        assert_eq!(client.run("KEYS *"), "*1|$1|k");
        client.set_time(10_001);
        for (line, reply) in [
            ("KEYS *", "*0"),
            ("SCAN 0", "*2|$1|0|*0"),
            ("RANDOMKEY", "$-1"),
            ("GET k", "$-1"),
            ("TTL k", ":-2"),
            ("PERSIST k", ":0"),
            ("SET k v XX", "$-1"),
            ("SET k v NX KEEPTTL", "+OK"),
            ("TTL k", ":-1"),
        ] {
            assert_eq!(client.run(line), reply, "{line}");
        }
        assert_eq!(client.statistics().expired_keys, 1);
    }

    #[test]
    fn idle_time_is_that_since_the_value_was_used() {
        let mut client = Client::new();
        client.run("SET k v");
        client.run("RPUSH l a b");
        client.set_time(7_000);
        for line in ["TTL k", "TYPE k", "EXISTS k", "OBJECT ENCODING k", "MEMORY USAGE k", "KEYS *", "SCAN 0"] {
            client.run(line);
            assert_eq!(client.run("OBJECT IDLETIME k"), ":7", "after {line}");
        }
        // What fails, or changes nothing, counts as use too.
        let uses = [
            "GET k",
            "MGET k",
            "TOUCH k",
            "STRLEN k",
            "COPY k x",
            "COPY l k",
            "SET k w",
            "SET k w NX",
            "SETNX k w",
            "MSETNX y 1 k 1",
            "APPEND k x",
            "INCR k",
            "INCRBYFLOAT k 1",
            "SETRANGE k 0 \"\"",
            "GETEX k",
            "GETRANGE k 0 0",
            "LCS x k",
            "EXPIRE k 100",
            "EXPIRE k 100 XX",
            "PERSIST k",
            "RENAMENX l k",
            "MOVE k 1",
            "LPUSH k a",
            "LPOP k",
            "LPOP k 0",
            "LREM k 0 a",
            "RPOPLPUSH k l",
            "RPOPLPUSH l k",
        ];
        for line in uses {
            client.set_time(7_000);
            client.run("SET k v");
            client.run_in(1, "SET k v");
            client.set_time(14_000);
            client.run(line);
            assert_eq!(client.run("OBJECT IDLETIME k"), ":0", "after {line}");
        }
        assert_eq!(client.run("OBJECT IDLETIME l"), ":0");
    }

    #[test]
    fn under_an_lfu_policy_uses_are_counted() {
        let mut client = Client::new();
        client.limits.lfu = true;
        client.limits.lfu_log_factor = 0;
        client.run("SET k v");
        assert_eq!(client.run("OBJECT FREQ k"), ":5");
        (0..20).for_each(|_| drop(client.run("GET k")));
        assert_eq!(client.run("OBJECT FREQ k"), ":25");
        client.set_time(2 * 60_000);
        assert_eq!(client.run("OBJECT FREQ k"), ":23");
        let expected = "-ERR An LFU maxmemory policy is selected, idle time not tracked. Please note that when switching \
                        between policies at runtime LRU and LFU data will take some time to adjust.";
        assert_eq!(client.run("OBJECT IDLETIME k"), expected);
        assert_eq!(client.run("OBJECT IDLETIME missing"), "$-1");
    }

    #[test]
    fn lookups_are_counted_as_redis_counts_them() {
        // Hits and misses as INFO of Redis 7.0.15 gives them; `a` is a string, `l` a list, `x` is missing.
        let cases = [
            ("GET a", 1, 0),
            ("GET x", 0, 1),
            ("SET a 2", 0, 0),
            ("SET a 2 GET", 1, 0),
            ("SET x 2 XX GET", 0, 1),
            ("GETSET a 1", 1, 0),
            ("GETEX a", 1, 0),
            ("GETDEL x", 0, 1),
            ("INCR a", 0, 0),
            ("APPEND a 1", 0, 0),
            ("SETRANGE a 0 5", 0, 0),
            ("GETRANGE a 0 1", 1, 0),
            ("STRLEN x", 0, 1),
            ("MGET a x", 1, 1),
            ("LCS a x", 1, 1),
            ("EXISTS a x", 1, 1),
            ("TYPE x", 0, 1),
            ("TTL a", 1, 0),
            ("EXPIRETIME x", 0, 1),
            ("OBJECT ENCODING a", 1, 0),
            ("OBJECT REFCOUNT x", 0, 1),
            ("TOUCH a x", 1, 1),
            ("COPY a b", 1, 0),
            ("COPY x y", 0, 1),
            ("RENAME b c", 0, 0),
            ("EXPIRE a 100", 0, 0),
            ("PERSIST a", 0, 0),
            ("LPUSH l a", 0, 0),
            ("LPOP l", 0, 0),
            ("LLEN l", 1, 0),
            ("LINDEX x 0", 0, 1),
            ("LRANGE l 0 -1", 1, 0),
            ("LPOS l a", 1, 0),
            ("LREM l 0 zz", 0, 0),
            ("LSET l 0 a", 0, 0),
            ("LMOVE l l LEFT LEFT", 0, 0),
            ("LMPOP 2 x l LEFT", 0, 0),
            ("SETNX x 1", 0, 0),
            ("DEL x", 0, 0),
            ("KEYS *", 0, 0),
            ("MEMORY USAGE a", 0, 0),
            ("GET l", 1, 0),
            ("MGET l", 1, 0),
        ];
        for (line, hits, misses) in cases {
            let mut client = Client::new();
            client.run("SET a 1");
            client.run("SET b 1");
            client.run("RPUSH l a b c");
            client.run(line);
            let counted = client.statistics();
            assert_eq!((counted.keyspace_hits, counted.keyspace_misses), (hits, misses), "{line}");
        }
    }

    #[test]
    fn a_full_scan_gives_every_key_once_where_nothing_changes() {
        let mut client = Client::new();
        for number in 0..1000 {
            client.run(&format!("SET key:{number} {number}"));
        }
        for count in [1, 10, 77, 5000] {
            let mut cursor = "0".to_owned();
            let mut seen = Vec::new();
            loop {
                let reply = client.run(&format!("SCAN {cursor} COUNT {count} MATCH key:*"));
                // Every second part is a length.
                let parts: Vec<_> = reply.split('|').collect();
                cursor = parts[2].to_owned();
                seen.extend(parts[4..].iter().skip(1).step_by(2).map(|key| (*key).to_owned()));
                if cursor == "0" {
                    break;
                }
            }
            seen.sort();
            seen.dedup();
            assert_eq!(seen.len(), 1000, "COUNT {count}");
        }
    }

    #[test]
    fn help_tells_of_the_subcommands() {
        let mut client = Client::new();
        for container in ["OBJECT", "MEMORY"] {
            let reply = client.run(&format!("{container} HELP"));
            assert!(reply.contains(&format!("|+{container} <subcommand> ")), "{reply}");
        }
        let bytes = client.run("SET k v") + &client.run("MEMORY USAGE k");
        assert!(bytes.starts_with("+OK:") && bytes.len() > 5, "{bytes}");
    }
}
