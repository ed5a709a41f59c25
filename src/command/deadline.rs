//! Deadlines as commands take them: in seconds or milliseconds, from now or from the beginning of Unix time.

use super::args::Args;
use super::error::CommandError;

/// How a command means the number that it takes for a deadline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeadlineForm {
    /// Whole seconds; milliseconds otherwise.
    pub seconds: bool,
    /// Counted from now; from the beginning of Unix time otherwise.
    pub from_now: bool,
}

impl DeadlineForm {
    /// Seconds from now (`EX`, EXPIRE).
    pub const EX: Self = Self { seconds: true, from_now: true };
    /// Milliseconds from now (`PX`, PEXPIRE).
    pub const PX: Self = Self { seconds: false, from_now: true };
    /// Seconds of Unix time (`EXAT`, EXPIREAT).
    pub const EXAT: Self = Self { seconds: true, from_now: false };
    /// Milliseconds of Unix time (`PXAT`, PEXPIREAT).
    pub const PXAT: Self = Self { seconds: false, from_now: false };

    /// The deadline in milliseconds of Unix time; `None` when it does not fit 64 bits.
    pub fn resolve(self, number: i64, now_ms: i64) -> Option<i64> {
        let milliseconds = number.checked_mul(if self.seconds { 1000 } else { 1 })?;
        milliseconds.checked_add(if self.from_now { now_ms } else { 0 })
    }

    /// The deadline that an argument gives; it must be positive, as SET and GETEX want it.
    pub fn positive(self, args: &Args<'_>, index: usize, now_ms: i64, command: &str) -> Result<i64, CommandError> {
        let number = args.integer(index)?;
        let deadline = if number > 0 { self.resolve(number, now_ms) } else { None };
        deadline.ok_or_else(|| invalid_expire_time(command))
    }
}

/// The deadline is out of range; `command` as Redis prints it.
pub fn invalid_expire_time(command: &str) -> CommandError {
    CommandError::owned(format!("invalid expire time in '{command}' command"))
}
