//! Command lines made from the rows' own argument syntax, and how often each row and each option of it was run.

use crate::draw::Draw;
use crate::values::Values;
use caswell::command::family::FAMILIES;
use caswell::command::spec::{Argument, ArgumentKind, Flags, Group, Handler, Row};

/// A command line, and what it exercises.
#[derive(Clone, Debug)]
pub struct Line {
    /// The arguments, the name first.
    pub words: Vec<Vec<u8>>,
    /// Index of the command in the catalogue.
    pub command: usize,
    /// Indexes of its options that the line uses.
    pub options: Vec<usize>,
    /// Whether another connection than the sequence's own sends it.
    pub by_other: bool,
}

impl Line {
    /// Whether the command may end its own connection.
    pub fn ends_connection(&self, catalogue: &Catalogue) -> bool {
        matches!(&*catalogue.subjects[self.command].full_name, "quit" | "client|kill")
    }

    /// The line as people type it.
    pub fn show(&self) -> String {
        let quote = |word: &Vec<u8>| {
            let plain = !word.is_empty() && word.iter().all(|byte| byte.is_ascii_graphic() && *byte != b'"');
            match word.len() {
                81.. => format!("\"{}\"(and {} bytes)", word[..20].escape_ascii(), word.len() - 20),
                _ if plain => word.escape_ascii().to_string(),
                _ => format!("\"{}\"", word.escape_ascii()),
            }
        };
        let words = self.words.iter().map(quote).collect::<Vec<_>>().join(" ");
        if self.by_other { format!("(by another) {words}") } else { words }
    }
}

/// An argument with the number of the option that its token is.
struct Node {
    argument: &'static Argument,
    option: Option<usize>,
    children: Vec<Node>,
}

/// A command that lines are made for.
pub struct Subject {
    /// `get`, `client|kill`
    pub full_name: String,
    /// Its row.
    pub row: &'static Row,
    /// What names each option in the table of counts: `condition NX`.
    pub options: Vec<String>,
    /// Runs of the command.
    pub runs: usize,
    /// Runs of each option.
    pub option_runs: Vec<usize>,
    syntax: Vec<Node>,
}

impl Subject {
    fn new(full_name: String, row: &'static Row) -> Self {
        let mut options = Vec::new();
        let syntax = nodes(row.arguments, "", &mut options);
        Self { full_name, row, option_runs: vec![0; options.len()], options, runs: 0, syntax }
    }

    /// Whether it is about transactions.
    pub fn is_of_transactions(&self) -> bool {
        self.row.group == Group::Transactions
    }

    /// Whether it changes keys, and never waits.
    fn writes_keys(&self) -> bool {
        let flags = self.row.flags;
        flags.has(Flags::WRITE) && !flags.has(Flags::BLOCKING) && !self.row.keys.is_empty()
    }

    /// Whether EXEC's replies can be compared with it among the queued commands: all servers must queue it or refuse it alike, and all must answer.
    fn can_be_queued(&self) -> bool {
        // An array with replies missing is what CLIENT REPLY within EXEC makes of the protocol. What stands for nested transactions is refused
        // everywhere, but in Valkey the transaction is lost then.
        let name = &*self.full_name;
        !crate::run::is_newer_than("redis", self.row.since)
            && !matches!(name, "client|kill" | "client|reply" | "cluster|replicate" | "multi" | "watch")
            && !name.starts_with("command|getkeys")
    }

    fn is_container(&self) -> bool {
        matches!(self.row.handler, Handler::Container)
    }

    /// Whether it or an option of it has run less than `target` times.
    pub fn needs_runs(&self, target: usize) -> bool {
        self.runs < target || self.option_runs.iter().any(|runs| *runs < target)
    }
}

