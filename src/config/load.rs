//! Puts a configuration into effect while the server starts: a file, standard input, and the command line, in this order;
//! of several lines about one setting the last one stands.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use super::file::{self, Directive, FileError};
use super::settings::Settings;
use super::table;
use super::value::Value;
use crate::command::table::{RenameError, Table};
use crate::glob;
use crate::limits::{CONFIG_FILE_BYTES_MAX, CONFIG_INCLUDE_DEPTH_MAX};

/// Where the configuration comes from.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sources {
    /// The configuration file.
    pub file: Option<PathBuf>,
    /// Whether more is read from standard input.
    pub standard_input: bool,
    /// Lines made from the command line.
    pub options: Vec<u8>,
}

/// Why the server cannot start with this configuration.
#[derive(Debug)]
pub enum LoadError {
    /// The file cannot be read.
    Unreadable(PathBuf, io::Error),
    /// A line cannot be used.
    Line(FileError),
}

impl fmt::Display for LoadError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unreadable(path, error) => {
                let error = super::settings::system_text(error);
                write!(formatter, "Fatal error, can't open config file '{}': {error}", path.display())
            }
            Self::Line(error) => error.fmt(formatter),
        }
    }
}

impl std::error::Error for LoadError {}

impl From<FileError> for LoadError {
    fn from(error: FileError) -> Self {
        Self::Line(error)
    }
}

/// Sets `settings` from `sources`, and renames commands in `commands`.
///
/// # Errors
/// The first thing that is wrong; the settings are half set then.
pub fn load(settings: &Settings, sources: &Sources, commands: &mut Table) -> Result<(), LoadError> {
    let mut text = Vec::new();
    if let Some(path) = &sources.file {
        let path = std::path::absolute(path).map_err(|error| LoadError::Unreadable(path.clone(), error))?;
        text = read(&path)?;
        settings.set_file(path);
    }
    if sources.standard_input {
        read_bounded(io::stdin().lock(), &mut text)
            .map_err(|error| LoadError::Unreadable(PathBuf::from("standard input"), error))?;
    }
    text.push(b'\n');
    text.extend_from_slice(&sources.options);
    Loader { settings, commands, seen_save: false, depth: 0 }.load(&text)
}

fn read(path: &Path) -> Result<Vec<u8>, LoadError> {
    let mut text = Vec::new();
    std::fs::File::open(path)
        .and_then(|file| read_bounded(file, &mut text))
        .map_err(|error| LoadError::Unreadable(path.to_owned(), error))?;
    Ok(text)
}

/// Reads one byte more than allowed at most; [`file::parse`] refuses a text of that length.
fn read_bounded(source: impl io::Read, text: &mut Vec<u8>) -> io::Result<()> {
    use io::Read;
    source.take(CONFIG_FILE_BYTES_MAX as u64 + 1).read_to_end(text).map(|_| ())
}

struct Loader<'a> {
    settings: &'a Settings,
    commands: &'a mut Table,
    /// The first `save` line takes away the default's save points, the others add to it.
    seen_save: bool,
    depth: usize,
}

impl Loader<'_> {
    fn load(&mut self, text: &[u8]) -> Result<(), LoadError> {
        for directive in file::parse(text)? {
            self.directive(&directive)?;
        }
        Ok(())
    }

    fn directive(&mut self, directive: &Directive) -> Result<(), LoadError> {
        let words: Vec<&[u8]> = directive.words.iter().map(Vec::as_slice).collect();
        if let Some(index) = table::find(&directive.name) {
            let is_save = table::row(index).name == "save";
            let from = (is_save && !self.seen_save).then(|| Value::Words(Vec::new()));
            self.seen_save |= is_save;
            let set = self.settings.set_at_start(index, from, &words);
            return set.map_err(|refusal| FileError::of(directive, refusal).into());
        }
        match (directive.name.as_slice(), words.as_slice()) {
            (b"include", [path]) => self.include(directive, path),
            (b"rename-command", [old, new]) => self.rename_command(directive, old, new),
            // A pair of dashes alone on the command line.
            (b"", []) => Ok(()),
            (name, _) => {
                let refused = table::DIRECTIVES.iter().find(|(known, works, _)| known.as_bytes() == name && !works);
                let reason = refused.map_or("Bad directive or wrong number of arguments", |(_, _, reason)| reason);
                Err(FileError::of(directive, reason).into())
            }
        }
    }

    fn include(&mut self, directive: &Directive, path: &[u8]) -> Result<(), LoadError> {
        use std::os::unix::ffi::OsStrExt;
        if self.depth == CONFIG_INCLUDE_DEPTH_MAX {
            return Err(FileError::of(directive, "Too many files include one another").into());
        }
        let path = Path::new(std::ffi::OsStr::from_bytes(path));
        self.depth += 1;
        for path in expand(path) {
            self.load(&read(&path)?)?;
        }
        self.depth -= 1;
        Ok(())
    }

    fn rename_command(&mut self, directive: &Directive, old: &[u8], new: &[u8]) -> Result<(), LoadError> {
        self.commands.rename(old, new).map_err(|error| {
            let reason = match error {
                RenameError::NoSuchCommand => "No such command in rename-command",
                RenameError::NameTaken => "Target command name already exists",
            };
            FileError::of(directive, reason).into()
        })
    }
}

