//! The counted sequence tree behind lists and long strings: a B-tree by position, with path copying.
//!
//! Leaves are 16 bytes each and have a weight (elements of a list chunk, bytes of a rope chunk); each branch knows the weight of each child, so
//! a position is found from the top in logarithmic time. All leaves stand at the same depth, and every node has at least [`FILL_MIN`] slots
//! filled, but for those at the left and right border of the tree: a node that overflows at its end of the sequence is left full behind, so that
//! a sequence built from one end is packed. An update copies the nodes on its path that its attempt did not make, and changes the others in
//! place.
//!
//! ```text
//! | header: kind, level, fill | slot | slot | ...          a slot: (child, weight) above level 0, a leaf at level 0
//! ```
//!
//! Every function here follows node pointers, so the tree must be alive: its nodes were made by the caller's attempt, or belong to a root that
//! the caller owns or is pinned for. [`List`](super::List) and [`Rope`](super::Rope) carry that as their invariant.

use super::node::{Attempt, NodeHeader, NodeKind, NodePtr};
use crate::limits::SEQUENCE_FANOUT as FANOUT;
use std::alloc::Layout;
use std::marker::PhantomData;
use std::mem::MaybeUninit;

/// Slots that every node fills at least, unless it stands at a border of the tree.
const FILL_MIN: usize = FANOUT / 2;
/// Levels that no tree can exceed: with at least two children each, 2^40 leaves.
const LEVELS_MAX: usize = if FILL_MIN >= 15 { 12 } else { 40 };
const _: () = assert!(FILL_MIN >= 2 && FANOUT < u16::MAX as usize);

/// The layout of every sequence node, whatever its leaves.
pub(super) const LAYOUT: Layout = Layout::new::<Node<Child>>();

/// One of the two ends of a sequence or a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// The beginning; LEFT in commands.
    Front,
    /// The end; RIGHT in commands.
    Back,
}

impl Side {
    /// The other end.
    pub fn opposite(self) -> Self {
        match self {
            Side::Front => Side::Back,
            Side::Back => Side::Front,
        }
    }
}

/// What a sequence holds: 16 bytes that name one node and weigh at least 1.
pub(super) trait Leaf: Copy {
    fn weight(&self) -> u64;
    fn node(&self) -> NodePtr;
}

#[repr(C)]
#[derive(Clone, Copy)]
pub(super) struct Child {
    node: NodePtr,
    weight: u64,
}

impl Leaf for Child {
    fn weight(&self) -> u64 {
        self.weight
    }
    fn node(&self) -> NodePtr {
        self.node
    }
}

#[repr(C)]
#[derive(Clone, Copy)]
union Slot<L: Leaf> {
    child: Child,
    leaf: L,
}

#[repr(C)]
struct Node<L: Leaf> {
    header: NodeHeader,
    slots: [MaybeUninit<Slot<L>>; FANOUT],
}

impl<L: Leaf> Node<L> {
    const SLOT_IS_SMALL: () =
        assert!(size_of::<Slot<L>>() == size_of::<Child>() && align_of::<Slot<L>>() == align_of::<Child>());

    /// # Safety
    /// The node is alive, is a sequence node with leaves `L`, and is not changed while the reference lives.
    unsafe fn of<'a>(node: NodePtr) -> &'a Self {
        let () = Self::SLOT_IS_SMALL;
        // SAFETY: passed on to the caller.
        unsafe { &*node.cast::<Self>() }
    }

    /// # Safety
    /// As [`of`](Self::of), and the attempt at hand made the node, so that nobody else can reach it.
    unsafe fn of_mut<'a>(node: NodePtr) -> &'a mut Self {
        // SAFETY: passed on to the caller.
        unsafe { &mut *node.cast::<Self>() }
    }

    fn fill(&self) -> usize {
        usize::from(self.header.fill)
    }

    fn is_bottom(&self) -> bool {
        self.header.level == 0
    }

    fn filled(&self) -> &[Slot<L>] {
        // SAFETY: the first `fill` slots are initialised: every function below that raises `fill` writes the slots first.
        unsafe { std::slice::from_raw_parts(self.slots.as_ptr().cast(), self.fill()) }
    }

