//! What the clients ask for: drawn at random, over a few hot keys, many cold ones, and transactions for the search for cycles.

use crate::operation::{End, Part, Place, Request, Unit, Words, words};
use caswell::random::Random;

/// Objects of one counter each.
const COUNTERS: usize = 2;
/// Objects of one text each.
const TEXTS: usize = 2;
/// Objects of one list each, between which elements move.
const LISTS: usize = 2;
/// The number of the first of them.
const FIRST_LIST: usize = COUNTERS + TEXTS + 1;
/// The number of the pair.
const PAIR: usize = COUNTERS + TEXTS;
/// Objects of one key that is hardly ever asked for.
const COLD: usize = 32;
/// Lists that only grow.
const GROWING: u64 = 5;
/// Registers that are set and read several at a time.
const REGISTERS: u64 = 24;
/// Clients that ask for a hot object in one round, in hundredths of all.
const ASKING_PERCENT: u64 = 40;
/// Time-outs of clients that wait for elements, in milliseconds.
const TIMEOUTS_MS: u64 = 40;
/// Time-outs of clients that begin to wait before a round does.
const LONG_TIMEOUTS_MS: u64 = 2_000;
/// Times to live, in milliseconds.
const SPANS_MS: u64 = 30;
/// Commands of a client in a storm. Their answers leave little choice of order, so that the search takes many.
const STORM: usize = 60;
/// One storm in so many rounds is heavy: writers go on for longer, so that a long transaction loses until it is the elder.
const HEAVY_ROUNDS: u64 = 16;
/// Batches of a writer, one after the other, in a heavy storm.
const HEAVY_BATCHES: usize = 300;
/// Commands in each.
const HEAVY_LENGTH: usize = 2;
/// Long transactions of a client in a heavy storm.
const HEAVY_UNITS: usize = 6;
/// Times that a long transaction in a heavy storm looks through the ballast: some milliseconds in all, so that it meets writers even on a busy machine.
const HEAVY_LOOKS: usize = 30;
/// A long list that nobody changes: looking through it takes about as long as some hundred other commands.
pub const BALLAST: &str = "ballast";
/// Its elements.
const BALLAST_LENGTH: usize = 30_000;

/// What a key is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Counter,
    Text,
    /// Two keys whose value goes from one to the other.
    Pair,
    /// A list, and a spare one that is renamed to it.
    List,
    Cold,
}

/// An object that the linearizability checker judges.
#[derive(Clone, Debug)]
pub struct Target {
    /// What it is for.
    pub kind: Kind,
    /// Its keys.
    pub keys: Vec<String>,
}

impl Target {
    /// Whether many clients ask for it.
    pub fn is_hot(&self) -> bool {
        self.kind != Kind::Cold
    }
}

/// All objects, by their numbers.
pub fn targets() -> Vec<Target> {
    let one = |kind, name: &str, count| {
        let name = name.to_owned();
        (0..count).map(move |number| Target { kind, keys: vec![format!("{name}:{number}")] })
    };
    let two = |kind, name, one: &str, other: &str| Target {
        kind,
        keys: vec![format!("{name}:{one}"), format!("{name}:{other}")],
    };
    let mut targets: Vec<Target> = one(Kind::Counter, "counter", COUNTERS).collect();
    targets.extend(one(Kind::Text, "text", TEXTS));
    targets.push(two(Kind::Pair, "pair", "a", "b"));
    targets.extend((0..LISTS).map(|number| two(Kind::List, "list", &number.to_string(), &format!("{number}:spare"))));
    targets.extend(one(Kind::Cold, "cold", COLD));
    targets
}

/// Commands that the server has; what it lacks is not asked for.
#[derive(Clone, Copy, Debug, Default)]
pub struct Known {
    /// MULTI, EXEC and WATCH.
    pub exec: bool,
    /// EVAL.
    pub script: bool,
    /// BLPOP and BRPOP.
    pub take: bool,
}

/// Draws requests for one client.
pub struct Workload {
    /// The stream of choices.
    pub random: Random,
    targets: Vec<Target>,
    known: Known,
    /// Values are unlike each other: this client's number in their low digits.
    client: u64,
    values: u64,
}

impl Workload {
    /// The workload of one client.
    pub fn new(seed: u64, client: usize, known: Known) -> Self {
        let random = Random::from_seed(seed ^ (client as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15));
        Self { random, targets: targets(), known, client: client as u64, values: 0 }
    }

    /// True once in `times`.
    pub fn once_in(&mut self, times: u64) -> bool {
        self.random.below(times) == 0
    }

    fn pick<T: Copy>(&mut self, among: &[T]) -> T {
        among[self.random.below(among.len() as u64) as usize]
    }

