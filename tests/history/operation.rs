//! What a client asks for: the lines on the wire, and when they were sent and answered.

use crate::peer::Value;

/// The words of a command.
pub type Words = Vec<Vec<u8>>;

/// A command from its words, parted by blanks.
pub fn words(line: &str) -> Words {
    line.split(' ').map(|word| word.as_bytes().to_vec()).collect()
}

/// A command for people.
pub fn shown(words: &Words) -> String {
    words.iter().map(|word| word.escape_ascii().to_string()).collect::<Vec<_>>().join(" ")
}

/// A key and the object that it belongs to: keys whose values move between them are one object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// The object's number.
    pub object: usize,
    /// The key's name.
    pub key: String,
}

/// How several commands are made one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// One command does it all: MSET, MGET, RPUSH, LRANGE.
    Command,
    /// MULTI and EXEC.
    Exec,
    /// The same with a line that the server refuses, so that nothing is done.
    Refused,
    /// A Lua script that declares no keys.
    Script,
}

/// An end of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    Left,
    Right,
}

impl End {
    /// The word, and the commands that pop and push there.
    pub fn names(self) -> [&'static str; 3] {
        match self {
            Self::Left => ["LEFT", "LPOP", "LPUSH"],
            Self::Right => ["RIGHT", "RPOP", "RPUSH"],
        }
    }
}

/// One part of a transaction that the search for cycles judges.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Part {
    /// RPUSH of a value that nobody else pushes.
    Append(String, u64),
    /// LRANGE of the whole list.
    List(String),
    /// SET of a value that nobody else sets.
    Write(String, u64),
    /// GET.
    Read(String),
}

