//! Scripts of several connections beside real servers: what is told to whom, and in which order.

use crate::peer::{Client, Peer, Value};

/// Connections of one script, called `a`, `b`, `c`.
const CONNECTIONS: usize = 3;

/// Runs a script on one server and gives what every connection was told after each line.
fn transcript(peer: &Peer, script: &str) -> Vec<String> {
    let mut clients: Vec<Client> = (0..CONNECTIONS).map(|_| peer.connect()).collect();
    let ids: Vec<String> = clients.iter_mut().map(|client| client.call_words("CLIENT ID").text()).collect();
    let mut told = Vec::new();
    // Within MULTI a PING would be queued, but there is one reply to each line.
    let mut in_transaction = [false; CONNECTIONS];
    for (number, line) in script.lines().map(str::trim).filter(|line| !line.is_empty()).enumerate() {
        let (name, command) = line.split_once(": ").expect("a connection and a command");
        let index = usize::from(name.as_bytes()[0] - b'a');
        // `{c}` stands for the id of a connection.
        let word = |word: &str| match word.as_bytes() {
            [b'{', name, b'}'] => ids[usize::from(name - b'a')].clone(),
            _ => word.to_owned(),
        };
        let words: Vec<String> = command.split(' ').map(word).collect();
        clients[index].send(&crate::peer::encode(&words));
        match words[0].as_str() {
            "MULTI" => in_transaction[index] = true,
            "EXEC" | "DISCARD" => in_transaction[index] = false,
            _ => {}
        }
        // Once the one that sent the line is done, all messages of it wait for the others.
        for other in std::iter::once(index).chain((0..CONNECTIONS).filter(|other| *other != index)) {
            let replies = match in_transaction[other] {
                true if other == index => vec![clients[other].read()],
                true => Vec::new(),
                false => until_silent(&mut clients[other], number),
            };
            for reply in replies {
                told.push(format!("{line} => {}: {reply:?}", char::from(b'a' + other as u8)));
            }
        }
    }
    told
}

/// What a connection has been told so far: everything before the answer to a PING.
fn until_silent(client: &mut Client, number: usize) -> Vec<Value> {
    if client.is_closed() {
        return Vec::new();
    }
    let marker = format!("marker {number}");
    client.send(&crate::peer::encode(&["PING", &marker]));
    let mut replies = Vec::new();
    loop {
        match client.read() {
            Value::Bulk(text) if text == marker.as_bytes() => return replies,
            Value::Array(parts) if parts.len() == 2 && parts[1].text() == marker => return replies,
            Value::Closed => {
                replies.push(Value::Closed);
                return replies;
            }
            Value::Missing => panic!("no answer after {replies:?}"),
            reply => replies.push(reply),
        }
    }
}

/// Fails with all differences line by line.
fn assert_same(ours: &[String], theirs: &[String], server: &str) {
    let mut differences = Vec::new();
    let lines = |told: &[String]| {
        let mut lines: Vec<(String, Vec<String>)> = Vec::new();
        for one in told {
            let (line, what) = one.split_once(" => ").expect("a line and what was told");
            match lines.last_mut() {
                Some((last, all)) if last == line => all.push(what.to_owned()),
                _ => lines.push((line.to_owned(), vec![what.to_owned()])),
            }
        }
        lines
    };
    let (ours, theirs) = (lines(ours), lines(theirs));
    for (line, our) in &ours {
        match theirs.iter().find(|(their_line, their)| their_line == line && our == their) {
            Some(_) => {}
            None => differences.push(format!("{line}: ours {our:?}")),
        }
    }
    for (line, their) in &theirs {
        if !ours.iter().any(|(our_line, our)| our_line == line && our == their) {
            differences.push(format!("{line}: {server}'s {their:?}"));
        }
    }
    assert!(differences.is_empty(), "{}", differences.join("\n"));
    assert_eq!(ours, theirs, "the order");
}

