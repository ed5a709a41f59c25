//! Where our replies may differ from a server's, each with its reason. None concerns a whole command: what differs from one server is
//! still compared with the other. The test prints those that a run did not need.

use crate::peer::Value;

/// One justified exception: replies of ours and theirs that begin thus, as [`Value::brief`] shows them.
#[derive(Debug)]
pub struct Exception {
    /// `redis` or `valkey`.
    server: &'static str,
    /// The command's full name, or the beginning of several before a `*`.
    command: &'static str,
    /// How our reply begins.
    ours: &'static str,
    /// How theirs begins.
    theirs: &'static str,
    /// Why we answer otherwise.
    #[allow(dead_code, reason = "for readers, and printed by the test")]
    reason: &'static str,
}

impl Exception {
    /// Whether this exception covers these replies.
    pub fn covers(&self, server: &str, command: &str, ours: &Value, theirs: &Value) -> bool {
        let begins = |value: &Value, text: &str| value.brief().starts_with(text);
        let named = match self.command.strip_suffix('*') {
            Some(beginning) => command.starts_with(beginning),
            None => command == self.command,
        };
        self.server == server && named && begins(ours, self.ours) && begins(theirs, self.theirs)
    }
}

const fn redis(command: &'static str, ours: &'static str, theirs: &'static str, reason: &'static str) -> Exception {
    Exception { server: "redis", command, ours, theirs, reason }
}

const fn valkey(command: &'static str, ours: &'static str, theirs: &'static str, reason: &'static str) -> Exception {
    Exception { server: "valkey", command, ours, theirs, reason }
}

const NO_CLUSTER: &str = "-ERR This instance has cluster support disabled";
const FILTERS: &str = "Valkey's has more filters, which take several values and combine, and reads them otherwise";

/// At most this many are allowed.
pub const MAX: usize = 30;

/// All of them. We follow Redis 7.2 where the two servers, Redis 7.0 and Valkey 9.1, differ from each other.
#[rustfmt::skip]
pub const ALL: &[Exception] = &[
    // What Redis 7.2 does otherwise than 7.0.
    redis("object|encoding", "$listpack", "$quicklist", "small lists are listpacks since Redis 7.2"),
    redis("command|getkeys*", "-ERR", "-ERR wrong number of arguments for 'command", "a line of one word is taken since 7.2"),
    redis("command|getkeys*", "-ERR The command has no key", "-ERR Invalid command", "commands that came with 7.2"),
    redis("lpos", "-ERR value is out of range", "", "the one number without an opposite is refused since 7.2"),
    redis("object|refcount", ":2147483647", ":1", "what COPY makes is not shared, for a while"),
    redis("object|refcount", ":1", ":2", "the queued command holds the value until EXEC ends"),
    redis("client|setname", "+OK", "-ERR Client names", "a zero byte ends a name since 7.2"),
    redis("client|getname", "$\\x00", "", "a zero byte ends a name since 7.2"),
    redis("hello", "-NOAUTH HELLO must", "-NOAUTH HELLO must", "the text names the version to be given since 7.2"),
    // What Valkey does otherwise than Redis 7.2.
    valkey("object|encoding", "$listpack", "$quicklist", "a list that has become small again: when, depends on how it was cut into pieces"),
    valkey("object|encoding", "$raw", "$embstr", "Redis keeps strings of up to 44 bytes in one piece, Valkey longer ones too"),
    valkey("object|encoding", "$embstr", "$raw", "a long key leaves less room beside it in Valkey"),
    valkey("object|refcount", ":2147483647", ":1", "small integers are shared objects in Redis"),
    valkey("object|refcount", ":1", ":2", "a reply under way holds the value in Valkey"),
    valkey("read*", NO_CLUSTER, "+OK", "Redis answers an error without a cluster"),
    valkey("cluster|keyslot", NO_CLUSTER, ":", "Redis answers an error without a cluster"),
    valkey("cluster|replicate", "-ERR wrong number of arguments", NO_CLUSTER, "Valkey's has an additional option"),
    valkey("scan", "", "-ERR", "an unknown type is no error, and a cursor is read as C reads numbers, before Redis 7.4"),
    valkey("scan", "-ERR invalid cursor", "", "a cursor is read as C reads numbers before Redis 7.4"),
    valkey("getex", "", "-ERR", "Redis looks at the key before it looks at the time"),
    valkey("client|list", "", "-ERR", FILTERS),
    valkey("client|list", "-ERR", "", FILTERS),
    valkey("client|kill", "-ERR", "", FILTERS),
    valkey("client|*", "-ERR unknown subcommand or wrong", "", "Valkey reads surplus arguments of PAUSE and UNBLOCK otherwise"),
    valkey("*", "-ERR Command not allowed inside a transaction", "-ERR Command '", "Valkey names the command"),
    valkey("eval*", "-", "-", "Valkey's errors of scripts name no digest, and are worded otherwise"),
    valkey("lolwut", "", "-ERR", "Valkey's drawings take other arguments"),
    valkey("module|list", "[]", "[", "scripting is a module in Valkey"),
    valkey("*", "-ERR wrong number of arguments", "-NOAUTH", "Redis counts arguments before it asks who the client is"),
    valkey("*", "-ERR unknown", "-NOAUTH", "Redis looks for the command before it asks who the client is"),
];
