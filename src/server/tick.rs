//! What happens ten times a second beside the workers: rates for INFO, the peak of memory, and the exported metrics.
//!
//! A thread of its own does it, so that no worker's clients wait for it.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use super::statistics::Totals;
use super::{Server, allocation, process};
use crate::store::StoreStatistics;
use crate::sync::{Arc, AtomicBool, AtomicU64, Ordering, thread};

const PERIOD: Duration = Duration::from_millis(100);
/// Rates are taken over this many periods, as in Redis.
const PERIODS: usize = 16;
/// Metrics are published every so many periods: once a second.
const PERIODS_PER_PUBLICATION: u64 = 10;

/// How much happens per second, over the last one and a half seconds.
#[derive(Default)]
pub struct Rates {
    commands: AtomicU64,
    input_bytes: AtomicU64,
    output_bytes: AtomicU64,
    batches: AtomicU64,
    command_nanoseconds: AtomicU64,
}

impl Rates {
    /// Commands per second.
    pub fn commands(&self) -> u64 {
        // Relaxed: a figure that orders nothing, written by the ticking thread alone.
        self.commands.load(Ordering::Relaxed)
    }

    /// Bytes read per second.
    pub fn input_bytes(&self) -> u64 {
        // Relaxed: a figure that orders nothing, written by the ticking thread alone.
        self.input_bytes.load(Ordering::Relaxed)
    }

    /// Bytes written per second.
    pub fn output_bytes(&self) -> u64 {
        // Relaxed: a figure that orders nothing, written by the ticking thread alone.
        self.output_bytes.load(Ordering::Relaxed)
    }

    /// Batches of commands per second.
    pub fn batches(&self) -> u64 {
        // Relaxed: a figure that orders nothing, written by the ticking thread alone.
        self.batches.load(Ordering::Relaxed)
    }

    /// Nanoseconds per second in which commands ran, of all threads.
    pub fn command_nanoseconds(&self) -> u64 {
        // Relaxed: a figure that orders nothing, written by the ticking thread alone.
        self.command_nanoseconds.load(Ordering::Relaxed)
    }
}

/// The ticking thread; it ends when this is dropped.
pub struct Ticker {
    stop: Arc<AtomicBool>,
    thread: Option<thread::JoinHandle<()>>,
}

impl Ticker {
    /// Starts to tick for `server`.
    ///
    /// # Errors
    /// If the thread cannot be started.
    pub fn start(server: Arc<Server>) -> std::io::Result<Self> {
        describe_metrics();
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let thread = thread::Builder::new().name("ticker".into()).spawn(move || tick(&server, &stopped))?;
        Ok(Self { stop, thread: Some(thread) })
    }
}

impl Drop for Ticker {
    fn drop(&mut self) {
        // Release: pairs with the acquire load in `tick`.
        self.stop.store(true, Ordering::Release);
        if let Some(thread) = self.thread.take() {
            thread.thread().unpark();
            // The thread holds nothing that its panic could have broken; the panic was reported where it happened.
            let _ = thread.join();
        }
    }
}

fn tick(server: &Server, stop: &AtomicBool) {
    let mut samples: VecDeque<(Instant, Totals)> = VecDeque::with_capacity(PERIODS + 1);
    let mut periods = 0;
    // Acquire: pairs with the release store in `drop`.
    while !stop.load(Ordering::Acquire) {
        let totals = server.statistics.totals();
        samples.push_back((Instant::now(), totals));
        if samples.len() > PERIODS {
            samples.pop_front();
        }
        update_rates(&server.rates, &samples);
        allocation::note_peak();
        if u64::is_multiple_of(periods, PERIODS_PER_PUBLICATION) {
            publish(server, &totals);
        }
        periods += 1;
        thread::park_timeout(PERIOD);
    }
}

fn update_rates(rates: &Rates, samples: &VecDeque<(Instant, Totals)>) {
    let (Some((began, first)), Some((ended, last))) = (samples.front(), samples.back()) else { return };
    let seconds = ended.duration_since(*began).as_secs_f64();
    let per_second = |count: fn(&Totals) -> u64| {
        // A reset in between makes the later figure the smaller one.
        let difference = count(last).saturating_sub(count(first)) as f64;
        if seconds > 0.0 { (difference / seconds) as u64 } else { 0 }
    };
    // Relaxed, five times: figures that order nothing, written by this thread alone.
    rates.commands.store(per_second(|totals| totals.commands_processed), Ordering::Relaxed);
    rates.input_bytes.store(per_second(|totals| totals.net_input_bytes), Ordering::Relaxed);
    rates.output_bytes.store(per_second(|totals| totals.net_output_bytes), Ordering::Relaxed);
    rates.batches.store(per_second(|totals| totals.batches_processed), Ordering::Relaxed);
    rates.command_nanoseconds.store(per_second(|totals| totals.command_nanoseconds), Ordering::Relaxed);
}

