//! The search for circles judged by histories made by hand: one for each anomaly, and sound ones.

use crate::cycles::{Anomaly, check};
use crate::transactions::{Done, End, Transaction};

/// Transactions from texts such as `1-4 x+1 x:1,2 r=3 r?3 r?`: called and answered, then an append, a list seen, a register written, seen with a value, seen
/// without one. `x+1@3` was answered with the length 3. An answer at 0 never came; `!` before the times stands for an abort.
fn history(lines: &[&str]) -> Vec<Transaction> {
    lines.iter().enumerate().map(|(client, line)| transaction(client, line)).collect()
}

fn transaction(client: usize, line: &str) -> Transaction {
    let (times, parts) = line.split_once(' ').expect("times and parts");
    let (aborted, times) = times.strip_prefix('!').map_or((false, times), |times| (true, times));
    let (called, returned) = times.split_once('-').expect("two times");
    let returned: u64 = returned.parse().expect("a time");
    Transaction {
        parts: parts.split(' ').map(part).collect(),
        end: if aborted {
            End::Aborted
        } else if returned == 0 {
            End::Unknown
        } else {
            End::Committed
        },
        called: called.parse().expect("a time"),
        returned: Some(returned).filter(|returned| *returned > 0),
        connection: (client, 0),
        note: line.to_owned(),
    }
}

fn part(text: &str) -> Done {
    let at = text.find(['+', ':', '=', '?']).expect("a part");
    let (key, mark, rest) = (text[..at].to_owned(), &text[at..=at], &text[at + 1..]);
    let number = |text: &str| text.parse().expect("a number");
    match mark {
        "+" => match rest.split_once('@') {
            Some((value, length)) => Done::Appended(key, number(value), Some(number(length) as i64)),
            None => Done::Appended(key, number(rest), None),
        },
        ":" => Done::Listed(key, rest.split(',').filter(|text| !text.is_empty()).map(number).collect()),
        "=" => Done::Wrote(key, number(rest)),
        _ => Done::Saw(key, Some(rest).filter(|text| !text.is_empty()).map(number)),
    }
}

fn found(lines: &[&str]) -> Option<(Anomaly, bool)> {
    check(&history(lines)).err().map(|finding| (finding.anomaly, finding.needs_outer_order))
}

#[test]
fn sound_histories_pass() {
    for sound in [
        &["1-2 x:"][..],
        &["1-2 x+1@1", "3-4 x+2@2", "5-6 x:1,2"],
        // Overlapping, so in either order.
        &["1-5 x+1", "1-5 x+2", "6-7 x:2,1"],
        // Reads of two lists at one instant, between two writers of both.
        &["1-2 x+1 y+1", "3-9 x+2 y+2", "4-5 x:1 y:1", "6-7 x:1,2 y:1,2"],
        // A transaction sees its own appends.
        &["1-9 x:1 x+2 x:1,2 x+3 x:1,2,3", "1-2 x+1", "10-11 x:1,2,3"],
        // Aborted and unseen; unanswered and seen late, or never.
        &["!1-2 x+1", "3-4 x:"],
        &["1-0 x+1", "2-3 x:", "4-5 x:1"],
        &["1-0 x+1", "2-3 x:", "4-5 x:"],
        // Registers.
        &["1-2 a? b?", "3-4 a=1 b=1", "5-9 a=2 b=2", "6-7 a?1 b?1", "8-9 a?2 b?2"],
        &["1-9 a=1 b=1", "1-9 a=2 b=2", "10-11 a?2 b?2"],
        &["1-9 a=1 a?1 a=2", "10-11 a?2"],
    ] {
        assert_eq!(found(sound), None, "{sound:?}");
    }
}

#[test]
fn circles_of_writes_are_g0() {
    let lines = ["1-9 x+1 y+1", "1-9 x+2 y+2", "10-11 x:1,2", "10-11 y:2,1"];
    assert_eq!(found(&lines), Some((Anomaly::G0, false)));
    // The order of the list against the order of time.
    assert_eq!(found(&["1-2 x+1", "3-4 x+2", "5-6 x:2,1"]), Some((Anomaly::G0, true)));
}

#[test]
fn reads_of_aborted_writes_are_g1a() {
    assert_eq!(found(&["!1-2 x+1", "3-4 x:1"]), Some((Anomaly::G1a, false)));
    assert_eq!(found(&["!1-2 a=1", "1-4 a?1"]), Some((Anomaly::G1a, false)));
}