const SUBSCRIPTIONS: &str = "
    a: SUBSCRIBE one two one
    a: PSUBSCRIBE t*
    b: PSUBSCRIBE x* ?wo
    b: SSUBSCRIBE one
    b: SSUBSCRIBE
    c: PUBLISH two hello
    c: PUBLISH one hello
    c: SPUBLISH one hello
    c: PUBLISH three
    c: PUBSUB NUMSUB one two three
    c: PUBSUB NUMSUB
    c: PUBSUB NUMPAT
    c: PUBSUB CHANNELS t*
    c: PUBSUB SHARDCHANNELS
    c: PUBSUB SHARDNUMSUB one two
    c: PUBSUB CHANNELS a b
    c: PUBSUB NUMPAT x
    c: PUBSUB NOSUCH
    c: PUBSUB
    a: UNSUBSCRIBE two nothing
    a: GET k
    a: CLIENT GETNAME
    a: NOSUCH
    a: GET
    a: PING
    a: PING x y
    a: UNSUBSCRIBE
    a: UNSUBSCRIBE
    a: PUNSUBSCRIBE
    a: PUNSUBSCRIBE
    a: SUNSUBSCRIBE
    a: GET k
    b: SUNSUBSCRIBE one two
    b: PUNSUBSCRIBE x*
    c: PUBLISH two again
    b: RESET
    c: PUBLISH two again
    c: PUBSUB NUMPAT
    b: SUBSCRIBE two
    c: PUBLISH two again
    b: QUIT
    c: PUBLISH two again
";

/// Every command on data, so that each event that it may cause is caused.
const EVENTS: &str = "
    a: CONFIG SET notify-keyspace-events AKEmn
    a: CONFIG GET notify-keyspace-events
    b: PSUBSCRIBE __key*
    a: SET k v
    a: SET k w
    a: SET k w NX
    a: SET k w XX GET
    a: SET k v EX 100
    a: SET k v KEEPTTL
    a: SET n v NX PX 100000
    a: SETNX s 1
    a: SETNX s 1
    a: SETEX s 100 v
    a: PSETEX s 100000 v
    a: GET k
    a: GET none
    a: GETSET k x
    a: GETSET new x
    a: GETDEL new
    a: GETDEL new
    a: GETEX k
    a: GETEX k EX 100
    a: GETEX k PERSIST
    a: GETEX k PERSIST
    a: GETEX none EX 100
    a: GETEX k PXAT 1
    a: MSET a 1 b 2 a 3
    a: MSETNX a 1 c 2
    a: MSETNX d 1 c 2
    a: MGET a none
    a: STRLEN none
    a: GETRANGE none 0 1
    a: LCS a none
    a: INCR a
    a: INCR i
    a: DECR a
    a: INCRBY a 5
    a: DECRBY a 5
    a: INCRBYFLOAT a 1.5
    a: INCR k x
    a: APPEND a x
    a: APPEND ap x
    a: SETRANGE a 3 x
    a: SETRANGE none 3 x
    a: SETRANGE none2 0 
    a: INCR ap
    a: LPUSH l a b c
    a: RPUSH l d
    a: LPUSHX l e
    a: RPUSHX l f
    a: LPUSHX nolist f
    a: LPUSH k2 a
    a: LPUSH a x
    a: LPOP l
    a: RPOP l
    a: LPOP l 2
    a: RPOP l 0
    a: LPOP nolist
    a: LRANGE nolist 0 -1
    a: LLEN nolist
    a: LINDEX nolist 0
    a: LPOS nolist x
    a: RPUSH l x y x z
    a: LREM l 1 x
    a: LREM l 0 nothing
    a: LINSERT l BEFORE y b
    a: LINSERT l BEFORE nothing b
    a: LSET l 0 q
    a: LSET l 99 q
    a: LTRIM l 0 2
    a: LTRIM l 0 -1
    a: LTRIM nolist 0 -1
    a: RPOPLPUSH l m
    a: RPOPLPUSH nolist m
    a: LMOVE l m LEFT RIGHT
    a: LMOVE l l LEFT RIGHT
    a: LMOVE l m RIGHT LEFT
    a: LMPOP 2 nolist m LEFT COUNT 2
    a: LMPOP 2 nolist m RIGHT
    a: LMPOP 1 m RIGHT
    a: LTRIM k2 5 1
    a: RPUSH k2 x
    a: LREM k2 0 x
    a: RPUSH k2 x
    a: RPOP k2
    a: RPUSH k2 x
    a: LPOP k2 5
    a: DEL a b none
    a: UNLINK c none
    a: EXISTS s none
    a: TOUCH s none
    a: TYPE none
    a: TTL none
    a: OBJECT ENCODING none
    a: EXPIRE s 100
    a: EXPIRE s 100 NX
    a: PEXPIRE s 100000
    a: EXPIREAT s 4000000000
    a: PEXPIREAT s 4000000000000
    a: EXPIRE none 100
    a: PERSIST s
    a: PERSIST s
    a: EXPIRE s -1
    a: SET s 1
    a: PEXPIREAT s 1
    a: SET s 1
    a: SET t 1
    a: RENAME s s2
    a: RENAME s2 t
    a: RENAME t t
    a: RENAME none t
    a: SET s 1
    a: RENAMENX s t
    a: RENAMENX s u
    a: MOVE u 1
    a: MOVE u 1
    a: COPY t v
    a: COPY t v
    a: COPY t v REPLACE
    a: COPY t t DB 2
    a: COPY none v
    a: SELECT 1
    a: SET u 1
    a: GET none
    a: SWAPDB 1 2
    a: FLUSHDB
    a: FLUSHALL
    a: SET k v PX 1
    a: DEBUG SLEEP 0.01
    a: GET k
    a: CONFIG SET notify-keyspace-events Kl
    a: SET k v
    a: RPUSH l 1
    a: CONFIG SET notify-keyspace-events E$
    a: SET k v
    a: RPUSH l 1
    a: CONFIG SET notify-keyspace-events A
    a: SET k v
    a: CONFIG SET notify-keyspace-events KE
    a: SET k v