fn nodes(arguments: &'static [Argument], path: &str, options: &mut Vec<String>) -> Vec<Node> {
    let node = |argument: &'static Argument| {
        let option = (!argument.token.is_empty()).then(|| {
            options.push(format!("{path}{}", argument.token));
            options.len() - 1
        });
        let path = format!("{path}{} ", argument.name);
        Node { argument, option, children: nodes(argument.arguments, &path, options) }
    };
    arguments.iter().map(node).collect()
}

/// Commands that do not answer with one reply each, or after which others do not; `pubsub.rs` compares them by scripts.
const SCRIPTED: &[&str] = &[
    // Refused within a pipeline.
    "script|debug",
    "subscribe",
    "psubscribe",
    "ssubscribe",
    "unsubscribe",
    "punsubscribe",
    "sunsubscribe",
    "monitor",
    "client|tracking",
];

/// All commands, with their counts.
pub struct Catalogue {
    /// The commands and subcommands of all families.
    pub subjects: Vec<Subject>,
}

impl Catalogue {
    /// Every row of every family that can be drawn.
    pub fn new() -> Self {
        let mut subjects = Vec::new();
        for row in FAMILIES.iter().flat_map(|rows| rows.iter()) {
            subjects.push(Subject::new(row.name.to_owned(), row));
            for subcommand in row.subcommands {
                subjects.push(Subject::new(format!("{}|{}", row.name, subcommand.name), subcommand));
            }
        }
        subjects.retain(|subject| !SCRIPTED.contains(&subject.full_name.as_str()));
        Self { subjects }
    }

    /// Index of the command of this full name.
    pub fn position(&self, full_name: &str) -> usize {
        let found = self.subjects.iter().position(|subject| subject.full_name == full_name);
        found.unwrap_or_else(|| panic!("no row is called {full_name}"))
    }

    /// Counts a line that was run.
    pub fn count(&mut self, line: &Line) {
        let subject = &mut self.subjects[line.command];
        subject.runs += 1;
        for option in &line.options {
            subject.option_runs[*option] += 1;
        }
    }

    /// A line for the command with this index.
    pub fn line(&self, command: usize, draw: &mut Draw, values: &mut Values) -> Line {
        let subject = &self.subjects[command];
        let mut words: Vec<Vec<u8>> = subject.full_name.split('|').map(|word| any_case(word, draw)).collect();
        let mut used = Vec::new();
        let name_words = words.len();
        match crate::special::arguments(self, subject, draw, values) {
            Some(arguments) => words.extend(arguments),
            None if subject.is_container() => {
                words.extend(
                    (0..draw.below(3)).map(|_| draw.pick(&["nosuch", "HEL", "", "help ", "\0"]).as_bytes().to_vec()),
                );
            }
            None => {
                let mut maker = Maker { subject, draw, values, words: &mut words };
                maker.arguments(&subject.syntax);
                // Redis 7.0 does what a HELLO line says while it reads it, later versions do all or nothing.
                if draw.chance(12) && subject.full_name != "hello" {
                    spoil(subject, name_words, &mut words, draw);
                }
            }
        }
        crate::values::keep_waits_short(&subject.full_name, &mut words);
        for (option, token) in tokens(&subject.syntax) {
            if words[name_words..].iter().any(|word| word.eq_ignore_ascii_case(token.as_bytes())) {
                used.push(option);
            }
        }
        Line { words, command, options: used, by_other: false }
    }

    /// A line that is a command's name and nothing else.
    fn bare(&self, name: &str, draw: &mut Draw) -> Line {
        Line { words: vec![any_case(name, draw)], command: self.position(name), options: Vec::new(), by_other: false }
    }

