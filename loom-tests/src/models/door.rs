//! Does the harness bite? Two increments through the door to atomics, in one step each or, planted, in two.

use crate::Model;
use caswell::sync::{Arc, AtomicU64, Ordering, planted, thread};

/// The models of this file.
pub const MODELS: &[Model] = &[Model {
    name: "door_two_increments",
    promise: "the harness itself: two threads' increments through `caswell::sync` both count",
    preemption_bound: 3,
    faults: &["door_lost_update"],
    run: two_increments,
}];

fn increment(count: &AtomicU64) {
    if planted("door_lost_update") {
        // Relaxed: the fault is the gap between load and store, whatever the orderings.
        let seen = count.load(Ordering::Relaxed);
        // Relaxed: as above.
        count.store(seen + 1, Ordering::Relaxed);
    } else {
        // Relaxed: only the sum is read, after the join.
        count.fetch_add(1, Ordering::Relaxed);
    }
}

fn two_increments() {
    let count = Arc::new(AtomicU64::new(0));
    let other = {
        let count = Arc::clone(&count);
        thread::spawn(move || increment(&count))
    };
    increment(&count);
    other.join().expect("the other thread ends");
    // Relaxed: the join made the other thread's increment visible.
    assert_eq!(count.load(Ordering::Relaxed), 2);
}
