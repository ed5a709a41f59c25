//! The string commands.

use crate::arguments::{Words, integer};
use crate::{Answer, Command, Content, Context, NOT_AN_INTEGER, SYNTAX, Value, wrong_arity};

pub(crate) const COMMANDS: &[(&str, i32, Command)] = &[
    ("append", 3, append),
    ("decr", 2, |context, words| add(context, words, -1)),
    ("decrby", 3, decrby),
    ("get", 2, get),
    ("getdel", 2, getdel),
    ("getex", -2, getex),
    ("getrange", 4, getrange),
    ("getset", 3, getset),
    ("incr", 2, |context, words| add(context, words, 1)),
    ("incrby", 3, |context, words| words.integer(2).and_then(|number| add(context, words, number))),
    ("mget", -2, mget),
    ("mset", -3, mset),
    ("msetnx", -3, msetnx),
    ("psetex", 4, setex),
    ("set", -3, set),
    ("setex", 4, setex),
    ("setnx", 3, setnx),
    ("setrange", 4, setrange),
    ("strlen", 2, strlen),
    ("substr", 4, getrange),
];

/// The longest string (`proto-max-bulk-len` as it is set by default).
const STRING_BYTES_MAX: i64 = 512 * 1024 * 1024;

fn get(context: &mut Context<'_>, words: Words<'_>) -> Answer {
    Ok(Value::bulk_or_null(context.string(words.at(1))?.cloned()))
}

fn getdel(context: &mut Context<'_>, words: Words<'_>) -> Answer {
    let value = get(context, words)?;
    context.keys().remove(words.at(1));
    Ok(value)
}

fn getset(context: &mut Context<'_>, words: Words<'_>) -> Answer {
    let value = get(context, words)?;
    context.set(words.at(1), words.at(2), None);
    Ok(value)
}

fn strlen(context: &mut Context<'_>, words: Words<'_>) -> Answer {
    Ok(Value::Integer(context.string(words.at(1))?.map_or(0, |text| text.len() as i64)))
}

fn append(context: &mut Context<'_>, words: Words<'_>) -> Answer {
    match context.string(words.at(1))? {
        Some(text) => text.extend_from_slice(words.at(2)),
        None => context.set(words.at(1), words.at(2), None),
    }
    strlen(context, words)
}

fn getrange(context: &mut Context<'_>, words: Words<'_>) -> Answer {
    let (start, end) = (words.integer(2)?, words.integer(3)?);
    let text = context.string(words.at(1))?.cloned().unwrap_or_default();
    let length = text.len() as i64;
    if start < 0 && end < 0 && start > end {
        return Ok(Value::Bulk(Vec::new()));
    }
    let from_end = |index: i64| if index < 0 { index.saturating_add(length).max(0) } else { index };
    let (start, end) = (from_end(start), from_end(end).min(length - 1));
    let part = if start > end { Vec::new() } else { text[start as usize..=end as usize].to_vec() };
    Ok(Value::Bulk(part))
}

fn setrange(context: &mut Context<'_>, words: Words<'_>) -> Answer {
    let (offset, part) = (words.integer(2)?, words.at(3));
    if offset < 0 {
        return Err("ERR offset is out of range".into());
    }
    let length = context.string(words.at(1))?.map_or(0, |text| text.len());
    if part.is_empty() {
        return Ok(Value::Integer(length as i64));
    }
    if offset.saturating_add(part.len() as i64) > STRING_BYTES_MAX {
        return Err("ERR string exceeds maximum allowed size (proto-max-bulk-len)".into());
    }
    if length == 0 && context.get(words.at(1)).is_none() {
        context.set(words.at(1), b"", None);
    }
    let text = context.string(words.at(1))?.expect("it was just made");
    let end = offset as usize + part.len();
    text.resize(length.max(end), 0);
    text[offset as usize..end].copy_from_slice(part);
    Ok(Value::Integer(text.len() as i64))
}

fn decrby(context: &mut Context<'_>, words: Words<'_>) -> Answer {
    let number = words.integer(2)?;
    let negated = number.checked_neg().ok_or("ERR decrement would overflow")?;
    add(context, words, negated)
}

fn add(context: &mut Context<'_>, words: Words<'_>, number: i64) -> Answer {
    let key = words.at(1);
    let before = match context.string(key)? {
        None => 0,
        Some(text) => integer(text).ok_or(NOT_AN_INTEGER)?,
    };
    let after = before.checked_add(number).ok_or("ERR increment or decrement would overflow")?;
    let expiry_ms = context.get(key).and_then(|entry| entry.expiry_ms);
    context.set(key, after.to_string().as_bytes(), expiry_ms);
    Ok(Value::Integer(after))
}

fn mget(context: &mut Context<'_>, words: Words<'_>) -> Answer {
    let value = |key: &Vec<u8>| match context.get(key).map(|entry| &entry.content) {
        Some(Content::String(text)) => Value::Bulk(text.clone()),
        _ => Value::Null,
    };
    Ok(Value::Array(words.from(1).iter().map(value).collect()))
}