";

/// Client-side caching in the broadcasting mode.
const TRACKING: &str = "
    a: HELLO 3
    a: CLIENT TRACKINGINFO
    a: CLIENT GETREDIR
    a: CLIENT CACHING YES
    a: CLIENT TRACKING ON PREFIX x
    a: CLIENT TRACKING ON BCAST OPTIN
    a: CLIENT TRACKING ON OPTIN OPTOUT
    a: CLIENT TRACKING ON BCAST REDIRECT 99999999
    a: CLIENT TRACKING ON BCAST REDIRECT x
    a: CLIENT TRACKING ON BCAST PREFIX
    a: CLIENT TRACKING MAYBE
    a: CLIENT TRACKING ON BCAST PREFIX ab PREFIX abc
    a: CLIENT TRACKING ON BCAST PREFIX user: PREFIX ab
    a: CLIENT TRACKING ON BCAST PREFIX us
    a: CLIENT TRACKING ON BCAST PREFIX list
    a: CLIENT TRACKINGINFO
    a: CLIENT GETREDIR
    a: CLIENT CACHING YES
    a: CLIENT CACHING NO
    a: CLIENT CACHING MAYBE
    b: SET user:1 x
    b: SET other x
    b: MSET user:3 x user:2 y abc z other q
    b: SET user:1 x NX
    b: GET user:1
    b: EXPIRE user:1 100
    b: PERSIST user:1
    b: PERSIST user:1
    b: DEL user:1 user:1 nothing
    b: RPUSH list a b
    b: LPOP list 5
    b: INCR user:1
    b: RENAME user:1 other
    b: COPY other user:9
    b: MOVE user:9 1
    b: LPUSH user:2 x
    b: EVAL redis.call('set','user:3','x');return(redis.call('del','user:3')) 0
    b: FLUSHDB
    b: FLUSHALL
    a: CLIENT TRACKING ON BCAST NOLOOP
    a: CLIENT TRACKINGINFO
    a: SET user:1 mine
    b: SET user:1 x
    a: CLIENT TRACKING OFF
    a: CLIENT TRACKINGINFO
    b: SET user:1 y
    a: CLIENT TRACKING ON BCAST
    b: SET any y
    a: RESET
    b: SET any z
    b: SUBSCRIBE __redis__:invalidate
    a: CLIENT TRACKING ON BCAST REDIRECT {b}
    c: SET key value
    c: MSET key value two value
    c: FLUSHALL
    b: UNSUBSCRIBE
    c: SET key value
    b: QUIT
    c: SET key value
    a: CLIENT TRACKING OFF
