//! What other workers have to tell one client: messages, and that it is to be closed.
//!
//! # The structure
//!
//! A stack of nodes with any number of pushing threads (Treiber, 1986) and one taker, the client's own task, which takes all nodes at once and
//! turns them round. Nobody ever pops a single node, so a node's address may be used again without harm (no ABA): whoever pushes needs only
//! that its node points to what the head is at the moment of its swap.
//!
//! 1. The messages of one pushing thread are taken in the order pushed; so are those of two threads of which one pushed after the other's push
//!    had returned. The linearization point of a push is its successful swap, that of a take its exchange.
//! 2. No message waits unnoticed: the push that finds the stack empty wakes the task, and whoever takes leaves it empty.
//! 3. The messages not yet delivered, with what waits for the socket, are no more bytes than the limit of the client's class; the push that
//!    would exceed it closes the client instead.
//!
//! Pushing is lock-free (a swap fails only because another push or the taker succeeded), taking is wait-free. A queue with a lock would do less
//! work per message, but a worker that is preempted while it holds the lock would stop all others; the queues of crossbeam and tokio wait in the
//! same way for a neighbour that has claimed a slot and not filled it.
//!
//! Model: `outbox_wakes` and `outbox_keeps_order` in loom-tests.

use std::sync::OnceLock;
use std::task::Waker;

use bytes::Bytes;

use crate::limits::OUTBOX_BYTES_MAX;
use crate::resp::Reply;
use crate::sync::{Arc, AtomicBool, AtomicPtr, AtomicUsize, Ordering, fence, planted};

/// What a message takes beside its own bytes.
const MESSAGE_OVERHEAD_BYTES: usize = size_of::<Node>();

/// A message that has not been taken, and the one pushed before it; once taken, the one pushed after it.
struct Node {
    message: Bytes,
    next: *mut Node,
}

/// How many bytes may wait for one client: the limits of its class, of which zero means no limit of the user's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OutboxLimits {
    /// More closes the client.
    pub hard: u64,
    /// More than this for some time closes the client; its own task keeps the time.
    pub soft: u64,
}

/// What became of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Placed {
    /// It waits for the client.
    Waiting,
    /// The client is being closed, and takes no more.
    Closing,
    /// It was one too many: the client is being closed because of it.
    Overflow,
}

/// The way to one client for all other workers.
#[derive(Default)]
pub struct Outbox {
    /// The message pushed last, of those not yet taken.
    head: AtomicPtr<Node>,
    /// Bytes of the messages pushed and not yet delivered, with their overhead.
    bytes: AtomicUsize,
    /// Bytes of output that the client's socket has had no room for.
    unsent: AtomicUsize,
    is_closing: AtomicBool,
    waker: OnceLock<Waker>,
}

impl Outbox {
    /// Places a message. O(1), and two writes to shared memory beside the count of the message's own.
    pub fn push(&self, message: Bytes, limits: OutboxLimits) -> Placed {
        if self.is_closing() {
            return Placed::Closing;
        }
        let added = message.len() + MESSAGE_OVERHEAD_BYTES;
        // Relaxed, twice: a sum that is compared with a limit; it orders nothing.
        let before = self.bytes.fetch_add(added, Ordering::Relaxed);
        let unsent = self.unsent.load(Ordering::Relaxed);
        let (before, after) = ((before + unsent) as u64, (before + unsent + added) as u64);
        let hard = if limits.hard == 0 { OUTBOX_BYTES_MAX } else { limits.hard.min(OUTBOX_BYTES_MAX) };
        if after > hard {
            // Relaxed: as above. It makes up for the addition, since the message is not placed.
            self.bytes.fetch_sub(added, Ordering::Relaxed);
            return if self.close() { Placed::Overflow } else { Placed::Closing };
        }
        let was_empty = self.link(message);
        // The client's task sleeps while its socket is full; it must know when the time of the soft limit begins.
        let soft_limit_passed = limits.soft > 0 && before <= limits.soft && after > limits.soft;
        if (was_empty || soft_limit_passed) && !planted("outbox_no_wake") {
            self.wake();
        }
        Placed::Waiting
    }

