//! The table: every command by name, in any case, and under the names that `rename-command` gives.
//!
//! The look-up stands in the path of every command. A name's first and last eight bytes and its length, upper-cased eight bytes
//! at a time, say all there is to say of a name of up to sixteen bytes; so a look-up hashes two words with one multiplication and
//! compares two words in a table of which at most a quarter is filled. It neither allocates nor looks at single bytes.

use super::args::Args;
use super::error::CommandError;
use super::spec::{Flags, Row};

/// A command as the table holds it.
pub struct Command {
    /// What is known of it.
    pub row: &'static Row,
    /// Its number, for statistics: dense from 0, subcommands included.
    pub index: usize,
    /// Its own name, with its container's before a bar: `get`, `client|kill`.
    pub full_name: Box<str>,
    /// [`Row::key_range`], kept ready for those who want a batch's keys before they run it.
    pub key_range: (i32, i32, i32),
    /// Whether its first key is the only one that it can have.
    pub has_one_key: bool,
    /// Whether it takes constant or logarithmic time, so that several in a row may be timed together.
    pub is_quick: bool,
    subcommands: Names,
    all: Vec<Command>,
}

impl Command {
    fn new(row: &'static Row, container: Option<&str>, next_index: &mut usize) -> Self {
        let index = *next_index;
        *next_index += 1;
        let full_name: Box<str> = match container {
            Some(container) => format!("{container}|{}", row.name).into(),
            None => row.name.into(),
        };
        let all: Vec<Self> = row.subcommands.iter().map(|row| Self::new(row, Some(&full_name), next_index)).collect();
        let mut subcommands = Names::with_room_for(all.len());
        for (position, command) in all.iter().enumerate() {
            subcommands.insert(command.row.name.as_bytes(), position);
        }
        let is_quick = row.flags.has(Flags::FAST) || row.complexity == "O(1)";
        let key_range = row.key_range();
        let has_one_key = row.keys.len() == 1 && key_range.0 > 0 && key_range.0 == key_range.1;
        Self { row, index, full_name, key_range, has_one_key, is_quick, subcommands, all }
    }

    /// Its subcommands.
    pub fn subcommands(&self) -> &[Command] {
        &self.all
    }

    /// The subcommand of this name, in any case.
    pub fn subcommand(&self, name: &[u8]) -> Option<&Command> {
        self.subcommands.find(name).map(|position| &self.all[position])
    }

    /// Whether a command line of `count` arguments, the name included, has as many as the command takes.
    #[inline]
    pub fn fits(&self, count: usize) -> bool {
        let wanted = self.row.arity.unsigned_abs() as usize;
        if self.row.arity < 0 { count >= wanted } else { count == wanted }
    }
}

/// Why a `rename-command` cannot be done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RenameError {
    /// No command has the old name.
    NoSuchCommand,
    /// A command has the new name already.
    NameTaken,
}

/// All commands.
pub struct Table {
    commands: Vec<Command>,
    names: Names,
    len: usize,
}

