//! Does a change of a long string cost more than one of a short string, in process, without network, table and commit?
//!
//!     cargo bench --bench rope

mod support;

use caswell::types::{NewRoot, Rope, StringEncoding, View};
use std::hint::black_box;
use support::{Value, report, timed};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const COPIED_BYTES_MAX: u64 = 128 * 1024;

fn main() {
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
        let mut random = 1_usize;
        let mut offset = move || {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (random >> 24) % length
        };
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