    /// Lines that are about one transaction: perhaps watched keys and something that may change them, then MULTI, commands from
    /// `pool`, and EXEC or DISCARD.
    pub fn transaction(&self, pool: &[usize], draw: &mut Draw, values: &mut Values) -> Vec<Line> {
        let mut lines = Vec::new();
        if draw.chance(50) {
            lines.push(self.line(self.position("watch"), draw, values));
            let writes: Vec<usize> =
                (0..self.subjects.len()).filter(|index| self.subjects[*index].writes_keys()).collect();
            for _ in 0..draw.below(3) {
                let line = self.line(writes[draw.below(writes.len())], draw, values);
                lines.push(Line { by_other: draw.chance(50), ..line });
            }
            if draw.chance(10) {
                lines.push(self.bare("unwatch", draw));
            }
        }
        lines.push(self.bare("multi", draw));
        for _ in 0..draw.below(7) {
            lines.push(self.line(pool[draw.below(pool.len())], draw, values));
        }
        lines.push(self.bare(if draw.chance(85) { "exec" } else { "discard" }, draw));
        lines
    }
}

/// The lines of a sequence that can be compared, given those before them.
pub fn comparable(catalogue: &Catalogue, lines: &[Line]) -> Vec<Line> {
    let (mut silence, mut following) = (Silence::default(), Following::default());
    let mut is_comparable = |line: &&Line| {
        let subject = &catalogue.subjects[line.command];
        // Until Redis 7.2 a list that LTRIM leaves as it was has changed for those who watch it.
        if following.watching && subject.full_name == "ltrim" {
            return false;
        }
        if line.by_other {
            // While replies are not wanted nobody can tell whether the commands before it are done.
            return silence == Silence::default();
        }
        if following.queueing && !subject.can_be_queued() {
            return false;
        }
        let before = silence;
        // Redis forgets to close a connection that has nothing left to send, and so does not end one that wants no replies.
        if silence.hides_reply_of(line) && line.ends_connection(catalogue) {
            silence = before;
            return false;
        }
        following.follow(line);
        true
    };
    lines.iter().filter(&mut is_comparable).cloned().collect()
}

/// How far a connection's transaction is; perhaps not so far, where a command was refused or the connection lost.
#[derive(Default, Clone, Copy)]
pub struct Following {
    /// Whether commands are being queued.
    pub queueing: bool,
    /// Whether keys are watched.
    pub watching: bool,
}

impl Following {
    /// Goes on to the state after a line.
    pub fn follow(&mut self, line: &Line) {
        let name = line.words[0].to_ascii_lowercase();
        match (&name[..], line.words.len()) {
            (b"multi", 1) => self.queueing = true,
            (b"watch", 2..) => self.watching = true,
            (b"unwatch", 1) => self.watching &= self.queueing,
            // With arguments it gives up what was queued too.
            (b"exec", _) | (b"discard" | b"reset" | b"quit", 1) => *self = Self::default(),
            _ => {}
        }
    }
}

/// Which replies do not come, because of CLIENT REPLY.
#[derive(Default, Clone, Copy, PartialEq, Eq)]
pub struct Silence {
    /// None come.
    pub off: bool,
    /// The next one does not come.
    pub skip: bool,
}

impl Silence {
    /// Whether a line's reply does not come; goes on to the state after it.
    pub fn hides_reply_of(&mut self, line: &Line) -> bool {
        let words: Vec<Vec<u8>> = line.words.iter().map(|word| word.to_ascii_lowercase()).collect();
        let mode = match &words[..] {
            [client, reply, mode] if client == b"client" && reply == b"reply" => &mode[..],
            [reset] if reset == b"reset" => b"reset",
            _ => b"",
        };
        let skipped = std::mem::take(&mut self.skip);
        match mode {
            b"on" => self.off = false,
            b"off" => self.off = true,
            b"reset" => {
                self.off = false;
                return skipped;
            }
            b"skip" if !self.off => {
                self.skip = true;
                return true;
            }
            _ => return self.off || skipped,
        }
        self.off
    }
}

/// The options of a syntax with their tokens.
fn tokens(nodes: &[Node]) -> Vec<(usize, &'static str)> {
    let mut found = Vec::new();
    for node in nodes {
        found.extend(node.option.map(|option| (option, node.argument.token)));
        found.extend(tokens(&node.children));
    }
    found
}