    /// A value that no other is equal to.
    fn value(&mut self) -> u64 {
        self.values += 1;
        self.values * 100 + self.client
    }

    /// A request on the objects.
    pub fn on_objects(&mut self, round: u64) -> Request {
        match self.random.below(1000) {
            0..=2 if flushes_all(round) => Request::Flush(self.pick(&["FLUSHALL", "FLUSHALL ASYNC"])),
            0..=2 => Request::Flush(self.pick(&["FLUSHDB", "FLUSHDB SYNC"])),
            3..=80 => Request::SetMany(
                self.places(round).into_iter().map(|place| (place, self.value().to_string())).collect(),
            ),
            81..=150 => Request::GetMany(self.places(round)),
            151..=220 => self.presence(),
            221..=320 if self.known.exec || self.known.script => self.several(round),
            321..=350 if self.known.take => self.take(),
            351..=390 => self.move_element(),
            _ => {
                let object = self.object(round);
                Request::Command(object, self.command(object))
            }
        }
    }

    /// What meets most often when all begin with it at once: many writes of one key, transactions that are long enough to lose to them again and again,
    /// a value that goes to and fro between two keys, and long looks at both.
    pub fn storm(&mut self, round: u64) -> Vec<Vec<Request>> {
        let is_heavy = round % HEAVY_ROUNDS == 1;
        let (batches, length) = if is_heavy { (HEAVY_BATCHES, HEAVY_LENGTH) } else { (1, STORM) };
        let key = &self.targets[0].keys[0];
        let increment = words(&format!("INCR {key}"));
        match self.client % 8 {
            0 if self.known.exec || self.known.script => {
                // In the judge's eyes the ballast is not there; then too there is no such element.
                let long_look = words(&format!("LPOS {BALLAST} none"));
                let mut lines = vec![words(&format!("GET {key}"))];
                lines.extend(vec![long_look; if is_heavy { HEAVY_LOOKS } else { 0 }]);
                lines.push(increment);
                vec![vec![Request::Several(0, lines, self.unit())]; if is_heavy { HEAVY_UNITS } else { 1 }]
            }
            1 => {
                let value = self.value();
                let [one, other] = [0, 1].map(|at| self.targets[PAIR].keys[at].clone());
                let renames = [format!("RENAME {one} {other}"), format!("RENAME {other} {one}")];
                let lines = [format!("SET {one} {value}")].into_iter().chain(renames.into_iter().cycle());
                vec![lines.take(STORM).map(|line| Request::Command(PAIR, words(&line))).collect()]
            }
            2 | 6 => vec![(0..STORM / 6).map(|_| self.presence()).collect()],
            _ => vec![vec![Request::Command(0, increment); length]; batches],
        }
    }

    /// WATCH, GET, MULTI, SET, EXEC on a key: the object, the key and the value to set; `None` where the server lacks them.
    pub fn exchange(&mut self) -> Option<(usize, String, String)> {
        let object = self.pick(&[COUNTERS, COUNTERS + 1]);
        (self.known.exec && self.once_in(30))
            .then(|| (object, self.targets[object].keys[0].clone(), self.value().to_string()))
    }

    /// Whether the request must have a connection to itself until it is answered.
    pub fn stands_alone(request: &Request) -> bool {
        matches!(request, Request::Take { .. })
    }

    /// Whether what it did can be told even without an answer.
    pub fn can_be_given_up(request: &Request) -> bool {
        !matches!(request, Request::Move(..))
    }

    /// An object, hot more often than not, of those that this client asks for in this round.
    fn object(&mut self, round: u64) -> usize {
        let hot = self.targets.len() - COLD;
        let drawn = match self.random.below(100) {
            0..=24 => self.random.below(COUNTERS as u64) as usize,
            25..=44 => COUNTERS + self.random.below(TEXTS as u64) as usize,
            45..=59 => PAIR,
            60..=84 => FIRST_LIST + self.random.below(LISTS as u64) as usize,
            _ => hot,
        };
        let may = |object: &usize| *object < hot && self.may_ask_for(*object, round);
        // The next one that this client may ask for, else a cold one.
        (drawn..hot).chain(0..drawn).find(may).filter(|_| drawn < hot).unwrap_or_else(|| self.cold())
    }

    /// Whether this client asks for a hot object in this round. Only some do: the more clients meet at one object, the longer takes the search for an order,
    /// and it grows much faster than they do.
    fn may_ask_for(&self, object: usize, round: u64) -> bool {
        let mixed = Random::from_seed(round << 32 | (object as u64) << 16 | self.client).below(100);
        mixed < ASKING_PERCENT
    }

