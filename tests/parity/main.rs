//! Every fact of every command row beside what real servers say of the same command.
//!
//! Our own answers to COMMAND INFO and COMMAND DOCS are compared, so the rows and their encoding are checked together. The
//! facts are asked from the servers while the test runs; nothing of theirs is kept here. Summaries, complexities, history
//! lines and key spec notes are texts of our own and are not compared, only that they are there.

#[path = "../peer/mod.rs"]
mod peer;

mod differences;

use differences::Difference;
use peer::{Client, Peer, Value};
use std::collections::BTreeMap;

/// What one server says of its commands: full name to fact to text.
type Facts = BTreeMap<String, BTreeMap<String, String>>;

/// The versions that arguments, history lines and commands may be from. Both servers are compared up to this one.
const BASIS: (u32, u32) = (7, 2);

#[test]
fn rows_say_what_real_servers_say() {
    let ours = facts(&Peer::caswell(&[]));
    let redis = facts(&Peer::redis(&[]));
    let valkey = facts(&Peer::valkey(&[]));
    assert!(ours.len() > 100, "too few commands: {}", ours.len());
    let mut used = vec![false; differences::ALL.len()];
    let mut unexplained = Vec::new();
    let mut compared = 0;
    for (command, our_facts) in &ours {
        if !redis.contains_key(command) && !valkey.contains_key(command) {
            unexplained.push(format!("{command}: no other server knows it"));
        }
        for (server, theirs) in [("redis", &redis), ("valkey", &valkey)] {
            let Some(their_facts) = theirs.get(command) else { continue };
            for fact in our_facts.keys().chain(their_facts.keys().filter(|fact| !our_facts.contains_key(*fact))) {
                compared += 1;
                let (our, their) = (our_facts.get(fact), their_facts.get(fact));
                if our == their {
                    continue;
                }
                let explains = |difference: &Difference| difference.explains(server, command, fact);
                match differences::ALL.iter().position(explains) {
                    Some(index) => used[index] = true,
                    None => unexplained.push(format!("{command} {fact}: ours {our:?}, {server}'s {their:?}")),
                }
            }
        }
    }
    println!("{} commands, {compared} facts compared", ours.len());
    for (difference, used) in differences::ALL.iter().zip(used) {
        if !used {
            unexplained.push(format!("nothing needs the difference {difference:?} any more"));
        }
    }
    assert!(unexplained.is_empty(), "{} unexplained:\n{}", unexplained.len(), unexplained.join("\n"));
}

#[test]
fn both_protocols_hold_the_same_facts() {
    let peer = Peer::caswell(&[]);
    let [mut two, mut three] = [2, 3].map(|version| connect(&peer, version));
    for line in ["COMMAND", "COMMAND DOCS", "COMMAND INFO get client|kill", "COMMAND DOCS get client|kill"] {
        assert_eq!(flatten(&two.call_words(line)), flatten(&three.call_words(line)), "{line}");
    }
}

fn connect(peer: &Peer, version: u8) -> Client {
    let mut client = peer.connect();
    let hello = client.call_words(&format!("HELLO {version}"));
    assert_eq!(hello.field("proto"), Some(Value::Integer(version.into())), "{}: {hello:?}", peer.name);
    client
}

/// A reply with all aggregates as arrays, which is how RESP2 gives it.
fn flatten(value: &Value) -> Value {
    let elements = || value.elements().iter().map(flatten).collect();
    match value {
        Value::Map(_) | Value::Set(_) | Value::Array(_) => Value::Array(elements()),
        other => other.clone(),
    }
}

fn facts(peer: &Peer) -> Facts {
    let mut client = connect(peer, 3);
    let mut facts = Facts::new();
    for info in client.call_words("COMMAND").elements() {
        collect_info(&info, &mut facts);
    }
    collect_docs(&client.call_words("COMMAND DOCS"), &mut facts);
    facts
}

