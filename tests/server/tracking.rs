//! Client-side caching over sockets.

use crate::client::{Client, Value, bulk, ok};
use crate::harness::{TestServer, wait_until};

fn invalidate(keys: &[&str]) -> Value {
    Value::Array(vec![bulk("invalidate"), Value::Array(keys.iter().map(|key| bulk(key)).collect())])
}

/// A client that is told of all keys.
fn tracker(server: &TestServer, options: &[&str]) -> Client {
    let mut client = server.connect();
    client.run("HELLO 3");
    assert_eq!(client.command(&[&["CLIENT", "TRACKING", "ON", "BCAST"], options].concat()), ok());
    client
}

#[test]
fn transactions_and_expiry_are_told_once() {
    let server = TestServer::start("threads 2");
    let mut all = tracker(&server, &[]);
    let mut other = server.connect();
    for line in ["MULTI", "SET b 1", "INCR b", "LPUSH a x", "GET c", "EXEC"] {
        other.run(line);
    }
    assert_eq!(all.read(), invalidate(&["a", "b"]));
    other.run("SET soon x PX 1");
    assert_eq!(all.read(), invalidate(&["soon"]));
    assert_eq!(all.read(), invalidate(&["soon"]), "it has expired though nobody read it");
    assert_eq!(other.run("FLUSHALL"), ok());
    assert_eq!(all.read(), Value::Array(vec![bulk("invalidate"), Value::Null]));
    let info = other.run("INFO").text();
    assert!(info.contains("tracking_clients:1\r\n") && info.contains("tracking_total_prefixes:1\r\n"));
    assert!(other.run("CLIENT LIST").text().contains(" flags=tB "));
    drop(all);
    wait_until("tracking ends with the connection", || other.run("INFO").text().contains("tracking_clients:0\r\n"));
}

#[test]
fn one_who_tracks_is_told_of_its_own_writes_behind_the_reply_unless_it_asks_not_to_be() {
    let server = TestServer::start("");
    let mut client = tracker(&server, &[]);
    assert_eq!(client.run("SET k 1"), ok());
    assert_eq!(client.read(), invalidate(&["k"]));
    let mut client = tracker(&server, &["NOLOOP", "PREFIX", "p"]);
    assert_eq!(client.run("SET p1 1"), ok());
    assert_eq!(client.run("SET k 1"), ok());
    server.connect().run("SET p2 1");
    assert_eq!(client.read(), invalidate(&["p2"]));
}

#[test]
fn a_client_that_is_told_instead_and_leaves_is_missed() {
    let server = TestServer::start("");
    let mut target = server.connect();
    target.run("SUBSCRIBE __redis__:invalidate");
    let list = server.connect().run("CLIENT LIST TYPE pubsub").text();
    let id = list.strip_prefix("id=").and_then(|rest| rest.split(' ').next()).expect("an id").to_owned();
    let mut client = tracker(&server, &["REDIRECT", &id]);
    let mut other = server.connect();
    other.run("SET k 1");
    let message = vec![bulk("message"), bulk("__redis__:invalidate"), Value::Array(vec![bulk("k")])];
    assert_eq!(target.read(), Value::Array(message));
    assert_eq!(client.run("CLIENT GETREDIR"), Value::Integer(id.parse().expect("a number")));
    drop(target);
    wait_until("it has left", || other.run("CLIENT LIST TYPE pubsub").text().is_empty());
    other.run("SET k 1");
    let broken = vec![bulk("tracking-redir-broken"), Value::Integer(id.parse().expect("a number"))];
    assert_eq!(client.read(), Value::Array(broken));
    let info = client.run("CLIENT TRACKINGINFO").elements();
    assert_eq!(info[1].texts(), ["on", "bcast", "broken_redirect"]);
}

#[test]
fn a_cache_kept_by_messages_about_all_keys_is_never_wrong_for_long() {
    check_cache(&["BCAST"]);
}

#[test]
fn a_cache_kept_by_messages_about_keys_read_is_never_wrong_for_long() {
    check_cache(&[]);
}

