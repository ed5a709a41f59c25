//! Running sequences on three servers at once, looking at what they answer and at what they then hold, and shortening a sequence on
//! which they differ.

use crate::compare::{near, same};
use crate::exceptions;
use crate::lines::{Catalogue, Following, Line, Silence, comparable};
use crate::peer::{Client, Peer, Value, encode};

/// Command lines in one batch; replies to a batch are read after all of it was sent.
const BATCH: usize = 25;
/// Lines between two looks at the whole state.
const STATE_EVERY: usize = 50;
/// Databases whose state is compared.
const DATABASES: usize = 4;
/// Replays that shortening one sequence may cost.
const REPLAYS_MAX: usize = 250;

/// A difference between our reply and another server's.
#[derive(Clone, Debug)]
pub struct Difference {
    /// Index of the line after which it shows.
    pub at: usize,
    /// The other server.
    pub server: &'static str,
    /// The command; of a difference in the state, the question that showed it.
    pub subject: String,
    /// Where in the state it is; empty for a reply.
    pub place: String,
    /// Our reply.
    pub ours: Value,
    /// Theirs.
    pub theirs: Value,
}

impl Difference {
    /// Whether both are the same fault, as far as one can tell.
    pub fn resembles(&self, other: &Self) -> bool {
        let kind = |value: &Value| match value {
            Value::Error(text) => format!("-{}", String::from_utf8_lossy(text)),
            other => format!("{:?}", std::mem::discriminant(other)),
        };
        self.server == other.server
            && self.subject == other.subject
            && self.place.is_empty() == other.place.is_empty()
            && kind(&self.ours) == kind(&other.ours)
            && kind(&self.theirs) == kind(&other.theirs)
    }
}

/// Changes one of our replies, to show that the comparison sees it.
pub type Tamper = fn(&Line, Value) -> Value;

struct Side {
    peer: Peer,
    client: Client,
    /// The connection that sends what another than the sequence's own is to send, while that is waited for.
    other: Option<Client>,
}

impl Side {
    fn new(peer: Peer) -> Self {
        let client = peer.connect();
        Self { peer, client, other: None }
    }

    /// A connection that no CLIENT KILL of the sequence has seen.
    fn administrator(&self) -> Client {
        let mut administrator = self.peer.connect();
        administrator.call_words("AUTH secret");
        administrator
    }

    /// A new session on an empty server with the settings it started with.
    fn reset(&mut self, protocol: u8, authenticate: bool) {
        // The last sequence may have left commands without replies behind, and a queue. What the end of their connection ends is done before the next.
        for line in ["DISCARD", "CLIENT REPLY ON", "QUIT"] {
            self.client.send(&encode(&[line.split(' ').collect::<Vec<_>>()].concat()));
        }
        while !self.client.is_closed() {
            self.client.read();
        }
        self.client = self.peer.connect();
        let mut administrator = self.administrator();
        for line in ["FLUSHALL", "CONFIG SET lfu-log-factor 10 lfu-decay-time 1 maxmemory-samples 5 timeout 0"] {
            let reply = administrator.call_words(line);
            self.peer.assert_runs();
            assert_eq!(reply, Value::Simple(b"OK".to_vec()), "{}: {line}", self.peer.name);
        }
        if authenticate {
            self.client.call_words("AUTH secret");
        }
        self.client.call_words(&format!("HELLO {protocol}"));
    }

    /// Sends a batch, by another connection if that is asked for.
    fn send(&mut self, bytes: &[u8], by_other: bool) {
        self.other = by_other.then(|| self.administrator());
        self.other.as_mut().unwrap_or(&mut self.client).send(bytes);
    }

    /// Reads the replies to a batch. The connection may end on the way, and is then opened anew.
    fn replies(&mut self, silent: &[bool]) -> Vec<Value> {
        let mut missing = false;
        let mut read = |silent: &bool| match silent {
            true => Value::Null,
            // One wait is enough: what follows would be taken for the reply to an earlier command.
            false if missing => Value::Missing,
            false => {
                let reply = self.other.as_mut().unwrap_or(&mut self.client).read();
                missing = reply == Value::Missing;
                reply
            }
        };
        let replies = silent.iter().map(&mut read).collect();
        if self.client.is_closed() {
            self.peer.assert_runs();
            self.client = self.peer.connect();
        }
        replies
    }

