//! One client, as its own connection sees it: what it has chosen, and how its connection is to end.
//!
//! A session belongs to its connection's worker and is changed by plain assignments. What other workers may want to see of it (CLIENT
//! LIST) is copied to its [`ClientInfo`] by the methods here.

use crate::config::ClientClass;
use crate::pubsub::{Receiver, Subscriptions, Topic};
mod multi;

pub use multi::{Queue, QueueIsFull, Watched};

use crate::resp::Protocol;
use crate::server::ClientInfo;
use crate::sync::{Arc, Ordering};
use crate::txn::{Otherwise, Wait};
use std::time::{Duration, Instant};

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

/// A client whose command waits; it runs no other until that has come to an end.
#[derive(Clone, Copy, Debug)]
pub struct Blocked {
    /// When it gives up; never where `None`.
    pub deadline: Option<Instant>,
    /// What it answers then.
    pub otherwise: Otherwise,
    /// Whether its reply is wanted.
    pub is_wanted: bool,
}

/// Whether CLIENT CACHING concerns a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Caching {
    /// No.
    #[default]
    No,
    /// The next one.
    Next,
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
    /// Whether it is told of keys that change.
    pub is_tracking: bool,
    /// Whether its next command is to be remembered, or not to be, against its tracking's rule.
    pub caching: Caching,
    /// What others have to tell it.
    pub messages: Receiver,
    subscriptions: Subscriptions,
    /// The commands queued since MULTI.
    pub multi: Option<Queue>,
    /// The keys that it watches.
    pub watched: Vec<Watched>,
    /// Its command that waits.
    pub blocked: Option<Blocked>,
    /// When the pause ends that keeps its next command from running (CLIENT PAUSE).
    pub paused_until: Option<Instant>,
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
            is_tracking: false,
            caching: Caching::No,
            subscriptions: Subscriptions::default(),
            multi: None,
            watched: Vec::new(),
            blocked: None,
            paused_until: None,
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
        self.client.class()
    }

    /// Shows how much it has queued and watches, to CLIENT LIST and INFO. To be called after a change.
    pub fn note_transaction(&self) {
        let queued = self.multi.as_ref().map_or(-1, |queue| queue.len() as i64);
        // Relaxed, both: figures that order nothing.
        self.client.queued.store(queued, Ordering::Relaxed);
        self.client.watched.store(self.watched.len(), Ordering::Relaxed);
    }

    /// Whether it may run another command now.
    #[inline]
    pub fn is_ready(&self) -> bool {
        self.ending == Ending::None && self.blocked.is_none() && self.paused_until.is_none()
    }

    /// Notes that the client's command waits, and whether its reply is wanted.
    pub fn block(&mut self, wait: &Wait, is_wanted: bool) {
        let deadline =
            wait.timeout_ms.and_then(|timeout_ms| Instant::now().checked_add(Duration::from_millis(timeout_ms)));
        self.blocked = Some(Blocked { deadline, otherwise: wait.otherwise, is_wanted });
        // Relaxed: a figure for CLIENT LIST and INFO, which orders nothing.
        self.client.is_blocked.store(true, Ordering::Relaxed);
    }

    /// Notes that the client's command has come to an end.
    pub fn unblock(&mut self) {
        self.blocked = None;
        // Relaxed: as in `block`.
        self.client.is_blocked.store(false, Ordering::Relaxed);
    }

    /// Ends the connection in this way, or in a more urgent one if that was wanted already.
    pub fn end(&mut self, ending: Ending) {
        self.ending = self.ending.max(ending);
    }
}
