//! Lists.

use crate::command::args::Args;
use crate::command::blocking::{timeout_ms, wait_or_answer};
use crate::command::error::{CommandError, CommandResult};
use crate::command::lookup::{read, write};
use crate::command::spec::{Argument, Categories, Flags, Group, Handler, KeyFlags, KeySpec, Row};
use crate::limits::ROPE_THRESHOLD_BYTES;
use crate::resp::Reply;
use crate::txn::{EventClass, KeyId, Otherwise, Transaction, Wait};
use crate::types::{Attempt, List, ListpackLimit, NewRoot, Root, Side, View};
use std::ops::Range;

const KEY: Argument = Argument::key("key", 0);
const ENDS: &[Argument] = &[Argument::word("left", "LEFT"), Argument::word("right", "RIGHT")];

const TIMEOUT_HISTORY: &[(&str, &str)] = &[("6.0.0", "The time-out is a double and no longer an integer.")];

/// The commands of this family.
pub static ROWS: &[Row] = &[
    Row {
        name: "blmove",
        summary: "Moves an element from an end of one list to an end of another, waiting until there is one.",
        handler: Handler::Data(blmove),
        arity: 6,
        flags: Flags::WRITE.or(Flags::DENYOOM).or(Flags::BLOCKING),
        categories: Categories::LIST,
        keys: &[KeySpec::one(1, KeyFlags::TAKE), KeySpec::one(2, KeyFlags::ADD)],
        since: "6.2.0",
        group: Group::List,
        arguments: &[
            Argument::key("source", 0),
            Argument::key("destination", 1),
            Argument::one_of("wherefrom", ENDS),
            Argument::one_of("whereto", ENDS),
            Argument::double("timeout"),
        ],
        ..Row::DEFAULT
    },
    Row {
        name: "blmpop",
        summary: "Pops elements from the first list of several that is not empty, waiting until there is one.",
        handler: Handler::Data(blmpop),
        arity: -5,
        flags: Flags::WRITE.or(Flags::BLOCKING),
        categories: Categories::LIST,
        keys: &[KeySpec::numbered(2, KeyFlags::TAKE)],
        since: "7.0.0",
        group: Group::List,
        complexity: "O(N+M) with N keys and M the elements returned",
        arguments: &[
            Argument::double("timeout"),
            Argument::integer("numkeys"),
            KEY.multiple(),
            Argument::one_of("where", ENDS),
            Argument::integer("count").token("COUNT").optional(),
        ],
        ..Row::DEFAULT
    },
    Row {
        name: "blpop",
        summary: "Pops the first element of the first list of several that is not empty, waiting until there is one.",
        handler: Handler::Data(blpop),
        arity: -3,
        flags: Flags::WRITE.or(Flags::BLOCKING),
        categories: Categories::LIST,
        keys: &[KeySpec::all_but_last(1, KeyFlags::TAKE)],
        since: "2.0.0",
        group: Group::List,
        complexity: "O(N) with N keys",
        history: TIMEOUT_HISTORY,
        arguments: &[KEY.multiple(), Argument::double("timeout")],
        ..Row::DEFAULT
    },
    Row {
        name: "brpop",
        summary: "Pops the last element of the first list of several that is not empty, waiting until there is one.",
        handler: Handler::Data(brpop),
        arity: -3,
        flags: Flags::WRITE.or(Flags::BLOCKING),
        categories: Categories::LIST,
        keys: &[KeySpec::all_but_last(1, KeyFlags::TAKE)],
        since: "2.0.0",
        group: Group::List,
        complexity: "O(N) with N keys",
        history: TIMEOUT_HISTORY,
        arguments: &[KEY.multiple(), Argument::double("timeout")],
        ..Row::DEFAULT
    },
    Row {
        name: "brpoplpush",
        summary: "Moves the last element of a list to the head of another, waiting until there is one.",
        handler: Handler::Data(brpoplpush),
        arity: 4,
        flags: Flags::WRITE.or(Flags::DENYOOM).or(Flags::BLOCKING),
        categories: Categories::LIST,
        keys: &[KeySpec::one(1, KeyFlags::TAKE), KeySpec::one(2, KeyFlags::ADD)],
        since: "2.2.0",
        group: Group::List,
        history: TIMEOUT_HISTORY,
        deprecated: Some(("6.2.0", "`BLMOVE` with the `RIGHT` and `LEFT` arguments")),
        arguments: &[Argument::key("source", 0), Argument::key("destination", 1), Argument::double("timeout")],
        ..Row::DEFAULT
    },
    Row {
        name: "lindex",
        summary: "Gives the element at an index of a list.",
        handler: Handler::Data(lindex),
        arity: 3,
        flags: Flags::READONLY,
        categories: Categories::LIST,
        keys: &[KeySpec::one(1, KeyFlags::READ)],
        group: Group::List,
        complexity: "O(N) with N the elements passed to reach the index, O(1) at both ends",
        arguments: &[KEY, Argument::integer("index")],
        ..Row::DEFAULT
    },
    Row {
        name: "linsert",
        summary: "Inserts an element before or after another one.",
        handler: Handler::Data(linsert),
        arity: 5,
        flags: Flags::WRITE.or(Flags::DENYOOM),
        categories: Categories::LIST,
        keys: &[KeySpec::one(1, KeyFlags::ADD)],
        since: "2.2.0",
        group: Group::List,
        complexity: "O(N) with N the elements passed before the pivot",
        arguments: &[
            KEY,
            Argument::one_of("where", &[Argument::word("before", "BEFORE"), Argument::word("after", "AFTER")]),
            Argument::string("pivot"),
            Argument::string("element"),
        ],
        ..Row::DEFAULT
    },
    Row {
        name: "llen",
        summary: "Gives the number of elements of a list.",
        handler: Handler::Data(llen),
        arity: 2,
        flags: Flags::READONLY.or(Flags::FAST),
        categories: Categories::LIST,
        keys: &[KeySpec::one(1, KeyFlags::RO)],
        group: Group::List,
        arguments: &[KEY],
        ..Row::DEFAULT
    },
    Row {
        name: "lmove",
        summary: "Moves an element from an end of one list to an end of another.",
        handler: Handler::Data(lmove),
        arity: 5,
        flags: Flags::WRITE.or(Flags::DENYOOM),
        categories: Categories::LIST,
        keys: &[KeySpec::one(1, KeyFlags::TAKE), KeySpec::one(2, KeyFlags::ADD)],
        since: "6.2.0",
        group: Group::List,
        arguments: &[
            Argument::key("source", 0),
            Argument::key("destination", 1),
            Argument::one_of("wherefrom", ENDS),
            Argument::one_of("whereto", ENDS),
        ],
        ..Row::DEFAULT
    },
    Row {
        name: "lmpop",
        summary: "Pops elements from the first list of several that is not empty.",
        handler: Handler::Data(lmpop),
        arity: -4,
        flags: Flags::WRITE,
        categories: Categories::LIST,
        keys: &[KeySpec::numbered(1, KeyFlags::TAKE)],
        since: "7.0.0",
        group: Group::List,
        complexity: "O(N+M) with N keys and M the elements returned",
        arguments: &[
            Argument::integer("numkeys"),
            KEY.multiple(),
            Argument::one_of("where", ENDS),
            Argument::integer("count").token("COUNT").optional(),
        ],
        ..Row::DEFAULT
    },
    Row {
        name: "lpop",
        summary: "Pops elements from the head of a list.",
        handler: Handler::Data(lpop),
        arity: -2,
        flags: Flags::WRITE.or(Flags::FAST),
        categories: Categories::LIST,
        keys: &[KeySpec::one(1, KeyFlags::TAKE)],
        group: Group::List,
        complexity: "O(N) with N the elements returned",
        history: &[("6.2.0", "A count.")],
        arguments: &[KEY, Argument::integer("count").since("6.2.0").optional()],
        ..Row::DEFAULT
    },
    Row {
        name: "lpos",
        summary: "Finds the positions of an element in a list.",
        handler: Handler::Data(lpos),
        arity: -3,
        flags: Flags::READONLY,
        categories: Categories::LIST,
        keys: &[KeySpec::one(1, KeyFlags::READ)],
        since: "6.0.6",
        group: Group::List,
        complexity: "O(N) with N the elements of the list, less with MAXLEN or near the ends",
        arguments: &[
            KEY,
            Argument::string("element"),
            Argument::integer("rank").token("RANK").optional(),
            Argument::integer("num-matches").token("COUNT").optional(),
            Argument::integer("len").token("MAXLEN").optional(),
        ],
        ..Row::DEFAULT
    },
    Row {
        name: "lpush",
        summary: "Pushes elements onto the head of a list, making the list where needed.",
        handler: Handler::Data(lpush),
        arity: -3,
        flags: Flags::WRITE.or(Flags::DENYOOM).or(Flags::FAST),
        categories: Categories::LIST,
        keys: &[KeySpec::one(1, KeyFlags::ADD)],
        group: Group::List,
        complexity: "O(N) with N the elements pushed",
        history: &[("2.4.0", "Several elements.")],
        arguments: &[KEY, Argument::string("element").multiple()],
        ..Row::DEFAULT
    },
    Row {
        name: "lpushx",
        summary: "Pushes elements onto the head of a list that exists.",
        handler: Handler::Data(lpushx),
        arity: -3,
        flags: Flags::WRITE.or(Flags::DENYOOM).or(Flags::FAST),
        categories: Categories::LIST,
        keys: &[KeySpec::one(1, KeyFlags::ADD)],
        since: "2.2.0",
        group: Group::List,
        complexity: "O(N) with N the elements pushed",
        history: &[("4.0.0", "Several elements.")],
        arguments: &[KEY, Argument::string("element").multiple()],
        ..Row::DEFAULT
    },
    Row {
        name: "lrange",
        summary: "Gives the elements between two indexes.",
        handler: Handler::Data(lrange),
        arity: 4,
        flags: Flags::READONLY,
        categories: Categories::LIST,
        keys: &[KeySpec::one(1, KeyFlags::READ)],
        group: Group::List,
        complexity: "O(S+N) with S the distance of the start from the nearer end and N the elements returned",
        arguments: &[KEY, Argument::integer("start"), Argument::integer("stop")],
        ..Row::DEFAULT
    },
    Row {
        name: "lrem",
        summary: "Removes elements equal to a value, counted from either end.",
        handler: Handler::Data(lrem),
        arity: 4,
        flags: Flags::WRITE,
        categories: Categories::LIST,
        keys: &[KeySpec::one(1, KeyFlags::DISCARD)],
        group: Group::List,
        complexity: "O(N+M) with N the elements of the list and M those removed",
        arguments: &[KEY, Argument::integer("count"), Argument::string("element")],
        ..Row::DEFAULT
    },
    Row {
        name: "lset",
        summary: "Replaces the element at an index.",
        handler: Handler::Data(lset),
        arity: 4,
        flags: Flags::WRITE.or(Flags::DENYOOM),
        categories: Categories::LIST,
        keys: &[KeySpec::one(1, KeyFlags::CHANGE)],
        group: Group::List,
        complexity: "O(N) with N the elements of the list, O(1) at both ends",
        arguments: &[KEY, Argument::integer("index"), Argument::string("element")],
        ..Row::DEFAULT
    },
    Row {
        name: "ltrim",
        summary: "Keeps only the elements between two indexes.",
        handler: Handler::Data(ltrim),
        arity: 4,
        flags: Flags::WRITE,
        categories: Categories::LIST,
        keys: &[KeySpec::one(1, KeyFlags::DISCARD)],
        group: Group::List,
        complexity: "O(N) with N the elements removed",
        arguments: &[KEY, Argument::integer("start"), Argument::integer("stop")],
        ..Row::DEFAULT
    },
    Row {
        name: "rpop",
        summary: "Pops elements from the tail of a list.",
        handler: Handler::Data(rpop),
        arity: -2,
        flags: Flags::WRITE.or(Flags::FAST),
        categories: Categories::LIST,
        keys: &[KeySpec::one(1, KeyFlags::TAKE)],
        group: Group::List,
        complexity: "O(N) with N the elements returned",
        history: &[("6.2.0", "A count.")],
        arguments: &[KEY, Argument::integer("count").since("6.2.0").optional()],
        ..Row::DEFAULT
    },
    Row {
        name: "rpoplpush",
        summary: "Moves the last element of a list to the head of another.",
        handler: Handler::Data(rpoplpush),
        arity: 3,
        flags: Flags::WRITE.or(Flags::DENYOOM),
        categories: Categories::LIST,
        keys: &[KeySpec::one(1, KeyFlags::TAKE), KeySpec::one(2, KeyFlags::ADD)],
        since: "1.2.0",
        group: Group::List,
        deprecated: Some(("6.2.0", "`LMOVE` with the `RIGHT` and `LEFT` arguments")),
        arguments: &[Argument::key("source", 0), Argument::key("destination", 1)],
        ..Row::DEFAULT
    },
    Row {
        name: "rpush",
        summary: "Pushes elements onto the tail of a list, making the list where needed.",
        handler: Handler::Data(rpush),
        arity: -3,
        flags: Flags::WRITE.or(Flags::DENYOOM).or(Flags::FAST),
        categories: Categories::LIST,
        keys: &[KeySpec::one(1, KeyFlags::ADD)],
        group: Group::List,
        complexity: "O(N) with N the elements pushed",
        history: &[("2.4.0", "Several elements.")],
        arguments: &[KEY, Argument::string("element").multiple()],
        ..Row::DEFAULT
    },
    Row {
        name: "rpushx",
        summary: "Pushes elements onto the tail of a list that exists.",
        handler: Handler::Data(rpushx),
        arity: -3,
        flags: Flags::WRITE.or(Flags::DENYOOM).or(Flags::FAST),
        categories: Categories::LIST,
        keys: &[KeySpec::one(1, KeyFlags::ADD)],
        since: "2.2.0",
        group: Group::List,
        complexity: "O(N) with N the elements pushed",
        history: &[("4.0.0", "Several elements.")],
        arguments: &[KEY, Argument::string("element").multiple()],
        ..Row::DEFAULT
    },
];

