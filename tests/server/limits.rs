//! Bounds on clients: how many, from where, how much they may send and how little they may read.

use std::io::{ErrorKind, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;

use crate::client::{Value, bulk, ok, request};
use crate::harness::{Directory, Process, TestServer, wait_until};

#[test]
fn clients_beyond_maxclients_are_refused_until_others_leave() {
    let server = TestServer::start("maxclients 3\n");
    let mut clients: Vec<_> = (0..3).map(|_| server.connect()).collect();
    for client in &mut clients {
        assert_eq!(client.line("PING"), "+PONG");
    }
    assert_eq!(server.connect().rest(), b"-ERR max number of clients reached\r\n");
    clients.pop();
    wait_until("a place is free again", || {
        let mut client = server.connect();
        client.try_send_bytes(b"PING\r\n").is_ok() && client.rest_starts_with(b"+PONG")
    });
}

#[test]
fn strangers_may_send_little_before_they_authenticate() {
    let server = TestServer::start("requirepass secret\n");
    let mut client = server.connect();
    assert_eq!(client.line("PING"), "-NOAUTH Authentication required.");
    assert_eq!(client.line("FOO"), "-ERR unknown command 'FOO', with args beginning with: ");
    assert!(client.line("HELLO 3").starts_with("-NOAUTH HELLO must be called"));
    client.send_bytes(b"*11\r\n");
    assert_eq!(client.read(), Value::Error("ERR Protocol error: unauthenticated multibulk length".into()));
    assert_eq!(client.rest(), b"");
    let mut client = server.connect();
    client.send_bytes(b"*2\r\n$16385\r\n");
    assert_eq!(client.read(), Value::Error("ERR Protocol error: unauthenticated bulk length".into()));
    // One who authenticates may send more at once.
    let mut client = server.connect();
    let value = "x".repeat(20_000);
    client.send_bytes(&[request(&["AUTH", "secret"]), request(&["SET", "k", &value])].concat());
    assert_eq!(client.read(), ok());
    assert_eq!(client.read(), ok());
}

#[test]
fn input_beyond_the_query_buffer_limit_closes_the_connection() {
    let server = TestServer::start("client-query-buffer-limit 1mb\n");
    let mut client = server.connect();
    let request = request(&["SET", "k", &"x".repeat(3_000_000)]);
    // The server closes while we send.
    if client.try_send_bytes(&request).is_ok() {
        assert_eq!(client.rest(), b"");
    }
    let mut other = server.connect();
    assert_eq!(other.command(&["GET", "k"]), Value::Null);
}

#[test]
fn output_beyond_the_hard_limit_closes_the_connection() {
    let server = TestServer::start("client-output-buffer-limit normal 100000 0 0\n");
    let mut client = server.connect();
    assert_eq!(client.command(&["SET", "k", &"x".repeat(200_000)]), ok());
    client.send_bytes(&request(&["GET", "k"]));
    assert_eq!(client.rest(), b"");
}

#[test]
fn output_above_the_soft_limit_for_too_long_closes_the_connection() {
    let server = TestServer::start("client-output-buffer-limit normal 0 100000 1\n");
    let mut client = server.connect();
    assert_eq!(client.command(&["SET", "k", &"x".repeat(10_000_000)]), ok());
    for _ in 0..4 {
        client.send_bytes(&request(&["GET", "k"]));
    }
    let mut other = server.connect();
    wait_until("the client that does not read is closed", || {
        let list = other.run("CLIENT LIST").text();
        list.lines().count() == 1
    });
}

#[test]
fn clients_that_never_read_are_bounded_and_delay_nobody() {
    let directory = Directory::new("never-read");
    let server = Process::start(Path::new(env!("CARGO_BIN_EXE_caswell")), &directory, &["--threads", "2"]);
    let mut other = server.connect();
    assert_eq!(other.command(&["SET", "k", &"x".repeat(10_000)]), ok());
    let before = server.resident_kib();
    let get = request(&["GET", "k"]).repeat(1000);
    let mut stalled: Vec<_> =
        (0..8).map(|_| UnixStream::connect(server.socket()).expect("the server listens")).collect();
    // Each asks for gigabytes until the server takes no more from it.
    for client in &mut stalled {
        client.set_nonblocking(true).expect("an option can be set");
        let (mut requests, mut refusals) = (0, 0);
        while refusals < 100 {
            match client.write(&get) {
                Ok(_) => (requests, refusals) = (requests + 1000, 0),
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    refusals += 1;
                    assert_eq!(other.line("PING"), "+PONG");
                }
                Err(error) => panic!("the server closed the connection: {error}"),
            }
            assert!(requests < 1_000_000, "the server read on without bound");
        }
    }
    let grown = server.resident_kib().saturating_sub(before);
    assert!(grown < 900 * 1024, "resident memory grew by {grown} KiB");
    drop(stalled);
    wait_until("memory is given back", || {
        assert_eq!(other.line("PING"), "+PONG");
        server.resident_kib() < before + 60 * 1024
    });
}

#[test]
fn a_client_whose_share_others_had_used_up_goes_on_when_they_have_left() {
    let server = TestServer::start("threads 1\n");
    let mut other = server.connect();
    assert_eq!(other.command(&["SET", "large", &"x".repeat(1_000_000)]), ok());
    let asks = |count: usize, then: &[&str]| {
        let mut client = server.connect();
        client.send_bytes(&[request(&["GET", "large"]).repeat(count), request(then)].concat());
        client
    };
    let greedy: Vec<_> = (0..3).map(|_| asks(1000, &["PING"])).collect();
    let mut waiting_bytes = || {
        let list = other.run("CLIENT LIST").text();
        let figures = list.split(" omem=").skip(1).filter_map(|rest| rest.split(' ').next()?.parse::<u64>().ok());
        figures.sum::<u64>()
    };
    wait_until("the greedy use up most of the pool", || waiting_bytes() > 180_000_000);
    // Sends everything before it reads, and has room for all its replies only once the greedy have left.
    let _patient = asks(100, &["SET", "done", "yes"]);
    wait_until("the patient one has begun", || waiting_bytes() > 210_000_000);
    drop(greedy);
    let mut other = server.connect();
    wait_until("the patient one has gone on", || other.command(&["GET", "done"]) == bulk("yes"));
}

#[test]
fn idle_clients_are_closed_after_the_timeout() {
    let server = TestServer::start("timeout 1\n");
    let mut idle = server.connect();
    assert_eq!(idle.line("PING"), "+PONG");
    let mut busy = server.connect();
    wait_until("the idle client is closed", || busy.command(&["CLIENT", "LIST"]).text().lines().count() == 1);
    assert_eq!(idle.rest(), b"");
}
