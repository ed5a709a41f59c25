//! Publish and subscribe: who listens to what, and how messages come to clients of other workers.
//!
//! | file | what it holds |
//! | --- | --- |
//! | `outbox` | what other workers have to tell one client: a bounded queue that wakes the client's task |
//! | `topics` | from names to the outboxes of those who listen, in stripes with a lock each |
//! | `hub` | subscribing and publishing: channels, patterns, shard channels |
//! | `monitors` | MONITOR: clients that are shown every command |
//! | `subscriptions` | what one client has subscribed to |
//!
//! # Order
//!
//! The publishing worker itself places a message in the outbox of every subscriber, before it answers PUBLISH. So a message that is published
//! after another was answered comes after it in every outbox, whatever their channels are. While it does so it holds the lock of the
//! channel's stripe, so that all subscribers of a channel, exact or by pattern, see its messages in the same order even when several workers
//! publish at once; the same lock guards the list of subscribers, so that a message either precedes a subscription for everybody or follows it.
//! The lock is held for one push per subscriber and never across a wait. It is not on the way of commands on data: those meet it only where
//! they have an event to publish, which takes that `notify-keyspace-events` asks for it.
//!
//! # Cost
//!
//! A message is encoded once, for both protocols (they differ in one byte), and shared by count. To place it in an outbox takes one addition
//! and one compare-and-swap, and the subscriber's task is woken once, by the first message that it has not taken yet.

mod hub;
mod monitors;
pub mod outbox;
mod subscriptions;
mod topics;

pub use hub::{Hub, Published};
pub use monitors::{Monitors, monitor_line};
pub use outbox::{Outbox, OutboxLimits, Placed, Receiver};
pub use subscriptions::{Subscriptions, Topic};

use bytes::Bytes;

use crate::resp::{Protocol, Reply};

/// A push of these strings, as [`Reply::pushed`] takes it for either protocol.
pub fn encode_push(parts: &[&[u8]]) -> Bytes {
    let mut reply = Reply::new(Protocol::Resp3);
    reply.push(parts.len());
    parts.iter().for_each(|part| reply.bulk(part));
    reply.take().0.into()
}
