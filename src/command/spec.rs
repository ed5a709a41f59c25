//! The row: everything that is known of a command, in one place.
//!
//! Arity, flags, key specs, categories and argument syntax are interface, identical to Redis'; summaries are ours.

use super::args::Args;
use super::error::CommandResult;
use crate::resp::Reply;
use crate::txn::Transaction;

/// The function that runs a command.
#[derive(Clone, Copy)]
pub enum Handler {
    /// A pure step over a transaction. It may run several times before its effects are committed, so it touches nothing
    /// but the transaction and the reply.
    Data(fn(&mut Transaction<'_>, &Args<'_>, &mut Reply) -> CommandResult),
    /// A command about the client or the server; runs once.
    #[cfg(feature = "server")]
    Server(fn(&mut crate::command::Context<'_>, &Args<'_>, &mut Reply) -> CommandResult),
    /// A container: the subcommand's own row is run.
    Container,
}

macro_rules! bit_set {
    ($(#[$meta:meta])* $name:ident : $int:ty { $( $(#[$doc:meta])* $flag:ident = $bit:expr, $text:expr; )* }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
        pub struct $name(pub $int);
        impl $name {
            /// No flag.
            pub const NONE: Self = Self(0);
            $( $(#[$doc])* pub const $flag: Self = Self(1 << $bit); )*
            /// Every flag with the name Redis prints, in Redis' order.
            pub const ALL: &'static [(Self, &'static str)] = &[ $( (Self::$flag, $text), )* ];
            /// Both sets together.
            pub const fn or(self, other: Self) -> Self { Self(self.0 | other.0) }
            /// Whether every flag of `other` is in this set.
            pub const fn has(self, other: Self) -> bool { self.0 & other.0 == other.0 }
            /// The names of the flags in this set.
            pub fn names(self) -> impl Iterator<Item = &'static str> {
                Self::ALL.iter().filter(move |(flag, _)| self.has(*flag)).map(|(_, name)| *name)
            }
        }
        impl std::ops::BitOr for $name {
            type Output = Self;
            fn bitor(self, other: Self) -> Self { self.or(other) }
        }
    };
}

bit_set! {
    /// Command flags, as COMMAND INFO prints them.
    Flags: u32 {
        /// May change data.
        WRITE = 0, "write";
        /// Reads data and changes none.
        READONLY = 1, "readonly";
        /// May grow memory; refused when memory is full.
        DENYOOM = 2, "denyoom";
        /// Administration.
        ADMIN = 3, "admin";
        /// Publish/subscribe.
        PUBSUB = 4, "pubsub";
        /// Not allowed in scripts.
        NOSCRIPT = 5, "noscript";
        /// May block the client.
        BLOCKING = 6, "blocking";
        /// Allowed while data is loading.
        LOADING = 7, "loading";
        /// Allowed on a replica with stale data.
        STALE = 8, "stale";
        /// Not shown to MONITOR.
        SKIP_MONITOR = 9, "skip_monitor";
        /// Not put into the slow log.
        SKIP_SLOWLOG = 10, "skip_slowlog";
        /// ASKING is implied.
        ASKING = 11, "asking";
        /// Constant or logarithmic time.
        FAST = 12, "fast";
        /// Allowed before authentication.
        NO_AUTH = 13, "no_auth";
        /// May replicate though it is no write.
        MAY_REPLICATE = 14, "may_replicate";
        /// Not allowed inside MULTI.
        NO_MULTI = 15, "no_multi";
        /// Key positions depend on the arguments.
        MOVABLEKEYS = 16, "movablekeys";
        /// Allowed while a script is busy.
        ALLOW_BUSY = 17, "allow_busy";
        /// Touches keys of any type in module sense; kept for its name only.
        NO_ASYNC_LOADING = 18, "no_async_loading";
    }
}

bit_set! {
    /// ACL categories, as COMMAND INFO prints them (with `@`).
    Categories: u32 {
        /// keyspace
        KEYSPACE = 0, "@keyspace";
        /// read
        READ = 1, "@read";
        /// write
        WRITE = 2, "@write";
        /// set
        SET = 3, "@set";
        /// sortedset
        SORTEDSET = 4, "@sortedset";
        /// list
        LIST = 5, "@list";
        /// hash
        HASH = 6, "@hash";
        /// string
        STRING = 7, "@string";
        /// bitmap
        BITMAP = 8, "@bitmap";
        /// hyperloglog
        HYPERLOGLOG = 9, "@hyperloglog";
        /// geo
        GEO = 10, "@geo";
        /// stream
        STREAM = 11, "@stream";
        /// pubsub
        PUBSUB = 12, "@pubsub";
        /// admin
        ADMIN = 13, "@admin";
        /// fast
        FAST = 14, "@fast";
        /// slow
        SLOW = 15, "@slow";
        /// blocking
        BLOCKING = 16, "@blocking";
        /// dangerous
        DANGEROUS = 17, "@dangerous";
        /// connection
        CONNECTION = 18, "@connection";
        /// transaction
        TRANSACTION = 19, "@transaction";
        /// scripting
        SCRIPTING = 20, "@scripting";
    }
}