    /// Pushes a node; whether there was none before.
    fn link(&self, message: Bytes) -> bool {
        let node = Box::into_raw(Box::new(Node { message, next: std::ptr::null_mut() }));
        // Relaxed: the node behind the head is not read, only pointed to.
        let mut head = self.head.load(Ordering::Relaxed);
        loop {
            // SAFETY: made above and not yet published, so it is ours alone.
            unsafe { (*node).next = head };
            // Release: pairs with the Acquire in `take`: the taker sees the node, and those below it, since each push that found
            // another's node continues that one's release sequence. Relaxed on failure: as above.
            match self.head.compare_exchange_weak(head, node, Ordering::Release, Ordering::Relaxed) {
                Ok(_) => return head.is_null(),
                Err(now) => head = now,
            }
        }
    }

    /// Takes everything, oldest first.
    fn take(&self) -> Taken {
        // Acquire: pairs with the Release in `link`.
        let mut latest = self.head.swap(std::ptr::null_mut(), Ordering::Acquire);
        if planted("outbox_reversed") {
            return Taken { first: latest };
        }
        let mut first = std::ptr::null_mut();
        while !latest.is_null() {
            // SAFETY: the swap above took the whole chain of published nodes out of reach of everybody else.
            let next = unsafe { std::mem::replace(&mut (*latest).next, first) };
            first = std::mem::replace(&mut latest, next);
        }
        Taken { first }
    }

    /// Whether no message waits to be taken.
    #[inline]
    pub fn is_empty(&self) -> bool {
        // Relaxed: whoever pushes afterwards wakes the task.
        self.head.load(Ordering::Relaxed).is_null()
    }

    /// Bytes that wait for the client: messages, and what its socket has had no room for. A figure of this moment.
    pub fn waiting_bytes(&self) -> usize {
        // Relaxed, both: figures that order nothing.
        self.bytes.load(Ordering::Relaxed) + self.unsent.load(Ordering::Relaxed)
    }

    /// Notes how many bytes of output wait for the socket. Only the client's own task may call this.
    pub fn set_unsent(&self, bytes: usize) {
        // Relaxed: a figure that orders nothing.
        self.unsent.store(bytes, Ordering::Relaxed);
    }

    /// Says which task serves this client, so that others can wake it. The first call counts: a task keeps its waker.
    #[inline]
    pub fn set_waker(&self, waker: &Waker) {
        if self.waker.get().is_none() {
            let _ = self.waker.set(waker.clone());
            // SeqCst: pairs with the fence in `close`. Of the two, one is first: either the closer finds the waker, or the look at the
            // flag that follows this call finds it raised. Nobody pushes before the task has run for the first time.
            fence(Ordering::SeqCst);
        }
    }

    /// Lets the client's task look at what there is for it.
    pub fn wake(&self) {
        if let Some(waker) = self.waker.get() {
            waker.wake_by_ref();
        }
    }

    /// Asks the task that serves this client to close it; whether this call was the first.
    pub fn close(&self) -> bool {
        // Release: pairs with the acquire load in `is_closing`; what the closer did before is visible to the closing task.
        let first = !self.is_closing.swap(true, Ordering::Release);
        // SeqCst: pairs with the fence in `set_waker`.
        fence(Ordering::SeqCst);
        self.wake();
        first
    }

    /// Whether somebody asked for this client to be closed.
    #[inline]
    pub fn is_closing(&self) -> bool {
        // Acquire: pairs with the release store in `close`.
        self.is_closing.load(Ordering::Acquire)
    }
}

impl Drop for Outbox {
    fn drop(&mut self) {
        drop(self.take());
    }
}

/// A chain of nodes that belongs to one thread, oldest first.
struct Taken {
    first: *mut Node,
}

