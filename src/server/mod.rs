//! What all workers share: the settings, the registry of clients, the statistics and the signals that concern everybody.
//!
//! Nothing here is written per command by more than one thread: counters have one slot per worker and are summed when
//! somebody asks ([`statistics`]).

pub mod clients;
pub mod shutdown;
pub mod statistics;

use std::time::{Instant, SystemTime};

pub use clients::{ClientInfo, Clients};
pub use shutdown::{Shutdown, ShutdownRequest};
pub use statistics::Statistics;

use crate::config::Settings;

/// The state that all workers of one server share.
pub struct Server {
    /// The settings.
    pub settings: Settings,
    /// The clients that are connected now.
    pub clients: Clients,
    /// Counters, one slot per worker.
    pub statistics: Statistics,
    /// The request to stop, which every worker awaits.
    pub shutdown: Shutdown,
    /// Forty hexadecimal digits, new with every start.
    pub run_id: String,
    /// When this server was made.
    pub started: Instant,
    /// The same moment on the wall clock.
    pub started_at: SystemTime,
}

impl Server {
    /// A server with these settings, whose statistics have a slot for each worker and for each of `commands` command rows.
    pub fn new(settings: Settings, commands: usize) -> Self {
        let workers = usize::from(settings.threads.get());
        Self {
            settings,
            clients: Clients::default(),
            statistics: Statistics::new(workers, commands),
            shutdown: Shutdown::default(),
            run_id: random_hexadecimal_40(),
            started: Instant::now(),
            started_at: SystemTime::now(),
        }
    }
}

/// Forty random hexadecimal digits, as Redis identifies runs and replication histories.
pub fn random_hexadecimal_40() -> String {
    use std::hash::{BuildHasher, Hasher};
    // Each `RandomState` is keyed by the operating system's randomness.
    (0..5)
        .map(|round: u32| {
            let mut hasher = std::hash::RandomState::new().build_hasher();
            hasher.write_u32(round);
            format!("{:08x}", hasher.finish() as u32)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn run_ids_have_forty_hexadecimal_digits_and_differ() {
        let (one, two) = (random_hexadecimal_40(), random_hexadecimal_40());
        assert_eq!(one.len(), 40);
        assert!(one.bytes().all(|byte| byte.is_ascii_hexdigit()));
        assert_ne!(one, two);
    }
}
