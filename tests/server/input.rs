//! What clients send: any bytes in any pieces.

use std::path::Path;

use crate::client::{Value, bulk, ok, request};
use crate::harness::{Directory, Process, TestServer};

#[test]
fn requests_of_every_form_are_answered() {
    let server = TestServer::start("");
    let mut client = server.connect();
    assert_eq!(client.line("PING"), "+PONG");
    assert_eq!(client.line("set \"a b\" 'it\\'s'"), "+OK");
    assert_eq!(client.command(&["GET", "a b"]), bulk("it's"));
    client.send_bytes(b"\r\n*0\r\n*-1\r\n\n");
    assert_eq!(client.command(&["PING", "x"]), bulk("x"));
    assert_eq!(
        client.command(&["FOO", "a", "b"]),
        Value::Error("ERR unknown command 'FOO', with args beginning with: 'a' 'b' ".into())
    );
    assert_eq!(client.command(&["GET"]), Value::Error("ERR wrong number of arguments for 'get' command".into()));
    assert_eq!(
        client.command(&["CLIENT", "FOO"]),
        Value::Error("ERR unknown subcommand 'FOO'. Try CLIENT HELP.".into())
    );
}

#[test]
fn requests_may_arrive_byte_by_byte() {
    let server = TestServer::start("");
    let mut client = server.connect();
    for byte in [request(&["SET", "k", "v"]), b"GET k\r\n".to_vec()].concat() {
        client.send_bytes(&[byte]);
    }
    assert_eq!(client.read(), ok());
    assert_eq!(client.read(), bulk("v"));
}

#[test]
fn a_long_pipeline_is_answered_in_order_even_if_it_is_sent_whole_before_anything_is_read() {
    let server = TestServer::start("");
    let mut client = server.connect();
    let count = 200_000;
    let pipeline: Vec<u8> = (0..count).flat_map(|number| request(&["PING", &number.to_string()])).collect();
    client.send_bytes(&pipeline);
    for number in 0..count {
        assert_eq!(client.read(), bulk(&number.to_string()));
    }
}

#[test]
fn large_arguments_arrive_in_pieces_and_large_values_leave_whole() {
    let server = TestServer::start("");
    let mut client = server.connect();
    let value: String = ('a'..='z').cycle().take(3_000_000).collect();
    let bytes = request(&["SET", "large", &value]);
    for piece in bytes.chunks(70_001) {
        client.send_bytes(piece);
    }
    assert_eq!(client.read(), ok());
    assert_eq!(client.command(&["GET", "large"]), bulk(&value));
    assert_eq!(client.command(&["MGET", "large", "none", "large"]), {
        Value::Array(vec![bulk(&value), Value::Null, bulk(&value)])
    });
}

#[test]
fn quoted_lines_behind_replies_that_fill_the_buffer_are_understood() {
    let server = TestServer::start("");
    let mut client = server.connect();
    let value = "v".repeat(100_000);
    assert_eq!(client.command(&["SET", "large", &value]), ok());
    client.send_bytes("GET large\r\n".repeat(300).as_bytes());
    client.send_bytes(b"ECHO \"a b\"\r\nECHO '\\'c'\r\n");
    for _ in 0..300 {
        assert_eq!(client.read(), bulk(&value));
    }
    assert_eq!(client.read(), bulk("a b"));
    assert_eq!(client.read(), bulk("'c"));
}

#[test]
fn a_client_that_wants_no_replies_is_not_told_of_its_bad_request_either() {
    let server = TestServer::start("");
    let mut client = server.connect();
    client.send_bytes(b"CLIENT REPLY OFF\r\nPING\r\n*1\r\n$-1\r\n");
    assert_eq!(client.rest(), b"");
}

#[test]
fn bytes_that_are_no_request_get_the_error_that_redis_gives_and_are_the_end() {
    let server = TestServer::start("");
    let long = "1".repeat(70_000);
    let cases: &[(&str, &str)] = &[
        ("*x\r\n", "invalid multibulk length"),
        ("*2147483648\r\n", "invalid multibulk length"),
        ("*1\r\nx4\r\n", "expected '$', got 'x'"),
        ("*1\r\n$-1\r\n", "invalid bulk length"),
        ("*1\r\n$536870913\r\n", "invalid bulk length"),
        ("PING \"a\r\n", "unbalanced quotes in request"),
        (&long, "too big inline request"),
        (&format!("*{long}"), "too big mbulk count string"),
        (&format!("*1\r\n${long}"), "too big bulk count string"),
    ];
    for (bytes, text) in cases {
        let mut client = server.connect();
        client.send_bytes(b"PING\r\n");
        assert_eq!(client.read(), Value::Simple("PONG".into()));
        client.send_bytes(bytes.as_bytes());
        assert_eq!(client.read(), Value::Error(format!("ERR Protocol error: {text}")));
        assert_eq!(client.rest(), b"");
    }
}

#[test]
fn http_requests_are_cut_off() {
    let server = TestServer::start("");
    for bytes in
        [&b"POST / HTTP/1.1\r\nContent-Length: 4\r\n\r\nPING"[..], b"GET / HTTP/1.1\r\nHost: x\r\n\r\nPING\r\n"]
    {
        let mut client = server.connect();
        client.send_bytes(bytes);
        let answer = client.rest();
        assert!(!String::from_utf8_lossy(&answer).contains("PONG"), "{}", answer.escape_ascii());
    }
}

#[test]
fn junk_is_survived() {
    let server = TestServer::start("");
    // A small generator (xorshift), so that a failure repeats.
    let mut state = 0x2545_f491_4f6c_dd1d_u64;
    for _ in 0..200 {
        let junk: Vec<u8> = (0..2000)
            .map(|_| {
                state ^= state << 13;
                state ^= state >> 7;
                state ^= state << 17;
                b"\r\n*$:-+\0\xff 1290PGET\"'"[(state % 20) as usize]
            })
            .collect();
        let mut client = server.connect();
        // The server may close the connection before it has taken everything.
        let _ = client.try_send_bytes(&junk);
    }
    assert_eq!(server.connect().line("PING"), "+PONG");
}

#[test]
fn absurd_lengths_cost_no_memory() {
    let directory = Directory::new("absurd");
    let server = Process::start(Path::new(env!("CARGO_BIN_EXE_caswell")), &directory, &[]);
    assert_eq!(server.connect().line("PING"), "+PONG");
    let before = server.resident_kib();
    let mut clients: Vec<_> = (0..50).map(|_| server.connect()).collect();
    for part in [&b"*2147483647\r\n$536870912\r\nabc"[..], b"d"] {
        clients.iter_mut().for_each(|client| client.send_bytes(part));
        assert_eq!(server.connect().line("PING"), "+PONG");
    }
    let grown = server.resident_kib().saturating_sub(before);
    assert!(grown < 50 * 1024, "resident memory grew by {grown} KiB");
}
