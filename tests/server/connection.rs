//! Connection commands, and what other clients see of a client.

use crate::client::{Value, bulk, ok};
use crate::harness::{TestServer, wait_until};

fn field(list: &str, name: &str) -> String {
    let prefix = format!("{name}=");
    let value = list.split_whitespace().find_map(|part| part.strip_prefix(&prefix));
    value.unwrap_or_else(|| panic!("no {name} in {list}")).to_owned()
}

#[test]
fn hello_changes_the_protocol_and_describes_the_server() {
    let server = TestServer::start("");
    let mut client = server.connect();
    let Value::Map(pairs) = client.command(&["HELLO", "3", "AUTH", "default", "any", "SETNAME", "me"]) else {
        panic!("no map")
    };
    let names: Vec<String> = pairs.iter().map(|(name, _)| name.text()).collect();
    assert_eq!(names, ["server", "version", "proto", "id", "mode", "role", "modules"]);
    assert_eq!(pairs[2].1, Value::Integer(3));
    assert_eq!(client.line("GET nothing"), "_");
    assert_eq!(client.command(&["CLIENT", "GETNAME"]), bulk("me"));
    assert_eq!(client.line("RESET"), "+RESET");
    assert_eq!(client.line("GET nothing"), "$-1");
    let errors = [
        ("HELLO 4", "-NOPROTO unsupported protocol version"),
        ("HELLO x", "-ERR Protocol version is not an integer or out of range"),
        ("HELLO 2 FOO", "-ERR Syntax error in HELLO option 'FOO'"),
        ("HELLO 2 AUTH default", "-ERR Syntax error in HELLO option 'AUTH'"),
        ("HELLO 2 AUTH nobody x", "-WRONGPASS invalid username-password pair or user is disabled."),
        ("HELLO 2 SETNAME \"a b\"", "-ERR Client names cannot contain spaces, newlines or special characters."),
        ("SELECT 16", "-ERR DB index is out of range"),
        ("SELECT x", "-ERR value is not an integer or out of range"),
        ("AUTH a b c", "-ERR syntax error"),
        ("CLIENT KILL id 0", "-ERR client-id should be greater than 0"),
        ("CLIENT KILL 1.2.3.4:5", "-ERR No such client"),
        ("CLIENT LIST TYPE x", "-ERR Unknown client type 'x'"),
        ("CLIENT SETINFO x y", "-ERR Unrecognized option 'x'"),
        ("CLIENT NO-TOUCH x", "-ERR syntax error"),
        ("ASKING", "-ERR This instance has cluster support disabled"),
    ];
    for (request, expected) in errors {
        assert_eq!(client.line(request), expected, "{request}");
    }
}

#[test]
fn a_password_is_asked_for_and_may_change() {
    let server = TestServer::start("requirepass secret\n");
    let mut client = server.connect();
    assert_eq!(client.line("GET k"), "-NOAUTH Authentication required.");
    assert_eq!(client.line("AUTH wrong"), "-WRONGPASS invalid username-password pair or user is disabled.");
    assert_eq!(client.line("AUTH default secret"), "+OK");
    assert_eq!(client.line("GET k"), "$-1");
    assert_eq!(client.line("RESET"), "+RESET");
    assert_eq!(client.line("GET k"), "-NOAUTH Authentication required.");
}

#[test]
fn replies_can_be_switched_off_and_skipped() {
    let server = TestServer::start("");
    let mut client = server.connect();
    client.send_bytes(b"CLIENT REPLY SKIP\r\nPING a\r\n");
    assert_eq!(client.command(&["PING", "b"]), bulk("b"));
    client.send_bytes(b"CLIENT REPLY OFF\r\nPING c\r\nCLIENT REPLY SKIP\r\nPING d\r\nCLIENT REPLY ON\r\n");
    assert_eq!(client.read(), ok());
    assert_eq!(client.command(&["PING", "e"]), bulk("e"));
}

#[test]
fn clients_see_and_kill_each_other_on_any_worker() {
    let server = TestServer::start("");
    let mut one = server.connect();
    let mut others: Vec<_> = (0..3).map(|_| server.connect()).collect();
    for (number, other) in others.iter_mut().enumerate() {
        assert_eq!(other.command(&["CLIENT", "SETNAME", &format!("other-{number}")]), ok());
        assert_eq!(other.command(&["SELECT", "7"]), ok());
    }
    assert_eq!(one.command(&["CLIENT", "SETINFO", "LIB-NAME", "lib"]), ok());
    let info = one.command(&["CLIENT", "INFO"]).text();
    assert_eq!((field(&info, "cmd"), field(&info, "lib-name")), ("client|info".into(), "lib".into()));
    let mut list = String::new();
    wait_until("only these four are connected", || {
        list = one.command(&["CLIENT", "LIST"]).text();
        list.lines().count() == 4
    });
    let line = list.lines().find(|line| line.contains("name=other-1")).expect("the second");
    assert_eq!((field(line, "db"), field(line, "cmd"), field(line, "resp")), ("7".into(), "select".into(), "2".into()));
    let id = field(line, "id");
    assert_eq!(one.command(&["CLIENT", "LIST", "ID", &id]).text().lines().count(), 1);
    // By id, by address, and all but oneself.
    assert_eq!(one.command(&["CLIENT", "KILL", "ID", &id]), Value::Integer(1));
    assert_eq!(others.remove(1).rest(), b"");
    let address = field(&others[0].command(&["CLIENT", "INFO"]).text(), "addr");
    assert_eq!(one.command(&["CLIENT", "KILL", &address]), ok());
    assert_eq!(others.remove(0).rest(), b"");
    assert_eq!(one.command(&["CLIENT", "KILL", "TYPE", "normal"]), Value::Integer(1));
    assert_eq!(others.remove(0).rest(), b"");
    // Oneself, after the answer.
    assert_eq!(one.command(&["CLIENT", "KILL", "TYPE", "normal", "SKIPME", "no"]), Value::Integer(1));
    assert_eq!(one.rest(), b"");
}

#[test]
fn quit_answers_and_closes() {
    let server = TestServer::start("");
    let mut client = server.connect();
    client.send_bytes(b"QUIT\r\nPING\r\n");
    assert_eq!(client.rest(), b"+OK\r\n");
}

#[test]
fn many_connections_come_and_go() {
    let server = TestServer::start("");
    let mut watcher = server.connect();
    assert_eq!(watcher.line("PING"), "+PONG");
    for _ in 0..20 {
        let mut clients: Vec<_> = (0..100).map(|_| server.connect()).collect();
        for client in clients.iter_mut().step_by(3) {
            assert_eq!(client.line("PING"), "+PONG");
        }
    }
    wait_until("all have gone", || watcher.command(&["CLIENT", "LIST"]).text().lines().count() == 1);
}
