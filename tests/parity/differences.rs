//! Where our rows differ from a server's, each with its reason. A row that nothing needs fails the test.

/// One justified difference.
#[derive(Debug)]
pub struct Difference {
    /// `redis` or `valkey`.
    server: &'static str,
    /// The command's full name, or the beginning of several before a `*`.
    command: &'static str,
    /// The beginning of the fact's name.
    fact: &'static str,
    /// Why we say otherwise.
    #[allow(dead_code, reason = "for readers, and printed by the test")]
    reason: &'static str,
}

impl Difference {
    /// Whether this row is about that fact.
    pub fn explains(&self, server: &str, command: &str, fact: &str) -> bool {
        let named = match self.command.strip_suffix('*') {
            Some(beginning) => command.starts_with(beginning),
            None => command == self.command,
        };
        self.server == server && named && fact.starts_with(self.fact)
    }
}

const fn redis(command: &'static str, fact: &'static str, reason: &'static str) -> Difference {
    Difference { server: "redis", command, fact, reason }
}

const fn valkey(command: &'static str, fact: &'static str, reason: &'static str) -> Difference {
    Difference { server: "valkey", command, fact, reason }
}

const NAMES: &str = "arguments were named or grouped otherwise before 7.2";

/// All of them. We follow Redis 7.2; the servers are of 7.0 and Valkey 9.1.
pub const ALL: &[Difference] = &[
    redis("setex", "deprecation", "deprecated in the documentation of 7.2"),
    redis("psetex", "deprecation", "deprecated in the documentation of 7.2"),
    redis("setnx", "deprecation", "deprecated in the documentation of 7.2"),
    redis("quit", "deprecation", "deprecated in 7.2"),
    redis("randomkey", "tips", "a response policy was added in 7.2"),
    redis("scan", "tips", "a response policy was added in 7.2"),
    redis("msetnx", "tips", "its policies were taken back, since it cannot be split over shards"),
    redis("client|setname", "tips", "policies were added in 7.2"),
    redis("config|re*", "tips", "policies were added in 7.2"),
    redis("mset*", "argument 0", NAMES),
    redis("client|kill", "argument 0", NAMES),
    redis("client|list", "argument", NAMES),
    redis("client|reply", "argument 0", NAMES),
    redis("cluster|*", "argument", NAMES),
    redis("config|*", "argument 0", NAMES),
    redis("flush*", "argument 0", NAMES),
    redis("hello", "argument 0 1", NAMES),
    redis("lcs", "argument 4", NAMES),
    redis("psubscribe", "argument 0", NAMES),
    redis("shutdown", "argument 0", NAMES),
    redis("command|getkeys*", "ar", "takes commands without arguments, and says so, since 7.2"),
    redis("cluster|s*", "flags", "allowed while data is loading in 7.2"),
    redis("client|list", "history", "the fields that came with 7.2"),
    redis("bl*", "flags", "allowed in scripts since 7.2, where they do not wait"),
    redis("br*", "flags", "allowed in scripts since 7.2, where they do not wait"),
    redis("wait", "flags", "allowed in scripts since 7.2, where it does not wait"),
    redis("client|pause", "since", "dated otherwise before 7.2"),
    redis("client|unblock", "argument 1", NAMES),
    valkey("*", "deprecation", "Valkey has taken deprecations back"),
    valkey("set", "argument 2", "Valkey's has another condition, and dates them one by one"),
    valkey("select", "flags", "allowed while a script is busy in Valkey"),
    valkey("exec", "flags", "Valkey's slow log is one of several, and its flag named for all of them"),
    valkey("multi", "flags", "refused within MULTI by a flag in Valkey, by the command itself in Redis"),
    valkey("watch", "flags", "refused within MULTI by a flag in Valkey, by the command itself in Redis"),
    valkey("wait", "flags", "a blocking command by its flags since Redis 7.4"),
    valkey("wait", "categories", "a blocking command by its flags since Redis 7.4"),
    valkey("client|*", "flags", "allowed while a script is busy in Valkey"),
    valkey("cluster|*", "flags", "allowed while data is loading in Valkey"),
    valkey("cluster|replicate", "ar", "Valkey's has an additional option"),
    valkey("client|kill", "argument 0 1 0", "Valkey's takes several ids"),
    valkey("client|list", "history", "Valkey does not list the fields that came with 7.2"),
    valkey("shutdown", "argument", "Valkey's has additional options, and groups them"),
    redis("function|flush", "argument 0", NAMES),
    redis("script|flush", "argument 0", NAMES),
    valkey("script|debug", "arity", "Valkey's takes the debugger's name too"),
    valkey("script|*", "flags", "allowed with stale data in Valkey"),
];
