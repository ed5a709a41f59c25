//! Starting a server in a directory of its own, reached through a Unix socket there, and stopping it again.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use super::client::Client;

/// How long a server may take to start.
const PATIENCE: Duration = Duration::from_secs(60);

/// A running server.
pub struct Peer {
    /// What it is called in messages.
    pub name: &'static str,
    directory: PathBuf,
    child: Child,
}

impl Peer {
    /// Redis: `redis-server` from the path, or what `CASWELL_REDIS_SERVER` names.
    pub fn redis(options: &[&str]) -> Self {
        Self::start("redis", &program("CASWELL_REDIS_SERVER", "redis-server"), options)
    }

    /// Valkey: `valkey-server` from the path, or what `CASWELL_VALKEY_SERVER` names.
    pub fn valkey(options: &[&str]) -> Self {
        Self::start("valkey", &program("CASWELL_VALKEY_SERVER", "valkey-server"), options)
    }

    /// Caswell, as built for this test, or what `CASWELL_SERVER` names.
    pub fn caswell(options: &[&str]) -> Self {
        Self::start("caswell", &program("CASWELL_SERVER", env!("CARGO_BIN_EXE_caswell")), options)
    }

    fn start(name: &'static str, program: &Path, options: &[&str]) -> Self {
        let started = Instant::now();
        let unique = format!("caswell-test-{}-{name}-{:p}", std::process::id(), &started);
        let directory = std::env::temp_dir().join(unique);
        std::fs::create_dir_all(&directory).expect("a directory for the server");
        let socket = directory.join("socket");
        let child = Command::new(program)
            .args(["--port", "0", "--save", "", "--daemonize", "no", "--unixsocket"])
            .arg(&socket)
            .args(options)
            .current_dir(&directory)
            .stdin(Stdio::null())
            .stdout(std::fs::File::create(directory.join("log")).expect("a log file"))
            .stderr(Stdio::inherit())
            .spawn()
            .unwrap_or_else(|error| {
                panic!("{} does not start: {error}; `.ci/check install` installs it", program.display())
            });
        let mut peer = Self { name, directory, child };
        while Client::connect(&socket).is_err() {
            let stopped = peer.child.try_wait().expect("a child to ask");
            let log = || std::fs::read_to_string(peer.directory.join("log")).unwrap_or_default();
            assert!(stopped.is_none(), "{name} stopped while starting: {}", log());
            assert!(started.elapsed() < PATIENCE, "{name} does not listen after {PATIENCE:?}: {}", log());
            std::thread::yield_now();
        }
        peer
    }

    /// Fails the test with the server's log if it has stopped.
    pub fn assert_runs(&mut self) {
        // What has just crashed may take a moment to be gone; what closes a connection on purpose stays.
        let stopped = self.child.try_wait().expect("a child to ask");
        let log = || std::fs::read_to_string(self.directory.join("log")).unwrap_or_default();
        assert!(stopped.is_none(), "{} stopped ({stopped:?}): {}", self.name, log());
    }

    /// The path of its socket.
    pub fn socket(&self) -> String {
        self.directory.join("socket").to_str().expect("temporary folders have plain names").to_owned()
    }

    /// A new connection.
    pub fn connect(&self) -> Client {
        Client::connect(&self.directory.join("socket")).unwrap_or_else(|error| panic!("{} is gone: {error}", self.name))
    }
}

fn program(variable: &str, name: &str) -> PathBuf {
    std::env::var_os(variable).map_or_else(|| name.into(), PathBuf::from)
}

impl Drop for Peer {
    fn drop(&mut self) {
        // Both fail only when it has stopped by itself, which is as good.
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = std::fs::remove_dir_all(&self.directory);
    }
}