impl Default for Taken {
    fn default() -> Self {
        Self { first: std::ptr::null_mut() }
    }
}

impl Taken {
    fn pop(&mut self) -> Option<Bytes> {
        if self.first.is_null() {
            return None;
        }
        // SAFETY: made by Box::into_raw in `link`; `take` gave the chain to us alone, and the node leaves it here.
        let node = unsafe { Box::from_raw(self.first) };
        self.first = node.next;
        Some(node.message)
    }
}

impl Drop for Taken {
    fn drop(&mut self) {
        while self.pop().is_some() {}
    }
}

/// The taking side of an outbox; the client's own task has it.
pub struct Receiver {
    outbox: Arc<Outbox>,
    /// Taken, and not yet delivered.
    taken: Taken,
}

impl Receiver {
    /// The taking side. There is one per outbox.
    pub fn new(outbox: Arc<Outbox>) -> Self {
        Self { outbox, taken: Taken::default() }
    }

    /// Whether there is nothing to deliver.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.taken.first.is_null() && self.outbox.is_empty()
    }

    /// Appends messages to `reply`, oldest first, until those are `bytes_max` bytes or more, or until there are no more; whether there are more.
    pub fn deliver(&mut self, reply: &mut Reply, bytes_max: usize) -> bool {
        let (mut delivered, mut released) = (0, 0);
        while delivered < bytes_max {
            let Some(message) = self.next() else { break };
            delivered += message.len();
            released += message.len() + MESSAGE_OVERHEAD_BYTES;
            reply.pushed(message);
        }
        if released > 0 {
            // Relaxed: a sum that is compared with a limit; it orders nothing.
            self.outbox.bytes.fetch_sub(released, Ordering::Relaxed);
        }
        !self.is_empty()
    }

    /// Closes the outbox and frees what waits: its owner has gone, and others may hold on to it for a while.
    pub fn close(&mut self) {
        self.outbox.close();
        while self.next().is_some() {}
    }

    fn next(&mut self) -> Option<Bytes> {
        if self.taken.first.is_null() {
            self.taken = self.outbox.take();
        }
        self.taken.pop()
    }
}

#[cfg(all(test, not(caswell_loom)))]
mod tests {
    use std::task::Wake;

    use super::*;
    use crate::resp::Protocol;
    use crate::sync::thread;

    const UNLIMITED: OutboxLimits = OutboxLimits { hard: 0, soft: 0 };

    #[derive(Default)]
    struct Wakes(AtomicUsize);

    impl Wakes {
        fn count(&self) -> usize {
            // Relaxed: read by the thread that wrote it.
            self.0.load(Ordering::Relaxed)
        }
    }