    fn leaves(&self) -> &[L] {
        debug_assert!(self.is_bottom());
        // SAFETY: at level 0 filled slots hold leaves, which are as large as slots (SLOT_IS_SMALL) and begin with them (repr(C)).
        unsafe { std::slice::from_raw_parts(self.slots.as_ptr().cast(), self.fill()) }
    }

    fn children(&self) -> &[Child] {
        debug_assert!(!self.is_bottom());
        // SAFETY: above level 0 filled slots hold children, which are as large as slots and begin with them.
        unsafe { std::slice::from_raw_parts(self.slots.as_ptr().cast(), self.fill()) }
    }

    fn leaf_mut(&mut self, at: usize) -> &mut L {
        debug_assert!(self.is_bottom() && at < self.fill());
        // SAFETY: at level 0 a filled slot holds a leaf.
        unsafe { &mut self.slots[at].assume_init_mut().leaf }
    }

    fn child_mut(&mut self, at: usize) -> &mut Child {
        debug_assert!(!self.is_bottom() && at < self.fill());
        // SAFETY: above level 0 a filled slot holds a child.
        unsafe { &mut self.slots[at].assume_init_mut().child }
    }

    fn weight(&self) -> u64 {
        if self.is_bottom() {
            self.leaves().iter().map(Leaf::weight).sum()
        } else {
            self.children().iter().map(Leaf::weight).sum()
        }
    }

    /// The slot that holds `position`, and the position within it.
    fn find(&self, position: u64) -> (usize, u64) {
        if self.is_bottom() { find(self.leaves(), position) } else { find(self.children(), position) }
    }

    /// The slot before which a leaf that shall begin at the boundary `position` goes (or within which, above level 0), and the
    /// position within it.
    fn find_boundary(&self, position: u64) -> (usize, u64) {
        if position == 0 {
            return (0, 0);
        }
        let (at, within) = self.find(position - 1);
        if self.is_bottom() { (at + 1, 0) } else { (at, within + 1) }
    }

    /// An empty node.
    fn make(level: u8, attempt: &mut Attempt) -> NodePtr {
        let node = attempt.make(NodeKind::Sequence, LAYOUT);
        // SAFETY: the node was just made: alive, ours alone, its header initialised.
        unsafe { (*node.cast::<NodeHeader>()).level = level };
        node
    }

    /// Adds slots at the end.
    ///
    /// # Panics
    /// When there is no room for them.
    fn extend(&mut self, slots: &[Slot<L>]) {
        let fill = self.fill();
        for (to, from) in self.slots[fill..fill + slots.len()].iter_mut().zip(slots) {
            to.write(*from);
        }
        self.header.fill = (fill + slots.len()) as u16;
    }

    /// Inserts a slot before `at`, where there is room.
    fn insert_slot(&mut self, at: usize, slot: Slot<L>) {
        let fill = self.fill();
        debug_assert!(at <= fill && fill < FANOUT);
        self.slots.copy_within(at..fill, at + 1);
        self.slots[at].write(slot);
        self.header.fill += 1;
    }

    /// Inserts a slot before `at`; the right part of the node, if it had to be split: at `end`, where the node stands at that end of the
    /// sequence, else in the middle.
    fn insert_or_split(&mut self, at: usize, slot: Slot<L>, end: Option<Side>, attempt: &mut Attempt) -> Option<Child> {
        if self.fill() < FANOUT {
            self.insert_slot(at, slot);
            return None;
        }
        let middle = if end.is_some() { at } else { FANOUT.div_ceil(2) };
        let right_ptr = Self::make(self.header.level, attempt);
        // SAFETY: the node was just made by this attempt.
        let right = unsafe { Self::of_mut(right_ptr) };
        right.extend(&self.filled()[middle..]);
        self.header.fill = middle as u16;
        if at < middle || self.fill() == 0 {
            self.insert_slot(at, slot)
        } else {
            right.insert_slot(at - middle, slot)
        }
        Some(Child { node: right_ptr, weight: right.weight() })
    }

