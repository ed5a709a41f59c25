//! The root: one immutable value of a key, as the entry word points to it.
//!
//! ```text
//! 0        8        12   13    14     16                 24
//! | stamp  | access |kind|flags|length| [expiry_ms: i64] | payload ...
//! ```
//!
//! The expiry takes room only where there is one. The payload is an integer, up to 64 KiB of bytes, or the fixed-size head of a
//! tree ([`List`], [`Rope`]). A root is made by one attempt ([`NewRoot`]), stamped and published by its commit, and never changes
//! afterwards but for the access clock.
//!
//! Ownership (rule 1 of docs/commit-protocol.md): the current root owns every node that is reachable from it. A `NewRoot` owns only its
//! own allocation; the nodes it points to are listed in the attempt that made them, or still belong to the root they were taken from.

use crate::sync::{AtomicU32, AtomicU64, Ordering};
use crate::types::{Attempt, List, Rope};
use std::alloc::{Layout, alloc, dealloc, handle_alloc_error};
use std::ptr::NonNull;

/// What a root holds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum Kind {
    /// The key was deleted; only the stamp counts.
    Tombstone = 0,
    /// A string that is a 64-bit integer in its shortest decimal form.
    Integer = 1,
    /// A string of up to [`ROPE_THRESHOLD_BYTES`](crate::limits::ROPE_THRESHOLD_BYTES).
    Bytes = 2,
    /// A longer string.
    Rope = 3,
    /// A list.
    List = 4,
}

/// How OBJECT ENCODING names a short string: one that was set whole, or one that was changed in place.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum StringEncoding {
    /// `embstr` up to 44 bytes, `raw` above.
    Whole,
    /// `raw` at any length (APPEND, SETRANGE).
    Raw,
}

const FLAG_EXPIRES: u8 = 1;
const FLAG_RAW: u8 = 2;

/// A published or published-to-be value. Always behind a pointer; its size depends on its header.
#[repr(C, align(16))]
pub struct Root {
    stamp: AtomicU64,
    access: AtomicU32,
    kind: Kind,
    flags: u8,
    length: u16,
    /// In model builds a cell that tells loom of every plain read and write of the payload.
    #[cfg(caswell_loom)]
    witness: loom::cell::UnsafeCell<u64>,
}

const HEADER_BYTES: usize = size_of::<Root>();
const _: () = assert!(cfg!(caswell_loom) || HEADER_BYTES == 16);
const EXPIRY_BYTES: usize = 8;

