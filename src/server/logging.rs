//! The log: one line per event in Redis' form, so that tools which read Redis' logs read ours.
//!
//! `PID:M 30 Nov 2026 15:52:05.846 * text` - the mark before the text tells the level: `.` debug, `-` verbose, `*` notice,
//! `#` warning. The program logs through `tracing`, whose levels from TRACE to WARN (and ERROR) are these four.

use std::fmt::{self, Write as _};
use std::fs::OpenOptions;
use std::io::{self, Write};
use std::path::PathBuf;
use std::time::{SystemTime, UNIX_EPOCH};

use tracing::field::{Field, Visit};
use tracing::{Event, Level, Metadata, Subscriber};
use tracing_subscriber::layer::{Context, Layer, SubscriberExt};
use tracing_subscriber::util::SubscriberInitExt;

use super::Server;
use crate::config::LogLevel;
use crate::sync::Arc;

/// Begins to log for the rest of the process: to `file`, or to standard output. What is logged follows the setting
/// `loglevel` at once. A second call changes nothing.
pub fn start(server: &Arc<Server>, file: Option<PathBuf>) {
    let lines = Lines { server: Arc::clone(server), file };
    // It fails only if somebody logs already, as in tests that start several servers in one process.
    let _ = tracing_subscriber::registry().with(lines).try_init();
}

struct Lines {
    server: Arc<Server>,
    file: Option<PathBuf>,
}

fn level_of(metadata: &Metadata<'_>) -> LogLevel {
    match *metadata.level() {
        Level::TRACE => LogLevel::Debug,
        Level::DEBUG => LogLevel::Verbose,
        Level::INFO => LogLevel::Notice,
        _ => LogLevel::Warning,
    }
}

impl<S: Subscriber> Layer<S> for Lines {
    fn register_callsite(&self, _: &'static Metadata<'static>) -> tracing::subscriber::Interest {
        // The level may change at any time, so the question is asked anew for each event.
        tracing::subscriber::Interest::sometimes()
    }

    fn enabled(&self, metadata: &Metadata<'_>, _: Context<'_, S>) -> bool {
        level_of(metadata) as u8 >= self.server.settings.loglevel.get() as u8
            && metadata.target().starts_with("caswell")
    }

    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        let mark = match level_of(event.metadata()) {
            LogLevel::Debug => '.',
            LogLevel::Verbose => '-',
            LogLevel::Notice => '*',
            LogLevel::Warning | LogLevel::Nothing => '#',
        };
        let mut line = format!("{}:M {} {mark} ", std::process::id(), local_time(SystemTime::now()));
        event.record(&mut Text(&mut line));
        line.push('\n');
        // A log that cannot be written has nobody to be reported to.
        let _ = self.write(line.as_bytes());
    }
}

impl Lines {
    /// The file is opened for each line, as Redis does, so that it may be moved away at any time.
    fn write(&self, line: &[u8]) -> io::Result<()> {
        match &self.file {
            Some(path) => OpenOptions::new().create(true).append(true).open(path)?.write_all(line),
            None => io::stdout().lock().write_all(line),
        }
    }
}

/// The event's message, and its other fields behind it.
struct Text<'a>(&'a mut String);

impl Visit for Text<'_> {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        // Writing to a string cannot fail.
        let _ = match field.name() {
            "message" => write!(self.0, "{value:?}"),
            name => write!(self.0, " {name}={value:?}"),
        };
    }
}

const MONTHS: [&str; 12] = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

/// `30 Nov 2026 15:52:05.846` in the machine's time zone.
fn local_time(now: SystemTime) -> String {
    let since = now.duration_since(UNIX_EPOCH).unwrap_or_default();
    let seconds = since.as_secs() as libc::time_t;
    // SAFETY: `tm` is a C structure of integers and a pointer, for which all zeros are valid.
    let mut parts: libc::tm = unsafe { std::mem::zeroed() };
    // SAFETY: both pointers are to living values of this frame; localtime_r keeps neither.
    unsafe { libc::localtime_r(&raw const seconds, &raw mut parts) };
    format!(
        "{:02} {} {} {:02}:{:02}:{:02}.{:03}",
        parts.tm_mday,
        MONTHS[parts.tm_mon.clamp(0, 11) as usize],
        parts.tm_year + 1900,
        parts.tm_hour,
        parts.tm_min,
        parts.tm_sec,
        since.subsec_millis()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_written_as_in_redis_logs() {
        let text = local_time(UNIX_EPOCH + std::time::Duration::from_millis(1_796_054_434_697));
        assert_eq!(text.len(), "30 Nov 2026 15:52:05.846".len());
        assert!(text.contains(" 2026 ") && text.ends_with(":34.697"), "{text}");
    }
}
