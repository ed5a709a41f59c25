//! Where subscribers and publishers meet.

use std::collections::BTreeMap;
use std::sync::{PoisonError, RwLock};

use bytes::Bytes;

use super::encode_push;
use super::outbox::{Outbox, OutboxLimits, Placed};
use super::subscriptions::{Subscriptions, Topic};
use super::topics::{Topics, forget};
use crate::glob;
use crate::sync::{Arc, AtomicUsize, Ordering};

/// All subscriptions of one server.
#[derive(Default)]
pub struct Hub {
    channels: Topics,
    shard_channels: Topics,
    patterns: RwLock<BTreeMap<Bytes, Vec<Arc<Outbox>>>>,
    /// How many patterns there are, so that nobody asks for the lock while there are none.
    pattern_count: AtomicUsize,
}

/// What became of a message.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Published {
    /// Subscriptions that it fitted.
    pub receivers: usize,
    /// Subscribers that are being closed because of it: too much waits for them.
    pub overflows: u64,
}

impl Published {
    fn place(&mut self, message: &Bytes, outbox: &Outbox, limits: OutboxLimits) {
        self.receivers += 1;
        if outbox.push(message.clone(), limits) == Placed::Overflow {
            self.overflows += 1;
        }
    }
}

impl Hub {
    /// Subscribes a client, which must not have this subscription yet. Every message published after this returns reaches it.
    pub fn subscribe(&self, topic: Topic, name: &Bytes, outbox: &Arc<Outbox>) {
        match topic {
            Topic::Channel => self.channels.add(name, outbox),
            Topic::ShardChannel => self.shard_channels.add(name, outbox),
            Topic::Pattern => {
                let mut patterns = self.patterns.write().unwrap_or_else(PoisonError::into_inner);
                patterns.entry(name.clone()).or_default().push(outbox.clone());
                // Release: pairs with the Acquire in `publish`.
                self.pattern_count.store(patterns.len(), Ordering::Release);
            }
        }
    }

    /// Ends a subscription. No message reaches the client by it after this returns. O(subscribers of the name).
    pub fn unsubscribe(&self, topic: Topic, name: &[u8], outbox: &Arc<Outbox>) {
        match topic {
            Topic::Channel => self.channels.remove(name, outbox),
            Topic::ShardChannel => self.shard_channels.remove(name, outbox),
            Topic::Pattern => {
                let mut patterns = self.patterns.write().unwrap_or_else(PoisonError::into_inner);
                if let Some(listeners) = patterns.get_mut(name)
                    && forget(listeners, outbox)
                {
                    patterns.remove(name);
                }
                // Release: as in `subscribe`.
                self.pattern_count.store(patterns.len(), Ordering::Release);
            }
        }
    }

    /// Ends all subscriptions of a client.
    pub fn leave(&self, subscriptions: &mut Subscriptions, outbox: &Arc<Outbox>) {
        for topic in Topic::ALL {
            for name in subscriptions.of(topic) {
                self.unsubscribe(topic, name, outbox);
            }
        }
        *subscriptions = Subscriptions::default();
    }

    /// Places a message in the outboxes of all who listen to `channel`, by its name or by a pattern; `limits` are those of subscribers.
    /// O(subscribers of the channel + patterns).
    pub fn publish(&self, channel: &[u8], payload: &[u8], limits: OutboxLimits) -> Published {
        let mut published = Published::default();
        let stripe = self.channels.lock(channel);
        if let Some(listeners) = stripe.get(channel) {
            let message = encode_push(&[b"message", channel, payload]);
            listeners.iter().for_each(|outbox| published.place(&message, outbox, limits));
        }
        // Acquire: pairs with the Release in `subscribe`: whoever was told of a pattern before this message finds it counted.
        if self.pattern_count.load(Ordering::Acquire) > 0 {
            let patterns = self.patterns.read().unwrap_or_else(PoisonError::into_inner);
            for (pattern, listeners) in patterns.iter().filter(|(pattern, _)| glob::matches(pattern, channel, false)) {
                let message = encode_push(&[b"pmessage", pattern, channel, payload]);
                listeners.iter().for_each(|outbox| published.place(&message, outbox, limits));
            }
        }
        published
    }

    /// Places a message in the outboxes of all who listen to a shard channel. O(subscribers of the channel).
    pub fn publish_shard(&self, channel: &[u8], payload: &[u8], limits: OutboxLimits) -> Published {
        let mut published = Published::default();
        let stripe = self.shard_channels.lock(channel);
        if let Some(listeners) = stripe.get(channel) {
            let message = encode_push(&[b"smessage", channel, payload]);
            listeners.iter().for_each(|outbox| published.place(&message, outbox, limits));
        }
        published
    }

