//! What transactions over several keys say of each other: which came before which, and why.
//!
//! Lists that only grow and whose elements are unique tell the order of their writers (Kingsbury, Alvaro, *Elle*, VLDB 2020): each read is a beginning of
//! the longest, so *write-write*, *write-read* and *read-write* dependencies can be read off. Registers tell only who wrote what was read; further
//! dependencies follow where the order of a writer and a reader is already known (as in Biswas, Enea, OOPSLA 2019). With the order of real time, and of each
//! connection, all dependencies of a strictly serializable history go one way. `cycles` looks for those that do not.

use crate::bits::Bits;
use crate::operation::{Part, Record, Request};
use crate::peer::Value;
use std::collections::{BTreeMap, HashMap};
use std::fmt;

/// A part with what it saw.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Done {
    /// Key, value, and the length answered, if that is known.
    Appended(String, u64, Option<i64>),
    /// Key and elements.
    Listed(String, Vec<u64>),
    /// Key and value.
    Wrote(String, u64),
    /// Key and value; `None` where there was none.
    Saw(String, Option<u64>),
}

/// How a transaction ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// It was answered.
    Committed,
    /// It was answered that nothing was done.
    Aborted,
    /// Its client did not wait: it may have happened.
    Unknown,
}

/// A transaction that was asked for.
#[derive(Clone, Debug)]
pub struct Transaction {
    /// What it did, in its own order.
    pub parts: Vec<Done>,
    /// How it ended.
    pub end: End,
    /// When it was called and answered.
    pub called: u64,
    /// As in [`Record`].
    pub returned: Option<u64>,
    /// Client and connection: one connection's transactions come in the order in which they were asked for.
    pub connection: (usize, usize),
    /// For people.
    pub note: String,
}

impl Transaction {
    /// The transaction of a record, if it is one.
    pub fn of(record: &Record) -> Option<Self> {
        let Request::Transaction(parts, unit) = &record.request else { return None };
        let end = match &record.reply {
            None => End::Unknown,
            Some(Value::NullArray | Value::Error(_)) => End::Aborted,
            Some(_) => End::Committed,
        };
        let reply = record.reply.as_ref().filter(|_| end == End::Committed);
        let done = parts.iter().enumerate().filter_map(|(at, part)| {
            let answer = reply.map(|reply| match (unit, part) {
                (crate::operation::Unit::Command, Part::List(_) | Part::Append(..) | Part::Write(..)) => reply.clone(),
                _ => reply.elements().get(at).cloned().unwrap_or(Value::Missing),
            });
            done(part, answer, (parts.len() - 1 - at) as i64 * i64::from(*unit == crate::operation::Unit::Command))
        });
        Some(Self {
            parts: done.collect(),
            end,
            called: record.called,
            returned: record.returned,
            connection: (record.client, record.connection),
            note: record.shown(),
        })
    }
}

/// What a part did; nothing for a read without an answer. `after` elements were pushed after this one by the same command.
fn done(part: &Part, answer: Option<Value>, after: i64) -> Option<Done> {
    let number = |value: &Value| match value {
        Value::Bulk(text) => std::str::from_utf8(text).ok().and_then(|text| text.parse().ok()),
        _ => None,
    };
    Some(match (part, answer) {
        (Part::Append(key, value), Some(Value::Integer(length))) => {
            Done::Appended(key.clone(), *value, Some(length - after))
        }
        (Part::Append(key, value), _) => Done::Appended(key.clone(), *value, None),
        (Part::Write(key, value), _) => Done::Wrote(key.clone(), *value),
        (_, None) => return None,
        (Part::List(key), Some(answer)) => {
            Done::Listed(key.clone(), answer.elements().iter().map(|one| number(one).unwrap_or(u64::MAX)).collect())
        }
        (Part::Read(key), Some(Value::NullBulk)) => Done::Saw(key.clone(), None),
        (Part::Read(key), Some(answer)) => Done::Saw(key.clone(), Some(number(&answer).unwrap_or(u64::MAX))),
    })
}

/// Why one transaction comes before another.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Because {
    /// Its write was overwritten by the other's.
    WriteWrite(String),
    /// The other read what it wrote.
    WriteRead(String),
    /// It did not read what the other wrote.
    ReadWrite(String),
    /// One connection asked for both in this order.
    Connection,
    /// It was answered before the other was called.
    Time,
}

impl Because {
    /// Whether this is the order of real time or of a connection.
    pub fn is_outer(&self) -> bool {
        matches!(self, Self::Connection | Self::Time)
    }
}

