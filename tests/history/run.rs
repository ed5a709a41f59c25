//! The run: rounds of recording and judging, and at the end what has happened, so that a run in which nothing met proves nothing.

use crate::cycles;
use crate::linearizability::{Event, Verdict, check, reduce};
use crate::object::{Object, Step};
use crate::operation::{Record, Request};
use crate::peer::{Peer, Value};
use crate::recorder::{Client, information, known};
use crate::transactions::{End, Transaction};
use crate::workload::{Known, Target, targets};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::sync::Barrier;
use std::time::{Duration, Instant};

/// Clients.
const CLIENTS: usize = 16;
/// Clients that wait for elements when every second round begins, in a known order.
const WAITING: usize = 5;
/// Length of the run where `CASWELL_HISTORY_SECONDS` does not say.
const SECONDS: u64 = 20;
/// From this length on every kind of interference must have happened.
const LONG_SECONDS: u64 = 60;
/// Steps of one search. A round takes some hundred; what takes so many more is not decided.
const STEPS_MAX: u64 = 10_000_000;
/// The least share of an object's operations that overlap another client's, in hundredths.
const OVERLAP_PERCENT: u64 = 30;
/// Figures of INFO that a long run must have moved.
const INTERFERENCE: [(&str, &str); 6] = [
    ("engine", "commit_conflicts"),
    ("engine", "commits_aborted"),
    ("engine", "elder_transactions"),
    ("engine", "gates_taken"),
    ("engine", "table_growths"),
    ("stats", "expired_keys"),
];

/// What a run counted.
#[derive(Default)]
struct Counts {
    rounds: u64,
    operations: u64,
    unanswered: u64,
    transactions: u64,
    aborted: u64,
    /// Exchanges of a watched key's value: made, and refused because somebody changed it.
    exchanged: u64,
    refused: u64,
    /// Clients that waited for an element: served and not.
    served: u64,
    timed_out: u64,
    largest_object: usize,
    judging: Duration,
    /// By hot object: its operations, those of them that overlap another client's, and the workers that served it.
    hot: BTreeMap<String, (u64, u64, BTreeSet<usize>)>,
}

#[test]
fn what_clients_see_has_one_order() {
    let seconds = std::env::var("CASWELL_HISTORY_SECONDS").ok().and_then(|text| text.parse().ok()).unwrap_or(SECONDS);
    let threads = std::env::var("CASWELL_HISTORY_THREADS").unwrap_or_else(|_| "2".into());
    let seed = crate::seed();
    let server = Peer::caswell(&["--threads", &threads]);
    let began = Instant::now();
    let mut socket = server.connect();
    let known = known(&mut socket);
    drop(socket);
    let mut clients: Vec<Client> =
        (0..CLIENTS).map(|number| Client::new(&server, began, seed, number, known)).collect();
    let mut observer = Client::new(&server, began, seed, CLIENTS, known);
    let mut counts = Counts::default();
    while began.elapsed().as_secs() < seconds {
        let round = counts.rounds;
        if known.take && round % 2 == 0 {
            clients[..WAITING].iter_mut().for_each(|client| client.begin_to_wait(&mut observer));
        }
        let all = Barrier::new(CLIENTS);
        let mut records: Vec<Record> = std::thread::scope(|scope| {
            let threads: Vec<_> = clients
                .iter_mut()
                .map(|client| {
                    let all = &all;
                    scope.spawn(move || client.work(round, all))
                })
                .collect();
            let done: Vec<_> = threads.into_iter().map(|thread| thread.join()).collect();
            // It has said why: most likely the server died.
            let failed =
                || panic!("violation in round {round} of the run with CASWELL_SEED={seed}\na client cannot go on");
            done.into_iter().flat_map(|done| done.unwrap_or_else(|_| failed())).collect()
        });
        records.extend(observer.look_at_all(round, CLIENTS));
        let judged = Instant::now();
        counts.add(&records);
        if let Err(story) = judge(&records, &mut counts) {
            panic!("violation in round {round} of the run with CASWELL_SEED={seed}\n{story}");
        }
        counts.judging += judged.elapsed();
        observer.empty(round);
        counts.rounds += 1;
    }
    drop(clients);
    let mut socket = server.connect();
    let moved = INTERFERENCE.map(|(section, name)| (name, information(&mut socket, section, name)));
    println!("{}", counts.report(&moved, known));
    counts.require(&moved, known, threads.parse().expect("a number of threads"), seconds >= LONG_SECONDS);
}

/// Judges the records of a round.
fn judge(records: &[Record], counts: &mut Counts) -> Result<(), String> {
    if let Some(silent) = records.iter().find(|record| matches!(record.reply, Some(Value::Missing | Value::Closed))) {
        return Err(format!("no reply: {}", silent.shown()));
    }
    for (number, target) in targets().iter().enumerate() {
        judge_object(number, target, records, counts)?;
    }
    let transactions: Vec<Transaction> = records.iter().filter_map(Transaction::of).collect();
    counts.transactions += transactions.len() as u64;
    counts.aborted += transactions.iter().filter(|one| one.end == End::Aborted).count() as u64;
    cycles::check(&transactions).map_err(|finding| finding.story)
}

