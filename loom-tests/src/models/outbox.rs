//! Outboxes: messages from several workers to one client, which sleeps while there are none.

use crate::Model;
use caswell::pubsub::{Outbox, OutboxLimits, Placed, Receiver};
use caswell::resp::{Protocol, Reply};
use caswell::sync::{Arc, AtomicUsize, Ordering, thread};
use std::task::{Wake, Waker};

/// The models of this file.
pub const MODELS: &[Model] = &[
    Model {
        name: "outbox_wakes",
        promise: "a message is taken, or the task is woken after it last looked",
        preemption_bound: 3,
        faults: &["outbox_no_wake"],
        run: wakes,
    },
    Model {
        name: "outbox_keeps_order",
        promise: "nothing is lost, and what one thread pushed is taken in its order",
        preemption_bound: 3,
        faults: &["outbox_reversed"],
        run: keeps_order,
    },
];

const UNLIMITED: OutboxLimits = OutboxLimits { hard: 0, soft: 0 };

/// Counts how often the task was woken.
#[derive(Default)]
struct Wakes(AtomicUsize);

impl Wakes {
    fn count(&self) -> usize {
        // Relaxed: read after the join of who writes.
        self.0.load(Ordering::Relaxed)
    }
}

impl Wake for Wakes {
    fn wake(self: std::sync::Arc<Self>) {
        // Relaxed: a count.
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

fn push(outbox: &Arc<Outbox>, messages: &'static [&'static str]) -> thread::JoinHandle<()> {
    let outbox = Arc::clone(outbox);
    thread::spawn(move || {
        for message in messages {
            assert_eq!(outbox.push((*message).into(), UNLIMITED), Placed::Waiting);
        }
    })
}

fn take(receiver: &mut Receiver) -> String {
    let mut reply = Reply::new(Protocol::Resp3);
    receiver.deliver(&mut reply, usize::MAX);
    String::from_utf8(reply.to_vec()).expect("text")
}

fn wakes() {
    let outbox = Arc::new(Outbox::default());
    let wakes = std::sync::Arc::new(Wakes::default());
    outbox.set_waker(&Waker::from(wakes.clone()));
    let mut receiver = Receiver::new(Arc::clone(&outbox));
    let pusher = push(&outbox, &["a", "b"]);
    let told = take(&mut receiver);
    pusher.join().expect("the pusher ends");
    // The first message wakes, and the first after one that was taken.
    let expected = if told.is_empty() { 1 } else { 2 };
    assert!(receiver.is_empty() || wakes.count() == expected, "a message waits and the task sleeps");
}

fn keeps_order() {
    let outbox = Arc::new(Outbox::default());
    let mut receiver = Receiver::new(Arc::clone(&outbox));
    let pushers = [push(&outbox, &["a", "b"]), push(&outbox, &["c"])];
    let mut told = take(&mut receiver);
    pushers.into_iter().for_each(|pusher| pusher.join().expect("a pusher ends"));
    told += &take(&mut receiver);
    assert!(["abc", "acb", "cab"].contains(&&*told), "{told}");
}