    fn remove_slot(&mut self, at: usize) -> Slot<L> {
        let fill = self.fill();
        let slot = self.filled()[at];
        self.slots.copy_within(at + 1..fill, at);
        self.header.fill -= 1;
        slot
    }

    /// Brings the child at `at`, which has fallen below [`FILL_MIN`], back above it, with the help of the child beside it.
    ///
    /// # Safety
    /// The tree is alive, the attempt made `self`, and there is another child.
    unsafe fn mend(&mut self, at: usize, attempt: &mut Attempt) {
        debug_assert!(self.fill() >= 2, "there is a child beside it");
        let left_at = at.saturating_sub(1);
        // SAFETY: the children of a live tree are alive; the attempt made the copy that `own` leaves.
        let left = unsafe { own::<L>(&mut self.child_mut(left_at).node, attempt) };
        let right_ptr = self.children()[left_at + 1].node;
        // SAFETY: the child is alive and only read through this reference.
        let right = unsafe { Self::of(right_ptr) };
        if left.fill() + right.fill() <= FANOUT {
            left.extend(right.filled());
            // SAFETY: `self` stops pointing to the right child below, so that it is given up once.
            unsafe { attempt.replace(right_ptr) };
            self.remove_slot(left_at + 1);
        } else {
            // SAFETY: as for the left child; the reference `right` is not used any more.
            let right = unsafe { own::<L>(&mut self.child_mut(left_at + 1).node, attempt) };
            let half = (left.fill() + right.fill()) / 2;
            if left.fill() < half {
                let moved = half - left.fill();
                left.extend(&right.filled()[..moved]);
                let fill = right.fill();
                right.slots.copy_within(moved..fill, 0);
                right.header.fill -= moved as u16;
            } else {
                let moved = left.fill() - half;
                let fill = right.fill();
                right.slots.copy_within(0..fill, moved);
                right.slots[..moved].copy_from_slice(&left.slots[half..half + moved]);
                right.header.fill += moved as u16;
                left.header.fill = half as u16;
            }
            self.child_mut(left_at + 1).weight = right.weight();
        }
        self.child_mut(left_at).weight = left.weight();
    }
}

fn find<T: Leaf>(slots: &[T], mut position: u64) -> (usize, u64) {
    for (at, slot) in slots.iter().enumerate() {
        if position < slot.weight() {
            return (at, position);
        }
        position -= slot.weight();
    }
    panic!("a position lies within the sequence");
}

/// The node as the attempt may change it: itself if the attempt made it, else a copy that takes its place in `node`.
///
/// # Safety
/// The node is alive, `node` is the one place that points to it, and that place is the attempt's to change.
unsafe fn own<'a, L: Leaf>(node: &mut NodePtr, attempt: &mut Attempt) -> &'a mut Node<L> {
    // SAFETY: the caller says that the node is alive.
    if !unsafe { attempt.owns(*node) } {
        // SAFETY: the caller says that the node is alive; it is published, so it does not change.
        let old = unsafe { Node::<L>::of(*node) };
        let copy_ptr = Node::<L>::make(old.header.level, attempt);
        // SAFETY: the node was just made by this attempt.
        let copy = unsafe { Node::<L>::of_mut(copy_ptr) };
        // All slots, filled or not: a copy of fixed size is faster than one of the right size.
        copy.slots = old.slots;
        copy.header.fill = old.header.fill;
        attempt.count_copied(LAYOUT.size());
        // SAFETY: the caller says that only `node` points to it, which is changed in the next line.
        unsafe { attempt.replace(*node) };
        *node = copy_ptr;
    }
    // SAFETY: either the attempt made the node, or it has just been copied.
    unsafe { Node::of_mut(*node) }
}

/// A sequence of leaves: a pointer to its top node. No `Drop`: nodes belong to attempts and roots.
#[repr(transparent)]
pub(super) struct Sequence<L: Leaf> {
    top: Option<NodePtr>,
    leaves: PhantomData<L>,
}

