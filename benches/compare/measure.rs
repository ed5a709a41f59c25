//! Taking one sample.

use crate::Failure;
use crate::client::Client;
use crate::options::Options;
use crate::server::{Contender, Server};
use crate::workload::{Workload, fill_values};
use std::io::Read;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// How long one run of redis-benchmark may take.
const RUN_TIMEOUT: Duration = Duration::from_secs(180);
/// Requests of the first attempt to find how many are needed.
const REQUESTS_FIRST: usize = 50_000;
/// Requests of one run at most.
const REQUESTS_MAX: usize = 100_000_000;
/// Spare on top of the requests that should suffice.
const HEADROOM: f64 = 1.15;

/// What one run of a workload showed.
pub struct Sample {
    pub cpu_us_per_request: f64,
    pub requests_per_second: f64,
}

/// How many requests take the server at least `options.seconds` of CPU time.
pub fn requests_for(server: &mut Server, workload: &Workload, options: &Options) -> Result<usize, Failure> {
    let mut requests = REQUESTS_FIRST;
    loop {
        let (sample, seconds) = run(server, workload, requests, options)?;
        if seconds >= options.seconds || requests >= REQUESTS_MAX {
            return Ok(requests);
        }
        // The first requests are dearer, so approach the goal in steps of at most tenfold.
        let needed = options.seconds * HEADROOM / (sample.cpu_us_per_request / 1e6);
        requests = (needed as usize).clamp(requests + requests / 10, (requests * 10).min(REQUESTS_MAX));
    }
}

/// One sample; repeated with more requests if it took too little CPU time after all.
pub fn sample(server: &mut Server, workload: &Workload, requests: usize, options: &Options) -> Result<Sample, Failure> {
    let mut requests = requests;
    loop {
        let (sample, seconds) = run(server, workload, requests, options)?;
        if seconds >= options.seconds || requests >= REQUESTS_MAX {
            return Ok(sample);
        }
        requests += requests / 4;
    }
}

/// Runs redis-benchmark, which ends with a failure at the first error reply; the sample, and the server's CPU seconds.
fn run(server: &Server, workload: &Workload, requests: usize, options: &Options) -> Result<(Sample, f64), Failure> {
    // Whole pipelines on every connection, so that the number sent is the number asked for.
    let unit = workload.pipeline * options.connections;
    let requests = requests.div_ceil(unit) * unit;
    workload.prepare_sample(server, requests, options)?;
    let before = server.cpu_ns()?;
    let mut command = Command::new("redis-benchmark");
    command
        .args(["-h", "127.0.0.1", "-p", &server.port.to_string(), "-n", &requests.to_string(), "--csv"])
        .args(["-c", &options.connections.to_string(), "-P", &workload.pipeline.to_string()])
        .args(["-r", &workload.keys.to_string()]);
    if options.client_threads > 1 {
        command.args(["--threads", &options.client_threads.to_string()]);
    }
    let output = output_in_time(command.args(&workload.words))
        .map_err(|error| format!("{} on {}: {error}", workload.name(), server.name))?;
    let cpu_ns = server.cpu_ns()? - before;
    // The line of results: the request in quotes (which may hold commas), then figures in quotes.
    let line =
        output.lines().rfind(|line| line.starts_with('"')).ok_or_else(|| format!("redis-benchmark: {output}"))?;
    let figures: Vec<&str> = line.rsplit("\",\"").collect();
    // Requests per second stands before six latencies.
    let rate = figures.get(6).ok_or_else(|| format!("redis-benchmark: {line}"))?.parse()?;
    let cpu_us_per_request = cpu_ns as f64 / 1e3 / requests as f64;
    Ok((Sample { cpu_us_per_request, requests_per_second: rate }, cpu_ns as f64 / 1e9))
}

/// Runs a command to its end, or ends it when it takes too long, and returns what it printed.
fn output_in_time(command: &mut Command) -> Result<String, Failure> {
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::inherit())
        .spawn()
        .map_err(|error| format!("redis-benchmark (Debian package redis-tools): {error}"))?;
    let mut pipe = child.stdout.take().expect("the pipe was asked for");
    let reader = std::thread::spawn(move || {
        let mut text = Vec::new();
        pipe.read_to_end(&mut text).map(|_| String::from_utf8_lossy(&text).into_owned())
    });
    let deadline = Instant::now() + RUN_TIMEOUT;
    let status = loop {
        if let Some(status) = child.try_wait()? {
            break status;
        }
        if Instant::now() > deadline {
            child.kill()?;
            child.wait()?;
            return Err("redis-benchmark took too long".into());
        }
        std::thread::sleep(Duration::from_millis(2));
    };
    let text = reader.join().map_err(|_| "the reader of redis-benchmark's output failed")??;
    if status.success() { Ok(text) } else { Err(format!("redis-benchmark: {status}: {text}").into()) }
}

