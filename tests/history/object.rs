//! One object for the linearizability checker: a few keys of the naive model, with their deadlines and with the clients that wait for their elements.
//!
//! A deadline is modelled by the number of the step that set it: the model's clock stands still, and a step of its own, which may happen at any
//! time since the deadline or never, deletes the key that has it. A client that waits is two steps: it stands in the queue from some moment of its
//! call on, and whatever fills the list serves the queue in order.

use crate::linearizability::{Event, Specification};
use crate::operation::{Record, Request, Words, resp2, words};
use crate::peer::Value;
use caswell_model::Model;
use std::collections::HashMap;

/// How much later than its deadline a key may still be seen, for clocks that are set while the test runs.
const LATE_NANOSECONDS: u64 = 20_000_000;
const NANOSECONDS_PER_MS: u64 = 1_000_000;

/// What the object holds.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Held {
    model: Model,
    /// Waiting clients, by the number of their step, in the order in which they are served.
    queue: Vec<usize>,
}

/// A command, and its reply in RESP2 (`None`: any).
#[derive(Clone, Debug)]
pub struct Call {
    line: Words,
    reply: Option<Vec<u8>>,
}

/// Something that happens to the object at one moment.
#[derive(Clone, Debug)]
pub struct Step {
    what: What,
    /// The record that it comes from.
    pub record: usize,
}

#[derive(Clone, Debug)]
enum What {
    /// Commands, called at this time.
    Calls(u64, Vec<Call>),
    /// The deadline that the step of this number set has passed.
    Expire(usize),
    /// A client looks at the list and stands in the queue if that is empty.
    Wait(usize),
    /// It waits no more: it was served, or its time was up.
    Leave(usize),
}

/// A client that waited.
#[derive(Clone, Debug)]
struct Waiter {
    key: String,
    /// LPOP or RPOP.
    pop: &'static str,
    /// What it was answered; `None`: any answer.
    reply: Option<Value>,
}

/// The object's rules, with what the history tells of deadlines and waiting clients.
#[derive(Debug, Default)]
pub struct Object {
    keys: Vec<String>,
    /// By the step that set it: the last moment at which the key may be seen.
    last_seen: HashMap<usize, u64>,
    /// The least of those.
    first_last_seen: Option<u64>,
    waiters: HashMap<usize, Waiter>,
    numbers: usize,
    /// The last event of each client's connection.
    last_event: HashMap<(usize, usize), usize>,
    /// What happened, in the order of the records.
    pub history: Vec<Event<Step>>,
    /// By record that meant something here: client, when it was called, and when it was answered.
    spans: Vec<(usize, u64, u64)>,
}

impl Object {
    /// An object of these keys that holds nothing.
    pub fn new(keys: &[String]) -> (Self, Held) {
        let nothing = Held { model: Model::new(1), queue: Vec::new() };
        (Self { keys: keys.to_vec(), ..Self::default() }, nothing)
    }

    /// Adds what the record, number `index` of all, means for this object, which is the one numbered `object`. A client's records come in their order.
    pub fn add(&mut self, object: usize, index: usize, record: &Record) {
        let reply = record.reply.as_ref();
        let whole = |line: &Words| (line.clone(), reply.map(resp2));
        let calls: Vec<(Words, Option<Vec<u8>>)> = match &record.request {
            Request::Command(of, line) if *of == object => vec![whole(line)],
            Request::SetMany(pairs) => {
                let ours = pairs.iter().filter(|(place, _)| place.object == object);
                ours.map(|(place, value)| whole(&words(&format!("SET {} {value}", place.key)))).collect()
            }
            Request::GetMany(places) => {
                let ours = places.iter().enumerate().filter(|(_, place)| place.object == object);
                let element = |at: usize| reply.map(|reply| resp2(&Value::Array(vec![reply.elements()[at].clone()])));
                ours.map(|(at, place)| (words(&format!("MGET {}", place.key)), element(at))).collect()
            }
            // Within one list, which is there all the time and so keeps its deadline.
            Request::Move(from, to, _) if from == to => {
                if from.object == object {
                    vec![whole(&record.request.lines()[0])]
                } else {
                    Vec::new()
                }
            }
            Request::Move(from, to, [pop, push]) => {
                let pop = (words(&format!("{} {}", pop.names()[1], from.key)), reply.map(resp2));
                let mut calls = if from.object == object { vec![pop] } else { Vec::new() };
                // The pushed list's length is not told.
                if let (Some(Value::Bulk(element)), true) = (reply, to.object == object) {
                    let mut push = words(&format!("{} {}", push.names()[2], to.key));
                    push.push(element.clone());
                    calls.push((push, None));
                }
                calls
            }
            Request::Presence(of, keys) if *of == object => vec![whole(&words(&format!("EXISTS {}", keys.join(" "))))],
            Request::Flush(_) => vec![(self.deletion(), None)],
            Request::Several(of, lines, _) => {
                let answers = match reply {
                    // Nothing was done.
                    Some(Value::NullArray | Value::Error(_)) => Vec::new(),
                    Some(reply) => reply.elements().iter().map(|one| Some(resp2(one))).collect(),
                    None => vec![None; lines.len()],
                };
                let means = |(line, answer): (&Words, Option<Vec<u8>>)| match line[0].as_slice() {
                    b"FLUSHDB" => Some((self.deletion(), None)),
                    _ => (*of == object).then(|| (line.clone(), answer)),
                };
                lines.iter().zip(answers).filter_map(means).collect()
            }
            Request::Exchange(of, key, read, value) if *of == object => match reply {
                Some(Value::NullArray) => Vec::new(),
                _ => {
                    let read = read.clone().map_or(Value::NullBulk, Value::Bulk);
                    let set = (words(&format!("SET {key} {value}")), Some(b"+OK\r\n".to_vec()));
                    vec![(words(&format!("GET {key}")), Some(resp2(&read))), set]
                }
            },
            Request::Take { object: of, key, command, timeout_ms } if *of == object => {
                let pop = if *command == "BLPOP" { "LPOP" } else { "RPOP" };
                return self.add_waiter(
                    index,
                    record,
                    Waiter { key: key.clone(), pop, reply: reply.cloned() },
                    *timeout_ms,
                );
            }
            _ => Vec::new(),
        };
        if !calls.is_empty() {
            let calls = calls.into_iter().map(|(line, reply)| self.call(index, record, line, reply)).collect();
            self.spans.push((record.client, record.called, record.returned.unwrap_or(record.called)));
            self.push(index, record, What::Calls(record.called, calls), record.called);
        }
    }

