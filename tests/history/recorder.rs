//! Real clients, each a thread with sockets of its own: they ask, and write down what they asked, when, and what was answered.
//!
//! The clients work in rounds. After each all are quiet: every answer was read, and whatever was asked over a connection that was given up has been done or
//! never will be. So a round's history is judged by itself.

use crate::operation::{Part, Record, Request, Unit, words};
use crate::peer::{Client as Socket, Peer, Value, encode};
use crate::workload::{
    BALLAST, Known, Target, Workload, ballast, flushes_all, growing_lists, is_stormy, registers, targets,
};
use std::sync::Barrier;
use std::time::{Duration, Instant};

/// Requests of one client and round at least.
const REQUESTS: usize = 40;
/// Requests that are sent before the first is answered, at most.
const DEPTHS: [usize; 8] = [1, 1, 1, 2, 2, 4, 8, 12];
/// Batches of which one is not waited for.
const GIVEN_UP_ONCE_IN: u64 = 150;
/// How long the server may take to notice that a client waits or has gone.
const PATIENCE: Duration = Duration::from_secs(20);

/// A connection and which worker serves it.
struct Connection {
    socket: Socket,
    number: usize,
    worker: usize,
    /// What the server calls it.
    id: String,
}

/// The connections' databases: one for the objects, one for the transactions that the search for cycles judges, which few flushes may empty, and again the
/// first for a client that waits while it does other things.
const DATABASES: [usize; 3] = [0, 1, 0];
/// The connection for that.
const WAITING: usize = 2;

/// One client.
pub struct Client<'s> {
    number: usize,
    server: &'s Peer,
    began: Instant,
    workload: Workload,
    connections: [Connection; DATABASES.len()],
    /// What was asked for on the connection that waits, when, and since when the server has known of it.
    waiting: Option<(Request, u64, u64)>,
    connected: usize,
    records: Vec<Record>,
}

impl<'s> Client<'s> {
    /// A client of the server; its choices follow from the seed and its number.
    pub fn new(server: &'s Peer, began: Instant, seed: u64, number: usize, known: Known) -> Self {
        let mut connected = 0..;
        let connections = DATABASES.map(|database| Connection::open(server, database, connected.next().unwrap_or(0)));
        let workload = Workload::new(seed, number, known);
        Self {
            number,
            server,
            began,
            workload,
            connections,
            waiting: None,
            connected: DATABASES.len(),
            records: Vec::new(),
        }
    }

    /// Asks for a round's requests, beginning together with all others, and gives the records.
    pub fn work(&mut self, round: u64, all: &Barrier) -> Vec<Record> {
        all.wait();
        if is_stormy(round) {
            for requests in self.workload.storm(round) {
                self.ask(0, requests);
            }
        }
        while self.records.len() < REQUESTS {
            if let Some((object, key, value)) = self.workload.exchange() {
                self.exchange(object, key, value);
                continue;
            }
            let connection = usize::from(!flushes_all(round) && self.workload.once_in(3));
            let depth = DEPTHS[self.workload.random.below(DEPTHS.len() as u64) as usize];
            let mut requests: Vec<Request> =
                (0..depth)
                    .map(|_| {
                        if connection == 0 { self.workload.on_objects(round) } else { self.workload.transaction(round) }
                    })
                    .collect();
            if let Some(alone) = requests.iter().position(Workload::stands_alone) {
                requests = vec![requests.swap_remove(alone)];
            } else if requests.iter().all(Workload::can_be_given_up) && self.workload.once_in(GIVEN_UP_ONCE_IN) {
                self.give_up(connection, requests);
                continue;
            }
            self.watch(connection, &requests[0]);
            self.ask(connection, requests);
        }
        if let Some((request, called, since)) = self.waiting.take() {
            let reply = self.read(WAITING, 1);
            self.record(WAITING, request, called, Some(reply));
            self.records.last_mut().expect("it was just recorded").waits_since = Some(since);
        }
        std::mem::take(&mut self.records)
    }