fn judge_object(number: usize, target: &Target, records: &[Record], counts: &mut Counts) -> Result<(), String> {
    let (mut object, nothing) = Object::new(&target.keys);
    records.iter().enumerate().for_each(|(index, record)| object.add(number, index, record));
    counts.largest_object = counts.largest_object.max(object.history.len());
    if target.is_hot() {
        let (operations, overlapping, _) = counts.hot.entry(target.keys.join(" ")).or_default();
        let overlap = object.overlap();
        *operations += overlap.0;
        *overlapping += overlap.1;
    }
    match check(&object, &nothing, &object.history, STEPS_MAX) {
        Verdict::Linearizable => Ok(()),
        Verdict::Undecided => Err(told(
            format!("undecided after {STEPS_MAX} steps: {:?}", target.keys),
            &object,
            &object.history,
            records,
        )),
        Verdict::Violation(_) => {
            let reduced = reduce(&object, &nothing, &object.history, STEPS_MAX);
            let head = format!(
                "not linearizable: {:?}, {} operations of {}",
                target.keys,
                reduced.len(),
                object.history.len()
            );
            Err(told(head, &object, &reduced, records))
        }
    }
}

/// The events below a heading, in the order in which they were called.
fn told(heading: String, object: &Object, history: &[Event<Step>], records: &[Record]) -> String {
    let mut lines: Vec<(u64, String)> =
        history.iter().map(|event| (event.called, object.told(&event.step, records))).collect();
    lines.sort();
    lines.into_iter().fold(heading, |story, (_, line)| story + "\n  " + &line)
}

impl Counts {
    fn add(&mut self, records: &[Record]) {
        self.operations += records.len() as u64;
        let targets = targets();
        self.unanswered += records.iter().filter(|record| record.returned.is_none()).count() as u64;
        for record in records {
            if let (Request::Take { .. }, Some(reply)) = (&record.request, &record.reply) {
                *if reply.elements().is_empty() { &mut self.timed_out } else { &mut self.served } += 1;
            }
            if let (Request::Exchange(..), Some(reply)) = (&record.request, &record.reply) {
                *if reply.elements().is_empty() { &mut self.refused } else { &mut self.exchanged } += 1;
            }
            if let Request::Command(object, _) = &record.request {
                let target = &targets[*object];
                if target.is_hot() {
                    self.hot.entry(target.keys.join(" ")).or_default().2.insert(record.worker);
                }
            }
        }
    }

    fn report(&self, moved: &[(&str, u64)], known: Known) -> String {
        let Self {
            rounds,
            operations,
            unanswered,
            transactions,
            aborted,
            exchanged,
            refused,
            served,
            timed_out,
            largest_object,
            judging,
            hot,
        } = self;
        let mut text = format!(
            "{rounds} rounds, {operations} requests ({unanswered} not waited for), {transactions} transactions ({aborted} aborted), \
             {exchanged} exchanges ({refused} refused), {served} waits served and {timed_out} in vain, at most {largest_object} operations on an object, {} ms of judging; {known:?}",
            judging.as_millis()
        );
        for (keys, (operations, overlapping, workers)) in hot {
            // Writing to a string cannot fail.
            let _ = write!(
                text,
                "\n{keys}: {operations} operations, {} % overlap another client's, workers {workers:?}",
                100 * overlapping / operations.max(&1)
            );
        }
        for (name, count) in moved {
            // As above.
            let _ = write!(text, "\n{name}: {count}");
        }
        text
    }

    /// Fails where too little has happened to prove anything.
    fn require(&self, moved: &[(&str, u64)], known: Known, threads: usize, is_long: bool) {
        assert!(self.rounds > 0 && self.transactions > 0 && !self.hot.is_empty(), "nothing was recorded");
        for (keys, (operations, overlapping, workers)) in &self.hot {
            assert!(100 * overlapping >= OVERLAP_PERCENT * operations, "too little overlap on {keys}");
            assert_eq!(workers.len(), threads, "not every worker served {keys}");
        }
        let by_clients = [("aborted", self.aborted), ("exchanged", self.exchanged), ("refused", self.refused)];
        let waits = [("served", self.served), ("timed_out", self.timed_out)];
        let moved =
            || moved.iter().chain(by_clients.iter().filter(|_| known.exec)).chain(waits.iter().filter(|_| known.take));
        let still: Vec<_> = moved().filter(|(_, count)| *count == 0).collect();
        assert!(!is_long || still.is_empty(), "never happened: {still:?}");
    }
}