#[test]
fn reads_between_two_writes_of_a_transaction_are_g1b() {
    assert_eq!(found(&["1-9 x+1 x+2", "2-3 x:1", "10-11 x:1,2"]), Some((Anomaly::G1b, false)));
    assert_eq!(found(&["1-9 a=1 a=2", "2-3 a?1"]), Some((Anomaly::G1b, false)));
}

#[test]
fn circles_of_reads_and_writes_are_g1c() {
    assert_eq!(found(&["1-9 x+1 y:1", "1-9 y+1 x:1"]), Some((Anomaly::G1c, false)));
    assert_eq!(found(&["1-9 a=1 b?1", "1-9 b=1 a?1"]), Some((Anomaly::G1c, false)));
    // It saw what was only asked for later.
    assert_eq!(found(&["1-2 x:1", "3-4 x+1"]), Some((Anomaly::G1c, true)));
}

#[test]
fn circles_with_one_missed_write_are_g_single() {
    // Half of another transaction.
    assert_eq!(found(&["1-9 x+1 y+1", "1-9 x:1 y:", "10-11 x:1 y:1"]), Some((Anomaly::GSingle, false)));
    // Two registers, torn: whose value is the older one follows from the order of time.
    let torn = ["1-2 a=1 b=1", "3-9 a=2 b=2", "4-8 a?2 b?1"];
    assert_eq!(found(&torn).map(|found| found.0), Some(Anomaly::GSingle));
    // A stale read.
    assert_eq!(found(&["1-2 x+1", "3-4 x:", "5-6 x:1"]), Some((Anomaly::GSingle, true)));
    assert_eq!(found(&["1-2 a=1", "3-4 a=2", "5-6 a?1"]).map(|found| found.0), Some(Anomaly::GSingle));
    // A lost append: nobody ever sees it.
    assert_eq!(found(&["1-2 x+1", "1-2 x+2", "3-4 x:2"]), Some((Anomaly::GSingle, true)));
}

#[test]
fn circles_with_several_missed_writes_are_g2() {
    // Write skew.
    let lines = ["1-9 x: y+1", "1-9 y: x+1", "10-11 x:1 y:1"];
    assert_eq!(found(&lines), Some((Anomaly::G2, false)));
    assert_eq!(found(&["1-9 a? b=1", "1-9 b? a=1"]), Some((Anomaly::G2, false)));
    // Two readers that disagree on the order of two independent writers.
    let fork = ["1-9 x+1", "1-9 y+1", "1-9 x:1 y:", "1-9 x: y:1"];
    assert_eq!(found(&fork), Some((Anomaly::G2, false)));
}

#[test]
fn transactions_that_contradict_themselves_are_found() {
    for lines in [&["1-9 x+1 x:"][..], &["1-2 x+7", "1-9 x: x:7"], &["1-9 a=1 a?"], &["1-2 a=7", "1-9 a? a?7"]] {
        assert_eq!(found(lines), Some((Anomaly::Internal, false)), "{lines:?}");
    }
}

#[test]
fn values_without_a_source_are_found() {
    for lines in [
        &["1-2 x:7"][..],
        &["1-2 a?7"],
        // Twice, in two orders, and at another place than the writer was told.
        &["1-2 x+1", "3-4 x:1,1"],
        &["1-9 x+1", "1-9 x+2", "1-9 x:1,2", "1-9 x:2,1"],
        &["1-9 x+1@1", "1-9 x+2@1", "10-11 x:1,2"],
    ] {
        assert_eq!(found(lines), Some((Anomaly::Incoherent, false)), "{lines:?}");
    }
}

#[test]
fn one_connection_is_served_in_order() {
    let mut lines = history(&["1-9 x+1", "1-9 x+2", "10-11 x:2,1"]);
    assert!(check(&lines).is_ok());
    lines[1].connection = lines[0].connection;
    assert!(check(&lines).expect_err("a circle").needs_outer_order);
}

#[test]
fn the_smallest_circle_is_told() {
    let mut lines = vec!["1-9 x+1 y+1".to_owned(), "1-9 x:1 y:".to_owned()];
    lines.extend((0..30).map(|at| format!("{}-{} z+{at}", 10 + 2 * at, 11 + 2 * at)));
    lines.push("100-101 x:1 y:1".to_owned());
    let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
    let finding = check(&history(&lines)).expect_err("a circle");
    assert!(finding.story.starts_with("GSingle: 2 transactions"), "{}", finding.story);
}