    /// How many names of a kind have subscribers.
    pub fn count(&self, topic: Topic) -> usize {
        match topic {
            Topic::Channel => self.channels.len(),
            Topic::ShardChannel => self.shard_channels.len(),
            // Relaxed: a figure that orders nothing.
            Topic::Pattern => self.pattern_count.load(Ordering::Relaxed),
        }
    }

    /// How many have subscribed to a channel or shard channel by its name.
    pub fn subscribers(&self, topic: Topic, name: &[u8]) -> usize {
        self.topics(topic).listeners(name)
    }

    /// The channels or shard channels that have subscribers.
    pub fn names(&self, topic: Topic) -> Vec<Bytes> {
        self.topics(topic).names()
    }

    fn topics(&self, topic: Topic) -> &Topics {
        if topic == Topic::ShardChannel { &self.shard_channels } else { &self.channels }
    }
}

#[cfg(all(test, not(caswell_loom)))]
mod tests {
    use super::*;
    use crate::pubsub::Receiver;
    use crate::resp::{Protocol, Reply};

    const LIMITS: OutboxLimits = OutboxLimits { hard: 0, soft: 0 };

    fn received(receiver: &mut Receiver) -> String {
        let mut reply = Reply::new(Protocol::Resp2);
        receiver.deliver(&mut reply, usize::MAX);
        String::from_utf8(reply.to_vec()).expect("text").replace("\r\n", "|")
    }

    #[test]
    fn messages_reach_those_who_listen_by_name_then_those_by_pattern() {
        let hub = Hub::default();
        let outbox = Arc::new(Outbox::default());
        let mut receiver = Receiver::new(outbox.clone());
        let mut subscriptions = Subscriptions::default();
        for (topic, name) in [
            (Topic::Channel, "news"),
            (Topic::Pattern, "n*"),
            (Topic::Pattern, "?ews"),
            (Topic::Pattern, "old*"),
            (Topic::ShardChannel, "shard"),
        ] {
            assert!(subscriptions.add(topic, name.into()));
            hub.subscribe(topic, &name.into(), &outbox);
        }
        assert_eq!(hub.publish(b"news", b"x", LIMITS), Published { receivers: 3, overflows: 0 });
        let message = "*3|$7|message|$4|news|$1|x|";
        let by_pattern = |pattern: &str| format!("*4|$8|pmessage|${}|{pattern}|$4|news|$1|x|", pattern.len());
        assert_eq!(received(&mut receiver), [message.into(), by_pattern("?ews"), by_pattern("n*")].concat());
        assert_eq!(hub.publish(b"shard", b"x", LIMITS).receivers, 0);
        assert_eq!(hub.publish_shard(b"shard", b"x", LIMITS).receivers, 1);
        assert_eq!(received(&mut receiver), "*3|$8|smessage|$5|shard|$1|x|");
        assert_eq!(Topic::ALL.map(|topic| hub.count(topic)), [1, 3, 1]);
        assert_eq!((subscriptions.told_count(Topic::Pattern), subscriptions.told_count(Topic::ShardChannel)), (4, 1));
        hub.leave(&mut subscriptions, &outbox);
        assert!(subscriptions.is_empty());
        assert_eq!(Topic::ALL.map(|topic| hub.count(topic)), [0; 3]);
        assert_eq!(hub.publish(b"news", b"x", LIMITS), Published::default());
        assert!(receiver.is_empty());
    }

    #[test]
    fn a_subscriber_too_far_behind_is_closed_and_others_are_served() {
        let hub = Hub::default();
        let (slow, quick) = (Arc::new(Outbox::default()), Arc::new(Outbox::default()));
        let mut receiver = Receiver::new(quick.clone());
        for outbox in [&slow, &quick] {
            hub.subscribe(Topic::Channel, &"c".into(), outbox);
        }
        let limits = OutboxLimits { hard: 1000, soft: 0 };
        let mut overflows = 0;
        for _ in 0..100 {
            let published = hub.publish(b"c", b"payload", limits);
            assert_eq!(published.receivers, 2);
            overflows += published.overflows;
            assert!(received(&mut receiver).ends_with("payload|"));
        }
        assert_eq!(overflows, 1);
        assert!(slow.is_closing() && !quick.is_closing());
    }
}
