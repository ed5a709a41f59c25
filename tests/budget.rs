//! The budget of writes to shared cache lines, counted at the door to atomics in checking builds (`--cfg caswell_checking`).
//!
//! A benchmark on two cores cannot show that a command will scale to sixty-four; its number of shared writes can. What a worker does once for many
//! commands (entering a section, handing over a bag of garbage) is left out by taking the least of many runs, and bounded by their average.
#![cfg(caswell_checking)]

use caswell::clock::Clock;
use caswell::command::args::Args;
use caswell::command::family::FAMILIES;
use caswell::command::spec::Handler;
use caswell::command::table::Table;
use caswell::resp::{Protocol, Reply};
use caswell::store::{Store, StoreOptions, Worker};
use caswell::sync::shared_writes;
use caswell::txn::{RuntimeLimits, Scratch, Transaction};

const RUNS: u64 = 200;
/// Shared writes per command, on average, for handing garbage over; bags are tiny in checking builds.
const HOUSEKEEPING_MAX: u64 = 2;
const FAULT: &str = "budget_shared_write";

/// Runs a command line in one transaction; gives its shared writes.
fn writes_of(worker: &Worker, line: &str) -> u64 {
    let table = Table::new(FAMILIES);
    let items: Vec<&[u8]> = line.split(' ').map(str::as_bytes).collect();
    let args = Args::new(&items);
    let Ok(command) = table.resolve(&args) else { panic!("{line} is no command") };
    let Handler::Data(handler) = command.row.handler else { panic!("{line} is no data command") };
    let mut scratch = Scratch::default();
    let mut tx = Transaction::new(worker, &mut scratch, 0, RuntimeLimits::default());
    let mut reply = Reply::new(Protocol::Resp2);
    let before = shared_writes();
    let result = tx.run(|tx| handler(tx, &args, &mut reply));
    let writes = shared_writes() - before;
    assert!(result.is_ok(), "{line}: {result:?}");
    writes
}

#[test]
fn commands_keep_to_their_budget_of_shared_writes() {
    let store = Store::new(StoreOptions { clock: Clock::manual(1_000_000), ..StoreOptions::default() });
    let worker = Worker::register(&store).expect("a free slot");
    let pairs = |count: usize| (0..count).map(|key| format!(" m{key} {key}")).collect::<String>();
    let names = |count: usize| (0..count).map(|key| format!(" m{key}")).collect::<String>();
    // Before each counted run, a line that is not counted; the counted line; its budget.
    let budget = [
        ("SET k v", "GET k".to_owned(), 0),
        ("SET k v", "SET k w".to_owned(), 1),
        ("SET n 5", "INCR n".to_owned(), 1),
        ("SET s x", "APPEND s y".to_owned(), 1),
        ("RPUSH l a", "LPUSH l b".to_owned(), 2),
        ("RPUSH l a", "RPUSH l b".to_owned(), 2),
        ("RPUSH l a b", "LPOP l".to_owned(), 1),
        ("RPUSH l a b", "LRANGE l 0 -1".to_owned(), 0),
        ("SET k v", "EXPIRE k 100".to_owned(), 2),
        ("SET d v", "DEL d".to_owned(), 1),
        (&format!("MSET{}", pairs(10)), format!("MSET{}", pairs(10)), 2 * 10 + 1),
        (&format!("MSET{}", pairs(100)), format!("MSET{}", pairs(100)), 2 * 100 + 1),
        (&format!("MSET{}", pairs(10)), format!("MGET{}", names(10)), 0),
    ];
    println!("{:24} {:>7} {:>7} {:>7}", "command", "budget", "least", "average");
    let mut over = Vec::new();
    for (before, line, budget) in &budget {
        let mut all = Vec::new();
        for _ in 0..RUNS {
            writes_of(&worker, before);
            all.push(writes_of(&worker, line));
            worker.tick();
        }
        let least = all.iter().min().copied().unwrap_or(0);
        let average = all.iter().sum::<u64>() as f64 / RUNS as f64;
        println!("{:24} {budget:7} {least:7} {average:7.2}", &line[..line.len().min(24)]);
        let allowance = HOUSEKEEPING_MAX * (1 + budget / 2);
        if least > *budget || average > (budget + allowance) as f64 {
            over.push(line.clone());
        }
    }
    assert!(over.is_empty(), "over budget: {over:?}");
}

#[test]
fn a_deletion_is_unlinked_within_its_budget() {
    const KEYS: u64 = 64;
    let store = Store::new(StoreOptions { clock: Clock::manual(1_000_000), ..StoreOptions::default() });
    let worker = Worker::register(&store).expect("a free slot");
    for key in 0..KEYS {
        writes_of(&worker, &format!("SET k{key} v"));
    }
    let mut writes: u64 = (0..KEYS).map(|key| writes_of(&worker, &format!("DEL k{key}"))).sum();
    let before = shared_writes();
    let mut ticks = 0;
    while worker.entries_waiting() > 0 {
        worker.tick();
        ticks += 1;
        assert!(ticks < 10_000, "the reaper never finished");
    }
    writes += shared_writes() - before;
    // Tombstone, Dead, mark, unlink: four a key. A tick enters and leaves sections, and a batch of two entries sets a flag and hands over a bag.
    let housekeeping = ticks * 16 + KEYS * HOUSEKEEPING_MAX;
    println!("{KEYS} deletions: {writes} shared writes in {ticks} ticks");
    assert!(writes >= 4 * KEYS && writes <= 4 * KEYS + housekeeping, "{writes} writes in {ticks} ticks");
}

#[test]
fn a_shared_counter_on_the_hot_path_is_caught() {
    if std::env::var_os("CASWELL_PLANTED_FAULT").is_some() {
        return;
    }
    let output = std::process::Command::new(std::env::current_exe().expect("a test knows its binary"))
        .args(["--exact", "commands_keep_to_their_budget_of_shared_writes"])
        .env("CASWELL_PLANTED_FAULT", FAULT)
        .output()
        .expect("the test's own binary starts");
    assert!(!output.status.success(), "the planted fault went unnoticed");
}