/// The files that a path with wild cards in its last part names, in order; the path itself if it has none.
fn expand(path: &Path) -> Vec<PathBuf> {
    use std::os::unix::ffi::OsStrExt;
    let Some(pattern) = path.file_name().filter(|name| name.as_bytes().iter().any(|byte| b"*?[".contains(byte))) else {
        return vec![path.to_owned()];
    };
    let directory = match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    let mut found: Vec<PathBuf> = std::fs::read_dir(directory)
        .into_iter()
        .flatten()
        .flatten()
        .filter(|entry| {
            let name = entry.file_name();
            // As shells do, a leading dot must be asked for.
            let hidden = name.as_bytes().starts_with(b".") && !pattern.as_bytes().starts_with(b".");
            !hidden && glob::matches(pattern.as_bytes(), name.as_bytes(), false)
        })
        .map(|entry| entry.path())
        .collect();
    found.sort();
    found
}

/// Makes configuration lines from command-line arguments, as `redis-server` takes them: an optional file first, `-` for
/// standard input first or last, and `--name value ...` for directives.
pub fn from_arguments(arguments: &[Vec<u8>]) -> Sources {
    use std::os::unix::ffi::OsStrExt;
    let mut sources = Sources::default();
    let mut rest = arguments;
    if let [first, tail @ ..] = arguments
        && !first.starts_with(b"-")
    {
        sources.file = Some(PathBuf::from(std::ffi::OsStr::from_bytes(first)));
        rest = tail;
    }
    let options = &mut sources.options;
    // A directive that still lacks a value takes the next argument even if that begins with dashes.
    let mut wants_value = false;
    for (index, argument) in rest.iter().enumerate() {
        let is_last = index + 1 == rest.len();
        if argument == b"-" && (index == 0 || is_last) {
            sources.standard_input = true;
            continue;
        }
        let Some(name) = argument.strip_prefix(b"--").filter(|_| !wants_value) else {
            options.extend(super::value::quote(argument));
            options.push(b' ');
            wants_value = false;
            continue;
        };
        if !options.is_empty() {
            options.push(b'\n');
        }
        options.extend_from_slice(name);
        options.push(b' ');
        // `--name "value"` may come as one argument.
        wants_value = file::split_words(argument).is_some_and(|words| words.len() == 1);
        let next_is_option = rest.get(index + 1).is_none_or(|next| next.starts_with(b"--"));
        if wants_value && next_is_option && name.eq_ignore_ascii_case(b"save") {
            // `--save` alone means no save points.
            options.extend_from_slice(b"\"\"");
            wants_value = false;
        }
    }
    sources
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(arguments: &[&str]) -> String {
        let arguments: Vec<Vec<u8>> = arguments.iter().map(|argument| argument.as_bytes().to_vec()).collect();
        String::from_utf8(from_arguments(&arguments).options).expect("test input")
    }

    fn commands() -> Table {
        use crate::command::spec::Row;
        static ROWS: &[Row] = &[Row { name: "get", ..Row::DEFAULT }, Row { name: "set", ..Row::DEFAULT }];
        Table::new(&[ROWS])
    }

    fn load_text(text: &str) -> Result<Settings, String> {
        let settings = Settings::new();
        let sources = Sources { options: text.as_bytes().to_vec(), ..Sources::default() };
        load(&settings, &sources, &mut commands()).map_err(|error| error.to_string())?;
        Ok(settings)
    }

    #[test]
    fn arguments_become_lines() {
        assert_eq!(options(&["--port", "7000", "--save", "60", "1"]), "port \"7000\" \nsave \"60\" \"1\" ");
        assert_eq!(options(&["--save", "--port", "1"]), "save \"\"\nport \"1\" ");
        assert_eq!(options(&["--port 1", "--save"]), "port 1 \nsave \"\"");
        assert_eq!(options(&["--requirepass", "--odd", "--port", "1"]), "requirepass \"--odd\" \nport \"1\" ");
        let sources = from_arguments(&[b"a.conf".to_vec(), b"-".to_vec(), b"--port".to_vec(), b"1".to_vec()]);
        assert_eq!(sources.file, Some("a.conf".into()));
        assert!(sources.standard_input);
        assert_eq!(sources.options, b"port \"1\" ");
    }

    #[test]
    fn the_last_line_stands_and_save_points_add_up() {
        let settings = load_text("port 1\nPORT 2\nsave 1 2\nsave 3 4\nslave-priority 7").expect("well formed");
        assert_eq!(settings.port.get(), 2);
        assert_eq!(settings.print(table::find(b"save").expect("a setting")), b"1 2 3 4");
        assert_eq!(settings.value("replica-priority"), Value::Number(7));
        let settings = load_text("save 1 2\nsave \"\"").expect("well formed");
        assert_eq!(settings.value("save"), Value::Words(Vec::new()));
    }

    #[test]
    fn errors_are_worded_as_in_redis() {
        let cases = [
            ("port", "wrong number of arguments"),
            ("port 1 2", "wrong number of arguments"),
            ("port x", "argument couldn't be parsed into an integer"),
            ("foo bar", "Bad directive or wrong number of arguments"),
            ("rename-command FOO BAR", "No such command in rename-command"),
            ("rename-command GET SET", "Target command name already exists"),
            ("rename-command GET", "Bad directive or wrong number of arguments"),
            ("unixsocketperm 1777", "argument must be between 0 and 777 inclusive"),
            ("dir /does/not/exist", "No such file or directory"),
            ("appendonly yes", "The append-only file is not part of this version: data is kept in memory only."),
            ("appendfilename a/b", "appendfilename can't be a path, just a filename"),
            ("loadmodule x", "Modules cannot be loaded."),
        ];
        for (line, reason) in cases {
            let error = load_text(line).err().unwrap_or_default();
            assert!(error.ends_with(&format!(", at line 2\n>>> '{line}'\n{reason}")), "{line}: {error}");
        }
    }

    #[test]
    fn renames_take_effect_one_by_one() {
        assert!(load_text("rename-command GET \"\"\nrename-command SET get").is_ok(), "GET was freed");
        assert!(load_text("rename-command GET a\nrename-command GET b").is_err());
    }

    #[test]
    fn included_files_are_read_in_place_and_bounded() {
        let directory = std::env::temp_dir().join(format!("caswell-include-{}", std::process::id()));
        std::fs::create_dir_all(&directory).expect("a temporary directory");
        let path = |name: &str| directory.join(name);
        std::fs::write(path("1.conf"), "port 1\ntimeout 5\n").expect("a file");
        std::fs::write(path("2.conf"), "port 2\n").expect("a file");
        std::fs::write(path("loop"), format!("include {}\n", path("loop").display())).expect("a file");
        let settings = load_text(&format!("port 9\ninclude {}\n", path("*.conf").display())).expect("two files");
        assert_eq!((settings.port.get(), settings.timeout_seconds.get()), (2, 5));
        let error = load_text(&format!("include {}", path("loop").display())).err().unwrap_or_default();
        assert!(error.contains("Too many files include one another"), "{error}");
        let error = load_text("include /does/not/exist").err().unwrap_or_default();
        assert!(error.starts_with("Fatal error, can't open config file '/does/not/exist': "), "{error}");
        std::fs::remove_dir_all(&directory).expect("the temporary directory");
    }
}