impl<L: Leaf> Clone for Sequence<L> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<L: Leaf> Copy for Sequence<L> {}

impl<L: Leaf> Sequence<L> {
    /// The sequence of no leaves.
    pub(super) const EMPTY: Self = Self { top: None, leaves: PhantomData };

    pub(super) fn is_empty(&self) -> bool {
        self.top.is_none()
    }

    /// The weight of all leaves.
    ///
    /// # Safety
    /// The tree is alive.
    pub(super) unsafe fn weight(&self) -> u64 {
        // SAFETY: the caller says that the tree is alive; its nodes do not change while `self` is borrowed.
        self.top.map_or(0, |top| unsafe { Node::<L>::of(top) }.weight())
    }

    /// The leaf that holds `position`, and the position within it. Logarithmic.
    ///
    /// # Safety
    /// The tree is alive.
    ///
    /// # Panics
    /// When `position` is not less than the weight.
    pub(super) unsafe fn get(&self, mut position: u64) -> (L, u64) {
        let mut node = self.top.expect("a position lies within the sequence");
        loop {
            // SAFETY: the caller says that the tree is alive; its nodes do not change while `self` is borrowed.
            let this = unsafe { Node::<L>::of(node) };
            let (at, within) = this.find(position);
            if this.is_bottom() {
                return (this.leaves()[at], within);
            }
            node = this.children()[at].node;
            position = within;
        }
    }

    /// Inserts a leaf at the boundary `position`: before the leaf that begins there, or at the end. Logarithmic.
    ///
    /// # Safety
    /// The tree is alive, and the place of `self` is the attempt's to change.
    pub(super) unsafe fn insert(&mut self, position: u64, leaf: L, attempt: &mut Attempt) {
        // SAFETY: passed on to the caller.
        unsafe { self.insert_at(position, leaf, None, attempt) }
    }

    /// # Safety
    /// As [`insert`](Self::insert).
    unsafe fn insert_at(&mut self, position: u64, leaf: L, end: Option<Side>, attempt: &mut Attempt) {
        let Some(top) = &mut self.top else {
            let node = Node::<L>::make(0, attempt);
            // SAFETY: the node was just made by this attempt.
            unsafe { Node::<L>::of_mut(node) }.insert_slot(0, Slot { leaf });
            self.top = Some(node);
            return;
        };
        // SAFETY: passed on to the caller.
        if let Some(right) = unsafe { insert_below(top, position, leaf, end, attempt) } {
            let left = *top;
            // SAFETY: `insert_below` left a node of this attempt's at the top.
            let left_node = unsafe { Node::<L>::of(left) };
            let left = Child { node: left, weight: left_node.weight() };
            let node = Node::<L>::make(left_node.header.level + 1, attempt);
            // SAFETY: the node was just made by this attempt.
            unsafe { Node::<L>::of_mut(node) }.extend(&[Slot { child: left }, Slot { child: right }]);
            *top = node;
        }
    }

    /// Removes the leaf that holds `position`; its own node is not given up. Logarithmic.
    ///
    /// # Safety
    /// The tree is alive, and the place of `self` is the attempt's to change.
    ///
    /// # Panics
    /// When `position` is not less than the weight.
    pub(super) unsafe fn remove(&mut self, position: u64, attempt: &mut Attempt) -> L {
        // SAFETY: passed on to the caller.
        unsafe { self.remove_at(position, None, attempt) }
    }

    /// # Safety
    /// As [`remove`](Self::remove).
    unsafe fn remove_at(&mut self, position: u64, end: Option<Side>, attempt: &mut Attempt) -> L {
        let top = self.top.as_mut().expect("a position lies within the sequence");
        // SAFETY: passed on to the caller.
        let leaf = unsafe { remove_below(top, position, end, attempt) };
        while let Some(top) = self.top {
            // SAFETY: the nodes from the top down to the leaf removed are alive.
            let node = unsafe { Node::<L>::of(top) };
            self.top = match (node.fill(), node.is_bottom()) {
                (0, _) => None,
                (1, false) => Some(node.children()[0].node),
                _ => break,
            };
            // SAFETY: the top node had no slot, or only the child that has just taken its place.
            unsafe { attempt.replace(top) };
        }
        leaf
    }

