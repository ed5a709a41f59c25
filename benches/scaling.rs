//! Do two threads do more than one, in process? GET, SET and a transaction of four SETs over a million keys, and INCR of one and the same key, in
//! groups as a pipeline brings them.
//!
//!     cargo bench --bench scaling
//!
//! One sample runs one thread and then two, for the same time; the ratio is taken within the sample.

use caswell::command::args::Args;
use caswell::command::family::FAMILIES;
use caswell::command::spec::Handler;
use caswell::command::table::Table;
use caswell::resp::{Protocol, Reply};
use caswell::store::{Store, StoreOptions, Worker};
use caswell::sync::{Arc, AtomicBool, Ordering};
use caswell::txn::{RuntimeLimits, Scratch, Transaction};
use std::time::{Duration, Instant};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const KEYS: u64 = 1_000_000;
const SAMPLES: usize = 9;
const SAMPLE_TIME: Duration = Duration::from_millis(500);
/// Commands of one attempt in a transaction, and of one group on one key.
const TRANSACTION: usize = 4;
const GROUP: usize = 64;

struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 24) % bound
    }
}

/// One thread's means of running commands.
struct Runner<'a> {
    worker: &'a Worker,
    table: &'a Table,
    scratch: Scratch,
    reply: Reply,
}

impl Runner<'_> {
    /// Runs command lines as one transaction.
    fn run(&mut self, lines: &[Vec<&[u8]>]) {
        let mut tx = Transaction::new(self.worker, &mut self.scratch, 0, RuntimeLimits::default());
        tx.prefetch(lines.iter().map(|line| line[1]));
        tx.run(|tx| {
            self.reply.clear();
            for line in lines {
                let args = Args::new(line);
                let Ok(command) = self.table.resolve(&args) else { panic!("no such command") };
                let Handler::Data(handler) = command.row.handler else { panic!("no data command") };
                assert!(handler(tx, &args, &mut self.reply).is_ok());
            }
        });
    }
}

fn key(number: u64) -> Vec<u8> {
    format!("key:{number:012}").into_bytes()
}

/// Commands per second of all threads together.
fn throughput(store: &Arc<Store>, threads: u64, lines_of: &(impl Fn(&mut Random) -> Vec<Vec<Vec<u8>>> + Sync)) -> f64 {
    let stop = AtomicBool::new(false);
    let table = Table::new(FAMILIES);
    let started = Instant::now();
    let counts: Vec<u64> = std::thread::scope(|scope| {
        let runners: Vec<_> = (0..threads)
            .map(|thread| {
                let (stop, table) = (&stop, &table);
                scope.spawn(move || {
                    let worker = Worker::register(store).expect("a free slot");
                    let (scratch, reply) = (Scratch::default(), Reply::new(Protocol::Resp2));
                    let mut runner = Runner { worker: &worker, table, scratch, reply };
                    let mut random = Random(thread + 1);
                    let mut commands = 0;
                    // Relaxed: only ends the loop.
                    while !stop.load(Ordering::Relaxed) {
                        let lines = lines_of(&mut random);
                        let lines: Vec<Vec<&[u8]>> =
                            lines.iter().map(|line| line.iter().map(Vec::as_slice).collect()).collect();
                        runner.run(&lines);
                        commands += lines.len() as u64;
                        if commands % 4096 < lines.len() as u64 {
                            worker.tick();
                        }
                    }
                    commands
                })
            })
            .collect();
        std::thread::sleep(SAMPLE_TIME);
        // Relaxed: as above.
        stop.store(true, Ordering::Relaxed);
        runners.into_iter().map(|runner| runner.join().expect("a thread ends")).collect()
    });
    counts.iter().sum::<u64>() as f64 / started.elapsed().as_secs_f64()
}

fn measure(name: &str, store: &Arc<Store>, lines_of: impl Fn(&mut Random) -> Vec<Vec<Vec<u8>>> + Sync) {
    let mut samples: Vec<(f64, f64)> = (0..SAMPLES)
        .map(|_| {
            let (one, two) = (throughput(store, 1, &lines_of), throughput(store, 2, &lines_of));
            (two / one, one)
        })
        .collect();
    samples.sort_by(|one, other| one.0.total_cmp(&other.0));
    let (ratio, one) = samples[SAMPLES / 2];
    let (least, most) = (samples[0].0, samples[SAMPLES - 1].0);
    println!("{name:<42} one thread {:>6.2} M/s, two threads {ratio:.2} times ({least:.2} to {most:.2})", one / 1e6);
}

fn main() {
    let store = Store::new(StoreOptions::default());
    let value = vec![b'x'; 64];
    {
        let worker = Worker::register(&store).expect("a free slot");
        let table = Table::new(FAMILIES);
        let mut runner =
            Runner { worker: &worker, table: &table, scratch: Scratch::default(), reply: Reply::new(Protocol::Resp2) };
        (0..KEYS).for_each(|number| runner.run(&[vec![b"SET", &key(number), &value]]));
    }
    let set = |random: &mut Random| vec![b"SET".to_vec(), key(random.below(KEYS)), value.clone()];
    measure("GET of a million keys", &store, |random| vec![vec![b"GET".to_vec(), key(random.below(KEYS))]]);
    measure("SET of a million keys", &store, |random| vec![set(random)]);
    measure("a transaction of 4 SETs of a million keys", &store, |random| {
        (0..TRANSACTION).map(|_| set(random)).collect()
    });
    measure("INCR of one key", &store, |_| vec![vec![b"INCR".to_vec(), b"counter".to_vec()]]);
    measure("INCR of one key, 64 in a pipeline", &store, |_| vec![vec![b"INCR".to_vec(), b"counter".to_vec()]; GROUP]);
}
