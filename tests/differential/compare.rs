//! Whether two servers' replies to one command line say the same.

use crate::peer::Value;

/// How far two servers' clocks, or the moments at which they ran a command, may be apart, in seconds.
const CLOCK_TOLERANCE_S: i64 = 20;

/// How a command's replies are compared. Errors are compared in full under every rule.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Rule {
    /// They are equal.
    Equal,
    /// Arrays are equal once their groups of so many elements are sorted.
    AnyOrder(usize),
    /// Integers may differ as clocks do; the number is how many make a second.
    Clock(i64),
    /// They are of one kind: figures, addresses, dates, texts and random choices in them are each server's own.
    Kind,
    /// SCAN: the keys in any order, if both walked from the beginning to the end; other cursors mean other places on each server.
    Scan,
    /// Maps hold the same fields, equal but for those of each server's own.
    Fields(&'static [&'static str]),
}

fn rule(command: &str) -> Rule {
    match command {
        "keys" => Rule::AnyOrder(1),
        "config|get" => Rule::AnyOrder(2),
        "scan" => Rule::Scan,
        "ttl" | "expiretime" => Rule::Clock(1),
        "pttl" | "pexpiretime" => Rule::Clock(1_000),
        "hello" => Rule::Fields(&["server", "version", "id", "modules"]),
        // IDLETIME too: what is shared between keys in Redis is as old as the server. FREQ grows by chance.
        "object|idletime" | "object|freq" | "randomkey" | "time" | "lolwut" | "info" | "memory|usage" | "role"
        | "client|list" | "client|info" | "client|id" | "client|kill" | "command" | "command|count"
        | "command|info" | "command|docs" | "command|list" | "debug" => Rule::Kind,
        _ if command.ends_with("|help") => Rule::Kind,
        _ => Rule::Equal,
    }
}

/// Whether `ours` says what `theirs` says, as a reply to `words`, a line of `command`.
pub fn same(command: &str, words: &[Vec<u8>], ours: &Value, theirs: &Value) -> bool {
    if ours == theirs {
        return true;
    }
    if matches!(ours, Value::Error(_)) || matches!(theirs, Value::Error(_)) {
        return false;
    }
    match rule(command) {
        Rule::Equal => false,
        Rule::AnyOrder(group) => {
            std::mem::discriminant(ours) == std::mem::discriminant(theirs)
                && sorted(ours, group) == sorted(theirs, group)
        }
        Rule::Clock(per_second) => match (ours, theirs) {
            (Value::Integer(our), Value::Integer(their)) => near(*our, *their, per_second),
            _ => false,
        },
        Rule::Kind => std::mem::discriminant(ours) == std::mem::discriminant(theirs),
        Rule::Scan => {
            let (our, their) = (ours.elements(), theirs.elements());
            let ended = |parts: &[Value]| parts.len() == 2 && parts[0] == Value::Bulk(b"0".to_vec());
            let from_start =
                words.get(1).is_some_and(|cursor| matches!(&cursor[..], b"0" | b"00" | b"+0" | b"-0" | b""));
            match from_start && ended(&our) && ended(&their) {
                true => sorted(&our[1], 1) == sorted(&their[1], 1),
                false => our.len() == 2 && their.len() == 2 && matches!(our[0], Value::Bulk(_)),
            }
        }
        Rule::Fields(own) => {
            let pairs = |value: &Value| -> Vec<(Value, Option<Value>)> {
                let elements = value.elements();
                let keep = |pair: &[Value]| {
                    (pair[0].clone(), pair.get(1).filter(|_| !own.contains(&&*pair[0].text())).cloned())
                };
                elements.chunks(2).map(keep).collect()
            };
            std::mem::discriminant(ours) == std::mem::discriminant(theirs) && pairs(ours) == pairs(theirs)
        }
    }
}

/// Whether two deadlines or remaining times are equal as far as clocks go. Both absent (-1) and no key (-2) are exact.
pub fn near(ours: i64, theirs: i64, per_second: i64) -> bool {
    ours == theirs || (ours >= 0 && theirs >= 0 && ours.abs_diff(theirs) <= (CLOCK_TOLERANCE_S * per_second) as u64)
}

fn sorted(value: &Value, group: usize) -> Vec<Vec<Value>> {
    let mut groups: Vec<Vec<Value>> = value.elements().chunks(group).map(<[Value]>::to_vec).collect();
    groups.sort();
    groups
}
