//! What stands for an argument: mostly something that makes sense there, often an edge, sometimes nonsense.

use crate::draw::Draw;
use caswell::command::spec::{Argument, ArgumentKind};

/// Few keys, so that types collide; the last have odd names.
const KEYS: &[&[u8]] = &[b"k1", b"k2", b"k3", b"k4", b"k5", b"k6", b"k7", b"", b"\0\xff\r\n", b"[k]*", b"1"];

const ODD_NUMBERS: &[&str] = &[
    "9223372036854775807",
    "-9223372036854775808",
    "9223372036854775808",
    "-9223372036854775809",
    "99999999999999999999999999",
    "4294967296",
    "2147483648",
    "-2147483649",
    "2147483647",
    "",
    "abc",
    "1.5",
    "+1",
    "01",
    " 1",
    "1 ",
    "-0",
    "-",
    "0x10",
    "1e3",
    "\0",
];

const FLOATS: &[&str] = &[
    "0",
    "1",
    "-1",
    "0.1",
    "-0.1",
    "1.5",
    "3.14159265358979",
    "1e3",
    "5.0e-3",
    "1e17",
    "1e300",
    "-1e-300",
    "1e5000",
    "inf",
    "-inf",
    "nan",
    "abc",
    "",
    " 1",
    "1 ",
    "+2",
    ".5",
    "5.",
    "0x1p3",
    "9007199254740993",
    "123456789.123456789",
    "-0",
    "1e-17",
    "1,5",
    "1.7976931348623157e308",
    "3.0e-400",
    "0.30000000000000004",
    "100000000000000000000",
    "infinity",
    "1e",
    "--1",
];

const PATTERNS: &[&str] = &[
    "*", "k*", "k?", "k[1-3]", "k[^1]", "[k]", "\\[k\\]*", "", "?", "**", "k[3-1]", "k[", "k\\", "*1*", "K1", "k[12",
    "[^k]*",
];

/// Values of options and arguments that stay the same for a whole run, and the clock for deadlines.
pub struct Values {
    /// Grows with every deadline drawn, so that no two deadlines of a sequence are near each other: whether GT and LT hold must not
    /// depend on which of two commands a server ran in a later millisecond.
    deadlines: u64,
}

impl Values {
    /// The values of a sequence.
    pub fn new() -> Self {
        Self { deadlines: 0 }
    }

    /// A key.
    pub fn key(&self, draw: &mut Draw) -> Vec<u8> {
        // The first ones more often, so that a key is met again soon.
        let index = if draw.chance(70) { draw.below(4) } else { draw.below(KEYS.len()) };
        KEYS[index].to_vec()
    }

    /// A string to store, or to look for.
    pub fn string(&self, draw: &mut Draw) -> Vec<u8> {
        match draw.below(100) {
            0..25 => draw.pick(&["a", "b", "c", "d"]).as_bytes().to_vec(),
            25..40 => draw.below(10).to_string().into_bytes(),
            40..50 => draw.pick(ODD_NUMBERS).as_bytes().to_vec(),
            50..60 => draw.pick(FLOATS).as_bytes().to_vec(),
            60..65 => Vec::new(),
            65..75 => draw.pick(&[&b"\0\x01\xff"[..], b"a\r\nb", b"\xc3\xa4", b"hello world", b"ababcabc"]).to_vec(),
            75..85 => (0..draw.below(60)).map(|_| b"abcd"[draw.below(4)]).collect(),
            85..97 => vec![b'x'; draw.below(70)],
            // Around the sizes at which encodings change.
            97..99 => vec![b'y'; 40 + draw.below(100)],
            // Around the sizes at which long strings are cut into chunks, and lists into pieces.
            _ => {
                let bound = [300, 9_000, 40_000][draw.below(3)];
                let length = draw.below(bound);
                (0..length).map(|at| b"zyxw"[at / 97 % 4]).collect()
            }
        }
    }

    /// An integer: mostly small, sometimes an edge or no integer at all.
    pub fn integer(&self, draw: &mut Draw, low: i64, high: i64) -> Vec<u8> {
        if draw.chance(8) {
            return draw.pick(ODD_NUMBERS).as_bytes().to_vec();
        }
        (low + draw.below((high - low + 1) as usize) as i64).to_string().into_bytes()
    }