    impl Wake for Wakes {
        fn wake(self: Arc<Self>) {
            // Relaxed: read by the thread that wrote it.
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn outbox() -> (Arc<Outbox>, Receiver, Arc<Wakes>) {
        let outbox = Arc::new(Outbox::default());
        let wakes = Arc::new(Wakes::default());
        outbox.set_waker(&wakes.clone().into());
        (outbox.clone(), Receiver::new(outbox), wakes)
    }

    fn delivered(receiver: &mut Receiver, protocol: Protocol, bytes_max: usize) -> (String, bool) {
        let mut reply = Reply::new(protocol);
        let more = receiver.deliver(&mut reply, bytes_max);
        (String::from_utf8(reply.to_vec()).expect("text"), more)
    }

    #[test]
    fn what_waits_is_freed_when_its_owner_goes_though_others_know_the_outbox() {
        let (outbox, mut receiver, _wakes) = outbox();
        let message = Bytes::from(vec![b'x'; 100]);
        assert_eq!(outbox.push(message.clone(), UNLIMITED), Placed::Waiting);
        assert!(!message.is_unique());
        receiver.close();
        assert!(message.is_unique());
        assert_eq!(outbox.push(message.clone(), UNLIMITED), Placed::Closing);
        assert!(message.is_unique());
    }

    #[test]
    fn messages_come_in_order_and_wake_once() {
        let (outbox, mut receiver, wakes) = outbox();
        for text in [">1\r\n", ">2\r\n", "+3\r\n"] {
            assert_eq!(outbox.push(Bytes::from(text), UNLIMITED), Placed::Waiting);
        }
        assert_eq!(wakes.count(), 1);
        assert_eq!(delivered(&mut receiver, Protocol::Resp3, 4), (">1\r\n".into(), true));
        assert_eq!(outbox.push(Bytes::from(">4\r\n"), UNLIMITED), Placed::Waiting);
        assert_eq!(wakes.count(), 2, "the first since the last was taken");
        // Pushes are arrays in RESP2.
        assert_eq!(delivered(&mut receiver, Protocol::Resp2, 100), ("*2\r\n+3\r\n*4\r\n".into(), false));
        assert_eq!(outbox.waiting_bytes(), 0);
        assert!(receiver.is_empty());
    }

    #[test]
    fn the_message_that_exceeds_the_hard_limit_closes_the_client() {
        let (outbox, receiver, _wakes) = outbox();
        let limits = OutboxLimits { hard: 3 * (10 + MESSAGE_OVERHEAD_BYTES as u64), soft: 0 };
        for _ in 0..3 {
            assert_eq!(outbox.push(Bytes::from_static(b"0123456789"), limits), Placed::Waiting);
        }
        assert!(!outbox.is_closing());
        assert_eq!(outbox.push(Bytes::from_static(b"x"), limits), Placed::Overflow);
        assert!(outbox.is_closing());
        assert_eq!(outbox.push(Bytes::from_static(b"x"), UNLIMITED), Placed::Closing);
        assert_eq!(outbox.waiting_bytes() as u64, limits.hard);
        drop(receiver);
    }

    #[test]
    fn output_that_the_socket_did_not_take_counts_and_the_soft_limit_wakes() {
        let (outbox, _receiver, wakes) = outbox();
        outbox.set_unsent(1000);
        let limits = OutboxLimits { hard: 0, soft: 1200 };
        for _ in 0..20 {
            outbox.push(Bytes::from_static(b"0123456789"), limits);
        }
        assert_eq!(wakes.count(), 2, "by the first, and by the one that passed the soft limit");
        let tight = OutboxLimits { hard: 1000, soft: 0 };
        assert_eq!(outbox.push(Bytes::from_static(b"x"), tight), Placed::Overflow);
    }

    #[test]
    fn nothing_is_lost_between_threads_and_each_threads_order_is_kept() {
        let (outbox, mut receiver, _wakes) = outbox();
        let (threads, count) = (4_u32, 5_000_u32);
        let pushers: Vec<_> = (0..threads)
            .map(|thread| {
                let outbox = outbox.clone();
                thread::spawn(move || {
                    for number in 0..count {
                        outbox.push(Bytes::from(format!("+{thread} {number}\n")), UNLIMITED);
                    }
                })
            })
            .collect();
        let mut next = vec![0; threads as usize];
        while next.iter().sum::<u32>() < threads * count {
            let (text, _) = delivered(&mut receiver, Protocol::Resp3, 1 << 20);
            for line in text.lines() {
                let (thread, number) = line[1..].split_once(' ').expect("two numbers");
                let thread: usize = thread.parse().expect("a number");
                assert_eq!(number, next[thread].to_string());
                next[thread] += 1;
            }
        }
        pushers.into_iter().for_each(|thread| thread.join().expect("a pusher ends"));
        assert!(receiver.is_empty());
    }

    #[test]
    fn a_long_chain_is_dropped_without_recursion() {
        let (outbox, receiver, _wakes) = outbox();
        for _ in 0..300_000 {
            outbox.push(Bytes::from_static(b"x"), UNLIMITED);
        }
        drop((outbox, receiver));
    }
}