/// Name, description, reading.
type Gauge = (&'static str, &'static str, fn(&Server) -> f64);

/// Gauges beside the counters of [`Totals`], which are exported under their own names.
const GAUGES: &[Gauge] = &[
    ("caswell_connected_clients", "Clients that are connected.", |server| server.clients.len() as f64),
    ("caswell_used_memory_bytes", "Bytes in use.", |_| allocation::used() as f64),
    ("caswell_used_memory_peak_bytes", "The most bytes that were in use.", |_| allocation::peak() as f64),
    ("caswell_resident_memory_bytes", "Resident memory of the process.", |_| process::resident_bytes() as f64),
    ("caswell_garbage_waiting_bytes", "Bytes retired that wait for their grace period.", |server| {
        server.store.statistics().garbage_bytes as f64
    }),
    ("caswell_uptime_seconds", "Seconds since the start.", |server| server.started.elapsed().as_secs_f64()),
];

fn describe_metrics() {
    let store = StoreStatistics::default().described();
    for (name, help) in Totals::described().into_iter().chain(store.map(|(name, help, _)| (name, help))) {
        metrics::describe_counter!(format!("caswell_{name}_total"), help);
    }
    for (name, help, _) in GAUGES {
        metrics::describe_gauge!(*name, *help);
    }
}

/// Publishes every figure as it stands to whichever recorder of the `metrics` crate the program has installed.
fn publish(server: &Server, totals: &Totals) {
    let store = server.store_statistics().described();
    for (name, value) in totals.named().into_iter().chain(store.map(|(name, _, value)| (name, value))) {
        metrics::counter!(format!("caswell_{name}_total")).absolute(value);
    }
    for (name, _, value) in GAUGES {
        metrics::gauge!(*name).set(value(server));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;
    use std::sync::Mutex;

    /// Notes the names that are described and published.
    #[derive(Default)]
    struct Names {
        described: Mutex<BTreeSet<String>>,
        published: Mutex<BTreeSet<String>>,
    }

    impl Names {
        fn describe(&self, name: &metrics::KeyName) {
            self.described.lock().expect("one thread").insert(name.as_str().to_owned());
        }

        fn publish(&self, key: &metrics::Key) {
            self.published.lock().expect("one thread").insert(key.name().to_owned());
        }
    }

    impl metrics::Recorder for Names {
        fn describe_counter(&self, name: metrics::KeyName, _: Option<metrics::Unit>, _: metrics::SharedString) {
            self.describe(&name);
        }
        fn describe_gauge(&self, name: metrics::KeyName, _: Option<metrics::Unit>, _: metrics::SharedString) {
            self.describe(&name);
        }
        fn describe_histogram(&self, name: metrics::KeyName, _: Option<metrics::Unit>, _: metrics::SharedString) {
            self.describe(&name);
        }
        fn register_counter(&self, key: &metrics::Key, _: &metrics::Metadata<'_>) -> metrics::Counter {
            self.publish(key);
            metrics::Counter::noop()
        }
        fn register_gauge(&self, key: &metrics::Key, _: &metrics::Metadata<'_>) -> metrics::Gauge {
            self.publish(key);
            metrics::Gauge::noop()
        }
        fn register_histogram(&self, key: &metrics::Key, _: &metrics::Metadata<'_>) -> metrics::Histogram {
            self.publish(key);
            metrics::Histogram::noop()
        }
    }

    #[test]
    fn every_metric_is_described_and_published() {
        let server = Server::new(crate::config::Settings::new(), crate::command::table::Table::new(&[]));
        let names = Names::default();
        metrics::with_local_recorder(&names, || {
            describe_metrics();
            publish(&server, &server.statistics.totals());
        });
        let (described, published) = (names.described.into_inner(), names.published.into_inner());
        assert_eq!(described.expect("one thread"), published.expect("one thread"));
    }

    #[test]
    fn rates_are_differences_over_time_and_survive_a_reset() {
        let began = Instant::now();
        let totals = |commands| Totals { commands_processed: commands, ..Totals::default() };
        let mut samples = VecDeque::from([(began, totals(100)), (began + Duration::from_secs(2), totals(300))]);
        let rates = Rates::default();
        update_rates(&rates, &samples);
        assert_eq!(rates.commands(), 100);
        samples.push_back((began + Duration::from_secs(3), totals(5)));
        update_rates(&rates, &samples);
        assert_eq!(rates.commands(), 0);
    }
}
