//! One client, as its own connection sees it: what it has chosen, and how its connection is to end.
//!
//! A session belongs to its connection's worker and is changed by plain assignments. What other workers may want to see of it (CLIENT
//! LIST) is copied to its [`ClientInfo`] by the methods here.

use crate::config::ClientClass;
use crate::pubsub::{Receiver, Subscriptions, Topic};
use crate::resp::Protocol;
use crate::server::ClientInfo;
use crate::sync::{Arc, Ordering};

/// Which replies the client wants (CLIENT REPLY).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum ReplyMode {
    /// All of them.
    #[default]
    On,
    /// None until further notice.
    Off,
    /// Not that of the next command.
    SkipNext,
    /// Not that of the present command.
    Skip,
}

/// Whether and how the connection ends. Later variants are more urgent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum Ending {
    /// It goes on.
    #[default]
    None,
    /// No further command is run, and the connection is closed when the replies have been sent.
    AfterReplies,
    /// The connection is closed at once.
    Now,
}

/// What one client has chosen, and its state.
pub struct Session {
    /// What other workers see of it.
    pub client: Arc<ClientInfo>,
    /// Whether it has shown who it is, or did not have to.
    pub authenticated: bool,
    /// Which replies it wants.
    pub replies: ReplyMode,
    /// Whether and how its connection ends.
    pub ending: Ending,
    /// What others have to tell it.
    pub messages: Receiver,
    subscriptions: Subscriptions,
    database: usize,
    protocol: Protocol,
}

impl Session {
    /// The session of a client that has just connected: database 0, RESP2, all replies.
    pub fn new(client: Arc<ClientInfo>, authenticated: bool) -> Self {
        Self {
            messages: Receiver::new(client.outbox.clone()),
            client,
            authenticated,
            replies: ReplyMode::On,
            ending: Ending::None,
            subscriptions: Subscriptions::default(),
            database: 0,
            protocol: Protocol::Resp2,
        }
    }

    /// The database it has selected.
    #[inline]
    pub fn database(&self) -> usize {
        self.database
    }

    /// Selects another database, which exists.
    pub fn select(&mut self, database: usize) {
        self.database = database;
        // Relaxed: a figure for CLIENT LIST, which orders nothing.
        self.client.database.store(database as u32, Ordering::Relaxed);
    }

    /// The protocol version it speaks.
    #[inline]
    pub fn protocol(&self) -> Protocol {
        self.protocol
    }

    /// Changes the protocol version.
    pub fn set_protocol(&mut self, protocol: Protocol) {
        self.protocol = protocol;
        let version = if protocol == Protocol::Resp3 { 3 } else { 2 };
        // Relaxed: a figure for CLIENT LIST, which orders nothing.
        self.client.protocol.store(version, Ordering::Relaxed);
    }

    /// What it has subscribed to.
    pub fn subscriptions(&self) -> &Subscriptions {
        &self.subscriptions
    }

    /// Changes what it has subscribed to.
    pub fn change_subscriptions<T>(&mut self, change: impl FnOnce(&mut Subscriptions) -> T) -> T {
        let result = change(&mut self.subscriptions);
        for (topic, figure) in Topic::ALL.into_iter().zip(&self.client.subscriptions) {
            // Relaxed: a figure for CLIENT LIST, which orders nothing.
            figure.store(self.subscriptions.count(topic), Ordering::Relaxed);
        }
        result
    }

    /// Whether it may do nothing but change its subscriptions: a subscriber that speaks RESP2 could not tell a message from a reply.
    #[inline]
    pub fn is_only_subscriber(&self) -> bool {
        self.protocol == Protocol::Resp2 && !self.subscriptions.is_empty()
    }

    /// The class whose limit of output applies to it.
    pub fn class(&self) -> ClientClass {
        if self.subscriptions.is_empty() { ClientClass::Normal } else { ClientClass::PubSub }
    }

    /// Ends the connection in this way, or in a more urgent one if that was wanted already.
    pub fn end(&mut self, ending: Ending) {
        self.ending = self.ending.max(ending);
    }
}
