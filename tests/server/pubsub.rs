//! Publish and subscribe over sockets.

use std::io::Write;
use std::os::unix::net::UnixStream;
use std::path::Path;

use crate::client::{Client, Value, bulk, request};
use crate::harness::{Directory, Process, TestServer, wait_until};

fn push(parts: &[&str]) -> Value {
    Value::Array(parts.iter().map(|part| bulk(part)).collect())
}

/// A confirmation: kind, name (`-` for none), number of subscriptions.
fn confirmation(kind: &str, name: &str, count: i64) -> Value {
    let name = if name == "-" { Value::Null } else { bulk(name) };
    Value::Array(vec![bulk(kind), name, Value::Integer(count)])
}

#[test]
fn each_channel_is_confirmed_with_the_number_of_subscriptions() {
    let server = TestServer::start("");
    for hello in ["HELLO 2", "HELLO 3"] {
        let mut client = server.connect();
        client.run(hello);
        client.send(&["SUBSCRIBE", "a", "b", "a"]);
        for (name, count) in [("a", 1), ("b", 2), ("a", 2)] {
            assert_eq!(client.read(), confirmation("subscribe", name, count));
        }
        assert_eq!(client.run("PSUBSCRIBE p*"), confirmation("psubscribe", "p*", 3));
        assert_eq!(client.run("SSUBSCRIBE s"), confirmation("ssubscribe", "s", 1));
        assert_eq!(client.run("UNSUBSCRIBE nosuch"), confirmation("unsubscribe", "nosuch", 3));
        client.send(&["UNSUBSCRIBE"]);
        assert_eq!(client.read(), confirmation("unsubscribe", "a", 2));
        assert_eq!(client.read(), confirmation("unsubscribe", "b", 1));
        assert_eq!(client.run("UNSUBSCRIBE"), confirmation("unsubscribe", "-", 1));
        assert_eq!(client.run("PUNSUBSCRIBE"), confirmation("punsubscribe", "p*", 0));
        assert_eq!(client.run("PUNSUBSCRIBE"), confirmation("punsubscribe", "-", 0));
        assert_eq!(client.run("SUNSUBSCRIBE s"), confirmation("sunsubscribe", "s", 0));
        assert_eq!(client.run("SUNSUBSCRIBE"), confirmation("sunsubscribe", "-", 0));
        assert_eq!(client.run("GET k"), Value::Null, "{hello}: no subscriber any more");
    }
}

#[test]
fn messages_reach_channels_patterns_and_shard_channels() {
    let server = TestServer::start("threads 2");
    let (mut by_name, mut by_pattern, mut publisher) = (server.connect(), server.connect(), server.connect());
    by_name.run("SUBSCRIBE news");
    by_name.run("SSUBSCRIBE news");
    by_pattern.run("HELLO 3");
    by_pattern.run("PSUBSCRIBE n?ws");
    by_pattern.run("PSUBSCRIBE old*");
    assert_eq!(publisher.run("PUBLISH news hello"), Value::Integer(2));
    assert_eq!(publisher.run("SPUBLISH news shard"), Value::Integer(1));
    assert_eq!(publisher.run("PUBLISH nothing x"), Value::Integer(0));
    assert_eq!(by_name.read(), push(&["message", "news", "hello"]));
    assert_eq!(by_name.read(), push(&["smessage", "news", "shard"]));
    assert_eq!(by_pattern.read(), push(&["pmessage", "n?ws", "news", "hello"]));
    assert_eq!(publisher.run("PUBSUB CHANNELS"), Value::Array(vec![bulk("news")]));
    assert_eq!(publisher.run("PUBSUB CHANNELS x*"), Value::Array(vec![]));
    let counts = |pairs: &[(&str, i64)]| {
        Value::Array(pairs.iter().flat_map(|(name, count)| [bulk(name), Value::Integer(*count)]).collect())
    };
    assert_eq!(publisher.run("PUBSUB NUMSUB news x"), counts(&[("news", 1), ("x", 0)]));
    assert_eq!(publisher.run("PUBSUB SHARDNUMSUB news"), counts(&[("news", 1)]));
    assert_eq!(publisher.run("PUBSUB SHARDCHANNELS"), Value::Array(vec![bulk("news")]));
    assert_eq!(publisher.run("PUBSUB NUMPAT"), Value::Integer(2));
    let info = publisher.run("INFO").text();
    for line in ["pubsub_channels:1", "pubsub_patterns:2", "pubsubshard_channels:1", "pubsub_clients:2"] {
        assert!(info.contains(line), "{line}");
    }
    let list = publisher.run("CLIENT LIST TYPE pubsub").text();
    assert_eq!(list.lines().count(), 2, "{list}");
    assert!(list.contains(" flags=P db=0 sub=1 psub=0 ssub=1 ") && list.contains(" sub=0 psub=2 ssub=0 "), "{list}");
    drop((by_name, by_pattern));
    wait_until("the subscriptions end with the connections", || {
        publisher.run("PUBSUB NUMPAT") == Value::Integer(0) && publisher.run("PUBLISH news x") == Value::Integer(0)
    });
}

