//! The list commands.

use crate::arguments::Words;
use crate::{Answer, Command, Context, SYNTAX, Value, wrong_arity};

pub(crate) const COMMANDS: &[(&str, i32, Command)] = &[
    ("lindex", 3, lindex),
    ("linsert", 5, linsert),
    ("llen", 2, llen),
    ("lmove", 5, lmove),
    ("lmpop", -4, lmpop),
    ("lpop", -2, pop),
    ("lpos", -3, lpos),
    ("lpush", -3, push),
    ("lpushx", -3, push),
    ("lrange", 4, lrange),
    ("lrem", 4, lrem),
    ("lset", 4, lset),
    ("ltrim", 4, ltrim),
    ("rpop", -2, pop),
    ("rpoplpush", 3, |context, words| transfer(context, words, End::Right, End::Left)),
    ("rpush", -3, push),
    ("rpushx", -3, push),
];

/// An end of a list.
#[derive(Clone, Copy, PartialEq, Eq)]
enum End {
    Left,
    Right,
}

impl End {
    fn of_word(words: Words<'_>, index: usize) -> Result<Self, String> {
        match words.keyword(index).as_str() {
            "LEFT" => Ok(Self::Left),
            "RIGHT" => Ok(Self::Right),
            _ => Err(SYNTAX.into()),
        }
    }

    /// The end that the first letter of a command's name gives.
    fn of_name(name: &str) -> Self {
        if name.starts_with('l') { Self::Left } else { Self::Right }
    }

    fn push(self, list: &mut Vec<Vec<u8>>, element: Vec<u8>) {
        match self {
            Self::Left => list.insert(0, element),
            Self::Right => list.push(element),
        }
    }

    /// Pops from a list that is not empty.
    fn pop(self, list: &mut Vec<Vec<u8>>) -> Vec<u8> {
        match self {
            Self::Left => list.remove(0),
            Self::Right => list.pop().expect("lists are never empty"),
        }
    }
}

/// The place of an index that may count from the end.
fn place(index: i64, length: usize) -> Option<usize> {
    let length = length as i64;
    let place = if index < 0 { index.checked_add(length)? } else { index };
    (0..length).contains(&place).then_some(place as usize)
}

/// The range from `start` to `end`, both inside it; empty where they cross.
fn range(start: i64, end: i64, length: usize) -> std::ops::Range<usize> {
    let length = length as i64;
    let from_end = |index: i64| if index < 0 { index.saturating_add(length) } else { index };
    let (start, end) = (from_end(start).max(0), from_end(end).min(length - 1));
    if start > end { 0..0 } else { start as usize..end as usize + 1 }
}

fn llen(context: &mut Context<'_>, words: Words<'_>) -> Answer {
    Ok(Value::Integer(context.list(words.at(1))?.map_or(0, |list| list.len() as i64)))
}

/// LPUSH, RPUSH, LPUSHX and RPUSHX.
fn push(context: &mut Context<'_>, words: Words<'_>) -> Answer {
    if words.name.ends_with('x') && context.list(words.at(1))?.is_none() {
        return Ok(Value::Integer(0));
    }
    let list = context.list_or_new(words.at(1))?;
    for element in words.from(2) {
        End::of_name(words.name).push(list, element.clone());
    }
    Ok(Value::Integer(list.len() as i64))
}

/// LPOP and RPOP.
fn pop(context: &mut Context<'_>, words: Words<'_>) -> Answer {
    if words.len() > 3 {
        return Err(wrong_arity(words.name));
    }
    let count = match words.len() {
        2 => None,
        _ => Some(words.integer_from(2, 0, "ERR value is out of range, must be positive")?),
    };
    let Some(list) = context.list(words.at(1))? else {
        return Ok(if count.is_some() { Value::NullArray } else { Value::Null });
    };
    let end = End::of_name(words.name);
    let mut popped = pop_many(list, end, count.unwrap_or(1));
    context.drop_if_empty(words.at(1));
    Ok(if count.is_some() { Value::bulks(popped) } else { Value::bulk_or_null(popped.pop()) })
}

fn pop_many(list: &mut Vec<Vec<u8>>, end: End, count: i64) -> Vec<Vec<u8>> {
    let count = (list.len() as i64).min(count);
    (0..count).map(|_| end.pop(list)).collect()
}

fn lmpop(context: &mut Context<'_>, words: Words<'_>) -> Answer {
    let keys = words.integer_from(1, 1, "ERR numkeys should be greater than 0")?;
    let at = usize::try_from(keys).unwrap_or(usize::MAX).saturating_add(2);
    if at >= words.len() {
        return Err(SYNTAX.into());
    }
    let end = End::of_word(words, at)?;
    let mut count = None;
    let mut index = at + 1;
    while index < words.len() {
        if words.keyword(index) != "COUNT" || count.is_some() || index + 1 == words.len() {
            return Err(SYNTAX.into());
        }
        count = Some(words.integer_from(index + 1, 1, "ERR count should be greater than 0")?);
        index += 2;
    }
    for key in &words.words[2..at] {
        if let Some(list) = context.list(key)? {
            let popped = pop_many(list, end, count.unwrap_or(1));
            context.drop_if_empty(key);
            return Ok(Value::Array(vec![Value::Bulk(key.clone()), Value::bulks(popped)]));
        }
    }
    Ok(Value::NullArray)
}

