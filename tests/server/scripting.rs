//! EVAL and its kin, SCRIPT.

use crate::client::{Value, bulk, ok};
use crate::harness::{TestServer, wait_until};

const DIGEST: &str = "e0e1f9fabfc9d4800c877a703b823ac0578ff8db";

fn error(text: &str) -> Value {
    Value::Error(text.into())
}

#[test]
fn scripts_are_known_by_their_digest_on_every_worker() {
    let server = TestServer::start("threads 2");
    let mut clients = [server.connect(), server.connect()];
    assert_eq!(clients[0].command(&["EVALSHA", DIGEST, "0"]), error("NOSCRIPT No matching script. Please use EVAL."));
    assert_eq!(clients[0].command(&["EVAL", "return 1", "0"]), Value::Integer(1));
    for client in &mut clients {
        assert_eq!(client.command(&["EVALSHA", &DIGEST.to_uppercase(), "0"]), Value::Integer(1));
        assert_eq!(client.command(&["SCRIPT", "EXISTS", DIGEST, "x"]).elements(), [1, 0].map(Value::Integer));
    }
    assert_eq!(clients[1].run("SCRIPT FLUSH"), ok());
    assert_eq!(clients[0].command(&["EVALSHA", DIGEST, "0"]), error("NOSCRIPT No matching script. Please use EVAL."));
    assert_eq!(clients[1].command(&["SCRIPT", "LOAD", "return 1"]), bulk(DIGEST));
    assert_eq!(clients[0].command(&["EVALSHA_RO", DIGEST, "0"]), Value::Integer(1));
}

#[test]
fn a_failed_script_keeps_what_it_has_written_and_a_read_only_one_writes_nothing() {
    let server = TestServer::start("");
    let mut client = server.connect();
    let reply = client.command(&["EVAL", "redis.call('set', 'k', 'v') error({err='MY end'})", "0"]);
    assert!(reply.text().starts_with("MY end script: "), "{reply:?}");
    assert_eq!(client.run("GET k"), bulk("v"));
    let reply = client.command(&["EVAL_RO", "return redis.pcall('set', 'k', 'w')", "0"]);
    assert_eq!(reply, error("ERR Write commands are not allowed from read-only scripts."));
    let source = "#!lua flags=no-writes\nreturn redis.pcall('set', 'k', 'w')";
    assert_eq!(client.command(&["EVAL", source, "0"]), reply);
    assert_eq!(client.run("GET k"), bulk("v"));
}

#[test]
fn a_script_about_the_whole_keyspace_sees_its_own_writes() {
    let server = TestServer::start("");
    let mut client = server.connect();
    let source = "redis.call('flushall') redis.call('set', 'a', 1) redis.call('select', 1) redis.call('set', 'b', 1) \
                  return {redis.call('dbsize'), redis.call('keys', '*')[1], redis.call('publish', 'c', 'm')}";
    let reply = client.command(&["EVAL", source, "0"]);
    assert_eq!(reply, Value::Array(vec![Value::Integer(1), bulk("b"), Value::Integer(0)]));
    // The client's own database is what it was.
    assert_eq!(client.run("GET a"), bulk("1"));
    for line in ["MULTI", "SET c 1"] {
        client.run(line);
    }
    client.command(&["EVAL", "return redis.call('dbsize')", "0"]);
    assert_eq!(client.run("EXEC").elements(), [ok(), Value::Integer(2)]);
}

#[test]
fn scripts_are_steps_of_exec() {
    let server = TestServer::start("");
    let mut client = server.connect();
    client.run("MULTI");
    client.run("SET k 5");
    client.command(&["EVAL", "return redis.call('incrby', KEYS[1], ARGV[1])", "1", "k", "3"]);
    client.run("GET k");
    client.command(&["EVALSHA", DIGEST, "0"]);
    let expected = [ok(), Value::Integer(8), bulk("8"), error("NOSCRIPT No matching script. Please use EVAL.")];
    assert_eq!(client.run("EXEC").elements(), expected);
}

