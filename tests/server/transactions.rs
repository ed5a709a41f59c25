//! MULTI, EXEC, WATCH.

use crate::harness::TestServer;

#[test]
fn queued_commands_run_as_one_and_see_each_other() {
    let server = TestServer::start("");
    let mut client = server.connect();
    let conversation = [
        ("EXEC", "-ERR EXEC without MULTI"),
        ("DISCARD", "-ERR DISCARD without MULTI"),
        ("MULTI", "+OK"),
        ("MULTI", "-ERR MULTI calls can not be nested"),
        ("WATCH k", "-ERR WATCH inside MULTI is not allowed"),
        ("SET k 1", "+QUEUED"),
        ("INCR k", "+QUEUED"),
        ("LPUSH k x", "+QUEUED"),
        ("GET k", "+QUEUED"),
        ("EXEC", "*4|+OK|:2|-WRONGTYPE Operation against a key holding the wrong kind of value|$1|2"),
        // What is not about data runs in its place.
        ("MULTI", "+OK"),
        ("PING", "+QUEUED"),
        ("SELECT 3", "+QUEUED"),
        ("SET k three", "+QUEUED"),
        ("CONFIG SET maxclients x", "+QUEUED"),
        ("GET k", "+QUEUED"),
        (
            "EXEC",
            "*5|+PONG|+OK|+OK|-ERR CONFIG SET failed (possibly related to argument 'maxclients') - argument couldn't be parsed into an integer|$5|three",
        ),
        ("GET k", "$5|three"),
        ("SELECT 0", "+OK"),
        ("GET k", "$1|2"),
        // A refused command spoils the rest.
        ("MULTI", "+OK"),
        ("SET k 3", "+QUEUED"),
        ("NOSUCH", "-ERR unknown command 'NOSUCH', with args beginning with: "),
        ("EXEC", "-EXECABORT Transaction discarded because of previous errors."),
        ("GET k", "$1|2"),
        ("MULTI", "+OK"),
        ("GET", "-ERR wrong number of arguments for 'get' command"),
        ("DISCARD", "+OK"),
        ("MULTI", "+OK"),
        ("EXEC", "*0"),
        ("MULTI", "+OK"),
        ("EXEC x", "-EXECABORT Transaction discarded because of: wrong number of arguments for 'exec' command"),
        ("EXEC", "-ERR EXEC without MULTI"),
        // Not RESET, which would run at once.
        ("MULTI", "+OK"),
        ("CLUSTER RESET", "+QUEUED"),
        ("EXEC", "*1|-ERR This instance has cluster support disabled"),
        // Made and gone within one unit, where there was nothing before and where something was deleted.
        ("MULTI", "+OK"),
        ("RPUSH gone x", "+QUEUED"),
        ("LPOP gone", "+QUEUED"),
        ("EXEC", "*2|:1|$1|x"),
        ("RPUSH gone y", ":1"),
        ("DEL gone", ":1"),
        ("MULTI", "+OK"),
        ("RPUSH gone x", "+QUEUED"),
        ("DEL gone", "+QUEUED"),
        ("EXEC", "*2|:1|:1"),
        ("RPUSH gone z", ":1"),
        ("DEL gone", ":1"),
        // The whole keyspace, in the middle.
        ("MULTI", "+OK"),
        ("SET a 1", "+QUEUED"),
        ("DBSIZE", "+QUEUED"),
        ("FLUSHALL", "+QUEUED"),
        ("SET b 1", "+QUEUED"),
        ("KEYS *", "+QUEUED"),
        ("EXEC", "*5|+OK|:2|+OK|+OK|*1|$1|b"),
        // A value that has expired before the next command sees it.
        ("MULTI", "+OK"),
        ("SET c 1 PXAT 1", "+QUEUED"),
        ("GET c", "+QUEUED"),
        ("EXISTS c", "+QUEUED"),
        ("EXEC", "*3|+OK|$-1|:0"),
        // No command waits inside.
        ("MULTI", "+OK"),
        ("BLPOP nothing 0", "+QUEUED"),
        ("BLMOVE nothing else LEFT LEFT 0", "+QUEUED"),
        ("WAIT 1 0", "+QUEUED"),
        ("EXEC", "*3|*-1|$-1|:0"),
        ("MULTI", "+OK"),
        ("MONITOR", "+QUEUED"),
        ("EXEC", "*1|-ERR MONITOR isn't allowed for DENY BLOCKING client"),
    ];
    for (request, expected) in conversation {
        assert_eq!(client.ask(request), expected, "{request}");
    }
    // Replies are written in the protocol of their place.
    for request in ["MULTI", "GET nothing", "HELLO 3", "GET nothing"] {
        client.ask(request);
    }
    let replies = client.ask("EXEC");
    assert!(replies.starts_with("*3|$-1|%7|") && replies.ends_with("|_"), "{replies}");
    for request in ["MULTI", "CLIENT INFO"] {
        client.ask(request);
    }
    let told = client.ask("EXEC");
    assert!(told.contains(" multi=1 ") && told.contains(" flags=x "), "{told}");
    client.ask("MULTI");
    assert_eq!(client.ask("RESET"), "+RESET");
    assert_eq!(client.ask("EXEC"), "-ERR EXEC without MULTI");
}

