//! What does Caswell cost beside its peers? Server CPU per request, throughput, memory per key, the longest SET of a growing table, and GETs
//! while many keys expire.
//!
//!     cargo bench --bench compare                                   everything, against every peer found
//!     cargo bench --bench compare -- --workloads get,set --pipelines 16,100 --pairs 7
//!     cargo bench --bench compare -- --peer other=/path/to/server,--flag,value
//!
//! Each round measures every server once, one after the other, in an order that turns from round to round; a ratio is taken within a round, so that a
//! slow phase of the machine strikes both sides of it. Shown are medians with the smallest and largest value. The CPU time is that of the server's
//! process, all threads (ended ones too), in nanoseconds, from the kernel's clock of that process; the load comes from redis-benchmark.

mod client;
mod measure;
mod options;
mod progress;
mod report;
mod server;
mod workload;

use options::{Measurement, Options};
use progress::Progress;
use report::{Report, Row};
use server::Contender;
use structopt::StructOpt;
use workload::Workload;

type Failure = Box<dyn std::error::Error>;

fn main() -> Result<(), Failure> {
    // `cargo bench` adds an option of its own.
    let options = Options::from_iter(std::env::args().filter(|argument| argument != "--bench"));
    let contenders = server::contenders(&options)?;
    let reference = server::reference(&contenders, options.reference.as_deref())?;
    for (index, contender) in contenders.iter().enumerate() {
        println!("{}{}", contender.describe()?, if index == reference { "  (the reference)" } else { "" });
    }
    let workloads = workload::chosen(&options)?;
    let rounds = |measurement| if options.measures(measurement) { options.rounds(measurement) } else { 0 };
    let steps = workloads.len() * rounds(Measurement::Cpu)
        + rounds(Measurement::Memory)
        + rounds(Measurement::Growth)
        + rounds(Measurement::Expiry);
    let mut progress = Progress::new(steps * contenders.len());
    let mut report = Report::new(&contenders, reference);
    if options.measures(Measurement::Cpu) {
        for workload in &workloads {
            report.add_and_print(measure_cpu(&options, &contenders, workload, &mut progress)?);
        }
    }
    if options.measures(Measurement::Memory) {
        for row in measure_memory(&options, &contenders, &mut progress)? {
            report.add_and_print(row);
        }
    }
    if options.measures(Measurement::Growth) {
        for row in measure_growth(&options, &contenders, &mut progress)? {
            report.add_and_print(row);
        }
    }
    if options.measures(Measurement::Expiry) {
        for row in measure_expiry(&options, &contenders, &mut progress)? {
            report.add_and_print(row);
        }
    }
    progress.clear();
    if let Some(path) = &options.json {
        std::fs::write(path, report.json())?;
        println!("\nwritten to {}", path.display());
    }
    Ok(())
}

/// CPU and throughput of one workload: fresh servers, filled once, then rounds.
fn measure_cpu(
    options: &Options,
    contenders: &[Contender],
    workload: &Workload,
    progress: &mut Progress,
) -> Result<Row, Failure> {
    let mut row = Row::new(&workload.name(), "us/request", contenders.len());
    let mut running = contenders.iter().map(Contender::start).collect::<Result<Vec<_>, _>>()?;
    // The number of requests that takes long enough is found once per server, and serves as its warming up.
    let mut requests = Vec::new();
    for server in &mut running {
        workload.prepare(server, options)?;
        requests.push(measure::requests_for(server, workload, options)?);
    }
    for round in 0..options.pairs {
        for turn in 0..contenders.len() {
            // Forwards, then backwards: a drift of the machine favours nobody.
            let index = if round % 2 == 0 { turn } else { contenders.len() - 1 - turn };
            progress.step(&format!(
                "{} round {} of {}: {}",
                workload.name(),
                round + 1,
                options.pairs,
                contenders[index].name
            ));
            let sample = measure::sample(&mut running[index], workload, requests[index], options)?;
            row.values[index].push(sample.cpu_us_per_request);
            row.throughput[index].push(sample.requests_per_second);
        }
    }
    Ok(row)
}

/// Resident bytes per key, fresh and after each key was overwritten five times.
fn measure_memory(options: &Options, contenders: &[Contender], progress: &mut Progress) -> Result<[Row; 2], Failure> {
    let mut fresh = Row::new("memory, fresh", "bytes/key", contenders.len());
    let mut overwritten = Row::new("memory, each key overwritten 5 times", "bytes/key", contenders.len());
    for _ in 0..options.rounds(Measurement::Memory) {
        for (index, contender) in contenders.iter().enumerate() {
            progress.step(&format!("memory per key: {}", contender.name));
            let (first, second) = measure::memory_per_key(contender, options.memory_keys)?;
            fresh.values[index].push(first);
            overwritten.values[index].push(second);
        }
    }
    Ok([fresh, overwritten])
}

/// The longest of all SETs while the table grows, and of as many while it does not.
fn measure_growth(options: &Options, contenders: &[Contender], progress: &mut Progress) -> Result<[Row; 3], Failure> {
    let mut growing = Row::new("longest SET, growing", "ms", contenders.len());
    let mut still = Row::new("longest SET, not growing", "ms", contenders.len());
    let mut relation = Row::new("longest SET, growing / not growing", "ratio", contenders.len());
    for _ in 0..options.rounds(Measurement::Growth) {
        for (index, contender) in contenders.iter().enumerate() {
            progress.step(&format!("longest SET: {}", contender.name));
            let (first, second) = measure::longest_sets(contender, options.growth_keys)?;
            growing.values[index].push(first);
            still.values[index].push(second);
            relation.values[index].push(first / second);
        }
    }
    Ok([growing, still, relation])
}

/// The 99.9th percentile of GETs of keys that stay: before many others expire together, and while they do.
fn measure_expiry(options: &Options, contenders: &[Contender], progress: &mut Progress) -> Result<[Row; 3], Failure> {
    let mut idle = Row::new("GET p99.9, nothing expires", "ms", contenders.len());
    let mut expiring = Row::new("GET p99.9, many keys expire", "ms", contenders.len());
    let mut relation = Row::new("GET p99.9, expiring / idle", "ratio", contenders.len());
    for _ in 0..options.rounds(Measurement::Expiry) {
        for (index, contender) in contenders.iter().enumerate() {
            progress.step(&format!("GETs while keys expire: {}", contender.name));
            let (first, second) = measure::gets_while_keys_expire(contender, options.expiry_keys)?;
            idle.values[index].push(first);
            expiring.values[index].push(second);
            relation.values[index].push(second / first);
        }
    }
    Ok([idle, expiring, relation])
}
