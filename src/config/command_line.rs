//! The command line: `caswell [configuration file] [-] [--directive value ...]`, as `redis-server` takes it.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;

use structopt::StructOpt;
use structopt::clap::{AppSettings, ErrorKind};

use super::load::{self, Sources};
use super::setting::Effect;
use super::table;

/// Everything after the program's name. Directives are checked by the settings table, not here: they may be any of it, with any
/// number of values.
#[derive(StructOpt)]
#[structopt(
    name = "caswell",
    about = "A Redis-compatible server that runs every command on every core.",
    usage = "caswell [redis.conf] [-] [--directive value ...]",
    help_message = "Prints this text",
    settings = &[AppSettings::AllowLeadingHyphen, AppSettings::TrailingVarArg, AppSettings::DisableVersion],
)]
struct CommandLine {
    /// A configuration file, `-` for the standard input, and directives.
    #[structopt(parse(from_os_str), hidden = true)]
    arguments: Vec<OsString>,
}

/// What the command line asks for.
#[derive(Debug, PartialEq, Eq)]
pub enum Request {
    /// To serve, with this configuration.
    Serve(Sources),
    /// To print this text and end well.
    Print(String),
    /// To print this text as an error and end with a failure.
    Fail(String),
}

/// Reads the arguments after the program's name.
pub fn parse(arguments: impl IntoIterator<Item = OsString>) -> Request {
    let arguments: Vec<OsString> = arguments.into_iter().collect();
    match arguments.first().and_then(|first| first.to_str()) {
        Some("-v" | "--version") => return Request::Print(version()),
        Some(option @ ("--test-memory" | "--check-system")) => {
            return Request::Fail(format!(
                "caswell: {option} is not supported: use a memory tester such as memtester\n"
            ));
        }
        _ => {}
    }
    let help = directives();
    let application = CommandLine::clap().set_term_width(0).after_help(help.as_str());
    let with_name = std::iter::once(OsString::from("caswell")).chain(arguments);
    match application.get_matches_from_safe(with_name) {
        Ok(matches) => {
            let line = CommandLine::from_clap(&matches);
            let arguments: Vec<Vec<u8>> = line.arguments.into_iter().map(OsString::into_vec).collect();
            Request::Serve(load::from_arguments(&arguments))
        }
        Err(error) if error.kind == ErrorKind::HelpDisplayed => {
            Request::Print(format!("{}\n", error.message.trim_end()))
        }
        Err(error) => Request::Fail(format!("{}\n", error.message.trim_end())),
    }
}

/// In the form of `redis-server --version`, which tools take apart.
fn version() -> String {
    let (version, redis) = (env!("CARGO_PKG_VERSION"), crate::REDIS_VERSION);
    format!("Caswell server v={version} redis={redis} malloc=mimalloc bits={}\n", usize::BITS)
}

/// The part of the help that is made from the table.
fn directives() -> String {
    let mut text = String::from(
        "EXAMPLES:\n    caswell                                  port 6379, one thread per core\n    \
         caswell /etc/redis.conf --port 7000      a file, and what differs from it\n    \
         echo 'port 7000' | caswell -             configuration on standard input\n\n\
         DIRECTIVES, in a file or with -- in front; docs/configuration.md lists all of them:\n",
    );
    for topic in table::TOPICS {
        let done: Vec<_> = topic.settings.iter().filter(|setting| setting.effect == Effect::Done).collect();
        if done.is_empty() {
            continue;
        }
        text.push_str(&format!("  {}\n", topic.title));
        for setting in done {
            let default = match setting.default {
                "" | "\"\"" => String::new(),
                default => format!(" [{default}]"),
            };
            text.push_str(&format!("    --{:<34} {}{default}\n", setting.name, setting.doc));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(arguments: &[&str]) -> Request {
        parse(arguments.iter().map(OsString::from))
    }

    fn sources(arguments: &[&str]) -> Sources {
        match request(arguments) {
            Request::Serve(sources) => sources,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn directives_come_through_whatever_they_look_like() {
        assert_eq!(sources(&[]), Sources::default());
        assert_eq!(sources(&["--port", "7000"]).options, b"port \"7000\" ");
        assert_eq!(sources(&["--save", "", "--appendonly", "no"]).options, b"save \"\" \nappendonly \"no\" ");
        assert_eq!(sources(&["a.conf", "--port", "-1"]).options, b"port \"-1\" ");
        assert_eq!(sources(&["a.conf", "--port", "-1"]).file, Some("a.conf".into()));
        assert!(sources(&["-"]).standard_input);
        assert_eq!(sources(&["--bind", "127.0.0.1", "-::1"]).options, b"bind \"127.0.0.1\" \"-::1\" ");
        assert_eq!(sources(&["--requirepass", "--help"]).options, b"requirepass \"--help\" ");
    }

    #[test]
    fn help_and_version_are_printed() {
        for option in ["-v", "--version"] {
            let Request::Print(text) = request(&[option]) else { panic!("{option}") };
            assert!(text.starts_with(&format!("Caswell server v={} ", env!("CARGO_PKG_VERSION"))));
        }
        for option in ["-h", "--help"] {
            let Request::Print(text) = request(&[option]) else { panic!("{option}") };
            assert!(text.contains("--maxclients") && text.contains("--threads"), "{text}");
            assert!(!text.contains("--tls-port"), "only what works is listed");
        }
        assert!(matches!(request(&["--test-memory", "100"]), Request::Fail(_)));
    }
}
