//! The workloads: what redis-benchmark sends, and what must be there before.

use crate::Failure;
use crate::client::Client;
use crate::options::Options;
use crate::server::Server;

/// A request that redis-benchmark repeats.
pub struct Workload {
    label: String,
    /// The words of the request; `__rand_int__` becomes twelve digits of a number below `keys`.
    pub words: Vec<String>,
    /// Requests in flight per connection.
    pub pipeline: usize,
    /// Different keys.
    pub keys: usize,
    fill: Fill,
}

/// What must be there before.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Fill {
    Nothing,
    /// Each key holds a value.
    Values,
    /// Each key holds an integer.
    Integers,
    /// A list, as long as one that `redis-benchmark -t lrange` makes.
    List,
    /// Before each sample a list with as many elements as the sample pops.
    Stock,
    /// After each sample the list is deleted.
    Growing,
}

const LIST: &str = "mylist";
const RANDOM_KEY: &str = "key:__rand_int__";
const LIST_ELEMENTS: usize = 100_000;
/// Numbers of keys of the many-key commands.
const SPANS: [usize; 8] = [1, 8, 32, 64, 128, 256, 512, 1024];

/// The workloads that the options choose.
pub fn chosen(options: &Options) -> Result<Vec<Workload>, Failure> {
    let value = "x".repeat(options.value_bytes);
    let mut all = Vec::new();
    for &keys in &options.keys {
        for &pipeline in &options.pipelines {
            let mut add = |label: &str, words: &[&str], fill| {
                let words = words.iter().map(|&word| word.to_owned()).collect();
                all.push(Workload { label: label.to_owned(), words, pipeline, keys, fill });
            };
            add("PING", &["PING"], Fill::Nothing);
            add("SET", &["SET", RANDOM_KEY, &value], Fill::Values);
            add("GET", &["GET", RANDOM_KEY], Fill::Values);
            add("INCR", &["INCR", "counter:__rand_int__"], Fill::Integers);
            let mset: Vec<&str> = std::iter::once("MSET").chain([RANDOM_KEY, &value].repeat(10)).collect();
            add("MSET", &mset, Fill::Values);
            // The following work on one key, however many keys were asked for.
            if keys == options.keys[0] {
                add("LRANGE_100", &["LRANGE", LIST, "0", "99"], Fill::List);
                add("INCR_ONE", &["INCR", "counter"], Fill::Nothing);
                for push in ["LPUSH", "RPUSH"] {
                    add(push, &[push, LIST, &value], Fill::Growing);
                }
                for pop in ["LPOP", "RPOP"] {
                    add(pop, &[pop, LIST], Fill::Stock);
                }
            }
        }
        for span in SPANS {
            let mget = std::iter::once("MGET").chain([RANDOM_KEY].repeat(span));
            let mset = std::iter::once("MSET").chain([RANDOM_KEY, &value].repeat(span));
            for (label, words) in [("MGET", mget.collect::<Vec<_>>()), ("MSET", mset.collect())] {
                let words = words.into_iter().map(str::to_owned).collect();
                all.push(Workload {
                    label: format!("{label}_{span}_KEYS"),
                    words,
                    pipeline: 1,
                    keys,
                    fill: Fill::Values,
                });
            }
        }
    }
    let wanted: Vec<String> = options.workloads.iter().map(|part| part.to_uppercase()).collect();
    if wanted.iter().any(|part| part == "LIST") {
        return Err(all.iter().map(Workload::name).collect::<Vec<_>>().join("\n").into());
    }
    // A whole label chooses itself only (`mset`), anything else every label that contains it (`mget_`).
    let fits = |workload: &Workload, part: &String| {
        let label = &workload.label;
        if all_labels().any(|whole| whole == *part) { label == part } else { label.contains(part.as_str()) }
    };
    all.retain(|workload| wanted.is_empty() || wanted.iter().any(|part| fits(workload, part)));
    if all.is_empty() { Err("no workload has such a name".into()) } else { Ok(all) }
}

fn all_labels() -> impl Iterator<Item = &'static str> {
    ["PING", "SET", "GET", "INCR", "MSET", "INCR_ONE", "LPUSH", "RPUSH", "LPOP", "RPOP"].into_iter()
}

impl Workload {
    /// As tables name it.
    pub fn name(&self) -> String {
        let keys = match self.fill {
            Fill::Values | Fill::Integers => format!(" r{}", self.keys),
            _ => String::new(),
        };
        format!("{} P{}{keys}", self.label, self.pipeline)
    }

    /// Fills a fresh server.
    pub fn prepare(&self, server: &Server, options: &Options) -> Result<(), Failure> {
        let value = vec![b'x'; options.value_bytes];
        let mut client = Client::connect(server.port)?;
        match self.fill {
            Fill::Values => fill_values(&mut client, "key:", self.keys, &value)?,
            Fill::Integers => fill_values(&mut client, "counter:", self.keys, b"0")?,
            Fill::List => {
                for _ in 0..LIST_ELEMENTS {
                    client.add_and_flush_when_large(&[b"LPUSH", LIST.as_bytes(), &value])?;
                }
            }
            Fill::Nothing | Fill::Stock | Fill::Growing => {}
        }
        client.flush()
    }

    /// Before each sample of so many requests.
    pub fn prepare_sample(&self, server: &Server, requests: usize, options: &Options) -> Result<(), Failure> {
        let mut client = Client::connect(server.port)?;
        if matches!(self.fill, Fill::Stock | Fill::Growing) {
            client.call(&[b"DEL", LIST.as_bytes()])?;
        }
        if self.fill == Fill::Stock {
            let value = vec![b'x'; options.value_bytes];
            for _ in 0..requests {
                client.add_and_flush_when_large(&[b"RPUSH", LIST.as_bytes(), &value])?;
            }
        }
        client.flush()
    }
}

/// Sets `prefix` and twelve digits, for each number below `keys`.
pub fn fill_values(client: &mut Client, prefix: &str, keys: usize, value: &[u8]) -> Result<(), Failure> {
    for number in 0..keys {
        client.add_and_flush_when_large(&[b"SET", format!("{prefix}{number:012}").as_bytes(), value])?;
    }
    client.flush()
}