fn lindex(context: &mut Context<'_>, words: Words<'_>) -> Answer {
    let Some(list) = context.list(words.at(1))? else { return Ok(Value::Null) };
    let index = words.integer(2)?;
    Ok(Value::bulk_or_null(place(index, list.len()).map(|place| list[place].clone())))
}

fn lset(context: &mut Context<'_>, words: Words<'_>) -> Answer {
    let list = context.list(words.at(1))?.ok_or("ERR no such key")?;
    let index = words.integer(2)?;
    let place = place(index, list.len()).ok_or("ERR index out of range")?;
    list[place] = words.at(3).to_vec();
    Ok(Value::OK)
}

fn linsert(context: &mut Context<'_>, words: Words<'_>) -> Answer {
    let after = match words.keyword(2).as_str() {
        "BEFORE" => 0,
        "AFTER" => 1,
        _ => return Err(SYNTAX.into()),
    };
    let Some(list) = context.list(words.at(1))? else { return Ok(Value::Integer(0)) };
    let Some(pivot) = list.iter().position(|element| element == words.at(3)) else { return Ok(Value::Integer(-1)) };
    list.insert(pivot + after, words.at(4).to_vec());
    Ok(Value::Integer(list.len() as i64))
}

fn lrange(context: &mut Context<'_>, words: Words<'_>) -> Answer {
    let (start, end) = (words.integer(2)?, words.integer(3)?);
    let list = context.list(words.at(1))?.cloned().unwrap_or_default();
    Ok(Value::bulks(list[range(start, end, list.len())].to_vec()))
}

fn ltrim(context: &mut Context<'_>, words: Words<'_>) -> Answer {
    let (start, end) = (words.integer(2)?, words.integer(3)?);
    if let Some(list) = context.list(words.at(1))? {
        *list = list[range(start, end, list.len())].to_vec();
        context.drop_if_empty(words.at(1));
    }
    Ok(Value::OK)
}

fn lrem(context: &mut Context<'_>, words: Words<'_>) -> Answer {
    let count = words.integer_with_opposite(2)?;
    let Some(list) = context.list(words.at(1))? else { return Ok(Value::Integer(0)) };
    let limit = if count == 0 { u64::MAX } else { count.unsigned_abs() };
    let mut removed = 0;
    let mut keeps = |element: &Vec<u8>| {
        let remove = removed < limit && element == words.at(3);
        removed += u64::from(remove);
        !remove
    };
    if count < 0 {
        let mut kept: Vec<_> = list.drain(..).rev().filter(&mut keeps).collect();
        kept.reverse();
        *list = kept;
    } else {
        list.retain(keeps);
    }
    context.drop_if_empty(words.at(1));
    Ok(Value::Integer(removed as i64))
}

fn lmove(context: &mut Context<'_>, words: Words<'_>) -> Answer {
    let (from, to) = (End::of_word(words, 3)?, End::of_word(words, 4)?);
    transfer(context, words, from, to)
}

/// Moves one element from the list at the first key to the one at the second.
fn transfer(context: &mut Context<'_>, words: Words<'_>, from: End, to: End) -> Answer {
    if context.list(words.at(1))?.is_none() {
        return Ok(Value::Null);
    }
    context.list(words.at(2))?;
    let element = from.pop(context.list(words.at(1))?.expect("it was just found"));
    // The same key may be both; it must not vanish in between, for it keeps its deadline.
    to.push(context.list_or_new(words.at(2))?, element.clone());
    context.drop_if_empty(words.at(1));
    Ok(Value::Bulk(element))
}

fn lpos(context: &mut Context<'_>, words: Words<'_>) -> Answer {
    let (mut rank, mut count, mut length_max) = (1, None, 0);
    let mut index = 3;
    while index < words.len() {
        match words.keyword(index).as_str() {
            "RANK" if index + 1 < words.len() => rank = words.integer_with_opposite(index + 1)?,
            "COUNT" if index + 1 < words.len() => {
                count = Some(words.integer_from(index + 1, 0, "ERR COUNT can't be negative")?);
            }
            "MAXLEN" if index + 1 < words.len() => {
                length_max = words.integer_from(index + 1, 0, "ERR MAXLEN can't be negative")?;
            }
            _ => return Err(SYNTAX.into()),
        }
        if rank == 0 {
            return Err("ERR RANK can't be zero: use 1 to start from the first match, 2 from the second ... \
                        or use negative to start from the end of the list"
                .into());
        }
        index += 2;
    }
    let list = context.list(words.at(1))?.cloned().unwrap_or_default();
    let mut places: Vec<usize> = (0..list.len()).collect();
    if rank < 0 {
        places.reverse();
    }
    if length_max > 0 {
        places.truncate(length_max as usize);
    }
    let skipped = usize::try_from(rank.unsigned_abs() - 1).unwrap_or(usize::MAX);
    let mut matches = places.into_iter().filter(|place| list[*place] == words.at(2)).skip(skipped);
    let integer = |place: usize| Value::Integer(place as i64);
    Ok(match count {
        None => matches.next().map_or(Value::Null, integer),
        Some(0) => Value::Array(matches.map(integer).collect()),
        Some(count) => Value::Array(matches.take(count as usize).map(integer).collect()),
    })
}