/// The end of a list that an argument names.
fn parse_side(args: &Args<'_>, index: usize) -> Result<Side, CommandError> {
    match () {
        () if args.is(index, "LEFT") => Ok(Side::Front),
        () if args.is(index, "RIGHT") => Ok(Side::Back),
        () => Err(CommandError::SYNTAX),
    }
}

/// The list that a root holds; an error when it holds another type.
#[inline]
fn list_of(root: &Root) -> Result<&List, CommandError> {
    match root.view() {
        Some(View::List(list)) => Ok(list),
        _ => Err(CommandError::WRONG_TYPE),
    }
}

/// The list at a key, to be read and used.
fn read_list<'t>(tx: &'t mut Transaction<'_>, key: &[u8]) -> Result<Option<&'t List>, CommandError> {
    let key = read(tx, key);
    tx.root(key).map(list_of).transpose()
}

/// The list at a key that was opened to be changed.
#[inline]
fn list_at<'t>(tx: &'t Transaction<'_>, key: KeyId) -> Result<Option<&'t List>, CommandError> {
    tx.root(key).map(list_of).transpose()
}

/// The list at a key, to be changed in place.
#[inline]
fn edit<'t>(tx: &'t mut Transaction<'_>, key: KeyId) -> (&'t mut List, &'t mut Attempt) {
    let (root, attempt) = tx.edit(key).expect("the caller has seen a list");
    (root.list_mut().expect("the caller has seen a list"), attempt)
}