    /// Puts what `change` makes of the leaf that holds `position`, and of the position within it, in that leaf's place. The leaf's own
    /// node is not given up. `change` also learns whether the attempt may have made the leaf: if it has not even made the tree's node above,
    /// it has not, and nobody need look at the leaf's node to know. Logarithmic.
    ///
    /// # Safety
    /// The tree is alive, and the place of `self` is the attempt's to change.
    ///
    /// # Panics
    /// When `position` is not less than the weight.
    pub(super) unsafe fn update(
        &mut self,
        position: u64,
        attempt: &mut Attempt,
        change: impl FnOnce(L, u64, bool, &mut Attempt) -> L,
    ) {
        let top = self.top.as_mut().expect("a position lies within the sequence");
        // SAFETY: passed on to the caller.
        unsafe { update_below(top, position, attempt, change) };
    }

    /// Adds a leaf at one end.
    ///
    /// # Safety
    /// The tree is alive, and the place of `self` is the attempt's to change.
    pub(super) unsafe fn push(&mut self, side: Side, leaf: L, attempt: &mut Attempt) {
        let position = match side {
            Side::Front => 0,
            // SAFETY: passed on to the caller.
            Side::Back => unsafe { self.weight() },
        };
        // SAFETY: passed on to the caller.
        unsafe { self.insert_at(position, leaf, Some(side), attempt) }
    }

    /// Takes the leaf at one end; its own node is not given up.
    ///
    /// # Safety
    /// The tree is alive, and the place of `self` is the attempt's to change.
    pub(super) unsafe fn pop(&mut self, side: Side, attempt: &mut Attempt) -> Option<L> {
        if self.is_empty() {
            return None;
        }
        let position = match side {
            Side::Front => 0,
            // SAFETY: passed on to the caller.
            Side::Back => (unsafe { self.weight() }) - 1,
        };
        // SAFETY: passed on to the caller.
        Some(unsafe { self.remove_at(position, Some(side), attempt) })
    }

    /// Calls `visit` for every node, those of the leaves included, children first: `visit` may free what it is given.
    ///
    /// # Safety
    /// The tree is alive.
    pub(super) unsafe fn for_each_node(&self, visit: &mut dyn FnMut(NodePtr)) {
        if let Some(top) = self.top {
            // SAFETY: passed on to the caller.
            unsafe { visit_below::<L>(top, visit) }
        }
    }

    /// Bytes of the tree's own nodes, plus what `leaf_bytes` says of each leaf.
    ///
    /// # Safety
    /// The tree is alive.
    pub(super) unsafe fn bytes(&self, leaf_bytes: &dyn Fn(&L) -> usize) -> usize {
        /// # Safety
        /// The subtree is alive.
        unsafe fn bytes_below<L: Leaf>(node: NodePtr, leaf_bytes: &dyn Fn(&L) -> usize) -> usize {
            // SAFETY: passed on to the caller.
            let this = unsafe { Node::<L>::of(node) };
            let below: usize = if this.is_bottom() {
                this.leaves().iter().map(leaf_bytes).sum()
            } else {
                // SAFETY: a child is part of the subtree.
                this.children().iter().map(|child| unsafe { bytes_below(child.node, leaf_bytes) }).sum()
            };
            LAYOUT.size() + below
        }
        // SAFETY: passed on to the caller.
        self.top.map_or(0, |top| unsafe { bytes_below(top, leaf_bytes) })
    }