impl fmt::Display for Because {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::WriteWrite(what) => write!(f, "ww: {what}"),
            Self::WriteRead(what) => write!(f, "wr: {what}"),
            Self::ReadWrite(what) => write!(f, "rw: {what}"),
            Self::Connection => write!(f, "one connection asked for them in this order"),
            Self::Time => write!(f, "the first was answered before the second was called"),
        }
    }
}

/// What is wrong with single transactions or values, before any cycle.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Oddity {
    /// A transaction does not see its own writes, or two of its reads differ.
    Internal(usize, String),
    /// G1a: a read of what an aborted transaction wrote.
    AbortedRead(usize, String),
    /// G1b: a read of what its writer overwrote in the same transaction.
    IntermediateRead(usize, String),
    /// A read of what nobody wrote, or twice of what was written once.
    Phantom(usize, String),
    /// Two reads of a list of which neither is the other's beginning.
    Incompatible(usize, String),
    /// An append answered a length that is not its element's place.
    WrongLength(usize, String),
}

/// The dependencies of a history: nodes are transactions, by their place.
pub struct Dependencies {
    /// By the earlier transaction: the later one, and why. Of the order of time only what does not follow from the rest.
    pub edges: Vec<BTreeMap<usize, Because>>,
    /// Committed transactions, and unanswered ones of which something was seen.
    pub happened: Vec<bool>,
}

impl Dependencies {
    fn add(&mut self, from: usize, to: usize, because: Because) {
        // Of several reasons the one nearest to the data is kept.
        if from != to && self.happened[from] && self.happened[to] {
            let kept = self.edges[from].entry(to).or_insert_with(|| because.clone());
            if because < *kept {
                *kept = because;
            }
        }
    }
}

/// Who wrote a value of a key.
#[derive(Clone, Copy, Debug)]
struct Writer {
    transaction: usize,
    /// Whether the same transaction wrote the key again afterwards.
    is_intermediate: bool,
}

/// Finds the dependencies of a history, or what is wrong already.
pub fn dependencies(history: &[Transaction]) -> Result<Dependencies, Oddity> {
    history.iter().enumerate().try_for_each(|(at, one)| agrees_with_itself(at, one))?;
    let writers = writers(history);
    let mut happened: Vec<bool> = history.iter().map(|one| one.end == End::Committed).collect();
    for (reader, key, value) in reads(history) {
        let Some(writer) = writers.get(&(key, value)) else {
            return Err(Oddity::Phantom(reader, format!("it saw {value} at {key}, which nobody wrote")));
        };
        if history[writer.transaction].end == End::Aborted {
            let what =
                format!("it saw {value} at {key}, of an aborted transaction: {}", history[writer.transaction].note);
            return Err(Oddity::AbortedRead(reader, what));
        }
        // Seen by somebody else, so it happened.
        happened[writer.transaction] |= writer.transaction != reader;
    }
    let mut found = Dependencies { edges: vec![BTreeMap::new(); history.len()], happened };
    lists(history, &writers, &mut found)?;
    registers_directly(history, &writers, &mut found)?;
    outer_order(history, &mut found);
    registers_by_order(history, &writers, &mut found);
    Ok(found)
}

type Writers<'h> = HashMap<(&'h str, u64), Writer>;

fn writers(history: &[Transaction]) -> Writers<'_> {
    let mut writers = Writers::new();
    for (transaction, one) in history.iter().enumerate() {
        let mut last: HashMap<&str, u64> = HashMap::new();
        for part in &one.parts {
            if let Done::Appended(key, value, _) | Done::Wrote(key, value) = part {
                if let Some(before) =
                    last.insert(key, *value).and_then(|before| writers.get_mut(&(key.as_str(), before)))
                {
                    before.is_intermediate = true;
                }
                let earlier = writers.insert((key, *value), Writer { transaction, is_intermediate: false });
                assert!(earlier.is_none(), "the test wrote {value} to {key} twice");
            }
        }
    }
    writers
}

/// Every value that was seen: by whom, at which key.
fn reads(history: &[Transaction]) -> impl Iterator<Item = (usize, &str, u64)> {
    history.iter().enumerate().flat_map(|(reader, one)| {
        one.parts.iter().flat_map(move |part| {
            let (key, values) = match part {
                Done::Listed(key, values) => (key, values.as_slice()),
                Done::Saw(key, value) => (key, value.as_slice()),
                _ => return Vec::new(),
            };
            values.iter().map(|value| (reader, key.as_str(), *value)).collect()
        })
    })
}

