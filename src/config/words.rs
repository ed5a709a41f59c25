//! The settings that are several words: how each is read, printed and written.

use super::value::{Refusal, Value, WordsKind, parse_memory, print_memory, quote};
use crate::limits::{BIND_ADDRESSES_MAX, CONFIG_LIST_MAX};

fn to_words(words: &[&[u8]]) -> Value {
    Value::Words(words.iter().map(|word| word.to_vec()).collect())
}

fn print_words(value: &Value) -> Vec<u8> {
    value.words().join(&b' ')
}

/// One line with all words; a pair of quotes if there are none.
fn one_line(value: &Value) -> Vec<Vec<u8>> {
    let text = print_words(value);
    vec![if text.is_empty() { b"\"\"".to_vec() } else { text }]
}

fn integer(word: &[u8]) -> Option<i64> {
    crate::command::args::parse_integer(word)
}

/// The addresses to listen on.
pub static BIND: WordsKind = WordsKind {
    single: false,
    read: |_, words| match words {
        // Redis' way to listen on no address.
        [] | [b""] => Ok(Value::Words(Vec::new())),
        _ if words.len() > BIND_ADDRESSES_MAX => Err("Too many bind addresses specified.".into()),
        _ => Ok(to_words(words)),
    },
    print: print_words,
    lines: one_line,
};

/// Save points: pairs of seconds and changes. Lines add up.
pub static SAVE: WordsKind = WordsKind {
    single: false,
    read: |before, words| {
        if matches!(words, [] | [b""]) {
            return Ok(Value::Words(Vec::new()));
        }
        let mut points = before.words().to_vec();
        let invalid = || Refusal::from("Invalid save parameters");
        for pair in words.chunks(2) {
            let [seconds, changes] = pair else { return Err(invalid()) };
            let valid = integer(seconds).is_some_and(|seconds| seconds >= 1)
                && integer(changes).is_some_and(|changes| changes >= 0);
            if !valid || points.len() >= 2 * CONFIG_LIST_MAX {
                return Err(invalid());
            }
            points.extend([seconds.to_vec(), changes.to_vec()]);
        }
        Ok(Value::Words(points))
    },
    print: print_words,
    lines: |value| match value.words() {
        [] => vec![b"\"\"".to_vec()],
        points => points.chunks(2).map(|point| point.join(&b' ')).collect(),
    },
};

/// The names of the classes of clients as CONFIG GET prints them, and as one may also write them.
const CLIENT_CLASSES: [(&str, &str); 3] = [("normal", "normal"), ("slave", "replica"), ("pubsub", "pubsub")];

/// Output limits: class, hard limit, soft limit, seconds. A line sets the classes it names.
pub static OUTPUT_LIMITS: WordsKind = WordsKind {
    single: false,
    read: |before, words| {
        if !words.len().is_multiple_of(4) {
            return Err("Wrong number of arguments in buffer limit configuration.".into());
        }
        let mut limits = match before.words() {
            [] => CLIENT_CLASSES.iter().flat_map(|(name, _)| [*name, "0", "0", "0"]).map(Into::into).collect(),
            limits => limits.to_vec(),
        };
        for entry in words.chunks(4) {
            let class = CLIENT_CLASSES
                .iter()
                .position(|(name, other)| {
                    entry[0].eq_ignore_ascii_case(name.as_bytes()) || entry[0].eq_ignore_ascii_case(other.as_bytes())
                })
                .ok_or(Refusal::from("Invalid client class specified in buffer limit configuration."))?;
            let numbers = (parse_memory(entry[1]), parse_memory(entry[2]), integer(entry[3]));
            let (Some(hard), Some(soft), Some(seconds @ 0..)) = numbers else {
                return Err("Error in hard, soft or soft_seconds setting in buffer limit configuration.".into());
            };
            for (offset, number) in [hard, soft, seconds].into_iter().enumerate() {
                limits[class * 4 + 1 + offset] = number.to_string().into_bytes();
            }
        }
        Ok(Value::Words(limits))
    },
    print: print_words,
    lines: |value| {
        let class_line = |limit: &[Vec<u8>]| {
            let bytes = |word: &[u8]| print_memory(integer(word).unwrap_or(0)).into_bytes();
            let name = if limit[0] == b"slave" { b"replica".to_vec() } else { limit[0].clone() };
            [name, bytes(&limit[1]), bytes(&limit[2]), limit[3].clone()].join(&b' ')
        };
        value.words().chunks(4).map(class_line).collect()
    },
};

/// Three scores for the kernel's out-of-memory killer.
pub static OOM_SCORES: WordsKind = WordsKind {
    single: false,
    read: |_, words| {
        if words.len() != 3 {
            return Err("wrong number of arguments".into());
        }
        if !words.iter().all(|word| integer(word).is_some_and(|score| (-2000..=2000).contains(&score))) {
            return Err("Invalid oom-score-adj-values, elements must be between -2000 and 2000.".into());
        }
        Ok(to_words(words))
    },
    print: print_words,
    lines: one_line,
};

/// Percentiles from 0 to 100.
pub static PERCENTILES: WordsKind = WordsKind {
    single: false,
    read: |_, words| {
        if matches!(words, [] | [b""]) {
            return Ok(Value::Words(Vec::new()));
        }
        if words.len() > CONFIG_LIST_MAX {
            return Err("Too many latency-tracking-info-percentiles parameters".into());
        }
        let mut percentiles = Vec::new();
        for word in words {
            let number: f64 = std::str::from_utf8(word)
                .ok()
                .and_then(|text| text.parse().ok())
                .ok_or(Refusal::from("Invalid latency-tracking-info-percentiles parameters"))?;
            if !(0.0..=100.0).contains(&number) {
                let reason = "latency-tracking-info-percentiles parameters should sit between [0.0,100.0]";
                return Err(reason.into());
            }
            percentiles.push(number.to_string().into_bytes());
        }
        Ok(Value::Words(percentiles))
    },
    print: print_words,
    lines: one_line,
};