    /// Asserts the tree's invariants.
    ///
    /// # Safety
    /// The tree is alive.
    #[cfg(test)]
    pub(super) unsafe fn check(&self) {
        /// # Safety
        /// The subtree is alive.
        unsafe fn check_below<L: Leaf>(node: NodePtr, at_border: bool) -> (u8, u64) {
            // SAFETY: passed on to the caller.
            let this = unsafe { Node::<L>::of(node) };
            assert!(this.fill() <= FANOUT && this.fill() >= if at_border { 1 } else { FILL_MIN });
            if !this.is_bottom() {
                for (at, child) in this.children().iter().enumerate() {
                    let at_border = at_border && (at == 0 || at == this.fill() - 1);
                    // SAFETY: a child is part of the subtree.
                    let below = unsafe { check_below::<L>(child.node, at_border) };
                    assert_eq!(below, (this.header.level - 1, child.weight));
                }
            }
            (this.header.level, this.weight())
        }
        if let Some(top) = self.top {
            // SAFETY: passed on to the caller.
            unsafe { check_below::<L>(top, true) };
        }
    }

    /// A cursor at the leaf that holds `position`, and the position within it.
    ///
    /// # Safety
    /// The tree is alive, and stays so while the cursor lives.
    ///
    /// # Panics
    /// When `position` is not less than the weight.
    pub(super) unsafe fn cursor(&self, mut position: u64) -> (Cursor<L>, u64) {
        let mut node = self.top.expect("a position lies within the sequence");
        let mut path = [MaybeUninit::uninit(); LEVELS_MAX];
        for depth in 0.. {
            // SAFETY: the caller says that the tree is alive; its nodes do not change while `self` is borrowed.
            let this = unsafe { Node::<L>::of(node) };
            let (at, within) = this.find(position);
            path[depth] = MaybeUninit::new((node, at));
            if this.is_bottom() {
                return (Cursor { path, depth, leaves: PhantomData }, within);
            }
            node = this.children()[at].node;
            position = within;
        }
        unreachable!("the loop ends at the bottom")
    }
}

/// # Safety
/// The subtree is alive, `node` is the one place that points to it, and that place is the attempt's to change.
unsafe fn insert_below<L: Leaf>(
    node: &mut NodePtr,
    position: u64,
    leaf: L,
    end: Option<Side>,
    attempt: &mut Attempt,
) -> Option<Child> {
    // SAFETY: passed on to the caller.
    let this = unsafe { own::<L>(node, attempt) };
    let (at, within) = this.find_boundary(position);
    if this.is_bottom() {
        return this.insert_or_split(at, Slot { leaf }, end, attempt);
    }
    let child = this.child_mut(at);
    // SAFETY: the child is part of the subtree, and `this` is the attempt's to change.
    let right = unsafe { insert_below(&mut child.node, within, leaf, end, attempt) };
    child.weight += leaf.weight();
    let right = right?;
    child.weight -= right.weight;
    this.insert_or_split(at + 1, Slot { child: right }, end, attempt)
}

/// # Safety
/// The subtree is alive, `node` is the one place that points to it, and that place is the attempt's to change.
unsafe fn remove_below<L: Leaf>(node: &mut NodePtr, position: u64, end: Option<Side>, attempt: &mut Attempt) -> L {
    // SAFETY: passed on to the caller.
    let this = unsafe { own::<L>(node, attempt) };
    let (at, within) = this.find(position);
    if this.is_bottom() {
        // SAFETY: at level 0 a filled slot holds a leaf.
        return unsafe { this.remove_slot(at).leaf };
    }
    let child = this.child_mut(at);
    // SAFETY: the child is part of the subtree, and `this` is the attempt's to change.
    let leaf: L = unsafe { remove_below(&mut child.node, within, end, attempt) };
    child.weight -= leaf.weight();
    let child = child.node;
    // SAFETY: `remove_below` left a live node at the child.
    let fill = unsafe { Node::<L>::of(child) }.fill();
    if fill == 0 {
        this.remove_slot(at);
        // SAFETY: the slot that pointed to the child has just been removed.
        unsafe { attempt.replace(child) }
    } else if fill < FILL_MIN && end.is_none() && this.fill() > 1 {
        // SAFETY: the subtree is alive and `own` made `this` the attempt's.
        unsafe { this.mend(at, attempt) }
    }
    leaf
}

