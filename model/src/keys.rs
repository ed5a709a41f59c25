//! The commands on keys of any type.

use crate::arguments::Words;
use crate::{Answer, Command, Content, Context, Entry, SYNTAX, Value};

pub(crate) const COMMANDS: &[(&str, i32, Command)] = &[
    ("copy", -3, copy),
    ("del", -2, del),
    ("exists", -2, exists),
    ("expire", -3, expire),
    ("expireat", -3, expire),
    ("expiretime", 2, time_to_live),
    ("move", 3, move_key),
    ("persist", 2, persist),
    ("pexpire", -3, expire),
    ("pexpireat", -3, expire),
    ("pexpiretime", 2, time_to_live),
    ("pttl", 2, time_to_live),
    ("rename", 3, rename),
    ("renamenx", 3, rename),
    ("touch", -2, exists),
    ("ttl", 2, time_to_live),
    ("type", 2, type_of),
    ("unlink", -2, del),
];

fn del(context: &mut Context<'_>, words: Words<'_>) -> Answer {
    let deleted = words.from(1).iter().filter(|key| context.keys().remove(key.as_slice()).is_some()).count();
    Ok(Value::Integer(deleted as i64))
}

fn exists(context: &mut Context<'_>, words: Words<'_>) -> Answer {
    let present = words.from(1).iter().filter(|key| context.get(key).is_some()).count();
    Ok(Value::Integer(present as i64))
}

fn type_of(context: &mut Context<'_>, words: Words<'_>) -> Answer {
    Ok(Value::Simple(match context.get(words.at(1)).map(|entry| &entry.content) {
        None => "none",
        Some(Content::String(_)) => "string",
        Some(Content::List(_)) => "list",
    }))
}

fn persist(context: &mut Context<'_>, words: Words<'_>) -> Answer {
    let had_one = context.get(words.at(1)).is_some_and(|entry| entry.expiry_ms.take().is_some());
    Ok(Value::Integer(had_one.into()))
}

/// TTL, PTTL, EXPIRETIME and PEXPIRETIME.
fn time_to_live(context: &mut Context<'_>, words: Words<'_>) -> Answer {
    let now_ms = context.now_ms;
    let Some(entry) = context.get(words.at(1)) else { return Ok(Value::Integer(-2)) };
    let Some(deadline) = entry.expiry_ms else { return Ok(Value::Integer(-1)) };
    let milliseconds = if words.name.ends_with("time") { deadline } else { deadline - now_ms };
    // Both are never negative here: a key whose deadline has passed is gone.
    let seconds = (milliseconds as u64 + 500) / 1000;
    Ok(Value::Integer(if words.name.starts_with('p') { milliseconds } else { seconds as i64 }))
}

/// EXPIRE, PEXPIRE, EXPIREAT and PEXPIREAT.
fn expire(context: &mut Context<'_>, words: Words<'_>) -> Answer {
    let (mut new, mut old, mut later, mut sooner) = (false, false, false, false);
    for (index, word) in words.from(3).iter().enumerate() {
        match words.keyword(3 + index).as_str() {
            "NX" => new = true,
            "XX" => old = true,
            "GT" => later = true,
            "LT" => sooner = true,
            _ => return Err(format!("ERR Unsupported option {}", String::from_utf8_lossy(word))),
        }
    }
    if new && (old || later || sooner) {
        return Err("ERR NX and XX, GT or LT options at the same time are not compatible".into());
    }
    if later && sooner {
        return Err("ERR GT and LT options at the same time are not compatible".into());
    }
    let number = words.integer(2)?;
    let unit = if words.name.starts_with('p') { 1 } else { 1000 };
    let base = if words.name.ends_with("at") { 0 } else { context.now_ms };
    let deadline = number.checked_mul(unit).and_then(|milliseconds| milliseconds.checked_add(base));
    let deadline = deadline.ok_or_else(|| format!("ERR invalid expire time in '{}' command", words.name))?;
    let now_ms = context.now_ms;
    let Some(entry) = context.get(words.at(1)) else { return Ok(Value::Integer(0)) };
    let refused = match entry.expiry_ms {
        None => old || later,
        Some(present) => new || (later && deadline <= present) || (sooner && deadline >= present),
    };
    if refused {
        return Ok(Value::Integer(0));
    }
    if deadline <= now_ms {
        context.keys().remove(words.at(1));
    } else {
        entry.expiry_ms = Some(deadline);
    }
    Ok(Value::Integer(1))
}

/// RENAME and RENAMENX.
fn rename(context: &mut Context<'_>, words: Words<'_>) -> Answer {
    let (from, to) = (words.at(1), words.at(2));
    let only_new = words.name == "renamenx";
    if context.get(from).is_none() {
        return Err("ERR no such key".into());
    }
    if only_new && context.get(to).is_some() {
        return Ok(Value::Integer(0));
    }
    let entry = context.keys().remove(from).expect("it was just found");
    context.keys().insert(to.to_vec(), entry);
    Ok(if only_new { Value::Integer(1) } else { Value::OK })
}

/// The database named by the word at `index`.
fn database(context: &Context<'_>, words: Words<'_>, index: usize) -> Result<usize, String> {
    let number = words.integer(index)?;
    let number = i32::try_from(number).map_err(|_| crate::NOT_AN_INTEGER)?;
    usize::try_from(number)
        .ok()
        .filter(|number| *number < context.databases.len())
        .ok_or_else(|| "ERR DB index is out of range".into())
}

const SAME: &str = "ERR source and destination objects are the same";

fn move_key(context: &mut Context<'_>, words: Words<'_>) -> Answer {
    let target = database(context, words, 2)?;
    if target == context.database {
        return Err(SAME.into());
    }
    let present = context.get(words.at(1)).is_some();
    if !present || context.databases[target].contains_key(words.at(1)) {
        return Ok(Value::Integer(0));
    }
    let entry = context.keys().remove(words.at(1)).expect("it was just found");
    context.databases[target].insert(words.at(1).to_vec(), entry);
    Ok(Value::Integer(1))
}

fn copy(context: &mut Context<'_>, words: Words<'_>) -> Answer {
    let (mut target, mut replace) = (context.database, false);
    let mut index = 3;
    while index < words.len() {
        match words.keyword(index).as_str() {
            "REPLACE" => replace = true,
            "DB" if index + 1 < words.len() => {
                index += 1;
                target = database(context, words, index)?;
            }
            _ => return Err(SYNTAX.into()),
        }
        index += 1;
    }
    let (from, to) = (words.at(1), words.at(2));
    if target == context.database && from == to {
        return Err(SAME.into());
    }
    let Some(entry): Option<Entry> = context.get(from).cloned() else { return Ok(Value::Integer(0)) };
    if !replace && context.databases[target].contains_key(to) {
        return Ok(Value::Integer(0));
    }
    context.databases[target].insert(to.to_vec(), entry);
    Ok(Value::Integer(1))
}
