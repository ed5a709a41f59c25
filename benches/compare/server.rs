//! The servers compared: finding, starting, reading the kernel's figures of them, ending.

use crate::Failure;
use crate::client::Client;
use crate::options::Options;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// How long a server may take to accept its first connection.
const START_TIMEOUT: Duration = Duration::from_secs(10);

/// A server that takes part.
pub struct Contender {
    /// As tables name it.
    pub name: String,
    path: PathBuf,
    arguments: Vec<String>,
    /// A library to preload.
    preload: Option<PathBuf>,
}

/// Everything that takes part: Caswell in each number of threads, then the peers.
pub fn contenders(options: &Options) -> Result<Vec<Contender>, Failure> {
    let mut all = Vec::new();
    let mut caswells = Vec::new();
    if !options.no_caswell {
        caswells.push(Contender::new("caswell", env!("CARGO_BIN_EXE_caswell").into(), Vec::new())?);
    }
    for text in &options.caswell {
        caswells.push(Contender::parse(text)?);
    }
    for caswell in caswells {
        for threads in &options.threads {
            let mut arguments = caswell.arguments.clone();
            arguments.extend(["--threads".to_owned(), threads.to_string()]);
            let name = format!("{}-{threads}", caswell.name);
            all.push(Contender { name, path: caswell.path.clone(), arguments, preload: None });
        }
    }
    if !options.no_found_peers {
        for name in ["redis-server", "valkey-server"] {
            if let Some(path) = find_program(name) {
                all.push(Contender::new(name.trim_end_matches("-server"), path, Vec::new())?);
            }
        }
    }
    for text in &options.peer {
        all.push(Contender::parse(text)?);
    }
    Ok(all)
}

/// The index of the server that ratios refer to.
pub fn reference(contenders: &[Contender], name: Option<&str>) -> Result<usize, Failure> {
    let place = |name: &str| contenders.iter().position(|contender| contender.name == name);
    match name {
        Some(name) => place(name).ok_or_else(|| format!("no server here is called {name}").into()),
        None => {
            place("valkey").or(contenders.len().checked_sub(1)).ok_or_else(|| "there is no server to measure".into())
        }
    }
}

/// A program on the PATH, or where `.ci/check` puts the ones it installs.
fn find_program(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let tools = Path::new(env!("CARGO_MANIFEST_DIR")).join("target/tools/bin");
    std::env::split_paths(&path).chain([tools]).map(|folder| folder.join(name)).find(|program| program.is_file())
}

impl Contender {
    fn new(name: &str, path: PathBuf, arguments: Vec<String>) -> Result<Self, Failure> {
        let mut contender = Self { name: name.to_owned(), path, arguments, preload: None };
        // A peer is measured in its best form: one built upon the C library's allocator gets the one it is tuned for.
        if contender.version()?.contains("malloc=libc") {
            contender.preload = ["/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu", "/usr/lib64", "/usr/lib"]
                .iter()
                .map(|folder| Path::new(folder).join("libjemalloc.so.2"))
                .find(|library| library.exists());
        }
        Ok(contender)
    }

    /// From `name=path[,argument...]`.
    fn parse(text: &str) -> Result<Self, Failure> {
        let (name, rest) = text.split_once('=').ok_or_else(|| format!("{text} is not name=path[,argument...]"))?;
        let mut parts = rest.split(',').map(str::to_owned);
        let path = parts.next().expect("split gives at least one part");
        Self::new(name, path.into(), parts.collect())
    }

    fn version(&self) -> Result<String, Failure> {
        let output = Command::new(&self.path)
            .arg("--version")
            .stdin(Stdio::null())
            .output()
            .map_err(|error| format!("{}: {error}", self.path.display()))?;
        Ok(String::from_utf8_lossy(&output.stdout).lines().next().unwrap_or_default().to_owned())
    }

    /// One line: what it is.
    pub fn describe(&self) -> Result<String, Failure> {
        let preload = self.preload.as_ref().map_or(String::new(), |path| format!(", with {}", path.display()));
        Ok(format!("{:12} {} {}{preload}", self.name, self.version()?, self.arguments.join(" ")))
    }

    /// Starts it in an empty folder, without persistence, on a free port of its own.
    pub fn start(&self) -> Result<Server, Failure> {
        let port = TcpListener::bind(("127.0.0.1", 0))?.local_addr()?.port();
        let folder = std::env::temp_dir().join(format!("caswell-compare-{}-{port}", std::process::id()));
        std::fs::create_dir_all(&folder)?;
        let mut command = Command::new(&self.path);
        command
            .args(["--port", &port.to_string(), "--bind", "127.0.0.1", "--save", "", "--daemonize", "no"])
            .args(&self.arguments)
            .current_dir(&folder)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        if let Some(library) = &self.preload {
            command.env("LD_PRELOAD", library);
        }
        let mut server = Server { name: self.name.clone(), port, folder, child: command.spawn()? };
        let deadline = Instant::now() + START_TIMEOUT;
        while Client::connect(port).and_then(|mut client| client.call(&[b"PING"])).is_err() {
            if let Some(status) = server.child.try_wait()? {
                return Err(format!("{} ended at once: {status}", self.name).into());
            }
            if Instant::now() > deadline {
                return Err(format!("{} does not answer on port {port}", self.name).into());
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        Ok(server)
    }
}

/// A running server; ends when dropped.
pub struct Server {
    /// The contender's name.
    pub name: String,
    /// Its port on 127.0.0.1.
    pub port: u16,
    folder: PathBuf,
    child: Child,
}

impl Server {
    /// CPU time of all its threads since it started, ended threads included, in nanoseconds.
    pub fn cpu_ns(&self) -> Result<u64, Failure> {
        let pid = libc::pid_t::try_from(self.child.id())?;
        let mut clock: libc::clockid_t = 0;
        // SAFETY: `clock` lives on this stack across the call, which writes only it.
        let found = unsafe { libc::clock_getcpuclockid(pid, &mut clock) };
        if found != 0 {
            return Err(format!("{} has no CPU clock", self.name).into());
        }
        let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        // SAFETY: `clock` was filled by the call above, and `time` lives on this stack across the call.
        let read = unsafe { libc::clock_gettime(clock, &mut time) };
        if read != 0 {
            return Err(format!("the CPU clock of {} cannot be read", self.name).into());
        }
        Ok(u64::try_from(time.tv_sec)? * 1_000_000_000 + u64::try_from(time.tv_nsec)?)
    }

    /// Resident memory in bytes.
    pub fn resident_bytes(&self) -> Result<u64, Failure> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id()))?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).ok_or("no VmRSS")?;
        Ok(line.trim().trim_end_matches(" kB").trim().parse::<u64>()? * 1024)
    }

    /// Resident memory once it has stopped moving (or after ten seconds): servers free in the background.
    pub fn settled_resident_bytes(&self) -> Result<u64, Failure> {
        const QUIET: Duration = Duration::from_secs(1);
        let deadline = Instant::now() + Duration::from_secs(10);
        let mut before = self.resident_bytes()?;
        loop {
            std::thread::sleep(QUIET);
            let now = self.resident_bytes()?;
            if now.abs_diff(before) < 64 * 1024 || Instant::now() > deadline {
                return Ok(now);
            }
            before = now;
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // Nothing is to be saved. An error means that it has ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}