/// By how much the weight grew (wrapping).
///
/// # Safety
/// The subtree is alive, `node` is the one place that points to it, and that place is the attempt's to change.
unsafe fn update_below<L: Leaf>(
    node: &mut NodePtr,
    position: u64,
    attempt: &mut Attempt,
    change: impl FnOnce(L, u64, bool, &mut Attempt) -> L,
) -> u64 {
    // SAFETY: passed on to the caller.
    let is_own = unsafe { attempt.owns(*node) };
    // SAFETY: passed on to the caller.
    let this = unsafe { own::<L>(node, attempt) };
    let (at, within) = this.find(position);
    if this.is_bottom() {
        let leaf = this.leaf_mut(at);
        let old_weight = leaf.weight();
        *leaf = change(*leaf, within, is_own, attempt);
        return leaf.weight().wrapping_sub(old_weight);
    }
    let child = this.child_mut(at);
    // SAFETY: the child is part of the subtree, and `this` is the attempt's to change.
    let grown = unsafe { update_below(&mut child.node, within, attempt, change) };
    child.weight = child.weight.wrapping_add(grown);
    grown
}

/// # Safety
/// The subtree is alive.
unsafe fn visit_below<L: Leaf>(node: NodePtr, visit: &mut dyn FnMut(NodePtr)) {
    // SAFETY: the caller says that the subtree is alive; the reference is not used after `visit` was given the node.
    let this = unsafe { Node::<L>::of(node) };
    if this.is_bottom() {
        this.leaves().iter().for_each(|leaf| visit(leaf.node()));
    } else {
        for child in this.children() {
            // SAFETY: a child is part of the subtree.
            unsafe { visit_below::<L>(child.node, visit) }
        }
    }
    visit(node);
}

/// A place in a sequence that can move leaf by leaf, in constant time on average.
pub(super) struct Cursor<L: Leaf> {
    /// From the top node (index 0) to the bottom node (index `depth`): the node, and which of its slots the place lies in.
    path: [MaybeUninit<(NodePtr, usize)>; LEVELS_MAX],
    depth: usize,
    leaves: PhantomData<L>,
}

impl<L: Leaf> Cursor<L> {
    /// # Safety
    /// `depth <= self.depth`.
    unsafe fn step(&self, depth: usize) -> (NodePtr, usize) {
        // SAFETY: `Sequence::cursor` and `advance` initialise the path down to the bottom node.
        unsafe { self.path[depth].assume_init() }
    }

    /// The leaf at the cursor.
    ///
    /// # Safety
    /// The tree is alive.
    pub(super) unsafe fn leaf(&self) -> L {
        // SAFETY: the bottom node's step lies at `self.depth`.
        let (node, at) = unsafe { self.step(self.depth) };
        // SAFETY: the caller says that the tree is alive; published or borrowed nodes do not change.
        unsafe { Node::<L>::of(node) }.leaves()[at]
    }

    /// Moves one leaf towards `side`; whether there was one.
    ///
    /// # Safety
    /// The tree is alive.
    pub(super) unsafe fn advance(&mut self, side: Side) -> bool {
        let mut depth = self.depth;
        loop {
            // SAFETY: `depth` begins at `self.depth` and falls.
            let (node, at) = unsafe { self.step(depth) };
            // SAFETY: the caller says that the tree is alive; published or borrowed nodes do not change.
            let this = unsafe { Node::<L>::of(node) };
            let next = match side {
                Side::Front => at.checked_sub(1),
                Side::Back => Some(at + 1).filter(|next| *next < this.fill()),
            };
            if let Some(next) = next {
                self.path[depth].write((node, next));
                break;
            }
            if depth == 0 {
                return false;
            }
            depth -= 1;
        }
        while depth < self.depth {
            // SAFETY: `depth < self.depth`.
            let (node, at) = unsafe { self.step(depth) };
            // SAFETY: the caller says that the tree is alive; a node above the bottom has children.
            let child = unsafe { Node::<L>::of(node) }.children()[at].node;
            depth += 1;
            // SAFETY: a child of a live tree is alive.
            let last = unsafe { Node::<L>::of(child) }.fill() - 1;
            self.path[depth].write((child, if side == Side::Back { 0 } else { last }));
        }
        true
    }
}