fn mset(context: &mut Context<'_>, words: Words<'_>) -> Answer {
    if words.len().is_multiple_of(2) {
        return Err(wrong_arity(words.name));
    }
    for pair in words.from(1).chunks(2) {
        context.set(&pair[0], &pair[1], None);
    }
    Ok(Value::OK)
}

fn msetnx(context: &mut Context<'_>, words: Words<'_>) -> Answer {
    if words.len().is_multiple_of(2) {
        return Err(wrong_arity(words.name));
    }
    if words.from(1).chunks(2).any(|pair| context.get(&pair[0]).is_some()) {
        return Ok(Value::Integer(0));
    }
    mset(context, words).map(|_| Value::Integer(1))
}

fn setnx(context: &mut Context<'_>, words: Words<'_>) -> Answer {
    let absent = context.get(words.at(1)).is_none();
    if absent {
        context.set(words.at(1), words.at(2), None);
    }
    Ok(Value::Integer(absent.into()))
}

fn setex(context: &mut Context<'_>, words: Words<'_>) -> Answer {
    let unit = if words.name == "setex" { "EX" } else { "PX" };
    let deadline = deadline(words, 2, unit, context.now_ms)?;
    context.set(words.at(1), words.at(3), Some(deadline));
    Ok(Value::OK)
}

/// The deadline at `index`, in one of the forms EX, PX, EXAT and PXAT; it must be positive.
fn deadline(words: Words<'_>, index: usize, form: &str, now_ms: i64) -> Result<i64, String> {
    let number = words.integer(index)?;
    let unit = if form.starts_with('E') { 1000 } else { 1 };
    let base = if form.ends_with("AT") { 0 } else { now_ms };
    let deadline =
        Some(number).filter(|number| *number > 0).and_then(|number| number.checked_mul(unit)?.checked_add(base));
    deadline.ok_or_else(|| format!("ERR invalid expire time in '{}' command", words.name))
}

/// The place and form of a deadline among options.
type DeadlineOption = Option<(usize, String)>;

/// Whether a deadline of this form may follow: the same form may be repeated, and the last one counts.
fn may_follow(expiry: &DeadlineOption, form: &str) -> bool {
    expiry.as_ref().is_none_or(|(_, before)| before == form)
}

fn set(context: &mut Context<'_>, words: Words<'_>) -> Answer {
    let (mut only_new, mut only_old, mut get_old, mut keep) = (false, false, false, false);
    let mut expiry: DeadlineOption = None;
    let mut index = 3;
    while index < words.len() {
        let option = words.keyword(index);
        match option.as_str() {
            "NX" if !only_old => only_new = true,
            "XX" if !only_new => only_old = true,
            "GET" => get_old = true,
            "KEEPTTL" if expiry.is_none() => keep = true,
            "EX" | "PX" | "EXAT" | "PXAT" if !keep && may_follow(&expiry, &option) && index + 1 < words.len() => {
                index += 1;
                expiry = Some((index, option));
            }
            _ => return Err(SYNTAX.into()),
        }
        index += 1;
    }
    let mut expiry_ms = match &expiry {
        Some((index, form)) => Some(deadline(words, *index, form, context.now_ms)?),
        None => None,
    };
    let old = if get_old { Some(get(context, words)?) } else { None };
    let entry = context.get(words.at(1));
    if (only_new && entry.is_some()) || (only_old && entry.is_none()) {
        return Ok(old.unwrap_or(Value::Null));
    }
    if keep {
        expiry_ms = entry.and_then(|entry| entry.expiry_ms);
    }
    context.set(words.at(1), words.at(2), expiry_ms);
    Ok(old.unwrap_or(Value::OK))
}

fn getex(context: &mut Context<'_>, words: Words<'_>) -> Answer {
    let mut persist = false;
    let mut expiry: DeadlineOption = None;
    let mut index = 2;
    while index < words.len() {
        let option = words.keyword(index);
        match option.as_str() {
            "PERSIST" if expiry.is_none() => persist = true,
            "EX" | "PX" | "EXAT" | "PXAT" if !persist && may_follow(&expiry, &option) && index + 1 < words.len() => {
                index += 1;
                expiry = Some((index, option));
            }
            _ => return Err(SYNTAX.into()),
        }
        index += 1;
    }
    let now_ms = context.now_ms;
    let Some(text) = context.string(words.at(1))?.cloned() else { return Ok(Value::Null) };
    if let Some((index, form)) = &expiry {
        let deadline = deadline(words, *index, form, now_ms)?;
        if form.ends_with("AT") && deadline <= now_ms {
            context.keys().remove(words.at(1));
        } else {
            context.get(words.at(1)).expect("it was just read").expiry_ms = Some(deadline);
        }
    } else if persist {
        context.get(words.at(1)).expect("it was just read").expiry_ms = None;
    }
    Ok(Value::Bulk(text))
}
