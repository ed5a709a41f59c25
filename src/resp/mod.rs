//! The wire format: RESP2 and RESP3, as <https://redis.io/docs/latest/develop/reference/protocol-spec/> describes it.

pub mod decode;
mod reply;

pub use decode::{Batch, DecodeLimits, Decoded, Decoder, ProtocolError, Span};
pub use reply::{Mark, Protocol, Reply, Segment};