    /// Begins to wait for an element, until the `observer` sees that it does.
    pub fn begin_to_wait(&mut self, observer: &mut Self) {
        let request = self.workload.long_take();
        let called = self.now();
        self.connections[WAITING].socket.send(&bytes_of(std::slice::from_ref(&request)));
        let about = format!("CLIENT LIST ID {}", self.connections[WAITING].id);
        let socket = &mut observer.connections[0].socket;
        wait_until("a client to be known to wait", || {
            let text = socket.call_words(&about).text();
            text.split(' ').any(|field| field.strip_prefix("flags=").is_some_and(|flags| flags.contains('b')))
        });
        self.waiting = Some((request, called, self.now()));
    }

    fn now(&self) -> u64 {
        self.began.elapsed().as_nanos() as u64
    }

    /// Before some transactions: watches a key that others write often, so that some are refused.
    fn watch(&mut self, connection: usize, request: &Request) {
        if let Request::Transaction(parts, Unit::Exec) = request
            && self.workload.once_in(3)
        {
            self.connections[connection].socket.call(&words(&format!("WATCH {}", parts[0].key())));
        }
    }

    /// Sends the requests in one piece and reads their replies.
    fn ask(&mut self, connection: usize, requests: Vec<Request>) {
        let bytes = bytes_of(&requests);
        let called = self.now();
        self.connections[connection].socket.send(&bytes);
        for request in requests {
            let reply = self.read(connection, request.replies());
            self.record(connection, request, called, Some(reply));
        }
        if self.connections[connection].socket.is_closed() {
            self.connect_anew(connection);
        }
    }

    /// The last of some replies.
    fn read(&mut self, connection: usize, count: usize) -> Value {
        let socket = &mut self.connections[connection].socket;
        (0..count).map(|_| socket.read()).last().expect("a request has a line")
    }

    fn record(&mut self, connection: usize, request: Request, called: u64, reply: Option<Value>) {
        let returned = reply.is_some().then(|| self.now());
        let Connection { number, worker, .. } = self.connections[connection];
        self.records.push(Record {
            client: self.number,
            connection: number,
            worker,
            request,
            waits_since: None,
            called,
            returned,
            gone: None,
            reply,
        });
    }

    /// Sends the requests, and closes the connection without waiting for replies.
    fn give_up(&mut self, connection: usize, requests: Vec<Request>) {
        let bytes = bytes_of(&requests);
        let called = self.now();
        self.connections[connection].socket.send(&bytes);
        for request in requests {
            self.record(connection, request, called, None);
        }
        self.connect_anew(connection);
    }

    /// Replaces a connection, and waits until the server has let go of it.
    fn connect_anew(&mut self, connection: usize) {
        let new = Connection::open(self.server, DATABASES[connection], self.connected);
        self.connected += 1;
        let Connection { socket, number, id, .. } = std::mem::replace(&mut self.connections[connection], new);
        drop(socket);
        let socket = &mut self.connections[connection].socket;
        let about = format!("CLIENT LIST ID {id}");
        wait_until("a closed connection to be gone", || socket.call_words(&about).text().is_empty());
        let now = self.now();
        let unanswered = |record: &&mut Record| record.connection == number && record.returned.is_none();
        self.records.iter_mut().filter(unanswered).for_each(|record| record.gone = Some(now));
    }

    /// Sets a key if nobody changed it since it was read.
    fn exchange(&mut self, object: usize, key: String, value: String) {
        let (watch, get) = (words(&format!("WATCH {key}")), words(&format!("GET {key}")));
        let called = self.now();
        self.connections[0].socket.send(&[encode(&watch), encode(&get)].concat());
        let read = self.read(0, 2);
        self.record(0, Request::Command(object, get), called, Some(read.clone()));
        let read = match read {
            Value::Bulk(text) => Some(text),
            _ => None,
        };
        self.ask(0, vec![Request::Exchange(object, key, read, value)]);
    }

