//! MONITOR over sockets.

use crate::client::{Client, Value, bulk, request};
use crate::harness::{Directory, Process, TestServer};
use std::path::Path;

/// The next line without its time: `[database address] arguments`.
fn line(client: &mut Client) -> String {
    let Value::Simple(line) = client.read() else { panic!("no line") };
    let (time, rest) = line.split_once(' ').expect("a time");
    let (seconds, microseconds) = time.split_once('.').expect("a point");
    assert!(seconds.parse::<u64>().is_ok_and(|seconds| seconds > 1_700_000_000) && microseconds.len() == 6, "{line}");
    rest.to_owned()
}

/// The arguments in a line.
fn arguments(client: &mut Client) -> String {
    let line = line(client);
    line.split_once("] ").expect("an address").1.to_owned()
}

#[test]
fn every_command_is_shown_but_secrets_and_administration() {
    let server = TestServer::start("requirepass secret\nthreads 2");
    let connect = || {
        let mut client = server.connect();
        assert_eq!(client.line("AUTH secret"), "+OK");
        client
    };
    let (mut monitor, mut other) = (connect(), connect());
    assert_eq!(monitor.run("MONITOR"), Value::Simple("OK".into()));
    let address = other.run("CLIENT INFO").text();
    let address = address.split_whitespace().find_map(|field| field.strip_prefix("addr=")).expect("an address");
    assert_eq!(line(&mut monitor), format!("[0 {address}] \"CLIENT\" \"INFO\""));
    other.run("CONFIG GET port");
    other.run("AUTH default secret");
    other.run("HELLO 3 AUTH default secret SETNAME me");
    other.run("SELECT 3");
    other.command(&["SET", "k", "a b\n\"\u{1}"]);
    other.run("LPUSH k x");
    other.run("nosuch");
    other.run("GET");
    other.run("get k");
    assert_eq!(arguments(&mut monitor), "\"AUTH\" \"(redacted)\" \"(redacted)\"");
    assert_eq!(arguments(&mut monitor), "\"HELLO\" \"3\" \"AUTH\" \"(redacted)\" \"(redacted)\" \"SETNAME\" \"me\"");
    assert_eq!(line(&mut monitor), format!("[3 {address}] \"SELECT\" \"3\""));
    assert_eq!(arguments(&mut monitor), r#""SET" "k" "a b\n\"\x01""#);
    assert_eq!(arguments(&mut monitor), r#""LPUSH" "k" "x""#);
    assert_eq!(arguments(&mut monitor), r#""get" "k""#);
    assert!(other.run("CLIENT LIST").text().contains(" flags=O "));
    // One who watches may go on, sees itself, and stops by RESET.
    monitor.send_bytes(&[request(&["ECHO", "x"]), request(&["GET", "k"]), request(&["ECHO", "y"])].concat());
    assert_eq!(monitor.read(), bulk("x"));
    assert_eq!(arguments(&mut monitor), r#""ECHO" "x""#);
    assert_eq!(monitor.read(), Value::Null);
    assert_eq!(arguments(&mut monitor), r#""GET" "k""#);
    assert_eq!(monitor.read(), bulk("y"));
    assert_eq!(arguments(&mut monitor), r#""ECHO" "y""#);
    assert_eq!(monitor.run("RESET"), Value::Simple("RESET".into()));
    other.run("PING");
    assert_eq!(monitor.line("AUTH secret"), "+OK");
    assert!(!server.server.monitors.any());
}

#[test]
fn clients_of_the_unix_socket_are_shown_by_its_path() {
    let directory = Directory::new("monitor");
    let server = Process::start(Path::new(env!("CARGO_BIN_EXE_caswell")), &directory, &["--threads", "2"]);
    let mut monitor = server.connect();
    monitor.run("MONITOR");
    server.connect().run("PING");
    assert_eq!(line(&mut monitor), format!("[0 unix:{}] \"PING\"", server.socket().display()));
}
