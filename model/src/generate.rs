//! Commands from bytes: any bytes give a sequence of steps, and small changes of the bytes give small changes of the sequence, so that a fuzzer
//! (or plain noise) can steer.

use crate::Model;

/// Databases that generated commands use.
const DATABASES: usize = 2;
/// Bytes that choose one step: a change of them changes no other step.
pub const STEP_BYTES: usize = 16;
/// Steps of one sequence at most.
const STEPS_MAX: usize = 400;

/// One step of a generated sequence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// The clock goes on by so many milliseconds.
    Wait(i64),
    /// A client in `database` sends a command.
    Command {
        /// The client's database.
        database: usize,
        /// The command, its name first.
        words: Vec<Vec<u8>>,
    },
}

/// Bytes read one after the other; zeros behind their end.
struct Choices<'b> {
    bytes: &'b [u8],
}

impl<'b> Choices<'b> {
    /// From these bytes.
    fn new(bytes: &'b [u8]) -> Self {
        Self { bytes }
    }

    fn byte(&mut self) -> u8 {
        let Some((first, rest)) = self.bytes.split_first() else { return 0 };
        self.bytes = rest;
        *first
    }

    fn below(&mut self, bound: usize) -> usize {
        usize::from(self.byte()) % bound
    }

    fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len())]
    }
}

/// Bytes that look random and depend on the seed alone (splitmix64).
pub fn noise(seed: u64, length: usize) -> Vec<u8> {
    let mut state = seed;
    let mut word = || {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    };
    (0..length.div_ceil(8)).flat_map(|_| word().to_le_bytes()).take(length).collect()
}

/// Deadlines of generated commands, in milliseconds from now: some pass during the sequence's waits.
pub const QUICK_SPANS_MS: &[i64] = &[1, 10, 99, 1000, 2000, 5000, 100_000, -1000];

/// Deadlines that do not pass while a sequence runs in real time.
pub const SLOW_SPANS_MS: &[i64] = &[100_000, 200_000, 1_000_000, -1000];

/// The time that generated deadlines refer to.
#[derive(Clone, Copy)]
struct Timing {
    now_ms: i64,
    spans_ms: &'static [i64],
}

/// The sequence that these bytes give, with deadlines at these spans around `now_ms`; commands, options and keys are real, and numbers and
/// values often wrong.
pub fn steps(bytes: &[u8], now_ms: i64, spans_ms: &'static [i64]) -> Vec<Step> {
    let names: Vec<&str> = Model::names().collect();
    let mut steps = Vec::new();
    let mut timing = Timing { now_ms, spans_ms };
    for bytes in bytes.chunks(STEP_BYTES).take(STEPS_MAX) {
        let mut choices = Choices::new(bytes);
        let name = choices.byte();
        steps.push(if name == 255 {
            let wait_ms = choices.pick(&[1, 9, 100, 1000, 1001, 10_000]);
            timing.now_ms += wait_ms;
            Step::Wait(wait_ms)
        } else {
            let database = usize::from(choices.byte() % 8 == 7) % DATABASES;
            let words = command(names[usize::from(name) % names.len()], &mut choices, timing);
            Step::Command { database, words }
        });
    }
    steps
}

fn command(name: &str, choices: &mut Choices<'_>, timing: Timing) -> Vec<Vec<u8>> {
    let mut words = vec![name.as_bytes().to_vec()];
    for shape in shape(name) {
        add(&mut words, *shape, name, choices, timing);
    }
    // One word too many or too few now and then.
    match choices.byte() {
        254 => words.push(b"1".to_vec()),
        255 => {
            words.pop().filter(|_| words.len() > 1);
        }
        _ => {}
    }
    if words.is_empty() {
        words.push(name.as_bytes().to_vec());
    }
    words
}

/// What stands at a place of a command.
#[derive(Clone, Copy)]
enum Shape {
    Key,
    Value,
    Number,
    Deadline,
    Database,
    /// One of these words.
    Word(&'static [&'static str]),
    /// One to four of the given shapes in turn.
    Many(&'static [Shape]),
    /// None, one or two of these groups.
    Options(&'static [&'static [Shape]]),
    /// A number of keys, then the keys.
    CountedKeys,
}

use Shape::*;

const ENDS: Shape = Word(&["LEFT", "RIGHT", "left", "MIDDLE"]);
const EX: &[Shape] = &[Word(&["EX", "ex"]), Deadline];
const PX: &[Shape] = &[Word(&["PX"]), Deadline];
const EXAT: &[Shape] = &[Word(&["EXAT"]), Deadline];
const PXAT: &[Shape] = &[Word(&["PXAT"]), Deadline];
const PERSIST: &[Shape] = &[Word(&["PERSIST"])];
const NX_OR_XX: &[Shape] = &[Word(&["NX", "XX"])];
const GET_OR_KEEP: &[Shape] = &[Word(&["GET", "KEEPTTL"])];