/// A transaction sees its own writes, and nothing changes while it looks.
fn agrees_with_itself(at: usize, one: &Transaction) -> Result<(), Oddity> {
    // What it knows of a key: the whole value, or the elements at a list's end.
    let mut whole: HashMap<&str, Vec<u64>> = HashMap::new();
    let mut own_end: HashMap<&str, Vec<u64>> = HashMap::new();
    for part in &one.parts {
        match part {
            Done::Appended(key, value, _) => {
                if let Some(known) = whole.get_mut(key.as_str()) {
                    known.push(*value);
                }
                own_end.entry(key).or_default().push(*value);
            }
            Done::Wrote(key, value) => {
                whole.insert(key, vec![*value]);
            }
            Done::Listed(key, seen) => {
                let end = own_end.get(key.as_str()).cloned().unwrap_or_default();
                if whole.get(key.as_str()).is_some_and(|known| known != seen) || !seen.ends_with(&end) {
                    return Err(Oddity::Internal(at, format!("its list at {key} is not what it should see: {seen:?}")));
                }
                whole.insert(key, seen.clone());
            }
            Done::Saw(key, seen) => {
                let seen: Vec<u64> = seen.iter().copied().collect();
                if whole.get(key.as_str()).is_some_and(|known| *known != seen) {
                    return Err(Oddity::Internal(
                        at,
                        format!("its value at {key} is not what it should see: {seen:?}"),
                    ));
                }
                whole.insert(key, seen);
            }
        }
    }
    Ok(())
}

/// Dependencies over lists: the longest read tells the order of all elements that were seen.
fn lists(history: &[Transaction], writers: &Writers<'_>, found: &mut Dependencies) -> Result<(), Oddity> {
    let mut longest: HashMap<&str, &[u64]> = HashMap::new();
    let lists = || {
        history.iter().enumerate().flat_map(|(reader, one)| {
            one.parts.iter().filter_map(move |part| match part {
                Done::Listed(key, seen) => Some((reader, key.as_str(), seen.as_slice())),
                _ => None,
            })
        })
    };
    for (_, key, seen) in lists() {
        let best = longest.entry(key).or_insert(seen);
        if seen.len() > best.len() {
            *best = seen;
        }
    }
    let mut unseen: HashMap<&str, Vec<u64>> = HashMap::new();
    for (key, value) in writers.keys() {
        if longest.get(key).is_some_and(|order| !order.contains(value)) {
            unseen.entry(key).or_default().push(*value);
        }
    }
    for (reader, key, seen) in lists() {
        let order = longest[key];
        if !order.starts_with(seen) {
            return Err(Oddity::Incompatible(reader, format!("{key} was {seen:?} here and {order:?} there")));
        }
        let mut elements = seen.to_vec();
        elements.sort_unstable();
        if elements.windows(2).any(|pair| pair[0] == pair[1]) {
            return Err(Oddity::Phantom(reader, format!("{key} holds an element twice: {seen:?}")));
        }
        let last = seen.last().map(|value| (value, writers[&(key, *value)]));
        if let Some((value, writer)) = last {
            if writer.is_intermediate && writer.transaction != reader {
                let what = format!("{key} ends with {value}, after which its writer went on: {seen:?}");
                return Err(Oddity::IntermediateRead(reader, what));
            }
            found.add(writer.transaction, reader, Because::WriteRead(format!("its {value} at {key} was read")));
        }
        // What was appended next was not seen; nor was anything that is in no read at all.
        let unseen = unseen.get(key).map_or(&[][..], Vec::as_slice);
        for value in order.get(seen.len()).into_iter().chain(unseen) {
            let writer = writers[&(key, *value)].transaction;
            found.add(reader, writer, Because::ReadWrite(format!("it did not see {value} at {key}")));
        }
    }
    for (key, order) in &longest {
        for pair in order.windows(2) {
            let [before, after] = [pair[0], pair[1]].map(|value| writers[&(*key, value)].transaction);
            found.add(before, after, Because::WriteWrite(format!("{} stands before {} at {key}", pair[0], pair[1])));
        }
    }
    lengths(history, &longest)
}

/// The length that an append answered is its element's place.
fn lengths(history: &[Transaction], longest: &HashMap<&str, &[u64]>) -> Result<(), Oddity> {
    for (at, one) in history.iter().enumerate() {
        for part in &one.parts {
            let Done::Appended(key, value, Some(length)) = part else { continue };
            let place = longest.get(key.as_str()).and_then(|order| order.iter().position(|element| element == value));
            if place.is_some_and(|place| place as i64 + 1 != *length) {
                return Err(Oddity::WrongLength(at, format!("{value} at {key} was answered with {length}: {place:?}")));
            }
        }
    }
    Ok(())
}

