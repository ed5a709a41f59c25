//! INFO over a socket.

use std::collections::HashMap;

use crate::client::{Client, Value};
use crate::harness::{TestServer, wait_for};

/// Every line of the sections named, by name.
fn info(client: &mut Client, sections: &str) -> HashMap<String, String> {
    let text = client.run(&format!("INFO {sections}")).text();
    let lines = text.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    lines.map(|line| line.split_once(':').expect("a name and a value")).map(|(k, v)| (k.into(), v.into())).collect()
}

fn headings(client: &mut Client, sections: &str) -> Vec<String> {
    let text = client.run(&format!("INFO {sections}")).text();
    text.lines().filter_map(|line| line.strip_prefix("# ")).map(Into::into).collect()
}

#[test]
fn sections_are_chosen_as_in_redis() {
    let server = TestServer::start("");
    let mut client = server.connect();
    let default = headings(&mut client, "");
    assert_eq!(default, headings(&mut client, "default"));
    assert!(!default.contains(&"Commandstats".to_owned()) && default.contains(&"Modules".to_owned()));
    let all = headings(&mut client, "all");
    assert!(all.contains(&"Latencystats".to_owned()) && !all.contains(&"Modules".to_owned()));
    let everything = headings(&mut client, "everything");
    assert!(everything.len() > all.len());
    assert_eq!(headings(&mut client, "keyspace CPU cpu"), ["CPU", "Keyspace"]);
    assert_eq!(client.run("INFO nosuch").text(), "");
    client.run("HELLO 3");
    assert!(matches!(client.run("INFO server"), Value::Verbatim(_)));
}

#[test]
fn clients_find_what_they_look_for() {
    let server = TestServer::start("maxmemory-policy allkeys-lru");
    let mut client = server.connect();
    let info = info(&mut client, "everything");
    assert!(info["redis_version"].starts_with("7.2."));
    for (name, value) in [
        ("redis_mode", "standalone"),
        ("loading", "0"),
        ("role", "master"),
        ("cluster_enabled", "0"),
        ("maxmemory_policy", "allkeys-lru"),
        ("aof_enabled", "0"),
        ("connected_clients", "1"),
        ("caswell_version", env!("CARGO_PKG_VERSION")),
    ] {
        assert_eq!(info[name], value, "{name}");
    }
    assert_eq!(info["run_id"].len(), 40);
}

#[test]
fn commands_and_errors_are_counted_once() {
    let server = TestServer::start("threads 2");
    let mut client = server.connect();
    client.run("SET a 1");
    client.run("GET a");
    client.run("GET b");
    client.run("GET");
    client.run("LPUSH a x");
    client.run("CONFIG GET port");
    let info = info(&mut client, "everything");
    let counts = |name: &str| {
        let fields: Vec<String> = info[name].split(',').map(Into::into).collect();
        let pick = |field: &str| {
            fields.iter().find_map(|text| text.strip_prefix(&format!("{field}="))).expect("a field").to_owned()
        };
        [pick("calls"), pick("rejected_calls"), pick("failed_calls")].join(" ")
    };
    assert_eq!(counts("cmdstat_get"), "2 1 0");
    assert_eq!(counts("cmdstat_lpush"), "1 0 1");
    assert_eq!(counts("cmdstat_config|get"), "1 0 0");
    assert_eq!(info["errorstat_ERR"], "count=1");
    assert_eq!(info["errorstat_WRONGTYPE"], "count=1");
    assert_eq!(info["total_error_replies"], "2");
    assert_eq!((info["keyspace_hits"].as_str(), info["keyspace_misses"].as_str()), ("1", "1"));
    assert!(info["latency_percentiles_usec_get"].starts_with("p50="));
    assert_eq!(info["db0"], "keys=1,expires=0,avg_ttl=0");
}

#[test]
fn resetstat_begins_anew() {
    let server = TestServer::start("threads 1");
    let mut client = server.connect();
    client.run("GET a");
    client.run("GET");
    assert_eq!(client.run("CONFIG RESETSTAT"), Value::Simple("OK".into()));
    let info = info(&mut client, "everything");
    assert!(!info.contains_key("cmdstat_get") && !info.contains_key("errorstat_ERR"));
    assert_eq!(info["keyspace_misses"], "0");
    assert_eq!(info["total_error_replies"], "0");
}

#[test]
fn the_keyspace_is_counted_and_emptied() {
    let server = TestServer::start("");
    let mut client = server.connect();
    client.run("MSET a 1 b 2 c 3");
    client.run("EXPIRE a 1000");
    assert_eq!(client.run("DBSIZE"), Value::Integer(3));
    assert_eq!(info(&mut client, "keyspace")["db0"], "keys=3,expires=1,avg_ttl=0");
    assert_eq!(client.run("SWAPDB 0 1"), Value::Simple("OK".into()));
    assert_eq!(client.run("DBSIZE"), Value::Integer(0));
    assert_eq!(client.run("SWAPDB 0 99"), Value::Error("ERR DB index is out of range".into()));
    assert_eq!(client.run("SWAPDB x 0"), Value::Error("ERR invalid first DB index".into()));
    assert_eq!(client.run("FLUSHDB SYNC"), Value::Simple("OK".into()));
    assert_eq!(client.run("FLUSHALL maybe"), Value::Error("ERR syntax error".into()));
    assert_eq!(info(&mut client, "keyspace").len(), 1, "the other database still has its keys");
    assert_eq!(client.run("FLUSHALL ASYNC"), Value::Simple("OK".into()));
    assert_eq!(info(&mut client, "keyspace").len(), 0);
}

#[test]
fn every_worker_counts_and_clients_go() {
    let server = TestServer::start("threads 2");
    let mut clients: Vec<Client> = (0..4).map(|_| server.connect()).collect();
    for client in &mut clients {
        client.run("SET a 1");
    }
    let calls = info(&mut clients[0], "commandstats")["cmdstat_set"].clone();
    assert!(calls.starts_with("calls=4,"), "{calls}");
    clients.truncate(1);
    wait_for("three clients to be gone", || {
        (info(&mut clients[0], "clients")["connected_clients"] == "1").then_some(())
    });
}

#[test]
fn others_answer_as_a_server_alone() {
    let server = TestServer::start("");
    let mut client = server.connect();
    let disabled = Value::Error("ERR This instance has cluster support disabled".into());
    for line in ["CLUSTER INFO", "CLUSTER HELP", "READONLY", "READWRITE", "ASKING"] {
        assert_eq!(client.run(line), disabled, "{line}");
    }
    let role = client.run("ROLE").elements();
    assert_eq!(role, [Value::Bulk(b"master".to_vec()), Value::Integer(0), Value::Array(Vec::new())]);
    assert_eq!(client.run("MODULE LIST"), Value::Array(Vec::new()));
    assert_eq!(client.run("MODULE LOAD x"), Value::Error("ERR unknown subcommand 'LOAD'. Try MODULE HELP.".into()));
    assert_eq!(client.run("TIME").elements().len(), 2);
    assert!(client.run("LOLWUT VERSION 5 20 3").text().contains("Redis ver. 7.2."));
    assert_eq!(client.run("SHUTDOWN ABORT"), Value::Error("ERR No shutdown in progress.".into()));
    assert_eq!(client.run("SHUTDOWN SAVE NOSAVE"), Value::Error("ERR syntax error".into()));
}
