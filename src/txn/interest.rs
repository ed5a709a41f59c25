//! Who wants to hear of a key: clients that wait for it, or watch it while it has no value.
//!
//! Interest is data like any other, in the store's internal database: one list of [`Interest`]s per key, in the order of arrival. A key with such a
//! list has the *hooked* bit in its word (`store/word.rs`), and the two change together, in one commit. So nothing can be missed: a writer whose
//! attempt read the word before the bit was set fails its commit, and one that reads it afterwards finds the list in its own transaction
//! (rule 22). A hooked entry is not unlinked, so a key that came and went leaves its tombstone's stamp to whoever watches it (rule 24).

use super::transaction::{KeyId, Transaction};
use crate::sync::planted;
use crate::types::{List, NewRoot, Side, View};

/// Somebody who wants to hear of a key.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Interest {
    /// The client with this id is blocked until the key has a list.
    WaitingForList(u64),
    /// The client with this id watches the key, which has no value.
    Watching(u64),
}

const INTEREST_BYTES: usize = 9;
const WAITING_FOR_LIST: u8 = b'l';
const WATCHING: u8 = b'w';

impl Interest {
    fn to_bytes(self) -> [u8; INTEREST_BYTES] {
        let (kind, client) = match self {
            Self::WaitingForList(client) => (WAITING_FOR_LIST, client),
            Self::Watching(client) => (WATCHING, client),
        };
        let mut bytes = [kind; INTEREST_BYTES];
        bytes[1..].copy_from_slice(&client.to_le_bytes());
        bytes
    }

    fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let (kind, client) = bytes.split_first()?;
        let client = u64::from_le_bytes(client.try_into().ok()?);
        match *kind {
            WAITING_FOR_LIST => Some(Self::WaitingForList(client)),
            WATCHING => Some(Self::Watching(client)),
            _ => None,
        }
    }
}

/// First byte of the internal database's keys that hold interest; the database's number and the key follow.
const LIST_PREFIX: u8 = b'i';

fn list_name(database: usize, key: &[u8]) -> Vec<u8> {
    let mut name = Vec::with_capacity(3 + key.len());
    name.push(LIST_PREFIX);
    name.extend_from_slice(&(database as u16).to_le_bytes());
    name.extend_from_slice(key);
    name
}

/// The database and the key of whose interest an internal key tells.
pub(super) fn parse_list_name(name: &[u8]) -> Option<(usize, &[u8])> {
    match name {
        [LIST_PREFIX, low, high, key @ ..] => Some((usize::from(u16::from_le_bytes([*low, *high])), key)),
        _ => None,
    }
}

impl Transaction<'_> {
    /// Whether somebody wants to hear of the key.
    #[inline]
    pub fn is_hooked(&self, key: KeyId) -> bool {
        self.scratch.opened[key.0 as usize].hooked
    }

    /// Those who want to hear of a key, in the order of arrival. O(n).
    pub fn interests(&mut self, key: KeyId) -> Vec<Interest> {
        if !self.is_hooked(key) {
            return Vec::new();
        }
        let list = self.open_interests(key);
        let mut interests: Vec<Interest> = match self.root(list).and_then(|root| root.view()) {
            Some(View::List(list)) => list.iter_from(0).filter_map(Interest::from_bytes).collect(),
            _ => Vec::new(),
        };
        if planted("waiter_overtaken") {
            interests.reverse();
        }
        interests
    }

    /// Adds somebody who wants to hear of a key.
    pub fn add_interest(&mut self, key: KeyId, interest: Interest) {
        let id = self.open_interests(key);
        if let Some((root, attempt)) = self.edit(id)
            && let Some(list) = root.list_mut()
        {
            list.push(Side::Back, &interest.to_bytes(), attempt);
        } else {
            let mut list = List::new();
            list.push(Side::Back, &interest.to_bytes(), self.attempt());
            self.set(id, NewRoot::list(list, None));
        }
        self.set_hook(key, true);
    }

    /// Takes somebody off the list, if they are on it. O(n).
    pub fn remove_interest(&mut self, key: KeyId, interest: Interest) {
        if !self.is_hooked(key) {
            return;
        }
        let id = self.open_interests(key);
        let bytes = interest.to_bytes();
        let is_empty = match self.edit(id).and_then(|(root, attempt)| Some((root.list_mut()?, attempt))) {
            None => return,
            Some((list, attempt)) => {
                list.remove_matching(Side::Front, 1, |element| element == bytes, attempt);
                list.is_empty()
            }
        };
        if is_empty {
            self.delete(id);
            self.set_hook(key, false);
        }
    }

    fn set_hook(&mut self, key: KeyId, hooked: bool) {
        self.scratch.opened[key.0 as usize].hooked = hooked;
    }

    fn open_interests(&mut self, key: KeyId) -> KeyId {
        let opened = &self.scratch.opened[key.0 as usize];
        let name = list_name(usize::from(opened.database), self.key_of(opened));
        self.open_internal(&name)
    }

    /// Opens a key of the internal database.
    pub fn open_internal(&mut self, name: &[u8]) -> KeyId {
        let database = self.databases();
        self.open_in(database, name)
    }
}