fn any_case(word: &str, draw: &mut Draw) -> Vec<u8> {
    match draw.below(10) {
        0 => word.bytes().map(|byte| if draw.chance(50) { byte.to_ascii_uppercase() } else { byte }).collect(),
        1..5 => word.to_ascii_lowercase().into_bytes(),
        _ => word.to_ascii_uppercase().into_bytes(),
    }
}

/// Breaks a line's syntax a little: a missing, doubled, surplus or odd argument.
fn spoil(subject: &Subject, name_words: usize, words: &mut Vec<Vec<u8>>, draw: &mut Draw) {
    let count = words.len() - name_words;
    let at = name_words + if count == 0 { 0 } else { draw.below(count) };
    match draw.below(5) {
        0 if count > 0 => drop(words.remove(at)),
        1 if count > 0 => words.insert(at, words[at].clone()),
        2 if count > 0 => words[at] = draw.pick(&["", "x", "-1", "NX", "COUNT", "\0"]).as_bytes().to_vec(),
        3 if !subject.options.is_empty() => {
            let all = tokens(&subject.syntax);
            words.push(all[draw.below(all.len())].1.as_bytes().to_vec());
        }
        _ => words.push(draw.pick(&["x", "1", ""]).as_bytes().to_vec()),
    }
}

struct Maker<'a> {
    subject: &'a Subject,
    draw: &'a mut Draw,
    values: &'a mut Values,
    words: &'a mut Vec<Vec<u8>>,
}

impl Maker<'_> {
    /// The fewest runs of any option below a node; those that ran least are taken more often.
    fn fewest_runs(&self, node: &Node) -> usize {
        let below = node.children.iter().map(|child| self.fewest_runs(child));
        node.option.map(|option| self.subject.option_runs[option]).into_iter().chain(below).min().unwrap_or(usize::MAX)
    }

    fn arguments(&mut self, nodes: &[Node]) {
        let mut order: Vec<&Node> = nodes.iter().collect();
        // Options may stand in any order.
        if let Some(first) = order.iter().position(|node| node.argument.optional)
            && order[first..].iter().all(|node| node.argument.optional && node.option.is_some())
            && self.subject.full_name != "hello"
            && self.draw.chance(40)
        {
            for last in (first + 1..order.len()).rev() {
                let other = first + self.draw.below(last - first + 1);
                order.swap(last, other);
            }
        }
        let mut key_count = None;
        for node in order {
            let wanted = if self.fewest_runs(node) < self.subject.runs / 3 { 80 } else { 35 };
            if node.argument.optional && !self.draw.chance(wanted) {
                continue;
            }
            if node.argument.name == "numkeys" {
                let count = 1 + self.draw.below(3);
                key_count = Some(count);
                let told = if self.draw.chance(85) {
                    count.to_string().into_bytes()
                } else {
                    self.values.integer(self.draw, -1, 4)
                };
                self.words.push(told);
                continue;
            }
            let times = match key_count.take() {
                Some(count) => count,
                None if node.argument.multiple => 1 + self.draw.below(3),
                None => 1,
            };
            for time in 0..times {
                if node.option.is_some() && (time == 0 || node.argument.multiple_token) {
                    let token = any_case(node.argument.token, self.draw);
                    self.words.push(token);
                }
                self.value(node);
            }
        }
    }

    fn value(&mut self, node: &Node) {
        match node.argument.kind {
            ArgumentKind::PureToken => {}
            ArgumentKind::Block => self.arguments(&node.children),
            ArgumentKind::OneOf => {
                let least =
                    node.children.iter().min_by_key(|child| self.fewest_runs(child)).expect("a choice has choices");
                let chosen =
                    if self.draw.chance(30) { least } else { &node.children[self.draw.below(node.children.len())] };
                self.arguments(std::slice::from_ref(chosen));
            }
            _ => {
                let value = self.values.of(self.draw, &self.subject.full_name, node.argument);
                self.words.push(value);
            }
        }
    }
}
