//! Does every client get its share of a hot key? Thirty-two clients over sockets, each with one request in flight, for ten seconds a scene: counts must
//! be exact, and the slowest client should do at least a third of what the median client does.
//!
//!     cargo bench --bench fairness

use caswell::command::{family::FAMILIES, table::Table};
use caswell::config::Settings;
use caswell::config::load::{Sources, load};
use caswell::net::{Listeners, serve};
use caswell::server::{Server, ShutdownRequest};
use caswell::sync::Arc;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::time::{Duration, Instant};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const CLIENTS: usize = 32;
const SCENE: Duration = Duration::from_secs(10);
/// Keys of the large transaction.
const MANY: usize = 50;
const SERVER_THREADS: &str = "threads 2\n";

/// A connection that sends requests given as words.
struct Client {
    stream: BufReader<TcpStream>,
}

impl Client {
    fn connect(address: SocketAddr) -> Self {
        let stream = TcpStream::connect(address).expect("the server listens");
        stream.set_nodelay(true).expect("a socket option");
        Self { stream: BufReader::new(stream) }
    }

    /// Sends the requests in one write and reads all replies; gives the last one's integers, or its bytes where it is a string.
    fn call(&mut self, requests: &[Vec<String>]) -> Vec<i64> {
        let mut bytes = Vec::new();
        for words in requests {
            let _ = write!(bytes, "*{}\r\n", words.len());
            words.iter().for_each(|word| drop(write!(bytes, "${}\r\n{word}\r\n", word.len())));
        }
        self.stream.get_mut().write_all(&bytes).expect("the server reads");
        let mut last = Vec::new();
        for _ in requests {
            last.clear();
            self.reply(&mut last);
        }
        last
    }

    fn reply(&mut self, integers: &mut Vec<i64>) {
        let mut line = String::new();
        self.stream.read_line(&mut line).expect("the server replies");
        let (kind, rest) = line.trim_end().split_at(1);
        match kind {
            ":" => integers.push(rest.parse().expect("an integer")),
            "*" => (0..rest.parse().expect("a count")).for_each(|_: usize| self.reply(integers)),
            "$" => {
                let mut text = vec![0; rest.parse::<usize>().expect("a string") + 2];
                self.stream.read_exact(&mut text).expect("the server replies");
                integers.extend(String::from_utf8_lossy(&text).trim().parse::<i64>());
            }
            "+" => {}
            _ => panic!("unexpected reply {line}"),
        }
    }
}

fn words(line: &str) -> Vec<String> {
    line.split(' ').map(str::to_owned).collect()
}

/// What one client repeats, and by how much that adds to the sum of all keys.
struct Role {
    requests: Vec<Vec<String>>,
    adds: i64,
}

fn scene(name: &str, roles: Vec<Role>, keys: &[String]) {
    let (settings, mut table) = (Settings::new(), Table::new(FAMILIES));
    let sources = Sources { options: SERVER_THREADS.as_bytes().to_vec(), ..Sources::default() };
    load(&settings, &sources, &mut table).expect("a valid configuration");
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = listener.local_addr().expect("a bound socket");
    let server = Arc::new(Server::new(settings, table));
    let shared = Arc::clone(&server);
    let serving =
        std::thread::spawn(move || serve(shared, Listeners::default().with_tcp(listener), std::future::pending()));
    let end = Instant::now() + SCENE;
    let adds: Vec<i64> = roles.iter().map(|role| role.adds).collect();
    let counts: Vec<i64> = std::thread::scope(|scope| {
        let clients: Vec<_> = roles
            .iter()
            .map(|role| {
                scope.spawn(move || {
                    let mut client = Client::connect(address);
                    let mut rounds = 0;
                    while Instant::now() < end {
                        client.call(&role.requests);
                        rounds += 1;
                    }
                    rounds
                })
            })
            .collect();
        clients.into_iter().map(|client| client.join().expect("a client ends")).collect()
    });
    let get_all = std::iter::once("MGET".to_owned()).chain(keys.iter().cloned()).collect();
    let total: i64 = Client::connect(address).call(&[get_all]).iter().sum();
    let expected: i64 = counts.iter().zip(&adds).map(|(rounds, adds)| rounds * adds).sum();
    let statistics = server.store_statistics();
    server.shutdown.request(ShutdownRequest::default());
    let _ = serving.join();
    let mut sorted = counts.clone();
    sorted.sort_unstable();
    let (worst, median) = (sorted[0], sorted[CLIENTS / 2]);
    println!(
        "{name}: worst client {worst}, median {median} ({:.2}), best {}; sum {total}, expected {expected}; {} conflicts, {} aborts, {} elders",
        worst as f64 / median as f64,
        sorted[CLIENTS - 1],
        statistics.conflicts,
        statistics.aborts,
        statistics.elders
    );
    assert_eq!(total, expected, "an increment was lost or doubled");
}

fn main() {
    let hot = ["hot".to_owned()];
    let transaction = || ["MULTI", "INCR hot", "INCR hot", "EXEC"].map(words).to_vec();
    let same = |requests: &dyn Fn() -> Vec<Vec<String>>, adds| {
        (0..CLIENTS).map(|_| Role { requests: requests(), adds }).collect::<Vec<_>>()
    };
    scene("MULTI INCR INCR EXEC", same(&transaction, 2), &hot);
    if Table::new(FAMILIES).find(b"eval").is_some() {
        let script = || vec!["EVAL".into(), "return redis.call('incr', KEYS[1])".into(), "1".into(), "hot".into()];
        let mixed = (0..CLIENTS).map(|number| {
            let request = if number % 2 == 0 { script() } else { words("INCR hot") };
            Role { requests: vec![request], adds: 1 }
        });
        scene("EVAL against INCR", mixed.collect(), &hot);
    }
    let many: Vec<String> = (0..MANY).map(|number| format!("key{number}")).collect();
    let mut large = vec![words("MULTI")];
    large.extend(many.iter().map(|key| words(&format!("INCR {key}"))));
    large.push(words("EXEC"));
    let mut roles = vec![Role { requests: large, adds: MANY as i64 }];
    roles.extend(
        (1..CLIENTS).map(|number| Role { requests: vec![words(&format!("INCR key{}", number % MANY))], adds: 1 }),
    );
    scene("one EXEC of 50 keys against 31 INCRs", roles, &many);
}
