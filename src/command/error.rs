//! What a command answers when it fails: a code (the reply's first word) and a message.

use std::borrow::Cow;

/// A failed command. The code and the text are interface: identical to Redis'.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommandError {
    /// The reply's first word, as clients match on it: `ERR`, `WRONGTYPE`, `NOAUTH` ...
    pub code: &'static str,
    /// The rest of the line. Any bytes, since a text may repeat what the client sent; the encoder makes one line of it.
    pub message: Cow<'static, [u8]>,
}

/// What a command handler returns; the reply itself goes to the [`Reply`](crate::resp::Reply) it is given.
pub type CommandResult = Result<(), CommandError>;

impl CommandError {
    /// An error with the general code `ERR`.
    pub const fn err(message: &'static str) -> Self {
        Self { code: "ERR", message: Cow::Borrowed(message.as_bytes()) }
    }

    /// An error with the general code `ERR` and a text made at run time.
    pub fn owned(message: String) -> Self {
        Self { code: "ERR", message: Cow::Owned(message.into_bytes()) }
    }

    /// An error with the general code `ERR` that repeats an argument, up to its first zero byte, as C prints it.
    pub fn quoting(before: &str, argument: &[u8], after: &str) -> Self {
        let shown = argument.split(|byte| *byte == 0).next().unwrap_or_default();
        Self { code: "ERR", message: Cow::Owned([before.as_bytes(), shown, after.as_bytes()].concat()) }
    }

    /// An error with its own code.
    pub const fn with_code(code: &'static str, message: &'static str) -> Self {
        Self { code, message: Cow::Borrowed(message.as_bytes()) }
    }

    /// The options or their number do not fit the command.
    pub const SYNTAX: Self = Self::err("syntax error");
    /// The key holds another type than the command works on.
    pub const WRONG_TYPE: Self =
        Self::with_code("WRONGTYPE", "Operation against a key holding the wrong kind of value");
    /// The client must authenticate first.
    pub const NOT_AUTHENTICATED: Self = Self::with_code("NOAUTH", "Authentication required.");
    /// More memory is in use than `maxmemory` allows.
    pub const OUT_OF_MEMORY: Self = Self::with_code("OOM", "command not allowed when used memory > 'maxmemory'.");
    /// An argument or a value is no 64-bit signed integer.
    pub const NOT_AN_INTEGER: Self = Self::err("value is not an integer or out of range");
    /// An argument or a value is no float.
    pub const NOT_A_FLOAT: Self = Self::err("value is not a valid float");
    /// The key must exist.
    pub const NO_SUCH_KEY: Self = Self::err("no such key");
    /// The index lies outside the list.
    pub const INDEX_OUT_OF_RANGE: Self = Self::err("index out of range");
    /// The number must lie within another range.
    pub const OUT_OF_RANGE: Self = Self::err("value is out of range");

    /// Too few or too many arguments; `name` as Redis prints it (`get`, `client|kill`).
    pub fn wrong_arity(name: &str) -> Self {
        Self::owned(format!("wrong number of arguments for '{name}' command"))
    }
}
