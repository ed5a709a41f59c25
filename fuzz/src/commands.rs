//! Do commands, run through the real table of commands, transactions and store, answer as the naive model does?

use caswell::clock::Clock;
use caswell::command::args::Args;
use caswell::command::error::CommandError;
use caswell::command::family::FAMILIES;
use caswell::command::spec::Handler;
use caswell::command::table::Table;
use caswell::resp::{Protocol, Reply};
use caswell::store::{Store, StoreOptions, Worker};
use caswell::txn::{RuntimeLimits, Scratch, Transaction};
use caswell_model::{Model, QUICK_SPANS_MS, STEP_BYTES, Step, steps};

const DATABASES: usize = 2;
const START_MS: i64 = 1_700_000_000_000;

/// The first frame sets the machinery (seeds of the hash, how often sections are renewed), the others are steps.
pub fn run(bytes: &[u8]) {
    let Some((machinery, bytes)) = bytes.split_at_checked(STEP_BYTES) else { return };
    let seed = u64::from_le_bytes(machinery[..8].try_into().expect("eight bytes"));
    let renew_every = 1 + usize::from(machinery[8] % 8);
    let store = Store::new(StoreOptions {
        databases: DATABASES,
        workers_max: 1,
        clock: Clock::manual(START_MS),
        hash_seeds: Some([seed, 1, 2, 3]),
    });
    let worker = Worker::register(&store).expect("one slot is free");
    let mut server = Server { worker: &worker, table: Table::new(FAMILIES), scratch: Scratch::default() };
    let mut model = Model::new(DATABASES);
    let mut now_ms = START_MS;
    let mut slice: Vec<(usize, Vec<Vec<u8>>)> = Vec::new();
    for step in steps(bytes, START_MS, QUICK_SPANS_MS) {
        match step {
            Step::Command { database, words } => slice.push((database, words)),
            Step::Wait(wait_ms) => {
                server.run(&mut slice, &mut model, now_ms);
                now_ms += wait_ms;
                store.clock().set(now_ms);
                worker.tick();
            }
        }
        if slice.len() == renew_every {
            server.run(&mut slice, &mut model, now_ms);
        }
    }
    server.run(&mut slice, &mut model, now_ms);
    for database in 0..DATABASES {
        server.compare_keys(database, &mut model, now_ms);
    }
}

struct Server<'w> {
    worker: &'w Worker,
    table: Table,
    scratch: Scratch,
}

impl Server<'_> {
    /// Runs the commands of one slice in one section, as the dispatcher does with a pipelined batch.
    fn run(&mut self, slice: &mut Vec<(usize, Vec<Vec<u8>>)>, model: &mut Model, now_ms: i64) {
        let mut tx = Transaction::new(self.worker, &mut self.scratch, 0, RuntimeLimits::default());
        for (database, words) in slice.drain(..) {
            let expected = model.call(now_ms, database, &words).to_resp2();
            tx.select(database);
            let actual = call(&self.table, &mut tx, &words);
            assert!(
                expected == actual,
                "database {database}: {}\nmodel:   {}\ncaswell: {}",
                words.iter().map(|word| format!("\"{}\"", word.escape_ascii())).collect::<Vec<_>>().join(" "),
                expected.escape_ascii(),
                actual.escape_ascii()
            );
        }
    }

    /// Both have the same keys, found one by one and by KEYS.
    fn compare_keys(&mut self, database: usize, model: &mut Model, now_ms: i64) {
        // The model forgets expired keys when a command runs.
        model.call(now_ms, database, &[b"exists".to_vec(), b"k".to_vec()]);
        let mut tx = Transaction::new(self.worker, &mut self.scratch, database, RuntimeLimits::default());
        let expected: Vec<Vec<u8>> = model.keys(database).map(<[u8]>::to_vec).collect();
        let listing = call(&self.table, &mut tx, &[b"keys".to_vec(), b"*".to_vec()]);
        let mut found = bulks_in(&listing);
        found.sort();
        let shown = |keys: &[Vec<u8>]| keys.iter().map(|key| key.escape_ascii().to_string()).collect::<Vec<_>>();
        assert_eq!(shown(&found), shown(&expected), "KEYS, database {database}");
    }
}

/// The elements of a reply that is an array of bulk strings.
fn bulks_in(mut reply: &[u8]) -> Vec<Vec<u8>> {
    let count = number_line(&mut reply);
    let mut element = || {
        let length = number_line(&mut reply);
        let (element, rest) = reply.split_at(length);
        reply = &rest[2..];
        element.to_vec()
    };
    (0..count).map(|_| element()).collect()
}

/// Takes a line off the reply's beginning: a byte that tells the kind, then a number.
fn number_line(reply: &mut &[u8]) -> usize {
    let end = reply.windows(2).position(|pair| pair == b"\r\n").expect("a line ends");
    let number = std::str::from_utf8(&reply[1..end]).ok().and_then(|text| text.parse().ok());
    *reply = &reply[end + 2..];
    number.expect("a line has a number")
}

/// One command, looked up, checked and committed; its reply's bytes.
fn call(table: &Table, tx: &mut Transaction<'_>, words: &[Vec<u8>]) -> Vec<u8> {
    let items: Vec<&[u8]> = words.iter().map(Vec::as_slice).collect();
    let args = Args::new(&items);
    let mut reply = Reply::new(Protocol::Resp2);
    let result = match table.resolve(&args) {
        Err(error) => Err(error),
        Ok(command) => match command.row.handler {
            Handler::Data(handler) => tx.run(|tx| {
                reply.clear();
                handler(tx, &args, &mut reply)
            }),
            _ => Err(CommandError::SYNTAX),
        },
    };
    if let Err(error) = result {
        reply.clear();
        reply.error(&error);
    }
    reply.to_vec()
}