";

/// Messages, events and lines of commands that run in a transaction.
const TRANSACTIONS: &str = "
    a: CONFIG SET notify-keyspace-events AKEm
    b: PSUBSCRIBE *
    a: MULTI
    a: SET k v EX 100
    a: PUBLISH channel x
    a: LPUSH k x
    a: RPUSH l a b
    a: LPOP l 2
    a: GET none
    a: SPUBLISH channel x
    a: PUBSUB NUMPAT
    a: EXEC
    a: WATCH k
    c: SET k w
    a: MULTI
    a: PUBLISH channel lost
    a: DEL k
    a: EXEC
    a: MULTI
    a: PUBLISH channel lost
    a: DISCARD
    a: MULTI
    a: SELECT 1
    a: SET k v
    a: RENAME k l
    a: SELECT 0
    a: DEL k
    a: FLUSHALL
    a: SET k v
    a: EXEC
    a: MULTI
    a: NOSUCH
    a: PUBLISH channel lost
    a: EXEC
    a: EVAL redis.call('set','k','v');redis.call('rpush','l','x');return(redis.call('get','none')) 0
    a: EVAL return(redis.call('publish','channel','y')) 0
    a: EVAL redis.call('set','k','v');redis.call('publish','channel','y');redis.call('rpush','l','x');return(redis.call('publish','channel','z')) 0
    a: MULTI
    a: EVAL redis.call('set','k','v');return(redis.call('publish','channel','y')) 0
    a: LPOP l
    a: EXEC
    c: BLPOP l 0.1
    c: BLMOVE l m LEFT LEFT 0.1
    c: BRPOPLPUSH m l 0.1
    c: BLMPOP 0.1 1 l LEFT
    c: PSUBSCRIBE z*
    a: MULTI
    a: PUBLISH z x
    a: SET z x
    a: EXEC
    c: RESET
    c: HELLO 3
    c: MULTI
    c: SUBSCRIBE one two
    c: PUBLISH other x
    c: UNSUBSCRIBE one
    c: GET k
    c: EXEC
    c: UNSUBSCRIBE
    a: MONITOR
    c: MULTI
    c: SET k v
    c: GET k
    c: EXEC
    c: RESET
    c: MULTI
    c: SET k v
    c: DISCARD
    a: RESET
";

/// What an own subscriber is told among its replies, where Redis 7.0 tells it before them.
const OWN: &str = "
    a: HELLO 3
    a: CONFIG SET notify-keyspace-events AKE
    a: SUBSCRIBE one
    a: PSUBSCRIBE o* __keyevent*
    a: PUBLISH one x
    a: SET k v
    a: PUNSUBSCRIBE o*
    a: PUBLISH one x
    a: RESET
    a: PUBLISH one x
";