/// The letters of the event classes, with the bit that each stands for, in the order in which they are printed.
const EVENT_CLASSES: &[(u8, u32)] = &[
    (b'g', 2),
    (b'$', 3),
    (b'l', 4),
    (b's', 5),
    (b'h', 6),
    (b'z', 7),
    (b'x', 8),
    (b'e', 9),
    (b't', 10),
    (b'd', 13),
    (b'n', 14),
    (b'K', 0),
    (b'E', 1),
    (b'm', 11),
];

/// The classes that `A` stands for.
const ALL_EVENTS: i64 = 0b10_0111_1111_1100;

/// Classes of keyspace events, as bits of a number.
pub static EVENTS: WordsKind = WordsKind {
    single: true,
    read: |_, words| {
        let [letters] = words else { return Err("wrong number of arguments".into()) };
        let mut bits = 0;
        for letter in *letters {
            bits |= match EVENT_CLASSES.iter().find(|(class, _)| class == letter) {
                Some((_, bit)) => 1 << bit,
                None if *letter == b'A' => ALL_EVENTS,
                None => return Err("Invalid event class character. Use 'Ag$lshzxeKEtmdn'.".into()),
            };
        }
        Ok(Value::Number(bits))
    },
    print: |value| {
        let mut bits = value.number();
        let mut text = Vec::new();
        if bits & ALL_EVENTS == ALL_EVENTS {
            text.push(b'A');
            // Redis prints the class of new keys only where it prints the classes one by one.
            bits &= !(ALL_EVENTS | 1 << 14);
        }
        text.extend(EVENT_CLASSES.iter().filter(|(_, bit)| bits & 1 << bit != 0).map(|(letter, _)| *letter));
        text
    },
    lines: |value| vec![quote(&(EVENTS.print)(value))],
};

/// Host and port of a primary, or nothing.
pub static PRIMARY: WordsKind = WordsKind {
    single: false,
    read: |_, words| match words {
        [host, port] if host.eq_ignore_ascii_case(b"no") && port.eq_ignore_ascii_case(b"one") => {
            Ok(Value::Words(Vec::new()))
        }
        [_, port] if integer(port).is_some_and(|port| (0..=65535).contains(&port)) => Ok(to_words(words)),
        [_, _] => Err("Invalid master port".into()),
        [] => Ok(Value::Words(Vec::new())),
        _ => Err("wrong number of arguments".into()),
    },
    print: print_words,
    lines: one_line,
};

#[cfg(test)]
mod tests {
    use super::*;

    fn read(kind: &WordsKind, before: &Value, text: &str) -> Result<Value, Refusal> {
        let words: Vec<&[u8]> = text.split(' ').map(str::as_bytes).collect();
        (kind.read)(before, &words)
    }

    const NOTHING: Value = Value::Words(Vec::new());

    #[test]
    fn save_points_add_up_and_an_empty_text_removes_them() {
        let one = read(&SAVE, &NOTHING, "3600 1").expect("a pair");
        let two = read(&SAVE, &one, "300 100 60 10000").expect("pairs");
        assert_eq!((SAVE.print)(&two), b"3600 1 300 100 60 10000");
        assert_eq!((SAVE.lines)(&two).len(), 3);
        assert_eq!(read(&SAVE, &two, ""), Ok(NOTHING));
        for text in ["3600", "0 1", "1 -1", "x 1", "1  2"] {
            assert_eq!(read(&SAVE, &NOTHING, text), Err("Invalid save parameters".into()), "{text}");
        }
    }

    #[test]
    fn output_limits_change_only_the_classes_named() {
        let value = read(&OUTPUT_LIMITS, &NOTHING, "replica 1mb 2kb 3").expect("one class");
        assert_eq!((OUTPUT_LIMITS.print)(&value), b"normal 0 0 0 slave 1048576 2048 3 pubsub 0 0 0");
        assert_eq!((OUTPUT_LIMITS.lines)(&value)[1], b"replica 1mb 2kb 3");
        for text in ["normal 1 2", "master 1 2 3", "normal x 2 3", "normal 1 2 -3"] {
            assert!(read(&OUTPUT_LIMITS, &NOTHING, text).is_err(), "{text}");
        }
    }

    #[test]
    fn event_classes_are_printed_in_redis_order() {
        for (text, printed) in
            [("AKEmn", "AKEm"), ("KEgmn", "gnKEm"), ("gxdE", "gxdE"), ("mn", "nm"), ("A", "A"), ("", "")]
        {
            let value = read(&EVENTS, &NOTHING, text).expect("known letters");
            assert_eq!((EVENTS.print)(&value), printed.as_bytes(), "{text}");
        }
        assert!(read(&EVENTS, &NOTHING, "q").is_err());
    }

    #[test]
    fn percentiles_are_printed_shortest() {
        let value = read(&PERCENTILES, &NOTHING, "50.0 1e1 99.95").expect("numbers");
        assert_eq!((PERCENTILES.print)(&value), b"50 10 99.95");
        for text in ["101", "-1", "x", "nan", "50  99"] {
            assert!(read(&PERCENTILES, &NOTHING, text).is_err(), "{text}");
        }
    }
}