/// Up to which size a list is called a listpack.
#[inline]
fn listpack_limit(tx: &Transaction<'_>) -> ListpackLimit {
    ListpackLimit::new(tx.limits().list_max_listpack_size)
}

/// The event of a push to an end.
fn push_event(side: Side) -> &'static str {
    if side == Side::Front { "lpush" } else { "rpush" }
}

/// The event of a pop from an end.
fn pop_event(side: Side) -> &'static str {
    if side == Side::Front { "lpop" } else { "rpop" }
}

/// Deletes the key of a list that has lost its last element.
#[inline]
fn delete_empty(tx: &mut Transaction<'_>, key: KeyId) {
    tx.delete(key);
    tx.notify(EventClass::GENERIC, "del", key);
}

/// After elements were removed from a list: deletes the key with the last of them, else lets the list become a listpack again.
#[inline]
fn settle(tx: &mut Transaction<'_>, key: KeyId) {
    let limit = listpack_limit(tx);
    let (list, _) = edit(tx, key);
    if list.is_empty() {
        delete_empty(tx, key);
    } else {
        list.shrink_encoding(limit);
    }
}

fn lpush(tx: &mut Transaction<'_>, args: &Args<'_>, reply: &mut Reply) -> CommandResult {
    push(tx, args, reply, Side::Front, false)
}

