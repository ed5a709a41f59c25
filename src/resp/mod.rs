//! The wire format: RESP2 and RESP3, as <https://redis.io/docs/latest/develop/reference/protocol-spec/> describes it.

mod reply;

pub use reply::{Mark, Protocol, Reply, Segment};
