//! The row: everything that is known of a command, in one place.
//!
//! Arity, flags, key specs, categories and argument syntax are interface, identical to Redis'; summaries are ours.

use super::args::Args;
use super::error::CommandResult;
use crate::resp::Reply;
use crate::txn::Transaction;

/// A pure step over a transaction. It may run several times before its effects are committed, so it touches nothing but the transaction and the
/// reply.
pub type DataHandler = fn(&mut Transaction<'_>, &Args<'_>, &mut Reply) -> CommandResult;

/// The function that runs a command.
#[derive(Clone, Copy)]
pub enum Handler {
    /// A command about data.
    Data(DataHandler),
    /// A command about the client or the server; runs once.
    #[cfg(feature = "server")]
    Server(fn(&mut crate::command::Context<'_>, &Args<'_>, &mut Reply) -> CommandResult),
    /// A command that runs a script, whose commands are steps of one transaction. The function only finds out what is to be run.
    #[cfg(feature = "server")]
    Script(crate::command::scripting::Planner),
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
        /// May be called without any key, though it can have some.
        NO_MANDATORY_KEYS = 19, "no_mandatory_keys";
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

/// The combinations that most commands use.
impl KeyFlags {
    /// Uses the value.
    pub const READ: Self = Self::RO.or(Self::ACCESS);
    /// Changes the value without showing it.
    pub const CHANGE: Self = Self::RW.or(Self::UPDATE);
    /// Changes the value and shows it, before or after.
    pub const MODIFY: Self = Self::RW.or(Self::ACCESS).or(Self::UPDATE);
    /// Adds to the value.
    pub const ADD: Self = Self::RW.or(Self::INSERT);
    /// Takes something out of the value and shows it.
    pub const TAKE: Self = Self::RW.or(Self::ACCESS).or(Self::DELETE);
    /// Takes something out of the value without showing it.
    pub const DISCARD: Self = Self::RW.or(Self::DELETE);
    /// Puts a new value in place of any old one.
    pub const REPLACE: Self = Self::OW.or(Self::UPDATE);
    /// Makes a key that did not exist.
    pub const CREATE: Self = Self::OW.or(Self::INSERT);
    /// Deletes the key.
    pub const REMOVE: Self = Self::RM.or(Self::DELETE);
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
///
/// Built from [`KeySpec::one`], [`KeySpec::pair`], [`KeySpec::many`] or [`KeySpec::numbered`] when it has one of the usual shapes.
#[derive(Clone, Copy, Debug)]
pub struct KeySpec {
    /// Notes shown by COMMAND INFO; empty for none.
    pub notes: &'static str,
    /// What is done with the keys.
    pub flags: KeyFlags,
    /// Where to begin.
    pub begin: BeginSearch,
    /// How to find them.
    pub find: FindKeys,
    /// What is done with the keys of one command line, where `flags` holds [`KeyFlags::VARIABLE_FLAGS`].
    pub flags_of: Option<fn(&Args<'_>) -> KeyFlags>,
}

impl KeySpec {
    const fn at(index: i32, flags: KeyFlags, find: FindKeys) -> Self {
        Self { notes: "", flags, begin: BeginSearch::Index(index), find, flags_of: None }
    }

    /// One key, at argument `index` (the command name is 0).
    pub const fn one(index: i32, flags: KeyFlags) -> Self {
        Self::at(index, flags, FindKeys::Range(0, 1, 0))
    }

    /// Two keys, at arguments `index` and `index + 1`.
    pub const fn pair(index: i32, flags: KeyFlags) -> Self {
        Self::at(index, flags, FindKeys::Range(1, 1, 0))
    }

    /// Every `step`-th argument from `index` to the end.
    pub const fn many(index: i32, step: i32, flags: KeyFlags) -> Self {
        Self::at(index, flags, FindKeys::Range(-1, step, 0))
    }

