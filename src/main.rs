//! The server: reads the command line and the configuration, prepares the process, and serves until it is told to stop.

use std::fs::OpenOptions;
use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use caswell::command::{family::FAMILIES, table::Table};
use caswell::config::command_line::{self, Request};
use caswell::config::load::{self, Sources};
use caswell::config::{LogLevel, Settings};
use caswell::server::tick::Ticker;
use caswell::server::{Server, allocation, logging, process};
use caswell::sync::{Arc, Ordering, thread};

#[global_allocator]
static ALLOCATOR: allocation::CountingAllocator = allocation::CountingAllocator;

/// Where a server in the background leaves its process id if nobody says where.
const DEFAULT_PID_FILE: &str = "/var/run/caswell.pid";

fn main() -> ExitCode {
    let outcome = match command_line::parse(std::env::args_os().skip(1)) {
        Request::Print(text) => {
            // A reader that has gone away (`caswell --help | head`) is no failure.
            let _ = std::io::stdout().write_all(text.as_bytes());
            return ExitCode::SUCCESS;
        }
        Request::Fail(text) => Err(text),
        Request::Serve(sources) => serve(&sources),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(text) => {
            eprintln!("{}", text.trim_end());
            ExitCode::FAILURE
        }
    }
}

/// Serves with this configuration until the server is told to stop. Does not return if that went well: to take a large
/// keyspace apart would delay the end and free what the system frees anyway.
fn serve(sources: &Sources) -> Result<(), String> {
    let (settings, mut table) = (Settings::new(), Table::new(FAMILIES));
    load::load(&settings, sources, &mut table).map_err(|error| error.to_string())?;
    if settings.daemonize.get() {
        // SAFETY: nothing above started a thread.
        unsafe { process::daemonize() }.map_err(|error| format!("Cannot run in the background: {error}"))?;
    }
    let server = Arc::new(Server::new(settings, table));
    let log_file = server.settings.string("logfile");
    if !log_file.is_empty() {
        let opened = OpenOptions::new().create(true).append(true).open(&log_file);
        opened.map_err(|error| format!("Can't open the log file {log_file}: {error}"))?;
    }
    logging::start(&server, (!log_file.is_empty()).then(|| PathBuf::from(log_file)));
    announce(&server);
    let pid_file = PidFile::write(&server.settings);
    let background = |error| format!("Cannot start a background thread: {error}");
    let ticker = Ticker::start(Arc::clone(&server)).map_err(background)?;
    if let Some(dropper) = server.store.open_dropper() {
        thread::Builder::new().name("dropper".into()).spawn(move || dropper.run()).map_err(background)?;
    }
    // Relaxed: INFO's figure, which orders nothing.
    server.startup_memory.store(allocation::used(), Ordering::Relaxed);
    let served = caswell::net::run(Arc::clone(&server));
    drop(ticker);
    drop(pid_file);
    match served {
        Ok(()) => {
            tracing::warn!("Caswell is now ready to exit, bye bye...");
            std::process::exit(0)
        }
        Err(text) => {
            // Whoever looks at the terminal sees the reason once: there, or in the log that goes there.
            tracing::error!("{text}");
            let logged = log_is_on_terminal(&server.settings);
            if logged { std::process::exit(1) } else { Err(text) }
        }
    }
}

fn log_is_on_terminal(settings: &Settings) -> bool {
    settings.string("logfile").is_empty() && settings.loglevel.get() != LogLevel::Nothing
}

/// Says what starts, and how to talk to it.
fn announce(server: &Server) {
    let settings = &server.settings;
    let (version, redis, threads) = (env!("CARGO_PKG_VERSION"), caswell::REDIS_VERSION, settings.threads.get());
    let file = settings.file().map_or("defaults and the command line".to_owned(), |file| file.display().to_string());
    tracing::info!("Caswell {version} starts with {threads} threads; commands are those of Redis {redis}");
    tracing::info!("Configuration: {file}");
    if !settings.value("save").words().is_empty() {
        tracing::warn!("Save points are set, but this version keeps data in memory only: nothing will be saved");
    }
    let path = settings.string("unixsocket");
    match settings.port.get() {
        0 if path.is_empty() => tracing::warn!("Neither port nor unixsocket is set: nobody can connect"),
        0 => tracing::info!("Connect with: redis-cli -s {path}"),
        port => tracing::info!("Connect with: redis-cli -p {port}"),
    }
}

/// The file that holds the process id; removed when dropped.
struct PidFile(Option<PathBuf>);

impl PidFile {
    /// Writes the file if one is wanted. As in Redis, a failure is reported but stops nothing.
    fn write(settings: &Settings) -> Self {
        let path = match settings.string("pidfile") {
            path if !path.is_empty() => PathBuf::from(path),
            _ if settings.daemonize.get() => PathBuf::from(DEFAULT_PID_FILE),
            _ => return Self(None),
        };
        match std::fs::write(&path, format!("{}\n", std::process::id())) {
            Ok(()) => Self(Some(path)),
            Err(error) => {
                tracing::warn!("Cannot write the process id to {}: {error}", path.display());
                Self(None)
            }
        }
    }
}

impl Drop for PidFile {
    fn drop(&mut self) {
        if let Some(path) = &self.0 {
            // The file may be gone already, and the process ends in any case.
            let _ = std::fs::remove_file(path);
        }
    }
}
