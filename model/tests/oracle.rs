//! Is the model right? The same generated commands go to it and to a real server, and every reply is compared.
//!
//! The server is redis-server, from the PATH or from `target/tools/bin` (filled by `.ci/check`). Valkey is no oracle here: it checks some
//! arguments in another order.

use caswell_model::{Model, SLOW_SPANS_MS, STEP_BYTES, Step, noise, steps};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Sequences, each from a seed of its own.
const SEQUENCES: u64 = 400;
/// Bytes of noise that make one sequence.
const NOISE_BYTES: usize = 300 * STEP_BYTES;
/// How far times of the two may lie apart, in milliseconds: the model is told the time before the server reads its own.
const TIME_TOLERANCE_MS: i64 = 2000;

#[test]
fn the_model_answers_as_a_real_server_does() {
    let mut compared = 0;
    let server = Server::start(&find("redis-server").expect("redis-server is installed: `.ci/check install` does it"));
    for seed in 0..SEQUENCES {
        compared += compare(&server, seed);
    }
    println!("{compared} replies compared");
    assert!(compared > 10_000);
}

/// Runs one sequence and returns the number of replies compared.
fn compare(server: &Server, seed: u64) -> usize {
    let mut connection = server.connect();
    let mut model = Model::new(16);
    connection.call(&[b"FLUSHALL".to_vec()]);
    let mut selected = 0;
    let mut log = Vec::new();
    for step in steps(&noise(seed, NOISE_BYTES), now_ms(), SLOW_SPANS_MS) {
        let Step::Command { database, words } = step else { continue };
        // GT and LT compare deadlines to the millisecond, and the model's clock is not the server's.
        if words.iter().any(|word| word == b"GT" || word == b"LT") {
            continue;
        }
        // Redis 7.2 refuses the smallest integer here, which it cannot negate; 7.0 takes it.
        if matches!(&words[0][..], b"lrem" | b"lpos") && words.iter().any(|word| word == b"-9223372036854775808") {
            continue;
        }
        if std::mem::replace(&mut selected, database) != database {
            connection.call(&[b"SELECT".to_vec(), database.to_string().into_bytes()]);
        }
        let expected = model.call(now_ms(), database, &words).to_resp2();
        let actual = connection.call(&words);
        log.push(shown(&words));
        let close = (words[0].ends_with(b"ttl") || words[0].ends_with(b"expiretime")) && near(&expected, &actual);
        assert!(
            close || expected == actual,
            "seed {seed}, database {database}: {}\nmodel:  {}\nserver: {}",
            log[log.len().saturating_sub(30)..].join("\n"),
            expected.escape_ascii(),
            actual.escape_ascii(),
        );
    }
    log.len()
}

/// Whether two integer replies are times close to each other.
fn near(first: &[u8], second: &[u8]) -> bool {
    let number = |reply: &[u8]| std::str::from_utf8(reply).ok()?.trim().strip_prefix(':')?.parse::<i64>().ok();
    number(first).zip(number(second)).is_some_and(|(one, other)| (one - other).abs() <= TIME_TOLERANCE_MS)
}

fn shown(words: &[Vec<u8>]) -> String {
    words.iter().map(|word| format!("\"{}\"", word[..word.len().min(40)].escape_ascii())).collect::<Vec<_>>().join(" ")
}

fn now_ms() -> i64 {
    SystemTime::now().duration_since(UNIX_EPOCH).expect("it is after 1970").as_millis() as i64
}

fn find(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let tools = Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/tools/bin");
    std::env::split_paths(&path).chain([tools]).map(|folder| folder.join(program)).find(|path| path.is_file())
}

struct Server {
    port: u16,
    folder: PathBuf,
    child: Child,
}

impl Server {
    fn start(path: &Path) -> Self {
        let port = TcpListener::bind("127.0.0.1:0").and_then(|it| it.local_addr()).expect("a port is free").port();
        let folder = std::env::temp_dir().join(format!("caswell-oracle-{}-{port}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("the temporary folder can be written");
        let child = Command::new(path)
            .args(["--port", &port.to_string(), "--bind", "127.0.0.1", "--save", "", "--daemonize", "no"])
            .current_dir(&folder)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .spawn()
            .expect("the server can be started");
        let server = Self { port, folder, child };
        let deadline = Instant::now() + Duration::from_secs(20);
        while TcpStream::connect(("127.0.0.1", port)).is_err() {
            assert!(Instant::now() < deadline, "{} does not accept connections", path.display());
            std::thread::yield_now();
        }
        server
    }

    fn connect(&self) -> Connection {
        let stream = TcpStream::connect(("127.0.0.1", self.port)).expect("the server accepts connections");
        stream.set_nodelay(true).expect("the socket is open");
        stream.set_read_timeout(Some(Duration::from_secs(20))).expect("the socket is open");
        Connection(BufReader::new(stream))
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

struct Connection(BufReader<TcpStream>);

impl Connection {
    /// Sends a command and returns the bytes of its reply.
    fn call(&mut self, words: &[Vec<u8>]) -> Vec<u8> {
        let mut request = format!("*{}\r\n", words.len()).into_bytes();
        for word in words {
            request.extend([format!("${}\r\n", word.len()).as_bytes(), word, b"\r\n"].concat());
        }
        self.0.get_mut().write_all(&request).expect("the server reads");
        let mut reply = Vec::new();
        self.read(&mut reply);
        reply
    }

    fn read(&mut self, reply: &mut Vec<u8>) {
        let start = reply.len();
        self.0.read_until(b'\n', reply).expect("the server answers");
        let line = std::str::from_utf8(&reply[start..]).expect("a reply's line is text").trim();
        let Some(length) = line.strip_prefix(['$', '*']) else { return };
        let length: i64 = length.parse().expect("a length is a number");
        if line.starts_with('*') {
            (0..length).for_each(|_| self.read(reply));
        } else if length >= 0 {
            let payload = reply.len();
            reply.resize(payload + length as usize + 2, 0);
            self.0.read_exact(&mut reply[payload..]).expect("the server sends the whole payload");
        }
    }
}
