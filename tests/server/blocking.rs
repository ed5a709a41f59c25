//! Commands that wait.

use crate::harness::{TestServer, wait_until};

#[test]
fn waiters_are_served_in_order_by_every_kind_of_write() {
    let server = TestServer::start("");
    let mut writer = server.connect();
    let cases: [(&[&str], &str); 10] = [
        (&["LPUSH k a"], "*2|$1|k|$1|a"),
        (&["RPUSH k a b", "DEL k"], "*2|$1|k|$1|a"),
        (&["MULTI", "RPUSH k a", "DEL k", "RPUSH k b", "EXEC"], "*2|$1|k|$1|b"),
        (&["RPUSH l a", "RENAME l k"], "*2|$1|k|$1|a"),
        (&["RPUSH l a", "COPY l k", "DEL l"], "*2|$1|k|$1|a"),
        (&["RPUSH l a", "LMOVE l k LEFT LEFT"], "*2|$1|k|$1|a"),
        (&["SELECT 1", "RPUSH k a", "MOVE k 0", "SELECT 0"], "*2|$1|k|$1|a"),
        (&["SELECT 1", "RPUSH k a", "SELECT 0", "SWAPDB 0 1"], "*2|$1|k|$1|a"),
        (&["SET k x", "DEL k", "RPUSH k a"], "*2|$1|k|$1|a"),
        (&["FLUSHALL", "RPUSH k a"], "*2|$1|k|$1|a"),
    ];
    for (writes, expected) in cases {
        writer.ask("FLUSHALL");
        let mut waiter = server.connect();
        waiter.send(&["BLPOP", "other", "k", "0"]);
        wait_until("the client to wait", || server.blocked_clients() == 1);
        writes.iter().for_each(|request| drop(writer.ask(request)));
        assert_eq!(waiter.hear(), expected, "{writes:?}");
        wait_until("the wait to be forgotten", || server.internal_keys() == 0);
        assert_eq!(writer.ask("EXISTS k"), ":0", "{writes:?}");
    }
}

#[test]
fn the_first_to_come_is_the_first_to_be_served() {
    let server = TestServer::start("");
    let mut writer = server.connect();
    let mut waiters: Vec<_> = (0..5)
        .map(|number| {
            let mut waiter = server.connect();
            waiter.send(&["BRPOP", "k", "0"]);
            wait_until("the client to wait", || server.blocked_clients() == number + 1);
            waiter
        })
        .collect();
    assert_eq!(writer.ask("RPUSH k a b c d e f"), ":6");
    for (waiter, element) in waiters.iter_mut().zip(["f", "e", "d", "c", "b"]) {
        assert_eq!(waiter.hear(), format!("*2|$1|k|$1|{element}"));
    }
    assert_eq!(writer.ask("LRANGE k 0 -1"), "*1|$1|a");
}

#[test]
fn elements_pass_through_chains_of_waiters() {
    let server = TestServer::start("");
    let mut writer = server.connect();
    let requests =
        ["BLMOVE b c LEFT RIGHT 0", "BLMOVE a b LEFT RIGHT 0", "BLMPOP 0 2 d c LEFT COUNT 3", "BRPOPLPUSH x x 0"];
    let mut waiters: Vec<_> = (1..)
        .zip(requests)
        .map(|(number, request)| {
            let mut waiter = server.connect();
            waiter.send(&request.split(' ').collect::<Vec<_>>());
            wait_until("the client to wait", || server.blocked_clients() == number);
            waiter
        })
        .collect();
    assert_eq!(writer.ask("RPUSH a e"), ":1");
    assert_eq!(waiters[0].hear(), "$1|e");
    assert_eq!(waiters[1].hear(), "$1|e");
    assert_eq!(waiters[2].hear(), "*2|$1|c|*1|$1|e");
    assert_eq!(writer.ask("EXISTS a b c"), ":0");
    assert_eq!(writer.ask("RPUSH x one two"), ":2");
    assert_eq!(waiters[3].hear(), "$3|two");
    assert_eq!(writer.ask("LRANGE x 0 -1"), "*2|$3|two|$3|one");
}

