//! Scripts beside a real server: each line of `scripts.txt` is evaluated by both, in both protocols, and the replies are the same byte for byte.

use crate::peer::{Client, Peer, Value};

const SCRIPTS: &str = include_str!("scripts.txt");

/// The reply to a script, with everything that a script left behind taken away first.
fn evaluate(client: &mut Client, script: &str) -> Value {
    client.call_words("FLUSHALL");
    client.call(&["EVAL", script, "0"])
}

/// Some scripts answer with thousands of arrays one within the other, which are read and compared by recursion.
const STACK_BYTES: usize = 256 * 1024 * 1024;

#[test]
fn scripts_answer_as_those_of_redis() {
    let comparison = std::thread::Builder::new().stack_size(STACK_BYTES).spawn(compare).expect("a thread starts");
    comparison.join().expect("the replies are the same");
}

fn compare() {
    let (ours, redis) = (Peer::caswell(&[]), Peer::redis(&[]));
    let mut different = Vec::new();
    for protocol in ["2", "3"] {
        let (mut our_client, mut their_client) = (ours.connect(), redis.connect());
        our_client.call(&["HELLO", protocol]);
        their_client.call(&["HELLO", protocol]);
        for script in SCRIPTS.lines() {
            let (our, their) = (evaluate(&mut our_client, script), evaluate(&mut their_client, script));
            if our != their {
                different.push(format!("RESP{protocol}: {script}\n  ours  {our:?}\n  redis {their:?}"));
            }
        }
    }
    assert!(SCRIPTS.lines().count() > 200, "too few scripts");
    assert!(different.is_empty(), "{} differ:\n{}", different.len(), different.join("\n"));
}