fn check_cache(mode: &[&str]) {
    const KEYS: usize = 8;
    const WRITES: usize = 3000;
    let server = TestServer::start("threads 2");
    let mut cacher = server.connect();
    cacher.run("HELLO 3");
    assert_eq!(cacher.command(&[&["CLIENT", "TRACKING", "ON"], mode].concat()), ok());
    // So that the writers' end is told in either mode.
    assert_eq!(cacher.run("MGET done0 done1"), Value::Array(vec![Value::Null, Value::Null]));
    let mut cache: Vec<Option<String>> = vec![None; KEYS];
    std::thread::scope(|scope| {
        for writer in 0..2 {
            let server = &server;
            scope.spawn(move || {
                let mut client = server.connect();
                for number in 0..WRITES {
                    client.command(&["SET", &format!("key{}", number % KEYS), &format!("{writer} {number}")]);
                }
                client.command(&["SET", &format!("done{writer}"), "x"]);
            });
        }
        let mut done = 0;
        let forget = |cache: &mut Vec<Option<String>>, message: &Value, done: &mut usize| {
            for key in message.elements()[1].texts() {
                match key.strip_prefix("key") {
                    Some(number) => cache[number.parse::<usize>().expect("a number")] = None,
                    None => *done += 1,
                }
            }
        };
        while done < 2 {
            for key in 0..KEYS {
                if cache[key].is_none() {
                    cacher.send(&["GET", &format!("key{key}")]);
                    loop {
                        match cacher.read() {
                            message @ Value::Array(_) => forget(&mut cache, &message, &mut done),
                            Value::Null => break,
                            reply => {
                                cache[key] = Some(reply.text());
                                break;
                            }
                        }
                    }
                }
            }
            if done < 2 && cache.iter().all(Option::is_some) {
                let message = cacher.read();
                forget(&mut cache, &message, &mut done);
            }
        }
        // Everything that was told before the reply to a last PING has been heard.
        cacher.send(&["PING"]);
        while let message @ Value::Array(_) = cacher.read() {
            forget(&mut cache, &message, &mut done);
        }
    });
    let mut reader = server.connect();
    for (key, cached) in cache.iter().enumerate() {
        if let Some(cached) = cached {
            assert_eq!(&reader.command(&["GET", &format!("key{key}")]).text(), cached, "key{key}");
        }
    }
}

#[test]
fn who_has_read_a_key_is_told_of_its_next_change_and_no_more() {
    let server = TestServer::start("threads 2");
    let (mut reader, mut other) = (server.connect(), server.connect());
    reader.run("HELLO 3");
    assert_eq!(reader.run("CLIENT TRACKING ON"), ok());
    for (request, expected) in [
        (
            "CLIENT TRACKING ON OPTIN",
            "-ERR You can't switch OPTIN/OPTOUT mode before disabling tracking for this client, and then re-enabling it with a different mode.",
        ),
        (
            "CLIENT TRACKING ON BCAST",
            "-ERR You can't switch BCAST mode on/off before disabling tracking for this client, and then re-enabling it with a different mode.",
        ),
        ("CLIENT CACHING YES", "-ERR CLIENT CACHING YES is only valid when tracking is enabled in OPTIN mode."),
        ("CLIENT CACHING NO", "-ERR CLIENT CACHING NO is only valid when tracking is enabled in OPTOUT mode."),
        ("CLIENT CACHING x", "-ERR syntax error"),
        ("GET a", "_"),
        ("MGET b c a", "*3|_|_|_"),
    ] {
        assert_eq!(reader.ask(request), expected, "{request}");
    }
    let info = other.run("INFO").text();
    assert!(info.contains("tracking_total_keys:3\r\n") && info.contains("tracking_total_items:3\r\n"), "{info}");
    other.run("MSET b 1 z 1");
    assert_eq!(reader.read(), invalidate(&["b"]));
    other.run("SET b 2");
    other.run("SET c 1 PX 1");
    assert_eq!(reader.read(), invalidate(&["c"]));
    assert_eq!(reader.ask("SET a 1"), "+OK");
    assert_eq!(reader.read(), invalidate(&["a"]));
    for request in ["MULTI", "GET a", "SET a 2", "GET d", "EXEC"] {
        reader.run(request);
    }
    assert_eq!(reader.read(), invalidate(&["a"]));
    other.run("FLUSHALL");
    assert_eq!(reader.read(), Value::Array(vec![bulk("invalidate"), Value::Null]));
    // Only what is asked for.
    reader.run("CLIENT TRACKING OFF");
    assert_eq!(reader.ask("CLIENT TRACKING ON OPTIN"), "+OK");
    reader.run("GET a");
    assert_eq!(reader.ask("CLIENT CACHING YES"), "+OK");
    assert_eq!(reader.run("CLIENT TRACKINGINFO").elements()[1].texts(), ["on", "optin", "caching-yes"]);
    reader.run("GET b");
    reader.run("GET c");
    other.run("MSET a 1 b 1 c 1");
    assert_eq!(reader.read(), invalidate(&["b"]));
    reader.run("CLIENT TRACKING OFF");
    assert_eq!(reader.ask("CLIENT TRACKING ON OPTOUT NOLOOP"), "+OK");
    reader.run("GET a");
    assert_eq!(reader.ask("CLIENT CACHING NO"), "+OK");
    reader.run("GET b");
    assert_eq!(reader.ask("SET a 1"), "+OK");
    reader.run("GET a");
    other.run("MSET b 1 a 1");
    assert_eq!(reader.read(), invalidate(&["a"]));
    // Not more keys than the setting says.
    other.run("CONFIG SET tracking-table-max-keys 1");
    reader.run("GET x");
    assert_eq!(reader.ask("GET y"), "_");
    let forgotten = reader.read();
    assert!(forgotten == invalidate(&["x"]) || forgotten == invalidate(&["y"]), "{forgotten:?}");
}
