//! Runs command lines on a store of their own and compares the replies with recorded ones.
//!
//! The case files beside this one hold lines of three kinds: `# title` begins a case on an empty store, `> command line` runs a command
//! (arguments may be quoted as in the inline protocol), and `= reply` is the expected reply with `|` for each line end and `\` before what
//! cannot be printed. The line `> HELLO3` switches to RESP3. The replies are what Redis answers: 7.0.15, and Redis 8.2 where 7.0.15 is known to
//! differ from 7.2 (counts of -2^63 in LREM and LPOS).

use crate::clock::Clock;
use crate::command::args::Args;
use crate::command::family::FAMILIES;
use crate::command::spec::{Handler, Row};
use crate::command::table::Table;
use crate::resp::{Batch, DecodeLimits, Decoder, Protocol, Reply};
use crate::store::{Store, StoreOptions, Worker};
use crate::sync::Arc;
use crate::txn::{RuntimeLimits, Scratch, Transaction};

/// When tests begin, in milliseconds of Unix time.
pub(super) const START_MS: i64 = 1_800_000_000_000;

/// A client with a server of its own.
pub(super) struct Client {
    store: Arc<Store>,
    worker: Worker,
    scratch: Scratch,
    table: Table,
    pub(super) limits: RuntimeLimits,
    pub(super) protocol: Protocol,
    database: usize,
}

impl Client {
    pub(super) fn new() -> Self {
        let store = Store::new(StoreOptions { clock: Clock::manual(START_MS), ..StoreOptions::default() });
        Self {
            worker: Worker::register(&store).expect("a free slot"),
            store,
            scratch: Scratch::default(),
            table: Table::new(FAMILIES),
            limits: RuntimeLimits::default(),
            protocol: Protocol::Resp2,
            database: 0,
        }
    }

    /// Sets the clock to so many milliseconds after the start.
    pub(super) fn set_time(&self, ms: i64) {
        self.store.clock().set(START_MS + ms);
    }

    /// The store's figures.
    pub(super) fn statistics(&self) -> crate::store::StoreStatistics {
        self.store.statistics()
    }

    /// Runs one command line as the dispatcher does and shows the reply as case files do.
    pub(super) fn run(&mut self, line: &str) -> String {
        let words = words_of(line);
        self.run_args(&words.iter().map(Vec::as_slice).collect::<Vec<_>>())
    }

    /// As [`run`](Self::run), in another database.
    pub(super) fn run_in(&mut self, database: usize, line: &str) -> String {
        let before = std::mem::replace(&mut self.database, database);
        let reply = self.run(line);
        self.database = before;
        reply
    }

    /// As [`run`](Self::run), from arguments.
    pub(super) fn run_args(&mut self, items: &[&[u8]]) -> String {
        self.run_together(&[Args::new(items)]).remove(0)
    }

