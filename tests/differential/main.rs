//! Random sequences of commands beside real servers: every reply, every error text, and the state that they leave.
//!
//! Lines are made from the rows' own argument syntax, so a new row is tested without a word here. Each command and each option of it
//! runs at least [`RUNS`] times, half of them in either protocol. `CASWELL_SEED` repeats a run.

#[path = "../peer/mod.rs"]
mod peer;

mod compare;
mod draw;
mod exceptions;
mod lines;
mod pubsub;
mod run;
mod scenes;
mod scripts;
mod special;
mod values;

use draw::Draw;
use lines::{Catalogue, Line, comparable};
use peer::Value;
use run::{Difference, Trio};
use values::Values;

/// Runs of each command and of each option.
const RUNS: usize = 1_000;
/// Lines of one sequence.
const SEQUENCE: usize = 200;
/// Differences after which a run gives up.
const DIFFERENCES_MAX: usize = 12;
/// Sequences after which counts that are still too low are reported.
const SEQUENCES_MAX: usize = 20_000;

/// With so many rounds of housekeeping per second Redis notices soon that a time-out has passed.
const OPTIONS: &[&str] = &["--enable-debug-command", "yes", "--hz", "500"];

fn seed() -> u64 {
    let chosen = std::env::var("CASWELL_SEED").ok().and_then(|text| text.parse().ok());
    let seed = chosen.unwrap_or_else(|| {
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        now.map_or(0, |now| now.as_nanos() as u64)
    });
    println!("CASWELL_SEED={seed}");
    seed
}

/// A sequence that favours the commands and options that ran least.
fn sequence(catalogue: &Catalogue, draw: &mut Draw, among: &[usize], target: usize) -> Vec<Line> {
    let mut values = Values::new();
    let wanting: Vec<usize> =
        among.iter().copied().filter(|index| catalogue.subjects[*index].needs_runs(target)).collect();
    let with_keys: Vec<usize> =
        among.iter().copied().filter(|index| !catalogue.subjects[*index].row.keys.is_empty()).collect();
    let mut lines = Vec::with_capacity(SEQUENCE);
    while lines.len() < SEQUENCE {
        let pool = if wanting.is_empty() || draw.chance(40) && !with_keys.is_empty() { &with_keys } else { &wanting };
        let command = pool[draw.below(pool.len())];
        match catalogue.subjects[command].is_of_transactions() && draw.chance(90) {
            true => lines.extend(catalogue.transaction(pool, draw, &mut values)),
            false => lines.push(catalogue.line(command, draw, &mut values)),
        }
    }
    comparable(catalogue, &lines)
}

fn report(lines: &[Line], protocol: u8, difference: &Difference) -> String {
    let Difference { at, server, subject, place, ours, theirs } = difference;
    let shown: Vec<String> = lines[..=*at].iter().map(|line| format!("    {}", line.show())).collect();
    format!("{subject} {place} RESP{protocol}:\n{}\n  ours   {ours:?}\n  {server} {theirs:?}\n", shown.join("\n"))
}

#[test]
fn replies_and_state_are_those_of_real_servers() {
    let seed = seed();
    let mut draw = Draw::new(seed);
    let mut catalogue = Catalogue::new();
    let mut trio = Trio::start(OPTIONS, true);
    let among: Vec<usize> = (0..catalogue.subjects.len()).collect();
    let mut found: Vec<(Vec<Line>, u8, Difference)> = Vec::new();
    let mut commands = 0;
    for round in 0..SEQUENCES_MAX {
        if !catalogue.subjects.iter().any(|subject| subject.needs_runs(RUNS)) || found.len() >= DIFFERENCES_MAX {
            break;
        }
        let protocol = 2 + (round % 2) as u8;
        let lines = sequence(&catalogue, &mut draw, &among, RUNS);
        let difference = trio.run(&catalogue, &lines, protocol, None);
        // What stands behind a difference has not been compared.
        let ran = difference.as_ref().map_or(lines.len(), |difference| difference.at + 1);
        lines[..ran].iter().for_each(|line| catalogue.count(line));
        commands += ran;
        if let Some(difference) = difference
            && !found.iter().any(|(_, _, known)| known.resembles(&difference))
        {
            let (short, difference) = trio.shorten(&catalogue, &lines, protocol, difference);
            println!("{}", report(&short, protocol, &difference));
            found.push((short, protocol, difference));
        }
    }
    let too_few = print_counts(&catalogue, commands);
    assert!(found.is_empty(), "{} differences, see above; repeat with CASWELL_SEED={seed}", found.len());
    assert!(too_few.is_empty(), "fewer than {RUNS} runs: {too_few:?}");
    let exceptions = exceptions::ALL.iter().zip(&trio.exceptions_used);
    // Some are needed rarely, so that this is no failure; one that no run needs should go.
    exceptions.filter(|(_, used)| !**used).for_each(|(exception, _)| println!("not needed in this run: {exception:?}"));
    assert!(exceptions::ALL.len() <= exceptions::MAX);
}

