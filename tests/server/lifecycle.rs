//! How the server begins and ends for its clients.

use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use crate::client::{Client, bulk, ok};
use crate::harness::{Directory, Process, wait_for};

const PROGRAM: &str = env!("CARGO_BIN_EXE_caswell");

#[test]
fn sigterm_sigint_and_shutdown_stop_it_cleanly() {
    for (name, signal) in [("terminate", Some(libc::SIGTERM)), ("interrupt", Some(libc::SIGINT)), ("shutdown", None)] {
        let directory = Directory::new(name);
        let mut server = Process::start(Path::new(PROGRAM), &directory, &[]);
        let mut client = server.connect();
        assert_eq!(client.line("PING"), "+PONG");
        match signal {
            Some(signal) => server.signal(signal),
            None => client.send(&["SHUTDOWN", "NOSAVE"]),
        }
        assert_eq!(client.rest(), b"");
        assert!(server.ends_well());
    }
}

#[test]
fn a_unix_socket_has_the_permissions_asked_for_and_is_removed_at_the_end() {
    let directory = Directory::new("unix");
    let mut server = Process::start(Path::new(PROGRAM), &directory, &["--unixsocketperm", "700"]);
    let mut client = server.connect();
    let permissions = std::fs::metadata(server.socket()).expect("a socket").permissions();
    assert_eq!(permissions.mode() & 0o777, 0o700);
    assert_eq!(client.run("SET k v"), ok());
    let (info, path) = (client.run("CLIENT INFO").text(), server.socket().display());
    assert!(info.contains(&format!("addr={path}:0 laddr={path}:0")) && info.contains("flags=U"), "{info}");
    server.signal(libc::SIGTERM);
    assert!(server.ends_well());
    assert!(!server.socket().exists());
}

#[test]
fn several_addresses_are_bound_and_optional_ones_may_be_missing() {
    let directory = Directory::new("addresses");
    // A port that was free a moment ago may be taken by somebody else before the server binds it.
    let mut client = wait_for("a server on a free port", || {
        let port = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr()).ok()?.port();
        // The last port counts: the harness has given none.
        let arguments = ["--bind", "127.0.0.1", "-192.0.2.1", "127.0.0.2", "--port", &port.to_string()];
        let server = Process::start(Path::new(PROGRAM), &directory, &arguments);
        wait_for("the Unix socket", || server.socket().exists().then_some(()));
        let clients = (Client::tcp(("127.0.0.1", port)).ok()?, Client::tcp(("127.0.0.2", port)).ok()?);
        Some((server, clients.0, clients.1))
    });
    assert_eq!(client.1.run("SET k v"), ok());
    assert_eq!(client.2.run("GET k"), bulk("v"));
}

#[test]
fn a_port_that_is_taken_is_a_clear_error() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let port = listener.local_addr().expect("an address").port().to_string();
    let output = std::process::Command::new(PROGRAM)
        .args(["--bind", "127.0.0.1", "--port", &port])
        .output()
        .expect("the program");
    assert_eq!(output.status.code(), Some(1));
    let text = [output.stdout, output.stderr].concat();
    assert!(String::from_utf8_lossy(&text).contains("Could not create server TCP listening socket"));
}