    /// What a flush means for this object.
    fn deletion(&self) -> Words {
        words(&format!("DEL {}", self.keys.join(" ")))
    }

    /// The command as the model is to run it: a number in the place of a deadline, and a step that deletes the key.
    fn call(&mut self, index: usize, record: &Record, mut line: Words, reply: Option<Vec<u8>>) -> Call {
        let option = line.iter().position(|word| word == b"PX");
        let (name, span) = match option {
            Some(at) => (at, at + 1),
            None if line[0] == b"PEXPIRE" => (0, 2),
            None => return Call { line, reply },
        };
        let span_ms = std::str::from_utf8(&line[span]).ok().and_then(|text| text.parse::<u64>().ok());
        let span_ns = span_ms.expect("a number of milliseconds") * NANOSECONDS_PER_MS;
        self.numbers += 1;
        let number = self.numbers;
        // The server's clock has whole milliseconds, and a key is there at its deadline.
        if let Some(returned) = record.returned {
            let last = returned + span_ns + NANOSECONDS_PER_MS + LATE_NANOSECONDS;
            self.last_seen.insert(number, last);
            self.first_last_seen = Some(self.first_last_seen.map_or(last, |first| first.min(last)));
        }
        let step = Step { what: What::Expire(number), record: index };
        self.history.push(Event { step, called: record.called + span_ns, ended: None, is_certain: false, after: None });
        line[name] = if name == 0 { b"PEXPIREAT".to_vec() } else { b"PXAT".to_vec() };
        line[span] = number.to_string().into_bytes();
        Call { line, reply }
    }

    fn add_waiter(&mut self, index: usize, record: &Record, waiter: Waiter, timeout_ms: u64) {
        self.numbers += 1;
        let number = self.numbers;
        let timed_out = matches!(waiter.reply, Some(Value::NullArray));
        self.waiters.insert(number, waiter);
        self.spans.push((record.client, record.called, record.returned.unwrap_or(record.called)));
        self.push(index, record, What::Wait(number), record.called);
        if let (Some(since), Some(wait)) = (record.waits_since, self.history.last_mut()) {
            wait.ended = Some(since);
        }
        // Two milliseconds for clocks that count whole ones.
        let span = timeout_ms.saturating_sub(2) * NANOSECONDS_PER_MS;
        let called = if timed_out { record.called + span } else { record.called };
        self.push(index, record, What::Leave(number), record.returned.map_or(called, |returned| called.min(returned)));
    }

    fn push(&mut self, index: usize, record: &Record, what: What, called: u64) {
        let place = self.history.len();
        let after = self.last_event.insert((record.client, record.connection), place);
        let step = Step { what, record: index };
        let ended = record.returned.or(record.gone);
        self.history.push(Event { step, called, ended, is_certain: record.returned.is_some(), after });
    }

    /// Operations, and those of them that overlap another client's.
    pub fn overlap(&self) -> (u64, u64) {
        let overlaps = |(client, called, returned): &(usize, u64, u64)| {
            self.spans.iter().any(|other| other.0 != *client && other.1 <= *returned && other.2 >= *called)
        };
        (self.spans.len() as u64, self.spans.iter().filter(|span| overlaps(span)).count() as u64)
    }

    /// The step for people.
    pub fn told(&self, step: &Step, records: &[Record]) -> String {
        let record = records[step.record].shown();
        match &step.what {
            What::Calls(..) => record,
            What::Expire(_) => format!("(at any time from then on) the deadline passes of: {record}"),
            What::Wait(_) => format!("(begins to wait) {record}"),
            What::Leave(_) => format!("(ends to wait) {record}"),
        }
    }