/// Prints how often each command and option ran, and gives those that ran too rarely.
fn print_counts(catalogue: &Catalogue, commands: usize) -> Vec<String> {
    println!("{commands} commands compared, on three servers each\n");
    println!("| command | runs | runs of each option |\n| --- | ---: | --- |");
    let mut too_few = Vec::new();
    for subject in &catalogue.subjects {
        let options = subject.options.iter().zip(&subject.option_runs);
        let shown: Vec<String> = options.clone().map(|(option, runs)| format!("{option}: {runs}")).collect();
        println!("| {} | {} | {} |", subject.full_name, subject.runs, shown.join(", "));
        if subject.runs < RUNS {
            too_few.push(subject.full_name.clone());
        }
        too_few.extend(
            options.filter(|(_, runs)| **runs < RUNS).map(|(option, _)| format!("{} {option}", subject.full_name)),
        );
    }
    too_few
}

#[test]
fn a_client_that_must_authenticate_sees_what_it_sees_elsewhere() {
    let seed = seed();
    let mut draw = Draw::new(seed);
    let mut catalogue = Catalogue::new();
    let mut trio = Trio::start(&[OPTIONS, &["--requirepass", "secret"]].concat(), false);
    let among = [
        "auth",
        "hello",
        "get",
        "set",
        "ping",
        "reset",
        "quit",
        "select",
        "client|id",
        "client|setname",
        "config|get",
        "command|count",
        "multi",
        "discard",
    ]
    .map(|name| catalogue.position(name));
    for round in 0..60 {
        let protocol = 2 + (round % 2) as u8;
        let mut values = Values::new();
        // Short, so that what happens before AUTH is seen often.
        let lines: Vec<Line> =
            (0..20).map(|_| catalogue.line(among[draw.below(among.len())], &mut draw, &mut values)).collect();
        let lines = comparable(&catalogue, &lines);
        if let Some(difference) = trio.run(&catalogue, &lines, protocol, None) {
            let (short, difference) = trio.shorten(&catalogue, &lines, protocol, difference);
            panic!("{}", report(&short, protocol, &difference));
        }
        lines.iter().for_each(|line| catalogue.count(line));
    }
}

#[test]
fn settings_change_replies_as_they_do_elsewhere() {
    let seed = seed();
    let mut draw = Draw::new(seed);
    let catalogue = Catalogue::new();
    let settings = ["--maxmemory-policy", "allkeys-lfu", "--list-max-listpack-size", "4", "--databases", "3"];
    let mut trio = Trio::start(&[OPTIONS, &settings].concat(), true);
    let with_keys: Vec<usize> = (0..catalogue.subjects.len())
        .filter(|index| {
            !catalogue.subjects[*index].row.keys.is_empty() || catalogue.subjects[*index].full_name == "select"
        })
        .collect();
    for round in 0..300 {
        let protocol = 2 + (round % 2) as u8;
        let lines = sequence(&catalogue, &mut draw, &with_keys, 1);
        if let Some(difference) = trio.run(&catalogue, &lines, protocol, None) {
            let (short, difference) = trio.shorten(&catalogue, &lines, protocol, difference);
            panic!("{}", report(&short, protocol, &difference));
        }
    }
}

#[test]
fn an_altered_reply_is_noticed() {
    let catalogue = Catalogue::new();
    let mut trio = Trio::start(OPTIONS, true);
    let line = |text: &str| Line {
        words: text.split(' ').map(|word| word.as_bytes().to_vec()).collect(),
        command: catalogue.position(text.split(' ').next().unwrap_or_default()),
        options: Vec::new(),
        by_other: false,
    };
    let lines = ["set k1 v", "get k1", "get k2", "incr k3", "rpush k4 a b", "lrange k4 0 -1", "incr k4"];
    let lines: Vec<Line> = lines.into_iter().chain(["multi", "incr k3", "ttl k1", "exec"]).map(line).collect();
    assert!(trio.run(&catalogue, &lines, 2, None).is_none(), "the sequence differs before anything was altered");
    let alterations: &[fn(&Line, Value) -> Value] = &[
        |_, reply| match reply {
            Value::Error(mut text) => {
                text.pop();
                Value::Error(text)
            }
            other => other,
        },
        |_, reply| if let Value::Integer(number) = reply { Value::Integer(number + 1) } else { reply },
        |_, reply| if reply == Value::NullBulk { Value::NullArray } else { reply },
        |_, reply| match reply {
            Value::Array(mut elements) if elements.len() > 1 => {
                elements.pop();
                Value::Array(elements)
            }
            other => other,
        },
        |_, reply| match reply {
            Value::Bulk(text) => Value::Simple(text),
            other => other,
        },
        // Within EXEC's reply too each command has its own rule: a TTL may differ a little, but not so much.
        |line, reply| match reply {
            Value::Array(mut elements) if line.show() == "exec" => {
                elements[1] = Value::Integer(1_000);
                Value::Array(elements)
            }
            other => other,
        },
    ];
    for (index, alteration) in alterations.iter().enumerate() {
        assert!(trio.run(&catalogue, &lines, 2, Some(*alteration)).is_some(), "alteration {index} went unnoticed");
    }
}