    /// Once all clients are quiet: waits until the server has let go of connections that were given up, and reads every key.
    pub fn look_at_all(&mut self, round: u64, clients: usize) -> Vec<Record> {
        let connections = (DATABASES.len() * (clients + 1)) as u64;
        let socket = &mut self.connections[0].socket;
        wait_until("closed connections to be gone", || {
            information(socket, "clients", "connected_clients") == connections
        });
        for (object, target) in targets().iter().enumerate() {
            self.look_at(object, target);
        }
        let mut transactions: Vec<Request> = growing_lists(round)
            .into_iter()
            .map(|key| Request::Transaction(vec![Part::List(key)], Unit::Command))
            .collect();
        let registers = registers(round).into_iter().map(Part::Read).collect();
        transactions.push(Request::Transaction(registers, Unit::Command));
        self.ask(1, transactions);
        std::mem::take(&mut self.records)
    }

    fn look_at(&mut self, object: usize, target: &Target) {
        for key in &target.keys {
            self.ask(0, vec![Request::Command(object, words(&format!("TYPE {key}")))]);
            let line = match self.records.last().and_then(|record| record.reply.as_ref()).map(Value::text).as_deref() {
                Some("list") => format!("LRANGE {key} 0 -1"),
                Some("string") => format!("GET {key}"),
                // It may be gone because its deadline passed just now; then this says so too.
                _ => format!("EXISTS {key}"),
            };
            self.ask(0, vec![Request::Command(object, words(&line))]);
        }
    }

    /// Empties both databases, by commands of several kinds, and makes the ballast that the next round may need.
    pub fn empty(&mut self, round: u64) {
        let keys: Vec<String> =
            targets().iter().flat_map(|target| target.keys.clone()).chain([BALLAST.to_owned()]).collect();
        let line = match round % 4 {
            0 => "FLUSHALL".to_owned(),
            1 => format!("UNLINK {}", keys.join(" ")),
            _ => format!("DEL {}", keys.join(" ")),
        };
        self.connections[0].socket.call(&words(&line));
        let old: Vec<String> = [growing_lists(round), registers(round)].concat();
        self.connections[1].socket.call(&words(&format!("DEL {}", old.join(" "))));
        if let Some(line) = ballast(round + 1) {
            self.connections[0].socket.call(&line);
        }
    }
}

impl Connection {
    fn open(server: &Peer, database: usize, number: usize) -> Self {
        let mut socket = server.connect();
        if database != 0 {
            socket.call(&words(&format!("SELECT {database}")));
        }
        let about = socket.call_words("CLIENT INFO").text();
        let field = |name: &str| about.split_whitespace().find_map(|field| field.strip_prefix(name)).unwrap_or("");
        // Other servers may not tell.
        let worker = field("io-thread=").parse().unwrap_or(0);
        Self { socket, number, worker, id: field("id=").to_owned() }
    }
}

/// Waits until the condition holds.
fn wait_until(what: &str, mut condition: impl FnMut() -> bool) {
    let began = Instant::now();
    while !condition() {
        assert!(began.elapsed() < PATIENCE, "violation: waited in vain for {what}");
        std::thread::yield_now();
    }
}

fn bytes_of(requests: &[Request]) -> Vec<u8> {
    requests.iter().flat_map(Request::lines).flat_map(|line| encode(&line)).collect()
}

/// A figure of INFO.
pub fn information(socket: &mut Socket, section: &str, name: &str) -> u64 {
    let text = socket.call_words(&format!("INFO {section}")).text();
    let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    line.and_then(|value| value.parse().ok()).unwrap_or_else(|| panic!("INFO {section} has no {name}: {text}"))
}

/// Which commands the server has.
pub fn known(socket: &mut Socket) -> Known {
    let mut knows = |line: &str| socket.call_words(line).elements().iter().all(|about| !about.elements().is_empty());
    Known {
        exec: knows("COMMAND INFO MULTI EXEC WATCH"),
        script: knows("COMMAND INFO EVAL"),
        take: knows("COMMAND INFO BLPOP BRPOP"),
    }
}
