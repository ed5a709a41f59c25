//! Scenes of several connections beside real servers: who waits, who is served and with what, and what keeps EXEC from running.
//!
//! A scene is a list of lines, which the connections `a`, `b`, `c` and `d` act out one after the other:
//!
//! ```text
//! a: GET k             sends a command and reads its reply
//! a> BLPOP k 0         sends a command that waits, and goes on once the server counts one more client that waits
//! a~ SET k v           sends a command and goes on at once
//! a<                   reads a reply
//! a? EXISTS k => :0    repeats a command until it answers this
//! ```
//!
//! `@a` stands for the id of `a`, and `""` for an empty word.

use crate::peer::{Client, Peer, Value, encode};
use std::time::{Duration, Instant};

mod scripts;

/// How long a condition may take to become true.
const PATIENCE: Duration = Duration::from_secs(30);
const CONNECTIONS: &[&str] = &["a", "b", "c", "d"];

struct Stage<'p> {
    peer: &'p Peer,
    administrator: Client,
    actors: Vec<Client>,
    ids: Vec<String>,
    /// Which of them wait, as far as the scene says.
    waiting: Vec<bool>,
}

impl<'p> Stage<'p> {
    fn new(peer: &'p Peer) -> Self {
        let mut administrator = peer.connect();
        for line in ["CLIENT UNPAUSE", "FLUSHALL", "CONFIG SET notify-keyspace-events \"\""] {
            administrator.call(&words(line, &[]));
        }
        let mut actors: Vec<Client> = CONNECTIONS.iter().map(|_| peer.connect()).collect();
        let ids = actors.iter_mut().map(|actor| actor.call_words("CLIENT ID").text()).collect();
        let stage = Self { peer, administrator, waiting: vec![false; actors.len()], actors, ids };
        // Those of the last scene have gone.
        let mut counting = peer.connect();
        until("the last scene's clients to go", || blocked_clients(&mut counting) == 0);
        stage
    }

    /// Acts out a line; what was answered, if it asks for an answer.
    fn act(&mut self, line: &str) -> Option<Value> {
        let (name, rest) = line.split_at(1);
        let actor = CONNECTIONS.iter().position(|one| *one == name).unwrap_or_else(|| panic!("nobody acts {line}"));
        let (how, command) = rest.split_at(1);
        let request = words(command, &self.ids);
        match how {
            ":" => Some(tell(self.actors[actor].call(&request))),
            "<" => {
                self.waiting[actor] = false;
                Some(tell(self.actors[actor].read()))
            }
            "~" => {
                self.actors[actor].send(&encode(&request));
                None
            }
            ">" => {
                self.waiting[actor] = true;
                self.actors[actor].send(&encode(&request));
                let expected = self.waiting.iter().filter(|waits| **waits).count();
                let name = self.peer.name;
                until(&format!("{name} to make {expected} wait, after {line}"), || {
                    blocked_clients(&mut self.administrator) == expected
                });
                None
            }
            "?" => {
                let (command, expected) = command.split_once(" => ").expect("a command and what it is to answer");
                let request = words(command, &self.ids);
                until(line, || format!("{:?}", self.actors[actor].call(&request)) == expected);
                None
            }
            _ => panic!("unclear: {line}"),
        }
    }
}

fn until(what: &str, mut condition: impl FnMut() -> bool) {
    let began = Instant::now();
    while !condition() {
        assert!(began.elapsed() < PATIENCE, "waited in vain for {what}");
        std::thread::yield_now();
    }
}

fn blocked_clients(administrator: &mut Client) -> usize {
    let text = administrator.call_words("INFO clients").text();
    let figure = text.lines().find_map(|line| line.strip_prefix("blocked_clients:"));
    figure.and_then(|figure| figure.parse().ok()).expect("INFO tells how many clients wait")
}

fn words(line: &str, ids: &[String]) -> Vec<String> {
    let word = |word: &str| match (word, word.strip_prefix('@')) {
        ("\"\"", _) => String::new(),
        (_, Some(name)) => {
            ids[CONNECTIONS.iter().position(|one| *one == name).unwrap_or_else(|| panic!("{line}"))].clone()
        }
        _ => word.to_owned(),
    };
    line.split(' ').filter(|word| !word.is_empty()).map(word).collect()
}

/// A reply, without what is each server's own.
fn tell(reply: Value) -> Value {
    match reply {
        Value::Bulk(text) | Value::Verbatim(text) if text.starts_with(b"id=") || text.starts_with(b"txt:id=") => {
            let text = String::from_utf8_lossy(&text).into_owned();
            let told = ["db=", "sub=", "psub=", "multi=", "flags=", "cmd=", "resp="];
            let kept = text.split_whitespace().filter(|field| told.iter().any(|name| field.starts_with(name)));
            Value::Bulk(kept.collect::<Vec<_>>().join(" ").into_bytes())
        }
        other if other.field("proto").is_some() => Value::Bulk(b"(hello)".to_vec()),
        Value::Array(elements) => Value::Array(elements.into_iter().map(tell).collect()),
        other => other,
    }
}

fn lines(script: &str) -> Vec<&str> {
    script.lines().map(str::trim).filter(|line| !line.is_empty()).collect()
}

/// What was answered, line by line.
fn act_out(peer: &Peer, script: &str) -> Vec<Option<Value>> {
    let mut stage = Stage::new(peer);
    let act = |line| {
        let answer = stage.act(line);
        assert!(answer != Some(Value::Missing), "{} does not answer {line} in:\n{script}", peer.name);
        answer
    };
    lines(script).into_iter().map(act).collect()
}

#[test]
fn scenes_of_several_clients_end_as_they_do_elsewhere() {
    let options = ["--enable-debug-command", "yes", "--hz", "100"];
    let (ours, others) = (Peer::caswell(&options), [Peer::redis(&options), Peer::valkey(&options)]);
    let mut differences = Vec::new();
    let mut answers = 0;
    let scenes = scripts::all();
    for scene in &scenes {
        for protocol in [2, 3] {
            let hello = CONNECTIONS.iter().map(|name| format!("{name}: HELLO {protocol}\n")).collect::<String>();
            let script = if protocol == 2 { scene.script.clone() } else { hello + &scene.script };
            let ours = act_out(&ours, &script);
            for server in others.iter().filter(|server| scene.servers.contains(&server.name)) {
                let theirs = act_out(server, &script);
                for ((line, our), their) in lines(&script).iter().zip(&ours).zip(&theirs) {
                    answers += usize::from(our.is_some());
                    if our != their {
                        let (name, server) = (&scene.name, server.name);
                        differences.push(format!(
                            "{name}, RESP{protocol}: {line}\n    ours   {our:?}\n    {server} {their:?}"
                        ));
                    }
                }
            }
        }
    }
    println!("{} scenes in two protocols, {answers} answers compared", scenes.len());
    assert!(differences.is_empty(), "{} differences:\n{}", differences.len(), differences.join("\n"));
}