fn rpush(tx: &mut Transaction<'_>, args: &Args<'_>, reply: &mut Reply) -> CommandResult {
    push(tx, args, reply, Side::Back, false)
}

fn lpushx(tx: &mut Transaction<'_>, args: &Args<'_>, reply: &mut Reply) -> CommandResult {
    push(tx, args, reply, Side::Front, true)
}

fn rpushx(tx: &mut Transaction<'_>, args: &Args<'_>, reply: &mut Reply) -> CommandResult {
    push(tx, args, reply, Side::Back, true)
}

#[inline]
fn push(
    tx: &mut Transaction<'_>,
    args: &Args<'_>,
    reply: &mut Reply,
    side: Side,
    only_existing: bool,
) -> CommandResult {
    let key = tx.open(args.at(1));
    // A failure counts as use, as any look-up does.
    let exists = list_at(tx, key).inspect_err(|_| tx.touch(key))?.is_some();
    if !exists && only_existing {
        reply.integer(0);
        return Ok(());
    }
    let length = push_elements(tx, key, exists, side, args.from(2));
    tx.notify(EventClass::LIST, push_event(side), key);
    reply.integer(length as i64);
    Ok(())
}

/// Pushes elements one after the other to the list at a key, or to a new one; gives the new length.
#[inline]
fn push_elements(tx: &mut Transaction<'_>, key: KeyId, exists: bool, side: Side, elements: &[&[u8]]) -> usize {
    let limit = listpack_limit(tx);
    let bytes = elements.iter().map(|element| element.len()).sum();
    let add = |list: &mut List, attempt: &mut Attempt| {
        list.grow_encoding(elements.len(), bytes, limit);
        elements.iter().for_each(|element| list.push(side, element, attempt));
        list.len()
    };
    if exists {
        let (list, attempt) = edit(tx, key);
        return add(list, attempt);
    }
    let mut list = List::new();
    let length = add(&mut list, tx.attempt());
    tx.set(key, NewRoot::list(list, None));
    length
}

fn lpop(tx: &mut Transaction<'_>, args: &Args<'_>, reply: &mut Reply) -> CommandResult {
    pop(tx, args, reply, Side::Front, "lpop")
}

fn rpop(tx: &mut Transaction<'_>, args: &Args<'_>, reply: &mut Reply) -> CommandResult {
    pop(tx, args, reply, Side::Back, "rpop")
}

#[inline]
fn pop(tx: &mut Transaction<'_>, args: &Args<'_>, reply: &mut Reply, side: Side, command: &str) -> CommandResult {
    if args.len() > 2 {
        return pop_count(tx, args, reply, side, command);
    }
    let key = tx.open(args.at(1));
    let Some(list) = list_at(tx, key).inspect_err(|_| tx.touch(key))? else {
        reply.null();
        return Ok(());
    };
    if list.len() == 1 {
        // The key goes as a whole; nothing of the list need be changed.
        list.iter_from(0).for_each(|element| reply.bulk(element));
        tx.notify(EventClass::LIST, pop_event(side), key);
        delete_empty(tx, key);
        return Ok(());
    }
    let (list, attempt) = edit(tx, key);
    list.pop(side, attempt, |element| reply.bulk(element));
    tx.notify(EventClass::LIST, pop_event(side), key);
    settle(tx, key);
    Ok(())
}

