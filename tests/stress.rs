//! Real threads on one store, through the real commands: nothing is lost, doubled or torn, and every kind of interference has happened.
//!
//! The run goes on until the store has counted conflicts, aborts, elders, gates and growths, and for a minimum of rounds; how many of each is
//! printed. `CASWELL_STRESS_SECONDS` makes it longer.

use caswell::command::args::Args;
use caswell::command::family::FAMILIES;
use caswell::command::spec::Handler;
use caswell::command::table::Table;
use caswell::resp::{Protocol, Reply};
use caswell::store::{Store, StoreOptions, StoreStatistics, Worker};
use caswell::sync::{Arc, AtomicBool, Ordering, thread};
use caswell::txn::{RuntimeLimits, Scratch, Transaction};
use caswell::types::{NewRoot, View};
use std::collections::HashMap;
use std::time::{Duration, Instant};

/// More than the cores, so that threads are taken off the processor in the midst of their commits.
const THREADS: usize = 4;
/// Rounds of each thread at least.
const ROUNDS_MIN: usize = 1_000;
/// How long to wait for rare kinds of interference.
const PATIENCE: Duration = Duration::from_secs(60);
/// Keys of each MSET: enough for commits to meet half-way.
const SPAN: usize = 24;
/// Times that a slow increment lets others run.
const YIELDS: usize = 8;
/// The database in which tables grow and are flushed.
const SCRATCH_DATABASE: usize = 1;

#[test]
fn nothing_is_lost_doubled_or_torn() {
    let store = Store::new(StoreOptions { databases: 2, workers_max: THREADS + 1, ..StoreOptions::default() });
    let observer = Worker::register(&store).expect("a slot is free");
    let stop = Arc::new(AtomicBool::new(false));
    let threads: Vec<_> = (0..THREADS)
        .map(|number| {
            let (store, stop) = (Arc::clone(&store), Arc::clone(&stop));
            thread::spawn(move || work(&store, number, &stop))
        })
        .collect();
    let seconds = std::env::var("CASWELL_STRESS_SECONDS").ok().and_then(|text| text.parse().ok()).unwrap_or(2);
    let (least, most) = (Duration::from_secs(seconds), Duration::from_secs(seconds).max(PATIENCE));
    let started = Instant::now();
    while started.elapsed() < least || (!all_kinds(store.statistics()) && started.elapsed() < most) {
        if threads.iter().any(|thread| thread.is_finished()) {
            break;
        }
        thread::yield_now();
        observer.tick();
    }
    // Relaxed: only says when to stop; the join orders everything else.
    stop.store(true, Ordering::Relaxed);
    let done: Vec<Done> = threads.into_iter().map(|thread| thread.join().expect("no thread fails")).collect();

    let statistics = store.statistics();
    println!(
        "{} rounds: {} conflicts, {} aborts, {} elders, {} gates, {} growths, {} multi-word commits",
        done.iter().map(|one| one.rounds).sum::<usize>(),
        statistics.conflicts,
        statistics.aborts,
        statistics.elders,
        statistics.gates,
        statistics.growths,
        statistics.multi_commits,
    );
    let mut client = Client::new(&observer);
    let increments: usize = done.iter().map(|one| one.increments).sum();
    assert_eq!(client.call(0, &["GET", "counter"]), bulk(&increments.to_string()), "an INCR was lost");

    // Each element that was pushed was popped once, or is still there once.
    let mut places: HashMap<String, i64> = HashMap::new();
    for element in done.iter().flat_map(|one| one.pushed.iter()) {
        *places.entry(element.clone()).or_default() += 1;
    }
    let left = ["list", "other"].map(|list| bulks(&client.call(0, &["LRANGE", list, "0", "-1"])));
    for element in done.iter().flat_map(|one| one.popped.iter()).chain(left.iter().flatten()) {
        *places.entry(element.clone()).or_default() -= 1;
    }
    places.retain(|_, balance| *balance != 0);
    assert!(places.is_empty(), "elements lost (1) or doubled (-1): {places:?}");
    assert!(all_kinds(statistics), "some kind of interference never happened: {statistics:?}");
}

/// Whether every kind of interference has happened.
fn all_kinds(statistics: StoreStatistics) -> bool {
    let StoreStatistics { conflicts, aborts, elders, gates, growths, .. } = statistics;
    [conflicts, aborts, elders, gates, growths].iter().all(|count| *count > 0)
}

/// What one thread did.
#[derive(Default)]
struct Done {
    rounds: usize,
    increments: usize,
    pushed: Vec<String>,
    popped: Vec<String>,
}

