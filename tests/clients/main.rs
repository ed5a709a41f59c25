//! The programs that users have: redis-benchmark, redis-cli and redis-py work as they do with Redis, without an error.
//!
//! `.ci/check install` puts them where these tests look: on the PATH.

#[path = "../peer/mod.rs"]
mod peer;

use peer::Peer;
use std::collections::HashSet;
use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};

/// Runs a program with these words and this input to its end and gives what it printed; it must succeed.
fn run(program: &str, words: &[&str], input: &[u8]) -> String {
    let mut child = Command::new(program)
        .args(words)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap_or_else(|error| panic!("{program} does not start: {error}; `.ci/check install` installs it"));
    let mut stdin = child.stdin.take().expect("the pipe was asked for");
    let input = input.to_vec();
    // A thread of its own, so that neither side waits for the other with a full pipe. A program may end without reading all.
    let writer = std::thread::spawn(move || drop(stdin.write_all(&input)));
    let output = child.wait_with_output().expect("a child can be waited for");
    writer.join().expect("the writer ends");
    let text = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
    assert!(output.status.success(), "{program} {words:?}: {}\n{text}", output.status);
    text
}

/// Runs redis-benchmark; it ends with a failure at the first error reply.
fn benchmark(server: &Peer, line: &str) {
    let socket = server.socket();
    let mut words = vec!["-s", &socket];
    words.extend(line.split(' '));
    let text = run("redis-benchmark", &words, b"");
    assert!(text.contains("requests per second") && !text.contains("rror"), "redis-benchmark {line}: {text}");
}

#[test]
fn redis_benchmark_runs_without_an_error() {
    let server = Peer::caswell(&["--maxclients", "2000"]);
    for line in [
        "-q -n 10000 -t ping,set,get,incr,lpush,rpush,lpop,rpop,lrange,mset",
        "-q -n 20000 -t set -d 64 -r 100000 --threads 2 -c 512",
        "-q -n 20000 -t set -d 256 -r 100000 --threads 2 -c 512",
        "-q -n 20000 -t ping -P 20",
        "-q -n 100000 -t get,set,mset,lpush,lpop -P 1000 -c 100 -r 1000",
        "-q -n 100000 -t get,set,mset,lpush,lpop -P 1000 -c 100 -r 1000 --threads 2",
        "-q -n 20000 -t set,get -c 500",
    ] {
        benchmark(&server, line);
    }
}

#[test]
fn redis_benchmark_runs_commands_of_many_keys() {
    let server = Peer::caswell(&[]);
    for keys in [1, 2, 16, 128, 256, 512, 1024] {
        benchmark(&server, &format!("-q -n 2000 -r 10000 MSET{}", " key:__rand_int__ value".repeat(keys)));
        benchmark(&server, &format!("-q -n 2000 -r 10000 MGET{}", " key:__rand_int__".repeat(keys)));
    }
}

#[test]
fn redis_cli_loses_nothing_of_a_mass_insert_and_scans_it_all() {
    const KEYS: usize = 200_000;
    let server = Peer::caswell(&[]);
    let socket = server.socket();
    let cli = |words: &[&str], input: &[u8]| run("redis-cli", &[&["-s", socket.as_str()], words].concat(), input);
    let mass: String = (0..KEYS).map(|key| format!("SET key:{key} value:{key}\r\n")).collect();
    let report = cli(&["--pipe"], mass.as_bytes());
    assert!(report.contains(&format!("errors: 0, replies: {KEYS}")), "{report}");
    assert_eq!(cli(&["DBSIZE"], b"").trim(), KEYS.to_string());
    assert_eq!(cli(&["GET", "key:77777"], b"").trim(), "value:77777");

    let listing = cli(&["--scan"], b"");
    assert_eq!(listing.lines().collect::<HashSet<_>>().len(), KEYS);
    assert_eq!(cli(&["--scan", "--pattern", "key:1234?"], b"").lines().collect::<HashSet<_>>().len(), 10);
    assert!(cli(&["--bigkeys"], b"").contains(&format!("Sampled {KEYS} keys")));
    assert!(cli(&["--memkeys"], b"").contains(&format!("Sampled {KEYS} keys")));
}

#[test]
fn redis_cli_converses_and_watches() {
    let server = Peer::caswell(&[]);
    let socket = server.socket();
    let cli = |words: &[&str], input: &[u8]| run("redis-cli", &[&["-s", socket.as_str()], words].concat(), input);
    let talk = cli(&[], b"SET greeting \"hello world\"\nGET greeting\nRPUSH list a b\nLRANGE list 0 -1\nNONSENSE\n");
    assert_eq!(talk.trim().lines().take(5).collect::<Vec<_>>(), ["OK", "hello world", "2", "a", "b"]);
    assert!(talk.contains("ERR unknown command 'NONSENSE'"), "{talk}");
    assert!(cli(&["-3", "HELLO"], b"").starts_with("server"));
    // Not on a terminal, this measures for a second and prints one line of figures.
    assert_eq!(cli(&["--latency", "-i", "1"], b"").split_whitespace().count(), 4);
    assert!(run("redis-cli", &["--intrinsic-latency", "1"], b"").contains("total runs"));

    // This one goes on until it is stopped.
    let mut watcher = Command::new("redis-cli")
        .args(["-s", &socket, "--stat", "-i", "0.01"])
        .stdout(Stdio::piped())
        .spawn()
        .expect("redis-cli starts");
    let lines = BufReader::new(watcher.stdout.take().expect("the pipe was asked for")).lines().take(4);
    let lines: Vec<String> = lines.collect::<Result<_, _>>().expect("redis-cli prints text");
    watcher.kill().expect("it still runs");
    watcher.wait().expect("a child can be waited for");
    assert!(lines[1].contains("clients") && lines[3].trim().starts_with('2'), "{lines:?}");
}

#[test]
fn redis_py_works_in_both_protocols() {
    let server = Peer::caswell(&[]);
    // The Python of `.ci/check`, which has redis-py, or the ordinary one if that has it.
    let python =
        ["caswell-test-python", "target/tools/bin/caswell-test-python", "python3"].into_iter().find(|python| {
            let probe = Command::new(python).args(["-c", "import redis"]).stderr(Stdio::null()).status();
            probe.is_ok_and(|status| status.success())
        });
    let python = python.expect("redis-py is installed: `.ci/check install` does it");
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/clients/redis_py.py");
    assert_eq!(run(python, &[script, &server.socket()], b"").trim(), "ok");
}