fn pop_count(tx: &mut Transaction<'_>, args: &Args<'_>, reply: &mut Reply, side: Side, command: &str) -> CommandResult {
    if args.len() > 3 {
        return Err(CommandError::wrong_arity(command));
    }
    let count = count_from(args, 2, 0, "value is out of range, must be positive")?;
    let key = write(tx, args.at(1));
    match list_at(tx, key)? {
        None => reply.null_array(),
        Some(_) if count == 0 => reply.array(0),
        Some(_) => pop_elements(tx, key, side, count, reply),
    }
    Ok(())
}

/// Answers with up to `count` elements from one end of the list at a key, and removes them.
fn pop_elements(tx: &mut Transaction<'_>, key: KeyId, side: Side, count: usize, reply: &mut Reply) {
    let list = tx.root(key).and_then(|root| list_of(root).ok()).expect("the caller has seen a list");
    let length = list.len();
    let count = count.min(length);
    reply.array(count);
    let (start, removed) = match side {
        Side::Front => (0, 0..count),
        Side::Back => (length - 1, length - count..length),
    };
    list.iter(start, side.opposite()).take(count).for_each(|element| reply.bulk(element));
    tx.notify(EventClass::LIST, pop_event(side), key);
    if count == length {
        delete_empty(tx, key);
        return;
    }
    let (list, attempt) = edit(tx, key);
    list.remove_range(removed, attempt);
    settle(tx, key);
}

/// The number of elements that an argument gives, at least `least`; any other text is the error `message`.
fn count_from(args: &Args<'_>, index: usize, least: usize, message: &'static str) -> Result<usize, CommandError> {
    let count = args.integer(index).ok().and_then(|count| usize::try_from(count).ok());
    count.filter(|count| *count >= least).ok_or(CommandError::err(message))
}

/// A signed number of elements, whose opposite must be a number too.
fn signed_count(args: &Args<'_>, index: usize) -> Result<i64, CommandError> {
    let count = args.integer(index)?;
    if count == i64::MIN {
        return Err(CommandError::err(
            "value is out of range, value must between -9223372036854775807 and 9223372036854775807",
        ));
    }
    Ok(count)
}

fn lmpop(tx: &mut Transaction<'_>, args: &Args<'_>, reply: &mut Reply) -> CommandResult {
    let arguments = PopArguments::parse(args, 1)?;
    if !arguments.pop_first(tx, args, reply)? {
        reply.null_array();
    }
    Ok(())
}

fn blmpop(tx: &mut Transaction<'_>, args: &Args<'_>, reply: &mut Reply) -> CommandResult {
    let arguments = PopArguments::parse(args, 2)?;
    let timeout_ms = timeout_ms(args.at(1))?;
    if !arguments.pop_first(tx, args, reply)? {
        wait_or_answer(tx, Wait { keys: arguments.keys, timeout_ms, otherwise: Otherwise::NullArray }, reply);
    }
    Ok(())
}

/// The arguments of LMPOP and BLMPOP.
struct PopArguments {
    /// The positions of the keys.
    keys: Range<usize>,
    side: Side,
    count: usize,
}

impl PopArguments {
    /// Reads them from the number of keys, at `at`, on.
    fn parse(args: &Args<'_>, at: usize) -> Result<Self, CommandError> {
        let key_count = count_from(args, at, 1, "numkeys should be greater than 0")?;
        // The keys stand after their number, then comes the end.
        let end = key_count.checked_add(at + 1).filter(|index| *index < args.len()).ok_or(CommandError::SYNTAX)?;
        let side = parse_side(args, end)?;
        let mut count = None;
        let mut index = end + 1;
        while index < args.len() {
            if count.is_some() || !args.is(index, "COUNT") || index + 1 == args.len() {
                return Err(CommandError::SYNTAX);
            }
            count = Some(count_from(args, index + 1, 1, "count should be greater than 0")?);
            index += 2;
        }
        Ok(Self { keys: at + 1..end, side, count: count.unwrap_or(1) })
    }

    /// Answers with the name and elements of the first list that is not empty, and removes them; whether there is one.
    fn pop_first(&self, tx: &mut Transaction<'_>, args: &Args<'_>, reply: &mut Reply) -> Result<bool, CommandError> {
        for name in &args.from(0)[self.keys.clone()] {
            let key = write(tx, name);
            if list_at(tx, key)?.is_some() {
                reply.array(2);
                reply.bulk(name);
                pop_elements(tx, key, self.side, self.count, reply);
                return Ok(true);
            }
        }
        Ok(false)
    }
}