#[test]
fn subscribers_are_told_what_real_servers_tell_them() {
    let hello = "a: HELLO 3\nb: HELLO 3\n";
    for script in [SUBSCRIPTIONS.to_owned(), format!("{hello}{SUBSCRIPTIONS}")] {
        // New servers for each script: those that a script leaves behind forget its clients some time later.
        let peers = [Peer::caswell(&[]), Peer::redis(&[]), Peer::valkey(&[])];
        let [ours, redis, valkey] = peers.each_ref().map(|peer| transcript(peer, &script));
        // What HELLO says of the server differs.
        let comparable =
            |told: Vec<String>| told.into_iter().filter(|line| !line.contains("HELLO 3 =>")).collect::<Vec<_>>();
        let [ours, redis, valkey] = [ours, redis, valkey].map(comparable);
        assert_same(&ours, &redis, "redis");
        assert_same(&ours, &valkey, "valkey");
    }
}

#[test]
fn every_command_on_data_causes_the_events_of_real_servers() {
    let options = ["--enable-debug-command", "yes"];
    let peers = [Peer::caswell(&options), Peer::redis(&options), Peer::valkey(&options)];
    let [ours, redis, valkey] = peers.each_ref().map(|peer| transcript(peer, EVENTS));
    // Replies are compared elsewhere.
    let events = |told: Vec<String>| told.into_iter().filter(|line| line.contains("=> b: ")).collect::<Vec<_>>();
    let [ours, redis, valkey] = [ours, redis, valkey].map(events);
    assert!(ours.len() > 100, "too few events: {}", ours.len());
    assert_same(&ours, &redis, "redis");
    // A deadline in the past: Redis says that the key was deleted, Valkey that it expired.
    let in_the_past = ["a: GETEX k PXAT 1 ", "a: EXPIRE s -1 ", "a: PEXPIREAT s 1 "];
    let comparable = |mut told: Vec<String>| {
        told.retain(|line| !in_the_past.iter().any(|start| line.starts_with(start)));
        told
    };
    assert_same(&comparable(ours), &comparable(valkey), "valkey");
}

#[test]
fn one_who_publishes_is_told_its_message_after_the_reply() {
    let peers = [Peer::caswell(&[]), Peer::valkey(&[])];
    let [ours, valkey] = peers.each_ref().map(|peer| transcript(peer, OWN));
    let comparable =
        |told: Vec<String>| told.into_iter().filter(|line| !line.contains("HELLO 3 =>")).collect::<Vec<_>>();
    assert_same(&comparable(ours), &comparable(valkey), "valkey");
}

#[test]
fn those_who_track_keys_are_told_what_real_servers_tell_them() {
    let options = ["--enable-debug-command", "yes"];
    let peers = [Peer::caswell(&options), Peer::redis(&options), Peer::valkey(&options)];
    let [ours, redis, valkey] = peers.each_ref().map(|peer| transcript(peer, TRACKING));
    let comparable =
        |told: Vec<String>| told.into_iter().filter(|line| !line.contains("HELLO 3 =>")).collect::<Vec<_>>();
    let [ours, redis, valkey] = [ours, redis, valkey].map(comparable);
    assert_same(&ours, &redis, "redis");
    assert_same(&ours, &valkey, "valkey");
}

#[test]
fn what_a_transaction_does_outside_the_data_is_told_as_real_servers_tell_it() {
    let peers = [Peer::caswell(&[]), Peer::redis(&[]), Peer::valkey(&[])];
    let [ours, redis, valkey] = peers.each_ref().map(|peer| transcript(peer, TRANSACTIONS));
    // Time and address of a monitored command differ.
    let comparable = |told: Vec<String>| {
        let anonymous = |line: String| match line.split_once(": +\"1") {
            Some((start, line)) => format!("{start}: +{}", line.split_once("] ").map_or(line, |(_, command)| command)),
            None => line,
        };
        told.into_iter().filter(|line| !line.contains("HELLO 3 =>")).map(anonymous).collect::<Vec<_>>()
    };
    let [ours, redis, valkey] = [ours, redis, valkey].map(comparable);
    assert_same(&ours, &redis, "redis");
    assert_same(&ours, &valkey, "valkey");
}
