//! What was unlinked and waits for its grace period.
//!
//! A worker gathers retired items in a bag of its own and hands the whole bag to the collector as one piece, so that retiring costs a push to
//! a vector. Bytes retired and bytes freed are counted, so that INFO can show how much waits. Large values go on to the
//! background thread ([`DropQueue`]), which frees them beside the commands.

use super::claim::Record;
use super::entry::Entry;
use super::table::Table;
use crate::epoch::Guard;
use crate::limits::{DROP_INLINE_BYTES_MAX, DROP_QUEUE_ITEMS, GARBAGE_BAG_BYTES, GARBAGE_BAG_ITEMS};
use crate::sync::{Arc, AtomicU64, Ordering, OwnedCounter};
use crate::types::{NodePtr, Root, View};
use std::cell::{Cell, RefCell};
use std::ptr::NonNull;
use std::sync::OnceLock;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

/// An item nobody can newly reach.
pub(crate) enum Retired {
    /// A root's own allocation; its nodes live on under another root.
    Header(NonNull<Root>),
    /// A root with all its nodes.
    Root(NonNull<Root>),
    /// One node that an update replaced.
    Node(NodePtr),
    /// An unlinked entry.
    Entry(NonNull<Entry>),
    /// A decided commit.
    Record(Box<Record>),
    /// A whole database.
    Table(Box<Table>),
}

// SAFETY: a retired item is reachable by no thread once its grace period is over, and is only then touched, by whoever frees it.
unsafe impl Send for Retired {}

impl Retired {
    fn bytes(&self) -> usize {
        match self {
            // SAFETY: retired items are alive until they are freed.
            Self::Header(root) => unsafe { root.as_ref() }.own_bytes(),
            // SAFETY: as above.
            Self::Root(root) => root_bytes(unsafe { root.as_ref() }),
            // SAFETY: as above.
            Self::Node(node) => unsafe { node.bytes() },
            // SAFETY: as above.
            Self::Entry(entry) => unsafe { entry.as_ref() }.bytes(),
            Self::Record(record) => record.bytes(),
            Self::Table(table) => table.bucket_bytes(),
        }
    }

    /// Frees the item.
    ///
    /// # Safety
    /// Its grace period is over.
    unsafe fn free(self) {
        match self {
            // SAFETY: the caller's promise; the nodes belong to another root.
            Self::Header(root) => unsafe { Root::free(root) },
            // SAFETY: the caller's promise; the root owned its nodes (rule 1).
            Self::Root(root) => unsafe { free_root_and_nodes(root) },
            // SAFETY: the caller's promise.
            Self::Node(node) => unsafe { node.free() },
            // SAFETY: the caller's promise.
            Self::Entry(entry) => unsafe { Entry::free(entry) },
            Self::Record(record) => drop(record),
            Self::Table(table) => drop(table),
        }
    }
}

/// About how many bytes a value takes, nodes included.
pub fn root_bytes(root: &Root) -> usize {
    root.own_bytes()
        + match root.view() {
            Some(View::Rope(rope)) => rope.len(),
            Some(View::List(list)) => list.bytes(),
            _ => 0,
        }
}

/// Frees a root and all nodes it owns.
///
/// # Safety
/// Nobody can reach the root any more.
pub(super) unsafe fn free_root_and_nodes(root: NonNull<Root>) {
    // SAFETY: the caller owns the root and its nodes. Each node is visited once and freed once.
    unsafe { root.as_ref().for_each_node(&mut |node| node.free()) };
    // SAFETY: as above.
    unsafe { Root::free(root) };
}

/// Where large values go to be freed. Bounded: when it is full they are freed on the spot.
#[derive(Debug, Default)]
pub struct DropQueue {
    sender: OnceLock<SyncSender<Retired>>,
}

impl std::fmt::Debug for Retired {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "Retired({} bytes)", self.bytes())
    }
}

/// The background thread's end of the queue.
pub struct Dropper(Receiver<Retired>);