    fn seconds_ahead(&mut self, draw: &mut Draw) -> u64 {
        self.deadlines += 1;
        let base = [1_000, 50_000, 1_000_000, 100_000_000][draw.below(4)];
        base + 100 * self.deadlines
    }

    /// Some time from now, far ahead of it; rarely zero, negative or out of range. In seconds times `unit`.
    fn duration(&mut self, draw: &mut Draw, unit: u64) -> Vec<u8> {
        if draw.chance(8) {
            let text = draw.pick(&[
                "0",
                "-1",
                "-5000",
                "9223372036854775807",
                "9223372036854775",
                "-9223372036854775808",
                "x",
                "",
                "1.5",
            ]);
            return text.as_bytes().to_vec();
        }
        (self.seconds_ahead(draw) * unit).to_string().into_bytes()
    }

    /// A point in time far ahead; rarely past, zero, negative or out of range. In seconds times `unit` since 1970.
    fn point(&mut self, draw: &mut Draw, unit: u64, past: bool) -> Vec<u8> {
        if past && draw.chance(5) {
            return draw.pick(&["1", "1000000000"]).as_bytes().to_vec();
        }
        if draw.chance(8) {
            let text = draw.pick(&["0", "-1", "9223372036854775807", "9223372036854776", "x", "-9223372036854775808"]);
            return text.as_bytes().to_vec();
        }
        // The year 2033 and later.
        ((2_000_000_000 + self.seconds_ahead(draw)) * unit).to_string().into_bytes()
    }

    /// A time-out that passes at once, or is none.
    fn timeout(&self, draw: &mut Draw) -> Vec<u8> {
        let valid = draw.chance(85);
        let texts: &[&str] =
            if valid { &["0.001", "0.002", ".001", "1e-3"] } else { &["-1", "-.5", "x", "", "nan", "-1e300", "1 "] };
        draw.pick(texts).as_bytes().to_vec()
    }

