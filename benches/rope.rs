//! Does a change of a long string cost more than one of a short string, in process? First as whole commands, then the ropes alone, without
//! table and commit.
//!
//!     cargo bench --bench rope

mod support;

use caswell::types::{NewRoot, Rope, StringEncoding, View};
use std::hint::black_box;
use std::time::Duration;
use support::commands::Client;
use support::{Value, report, timed};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const COPIED_BYTES_MAX: u64 = 128 * 1024;

/// Prints what a command costs on a long string, and how many times that is what it costs on a short one.
fn compare(name: &str, length: usize, short: f64, long: f64) {
    println!("   {name} on {} MB costs {:.1} times what it costs on 1 KB", length / 1_000_000, long / short);
}

fn whole_commands() {
    println!("-- whole commands");
    let mut figures: Vec<[f64; 3]> = Vec::new();
    for length in [1000, 100_000_000] {
        let mut client = Client::new();
        client.run(&[b"SET", b"key", &vec![b'x'; length]]);
        // What the following commands do not count: the first change makes a rope of it.
        client.run(&[b"APPEND", b"key", b"y"]);
        let mut digits = itoa::Buffer::new();
        let mut random = Random(1);
        let in_place = report(&format!("SETRANGE in one place, {length} bytes"), || {
            let at = digits.format(length / 2).as_bytes();
            (1000, timed(|| (0..1000).for_each(|_| client.run(&[b"SETRANGE", b"key", at, b"y"]))))
        });
        let at_random = report(&format!("SETRANGE at random, {length} bytes"), || {
            let elapsed = timed(|| {
                for _ in 0..1000 {
                    client.run(&[b"SETRANGE", b"key", digits.format(random.below(length)).as_bytes(), b"y"]);
                }
            });
            (1000, elapsed)
        });
        // On strings of their own, so that short ones stay short.
        let mut key = 0;
        let appending = report(&format!("APPEND, {length} bytes"), || {
            const APPENDS: usize = 20;
            let keys = if length > 1_000_000 { 1 } else { 50 };
            let mut elapsed = Duration::ZERO;
            for _ in 0..keys {
                key += 1;
                let name = if keys == 1 { "key".to_owned() } else { format!("key{key}") };
                if keys > 1 {
                    client.run(&[b"SET", name.as_bytes(), &vec![b'x'; length]]);
                }
                let appends = APPENDS * 50 / keys;
                elapsed += timed(|| (0..appends).for_each(|_| client.run(&[b"APPEND", name.as_bytes(), b"y"])));
            }
            (APPENDS * 50, elapsed)
        });
        figures.push([in_place, at_random, appending]);
        for (name, long) in ["SETRANGE in one place", "SETRANGE at random", "APPEND"].into_iter().zip(0..) {
            compare(name, length, figures[0][long], figures[figures.len() - 1][long]);
        }
    }
}

/// A small generator of random numbers.
struct Random(usize);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 24) % bound
    }
}

fn main() {
    whole_commands();
    println!("-- ropes alone");
    let mut short = vec![b'x'; 1000];
    let set_short = report("SETRANGE of 1 byte, 1 KB string", || {
        let elapsed = timed(|| {
            for number in 0..1000 {
                short[number % 1000] = number as u8;
                let root = NewRoot::bytes(&short, StringEncoding::Raw, None);
                black_box(&root);
            }
        });
        (1000, elapsed)
    });
    let append_short = report("APPEND of 1 byte, 1 KB string", || {
        let elapsed = timed(|| {
            for _ in 0..1000 {
                black_box(&NewRoot::concatenation(&[&short, b"y"], StringEncoding::Raw, None));
            }
        });
        (1000, elapsed)
    });
    let mut worst = 0;
    for megabytes in [1, 100] {
        let length = megabytes * 1_000_000;
        let mut value = Value::new(|attempt| NewRoot::rope(Rope::new(&[&vec![b'x'; length]], attempt), None));
        let mut random = Random(1);
        let mut offset = move || random.below(length);
        let set_random = report(&format!("SETRANGE of 1 byte at random, {megabytes} MB string"), || {
            let elapsed = timed(|| {
                for _ in 0..1000 {
                    let offset = offset();
                    worst = worst.max(value.change(|root, attempt| {
                        root.rope_mut().expect("a rope").write(offset, b"y", attempt);
                    }));
                }
            });
            (1000, elapsed)
        });
        let set = report(&format!("SETRANGE of 1 byte in one place, {megabytes} MB string"), || {
            let elapsed = timed(|| {
                for _ in 0..1000 {
                    worst = worst.max(value.change(|root, attempt| {
                        root.rope_mut().expect("a rope").write(length / 2, b"y", attempt);
                    }));
                }
            });
            (1000, elapsed)
        });
        let append = report(&format!("APPEND of 1 byte, {megabytes} MB string"), || {
            let elapsed = timed(|| {
                for _ in 0..1000 {
                    worst = worst.max(value.change(|root, attempt| {
                        root.rope_mut().expect("a rope").append(b"y", attempt);
                    }));
                }
            });
            (1000, elapsed)
        });
        println!(
            "   against 1 KB: SETRANGE at random {:.1} times, in one place {:.1}, APPEND {:.1}; at most {worst} bytes copied",
            set_random / set_short,
            set / set_short,
            append / append_short
        );
        let Some(View::Rope(rope)) = value.root().root().view() else { panic!("the value is a rope") };
        report(&format!("GETRANGE of 100 bytes at random, {megabytes} MB string"), || {
            let elapsed = timed(|| {
                for _ in 0..1000 {
                    let start = offset().min(length - 100);
                    black_box(rope.chunks(start..start + 100).map(<[u8]>::len).sum::<usize>());
                }
            });
            (1000, elapsed)
        });
        report(&format!("GET by reference, {megabytes} MB string, per MB"), || {
            let elapsed = timed(|| {
                for chunk in rope.shared_chunks(0..rope.len()) {
                    black_box(&chunk);
                }
            });
            (megabytes, elapsed)
        });
    }
    report("SETRANGE 500 MB behind the end, per MB", || {
        let mut value = Value::new(|attempt| NewRoot::rope(Rope::new(&[b"x"], attempt), None));
        let elapsed = timed(|| {
            value.change(|root, attempt| root.rope_mut().expect("a rope").write(500_000_000, b"y", attempt));
        });
        (500, elapsed)
    });
    assert!(worst <= COPIED_BYTES_MAX, "{worst} bytes copied in one operation");
}