    /// Runs command lines in one transaction, one after the other, and shows their replies.
    fn run_together(&mut self, lines: &[Args<'_>]) -> Vec<String> {
        let mut tx = Transaction::new(&self.worker, &mut self.scratch, self.database, self.limits);
        tx.run(|tx| lines.iter().map(|args| answer(&self.table, tx, args, self.protocol)).collect())
    }
}

/// Runs one command in a transaction and shows its reply.
fn answer(table: &Table, tx: &mut Transaction<'_>, args: &Args<'_>, protocol: Protocol) -> String {
    let mut reply = Reply::new(protocol);
    let result = table.resolve(args).and_then(|command| match command.row.handler {
        Handler::Data(handler) => handler(tx, args, &mut reply),
        _ => panic!("{} is no data command", command.full_name),
    });
    if let Err(error) = result {
        reply.clear();
        reply.error(&error);
    }
    show(&reply.to_vec())
}

/// The arguments of a command line, which may be quoted.
fn words_of(line: &str) -> Vec<Vec<u8>> {
    let mut input = format!("{line}\r\n").into_bytes();
    let mut batch = Batch::default();
    let limits = DecodeLimits { bulk_bytes_max: usize::MAX, authenticated: true, commands_max: usize::MAX };
    Decoder::default().decode(&mut input, &limits, &mut batch);
    assert_eq!(batch.len(), 1, "{line:?} is no command line");
    batch.arguments(0).iter().map(|span| span.of(&input).to_vec()).collect()
}

/// A reply in one line: `|` for a line end, `\` before what cannot be printed.
fn show(reply: &[u8]) -> String {
    let mut shown = String::new();
    for byte in reply {
        match byte {
            b'\\' => shown.push_str("\\\\"),
            b'\r' | b'\n' | b' '..=b'~' => shown.push(char::from(*byte)),
            _ => shown.push_str(&format!("\\x{byte:02x}")),
        }
    }
    let shown = shown.replace("\r\n", "|").replace('\n', "\\n").replace('\r', "\\r");
    shown.strip_suffix('|').expect("a reply ends with a line end").to_owned()
}

/// Runs a case file, which must have a command line for each of the rows.
pub(super) fn check(rows: &[Row], cases: &str) {
    for row in rows {
        let command = format!("> {}", row.name.to_ascii_uppercase());
        let tested = cases.lines().any(|line| line.split(' ').take(2).eq(command.split(' ')));
        assert!(tested, "{} has no case", row.name);
    }
    let mut client = Client::new();
    let mut title = "";
    let mut reply = None;
    let mut failures = String::new();
    for (index, line) in cases.lines().enumerate() {
        match line.split_at_checked(2) {
            Some(("# ", text)) => {
                client = Client::new();
                title = text;
            }
            Some(("> ", "HELLO3")) => client.protocol = Protocol::Resp3,
            Some(("> ", command)) => reply = Some((command, client.run(command))),
            Some(("= ", expected)) => {
                let (command, reply) = reply.take().expect("a command stands before each reply");
                if reply != expected {
                    let line = index + 1;
                    failures
                        .push_str(&format!("{title}, line {line}: {command}\n  is     {reply}\n  should {expected}\n"));
                }
            }
            _ => assert!(line.is_empty(), "line {}: {line}", index + 1),
        }
    }
    assert!(failures.is_empty(), "\n{failures}");
}

mod tests {
    use super::*;
    use crate::random::Random;
    use std::collections::BTreeSet;

    const CASES: [&str; 3] =
        [include_str!("cases/string.txt"), include_str!("cases/list.txt"), include_str!("cases/generic.txt")];

    /// Command lines of the case files whose replies depend on the keys they name alone.
    fn vocabulary() -> Vec<Vec<Vec<u8>>> {
        let commands = CASES.iter().flat_map(|cases| cases.lines()).filter_map(|line| line.strip_prefix("> "));
        let whole_keyspace = ["HELLO3", "KEYS", "SCAN", "RANDOMKEY", "MEMORY"];
        // Among long strings LCS takes long.
        let slow = ["LCS"];
        let excluded =
            |line: &&str| !line.split(' ').any(|word| whole_keyspace.contains(&word) || slow.contains(&word));
        commands.filter(excluded).map(words_of).collect()
    }

    #[test]
    fn commands_answer_the_same_in_one_transaction_as_one_by_one() {
        let vocabulary = vocabulary();
        let keys: BTreeSet<_> = vocabulary.iter().filter_map(|words| words.get(1)).collect();
        for seed in 0..30 {
            let mut random = Random::from_seed(seed);
            let (mut single, mut grouped) = (Client::new(), Client::new());
            for _ in 0..60 {
                let length = 1 + random.below(12);
                let group: Vec<Vec<&[u8]>> = (0..length)
                    .map(|_| {
                        let words = &vocabulary[random.below(vocabulary.len() as u64) as usize];
                        words.iter().map(Vec::as_slice).collect()
                    })
                    .collect();
                let lines: Vec<_> = group.iter().map(|words| Args::new(words)).collect();
                let together = grouped.run_together(&lines);
                for ((words, reply), position) in group.iter().zip(together).zip(0..) {
                    assert_eq!(reply, single.run_args(words), "seed {seed}, command {position} of {group:?}");
                }
            }
            for key in &keys {
                for command in [&b"GET"[..], b"LRANGE", b"PTTL"] {
                    let words = [command, key, b"0", b"-1"];
                    let words = if command == b"LRANGE" { &words[..] } else { &words[..2] };
                    assert_eq!(grouped.run_args(words), single.run_args(words), "seed {seed}, {words:?}");
                }
            }
        }
    }
}
