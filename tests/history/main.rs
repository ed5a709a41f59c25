//! Is the server strictly serializable? Real clients write down what they asked and what was answered, and two judges look for an order that
//! explains it all: `linearizability` for each object (single keys, pairs between which values move, lists with the clients that wait for them), and `cycles` for
//! transactions over several keys.
//!
//! `CASWELL_SEED` repeats the clients' choices (not the machine's), `CASWELL_HISTORY_SECONDS` makes the run longer. The judges have tests
//! of their own, and `tests/history/faults` shows that they catch a server with a fault.

#[path = "../peer/mod.rs"]
mod peer;

mod bits;
mod cycles;
mod linearizability;
mod object;
mod operation;
mod recorder;
mod run;
mod transactions;
mod workload;

#[cfg(test)]
mod cycles_tests;
#[cfg(test)]
mod linearizability_tests;
#[cfg(test)]
mod object_tests;

/// The seed of this run, printed.
fn seed() -> u64 {
    let chosen = std::env::var("CASWELL_SEED").ok().and_then(|text| text.parse().ok());
    let seed = chosen.unwrap_or_else(|| {
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        now.map_or(0, |now| now.as_nanos() as u64)
    });
    println!("CASWELL_SEED={seed}");
    seed
}