    /// Every argument from `index` to the last but one.
    pub const fn all_but_last(index: i32, flags: KeyFlags) -> Self {
        Self::at(index, flags, FindKeys::Range(-2, 1, 0))
    }

    /// As many keys as argument `index` says, right after it.
    pub const fn numbered(index: i32, flags: KeyFlags) -> Self {
        Self::at(index, flags, FindKeys::KeyNumber(0, 1, 1))
    }

    /// The same spec, for a command whose arguments decide what is done with the keys.
    pub const fn varying(mut self, flags_of: fn(&Args<'_>) -> KeyFlags) -> Self {
        self.flags = self.flags.or(KeyFlags::VARIABLE_FLAGS);
        self.flags_of = Some(flags_of);
        self
    }

    /// The same spec with notes.
    pub const fn notes(mut self, notes: &'static str) -> Self {
        self.notes = notes;
        self
    }
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

impl ArgumentKind {
    /// The name COMMAND DOCS prints.
    pub const fn name(self) -> &'static str {
        match self {
            Self::String => "string",
            Self::Integer => "integer",
            Self::Double => "double",
            Self::Key => "key",
            Self::Pattern => "pattern",
            Self::UnixTime => "unix-time",
            Self::PureToken => "pure-token",
            Self::OneOf => "oneof",
            Self::Block => "block",
        }
    }
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
    const fn new(name: &'static str, kind: ArgumentKind) -> Self {
        Self {
            name,
            kind,
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
        }
    }

    /// A required string named `argument`, to be overridden by struct update.
    pub const DEFAULT: Self = Self::new("argument", ArgumentKind::String);

    /// A string.
    pub const fn string(name: &'static str) -> Self {
        Self::new(name, ArgumentKind::String)
    }

    /// An integer.
    pub const fn integer(name: &'static str) -> Self {
        Self::new(name, ArgumentKind::Integer)
    }

    /// A float.
    pub const fn double(name: &'static str) -> Self {
        Self::new(name, ArgumentKind::Double)
    }

    /// A glob pattern.
    pub const fn pattern(name: &'static str) -> Self {
        Self::new(name, ArgumentKind::Pattern)
    }

    /// A point in time.
    pub const fn unix_time(name: &'static str) -> Self {
        Self::new(name, ArgumentKind::UnixTime)
    }

    /// A key of the key spec with index `key_spec`.
    pub const fn key(name: &'static str, key_spec: u8) -> Self {
        let mut argument = Self::new(name, ArgumentKind::Key);
        argument.key_spec = Some(key_spec);
        argument
    }

    /// A word that stands for itself.
    pub const fn word(name: &'static str, token: &'static str) -> Self {
        Self::new(name, ArgumentKind::PureToken).token(token)
    }

    /// Exactly one of `arguments`.
    pub const fn one_of(name: &'static str, arguments: &'static [Argument]) -> Self {
        let mut argument = Self::new(name, ArgumentKind::OneOf);
        argument.arguments = arguments;
        argument
    }

    /// All of `arguments`, in this order.
    pub const fn block(name: &'static str, arguments: &'static [Argument]) -> Self {
        let mut argument = Self::new(name, ArgumentKind::Block);
        argument.arguments = arguments;
        argument
    }

    /// The same argument after a token.
    pub const fn token(mut self, token: &'static str) -> Self {
        self.token = token;
        self
    }

    /// The same argument, shown as `text`.
    pub const fn shown_as(mut self, text: &'static str) -> Self {
        self.display_text = text;
        self
    }

    /// The same argument, added in a later version than the command.
    pub const fn since(mut self, version: &'static str) -> Self {
        self.since = version;
        self
    }

    /// The same argument, deprecated by a version.
    pub const fn deprecated(mut self, version: &'static str) -> Self {
        self.deprecated_since = version;
        self
    }

    /// The same argument, which may be left out.
    pub const fn optional(mut self) -> Self {
        self.optional = true;
        self
    }

    /// The same argument, which may be repeated.
    pub const fn multiple(mut self) -> Self {
        self.multiple = true;
        self
    }

    /// The same argument, which may be repeated together with its token.
    pub const fn multiple_token(mut self) -> Self {
        self.multiple = true;
        self.multiple_token = true;
        self
    }
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

impl Group {
    /// The name COMMAND DOCS prints.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Generic => "generic",
            Self::String => "string",
            Self::List => "list",
            Self::Set => "set",
            Self::SortedSet => "sorted-set",
            Self::Hash => "hash",
            Self::PubSub => "pubsub",
            Self::Transactions => "transactions",
            Self::Connection => "connection",
            Self::Server => "server",
            Self::Scripting => "scripting",
            Self::HyperLogLog => "hyperloglog",
            Self::Cluster => "cluster",
            Self::Sentinel => "sentinel",
            Self::Geo => "geo",
            Self::Stream => "stream",
            Self::Bitmap => "bitmap",
        }
    }
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
    /// Flags, without `movablekeys` where the key specs imply it: see [`Row::all_flags`].
    pub flags: Flags,
    /// ACL categories, without those that flags imply: see [`Row::all_categories`].
    pub categories: Categories,
    /// Key specs.
    pub keys: &'static [KeySpec],
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
    /// Concerns the whole keyspace, so that no set of keys could protect it: EXEC and scripts with such a command run under the gate.
    pub whole_keyspace: bool,
    /// Not meant for users; COMMAND DOCS says so (`syscmd`).
    pub system: bool,
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
        tips: &[],
        since: "1.0.0",
        group: Group::Server,
        complexity: "O(1)",
        summary: "",
        whole_keyspace: false,
        system: false,
        history: &[],
        deprecated: None,
        arguments: &[],
        subcommands: &[],
    };