fn work(store: &Arc<Store>, number: usize, stop: &AtomicBool) -> Done {
    let worker = Worker::register(store).expect("a slot is free");
    let mut client = Client::new(&worker);
    let mut done = Done::default();
    let keys: Vec<String> = (0..SPAN).map(|key| format!("span:{key}")).collect();
    // Relaxed: only says when to stop.
    while done.rounds < ROUNDS_MIN || !stop.load(Ordering::Relaxed) {
        let round = done.rounds;
        let mark = format!("{number}:{round}");
        if round % 32 == 0 {
            client.increment_slowly("counter");
        } else {
            client.call(0, &["INCR", "counter"]);
        }
        done.increments += 1;

        // Half of the threads go through the keys the other way round.
        let mut mset = vec!["MSET"];
        let ordered: Vec<&String> =
            if number.is_multiple_of(2) { keys.iter().collect() } else { keys.iter().rev().collect() };
        ordered.iter().for_each(|key| mset.extend([key.as_str(), mark.as_str()]));
        client.call(0, &mset);
        let mut mget = vec!["MGET"];
        mget.extend(keys.iter().map(String::as_str));
        let seen = bulks(&client.call(0, &mget));
        assert!(seen.len() == SPAN && seen.iter().all(|value| *value == seen[0]), "MGET saw a torn MSET: {seen:?}");

        let (push, pop) = if round % 3 == 0 { ("LPUSH", "RPOP") } else { ("RPUSH", "LPOP") };
        client.call(0, &[push, "list", &mark]);
        done.pushed.push(mark.clone());
        client.call(0, &["LMOVE", "list", "other", "LEFT", "RIGHT"]);
        if round % 2 == 0 {
            client.call(0, &["RPOPLPUSH", "other", "list"]);
        }
        done.popped.extend(bulks(&client.call(0, &[pop, ["list", "other"][round % 2], "2"])));

        client.call(SCRATCH_DATABASE, &["SET", &format!("fresh:{mark}"), "x"]);
        if round % 512 == 511 {
            worker.flush(Some(SCRATCH_DATABASE));
        }
        if round % 16 == 0 {
            worker.tick();
        }
        done.rounds += 1;
    }
    done
}

/// Runs commands of one thread.
struct Client<'w> {
    worker: &'w Worker,
    table: Table,
    scratch: Scratch,
}

impl<'w> Client<'w> {
    fn new(worker: &'w Worker) -> Self {
        Self { worker, table: Table::new(FAMILIES), scratch: Scratch::default() }
    }

    /// Runs one command in a section of its own and gives its reply, which is no error.
    fn call(&mut self, database: usize, words: &[&str]) -> String {
        let items: Vec<&[u8]> = words.iter().map(|word| word.as_bytes()).collect();
        let args = Args::new(&items);
        let command = self.table.resolve(&args).expect("the command is known");
        let Handler::Data(handler) = command.row.handler else { panic!("{} is no data command", words[0]) };
        let mut reply = Reply::new(Protocol::Resp2);
        let mut tx = Transaction::new(self.worker, &mut self.scratch, database, RuntimeLimits::default());
        let result = tx.run(|tx| {
            reply.clear();
            handler(tx, &args, &mut reply)
        });
        result.unwrap_or_else(|error| panic!("{words:?}: {error:?}"));
        String::from_utf8(reply.to_vec()).expect("these replies are text")
    }

    /// An INCR that lets other threads in between its reading and its writing, and so loses until it is the elder.
    fn increment_slowly(&mut self, name: &str) {
        let mut tx = Transaction::new(self.worker, &mut self.scratch, 0, RuntimeLimits::default());
        tx.run(|tx| {
            let key = tx.open(name.as_bytes());
            let number = match tx.root(key).and_then(|root| root.view()) {
                Some(View::Integer(number)) => number,
                _ => 0,
            };
            for _ in 0..YIELDS {
                thread::yield_now();
            }
            tx.set(key, NewRoot::integer(number + 1, None));
        });
    }
}

fn bulk(text: &str) -> String {
    format!("${}\r\n{text}\r\n", text.len())
}

/// The elements of an array of bulk strings without line ends in them; none for a null.
fn bulks(reply: &str) -> Vec<String> {
    let mut lines = reply.split("\r\n");
    let header = lines.next().expect("a reply has a line");
    assert!(header.starts_with('*'), "no array: {reply}");
    lines.filter(|line| !line.is_empty() && !line.starts_with('$')).map(str::to_owned).collect()
}
