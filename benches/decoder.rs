//! What does the decoder cost per command, by the size of its arguments and the depth of the pipeline?
//!
//!     cargo bench --bench decoder
//!
//! Nanoseconds per command: of whole batches, and of the same bytes in pieces of 1,448 bytes, copied to a buffer as a network delivers them.

mod support;

use caswell::resp::{Batch, DecodeLimits, Decoder};
use std::hint::black_box;
use support::{report, timed};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Commands decoded in one round.
const COMMANDS: usize = 20_000;
/// Payload of one TCP segment on an Ethernet.
const SEGMENT_BYTES: usize = 1_448;

fn main() {
    let limits = DecodeLimits { bulk_bytes_max: 512 * 1024 * 1024, authenticated: true, commands_max: usize::MAX };
    let value = |length: usize| "x".repeat(length);
    for (name, words) in [
        ("PING", vec!["PING".to_owned()]),
        ("GET of a 16-byte key", vec!["GET".into(), "key:000000000001".into()]),
        ("SET of 64 bytes", vec!["SET".into(), "key:000000000001".into(), value(64)]),
        ("SET of 16 KiB", vec!["SET".into(), "key:000000000001".into(), value(16 * 1024)]),
        (
            "MGET of 100 keys",
            std::iter::once("MGET".to_owned()).chain(vec!["key:000000000001".to_owned(); 100]).collect(),
        ),
    ] {
        for depth in [1usize, 16, 100] {
            let mut command = format!("*{}\r\n", words.len());
            words.iter().for_each(|word| command.push_str(&format!("${}\r\n{word}\r\n", word.len())));
            let mut input = command.repeat(depth).into_bytes();
            let rounds = (COMMANDS / depth).min(40_000_000 / input.len()).max(1);
            let (mut decoder, mut batch) = (Decoder::default(), Batch::default());
            report(&format!("{name}, {depth} at once"), || {
                let elapsed = timed(|| {
                    for _ in 0..rounds {
                        let decoded = decoder.decode(&mut input, &limits, &mut batch);
                        assert_eq!((decoded.consumed, batch.len()), (input.len(), depth));
                        black_box(&batch);
                    }
                });
                (rounds * depth, elapsed)
            });
            let mut buffer = Vec::with_capacity(input.len() + SEGMENT_BYTES);
            report(&format!("{name}, {depth} in pieces of {SEGMENT_BYTES} bytes"), || {
                let mut decoded = 0;
                let elapsed = timed(|| {
                    for _ in 0..rounds {
                        for piece in input.chunks(SEGMENT_BYTES) {
                            buffer.extend_from_slice(piece);
                            let consumed = decoder.decode(&mut buffer, &limits, &mut batch).consumed;
                            buffer.drain(..consumed);
                            decoded += batch.len();
                        }
                    }
                });
                assert_eq!(decoded, rounds * depth);
                (rounds * depth, elapsed)
            });
        }
    }
}
