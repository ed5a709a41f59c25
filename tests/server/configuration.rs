//! CONFIG over a socket.

use crate::client::Value;
use crate::harness::TestServer;

#[test]
fn get_takes_patterns_and_names_in_any_case() {
    let server = TestServer::start("timeout 7");
    let mut client = server.connect();
    assert_eq!(client.run("CONFIG GET timeout").texts(), ["timeout", "7"]);
    assert_eq!(client.run("config get TIMEOUT timeout").texts(), ["TIMEOUT", "7"], "each setting once");
    assert_eq!(client.run("CONFIG GET nosuch").texts(), [""; 0]);
    let names: Vec<_> = client.run("CONFIG GET *-PRIORITY hash-max-ziplist-*").texts().into_iter().step_by(2).collect();
    let expected = ["replica-priority", "slave-priority", "hash-max-ziplist-entries", "hash-max-ziplist-value"];
    assert_eq!(names, expected, "both names of a setting, in the table's order for each pattern");
    client.run("HELLO 3");
    assert!(matches!(client.run("CONFIG GET timeout"), Value::Map(pairs) if pairs.len() == 1));
}

#[test]
fn set_is_all_or_nothing_with_the_texts_of_redis() {
    let server = TestServer::start("");
    let mut client = server.connect();
    let refused =
        |name: &str, reason: &str| format!("ERR CONFIG SET failed (possibly related to argument '{name}') - {reason}");
    let cases = [
        ("CONFIG SET maxmemory 1gb timeout x", refused("timeout", "argument couldn't be parsed into an integer")),
        ("CONFIG SET maxmemory 1 maxmemory 2", refused("maxmemory", "duplicate parameter")),
        (
            "CONFIG SET maxmemory zz nosuch 1",
            "ERR Unknown option or number of arguments for CONFIG SET - 'nosuch'".into(),
        ),
        ("CONFIG SET databases 3 maxmemory zz", refused("databases", "can't set immutable config")),
        ("CONFIG SET dir /tmp", refused("dir", "can't set protected config")),
        ("CONFIG SET timeout 1 port", "ERR syntax error".into()),
        ("CONFIG SET appendonly maybe", refused("appendonly", "argument must be 'yes' or 'no'")),
        (
            "CONFIG SET slave-priority -1",
            refused("slave-priority", "argument must be between 0 and 2147483647 inclusive"),
        ),
        ("CONFIG SET port", "ERR wrong number of arguments for 'config|set' command".into()),
        ("CONFIG FOO", "ERR unknown subcommand 'FOO'. Try CONFIG HELP.".into()),
        ("CONFIG REWRITE", "ERR The server is running without a config file".into()),
    ];
    for (line, expected) in cases {
        assert_eq!(client.run(line), Value::Error(expected), "{line}");
    }
    assert_eq!(client.run("CONFIG GET maxmemory").texts(), ["maxmemory", "0"], "nothing was changed");
    assert_eq!(client.run("CONFIG SET maxmemory 1GB TIMEOUT 5 slave-priority 3"), Value::Simple("OK".into()));
    assert_eq!(
        client.run("CONFIG GET maxmemory timeout replica-priority").texts(),
        ["maxmemory", "1073741824", "timeout", "5", "replica-priority", "3"]
    );
    assert_eq!(server.server.settings.timeout_seconds.get(), 5);
}

#[test]
fn words_are_kept_as_redis_keeps_them() {
    let server = TestServer::start("");
    let mut client = server.connect();
    let cases = [
        ("save", "3600 1 100 2", "3600 1 100 2"),
        ("save", "", ""),
        ("notify-keyspace-events", "KEAg", "AKE"),
        ("client-output-buffer-limit", "replica 1mb 2 3", "normal 0 0 0 slave 1048576 2 3 pubsub 33554432 8388608 60"),
        ("shutdown-on-sigint", "nosave now", "nosave now"),
        ("latency-tracking-info-percentiles", "50.0 99.95", "50 99.95"),
        ("oom-score-adj-values", "1 2 3", "1 2 3"),
        ("maxmemory-clients", "5%", "5%"),
        ("hz", "100", "100"),
    ];
    for (name, given, printed) in cases {
        assert_eq!(client.command(&["CONFIG", "SET", name, given]), Value::Simple("OK".into()), "{name}");
        assert_eq!(client.command(&["CONFIG", "GET", name]).texts(), [name, printed]);
    }
}

#[test]
fn a_password_set_at_run_time_is_asked_for() {
    let server = TestServer::start("");
    let mut client = server.connect();
    assert_eq!(client.run("CONFIG SET requirepass secret"), Value::Simple("OK".into()));
    let mut other = server.connect();
    assert_eq!(other.run("CONFIG GET requirepass"), Value::Error("NOAUTH Authentication required.".into()));
    assert_eq!(other.run("AUTH secret"), Value::Simple("OK".into()));
    assert_eq!(other.run("CONFIG GET requirepass").texts(), ["requirepass", "secret"]);
    assert_eq!(other.command(&["CONFIG", "SET", "requirepass", ""]), Value::Simple("OK".into()));
}

#[test]
fn debug_is_for_those_who_are_allowed() {
    let server = TestServer::start("");
    let error = server.connect().run("DEBUG SLEEP 0").text();
    assert!(error.starts_with("ERR DEBUG command not allowed."), "{error}");
    let server = TestServer::start("enable-debug-command local");
    let mut client = server.connect();
    client.run("SET key value");
    assert_eq!(client.run("DEBUG SLEEP 0"), Value::Simple("OK".into()));
    let object = client.run("DEBUG OBJECT key").text();
    assert!(object.contains(" encoding:embstr serializedlength:6 "), "{object}");
    assert_eq!(client.run("DEBUG OBJECT nosuch"), Value::Error("ERR no such key".into()));
    assert_eq!(client.run("DEBUG STRINGMATCH-LEN a*c abc"), Value::Integer(1));
    assert_eq!(client.run("DEBUG LISTPACK key"), Value::Error("ERR Not a listpack encoded object.".into()));
    let unknown = "ERR unknown subcommand or wrong number of arguments for 'object'. Try DEBUG HELP.";
    assert_eq!(client.run("DEBUG object"), Value::Error(unknown.into()));
}