    /// The flags with the implied one: keys that do not lie at fixed places are `movablekeys`.
    pub fn all_flags(&self) -> Flags {
        let fixed = |spec: &KeySpec| matches!((spec.begin, spec.find), (BeginSearch::Index(_), FindKeys::Range(..)));
        if self.keys.iter().all(fixed) { self.flags } else { self.flags | Flags::MOVABLEKEYS }
    }

    /// The ACL categories with the implied ones: reading, writing, administration, publishing, blocking, speed.
    pub fn all_categories(&self) -> Categories {
        let mut all = self.categories;
        let mut imply = |condition: bool, category: Categories| {
            if condition {
                all = all | category;
            }
        };
        imply(self.flags.has(Flags::WRITE), Categories::WRITE);
        imply(self.flags.has(Flags::READONLY) && !self.categories.has(Categories::SCRIPTING), Categories::READ);
        imply(self.flags.has(Flags::ADMIN), Categories::ADMIN | Categories::DANGEROUS);
        imply(self.flags.has(Flags::PUBSUB), Categories::PUBSUB);
        imply(self.flags.has(Flags::BLOCKING), Categories::BLOCKING);
        imply(self.flags.has(Flags::FAST), Categories::FAST);
        imply(!self.flags.has(Flags::FAST) && !self.categories.has(Categories::FAST), Categories::SLOW);
        all
    }

    /// COMMAND INFO's first key, last key and step: the hull of the key specs that lie at fixed places, as clients from
    /// before Redis 7 read it.
    ///
    /// Specs join while each begins right after the one before; the last key counts from the first argument, or from the
    /// end when negative.
    pub fn key_range(&self) -> (i32, i32, i32) {
        let mut hull: Option<(i32, i32, i32)> = None;
        for spec in self.keys {
            let (BeginSearch::Index(first), FindKeys::Range(last, step, _)) = (spec.begin, spec.find) else { continue };
            let last = if last >= 0 { first + last } else { last };
            match hull {
                None => hull = Some((first, last, step)),
                Some((from, to, 1)) if step == 1 && to >= 0 && to == first - 1 => hull = Some((from, last, 1)),
                Some(_) => {}
            }
        }
        hull.unwrap_or((0, 0, 0))
    }
}
