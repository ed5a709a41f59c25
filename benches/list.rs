//! What does one list command cost in process? First as whole commands, then the lists alone, without table and commit, but with a new root
//! for each change.
//!
//!     cargo bench --bench list

mod support;

use caswell::types::{Attempt, List, NewRoot, Side, View};
use std::hint::black_box;
use support::commands::Client;
use support::{Value, report, timed};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const ELEMENT: &[u8] = &[b'x'; 64];

fn list_of(length: usize) -> Value {
    Value::new(|attempt| {
        let mut list = List::new();
        for _ in 0..length {
            list.push(Side::Back, ELEMENT, attempt);
        }
        NewRoot::list(list, None)
    })
}

fn list(value: &Value) -> &List {
    let Some(View::List(list)) = value.root().root().view() else { panic!("the value is a list") };
    list
}

fn push(value: &mut Value, side: Side) {
    value.change(|root, attempt| root.list_mut().expect("a list").push(side, ELEMENT, attempt));
}

fn pop(value: &mut Value, side: Side) {
    value.change(|root, attempt| {
        let length = root.list_mut().expect("a list").pop(side, attempt, |element| element.len());
        assert_eq!(black_box(length), Some(ELEMENT.len()));
    });
}

fn whole_commands() {
    println!("-- whole commands");
    for length in [10, 1000, 1_000_000] {
        let mut client = Client::new();
        (0..length).for_each(|_| client.run(&[b"RPUSH", b"key", ELEMENT]));
        let mut pops = Vec::new();
        report(&format!("LPUSH, {length} elements and more"), || {
            let elapsed = timed(|| (0..1000).for_each(|_| client.run(&[b"LPUSH", b"key", ELEMENT])));
            pops.push((1000, timed(|| (0..1000).for_each(|_| client.run(&[b"LPOP", b"key"])))));
            (1000, elapsed)
        });
        let mut pops = pops.into_iter();
        report(&format!("LPOP, {length} elements and more"), || pops.next().expect("as many samples"));
        report(&format!("LRANGE 0 99, {length} elements"), || {
            (1000, timed(|| (0..1000).for_each(|_| client.run(&[b"LRANGE", b"key", b"0", b"99"]))))
        });
    }
}

fn main() {
    whole_commands();
    println!("-- lists alone");
    let mut value = list_of(10);
    report("a new root for a list, without a change", || {
        let change = |_| _ = value.change(|root, _| _ = black_box(root));
        (1000, timed(|| (0..1000).for_each(change)))
    });
    for length in [10, 1000, 1_000_000] {
        println!("-- {length} elements of {} bytes", ELEMENT.len());
        // Many short lists, so that each grows by a little only and the clock is read seldom.
        let mut values: Vec<_> = (0..(10_000 / length).clamp(1, 200)).map(|_| list_of(length)).collect();
        let batch = (length / 2).min(1000);
        let count = batch * values.len();
        for (push_side, pop_side) in
            [(Side::Front, Side::Front), (Side::Back, Side::Back), (Side::Back, Side::Front), (Side::Front, Side::Back)]
        {
            let name = if push_side == pop_side { "stack" } else { "queue" };
            let mut pops = Vec::new();
            report(&format!("{name}: push at the {push_side:?}, {batch} in a row"), || {
                let each = |values: &mut Vec<Value>, work: fn(&mut Value, Side), side| {
                    timed(|| values.iter_mut().for_each(|value| (0..batch).for_each(|_| work(value, side))))
                };
                let pushing = each(&mut values, push, push_side);
                pops.push((count, each(&mut values, pop, pop_side)));
                (count, pushing)
            });
            let mut pops = pops.into_iter();
            report(&format!("{name}: pop at the {pop_side:?}, {batch} in a row"), || {
                pops.next().expect("as many samples")
            });
            let value = &mut values[0];
            report(&format!("{name}: push at the {push_side:?} and pop in turn, each"), || {
                (4000, timed(|| (0..2000).for_each(|_| (push(value, push_side), pop(value, pop_side)).1)))
            });
        }
        let mut value = values.remove(0);
        let mut random = 1_usize;
        let mut index = move || {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (random >> 24) % length
        };
        report("LINDEX of a random index", || {
            (1000, timed(|| (0..1000).for_each(|_| assert!(black_box(list(&value).get(index())).is_some()))))
        });
        report("LSET of a random index", || {
            let elapsed = timed(|| {
                for _ in 0..1000 {
                    let index = index();
                    value.change(|root, attempt| root.list_mut().expect("a list").set(index, ELEMENT, attempt));
                }
            });
            (1000, elapsed)
        });
        let mut out = Vec::with_capacity(1 << 20);
        report("LRANGE of the first 100, copied to a buffer", || {
            let elapsed = timed(|| {
                for _ in 0..1000 {
                    out.clear();
                    list(&value).iter_from(0).take(100).for_each(|element| out.extend_from_slice(element));
                    black_box(&out);
                }
            });
            (1000, elapsed)
        });
        report("LRANGE of the first 100, lengths only", || {
            let elapsed = timed(|| {
                for _ in 0..1000 {
                    black_box(list(&value).iter_from(0).take(100).map(<[u8]>::len).sum::<usize>());
                }
            });
            (1000, elapsed)
        });
    }
    memory("elements of 64 bytes", |_| ELEMENT.to_vec());
    memory("numbers of 6 digits", |number| (100_000 + number % 900_000).to_string().into_bytes());
}

/// Bytes per element, of all nodes' allocations, at a million.
fn memory(name: &str, element: impl Fn(usize) -> Vec<u8>) {
    let value = Value::new(|attempt: &mut Attempt| {
        let mut list = List::new();
        (0..1_000_000).for_each(|number| list.push(Side::Back, &element(number), attempt));
        NewRoot::list(list, None)
    });
    let mut bytes = 0;
    // SAFETY: the value's nodes are alive, and nothing is freed.
    unsafe { list(&value).for_each_node(&mut |node| bytes += node.bytes()) };
    println!("{:<58} {:>9.2} bytes per element", format!("a million {name}"), bytes as f64 / 1e6);
}