/// The order in which sets hold their members means nothing.
fn sorted(set: &Value) -> String {
    assert!(matches!(set, Value::Set(_)), "{set:?} should be a set");
    let mut texts = set.texts();
    texts.sort();
    texts.join(" ")
}

fn collect_info(info: &Value, facts: &mut Facts) {
    let parts = info.elements();
    assert_eq!(parts.len(), 10, "{info:?}");
    let command = facts.entry(parts[0].text()).or_default();
    let mut add = |fact: &str, text: String| command.insert(fact.to_owned(), text);
    add("arity", parts[1].text());
    add("flags", sorted(&parts[2]));
    add("key range", format!("{} {} {}", parts[3].text(), parts[4].text(), parts[5].text()));
    add("categories", sorted(&parts[6]));
    add("tips", sorted(&parts[7]));
    for (index, spec) in parts[8].elements().iter().enumerate() {
        let field = |name| spec.field(name).unwrap_or_else(|| panic!("{spec:?} has no {name}"));
        add(&format!("key spec {index} flags"), sorted(&field("flags")));
        add(&format!("key spec {index} begin"), format!("{:?}", field("begin_search")));
        add(&format!("key spec {index} find"), format!("{:?}", field("find_keys")));
        add(&format!("key spec {index} has notes"), spec.field("notes").is_some().to_string());
    }
    for subcommand in parts[9].elements() {
        collect_info(&subcommand, facts);
    }
}

fn is_of_basis(version: &str) -> bool {
    let mut parts = version.split('.').map(|part| part.parse::<u32>().expect("a version"));
    (parts.next().unwrap_or(0), parts.next().unwrap_or(0)) <= BASIS
}

fn collect_docs(docs: &Value, facts: &mut Facts) {
    let Value::Map(commands) = docs else { panic!("{docs:?} should be a map") };
    for (name, doc) in commands {
        let mut found = BTreeMap::new();
        let mut add = |fact: &str, text: String| found.insert(fact.to_owned(), text);
        for (field, fact) in [
            ("since", "since"),
            ("group", "group"),
            ("deprecated_since", "deprecation since"),
            ("replaced_by", "deprecation replacement"),
        ] {
            doc.field(field).map(|value| add(fact, value.text()));
        }
        for text in ["summary", "complexity"] {
            add(&format!("has {text}"), doc.field(text).is_some().to_string());
        }
        add("deprecation flags", doc.field("doc_flags").map_or_else(String::new, |flags| sorted(&flags)));
        let history = doc.field("history").map_or_else(Vec::new, |history| history.elements());
        let versions = history.iter().map(|entry| entry.elements()[0].text()).filter(|version| is_of_basis(version));
        add("history", versions.collect::<Vec<_>>().join(" "));
        if let Some(arguments) = doc.field("arguments") {
            collect_arguments(&arguments, "argument", &mut found);
        }
        facts.entry(name.text()).or_default().extend(found);
        if let Some(subcommands) = doc.field("subcommands") {
            collect_docs(&subcommands, facts);
        }
    }
}

fn collect_arguments(arguments: &Value, path: &str, found: &mut BTreeMap<String, String>) {
    let mut place = 0;
    for argument in arguments.elements() {
        if argument.field("since").is_some_and(|since| !is_of_basis(&since.text())) {
            continue;
        }
        let path = format!("{path} {place}");
        place += 1;
        let Value::Map(pairs) = &argument else { panic!("{argument:?} should be a map") };
        let mut text = String::new();
        for (name, value) in pairs {
            match name.text().as_str() {
                "arguments" => collect_arguments(value, &path, found),
                "flags" => text.push_str(&format!("flags={} ", sorted(value))),
                "summary" => {}
                // Redis 7.0 does not say it yet.
                "display_text" if argument.field("name").as_ref() == Some(value) => {}
                name => text.push_str(&format!("{name}={} ", value.text())),
            }
        }
        found.insert(path, text);
    }
}