impl Table {
    /// The table of the rows of all families.
    pub fn new(families: &[&'static [Row]]) -> Self {
        let mut len = 0;
        let rows = families.iter().flat_map(|rows| rows.iter());
        let commands: Vec<_> = rows.map(|row| Command::new(row, None, &mut len)).collect();
        let mut names = Names::with_room_for(commands.len());
        for (position, command) in commands.iter().enumerate() {
            names.insert(command.row.name.as_bytes(), position);
        }
        Self { commands, names, len }
    }

    /// Gives a command another name to be called by; an empty one makes it unreachable. Its own name stays in COMMAND's answers.
    pub fn rename(&mut self, old: &[u8], new: &[u8]) -> Result<(), RenameError> {
        let position = self.names.find(old).ok_or(RenameError::NoSuchCommand)?;
        if !new.is_empty() && self.names.find(new).is_some_and(|taken| taken != position) {
            return Err(RenameError::NameTaken);
        }
        self.names.remove(old);
        if !new.is_empty() {
            self.names.insert(new, position);
        }
        Ok(())
    }

    /// Number of commands with their subcommands; every [`Command::index`] is below it.
    #[allow(clippy::len_without_is_empty, reason = "a table without commands is of no use")]
    pub fn len(&self) -> usize {
        self.len
    }

    /// The commands that can be reached, without their subcommands, in the families' order.
    pub fn commands(&self) -> impl ExactSizeIterator<Item = &Command> + Clone {
        let mut reached: Vec<usize> = self.names.entries.iter().map(|(_, position)| *position).collect();
        reached.sort_unstable();
        reached.into_iter().map(|position| &self.commands[position])
    }

    /// Every command and subcommand, renamed away or not, by [`Command::index`].
    pub fn all(&self) -> impl Iterator<Item = &Command> {
        self.commands.iter().flat_map(|command| std::iter::once(command).chain(&command.all))
    }

    /// The command of this name, in any case; for a container, the container.
    #[inline]
    pub fn find(&self, name: &[u8]) -> Option<&Command> {
        self.names.find(name).map(|position| &self.commands[position])
    }

    /// The command or subcommand of a full name, in any case: `get`, `client|kill`.
    pub fn find_full(&self, name: &[u8]) -> Option<&Command> {
        match memchr::memchr(b'|', name) {
            None => self.find(name),
            Some(bar) => self.find(&name[..bar])?.subcommand(&name[bar + 1..]),
        }
    }

    /// The command that a command line means: the subcommand, where there is one. Arity is not checked.
    pub fn find_line(&self, args: &Args<'_>) -> Option<&Command> {
        let command = self.find(args.at(0))?;
        match args.get(1) {
            Some(name) if !command.all.is_empty() => command.subcommand(name),
            _ => Some(command),
        }
    }

    /// The command to run for a command line, with its arity checked; else the error that Redis answers.
    #[inline]
    pub fn resolve(&self, args: &Args<'_>) -> Result<&Command, CommandError> {
        match self.find_line(args) {
            Some(command) if command.fits(args.len()) => Ok(command),
            Some(command) => Err(CommandError::wrong_arity(&command.full_name)),
            None => Err(self.unknown(args)),
        }
    }

    #[cold]
    fn unknown(&self, args: &Args<'_>) -> CommandError {
        let name = args.at(0);
        if self.find(name).is_some() {
            let after = format!("'. Try {} HELP.", String::from_utf8_lossy(name).to_ascii_uppercase());
            return CommandError::quoting("unknown subcommand '", shown(args.at(1), SHOWN_BYTES), &after);
        }
        let mut arguments = Vec::new();
        for argument in args.from(1) {
            if arguments.len() >= SHOWN_BYTES {
                break;
            }
            let argument = shown(argument, SHOWN_BYTES - arguments.len());
            arguments.extend_from_slice(&[b"'", argument, b"' "].concat());
        }
        let before = [b"unknown command '", shown(name, SHOWN_BYTES), b"', with args beginning with: "].concat();
        CommandError { code: "ERR", message: [before, arguments].concat().into() }
    }
}

/// How much of a name, and of all its arguments together, an error about an unknown command repeats.
const SHOWN_BYTES: usize = 128;

/// The text as C's `%.*s` prints it: at most so many bytes, ending before a zero byte.
fn shown(bytes: &[u8], at_most: usize) -> &[u8] {
    let bytes = &bytes[..bytes.len().min(at_most)];
    &bytes[..memchr::memchr(0, bytes).unwrap_or(bytes.len())]
}

/// A name's first and last eight bytes, upper-cased, and its length. Equal for equal names, and different for different
/// names of up to [`Packed::EXACT`] bytes.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Packed {
    head: u64,
    tail: u64,
    len: usize,
}

impl Packed {
    /// Names up to this length are told apart by their packed form alone.
    const EXACT: usize = 16;

    #[inline]
    fn new(name: &[u8]) -> Self {
        // Loads that overlap stand in for a loop over the bytes; together with the length they still say the whole name.
        let word = |from: usize| -> u64 {
            let mut bytes = [0; 8];
            bytes.copy_from_slice(&name[from..from + 8]);
            u64::from_le_bytes(bytes)
        };
        let half = |from: usize| -> u64 {
            let mut bytes = [0; 4];
            bytes.copy_from_slice(&name[from..from + 4]);
            u64::from(u32::from_le_bytes(bytes))
        };
        let (head, tail) = match name.len() {
            0 => (0, 0),
            len @ 1..=3 => (u64::from(name[0]) | u64::from(name[len / 2]) << 8 | u64::from(name[len - 1]) << 16, 0),
            len @ 4..=7 => (half(0), half(len - 4)),
            len => (word(0), word(len - 8)),
        };
        Self { head: to_upper(head), tail: to_upper(tail), len: name.len() }
    }