/// Each register's reads: by whom, and whose value.
fn register_reads<'h>(history: &'h [Transaction], writers: &Writers<'_>) -> Vec<(usize, &'h str, Option<Writer>)> {
    let seen = history.iter().enumerate().flat_map(|(reader, one)| {
        one.parts.iter().filter_map(move |part| match part {
            Done::Saw(key, value) => Some((reader, key.as_str(), *value)),
            _ => None,
        })
    });
    seen.map(|(reader, key, value)| (reader, key, value.map(|value| writers[&(key, value)]))).collect()
}

/// Dependencies over registers that need no order: who read whose value, and who read that there was none.
fn registers_directly(history: &[Transaction], writers: &Writers<'_>, found: &mut Dependencies) -> Result<(), Oddity> {
    for (reader, key, writer) in register_reads(history, writers) {
        match writer {
            Some(writer) => {
                if writer.is_intermediate && writer.transaction != reader {
                    return Err(Oddity::IntermediateRead(reader, format!("{key} was overwritten by its own writer")));
                }
                found.add(writer.transaction, reader, Because::WriteRead(format!("its value at {key} was read")));
            }
            None => {
                for ((of, value), other) in writers {
                    if *of == key {
                        let because = Because::ReadWrite(format!("it did not see {value} at {key}"));
                        found.add(reader, other.transaction, because);
                    }
                }
            }
        }
    }
    Ok(())
}

/// The order of real time and of connections.
fn outer_order(history: &[Transaction], found: &mut Dependencies) {
    let mut last: HashMap<(usize, usize), usize> = HashMap::new();
    for (at, one) in history.iter().enumerate() {
        if !found.happened[at] {
            continue;
        }
        if let Some(before) = last.insert(one.connection, at) {
            found.add(before, at, Because::Connection);
        }
    }
    // Whoever was answered before another was called; what follows through a third is left out.
    let mut by_call: Vec<usize> = (0..history.len()).filter(|at| found.happened[*at]).collect();
    by_call.sort_unstable_by_key(|at| history[*at].called);
    for before in by_call.clone() {
        let Some(returned) = history[before].returned else { continue };
        let first = by_call.partition_point(|at| history[*at].called <= returned);
        let mut soonest = u64::MAX;
        for later in &by_call[first..] {
            if history[*later].called > soonest {
                break;
            }
            soonest = soonest.min(history[*later].returned.unwrap_or(u64::MAX));
            found.add(before, *later, Because::Time);
        }
    }
}

/// Dependencies over registers that follow from what is known of the order: where a reader saw one writer's value, any other writer of that key comes before
/// that writer or after the reader. Goes on until nothing new follows.
fn registers_by_order(history: &[Transaction], writers: &Writers<'_>, found: &mut Dependencies) {
    let reads = register_reads(history, writers);
    let mut of_key: HashMap<&str, Vec<usize>> = HashMap::new();
    for ((key, _), writer) in writers {
        of_key.entry(key).or_default().push(writer.transaction);
    }
    for others in of_key.values_mut() {
        others.sort_unstable();
        others.dedup();
    }
    loop {
        let before = reachable(found);
        let mut new = Vec::new();
        for (reader, key, writer) in &reads {
            let Some(Writer { transaction: writer, .. }) = writer else { continue };
            for other in &of_key[key] {
                if other == writer || other == reader || writer == reader {
                    continue;
                }
                if before[*other].has(*reader) && !before[*other].has(*writer) {
                    new.push((
                        *other,
                        *writer,
                        Because::WriteWrite(format!("its value at {key} was overwritten before a read")),
                    ));
                }
                if before[*writer].has(*other) && !before[*reader].has(*other) {
                    new.push((
                        *reader,
                        *other,
                        Because::ReadWrite(format!("it saw {key} as it was before the second")),
                    ));
                }
            }
        }
        if new.is_empty() {
            return;
        }
        for (from, to, because) in new {
            found.add(from, to, because);
        }
        // A cycle is enough to show; and in a cycle everything follows.
        if reachable(found).iter().enumerate().any(|(at, later)| later.has(at)) {
            return;
        }
    }
}

/// By transaction: all that come after it.
fn reachable(found: &Dependencies) -> Vec<Bits> {
    let count = found.edges.len();
    let mut later = vec![Bits::new(count); count];
    // Repeated until nothing changes, from the last called to the first: in a sound history nearly one pass.
    let mut changed = true;
    while changed {
        changed = false;
        for at in (0..count).rev() {
            let mut all = later[at].clone();
            for to in found.edges[at].keys() {
                all.add(*to);
                all.add_all(&later[*to]);
            }
            if all != later[at] {
                later[at] = all;
                changed = true;
            }
        }
    }
    later
}