    /// What the server holds: a name for each part of it, with a reply.
    fn state(&mut self) -> Vec<(String, &'static str, Value)> {
        let mut administrator = self.administrator();
        let mut state = Vec::new();
        for database in 0..DATABASES {
            administrator.call_words(&format!("SELECT {database}"));
            let size = administrator.call_words("DBSIZE");
            state.push((format!("database {database}"), "dbsize", size));
            let mut keys = administrator.call_words("KEYS *").elements();
            keys.sort();
            state.push((format!("database {database}"), "keys", Value::Array(keys.clone())));
            let mut questions: Vec<(&'static str, Vec<Vec<u8>>)> = Vec::new();
            for key in keys.iter().filter_map(|key| if let Value::Bulk(key) = key { Some(key) } else { None }) {
                let ask = |line: &str| {
                    line.split(' ')
                        .map(|word| if word == "K" { key.clone() } else { word.as_bytes().to_vec() })
                        .collect()
                };
                questions.push(("type", ask("TYPE K")));
                questions.push(("pexpiretime", ask("PEXPIRETIME K")));
                questions.push(("object|encoding", ask("OBJECT ENCODING K")));
                questions.push(("get", ask("GET K")));
                questions.push(("lrange", ask("LRANGE K 0 -1")));
            }
            let batch: Vec<u8> = questions.iter().flat_map(|(_, line)| encode(line)).collect();
            administrator.send(&batch);
            for (question, line) in questions {
                let reply = administrator.read();
                let key = line.iter().rev().find(|word| !matches!(&word[..], b"0" | b"-1")).expect("a key");
                state.push((
                    format!("database {database} key \"{}\"", key[..key.len().min(60)].escape_ascii()),
                    question,
                    reply,
                ));
            }
        }
        state
    }
}

/// Our server and those beside it.
pub struct Trio {
    ours: Side,
    others: Vec<Side>,
    /// Whether sessions begin authenticated.
    authenticate: bool,
    /// Which exceptions were needed.
    pub exceptions_used: Vec<bool>,
}

impl Trio {
    /// Starts the servers, each with `options`.
    pub fn start(options: &[&str], authenticate: bool) -> Self {
        let ours = Side::new(Peer::caswell(options));
        let others = vec![Side::new(Peer::redis(options)), Side::new(Peer::valkey(options))];
        Self { ours, others, authenticate, exceptions_used: vec![false; exceptions::ALL.len()] }
    }

    /// Runs a sequence, of which all is [`comparable`], from an empty state; the first unexplained difference, if any.
    pub fn run(
        &mut self,
        catalogue: &Catalogue,
        lines: &[Line],
        protocol: u8,
        tamper: Option<Tamper>,
    ) -> Option<Difference> {
        for side in std::iter::once(&mut self.ours).chain(&mut self.others) {
            side.reset(protocol, self.authenticate);
        }
        let (mut silence, mut following) = (Silence::default(), Following::default());
        let mut queued: Vec<&Line> = Vec::new();
        let mut done = 0;
        for batch in lines.chunk_by(|one, next| one.by_other == next.by_other).flat_map(|lines| lines.chunks(BATCH)) {
            let by_other = batch[0].by_other;
            let silent: Vec<bool> = batch.iter().map(|line| !by_other && silence.hides_reply_of(line)).collect();
            let bytes: Vec<u8> = batch.iter().flat_map(|line| encode(&line.words)).collect();
            for side in std::iter::once(&mut self.ours).chain(&mut self.others) {
                side.send(&bytes, by_other);
            }
            let mut ours = self.ours.replies(&silent);
            if let Some(tamper) = tamper {
                ours = batch.iter().zip(ours).map(|(line, reply)| tamper(line, reply)).collect();
            }
            let theirs: Vec<_> = self.others.iter_mut().map(|side| (side.peer.name, side.replies(&silent))).collect();
            for (index, line) in batch.iter().enumerate() {
                for (server, replies) in &theirs {
                    let difference = self.difference(catalogue, server, line, &queued, &ours[index], &replies[index]);
                    if let Some(difference) = difference {
                        return Some(Difference { at: done + index, ..difference });
                    }
                }
                if !by_other {
                    following.follow(line);
                    match ours[index] == Value::Simple(b"QUEUED".to_vec()) {
                        true => queued.push(line),
                        false if !following.queueing => queued.clear(),
                        false => {}
                    }
                }
            }
            assert!(
                !theirs.iter().any(|(_, replies)| replies.contains(&Value::Missing)),
                "a real server does not answer: {}",
                batch.iter().map(|line| line.show()).collect::<Vec<_>>().join("\n")
            );
            if ours.contains(&Value::Closed) {
                (silence, following) = (Silence::default(), Following::default());
                queued.clear();
            }
            let states_compared = done / STATE_EVERY;
            done += batch.len();
            if (done / STATE_EVERY > states_compared || done == lines.len())
                && let Some(difference) = self.compare_state(done - 1, &mut silence, &mut following)
            {
                return Some(difference);
            }
        }
        None
    }