#[test]
fn subscribers_of_the_old_protocol_may_do_little_else() {
    let server = TestServer::start("");
    let mut client = server.connect();
    client.run("SET k v");
    client.run("SUBSCRIBE a");
    for (line, name) in [("GET k", "get"), ("CLIENT ID", "client|id"), ("HELLO 3", "hello"), ("PUBLISH a x", "publish")]
    {
        let text = format!(
            "ERR Can't execute '{name}': only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING / QUIT / RESET are allowed in this context"
        );
        assert_eq!(client.run(line), Value::Error(text));
    }
    assert_eq!(client.run("PING"), push(&["pong", ""]));
    assert_eq!(client.run("PING x"), push(&["pong", "x"]));
    assert_eq!(client.run("RESET"), Value::Simple("RESET".into()));
    assert_eq!(client.run("GET k"), bulk("v"));
    assert_eq!(server.connect().run("PUBLISH a x"), Value::Integer(0));
    client.run("SUBSCRIBE a");
    assert_eq!(client.line("QUIT"), "+OK");
    assert_eq!(client.rest(), b"");
}

#[test]
fn a_publisher_hears_itself_after_the_reply_and_before_the_next() {
    let server = TestServer::start("");
    let mut client = server.connect();
    client.run("HELLO 3");
    client.run("SUBSCRIBE a");
    client.send_bytes(&[request(&["PUBLISH", "a", "x"]), request(&["ECHO", "next"])].concat());
    assert_eq!(client.read(), Value::Integer(1));
    assert_eq!(client.read(), push(&["message", "a", "x"]));
    assert_eq!(client.read(), bulk("next"));
    // What came before the end of the subscription is told before its confirmation, and nothing after it.
    client.send_bytes(
        &[request(&["PUBLISH", "a", "y"]), request(&["UNSUBSCRIBE", "a"]), request(&["PUBLISH", "a", "z"])].concat(),
    );
    assert_eq!(client.read(), Value::Integer(1));
    assert_eq!(client.read(), push(&["message", "a", "y"]));
    assert_eq!(client.read(), confirmation("unsubscribe", "a", 0));
    assert_eq!(client.read(), Value::Integer(0));
}

#[test]
fn one_whose_command_waits_is_told_at_once() {
    let server = TestServer::start("threads 2");
    let (mut client, mut other) = (server.connect(), server.connect());
    client.run("HELLO 3");
    client.run("SUBSCRIBE a");
    client.send(&["BLPOP", "k", "0"]);
    wait_until("it waits", || other.run("INFO clients").text().contains("blocked_clients:1\r\n"));
    assert_eq!(other.run("PUBLISH a x"), Value::Integer(1));
    assert_eq!(client.read(), push(&["message", "a", "x"]));
    other.run("RPUSH k v");
    assert_eq!(client.read(), push(&["k", "v"]));
}

#[test]
fn messages_come_though_replies_are_not_wanted() {
    let server = TestServer::start("");
    let mut client = server.connect();
    client.run("HELLO 3");
    client.send(&["CLIENT", "REPLY", "OFF"]);
    client.send(&["PING"]);
    assert_eq!(client.run("SUBSCRIBE a"), confirmation("subscribe", "a", 1));
    client.send(&["PUBLISH", "a", "x"]);
    assert_eq!(client.read(), push(&["message", "a", "x"]));
    client.send(&["PING"]);
    assert_eq!(client.run("UNSUBSCRIBE"), confirmation("unsubscribe", "a", 0));
    assert_eq!(client.run("CLIENT REPLY ON"), Value::Simple("OK".into()));
    client.send(&["CLIENT", "REPLY", "SKIP"]);
    assert_eq!(client.run("SUBSCRIBE a"), confirmation("subscribe", "a", 1));
    assert_eq!(client.run("ECHO x"), bulk("x"));
}

#[test]
fn all_subscribers_of_a_channel_see_one_order() {
    const MESSAGES: usize = 2000;
    const PUBLISHERS: usize = 4;
    let server = TestServer::start("threads 2");
    let mut subscribers: Vec<Client> = (0..4).map(|_| server.connect()).collect();
    for (index, client) in subscribers.iter_mut().enumerate() {
        client.run(if index % 2 == 0 { "SUBSCRIBE channel" } else { "PSUBSCRIBE chan*" });
    }
    let seen: Vec<Vec<String>> = std::thread::scope(|scope| {
        for publisher in 0..PUBLISHERS {
            let server = &server;
            scope.spawn(move || {
                let mut client = server.connect();
                for start in (0..MESSAGES).step_by(50) {
                    let batch = (start..start + 50)
                        .flat_map(|number| request(&["PUBLISH", "channel", &format!("{publisher} {number}")]));
                    client.send_bytes(&batch.collect::<Vec<_>>());
                    (0..50).for_each(|_| assert_eq!(client.read(), Value::Integer(4)));
                }
            });
        }
        let payload = |client: &mut Client| client.read().texts().pop().expect("a message ends with its payload");
        let all = |client: &mut Client| (0..PUBLISHERS * MESSAGES).map(|_| payload(client)).collect();
        subscribers.iter_mut().map(all).collect()
    });
    for publisher in 0..PUBLISHERS {
        let own: Vec<_> = seen[0].iter().filter_map(|text| text.strip_prefix(&format!("{publisher} "))).collect();
        assert!(own.iter().map(|number| number.parse::<usize>().expect("a number")).eq(0..MESSAGES));
    }
    assert!(seen.iter().all(|other| *other == seen[0]), "two subscribers saw different orders");
}