impl DropQueue {
    /// Opens the queue for the one background thread; `None` where there is one already.
    pub fn open(&self) -> Option<Dropper> {
        let (sender, receiver) = sync_channel(DROP_QUEUE_ITEMS);
        self.sender.set(sender).ok().map(|()| Dropper(receiver))
    }

    fn take(&self, item: Retired) {
        let unsent = match self.sender.get() {
            Some(sender) => match sender.try_send(item) {
                Ok(()) => return,
                Err(error) => match error {
                    std::sync::mpsc::TrySendError::Full(item) | std::sync::mpsc::TrySendError::Disconnected(item) => {
                        item
                    }
                },
            },
            None => item,
        };
        // SAFETY: items come here only when their grace period is over.
        unsafe { unsent.free() }
    }
}

impl Dropper {
    /// Frees what comes until the store is gone.
    pub fn run(self) {
        while let Ok(item) = self.0.recv() {
            // SAFETY: items come here only when their grace period is over.
            unsafe { item.free() }
        }
    }
}

/// Bytes that went through one worker's bags.
#[derive(Debug, Default)]
pub struct Meter {
    /// Retired by this worker.
    retired_bytes: OwnedCounter,
    /// Freed, of those; whoever runs the collector adds here.
    freed_bytes: AtomicU64,
}

impl Meter {
    /// Bytes that wait for their grace period.
    pub fn waiting_bytes(&self) -> u64 {
        // Relaxed: a statistic.
        let freed = self.freed_bytes.load(Ordering::Relaxed);
        self.retired_bytes.get().saturating_sub(freed)
    }

    /// Bytes retired since the start.
    pub fn retired_bytes(&self) -> u64 {
        self.retired_bytes.get()
    }
}

/// One worker's bag.
pub(super) struct Garbage {
    items: RefCell<Vec<Retired>>,
    bytes: Cell<usize>,
    meter: Arc<Meter>,
    drop_queue: Arc<DropQueue>,
}

impl Garbage {
    pub(super) fn new(meter: Arc<Meter>, drop_queue: Arc<DropQueue>) -> Self {
        Self { items: RefCell::default(), bytes: Cell::new(0), meter, drop_queue }
    }

    /// Takes an item that no thread can newly reach from now on.
    #[inline]
    pub(super) fn retire(&self, item: Retired, guard: &Guard) {
        let bytes = self.bytes.get() + item.bytes();
        let mut items = self.items.borrow_mut();
        items.push(item);
        let full = items.len() >= GARBAGE_BAG_ITEMS || bytes >= GARBAGE_BAG_BYTES;
        drop(items);
        self.bytes.set(bytes);
        if full {
            self.hand_over(guard);
        }
    }

    /// Hands the bag to the collector, and lets it free what is due.
    pub(super) fn hand_over(&self, guard: &Guard) {
        let items = self.items.replace(Vec::with_capacity(GARBAGE_BAG_ITEMS));
        if !items.is_empty() {
            let bytes = self.bytes.replace(0) as u64;
            self.meter.retired_bytes.add(bytes);
            let (meter, drop_queue) = (self.meter.clone(), self.drop_queue.clone());
            // SAFETY: the closure frees items that were unlinked before this call, and runs after every pin that stands now has ended;
            // it owns what it uses.
            unsafe {
                guard.defer_unchecked(move || {
                    for item in items {
                        if item.bytes() > DROP_INLINE_BYTES_MAX || matches!(item, Retired::Table(_)) {
                            drop_queue.take(item);
                        } else {
                            item.free();
                        }
                    }
                    // Relaxed: a statistic.
                    meter.freed_bytes.fetch_add(bytes, Ordering::Relaxed);
                });
            }
        }
        // In models the collector's queue would be one more thing that threads meet at; it empties when the store is dropped.
        if cfg!(not(caswell_loom)) {
            guard.flush();
        }
    }
}