/// The places of each command.
fn shape(name: &str) -> &'static [Shape] {
    match name {
        "append" | "getset" | "setnx" => &[Key, Value],
        "incrby" | "decrby" | "lindex" => &[Key, Number],
        "getex" => &[Key, Options(&[EX, PX, EXAT, PXAT, PERSIST])],
        "getrange" | "substr" | "lrange" | "ltrim" => &[Key, Number, Number],
        "mget" | "del" | "unlink" | "exists" | "touch" => &[Many(&[Key])],
        "mset" | "msetnx" => &[Many(&[Key, Value])],
        "psetex" | "setex" => &[Key, Deadline, Value],
        "set" => &[Key, Value, Options(&[EX, PX, EXAT, PXAT, NX_OR_XX, GET_OR_KEEP])],
        "setrange" => &[Key, Number, Value],
        "copy" => &[Key, Key, Options(&[&[Word(&["DB"]), Database], &[Word(&["REPLACE"])]])],
        "expire" | "pexpire" | "expireat" | "pexpireat" => {
            &[Key, Deadline, Options(&[&[Word(&["NX", "XX", "GT", "LT", "FT"])]])]
        }
        "move" => &[Key, Database],
        "rename" | "renamenx" | "rpoplpush" => &[Key, Key],
        "linsert" => &[Key, Word(&["BEFORE", "AFTER", "after", "BESIDE"]), Value, Value],
        "lmove" => &[Key, Key, ENDS, ENDS],
        "lmpop" => &[CountedKeys, ENDS, Options(&[&[Word(&["COUNT"]), Number]])],
        "lpop" | "rpop" => &[Key, Options(&[&[Number]])],
        "lpos" => &[Key, Value, Options(&[&[Word(&["RANK", "COUNT", "MAXLEN"]), Number]])],
        "lpush" | "rpush" | "lpushx" | "rpushx" => &[Key, Many(&[Value])],
        "lrem" | "lset" => &[Key, Number, Value],
        // The commands of one key and nothing else.
        _ => &[Key],
    }
}

fn add(words: &mut Vec<Vec<u8>>, shape: Shape, name: &str, choices: &mut Choices<'_>, timing: Timing) {
    let mut add_all = |shapes: &[Shape], choices: &mut Choices<'_>| {
        for shape in shapes {
            add(words, *shape, name, choices, timing);
        }
    };
    match shape {
        Many(shapes) => (0..=choices.below(4)).for_each(|_| add_all(shapes, choices)),
        Options(groups) => {
            let number = choices.pick(&[0, 0, 1, 1, 1, 2]);
            (0..number).for_each(|_| add_all(choices.pick(groups), choices));
        }
        CountedKeys => {
            let count = 1 + choices.below(3);
            words.push(if choices.byte() == 255 { b"0".to_vec() } else { count.to_string().into_bytes() });
            (0..count).for_each(|_| words.push(key(choices)));
        }
        Key => words.push(key(choices)),
        Value => words.push(value(choices)),
        Number => words.push(number(choices)),
        Deadline => words.push(deadline(name, words, choices, timing)),
        Database => words.push(choices.pick(&["0", "1", "1", "1", "99", "-1", "one"]).into()),
        Word(among) => words.push(choices.pick(among).into()),
    }
}

/// Few keys, so that commands meet; some longer than others.
fn key(choices: &mut Choices<'_>) -> Vec<u8> {
    match choices.below(12) {
        0 => Vec::new(),
        1 => [b'l'; 40].to_vec(),
        number => format!("key:{}", number % 7).into_bytes(),
    }
}

/// Numbers, short texts, binary, and texts long enough for every form in which strings and lists are kept.
fn value(choices: &mut Choices<'_>) -> Vec<u8> {
    match choices.below(16) {
        0 => Vec::new(),
        1..=4 => number(choices),
        5..=9 => choices.pick(&["a", "b", "ab", "abc", "hello"]).into(),
        10 => vec![0, 255, b'\r', b'\n', choices.byte()],
        11..=13 => vec![choices.byte(); usize::from(choices.byte())],
        14 => vec![choices.byte(); 100 * usize::from(choices.byte())],
        _ => vec![choices.byte(); 17_000],
    }
}

fn number(choices: &mut Choices<'_>) -> Vec<u8> {
    match choices.below(16) {
        0..=11 => (choices.below(16) as i64 - 6).to_string().into_bytes(),
        12 => i64::from(choices.byte()).pow(2).to_string().into_bytes(),
        13 => choices.pick(&["9223372036854775807", "-9223372036854775808", "9223372036854775800"]).into(),
        14 => choices.pick(&["1.5", "", "-0", "007", "+1", " 1", "abc", "9223372036854775808"]).into(),
        _ => choices.pick(&["100", "-100", "1000000"]).into(),
    }
}

/// A deadline around now, in the unit and from the origin that the command or the option before it means.
fn deadline(name: &str, words: &[Vec<u8>], choices: &mut Choices<'_>, timing: Timing) -> Vec<u8> {
    if choices.below(8) == 0 {
        return choices.pick(&["0", "-1", "1.5", "", "soon", "9223372036854775807", "9223372036854775"]).into();
    }
    let last = words.last().map(|word| String::from_utf8_lossy(word).to_lowercase()).unwrap_or_default();
    let form = if ["ex", "px", "exat", "pxat"].contains(&last.as_str()) { last.as_str() } else { name };
    let span_ms = choices.pick(timing.spans_ms);
    let time_ms = span_ms + if form.ends_with("at") { timing.now_ms } else { 0 };
    let in_seconds = !form.starts_with('p');
    (if in_seconds { time_ms / 1000 } else { time_ms }).to_string().into_bytes()
}