#[test]
fn a_subscriber_that_never_reads_is_cut_and_costs_others_nothing() {
    let directory = Directory::new("slow-subscriber");
    let options = ["--threads", "2", "--client-output-buffer-limit", "pubsub", "8mb", "0", "0"];
    let server = Process::start(Path::new(env!("CARGO_BIN_EXE_caswell")), &directory, &options);
    let mut publisher = server.connect();
    let mut stalled = UnixStream::connect(server.socket()).expect("the server listens");
    stalled.write_all(&request(&["SUBSCRIBE", "a"])).expect("the server reads");
    wait_until("it has subscribed", || publisher.run("PUBLISH a x") == Value::Integer(1));
    let mut quick = server.connect();
    quick.run("SUBSCRIBE a");
    let payload = "x".repeat(10_000);
    let before = server.resident_kib();
    for _ in 0..5000 {
        let Value::Integer(receivers) = publisher.command(&["PUBLISH", "a", &payload]) else { panic!("no count") };
        assert_eq!(quick.read(), push(&["message", "a", &payload]));
        if receivers == 1 {
            break;
        }
    }
    wait_until("the one that does not read is cut", || publisher.command(&["PUBLISH", "a", "x"]) == Value::Integer(1));
    let grown = server.resident_kib().saturating_sub(before);
    assert!(grown < 100 * 1024, "resident memory grew by {grown} KiB");
    assert!(publisher.run("INFO stats").text().contains("client_output_buffer_limit_disconnections:1\r\n"));
    drop(stalled);
}

#[test]
fn a_subscriber_above_the_soft_limit_for_too_long_is_cut() {
    let server = TestServer::start("client-output-buffer-limit pubsub 0 1mb 1\nthreads 2");
    let mut stalled = server.connect();
    stalled.run("SUBSCRIBE a");
    let mut publisher = server.connect();
    let payload = "x".repeat(100_000);
    for _ in 0..200 {
        publisher.command(&["PUBLISH", "a", &payload]);
    }
    wait_until("it is cut though nothing wakes it any more", || {
        publisher.run("PUBLISH b x") == Value::Integer(0)
            && publisher.run("PUBSUB NUMSUB a") == Value::Array(vec![bulk("a"), Value::Integer(0)])
    });
}

#[test]
fn subscribers_can_be_killed_as_a_class() {
    let server = TestServer::start("timeout 1");
    let mut subscriber = server.connect();
    subscriber.run("SUBSCRIBE a");
    let mut other = server.connect();
    assert_eq!(other.run("CLIENT KILL TYPE normal"), Value::Integer(0));
    // Subscribers are not closed for their silence, others are.
    let mut idle = server.connect();
    assert_eq!(idle.line("PING"), "+PONG");
    wait_until("the idle client is closed", || other.run("CLIENT LIST TYPE normal").text().lines().count() == 1);
    assert_eq!(other.run("CLIENT KILL TYPE pubsub"), Value::Integer(1));
    assert_eq!(subscriber.rest(), b"");
}

#[test]
fn events_of_a_key_come_in_the_order_of_its_commits() {
    const ROUNDS: usize = 100;
    const BATCH: usize = 200;
    let server = TestServer::start("threads 2\nnotify-keyspace-events Kg$xE");
    let mut subscriber = server.connect();
    subscriber.run("SUBSCRIBE __keyspace@0__:k stop");
    subscriber.read();
    std::thread::scope(|scope| {
        for _ in 0..2 {
            for lines in [&["SET k v NX", "SET k v NX PX 1"][..], &["DEL k", "GET k"]] {
                let server = &server;
                scope.spawn(move || {
                    let words = |number: usize| lines[number % lines.len()].split(' ').collect::<Vec<_>>();
                    let batch: Vec<u8> = (0..BATCH).flat_map(|number| request(&words(number))).collect();
                    let mut client = server.connect();
                    for _ in 0..ROUNDS {
                        client.send_bytes(&batch);
                        (0..BATCH).for_each(|_| drop(client.read()));
                    }
                });
            }
        }
    });
    server.connect().run("PUBLISH stop now");
    let mut exists = false;
    let mut seen = 0;
    loop {
        let message = subscriber.read().texts();
        if message[1] == "stop" {
            break;
        }
        seen += 1;
        let expected = match message[2].as_str() {
            "set" => !std::mem::replace(&mut exists, true),
            "del" | "expired" => std::mem::replace(&mut exists, false),
            "expire" => exists,
            other => panic!("an unknown event: {other}"),
        };
        assert!(expected, "event {seen}, {}, came out of order", message[2]);
    }
    assert!(seen > 3, "too few events: {seen}");
}