#[test]
fn waits_end_by_time_by_command_and_by_disconnection() {
    let server = TestServer::start("");
    let (mut waiter, mut other) = (server.connect(), server.connect());
    assert_eq!(waiter.ask("BLPOP k 0.001"), "*-1");
    assert_eq!(waiter.ask("BLMOVE k l LEFT LEFT 0.01"), "*-1");
    assert_eq!(waiter.ask("BLMPOP 0.01 1 k LEFT"), "*-1");
    assert_eq!(waiter.ask("WAIT 1 10"), ":0");
    assert_eq!(waiter.ask("WAIT 0 0"), ":0");
    for (request, error) in [
        ("BLPOP k -1", "-ERR timeout is negative"),
        ("BLPOP k x", "-ERR timeout is not a float or out of range"),
        ("BLPOP k nan", "-ERR timeout is not a float or out of range"),
        ("BLPOP k inf", "-ERR timeout is out of range"),
        ("BLPOP k -inf", "-ERR timeout is negative"),
        ("BLMPOP -1 0 k LEFT", "-ERR numkeys should be greater than 0"),
        ("BLPOP k 1e300", "-ERR timeout is out of range"),
        ("WAIT x 1", "-ERR value is not an integer or out of range"),
        ("WAIT 1 -1", "-ERR timeout is negative"),
        ("WAIT 1 9223372036854775807", "-ERR timeout is out of range"),
        ("CLIENT UNBLOCK x", "-ERR value is not an integer or out of range"),
        ("CLIENT UNBLOCK 1 x", "-ERR CLIENT UNBLOCK reason should be TIMEOUT or ERROR"),
        ("CLIENT PAUSE x", "-ERR timeout is not an integer or out of range"),
        ("CLIENT PAUSE 1 x", "-ERR CLIENT PAUSE mode must be WRITE or ALL"),
    ] {
        assert_eq!(waiter.ask(request), error, "{request}");
    }
    let id = waiter.ask("CLIENT ID").trim_start_matches(':').to_owned();
    assert_eq!(other.ask(&format!("CLIENT UNBLOCK {id}")), ":0");
    waiter.send(&["BLPOP", "k", "0"]);
    wait_until("the client to wait", || server.blocked_clients() == 1);
    assert_eq!(other.ask(&format!("CLIENT UNBLOCK {id}")), ":1");
    assert_eq!(waiter.hear(), "*-1");
    waiter.send(&["BLPOP", "k", "0"]);
    wait_until("the client to wait", || server.blocked_clients() == 1);
    assert_eq!(other.ask(&format!("CLIENT UNBLOCK {id} ERROR")), ":1");
    assert_eq!(waiter.hear(), "-UNBLOCKED client unblocked via CLIENT UNBLOCK");
    // It takes its turn within EXEC.
    waiter.send(&["BLPOP", "k", "0"]);
    wait_until("the client to wait", || server.blocked_clients() == 1);
    for request in ["MULTI", &format!("CLIENT UNBLOCK {id}"), &format!("CLIENT UNBLOCK {id}"), "RPUSH k a", "DEL k"] {
        other.ask(request);
    }
    assert_eq!(other.ask("EXEC"), "*4|:1|:0|:1|:1");
    assert_eq!(waiter.hear(), "*-1");
    // A reply that is not wanted does not come after a wait either.
    waiter.send(&["CLIENT", "REPLY", "SKIP"]);
    waiter.send(&["BLPOP", "k", "0.001"]);
    assert_eq!(waiter.ask("PING"), "+PONG");
    // Who has gone takes nothing.
    waiter.send(&["BLPOP", "k", "0"]);
    wait_until("the client to wait", || server.blocked_clients() == 1);
    drop(waiter);
    wait_until("the wait to be forgotten", || server.internal_keys() == 0);
    assert_eq!(other.ask("RPUSH k a"), ":1");
    assert_eq!(other.ask("LRANGE k 0 -1"), "*1|$1|a");
}

#[test]
fn what_comes_before_and_behind_a_wait_is_answered_in_order() {
    let server = TestServer::start("");
    let (mut waiter, mut other) = (server.connect(), server.connect());
    for request in [&["SET", "a", "1"][..], &["BLPOP", "k", "0"], &["GET", "a"], &["NOSUCH"]] {
        waiter.send(request);
    }
    assert_eq!(waiter.hear(), "+OK");
    wait_until("the client to wait", || server.blocked_clients() == 1);
    other.ask("SET a 2");
    other.ask("RPUSH k x");
    assert_eq!(waiter.hear(), "*2|$1|k|$1|x");
    assert_eq!(waiter.hear(), "$1|2");
    assert_eq!(waiter.hear(), "-ERR unknown command 'NOSUCH', with args beginning with: ");
}

#[test]
fn paused_clients_go_on_when_the_pause_ends() {
    let server = TestServer::start("");
    let (mut client, mut reader, mut other) = (server.connect(), server.connect(), server.connect());
    assert_eq!(other.ask("CLIENT PAUSE 100000 WRITE"), "+OK");
    client.send(&["SET", "a", "1"]);
    assert_eq!(reader.ask("GET a"), "$-1");
    assert_eq!(other.ask("CLIENT UNPAUSE"), "+OK");
    assert_eq!(client.hear(), "+OK");
    assert_eq!(other.ask("CLIENT PAUSE 50"), "+OK");
    assert_eq!(reader.ask("GET a"), "$1|1");
}