    fn cold(&mut self) -> usize {
        self.targets.len() - COLD + self.random.below(COLD as u64) as usize
    }

    fn key(&mut self, object: usize) -> String {
        let number = self.random.below(self.targets[object].keys.len() as u64) as usize;
        self.targets[object].keys[number].clone()
    }

    /// Two to four keys of texts, counters and cold keys, each once.
    fn places(&mut self, round: u64) -> Vec<Place> {
        let mut objects = Vec::new();
        for _ in 0..2 + self.random.below(3) {
            let hot = self.random.below((COUNTERS + TEXTS) as u64) as usize;
            let object = if self.may_ask_for(hot, round) { hot } else { self.cold() };
            if !objects.contains(&object) {
                objects.push(object);
            }
        }
        objects.into_iter().map(|object| Place { object, key: self.targets[object].keys[0].clone() }).collect()
    }

    fn list(&mut self) -> Place {
        let object = FIRST_LIST + self.random.below(LISTS as u64) as usize;
        Place { object, key: self.targets[object].keys[0].clone() }
    }

    /// A move of an element from one list to the other, or within one.
    fn move_element(&mut self) -> Request {
        let ends = [self.once_in(2), self.once_in(2)].map(|left| if left { End::Left } else { End::Right });
        Request::Move(self.list(), self.list(), ends)
    }

    fn presence(&mut self) -> Request {
        let mut keys = self.targets[PAIR].keys.clone();
        if self.once_in(2) {
            keys.reverse();
        }
        Request::Presence(PAIR, keys)
    }

    fn several(&mut self, round: u64) -> Request {
        let object = self.object(round);
        let count = 2 + self.random.below(3);
        let mut lines: Vec<Words> = (0..count).map(|_| self.command(object)).collect();
        if self.once_in(60) {
            lines[1] = words("FLUSHDB");
        }
        Request::Several(object, lines, self.unit())
    }

    /// How several commands are made one; the server has one of the ways.
    fn unit(&mut self) -> Unit {
        match (self.known.exec, self.known.script) {
            (true, true) => self.pick(&[Unit::Exec, Unit::Script]),
            (true, false) => Unit::Exec,
            _ => Unit::Script,
        }
    }

    fn take(&mut self) -> Request {
        let timeout_ms = 5 + self.random.below(TIMEOUTS_MS);
        self.take_within(timeout_ms)
    }

    /// A wait that others will end, most likely.
    pub fn long_take(&mut self) -> Request {
        let timeout_ms = LONG_TIMEOUTS_MS / 2 + self.random.below(LONG_TIMEOUTS_MS / 2);
        self.take_within(timeout_ms)
    }

    fn take_within(&mut self, timeout_ms: u64) -> Request {
        let Place { object, key } = self.list();
        Request::Take { object, key, command: self.pick(&["BLPOP", "BRPOP"]), timeout_ms }
    }

    /// A command on an object, mostly of its kind.
    fn command(&mut self, object: usize) -> Words {
        let key = self.key(object);
        let kind = match self.targets[object].kind {
            Kind::Cold => self.pick(&[Kind::Counter, Kind::Text, Kind::List]),
            kind => kind,
        };
        let value = self.value();
        let line = match kind {
            Kind::Counter => match self.random.below(20) {
                0..=9 => format!("INCR {key}"),
                10 => format!("INCRBY {key} {}", self.random.below(100)),
                11..=14 => format!("GET {key}"),
                15 => format!("SET {key} {value}"),
                16 => format!("SET {key} {value} PX {}", 1 + self.random.below(SPANS_MS)),
                17 => format!("PEXPIRE {key} {}", 1 + self.random.below(SPANS_MS)),
                18 => format!("GETDEL {key}"),
                _ => format!("DEL {key}"),
            },
            Kind::Text => match self.random.below(20) {
                0..=3 => format!("SET {key} {value}"),
                4..=7 => format!("APPEND {key} .{value}"),
                8..=11 => format!("GET {key}"),
                12 => format!("SETNX {key} {value}"),
                13 => format!("STRLEN {key}"),
                14 => format!("GETDEL {key}"),
                15 => format!("SET {key} {value} PX {}", 1 + self.random.below(SPANS_MS)),
                16 => format!("PEXPIRE {key} {}", 1 + self.random.below(SPANS_MS)),
                17 => format!("PERSIST {key}"),
                18 => format!("SET {key} {value} XX GET"),
                _ => format!("EXISTS {key}"),
            },
            Kind::Pair => {
                let (first, second) = (&self.targets[object].keys[0].clone(), &self.targets[object].keys[1].clone());
                match self.random.below(20) {
                    0..=5 => format!("RENAME {first} {second}"),
                    6..=11 => format!("RENAME {second} {first}"),
                    12 => format!("RENAMENX {first} {second}"),
                    13..=14 => format!("MGET {first} {second}"),
                    15..=16 => format!("EXISTS {second} {first}"),
                    17 => format!("SETNX {key} {value}"),
                    18 => format!("SET {key} {value}"),
                    _ => format!("DEL {key}"),
                }
            }
            Kind::List | Kind::Cold => {
                let keys = &self.targets[object].keys;
                // Mostly the list, not its spare one.
                let list = if self.random.below(16) == 0 { keys.last() } else { keys.first() };
                let key = list.expect("an object has a key").clone();
                match self.random.below(24) {
                    0..=4 => format!("LPUSH {key} {value}"),
                    5..=9 => format!("RPUSH {key} {value}"),
                    10..=12 => format!("LPOP {key}"),
                    13..=15 => format!("RPOP {key}"),
                    16..=17 => format!("LLEN {key}"),
                    18..=19 => format!("LRANGE {key} 0 -1"),
                    20 => format!("LMOVE {key} {key} LEFT RIGHT"),
                    21 => format!("PEXPIRE {key} {}", 1 + self.random.below(SPANS_MS)),
                    22 => match self.targets[object].keys.as_slice() {
                        [list, spare] => format!("RENAME {spare} {list}"),
                        _ => format!("EXISTS {key}"),
                    },
                    _ => format!("DEL {key}"),
                }
            }
        };
        words(&line)
    }