fn blpop(tx: &mut Transaction<'_>, args: &Args<'_>, reply: &mut Reply) -> CommandResult {
    blocking_pop(tx, args, reply, Side::Front)
}

fn brpop(tx: &mut Transaction<'_>, args: &Args<'_>, reply: &mut Reply) -> CommandResult {
    blocking_pop(tx, args, reply, Side::Back)
}

fn blocking_pop(tx: &mut Transaction<'_>, args: &Args<'_>, reply: &mut Reply, side: Side) -> CommandResult {
    let last = args.len() - 1;
    let timeout_ms = timeout_ms(args.at(last))?;
    for name in &args.from(0)[1..last] {
        let key = write(tx, name);
        if list_at(tx, key)?.is_some() {
            reply.array(2);
            reply.bulk(name);
            let (list, attempt) = edit(tx, key);
            list.pop(side, attempt, |element| reply.bulk(element));
            tx.notify(EventClass::LIST, pop_event(side), key);
            settle(tx, key);
            return Ok(());
        }
    }
    wait_or_answer(tx, Wait { keys: 1..last, timeout_ms, otherwise: Otherwise::NullArray }, reply);
    Ok(())
}

fn lmove(tx: &mut Transaction<'_>, args: &Args<'_>, reply: &mut Reply) -> CommandResult {
    let (from, to) = (parse_side(args, 3)?, parse_side(args, 4)?);
    if !move_element(tx, args, reply, from, to)? {
        reply.null();
    }
    Ok(())
}

fn rpoplpush(tx: &mut Transaction<'_>, args: &Args<'_>, reply: &mut Reply) -> CommandResult {
    if !move_element(tx, args, reply, Side::Back, Side::Front)? {
        reply.null();
    }
    Ok(())
}

fn blmove(tx: &mut Transaction<'_>, args: &Args<'_>, reply: &mut Reply) -> CommandResult {
    let (from, to) = (parse_side(args, 3)?, parse_side(args, 4)?);
    blocking_move(tx, args, reply, from, to)
}

fn brpoplpush(tx: &mut Transaction<'_>, args: &Args<'_>, reply: &mut Reply) -> CommandResult {
    blocking_move(tx, args, reply, Side::Back, Side::Front)
}

fn blocking_move(tx: &mut Transaction<'_>, args: &Args<'_>, reply: &mut Reply, from: Side, to: Side) -> CommandResult {
    let timeout_ms = timeout_ms(args.at(args.len() - 1))?;
    if !move_element(tx, args, reply, from, to)? {
        // Having waited in vain it answers another null than where it may not wait, as in Redis.
        match tx.may_wait() {
            true => tx.wait_for(Wait { keys: 1..2, timeout_ms, otherwise: Otherwise::NullArray }),
            false => reply.null(),
        }
    }
    Ok(())
}

/// Moves an element from one end of the first list to one end of the second and answers with it; whether there was one.
fn move_element(
    tx: &mut Transaction<'_>,
    args: &Args<'_>,
    reply: &mut Reply,
    from: Side,
    to: Side,
) -> Result<bool, CommandError> {
    tx.prefetch(args.from(1)[..2].iter().copied());
    let source = write(tx, args.at(1));
    let Some(list) = list_at(tx, source)? else { return Ok(false) };
    let first = match from {
        Side::Front => 0,
        Side::Back => list.len() - 1,
    };
    // Copied, because both the reply and the other list take it.
    let element = list.get(first).expect("no list in the keyspace is empty").to_vec();
    let destination = write(tx, args.at(2));
    let exists = list_at(tx, destination)?.is_some();
    let (list, attempt) = edit(tx, source);
    list.pop(from, attempt, |_| ());
    push_elements(tx, destination, exists, to, &[&element]);
    tx.notify(EventClass::LIST, push_event(to), destination);
    tx.notify(EventClass::LIST, pop_event(from), source);
    settle(tx, source);
    reply.bulk(&element);
    Ok(true)
}

fn llen(tx: &mut Transaction<'_>, args: &Args<'_>, reply: &mut Reply) -> CommandResult {
    let list = read_list(tx, args.at(1))?;
    reply.integer(list.map_or(0, List::len) as i64);
    Ok(())
}

/// The position of an index, which counts from the end where negative; `None` outside the list.
fn position(index: i64, length: usize) -> Option<usize> {
    let index = if index < 0 { index.checked_add(length as i64)? } else { index };
    usize::try_from(index).ok().filter(|position| *position < length)
}

/// The positions from `start` to `end`, both included and both counted from the end where negative.
fn range(start: i64, end: i64, length: usize) -> Range<usize> {
    let from_front = |index: i64| if index < 0 { index.saturating_add(length as i64) } else { index };
    let start = from_front(start).max(0) as usize;
    // An end before the first element becomes zero and leaves nothing.
    let end = from_front(end).saturating_add(1).clamp(0, length as i64) as usize;
    if start < end { start..end } else { 0..0 }
}