/// A root's value, borrowed.
#[derive(Clone, Copy, Debug)]
pub enum View<'a> {
    /// A string that is an integer.
    Integer(i64),
    /// A short string.
    Bytes(&'a [u8]),
    /// A long string.
    Rope(&'a Rope),
    /// A list.
    List(&'a List),
}

impl Root {
    fn layout_of(kind: Kind, expires: bool, length: u16) -> Layout {
        let payload = match kind {
            Kind::Tombstone => 0,
            Kind::Integer => size_of::<i64>(),
            Kind::Bytes => length as usize,
            Kind::Rope => size_of::<Rope>(),
            Kind::List => size_of::<List>(),
        };
        let size = HEADER_BYTES + if expires { EXPIRY_BYTES } else { 0 } + payload;
        Layout::from_size_align(size, 16).expect("a root is at most 64 KiB and a header")
    }

    fn layout(&self) -> Layout {
        Self::layout_of(self.kind, self.flags & FLAG_EXPIRES != 0, self.length)
    }

    /// Bytes of the root's own allocation.
    pub fn own_bytes(&self) -> usize {
        self.layout().size()
    }

    fn payload(&self) -> *const u8 {
        let offset = HEADER_BYTES + if self.flags & FLAG_EXPIRES != 0 { EXPIRY_BYTES } else { 0 };
        // SAFETY: `layout_of` gave the allocation at least `offset` bytes for these flags.
        unsafe { std::ptr::from_ref(self).cast::<u8>().add(offset) }
    }

    /// What the root holds.
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// Whether this stands for a deleted key.
    pub fn is_tombstone(&self) -> bool {
        self.kind == Kind::Tombstone
    }

    /// The commit stamp: unique, and growing along each key.
    pub fn stamp(&self) -> u64 {
        // Relaxed: written once, before the Release CAS that published the root; whoever holds a reference got it by Acquire.
        self.stamp.load(Ordering::Relaxed)
    }

    /// The deadline in milliseconds of Unix time, if the key has one.
    #[inline]
    pub fn expiry_ms(&self) -> Option<i64> {
        if self.flags & FLAG_EXPIRES == 0 {
            return None;
        }
        // SAFETY: FLAG_EXPIRES says that eight bytes behind the header hold the deadline; HEADER_BYTES keeps it aligned.
        Some(unsafe { std::ptr::from_ref(self).cast::<u8>().add(HEADER_BYTES).cast::<i64>().read() })
    }

    /// Whether the deadline has passed at `now_ms`: a key still lives in its deadline's own millisecond.
    #[inline]
    pub fn is_expired(&self, now_ms: i64) -> bool {
        self.expiry_ms().is_some_and(|deadline| deadline < now_ms)
    }

    /// The value; `None` for a tombstone.
    #[inline]
    pub fn view(&self) -> Option<View<'_>> {
        #[cfg(caswell_loom)]
        self.witness.with(|_| ());
        let payload = self.payload();
        Some(match self.kind {
            Kind::Tombstone => return None,
            // SAFETY: the kind says that an aligned i64 lies at the payload (header and expiry are multiples of eight).
            Kind::Integer => View::Integer(unsafe { payload.cast::<i64>().read() }),
            // SAFETY: the kind says that `length` initialised bytes lie at the payload; the root is immutable while `self` lives.
            Kind::Bytes => View::Bytes(unsafe { std::slice::from_raw_parts(payload, self.length as usize) }),
            // SAFETY: the kind says that a Rope lies at the payload, aligned to eight as it asks.
            Kind::Rope => View::Rope(unsafe { &*payload.cast::<Rope>() }),
            // SAFETY: the kind says that a List lies at the payload, aligned to eight as it asks.
            Kind::List => View::List(unsafe { &*payload.cast::<List>() }),
        })
    }

    /// How a short string came to be, for OBJECT ENCODING.
    pub fn string_encoding(&self) -> StringEncoding {
        if self.flags & FLAG_RAW != 0 { StringEncoding::Raw } else { StringEncoding::Whole }
    }

    /// The access clock word (seconds, or the LFU counter and its minute).
    pub fn access(&self) -> u32 {
        // Relaxed: a hint for eviction and OBJECT IDLETIME; orders nothing.
        self.access.load(Ordering::Relaxed)
    }

    /// Sets the access clock word, without a write where it already holds the value.
    #[inline]
    pub fn touch(&self, access: u32) {
        if self.access() != access {
            // Relaxed: as in `access`.
            self.access.store(access, Ordering::Relaxed);
        }
    }

    /// Frees the root's own allocation, not the nodes it points to.
    ///
    /// # Safety
    /// `root` came from [`NewRoot::publish`], and nobody can reach it any more.
    pub unsafe fn free(root: NonNull<Root>) {
        // SAFETY: the caller says that the root is alive and unshared, so its header still tells the allocation's layout.
        let layout = unsafe { root.as_ref() }.layout();
        #[cfg(caswell_loom)]
        // SAFETY: as above; the cell is dropped so that loom forgets it.
        unsafe {
            root.as_ref().witness.with_mut(|_| ());
            std::ptr::drop_in_place(root.as_ptr());
        }
        // SAFETY: `NewRoot::allocate` made the allocation with this very layout.
        unsafe { dealloc(root.as_ptr().cast(), layout) }
    }

    /// Calls `visit` for each node that the root owns, children before nothing in particular: the order is free.
    ///
    /// # Safety
    /// The root's tree is alive (the caller owns it, or is pinned since before it was replaced).
    pub unsafe fn for_each_node(&self, visit: &mut dyn FnMut(crate::types::NodePtr)) {
        match self.view() {
            // SAFETY: passed on to the caller.
            Some(View::Rope(rope)) => unsafe { rope.for_each_node(visit) },
            // SAFETY: passed on to the caller.
            Some(View::List(list)) => unsafe { list.for_each_node(visit) },
            _ => {}
        }
    }

    /// Whether the value has nodes beside the root's own allocation.
    pub fn has_nodes(&self) -> bool {
        matches!(self.kind, Kind::Rope | Kind::List)
    }
}

/// Writes an atomic that only this thread can see: a plain write, not one to a shared cache line.
macro_rules! set_exclusive {
    ($atomic:expr, $value:expr) => {{
        #[cfg(not(caswell_loom))]
        {
            *$atomic.get_mut() = $value;
        }
        #[cfg(caswell_loom)]
        $atomic.with_mut(|place| *place = $value);
    }};
}

/// A root that one attempt is making: its own allocation is freed when dropped, the nodes it points to are the attempt's.
#[derive(Debug)]
pub struct NewRoot(NonNull<Root>);

impl NewRoot {
    fn allocate(kind: Kind, raw: bool, length: u16, expiry_ms: Option<i64>) -> Self {
        let layout = Root::layout_of(kind, expiry_ms.is_some(), length);
        // SAFETY: the layout is never empty: it holds the header.
        let Some(root) = NonNull::new(unsafe { alloc(layout) }.cast::<Root>()) else { handle_alloc_error(layout) };
        let flags = if expiry_ms.is_some() { FLAG_EXPIRES } else { 0 } | if raw { FLAG_RAW } else { 0 };
        // SAFETY: `root` is a fresh allocation of at least the header, aligned to 16.
        unsafe {
            root.as_ptr().write(Root {
                stamp: AtomicU64::new(0),
                access: AtomicU32::new(0),
                kind,
                flags,
                length,
                #[cfg(caswell_loom)]
                witness: loom::cell::UnsafeCell::new(0),
            });
        }
        if let Some(deadline) = expiry_ms {
            // SAFETY: `layout_of` gave eight more bytes behind the header for a deadline.
            unsafe { root.as_ptr().cast::<u8>().add(HEADER_BYTES).cast::<i64>().write(deadline) }
        }
        Self(root)
    }

    fn write_payload<T>(&mut self, value: T) {
        #[cfg(caswell_loom)]
        self.root().witness.with_mut(|_| ());
        // SAFETY: each caller allocated for the kind whose payload is a `T`, and payloads are aligned to eight, as every `T` here asks.
        unsafe { self.root().payload().cast_mut().cast::<T>().write(value) }
    }

    /// A deleted key.
    pub fn tombstone() -> Self {
        let mut new = Self::allocate(Kind::Tombstone, false, 0, None);
        new.write_payload(());
        new
    }

    /// A string that is an integer.
    pub fn integer(number: i64, expiry_ms: Option<i64>) -> Self {
        let mut new = Self::allocate(Kind::Integer, false, 0, expiry_ms);
        new.write_payload(number);
        new
    }

    /// A short string.
    ///
    /// # Panics
    /// When `bytes` are 64 KiB or more; above [`ROPE_THRESHOLD_BYTES`](crate::limits::ROPE_THRESHOLD_BYTES) a string is a rope.
    pub fn bytes(bytes: &[u8], encoding: StringEncoding, expiry_ms: Option<i64>) -> Self {
        Self::concatenation(&[bytes], encoding, expiry_ms)
    }

    /// A short string made of `parts`, one after the other.
    ///
    /// # Panics
    /// As [`bytes`](Self::bytes).
    #[inline]
    pub fn concatenation(parts: &[&[u8]], encoding: StringEncoding, expiry_ms: Option<i64>) -> Self {
        let length = parts.iter().map(|part| part.len()).sum::<usize>();
        let length = u16::try_from(length).expect("longer strings are ropes");
        let new = Self::allocate(Kind::Bytes, encoding == StringEncoding::Raw, length, expiry_ms);
        #[cfg(caswell_loom)]
        new.root().witness.with_mut(|_| ());
        let mut to = new.root().payload().cast_mut();
        for part in parts {
            // SAFETY: the allocation has room for all parts behind `payload`, and is ours alone.
            unsafe {
                std::ptr::copy_nonoverlapping(part.as_ptr(), to, part.len());
                to = to.add(part.len());
            }
        }
        new
    }

    /// A long string.
    pub fn rope(rope: Rope, expiry_ms: Option<i64>) -> Self {
        let mut new = Self::allocate(Kind::Rope, true, 0, expiry_ms);
        new.write_payload(rope);
        new
    }

    /// A list.
    pub fn list(list: List, expiry_ms: Option<i64>) -> Self {
        let mut new = Self::allocate(Kind::List, false, 0, expiry_ms);
        new.write_payload(list);
        new
    }

    /// The same value with another deadline; the copy points to the same nodes as `root`.
    pub fn with_expiry(root: &Root, expiry_ms: Option<i64>) -> Self {
        match root.view() {
            None => Self::tombstone(),
            Some(View::Integer(number)) => Self::integer(number, expiry_ms),
            Some(View::Bytes(bytes)) => Self::bytes(bytes, root.string_encoding(), expiry_ms),
            Some(View::Rope(rope)) => Self::rope(rope.share(), expiry_ms),
            Some(View::List(list)) => Self::list(list.share(), expiry_ms),
        }
    }

    /// The same value and deadline in new nodes, none of them shared with `root` (COPY).
    pub fn copy_of(root: &Root, attempt: &mut Attempt) -> Self {
        let expiry_ms = root.expiry_ms();
        match root.view() {
            Some(View::Rope(rope)) => Self::rope(rope.copy(attempt), expiry_ms),
            Some(View::List(list)) => Self::list(list.copy(attempt), expiry_ms),
            _ => Self::with_expiry(root, expiry_ms),
        }
    }

    /// The root being made.
    #[inline]
    pub fn root(&self) -> &Root {
        // SAFETY: the allocation is ours, and initialised since `allocate`.
        unsafe { self.0.as_ref() }
    }

    /// The list being made, to be changed in place.
    pub fn list_mut(&mut self) -> Option<&mut List> {
        if self.root().kind != Kind::List {
            return None;
        }
        // SAFETY: the kind says that a List lies at the payload; the allocation is ours alone, and `&mut self` keeps it so.
        Some(unsafe { &mut *self.root().payload().cast_mut().cast::<List>() })
    }

    /// The rope being made, to be changed in place.
    pub fn rope_mut(&mut self) -> Option<&mut Rope> {
        if self.root().kind != Kind::Rope {
            return None;
        }
        // SAFETY: the kind says that a Rope lies at the payload; the allocation is ours alone, and `&mut self` keeps it so.
        Some(unsafe { &mut *self.root().payload().cast_mut().cast::<Rope>() })
    }

    /// Sets the commit stamp, before the root is published.
    #[inline]
    pub fn stamp(&mut self, stamp: u64) {
        // SAFETY: nobody else reads the root before its commit is decided, and `&mut self` keeps this thread's borrows apart.
        set_exclusive!(unsafe { self.0.as_mut() }.stamp, stamp);
    }

    /// Sets the access clock word, before the root is published.
    #[inline]
    pub fn set_access(&mut self, access: u32) {
        // SAFETY: as in `stamp`.
        set_exclusive!(unsafe { self.0.as_mut() }.access, access);
    }

    /// Where the root lies, and will lie when it is published.
    #[inline]
    pub fn address(&self) -> NonNull<Root> {
        self.0
    }

    /// Gives the allocation away, to be published in an entry word; [`Root::free`] frees it.
    #[inline]
    pub fn publish(self) -> NonNull<Root> {
        let root = self.0;
        std::mem::forget(self);
        root
    }

    /// Takes back an allocation that was given away and never became visible.
    ///
    /// # Safety
    /// `root` came from [`publish`](Self::publish) and nobody else can reach it.
    pub unsafe fn take_back(root: NonNull<Root>) -> Self {
        Self(root)
    }
}

impl Drop for NewRoot {
    fn drop(&mut self) {
        // SAFETY: the root was never given away (`publish` forgets `self`), so it is ours alone.
        unsafe { Root::free(self.0) }
    }
}