    /// A value for `argument` of the command `command`.
    pub fn of(&mut self, draw: &mut Draw, command: &str, argument: &Argument) -> Vec<u8> {
        let name = argument.name;
        match argument.kind {
            ArgumentKind::Key => self.key(draw),
            ArgumentKind::Pattern => draw.pick(PATTERNS).as_bytes().to_vec(),
            ArgumentKind::Double if name == "timeout" => self.timeout(draw),
            ArgumentKind::Double => draw.pick(FLOATS).as_bytes().to_vec(),
            // A key that SET has given a time in the past goes at once, or soon: that is left to the server.
            ArgumentKind::UnixTime => {
                self.point(draw, if name.contains("milli") { 1_000 } else { 1 }, command != "set")
            }
            ArgumentKind::Integer => match (command, name) {
                ("wait" | "client|pause", "timeout") => self.integer(draw, -1, 3),
                (_, "seconds") => self.duration(draw, 1),
                (_, "milliseconds") => self.duration(draw, 1_000),
                (_, "db" | "destination-db" | "index" | "index1" | "index2")
                    if command != "lindex" && command != "lset" =>
                {
                    let high = if draw.chance(10) { 17 } else { 2 };
                    self.integer(draw, -1, high)
                }
                // Valkey takes an index modulo 2^32.
                ("lset", _) => {
                    let index = self.integer(draw, -7, 9);
                    let fits = std::str::from_utf8(&index)
                        .is_ok_and(|text| text.parse::<i64>().is_err() || text.parse::<i32>().is_ok());
                    if fits { index } else { b"2147483647".to_vec() }
                }
                ("setrange", _) => {
                    let high = match draw.below(20) {
                        0 => 60_000,
                        1 | 2 => 3_000,
                        _ => 12,
                    };
                    self.integer(draw, -1, high)
                }
                // Other cursors mean another place on each server.
                ("scan", "cursor") if draw.chance(90) => b"0".to_vec(),
                ("scan", "cursor") => draw
                    .pick(&["00", "+0", "-0", "", "x", "1.5", " 0", "0 ", "18446744073709551616"])
                    .as_bytes()
                    .to_vec(),
                ("scan", "count") => {
                    if draw.chance(70) {
                        b"1000".to_vec()
                    } else {
                        self.integer(draw, -1, 20)
                    }
                }
                ("hello", "protover") => draw.pick(&["2", "3", "3", "2", "1", "4", "x", ""]).as_bytes().to_vec(),
                // Far into a long string or list, now and then.
                ("getrange" | "substr" | "lrange" | "ltrim" | "lindex", _) if draw.chance(8) => {
                    self.integer(draw, -700, 40_000)
                }
                ("lpos", "rank") => self.integer(draw, -3, 3),
                ("lrem", "count") => {
                    // The one number without an opposite: refused since Redis 7.2, and by us.
                    let count = self.integer(draw, -3, 3);
                    if count == b"-9223372036854775808" { b"-9223372036854775807".to_vec() } else { count }
                }
                (_, "count" | "num-matches" | "len" | "min-match-len") => self.integer(draw, -1, 6),
                // A client that never is: the numbers of clients differ between servers.
                ("client|kill", _) => draw.pick(&["999999999", "999999999", "0", "-1", "x", ""]).as_bytes().to_vec(),
                ("cluster|meet" | "lolwut" | "client|list", _) => self.integer(draw, 0, 9),
                (_, "increment" | "decrement") => self.integer(draw, -1_000, 1_000),
                _ => self.integer(draw, -7, 9),
            },
            _ => match (command, name) {
                ("scan", "type") => draw.pick(&["string", "list", "STRING", "zset", "nosuch", ""]).as_bytes().to_vec(),
                ("set" | "setex" | "psetex" | "setnx" | "getset" | "append" | "mset" | "msetnx", "value")
                    if draw.chance(40) =>
                {
                    // Numbers, so that the counting commands have something to count on.
                    self.integer(draw, -1_000_000, 1_000_000)
                }
                (_, "element" | "pivot") if draw.chance(60) => draw.pick(&["a", "b", "c", "7"]).as_bytes().to_vec(),
                ("auth" | "hello" | "client|kill", "username") => {
                    draw.pick(&["default", "default", "nobody", ""]).as_bytes().to_vec()
                }
                ("auth" | "hello", "password") => draw.pick(&["secret", "secret", "wrong", ""]).as_bytes().to_vec(),
                ("hello", "clientname") => draw.pick(&["name", "other", ""]).as_bytes().to_vec(),
                (_, "connection-name" | "libname" | "libver") => {
                    draw.pick(&["name", "other", "", "with space", "a\nb", "ü", "x!"]).as_bytes().to_vec()
                }
                ("info", _) => {
                    draw.pick(&["server", "all", "default", "everything", "nosuch", "CLIENTS"]).as_bytes().to_vec()
                }
                (_, "ip:port" | "addr" | "laddr" | "old-format") => {
                    draw.pick(&["1.2.3.4:5", "x", ""]).as_bytes().to_vec()
                }
                _ => self.string(draw),
            },
        }
    }
}

/// Makes a time-out a short one that would keep a connection waiting for long, or for ever.
pub fn keep_waits_short(command: &str, words: &mut [Vec<u8>]) {
    let (place, longest, short) = match command {
        "blpop" | "brpop" | "blmove" | "brpoplpush" => (words.len() - 1, 0.002, "0.002"),
        "blmpop" => (1, 0.002, "0.002"),
        "wait" => (words.len() - 1, 3.0, "3"),
        "client|pause" => (2, 3.0, "3"),
        _ => return,
    };
    let Some(word) = words.get_mut(place) else { return };
    let number = std::str::from_utf8(word).ok().and_then(|text| text.parse::<f64>().ok());
    // The sum of a whole number and the present time overflows in Redis 7.0; seconds are checked.
    let is_refused = |number: f64| number < 0.0 || !number.is_finite() || (longest < 1.0 && number > 1e18);
    let is_short = |number: f64| number > 0.0 && number <= longest;
    if number.is_some_and(|number| !is_refused(number) && !is_short(number)) {
        *word = short.into();
    }
}