fn lindex(tx: &mut Transaction<'_>, args: &Args<'_>, reply: &mut Reply) -> CommandResult {
    let Some(list) = read_list(tx, args.at(1))? else {
        reply.null();
        return Ok(());
    };
    let found = position(args.integer(2)?, list.len()).and_then(|position| Some((position, list.get(position)?)));
    match found {
        Some((position, element)) => reply_element(list, position, element, reply),
        None => reply.null(),
    }
    Ok(())
}

fn lrange(tx: &mut Transaction<'_>, args: &Args<'_>, reply: &mut Reply) -> CommandResult {
    let (start, end) = (args.integer(2)?, args.integer(3)?);
    let Some(list) = read_list(tx, args.at(1))? else {
        reply.array(0);
        return Ok(());
    };
    let range = range(start, end, list.len());
    reply.array(range.len());
    let mut position = range.start;
    list.iter_from(range.start).take(range.len()).for_each(|element| {
        reply_element(list, position, element, reply);
        position += 1;
    });
    Ok(())
}

/// Answers with an element, by reference where it is as long as the strings that leave by reference.
#[inline]
fn reply_element(list: &List, position: usize, element: &[u8], reply: &mut Reply) {
    if element.len() <= ROPE_THRESHOLD_BYTES {
        return reply.bulk(element);
    }
    match list.shared(position) {
        Some(payload) => {
            reply.bulk_begin(payload.len());
            reply.bulk_shared(payload);
            reply.bulk_end();
        }
        None => reply.bulk(element),
    }
}

fn ltrim(tx: &mut Transaction<'_>, args: &Args<'_>, reply: &mut Reply) -> CommandResult {
    let (start, end) = (args.integer(2)?, args.integer(3)?);
    let key = write(tx, args.at(1));
    if let Some(list) = list_at(tx, key)? {
        let length = list.len();
        let kept = range(start, end, length);
        tx.notify(EventClass::LIST, "ltrim", key);
        if kept.is_empty() {
            delete_empty(tx, key);
        } else if kept.len() < length {
            let (list, attempt) = edit(tx, key);
            list.remove_range(kept.end..length, attempt);
            list.remove_range(0..kept.start, attempt);
            settle(tx, key);
        }
    }
    reply.ok();
    Ok(())
}

fn lset(tx: &mut Transaction<'_>, args: &Args<'_>, reply: &mut Reply) -> CommandResult {
    let key = write(tx, args.at(1));
    let length = list_at(tx, key)?.ok_or(CommandError::NO_SUCH_KEY)?.len();
    let position = position(args.integer(2)?, length).ok_or(CommandError::INDEX_OUT_OF_RANGE)?;
    let limit = listpack_limit(tx);
    let (list, attempt) = edit(tx, key);
    list.grow_encoding(1, args.at(3).len(), limit);
    list.set(position, args.at(3), attempt);
    list.shrink_encoding(limit);
    tx.notify(EventClass::LIST, "lset", key);
    reply.ok();
    Ok(())
}

fn linsert(tx: &mut Transaction<'_>, args: &Args<'_>, reply: &mut Reply) -> CommandResult {
    let after = match () {
        () if args.is(2, "BEFORE") => 0,
        () if args.is(2, "AFTER") => 1,
        () => return Err(CommandError::SYNTAX),
    };
    let key = write(tx, args.at(1));
    let Some(list) = list_at(tx, key)? else {
        reply.integer(0);
        return Ok(());
    };
    let pivot = args.at(3);
    let Some(position) = list.iter_from(0).position(|element| element == pivot) else {
        reply.integer(-1);
        return Ok(());
    };
    let limit = listpack_limit(tx);
    let (list, attempt) = edit(tx, key);
    list.grow_encoding(1, args.at(4).len(), limit);
    list.insert(position + after, args.at(4), attempt);
    reply.integer(list.len() as i64);
    tx.notify(EventClass::LIST, "linsert", key);
    Ok(())
}

fn lrem(tx: &mut Transaction<'_>, args: &Args<'_>, reply: &mut Reply) -> CommandResult {
    let count = signed_count(args, 2)?;
    let key = write(tx, args.at(1));
    let removed = args.at(3);
    // A list without the element is left as it is: no write.
    let occurs = list_at(tx, key)?.is_some_and(|list| list.iter_from(0).any(|element| element == removed));
    if !occurs {
        reply.integer(0);
        return Ok(());
    }
    let from = if count < 0 { Side::Back } else { Side::Front };
    let limit = if count == 0 { usize::MAX } else { count.unsigned_abs() as usize };
    let (list, attempt) = edit(tx, key);
    let removed = list.remove_matching(from, limit, |element| element == removed, attempt);
    tx.notify(EventClass::LIST, "lrem", key);
    settle(tx, key);
    reply.integer(removed as i64);
    Ok(())
}

/// The options of LPOS.
struct PositionOptions {
    /// Which match is the first that counts, from one; negative from the end.
    rank: i64,
    /// How many matches are wanted (zero for all); without it the answer is a single number.
    count: Option<usize>,
    /// How many elements are compared at most; zero for all.
    comparisons_max: usize,
}

