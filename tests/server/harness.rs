//! Servers for tests: ours within this process, on a port that the system picks, and others as processes.

use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use caswell::command::{family::FAMILIES, table::Table};
use caswell::config::Settings;
use caswell::config::load::{Sources, load};
use caswell::net::{Listeners, serve};
use caswell::server::{Server, ShutdownRequest};
use caswell::store::Worker;
use caswell::sync::{Arc, Ordering, thread, wait};

use crate::client::Client;

/// How long a condition may take to become true.
const DEADLINE: Duration = Duration::from_secs(20);

/// Waits until `condition` gives something.
pub fn wait_for<T>(what: &str, mut condition: impl FnMut() -> Option<T>) -> T {
    let began = Instant::now();
    let mut found = None;
    wait(|| {
        found = condition();
        assert!(found.is_some() || began.elapsed() < DEADLINE, "waited in vain for {what}");
        found.is_some()
    });
    found.expect("the wait ended")
}

/// Waits until `condition` holds.
pub fn wait_until(what: &str, mut condition: impl FnMut() -> bool) {
    wait_for(what, || condition().then_some(()));
}

/// A directory that goes when this is dropped.
pub struct Directory(PathBuf);

impl Directory {
    /// A new empty directory; `name` must differ between tests.
    pub fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("caswell-test-{}-{name}", std::process::id()));
        std::fs::create_dir_all(&path).expect("a temporary directory");
        Self(path)
    }

    /// Its path.
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// A file's path in it.
    pub fn file(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        // It may hold what another process still deletes.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Our server within this process; it stops when this is dropped.
pub struct TestServer {
    /// What its workers share.
    pub server: Arc<Server>,
    /// Where it listens.
    pub address: SocketAddr,
    thread: Option<thread::JoinHandle<()>>,
}

impl TestServer {
    /// Starts a server with these lines of configuration.
    pub fn start(configuration: &str) -> Self {
        let (settings, mut table) = (Settings::new(), Table::new(FAMILIES));
        let sources = Sources { options: configuration.as_bytes().to_vec(), ..Sources::default() };
        load(&settings, &sources, &mut table).expect("a valid configuration");
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = listener.local_addr().expect("a bound socket");
        let server = Arc::new(Server::new(settings, table));
        let shared = Arc::clone(&server);
        let thread = thread::spawn(move || {
            let listeners = Listeners::default().with_tcp(listener);
            serve(shared, listeners, std::future::pending()).expect("threads and sockets");
        });
        Self { server, address, thread: Some(thread) }
    }

    /// Clients whose commands wait.
    pub fn blocked_clients(&self) -> usize {
        // Relaxed: the test waits for the figure.
        self.server.clients.snapshot().iter().filter(|client| client.is_blocked.load(Ordering::Relaxed)).count()
    }

    /// Keys of the store's internal database: clients that wait, and keys that somebody wants to hear of.
    pub fn internal_keys(&self) -> u64 {
        let worker = Worker::register(&self.server.store).expect("a slot is free");
        let section = worker.enter();
        self.server.store.table(self.server.store.internal_database(), section.pin()).keys()
    }

    /// Waits until deleted keys have left no more entries than somebody wants to hear of.
    pub fn forget_deleted_keys(&self) {
        let worker = Worker::register(&self.server.store).expect("a slot is free");
        wait_until("deleted keys to be unlinked", || {
            let section = worker.enter();
            let store = &self.server.store;
            let hooked = store.table(store.internal_database(), section.pin()).keys();
            let left = |database| {
                let table = store.table(database, section.pin());
                table.entries() - table.keys()
            };
            (0..store.databases()).map(left).sum::<u64>() <= hooked
        });
    }

    /// A new connection.
    pub fn connect(&self) -> Client {
        Client::tcp(self.address).expect("the server listens")
    }
}

impl Drop for TestServer {
    fn drop(&mut self) {
        self.server.shutdown.request(ShutdownRequest::default());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// A server as a process of its own, on a Unix socket; killed when dropped.
pub struct Process {
    child: Child,
    socket: PathBuf,
}

impl Process {
    /// Starts `program` in `directory`, without TCP, with these further arguments.
    pub fn start(program: &Path, directory: &Directory, arguments: &[&str]) -> Self {
        let socket = directory.file("socket");
        let mut command = Command::new(program);
        if let [file, ..] = arguments
            && !file.starts_with('-')
        {
            command.arg(file);
        }
        let options = arguments.iter().skip_while(|argument| !argument.starts_with('-'));
        command.args(["--port", "0", "--unixsocket"]).arg(&socket).args(options);
        command.current_dir(directory.path()).stdin(Stdio::null()).stdout(Stdio::null());
        let child = command.spawn().unwrap_or_else(|error| panic!("{}: {error}", program.display()));
        Self { child, socket }
    }

    /// A new connection, as soon as the server listens.
    pub fn connect(&self) -> Client {
        wait_for("a server that listens", || Client::unix(&self.socket).ok())
    }

    /// Its socket's path.
    pub fn socket(&self) -> &Path {
        &self.socket
    }

    /// Its process id.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Sends it a signal.
    pub fn signal(&self, signal: libc::c_int) {
        // SAFETY: the process is our child and has not been waited for; the call touches no memory.
        assert_eq!(unsafe { libc::kill(self.child.id() as libc::pid_t, signal) }, 0);
    }

    /// Its resident memory in KiB.
    pub fn resident_kib(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.id())).expect("a status file");
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("a VmRSS line");
        line.trim().trim_end_matches(" kB").parse().expect("a number")
    }

    /// Whether it ended well, once it ends.
    pub fn ends_well(&mut self) -> bool {
        wait_for("the end of a server", || self.child.try_wait().expect("our child")).success()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