    /// How replies to one line differ from each other, unless they may; `queued` is what EXEC runs.
    fn difference(
        &mut self,
        catalogue: &Catalogue,
        server: &'static str,
        line: &Line,
        queued: &[&Line],
        ours: &Value,
        theirs: &Value,
    ) -> Option<Difference> {
        let subject = &catalogue.subjects[line.command];
        if let (Value::Array(our), Value::Array(their)) = (ours, theirs)
            && subject.full_name == "exec"
            && [our.len(), their.len()] == [queued.len(); 2]
        {
            let mut replies = queued.iter().zip(our.iter().zip(their)).enumerate();
            return replies.find_map(|(index, (line, (our, their)))| {
                let difference = self.difference(catalogue, server, line, &[], our, their)?;
                Some(Difference { place: format!("reply {} of EXEC", index + 1), ..difference })
            });
        }
        let explained = is_newer_than(server, subject.row.since)
            || same(&subject.full_name, &line.words, ours, theirs)
            || self.excepts(server, &subject.full_name, ours, theirs);
        let subject = || subject.full_name.clone();
        (!explained).then(|| Difference {
            at: 0,
            server,
            subject: subject(),
            place: String::new(),
            ours: ours.clone(),
            theirs: theirs.clone(),
        })
    }

    fn excepts(&mut self, server: &str, command: &str, ours: &Value, theirs: &Value) -> bool {
        let found = exceptions::ALL.iter().position(|exception| exception.covers(server, command, ours, theirs));
        found.map(|index| self.exceptions_used[index] = true).is_some()
    }

    fn compare_state(&mut self, at: usize, silence: &mut Silence, following: &mut Following) -> Option<Difference> {
        if *silence != Silence::default() {
            // Commands without replies may still be under way: the reply to the last line says that they are done.
            if std::mem::take(following).queueing {
                for side in std::iter::once(&mut self.ours).chain(&mut self.others) {
                    side.client.send(&encode(&["DISCARD"]));
                }
            }
            *silence = Silence::default();
            let ours = self.ours.client.call_words("CLIENT REPLY ON");
            self.ours.peer.assert_runs();
            for side in &mut self.others {
                let theirs = side.client.call_words("CLIENT REPLY ON");
                if ours != theirs {
                    let (subject, place) = ("client|reply".to_owned(), "on".to_owned());
                    return Some(Difference { at, server: side.peer.name, subject, place, ours, theirs });
                }
            }
        }
        let ours = self.ours.state();
        for index in 0..self.others.len() {
            let server = self.others[index].peer.name;
            let theirs = self.others[index].state();
            for ((place, question, our), (_, _, their)) in ours.iter().zip(&theirs) {
                let near_deadlines = match (our, their) {
                    (Value::Integer(our), Value::Integer(their)) if *question == "pexpiretime" => {
                        near(*our, *their, 1_000)
                    }
                    _ => false,
                };
                if our != their && !near_deadlines && !self.excepts(server, question, our, their) {
                    let (subject, place) = ((*question).to_owned(), place.clone());
                    return Some(Difference { at, server, subject, place, ours: our.clone(), theirs: their.clone() });
                }
            }
        }
        None
    }

    /// A shorter sequence that still shows a difference like `difference`, with it.
    pub fn shorten(
        &mut self,
        catalogue: &Catalogue,
        lines: &[Line],
        protocol: u8,
        difference: Difference,
    ) -> (Vec<Line>, Difference) {
        let mut best = (lines[..=difference.at].to_vec(), difference.clone());
        let mut replays = 0;
        let mut size = best.0.len().div_ceil(2);
        while size > 0 && replays < REPLAYS_MAX {
            let mut from = 0;
            let mut removed = false;
            while from < best.0.len() && replays < REPLAYS_MAX {
                let mut candidate = best.0.clone();
                candidate.drain(from..(from + size).min(best.0.len()));
                let candidate = comparable(catalogue, &candidate);
                replays += 1;
                match self.run(catalogue, &candidate, protocol, None) {
                    Some(found) if found.resembles(&difference) => {
                        best = (candidate[..=found.at].to_vec(), found);
                        removed = true;
                    }
                    _ => from += size,
                }
            }
            if !removed {
                size /= 2;
            }
        }
        best
    }
}

/// Whether a server is from before the version that brought a command. Redis here is 7.0.
pub fn is_newer_than(server: &str, since: &str) -> bool {
    server == "redis" && !since.starts_with("7.0") && since.split('.').next().is_some_and(|major| major >= "7")
}