    /// Whether the list at `key` has elements.
    fn is_list(model: &mut Model, key: &str) -> bool {
        matches!(model.call(0, 0, &words(&format!("LLEN {key}"))), caswell_model::Value::Integer(1..))
    }

    /// Pops an element for a waiting client; whether that is what it was answered.
    fn serve(&self, model: &mut Model, waiter: &Waiter) -> bool {
        let element = model.call(0, 0, &words(&format!("{} {}", waiter.pop, waiter.key))).to_resp2();
        match &waiter.reply {
            None => true,
            Some(reply) => reply.elements().get(1).is_some_and(|answered| resp2(answered) == element),
        }
    }

    /// Gives elements to those who wait for them, first come, first served.
    fn serve_queue(&self, held: &mut Held) -> Option<()> {
        let mut at = 0;
        while at < held.queue.len() {
            let waiter = &self.waiters[&held.queue[at]];
            if Self::is_list(&mut held.model, &waiter.key) {
                self.serve(&mut held.model, waiter).then_some(())?;
                held.queue.remove(at);
            } else {
                at += 1;
            }
        }
        Some(())
    }

    /// Whether a key that is still there has been past its deadline for certain.
    fn overdue(&self, model: &mut Model, called: u64) -> bool {
        self.first_last_seen.is_some_and(|first| called > first)
            && self.keys.iter().any(|key| match deadline(model, key) {
                Some(number) => self.last_seen.get(&number).is_some_and(|last| called > *last),
                None => false,
            })
    }
}

/// The number of the step that gave the key its deadline.
fn deadline(model: &mut Model, key: &str) -> Option<usize> {
    match model.call(0, 0, &words(&format!("PEXPIRETIME {key}"))) {
        caswell_model::Value::Integer(number @ 1..) => usize::try_from(number).ok(),
        _ => None,
    }
}

impl Specification for Object {
    type State = Held;
    type Step = Step;

    fn apply(&self, state: &Held, step: &Step) -> Option<Held> {
        let mut held = state.clone();
        match &step.what {
            What::Calls(called, calls) => {
                if self.overdue(&mut held.model, *called) {
                    return None;
                }
                for Call { line, reply } in calls {
                    let answer = held.model.call(0, 0, line);
                    if reply.as_ref().is_some_and(|reply| *reply != answer.to_resp2()) {
                        return None;
                    }
                }
                self.serve_queue(&mut held)?;
            }
            What::Expire(number) => {
                let mut found = false;
                for key in &self.keys {
                    if deadline(&mut held.model, key) == Some(*number) {
                        held.model.call(0, 0, &words(&format!("DEL {key}")));
                        found = true;
                    }
                }
                // A step without an effect need not be tried.
                found.then_some(())?;
            }
            What::Wait(number) => {
                let waiter = &self.waiters[number];
                if !Self::is_list(&mut held.model, &waiter.key) {
                    held.queue.push(*number);
                } else if !self.serve(&mut held.model, waiter) {
                    return None;
                }
            }
            What::Leave(number) => {
                let waits = held.queue.iter().position(|waiting| waiting == number);
                match (&self.waiters[number].reply, waits) {
                    (Some(Value::NullArray) | None, Some(place)) => {
                        held.queue.remove(place);
                    }
                    (Some(Value::NullArray), None) | (Some(_), Some(_)) => return None,
                    (_, None) => {}
                }
            }
        }
        Some(held)
    }

    fn only_reads(&self, step: &Step) -> bool {
        match &step.what {
            What::Calls(_, calls) => calls.iter().all(Call::only_reads),
            // Who was served has left the queue already.
            What::Leave(number) => !matches!(self.waiters[number].reply, Some(Value::NullArray) | None),
            What::Expire(_) | What::Wait(_) => false,
        }
    }
}

impl Call {
    /// Whether a command with this answer has changed nothing.
    fn only_reads(&self) -> bool {
        const READS: [&[u8]; 8] = [b"GET", b"MGET", b"EXISTS", b"LLEN", b"LRANGE", b"STRLEN", b"TYPE", b"PTTL"];
        // These say by a zero or a null that there was nothing to do.
        const TELLING: [&[u8]; 11] = [
            b"DEL",
            b"SETNX",
            b"PEXPIREAT",
            b"PERSIST",
            b"RENAMENX",
            b"GETDEL",
            b"LPOP",
            b"RPOP",
            b"LMOVE",
            b"RPOPLPUSH",
            b"UNLINK",
        ];
        let name = self.line[0].as_slice();
        let failed = |reply: &Vec<u8>| {
            reply.starts_with(b"-")
                || TELLING.contains(&name) && [b":0\r\n".as_slice(), b"$-1\r\n"].contains(&reply.as_slice())
        };
        READS.contains(&name) || self.reply.as_ref().is_some_and(failed)
    }
}