    #[inline]
    fn hash(self) -> usize {
        // The multiplier is the golden ratio's; its upper half depends on all bits below.
        let mixed = (self.head ^ self.tail.rotate_left(29) ^ self.len as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        (mixed >> 32) as usize
    }
}

/// Upper-cases the ASCII letters among eight bytes.
#[inline]
const fn to_upper(word: u64) -> u64 {
    const EACH: u64 = 0x0101_0101_0101_0101;
    let seven_bits = word & (EACH * 0x7F);
    // A byte's top bit is set where the byte is at least 'a', above 'z', or no ASCII: no sum leaves its byte.
    let from_a = seven_bits + EACH * (0x80 - b'a' as u64);
    let after_z = seven_bits + EACH * (0x7F - b'z' as u64);
    let letters = from_a & !after_z & !word & (EACH * 0x80);
    word ^ (letters >> 2)
}

#[derive(Clone, Copy)]
struct Slot {
    name: Packed,
    /// Index into the entries plus one; 0 for a free slot.
    entry: u32,
}

/// An open-addressed map from names to positions.
struct Names {
    slots: Box<[Slot]>,
    /// The names in full, with their positions.
    entries: Vec<(Box<[u8]>, usize)>,
}

impl Names {
    fn with_room_for(count: usize) -> Self {
        let free = Slot { name: Packed::new(b""), entry: 0 };
        Self { slots: vec![free; (count * 4).next_power_of_two()].into(), entries: Vec::with_capacity(count) }
    }

    fn insert(&mut self, name: &[u8], position: usize) {
        debug_assert!(self.find(name).is_none(), "two commands are called {}", name.escape_ascii());
        self.entries.push((name.into(), position));
        self.place(self.entries.len() - 1);
    }

    fn remove(&mut self, name: &[u8]) {
        self.entries.retain(|(other, _)| !other.eq_ignore_ascii_case(name));
        self.slots.iter_mut().for_each(|slot| slot.entry = 0);
        (0..self.entries.len()).for_each(|entry| self.place(entry));
    }

    /// Puts an entry into the first free slot from its own on. There is one: at most a quarter of the slots is filled.
    fn place(&mut self, entry: usize) {
        let name = Packed::new(&self.entries[entry].0);
        let mut at = name.hash() & (self.slots.len() - 1);
        while self.slots[at].entry != 0 {
            at = (at + 1) & (self.slots.len() - 1);
        }
        self.slots[at] = Slot { name, entry: entry as u32 + 1 };
    }