    /// A transaction of round `round` for the search for cycles.
    pub fn transaction(&mut self, round: u64) -> Request {
        if (self.known.exec || self.known.script) && self.once_in(2) {
            let count = 2 + self.random.below(4);
            let parts = (0..count).map(|_| self.part(round)).collect();
            let unit = if self.known.exec && self.once_in(30) { Unit::Refused } else { self.unit() };
            return Request::Transaction(parts, unit);
        }
        let parts = match self.random.below(10) {
            0..=2 => {
                let key = self.growing(round);
                (0..=self.random.below(2)).map(|_| Part::Append(key.clone(), self.value())).collect()
            }
            3 => vec![Part::List(self.growing(round))],
            4 => registers(round).into_iter().map(|key| Part::Write(key, self.value())).collect(),
            5 => registers(round).into_iter().map(Part::Read).collect(),
            6..=7 => self.few(round).into_iter().map(|key| Part::Write(key, self.value())).collect(),
            _ => self.few(round).into_iter().map(Part::Read).collect(),
        };
        Request::Transaction(parts, Unit::Command)
    }

    fn part(&mut self, round: u64) -> Part {
        match self.random.below(8) {
            0..=2 => Part::Append(self.growing(round), self.value()),
            3..=5 => Part::List(self.growing(round)),
            6 => Part::Write(register(round, self.random.below(REGISTERS)), self.value()),
            _ => Part::Read(register(round, self.random.below(REGISTERS))),
        }
    }

    fn growing(&mut self, round: u64) -> String {
        growing(round, self.random.below(GROWING))
    }

    /// One to five registers, each once, in any order.
    fn few(&mut self, round: u64) -> Vec<String> {
        let (first, step) = (self.random.below(REGISTERS), self.pick(&[1, 5, 7, 11, 13, 23]));
        (0..1 + self.random.below(5)).map(|at| register(round, (first + at * step) % REGISTERS)).collect()
    }
}

/// Whether the round's flushes empty all databases. Then there are no transactions for the search for cycles, whose lists must only grow.
pub fn flushes_all(round: u64) -> bool {
    round % 4 == 3
}

/// Whether the round begins with a storm.
pub fn is_stormy(round: u64) -> bool {
    round % 2 == 1
}

/// What makes the ballast, for a round that begins with a heavy storm.
pub fn ballast(round: u64) -> Option<Words> {
    let elements = || (0..BALLAST_LENGTH).map(|number| number.to_string().into_bytes());
    (round % HEAVY_ROUNDS == 1).then(|| words(&format!("RPUSH {BALLAST}")).into_iter().chain(elements()).collect())
}

fn growing(round: u64, number: u64) -> String {
    format!("growing:{round}:{number}")
}

fn register(round: u64, number: u64) -> String {
    format!("register:{round}:{number}")
}

/// The lists of a round.
pub fn growing_lists(round: u64) -> Vec<String> {
    (0..GROWING).map(|number| growing(round, number)).collect()
}

/// The registers of a round.
pub fn registers(round: u64) -> Vec<String> {
    (0..REGISTERS).map(|number| register(round, number)).collect()
}