#[test]
fn counters_that_scripts_of_two_workers_raise_are_exact() {
    const EACH: usize = 500;
    let server = TestServer::start("threads 2");
    let source = "local n = redis.call('get', KEYS[1]) redis.call('set', KEYS[1], (tonumber(n) or 0) + 1)";
    let mut clients = [server.connect(), server.connect()];
    for _ in 0..EACH {
        clients.iter_mut().for_each(|client| client.send(&["EVAL", source, "1", "n"]));
    }
    for client in &mut clients {
        assert!((0..EACH).all(|_| client.read() == Value::Null));
    }
    assert_eq!(clients[0].run("GET n"), bulk(&(2 * EACH).to_string()));
}

#[test]
fn a_script_without_end_is_ended_from_another_worker_and_leaves_nothing() {
    let server = TestServer::start("threads 2\nbusy-reply-threshold 1");
    let mut busy = server.connect();
    let mut other = server.connect();
    assert_eq!(other.run("SCRIPT KILL"), error("NOTBUSY No scripts in execution right now."));
    busy.send(&["EVAL", "redis.call('set', 'k', 'v') while true do pcall(redis.call, 'get', 'k') end", "0"]);
    wait_until("the script's end", || other.run("SCRIPT KILL") == ok());
    let reply = busy.read();
    assert!(reply.text().contains("Script killed by user with SCRIPT KILL"), "{reply:?}");
    assert_eq!(busy.run("GET k"), Value::Null);
}

#[test]
fn waiting_clients_are_served_by_scripts() {
    let server = TestServer::start("threads 2");
    let (mut waiting, mut client) = (server.connect(), server.connect());
    waiting.send(&["BLPOP", "list", "0"]);
    wait_until("a waiting client", || client.run("CLIENT LIST").text().contains("cmd=blpop"));
    assert_eq!(client.command(&["EVAL", "return redis.call('rpush', 'list', 'x')", "0"]), Value::Integer(1));
    assert_eq!(waiting.read().texts(), ["list", "x"]);
    assert_eq!(client.run("LLEN list"), Value::Integer(0));
}

#[test]
fn functions_are_called_on_every_worker_and_survive_a_dump() {
    const LIBRARY: &str = "#!lua name=lib\n\
        redis.register_function('put', function(keys, args) return redis.call('set', keys[1], args[1]) end)\n\
        redis.register_function{function_name='look', flags={'no-writes'}, description='reads',\n\
            callback=function(keys) return redis.call('get', keys[1]) end}";
    let server = TestServer::start("threads 2");
    let mut clients = [server.connect(), server.connect()];
    assert_eq!(clients[0].command(&["FUNCTION", "LOAD", LIBRARY]), bulk("lib"));
    for client in &mut clients {
        assert_eq!(client.run("FCALL put 1 k v"), ok());
        assert_eq!(client.run("FCALL_RO look 1 k"), bulk("v"));
        let refused = "ERR Can not execute a script with write flag using *_ro command.";
        assert_eq!(client.run("FCALL_RO put 1 k w"), error(refused));
    }
    assert_eq!(clients[1].command(&["FUNCTION", "LOAD", LIBRARY]), error("ERR Library 'lib' already exists"));
    let replaced = LIBRARY.replace("'set'", "'append'");
    assert_eq!(clients[1].command(&["FUNCTION", "LOAD", "REPLACE", &replaced]), bulk("lib"));
    assert_eq!(clients[0].run("FCALL put 1 k w"), Value::Integer(2));
    assert_eq!(clients[0].run("FUNCTION DELETE lib"), ok());
    assert_eq!(clients[1].run("FCALL put 1 k v"), error("ERR Function not found"));
    let failing = "#!lua name=bad\nwhile true do end";
    let reply = clients[1].command(&["FUNCTION", "LOAD", failing]);
    assert!(reply.text().contains("FUNCTION LOAD timeout"), "{reply:?}");
}