#[test]
fn watched_keys_that_changed_keep_exec_from_running() {
    let server = TestServer::start("");
    let (mut client, mut other) = (server.connect(), server.connect());
    // Before WATCH; the other's commands between WATCH and EXEC; whether EXEC runs.
    let cases: [(&str, &[&str], bool); 16] = [
        ("SET k 1", &[], true),
        ("SET k 1", &["GET k", "SET l 1"], true),
        ("SET k 1", &["SET k 1"], false),
        ("SET k 1", &["DEL k", "SET k 1"], false),
        ("SET k 1", &["EXPIRE k 100"], false),
        ("DEL k", &["SET k 1", "DEL k"], false),
        ("DEL k", &["SELECT 1", "SET k 1", "SELECT 0"], true),
        ("DEL k", &["FLUSHALL"], true),
        ("SET k 1", &["FLUSHALL"], false),
        ("DEL k", &["FLUSHALL", "SET k 1", "DEL k"], false),
        ("SET k 1", &["SWAPDB 0 2"], false),
        ("DEL k", &["SWAPDB 0 3"], true),
        ("SET k 1", &["SWAPDB 0 4", "SWAPDB 0 4"], false),
        ("DEL k", &["SWAPDB 0 4", "SWAPDB 0 4"], true),
        ("DEL k", &["MULTI", "SET k 1", "DEL k", "EXEC"], false),
        ("DEL k", &["DEL k", "SETRANGE k 0 \"\""], true),
    ];
    for (before, between, runs) in cases {
        other.ask("FLUSHALL");
        client.ask(before);
        // So that a deletion's traces have gone before the key is watched.
        server.forget_deleted_keys();
        assert_eq!(client.ask("WATCH k k other"), "+OK");
        between.iter().for_each(|request| drop(other.ask(request)));
        server.forget_deleted_keys();
        client.ask("MULTI");
        client.ask("PING");
        let expected = if runs { "*1|+PONG" } else { "*-1" };
        assert_eq!(client.ask("EXEC"), expected, "{before}, then {between:?}");
    }
    client.ask("WATCH k");
    other.ask("SET k x");
    client.ask("UNWATCH");
    client.ask("MULTI");
    assert_eq!(client.ask("EXEC"), "*0");
    client.ask("HELLO 3");
    client.ask("WATCH k");
    other.ask("SET k y");
    client.ask("MULTI");
    assert_eq!(client.ask("EXEC"), "_");
    // A key that expires while it is watched.
    client.ask("SET k 1 PX 1");
    client.ask("WATCH k");
    crate::harness::wait_until("k to expire", || other.ask("EXISTS k") == ":0");
    client.ask("MULTI");
    let expired = client.ask("EXEC");
    assert!(expired == "_" || expired == "*0", "{expired}");
}

#[test]
fn nothing_is_left_in_the_store_when_watchers_go() {
    let server = TestServer::start("");
    let mut client = server.connect();
    client.ask("WATCH a b c");
    assert!(server.internal_keys() == 3);
    drop(client);
    crate::harness::wait_until("the interest to go", || server.internal_keys() == 0);
}

#[test]
fn a_hello_that_fails_leaves_the_replies_behind_it_as_they_were() {
    let server = TestServer::start("");
    let mut client = server.connect();
    for request in ["MULTI", "HELLO 3 AUTH nobody wrong", "GET nothing", "HELLO 3", "GET nothing"] {
        client.ask(request);
    }
    let replies = client.ask("EXEC");
    assert!(replies.starts_with("*4|-WRONGPASS") && replies.contains("|$-1|") && replies.ends_with("|_"), "{replies}");
}