bit_set! {
    /// What a command does with the keys of one key spec, as COMMAND INFO prints it.
    KeyFlags: u16 {
        /// Read only.
        RO = 0, "RO";
        /// Read and write.
        RW = 1, "RW";
        /// Overwrite.
        OW = 2, "OW";
        /// Remove.
        RM = 3, "RM";
        /// Returns, copies or uses the value.
        ACCESS = 4, "access";
        /// Changes the value depending on it.
        UPDATE = 5, "update";
        /// Adds to the value.
        INSERT = 6, "insert";
        /// Removes from the value.
        DELETE = 7, "delete";
        /// Not really a key.
        NOT_KEY = 8, "not_key";
        /// The spec may miss keys.
        INCOMPLETE = 9, "incomplete";
        /// Flags vary with the arguments.
        VARIABLE_FLAGS = 10, "variable_flags";
    }
}

/// Where a key spec's search starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BeginSearch {
    /// At a fixed argument index (the command name is 0).
    Index(i32),
    /// After a keyword, searched from an index (negative: from the end, backwards).
    Keyword(&'static str, i32),
    /// Unknown.
    Unknown,
}

/// How the keys lie from there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FindKeys {
    /// `last` (negative: from the end), `step`, `limit`, as in Redis' key specs.
    Range(i32, i32, i32),
    /// `number of keys` at this offset, first key offset, step.
    KeyNumber(i32, i32, i32),
    /// Unknown.
    Unknown,
}

/// One key spec.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeySpec {
    /// Notes shown by COMMAND INFO; empty for none.
    pub notes: &'static str,
    /// What is done with the keys.
    pub flags: KeyFlags,
    /// Where to begin.
    pub begin: BeginSearch,
    /// How to find them.
    pub find: FindKeys,
}

/// The kind of an argument in COMMAND DOCS.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names are Redis' own")]
pub enum ArgumentKind {
    String,
    Integer,
    Double,
    Key,
    Pattern,
    UnixTime,
    PureToken,
    OneOf,
    Block,
}

/// One argument in COMMAND DOCS.
#[derive(Clone, Copy, Debug)]
pub struct Argument {
    /// Its name.
    pub name: &'static str,
    /// Its kind.
    pub kind: ArgumentKind,
    /// Its display text where it differs from the name; empty otherwise.
    pub display_text: &'static str,
    /// Index into the key specs, for keys.
    pub key_spec: Option<u8>,
    /// The token before it; empty for none.
    pub token: &'static str,
    /// A summary; empty for none.
    pub summary: &'static str,
    /// The version that added it; empty for the command's own.
    pub since: &'static str,
    /// The version that deprecated it; empty for none.
    pub deprecated_since: &'static str,
    /// May be left out.
    pub optional: bool,
    /// May be repeated.
    pub multiple: bool,
    /// The token is repeated too.
    pub multiple_token: bool,
    /// For `OneOf` and `Block`.
    pub arguments: &'static [Argument],
}

impl Argument {
    /// A required string named `argument`, to be overridden by struct update.
    pub const DEFAULT: Self = Self {
        name: "argument",
        kind: ArgumentKind::String,
        display_text: "",
        key_spec: None,
        token: "",
        summary: "",
        since: "",
        deprecated_since: "",
        optional: false,
        multiple: false,
        multiple_token: false,
        arguments: &[],
    };
}

/// A command's group in COMMAND DOCS.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names are Redis' own")]
pub enum Group {
    Generic,
    String,
    List,
    Set,
    SortedSet,
    Hash,
    PubSub,
    Transactions,
    Connection,
    Server,
    Scripting,
    HyperLogLog,
    Cluster,
    Sentinel,
    Geo,
    Stream,
    Bitmap,
}

/// One command or subcommand.
#[derive(Clone, Copy)]
pub struct Row {
    /// Lower case; for a subcommand without its container's name.
    pub name: &'static str,
    /// What runs it.
    pub handler: Handler,
    /// Number of arguments with the name; negative: at least that many.
    pub arity: i32,
    /// Flags.
    pub flags: Flags,
    /// ACL categories (all of them, the implied ones too).
    pub categories: Categories,
    /// Key specs.
    pub keys: &'static [KeySpec],
    /// COMMAND INFO's first key, last key and step.
    pub key_range: (i32, i32, i32),
    /// Command tips.
    pub tips: &'static [&'static str],
    /// The Redis version that brought it.
    pub since: &'static str,
    /// Its group.
    pub group: Group,
    /// Its complexity.
    pub complexity: &'static str,
    /// One line, our own words.
    pub summary: &'static str,
    /// Version and change.
    pub history: &'static [(&'static str, &'static str)],
    /// Deprecated since, and what replaces it.
    pub deprecated: Option<(&'static str, &'static str)>,
    /// Argument syntax.
    pub arguments: &'static [Argument],
    /// Rows of a container.
    pub subcommands: &'static [Row],
}

impl Row {
    /// A row to be overridden by struct update.
    pub const DEFAULT: Self = Self {
        name: "",
        handler: Handler::Container,
        arity: 1,
        flags: Flags::NONE,
        categories: Categories::NONE,
        keys: &[],
        key_range: (0, 0, 0),
        tips: &[],
        since: "1.0.0",
        group: Group::Server,
        complexity: "O(1)",
        summary: "",
        history: &[],
        deprecated: None,
        arguments: &[],
        subcommands: &[],
    };
}
