//! Lists as deques, and long strings: room that is claimed, windows that others still see, counts that replies hold.

use super::store::{run, store, worker};
use crate::Model;
use caswell::store::{Store, Worker};
use caswell::sync::{Arc, thread};
use caswell::txn::Transaction;
use caswell::types::{List, NewRoot, Rope, Side, View};

/// The models of this file.
pub const MODELS: &[Model] = &[
    Model {
        name: "deque_two_pushers_one_end",
        promise: "rule 4: two pushes at one end never write the same slot, and both stay",
        preemption_bound: 2,
        faults: &["list_push_unclaimed", "commit_blind_cas"],
        run: two_pushers_one_end,
    },
    Model {
        name: "deque_pushers_at_both_ends",
        promise: "pushes at both ends both stay",
        preemption_bound: 2,
        faults: &["commit_blind_cas"],
        run: pushers_at_both_ends,
    },
    Model {
        name: "deque_push_against_pop",
        promise: "a push and a pop at one end neither lose nor double an element",
        preemption_bound: 2,
        faults: &["commit_blind_cas"],
        run: push_against_pop,
    },
    Model {
        name: "deque_reader_against_pop_and_push",
        promise: "rule 4: a push after a pop does not write what a reader of the older list still sees",
        preemption_bound: 2,
        faults: &["list_push_unclaimed"],
        run: reader_against_pop_and_push,
    },
    Model {
        name: "rope_two_appenders",
        promise: "rule 4: two appends never write the same bytes, and both stay",
        preemption_bound: 2,
        faults: &["rope_append_unclaimed"],
        run: two_appenders,
    },
    Model {
        name: "rope_reply_keeps_its_bytes",
        promise: "rule 3: a reply made inside a transaction does not show what the transaction writes later",
        preemption_bound: 2,
        faults: &["rope_write_shared"],
        run: reply_keeps_its_bytes,
    },
];

/// Runs `body` on another thread of the model.
fn spawn(store: &Arc<Store>, body: impl FnOnce(&Worker) + 'static) -> thread::JoinHandle<()> {
    let store = Arc::clone(store);
    thread::spawn(move || body(&worker(&store)))
}

/// LPUSH or RPUSH inside a transaction.
fn push_in(tx: &mut Transaction<'_>, side: Side, element: &[u8]) {
    let key = tx.open(b"k");
    if let Some((root, attempt)) = tx.edit(key) {
        root.list_mut().expect("the key holds a list").push(side, element, attempt);
        return;
    }
    let mut list = List::new();
    list.push(side, element, tx.attempt());
    tx.set(key, NewRoot::list(list, None));
}

fn push(worker: &Worker, side: Side, element: &[u8]) {
    run(worker, |tx| push_in(tx, side, element));
}

/// LPOP or RPOP, as one transaction.
fn pop(worker: &Worker, side: Side) -> Option<Vec<u8>> {
    run(worker, |tx| {
        let key = tx.open(b"k");
        let (root, attempt) = tx.edit(key)?;
        let list = root.list_mut().expect("the key holds a list");
        let element = list.pop(side, attempt, <[u8]>::to_vec);
        if list.is_empty() {
            tx.delete(key);
        }
        element
    })
}

/// LRANGE 0 -1, as one transaction; elements of one letter, side by side.
fn elements(worker: &Worker) -> String {
    run(worker, |tx| {
        let key = tx.open(b"k");
        let Some(View::List(list)) = tx.root(key).and_then(|root| root.view()) else { return String::new() };
        list.iter(0, Side::Back).map(|element| char::from(element[0])).collect()
    })
}

fn two_pushers_one_end() {
    let store = store();
    let main = worker(&store);
    push(&main, Side::Back, b"a");
    let other = spawn(&store, |worker| push(worker, Side::Back, b"b"));
    push(&main, Side::Back, b"c");
    other.join().expect("the other thread ends");
    let all = elements(&main);
    assert!(all == "abc" || all == "acb", "{all}");
}

fn pushers_at_both_ends() {
    let store = store();
    let main = worker(&store);
    push(&main, Side::Front, b"a");
    let other = spawn(&store, |worker| push(worker, Side::Front, b"b"));
    push(&main, Side::Back, b"c");
    other.join().expect("the other thread ends");
    assert_eq!(elements(&main), "bac");
}

fn push_against_pop() {
    let store = store();
    let main = worker(&store);
    push(&main, Side::Back, b"a");
    let other = spawn(&store, |worker| push(worker, Side::Back, b"b"));
    let popped = pop(&main, Side::Back);
    other.join().expect("the other thread ends");
    match popped.as_deref() {
        Some(b"a") => assert_eq!(elements(&main), "b"),
        Some(b"b") => assert_eq!(elements(&main), "a"),
        other => panic!("the list was never empty, yet the pop gave {other:?}"),
    }
}

fn reader_against_pop_and_push() {
    let store = store();
    let main = worker(&store);
    run(&main, |tx| [b"a", b"b"].into_iter().for_each(|element| push_in(tx, Side::Back, element)));
    let other = spawn(&store, |worker| {
        assert_eq!(pop(worker, Side::Back).as_deref(), Some(&b"b"[..]));
        push(worker, Side::Back, b"c");
    });
    let seen = elements(&main);
    assert!(["ab", "a", "ac"].contains(&seen.as_str()), "{seen}");
    other.join().expect("the other thread ends");
    assert_eq!(elements(&main), "ac");
}

fn make_rope(worker: &Worker) {
    run(worker, |tx| {
        let key = tx.open(b"k");
        let rope = Rope::new(&[b"a"], tx.attempt());
        tx.set(key, NewRoot::rope(rope, None));
    });
}

fn edit_rope(worker: &Worker, change: impl Fn(&mut Rope, &mut caswell::types::Attempt)) {
    run(worker, |tx| {
        let key = tx.open(b"k");
        let (root, attempt) = tx.edit(key).expect("the key has a value");
        change(root.rope_mut().expect("the key holds a rope"), attempt);
    });
}

fn bytes(worker: &Worker) -> Vec<u8> {
    run(worker, |tx| {
        let key = tx.open(b"k");
        let Some(View::Rope(rope)) = tx.root(key).and_then(|root| root.view()) else { return Vec::new() };
        rope.chunks(0..rope.len()).flatten().copied().collect()
    })
}

fn two_appenders() {
    let store = store();
    let main = worker(&store);
    make_rope(&main);
    let other = spawn(&store, |worker| edit_rope(worker, |rope, attempt| rope.append(b"b", attempt)));
    edit_rope(&main, |rope, attempt| rope.append(b"c", attempt));
    other.join().expect("the other thread ends");
    let all = bytes(&main);
    assert!(all == b"abc" || all == b"acb", "{all:?}");
}

fn reply_keeps_its_bytes() {
    let store = store();
    let main = worker(&store);
    make_rope(&main);
    edit_rope(&main, |rope, attempt| {
        rope.write(0, b"b", attempt);
        let reply: Vec<_> = rope.shared_chunks(0..rope.len()).collect();
        let other = thread::spawn(move || assert_eq!(&reply[0][..], b"b"));
        rope.write(0, b"c", attempt);
        other.join().expect("the other thread ends");
    });
    assert_eq!(bytes(&main), b"c");
}