impl PositionOptions {
    fn parse(args: &Args<'_>) -> Result<Self, CommandError> {
        let mut options = Self { rank: 1, count: None, comparisons_max: 0 };
        for index in (3..args.len()).step_by(2) {
            if index + 1 == args.len() {
                return Err(CommandError::SYNTAX);
            }
            if args.is(index, "RANK") {
                options.rank = signed_count(args, index + 1)?;
                if options.rank == 0 {
                    return Err(CommandError::err(
                        "RANK can't be zero: use 1 to start from the first match, 2 from the second ... or use negative to \
                         start from the end of the list",
                    ));
                }
            } else if args.is(index, "COUNT") {
                options.count = Some(count_from(args, index + 1, 0, "COUNT can't be negative")?);
            } else if args.is(index, "MAXLEN") {
                options.comparisons_max = count_from(args, index + 1, 0, "MAXLEN can't be negative")?;
            } else {
                return Err(CommandError::SYNTAX);
            }
        }
        Ok(options)
    }
}

fn lpos(tx: &mut Transaction<'_>, args: &Args<'_>, reply: &mut Reply) -> CommandResult {
    let options = PositionOptions::parse(args)?;
    let wanted = args.at(2);
    let mark = reply.mark();
    let mut found = 0;
    if let Some(list) = read_list(tx, args.at(1))? {
        let unlimited = |number: usize| if number == 0 { usize::MAX } else { number };
        let compared = unlimited(options.comparisons_max);
        let skipped = options.rank.unsigned_abs() as usize - 1;
        let most = unlimited(options.count.unwrap_or(1));
        let last = list.len() - 1;
        let from = if options.rank < 0 { Side::Back } else { Side::Front };
        let first = if options.rank < 0 { last } else { 0 };
        let elements = list.iter(first, from.opposite()).take(compared).enumerate();
        let matches = elements.filter(|(_, element)| *element == wanted).map(|(distance, _)| distance);
        for distance in matches.skip(skipped).take(most) {
            found += 1;
            reply.integer(first.abs_diff(distance) as i64);
        }
    }
    match options.count {
        Some(_) => reply.array_at(mark, found),
        None if found == 0 => reply.null(),
        None => {}
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::ROWS;
    use crate::command::family::testing::{Client, check};

    #[test]
    fn replies_are_those_of_redis() {
        check(ROWS, include_str!("cases/list.txt"));
    }

    #[test]
    fn large_elements_are_answered_whole() {
        let mut client = Client::new();
        let (large, larger) = ("x".repeat(20_000), "y".repeat(40_000));
        client.run(&format!("RPUSH l a {large} b {larger}"));
        let (large, larger) = (format!("$20000|{large}"), format!("$40000|{larger}"));
        assert_eq!(client.run("LRANGE l 0 -1"), format!("*4|$1|a|{large}|$1|b|{larger}"));
        assert_eq!(client.run("LRANGE l 1 2"), format!("*2|{large}|$1|b"));
        assert_eq!(client.run("LINDEX l -1"), larger);
        assert_eq!(client.run("RPOP l"), larger);
        assert_eq!(client.run("LINDEX l 1"), large);
    }

    #[test]
    fn encodings_follow_the_size_as_in_redis_7_2() {
        let mut client = Client::new();
        let element = "x".repeat(1000);
        client.run("RPUSH l a b c");
        assert_eq!(client.run("OBJECT ENCODING l"), "$8|listpack");
        (0..8).for_each(|_| drop(client.run(&format!("RPUSH l {element}"))));
        assert_eq!(client.run("OBJECT ENCODING l"), "$8|listpack");
        client.run(&format!("RPUSH l {element}"));
        assert_eq!(client.run("OBJECT ENCODING l"), "$9|quicklist");
        client.run("COPY l copy");
        assert_eq!(client.run("OBJECT ENCODING copy"), "$9|quicklist");
        // It becomes a listpack again at half the limit.
        client.run("LTRIM l 0 7");
        assert_eq!(client.run("OBJECT ENCODING l"), "$9|quicklist");
        client.run("LTRIM l 0 5");
        assert_eq!(client.run("OBJECT ENCODING l"), "$8|listpack");
        client.run(&format!("LSET l 0 {}", "x".repeat(9000)));
        assert_eq!(client.run("OBJECT ENCODING l"), "$9|quicklist");
        client.run("LSET l 0 a");
        assert_eq!(client.run("OBJECT ENCODING l"), "$8|listpack");
        client.limits.list_max_listpack_size = 3;
        client.run("RPUSH m a b c");
        assert_eq!(client.run("OBJECT ENCODING m"), "$8|listpack");
        client.run("LINSERT m BEFORE a x");
        assert_eq!(client.run("OBJECT ENCODING m"), "$9|quicklist");
        client.run("LREM m 0 a");
        client.run("LREM m 0 b");
        assert_eq!(client.run("OBJECT ENCODING m"), "$9|quicklist");
        client.run("LPOP m");
        assert_eq!(client.run("OBJECT ENCODING m"), "$8|listpack");
    }
}