/// What a client asks for at once.
#[derive(Clone, Debug)]
pub enum Request {
    /// One command on the keys of one object.
    Command(usize, Words),
    /// MSET.
    SetMany(Vec<(Place, String)>),
    /// MGET.
    GetMany(Vec<Place>),
    /// LMOVE from the first list's first end to the second's second.
    Move(Place, Place, [End; 2]),
    /// EXISTS of an object's keys, each followed by many keys that nobody has: it takes long.
    Presence(usize, Vec<String>),
    /// FLUSHDB or FLUSHALL.
    Flush(&'static str),
    /// Several commands on one object, as one.
    Several(usize, Vec<Words>, Unit),
    /// WATCH, GET, and then MULTI, SET, EXEC: the value that was read, and the new one.
    Exchange(usize, String, Option<Vec<u8>>, String),
    /// BLPOP or BRPOP, with a time-out in milliseconds.
    Take { object: usize, key: String, command: &'static str, timeout_ms: u64 },
    /// A transaction for the search for cycles.
    Transaction(Vec<Part>, Unit),
}

/// Keys behind each of an EXISTS.
const ABSENT_KEYS: usize = 150;

/// Runs commands, given as their lengths and words, and answers all replies.
const SCRIPT: &str = "local replies, at = {}, 1 \
    while at <= #ARGV do \
        local length, line = tonumber(ARGV[at]), {} \
        for i = 1, length do line[i] = ARGV[at + i] end \
        replies[#replies + 1] = redis.pcall(unpack(line)) \
        at = at + length + 1 \
    end \
    return replies";

impl Request {
    /// The lines to send; the last one's reply is the request's.
    pub fn lines(&self) -> Vec<Words> {
        match self {
            Self::Command(_, line) => vec![line.clone()],
            Self::SetMany(pairs) => {
                let mut line = words("MSET");
                for (place, value) in pairs {
                    line.extend([place.key.clone().into_bytes(), value.clone().into_bytes()]);
                }
                vec![line]
            }
            Self::GetMany(places) => {
                let mut line = words("MGET");
                line.extend(places.iter().map(|place| place.key.clone().into_bytes()));
                vec![line]
            }
            Self::Move(from, to, [pop, push]) => {
                vec![words(&format!("LMOVE {} {} {} {}", from.key, to.key, pop.names()[0], push.names()[0]))]
            }
            Self::Presence(_, keys) => {
                let mut line = words("EXISTS");
                for key in keys {
                    line.push(key.clone().into_bytes());
                    line.extend((0..ABSENT_KEYS).map(|number| format!("absent:{key}:{number}").into_bytes()));
                }
                vec![line]
            }
            Self::Flush(command) => vec![words(command)],
            Self::Several(_, lines, unit) => unit.lines(lines.clone()),
            Self::Exchange(_, key, _, value) => Unit::Exec.lines(vec![words(&format!("SET {key} {value}"))]),
            Self::Take { key, command, timeout_ms, .. } => {
                vec![words(&format!("{command} {key} {}", *timeout_ms as f64 / 1000.0))]
            }
            Self::Transaction(parts, Unit::Command) => vec![one_command(parts)],
            Self::Transaction(parts, unit) => unit.lines(parts.iter().map(Part::line).collect()),
        }
    }

    /// How many replies the lines have.
    pub fn replies(&self) -> usize {
        match self {
            Self::Several(_, lines, Unit::Exec) => lines.len() + 2,
            Self::Transaction(parts, Unit::Exec) => parts.len() + 2,
            Self::Transaction(parts, Unit::Refused) => parts.len() + 3,
            Self::Exchange(..) => 3,
            _ => 1,
        }
    }
}

impl Unit {
    fn lines(self, mut lines: Vec<Words>) -> Vec<Words> {
        match self {
            Self::Command => lines,
            Self::Exec => {
                lines.insert(0, words("MULTI"));
                lines.push(words("EXEC"));
                lines
            }
            Self::Refused => {
                lines.push(words("NOSUCHCOMMAND"));
                Self::Exec.lines(lines)
            }
            Self::Script => {
                let mut script = vec![b"EVAL".to_vec(), SCRIPT.as_bytes().to_vec(), b"0".to_vec()];
                for line in lines {
                    script.push(line.len().to_string().into_bytes());
                    script.extend(line);
                }
                vec![script]
            }
        }
    }
}

impl Part {
    /// The key.
    pub fn key(&self) -> &str {
        match self {
            Self::Append(key, _) | Self::List(key) | Self::Write(key, _) | Self::Read(key) => key,
        }
    }

    fn line(&self) -> Words {
        words(&match self {
            Self::Append(key, value) => format!("RPUSH {key} {value}"),
            Self::List(key) => format!("LRANGE {key} 0 -1"),
            Self::Write(key, value) => format!("SET {key} {value}"),
            Self::Read(key) => format!("GET {key}"),
        })
    }
}

/// The one command that does all parts: appends to one key, one read of a list, writes, or reads.
fn one_command(parts: &[Part]) -> Words {
    let mut line = match &parts[0] {
        Part::Append(key, _) => words(&format!("RPUSH {key}")),
        Part::List(_) => return parts[0].line(),
        Part::Write(..) => words("MSET"),
        Part::Read(_) => words("MGET"),
    };
    for part in parts {
        match part {
            Part::Append(_, value) => line.push(value.to_string().into_bytes()),
            Part::Write(key, value) => line.extend([key.clone().into_bytes(), value.to_string().into_bytes()]),
            Part::Read(key) | Part::List(key) => line.push(key.clone().into_bytes()),
        }
    }
    line
}

/// A request that was made.
#[derive(Clone, Debug)]
pub struct Record {
    /// Who made it.
    pub client: usize,
    /// Which of the client's connections it went over: a connection that was given up is followed by another.
    pub connection: usize,
    /// The worker that served it.
    pub worker: usize,
    /// What was asked for.
    pub request: Request,
    /// Of a client that waits: when the server was seen to know of it.
    pub waits_since: Option<u64>,
    /// When it was sent, in nanoseconds since the run began.
    pub called: u64,
    /// When the reply was there. `None` where the client did not wait for it.
    pub returned: Option<u64>,
    /// Where the client did not wait: when the server had let go of the connection, after which nothing asked for over it can happen.
    pub gone: Option<u64>,
    /// The reply.
    pub reply: Option<Value>,
}

impl Record {
    /// One line for people.
    pub fn shown(&self) -> String {
        let lines: Vec<String> = match &self.request {
            Request::Several(_, lines, Unit::Script) => {
                ["(script)".into()].into_iter().chain(lines.iter().map(shown)).collect()
            }
            Request::Transaction(parts, Unit::Script) => {
                ["(script)".into()].into_iter().chain(parts.iter().map(|part| shown(&part.line()))).collect()
            }
            Request::Presence(_, keys) => vec![format!("EXISTS {} ...", keys.join(" ... "))],
            request => request.lines().iter().map(shown).collect(),
        };
        let reply = self.reply.as_ref().map_or("(not waited for)".into(), |reply| reply.brief());
        let returned = self.returned.map_or("...".into(), |returned| returned.to_string());
        format!("client {:>2} {:>12}-{returned:<12} {} => {reply}", self.client, self.called, lines.join("; "))
    }
}

/// The bytes of a reply in RESP2.
pub fn resp2(value: &Value) -> Vec<u8> {
    let line = |mark: &str, text: &[u8]| [mark.as_bytes(), text, b"\r\n"].concat();
    match value {
        Value::Simple(text) => line("+", text),
        Value::Error(text) => line("-", text),
        Value::Integer(number) => line(":", number.to_string().as_bytes()),
        Value::Bulk(text) => [line("$", text.len().to_string().as_bytes()), line("", text)].concat(),
        Value::NullBulk => line("$", b"-1"),
        Value::NullArray => line("*", b"-1"),
        Value::Array(elements) => {
            let mut bytes = line("*", elements.len().to_string().as_bytes());
            bytes.extend(elements.iter().flat_map(resp2));
            bytes
        }
        other => panic!("no reply of RESP2: {other:?}"),
    }
}
