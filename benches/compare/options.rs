//! The command line.

use std::path::PathBuf;
use structopt::StructOpt;
use structopt::clap::arg_enum;

arg_enum! {
    /// What can be measured.
    #[derive(Clone, Copy, PartialEq, Eq, Debug)]
    pub enum Measurement {
        Cpu,
        Memory,
        Growth,
        Expiry,
    }
}

/// Compares Caswell with every peer found.
#[derive(StructOpt)]
#[structopt(name = "compare", rename_all = "kebab-case")]
pub struct Options {
    /// What to measure: cpu (with throughput), memory, growth (the longest SET), expiry (the 99.9th percentile of GET)
    #[structopt(long, use_delimiter = true, possible_values = &Measurement::variants(), case_insensitive = true, default_value = "cpu,memory,growth,expiry")]
    pub measure: Vec<Measurement>,
    /// Workloads by name or part of a name; `list` lists them
    #[structopt(long, use_delimiter = true, default_value = "")]
    pub workloads: Vec<String>,
    /// Pipeline depths (mget and mset of many keys run at 1)
    #[structopt(long, use_delimiter = true, default_value = "1,16,100")]
    pub pipelines: Vec<usize>,
    /// Different keys
    #[structopt(long, use_delimiter = true, default_value = "100000")]
    pub keys: Vec<usize>,
    /// Bytes of each value
    #[structopt(long, default_value = "64")]
    pub value_bytes: usize,
    /// Connections
    #[structopt(long, default_value = "50")]
    pub connections: usize,
    /// Threads of redis-benchmark
    #[structopt(long, default_value = "1")]
    pub client_threads: usize,
    /// Rounds; each measures every server once
    #[structopt(long, default_value = "7")]
    pub pairs: usize,
    /// Server CPU seconds that a sample must take at least
    #[structopt(long, default_value = "2")]
    pub seconds: f64,
    /// Numbers of threads with which Caswell is measured, each as a server of its own
    #[structopt(long, use_delimiter = true, default_value = "1,2")]
    pub threads: Vec<usize>,
    /// Another Caswell than the one just built: name=path[,argument...]
    #[structopt(long)]
    pub caswell: Vec<String>,
    /// Leave out the Caswell just built
    #[structopt(long)]
    pub no_caswell: bool,
    /// A further peer: name=path[,argument...]
    #[structopt(long)]
    pub peer: Vec<String>,
    /// Leave out the peers found by themselves (redis-server, valkey-server)
    #[structopt(long)]
    pub no_found_peers: bool,
    /// Which server the ratios refer to; otherwise valkey-server, or the last peer
    #[structopt(long)]
    pub reference: Option<String>,
    /// Keys of the memory measurement
    #[structopt(long, default_value = "1000000")]
    pub memory_keys: usize,
    /// Keys to which the table grows in the growth measurement
    #[structopt(long, default_value = "4000000")]
    pub growth_keys: usize,
    /// Keys that expire together in the expiry measurement
    #[structopt(long, default_value = "1000000")]
    pub expiry_keys: usize,
    /// Where to write the results as JSON
    #[structopt(long, parse(from_os_str))]
    pub json: Option<PathBuf>,
}

impl Options {
    /// Whether this is to be measured.
    pub fn measures(&self, measurement: Measurement) -> bool {
        self.measure.contains(&measurement)
    }

    /// Rounds of this measurement. Memory hardly varies; the longest SETs take minutes.
    pub fn rounds(&self, measurement: Measurement) -> usize {
        match measurement {
            Measurement::Cpu => self.pairs,
            Measurement::Memory => self.pairs.min(3),
            Measurement::Growth | Measurement::Expiry => self.pairs.min(5),
        }
    }
}