/// Resident growth in bytes per key (16 bytes, with a value of 64): fresh, and after each key was overwritten five times in mixed order.
pub fn memory_per_key(contender: &Contender, keys: usize) -> Result<(f64, f64), Failure> {
    let server = contender.start()?;
    let mut client = Client::connect(server.port)?;
    // So that buffers and the first allocations of the connection are not counted.
    fill_values(&mut client, "warm:", 1000, &[b'w'; 64])?;
    client.call(&[b"FLUSHALL"])?;
    let empty = server.settled_resident_bytes()? as f64;
    let per_key = |server: &Server| Ok::<_, Failure>((server.settled_resident_bytes()? as f64 - empty) / keys as f64);
    fill_values(&mut client, "key:", keys, &[b'x'; 64])?;
    let fresh = per_key(&server)?;
    for round in 0..5u8 {
        // A stride that shares no factor with any number of keys used here visits each key once, in mixed order.
        let stride = 7_919 + 2 * usize::from(round);
        for number in 0..keys {
            let key = format!("key:{:012}", number * coprime(stride, keys) % keys);
            client.add_and_flush_when_large(&[b"SET", key.as_bytes(), &[b'a' + round; 64]])?;
        }
        client.flush()?;
    }
    Ok((fresh, per_key(&server)?))
}

/// The first number from `start` on that shares no factor with `other`.
fn coprime(start: usize, other: usize) -> usize {
    let divisor = |mut one: usize, mut two: usize| {
        while two != 0 {
            (one, two) = (two, one % two);
        }
        one
    };
    (start..).find(|&number| divisor(number, other) == 1).expect("one of `other` successive numbers is a prime to it")
}

/// The longest SET in milliseconds, one request at a time: while the table grows to `keys` keys, and over the same keys again.
pub fn longest_sets(contender: &Contender, keys: usize) -> Result<(f64, f64), Failure> {
    let server = contender.start()?;
    let mut client = Client::connect(server.port)?;
    let mut pass = || {
        let mut longest = Duration::ZERO;
        for number in 0..keys {
            let key = format!("key:{number:012}");
            let started = Instant::now();
            client.call(&[b"SET", key.as_bytes(), &[b'x'; 64]])?;
            longest = longest.max(started.elapsed());
        }
        Ok::<_, Failure>(longest.as_secs_f64() * 1e3)
    };
    Ok((pass()?, pass()?))
}

/// The 99.9th percentile in milliseconds of GETs, one request at a time, of a thousand keys that stay: for as long as nothing expires, and from
/// the deadline that `keys` other keys share until the last of them is gone.
pub fn gets_while_keys_expire(contender: &Contender, keys: usize) -> Result<(f64, f64), Failure> {
    const STAYING: usize = 1000;
    /// GETs between two looks at whether the keys are gone.
    const GETS: usize = 1000;
    const IDLE: Duration = Duration::from_secs(3);
    let server = contender.start()?;
    let mut client = Client::connect(server.port)?;
    fill_values(&mut client, "stays:", STAYING, &[b'x'; 64])?;
    // All share one deadline, late enough for filling and for the idle measurement.
    let now = || Ok::<_, Failure>(std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH)?);
    let filling = Duration::from_micros(10 * keys as u64);
    let deadline = now()? + filling + 2 * IDLE;
    let milliseconds = deadline.as_millis().to_string();
    for number in 0..keys {
        let key = format!("goes:{number:012}");
        client.add_and_flush_when_large(&[b"SET", key.as_bytes(), &[b'x'; 64], b"PXAT", milliseconds.as_bytes()])?;
    }
    client.flush()?;
    if now()? + IDLE > deadline {
        return Err("filling took longer than the keys' time to live".into());
    }
    let mut number = 0;
    let mut gets = |client: &mut Client, latencies: &mut Vec<Duration>| {
        for _ in 0..GETS {
            number = (number + 7) % STAYING;
            let key = format!("stays:{number:012}");
            let started = Instant::now();
            client.call(&[b"GET", key.as_bytes()])?;
            latencies.push(started.elapsed());
        }
        Ok::<_, Failure>(())
    };
    let (mut idle, mut expiring) = (Vec::new(), Vec::new());
    let idle_end = Instant::now() + IDLE;
    while Instant::now() < idle_end {
        gets(&mut client, &mut idle)?;
    }
    std::thread::sleep(deadline.saturating_sub(now()?));
    let patience = Instant::now() + RUN_TIMEOUT;
    loop {
        gets(&mut client, &mut expiring)?;
        let left = client.integer(&[b"DBSIZE"])?;
        if left <= STAYING as i64 {
            return Ok((percentile_ms(&mut idle, 0.999), percentile_ms(&mut expiring, 0.999)));
        }
        if Instant::now() > patience {
            return Err(format!("{left} keys are still there on {}", server.name).into());
        }
    }
}

fn percentile_ms(latencies: &mut [Duration], part: f64) -> f64 {
    latencies.sort_unstable();
    let place = (latencies.len() as f64 * part) as usize;
    latencies[place.min(latencies.len() - 1)].as_secs_f64() * 1e3
}