    #[inline]
    fn find(&self, name: &[u8]) -> Option<usize> {
        let packed = Packed::new(name);
        let mut at = packed.hash() & (self.slots.len() - 1);
        // Ends at a free slot, of which there are three for each filled one.
        loop {
            let slot = self.slots[at];
            let entry = (slot.entry as usize).checked_sub(1)?;
            if slot.name == packed {
                let (full, position) = &self.entries[entry];
                if name.len() <= Packed::EXACT || full.eq_ignore_ascii_case(name) {
                    return Some(*position);
                }
            }
            at = (at + 1) & (self.slots.len() - 1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HELP: Row = Row { name: "help", arity: 2, ..Row::DEFAULT };
    static FIRST: &[Row] = &[
        Row { name: "get", arity: 2, ..Row::DEFAULT },
        Row {
            name: "client",
            arity: -2,
            subcommands: &[HELP, Row { name: "kill", arity: -3, ..Row::DEFAULT }],
            ..Row::DEFAULT
        },
    ];
    static SECOND: &[Row] = &[
        Row { name: "georadiusbymember_ro", arity: -6, ..Row::DEFAULT },
        Row { name: "georadiusXXmember_ro", arity: -6, ..Row::DEFAULT },
        Row { name: "command", arity: -1, subcommands: &[HELP], ..Row::DEFAULT },
    ];

    fn table() -> Table {
        Table::new(&[FIRST, SECOND])
    }

    fn resolve(line: &[&[u8]]) -> Result<String, String> {
        let table = table();
        let found = table.resolve(&Args::new(line));
        found
            .map(|command| command.full_name.to_string())
            .map_err(|error| String::from_utf8_lossy(&error.message).into_owned())
    }

    #[test]
    fn commands_are_found_in_any_case_and_whatever_their_length() {
        let table = table();
        let found = |name: &[u8]| table.find(name).map(|command| command.row.name);
        assert_eq!(found(b"gEt"), Some("get"));
        assert_eq!(found(b"GEORADIUSbymember_RO"), Some("georadiusbymember_ro"));
        assert_eq!(found(b"georadiusxxmember_ro"), Some("georadiusXXmember_ro"));
        for absent in
            [&b""[..], b"g", b"ge", b"get ", b"gets", b"ge\x14", b"GE\xd4", b"georadiusyymember_ro", &[0xff; 300]]
        {
            assert_eq!(found(absent), None);
        }
        assert_eq!(table.find_full(b"CLIENT|Kill").map(|command| &*command.full_name), Some("client|kill"));
        assert!(table.find_full(b"client|").is_none() && table.find_full(b"get|help").is_none());
        assert_eq!(table.len(), 8);
        assert!(table.all().enumerate().all(|(index, command)| command.index == index));
    }

    #[test]
    fn upper_casing_eight_bytes_is_upper_casing_each() {
        for byte in 0..=255u8 {
            let word = [b'z', byte, 0xff, byte, b'{', byte, 0x80, b'a'];
            assert_eq!(to_upper(u64::from_le_bytes(word)).to_le_bytes(), word.map(|byte| byte.to_ascii_uppercase()));
        }
    }

    #[test]
    fn a_line_resolves_to_its_subcommand_or_to_the_error_of_redis() {
        assert_eq!(resolve(&[b"GET", b"k"]).as_deref(), Ok("get"));
        assert_eq!(resolve(&[b"Client", b"KILL", b"x"]).as_deref(), Ok("client|kill"));
        assert_eq!(resolve(&[b"command"]).as_deref(), Ok("command"));
        let error = |line: &[&[u8]]| resolve(line).expect_err("an error");
        assert_eq!(error(&[b"get"]), "wrong number of arguments for 'get' command");
        assert_eq!(error(&[b"CLIENT"]), "wrong number of arguments for 'client' command");
        assert_eq!(error(&[b"client", b"kill"]), "wrong number of arguments for 'client|kill' command");
        assert_eq!(error(&[b"Client", b"foo"]), "unknown subcommand 'foo'. Try CLIENT HELP.");
        assert_eq!(error(&[b"command", b"x\0y"]), "unknown subcommand 'x'. Try COMMAND HELP.");
        assert_eq!(error(&[b"foo"]), "unknown command 'foo', with args beginning with: ");
        assert_eq!(error(&[b"foo", b"a", b"b c"]), "unknown command 'foo', with args beginning with: 'a' 'b c' ");
        let long = [b'x'; 200];
        let (name, first) = ("x".repeat(128), "x".repeat(124));
        assert_eq!(
            error(&[&long, b"", &long, b"unseen"]),
            format!("unknown command '{name}', with args beginning with: '' '{first}x' ")
        );
    }

    #[test]
    fn a_renamed_command_answers_to_its_new_name_only() {
        let mut table = table();
        assert_eq!(table.rename(b"GET", b"fetch-the-value-of-a-key"), Ok(()));
        assert_eq!(table.rename(b"get", b"x"), Err(RenameError::NoSuchCommand));
        assert_eq!(table.rename(b"command", b"Client"), Err(RenameError::NameTaken));
        assert_eq!(table.rename(b"client", b""), Ok(()));
        assert!(table.find(b"get").is_none() && table.find(b"client").is_none());
        assert_eq!(table.find(b"FETCH-the-value-of-a-key").map(|command| &*command.full_name), Some("get"));
        assert_eq!(table.commands().len(), 4);
        assert_eq!(table.all().count(), table.len());
    }
}
