//! Does the decoder find the same commands however its input is split, in memory bounded by that input?

use caswell::resp::{Batch, DecodeLimits, Decoder, ProtocolError};

/// What a stream of bytes means.
#[derive(Debug, PartialEq, Eq)]
struct Outcome {
    commands: Vec<Vec<Vec<u8>>>,
    error: Option<ProtocolError>,
}

/// The first byte chooses the limits, the second how the rest is cut into pieces.
pub fn run(bytes: &[u8]) {
    let [choice, cut, stream @ ..] = bytes else { return };
    let limits = |commands_max| DecodeLimits {
        bulk_bytes_max: if choice & 1 == 0 { 64 } else { 512 * 1024 * 1024 },
        authenticated: choice & 2 == 0,
        commands_max,
    };
    let whole = decode(stream, &limits(usize::MAX), stream.len().max(1));
    let pieces = decode(stream, &limits(1 + usize::from(choice >> 4)), 1 + usize::from(*cut) % 32);
    assert_eq!(whole, pieces, "the split changed the result");
}

/// Feeds the stream in pieces of up to `piece` bytes, as a connection does.
fn decode(stream: &[u8], limits: &DecodeLimits, piece: usize) -> Outcome {
    let mut decoder = Decoder::default();
    let mut batch = Batch::default();
    let mut input = Vec::new();
    let mut outcome = Outcome { commands: Vec::new(), error: None };
    for bytes in stream.chunks(piece) {
        input.extend_from_slice(bytes);
        loop {
            let decoded = decoder.decode(&mut input, limits, &mut batch);
            assert!(decoded.consumed <= input.len());
            // Every argument takes bytes of the input, and so the memory for them is bounded by it.
            assert!(batch.all_arguments().len() <= input.len());
            for command in 0..batch.len() {
                let arguments: Vec<_> = batch.arguments(command).iter().map(|span| span.of(&input).to_vec()).collect();
                assert!(!arguments.is_empty(), "a command has a name");
                outcome.commands.push(arguments);
            }
            input.drain(..decoded.consumed);
            outcome.error = decoded.error;
            if outcome.error.is_some() {
                return outcome;
            }
            // It stops for want of bytes, or because it has found as many commands as it may; only then is there more in what it has.
            if decoded.consumed == 0 {
                break;
            }
        }
        assert!(decoder.expected() <= input.len() + limits.bulk_bytes_max + 2);
    }
    outcome
}
