//! Lists: deques of packed chunks around a counted tree.
//!
//! ```text
//! front.outer  front.inner | middle: tree of chunks | back.inner  back.outer
//!   <- grows                                                     grows ->
//! ```
//!
//! The head below lives in the root. Each of its four [`Window`]s shows part of a chunk; the tree holds the others. A push claims room in the
//! outer chunk of its end and writes there, a pop narrows a window, so neither copies anything as a rule. Where a push finds no room that it
//! may claim (the chunk is full, or a pop or a losing push went before), it copies the outer chunk if that is small
//! ([`LIST_COPY_BYTES_MAX`]), else the outer chunk moves inwards and a new one begins: that is what the two levels are for, as a push after a
//! pop never touches the tree. Moving inwards, a small chunk joins its inner neighbour.
//!
//! A window whose elements take less than an eighth of its chunk is copied to a chunk of its size, so that a list that shrinks does not
//! pin memory: at most eight times its elements' bytes, plus two chunks.

use super::chunk::{CAPACITY_MAX, Run, Source, Window, capacity_for, used_by};
use super::listpack::{self, ListpackLimit};
use super::node::{Attempt, NodePtr};
use super::seq::{Cursor, Leaf, Sequence, Side};
use crate::limits::{LIST_COPY_BYTES_MAX, LIST_PACKED_ELEMENT_BYTES_MAX};
use bytes::Bytes;
use smallvec::SmallVec;
use std::ops::{ControlFlow, Range};

/// The two windows at one end; `outer` is the one that pushes and pops meet first.
#[derive(Clone, Copy)]
#[repr(C)]
struct End {
    outer: Window,
    inner: Window,
}

/// A list: a fixed-size head that lives in the root and points to its nodes. No `Drop`: nodes belong to attempts and roots.
///
/// Invariant: while a list can be reached, its nodes are alive: the attempt at hand made them, or they belong to a root that the caller owns or
/// is pinned for. Each method that takes an attempt changes a list of that attempt's own, which nobody else can reach.
#[repr(C)]
pub struct List {
    ends: [End; 2],
    middle: Sequence<Window>,
    /// Number of elements (lower 40 bits), and the bytes that a listpack of them takes (upper 24 bits; [`QUICKLIST`]: encoded as a quicklist).
    length_and_listpack: u64,
}

const LENGTH_BITS: u32 = 40;
const QUICKLIST: u64 = (1 << (64 - LENGTH_BITS)) - 1;
const _: () = assert!(size_of::<List>() == 80);

/// The five parts of a list, from front to back.
const REGIONS: usize = 5;
const MIDDLE: usize = 2;

/// Where an element stands.
#[derive(Clone, Copy)]
struct Place {
    region: usize,
    window: Window,
    /// Position of the element in the window.
    at: usize,
    /// Position of the window's first element in the middle.
    begins: u64,
}

impl List {
    /// A list of no elements, encoded as a listpack.
    pub fn new() -> Self {
        let end = End { outer: Window::EMPTY, inner: Window::EMPTY };
        Self { ends: [end, end], middle: Sequence::EMPTY, length_and_listpack: listpack::EMPTY_BYTES << LENGTH_BITS }
    }

    /// Number of elements.
    #[inline]
    pub fn len(&self) -> usize {
        (self.length_and_listpack & ((1 << LENGTH_BITS) - 1)) as usize
    }

    /// Whether there is no element (a key with an empty list is deleted).
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Adds an element at one end. Constant time on average; as a rule nothing is copied but the element.
    #[inline]
    pub fn push(&mut self, side: Side, element: &[u8], attempt: &mut Attempt) {
        self.count_added(element);
        if element.len() <= LIST_PACKED_ELEMENT_BYTES_MAX {
            let outer = &mut self.ends[side as usize].outer;
            // SAFETY: the list's invariant keeps the chunk alive.
            if unsafe { outer.try_push(side, Source::Element(element), attempt) } {
                return;
            }
        }
        self.push_elsewhere(side, element, attempt);
    }

    /// Adds an element at the front.
    pub fn push_front(&mut self, element: &[u8], attempt: &mut Attempt) {
        self.push(Side::Front, element, attempt);
    }

    /// Adds an element at the back.
    pub fn push_back(&mut self, element: &[u8], attempt: &mut Attempt) {
        self.push(Side::Back, element, attempt);
    }

    /// Adds an element where the outer chunk has no room that could be claimed.
    #[cold]
    fn push_elsewhere(&mut self, side: Side, element: &[u8], attempt: &mut Attempt) {
        if element.len() > LIST_PACKED_ELEMENT_BYTES_MAX {
            self.move_inwards(side, attempt);
            self.ends[side as usize].outer = Window::large(element, attempt);
            return;
        }
        let outer = self.ends[side as usize].outer;
        let added = Source::Element(element);
        if outer.is_empty() || outer.is_large() {
            self.move_inwards(side, attempt);
            // SAFETY: the only source is the element.
            self.ends[side as usize].outer = unsafe { Window::build(side, element.len(), &[added], attempt) };
            return;
        }
        let used = outer.used();
        if used <= LIST_COPY_BYTES_MAX {
            let run = Source::Run(outer, 0, outer.len());
            // SAFETY: the list's invariant keeps the outer chunk alive.
            let copy = unsafe { Window::build(side, used, &in_order(side, added, run), attempt) };
            self.ends[side as usize].outer = copy;
            give_up(outer, attempt);
            return;
        }
        // A chunk that pushes alone have filled is followed by a larger one.
        // SAFETY: the list's invariant keeps the outer chunk alive.
        let is_full = used + 2 * element.len() > unsafe { outer.capacity() };
        self.move_inwards(side, attempt);
        let spare = if is_full { 2 * used } else { LIST_COPY_BYTES_MAX };
        // SAFETY: the only source is the element.
        self.ends[side as usize].outer = unsafe { Window::build(side, spare, &[added], attempt) };
    }

    /// Empties the outer window of an end: its chunk joins the inner one, or takes its place while that moves to the tree.
    fn move_inwards(&mut self, side: Side, attempt: &mut Attempt) {
        let end = &mut self.ends[side as usize];
        let outer = std::mem::replace(&mut end.outer, Window::EMPTY);
        if outer.is_empty() {
            return;
        }
        if end.inner.is_empty() {
            end.inner = outer;
            return;
        }
        let inner = end.inner;
        if !outer.is_large() && !inner.is_large() {
            let run = Source::Run(outer, 0, outer.len());
            // SAFETY: the list's invariant keeps both chunks alive.
            if unsafe { end.inner.try_push(side, run, attempt) } {
                give_up(outer, attempt);
                return;
            }
            if inner.used() <= CAPACITY_MAX / 2 && inner.used() + outer.used() <= CAPACITY_MAX {
                let sources = in_order(side, run, Source::Run(inner, 0, inner.len()));
                // SAFETY: the list's invariant keeps both chunks alive.
                end.inner = unsafe { Window::build(side, CAPACITY_MAX, &sources, attempt) };
                give_up(outer, attempt);
                give_up(inner, attempt);
                return;
            }
        }
        end.inner = outer;
        self.push_to_middle(side, inner, attempt);
    }

    /// Hands a window to the tree, in a chunk not much larger than it needs.
    fn push_to_middle(&mut self, side: Side, window: Window, attempt: &mut Attempt) {
        let window = shrink(window, 2, side, 0, attempt);
        // SAFETY: the list's invariant keeps the tree alive.
        unsafe { self.middle.push(side, window, attempt) }
    }

    /// Takes the element at one end, gives it to `take`, and returns what `take` made of it; `None` where the list is empty. Constant time
    /// on average, and as a rule nothing is copied.
    #[inline]
    pub fn pop<R>(&mut self, side: Side, attempt: &mut Attempt, take: impl FnOnce(&[u8]) -> R) -> Option<R> {
        let region = self.outermost(side, attempt)?;
        let window = *self.window(region);
        let at = if side == Side::Front { 0 } else { window.len() - 1 };
        // SAFETY: the list's invariant keeps the chunk alive, and the element is not given up before `take` has returned.
        let element = unsafe { window.get(at) };
        let taken = take(element);
        self.count_removed(element);
        self.drop_elements(region, side, 1, attempt);
        Some(taken)
    }

    /// Takes the element at the front; see [`pop`](Self::pop).
    pub fn pop_front<R>(&mut self, attempt: &mut Attempt, take: impl FnOnce(&[u8]) -> R) -> Option<R> {
        self.pop(Side::Front, attempt, take)
    }

    /// Takes the element at the back; see [`pop`](Self::pop).
    pub fn pop_back<R>(&mut self, attempt: &mut Attempt, take: impl FnOnce(&[u8]) -> R) -> Option<R> {
        self.pop(Side::Back, attempt, take)
    }

    /// The region whose window holds the element at one end, after that window has been taken out of the tree, if need be.
    #[inline]
    fn outermost(&mut self, side: Side, attempt: &mut Attempt) -> Option<usize> {
        let [outer, inner, _, far_inner, far_outer] = from_side(side);
        if !self.window(outer).is_empty() {
            return Some(outer);
        }
        if self.window(inner).is_empty() {
            // SAFETY: the list's invariant keeps the tree alive.
            match unsafe { self.middle.pop(side, attempt) } {
                Some(window) => *self.window_mut(inner) = window,
                None => return [far_inner, far_outer].into_iter().find(|region| !self.window(*region).is_empty()),
            }
        }
        Some(inner)
    }

    /// Narrows the window of a region by `count` elements, and gives up its chunk if none are left.
    #[inline]
    fn drop_elements(&mut self, region: usize, side: Side, count: usize, attempt: &mut Attempt) {
        let window = self.window_mut(region);
        if count == window.len() {
            give_up(std::mem::replace(window, Window::EMPTY), attempt);
            return;
        }
        // SAFETY: the list's invariant keeps the chunk alive; a window of more than one element is packed.
        unsafe { window.narrow(side, count) };
        if window.used() < CAPACITY_MAX / SHRINK_FACTOR {
            let own_side = if region < MIDDLE { Side::Front } else { Side::Back };
            *window = shrink(*window, SHRINK_FACTOR, own_side, window.used(), attempt);
        }
    }

    /// The element at `index`. Logarithmic.
    pub fn get(&self, index: usize) -> Option<&[u8]> {
        if index >= self.len() {
            return None;
        }
        let place = self.place(index);
        // SAFETY: the list's invariant keeps the chunk alive and unchanged while the list is borrowed.
        Some(unsafe { place.window.get(place.at) })
    }

    /// Elements from `start` on, forwards.
    pub fn iter_from(&self, start: usize) -> Iter<'_> {
        self.iter(start, Side::Back)
    }

    /// Elements from `start` on, backwards.
    pub fn iter_back_from(&self, start: usize) -> Iter<'_> {
        self.iter(start, Side::Front)
    }

    /// Elements from `start` on, towards one end; none where `start` is not the index of an element.
    pub fn iter(&self, start: usize, towards: Side) -> Iter<'_> {
        let mut windows = Windows { list: self, towards, region: REGIONS, cursor: None };
        if start >= self.len() {
            return Iter { run: Run::EMPTY, beyond: 0, windows };
        }
        let place = self.place(start);
        if place.region == MIDDLE {
            // SAFETY: the list's invariant keeps the tree alive while the list is borrowed; the place lies in it.
            windows.cursor = Some(unsafe { self.middle.cursor(place.begins + place.at as u64) }.0);
        }
        windows.region = place.region;
        // SAFETY: the list's invariant keeps the chunk alive and unchanged while the list is borrowed.
        let run = unsafe { place.window.run(place.at, towards) };
        let length = if towards == Side::Back { self.len() - start } else { start + 1 };
        Iter { run, beyond: length - run.remaining, windows }
    }

    /// Puts another element in the place of the one at `index`. Logarithmic, and copies at most one chunk.
    ///
    /// # Panics
    /// When there is no such element.
    pub fn set(&mut self, index: usize, element: &[u8], attempt: &mut Attempt) {
        assert!(index < self.len(), "the element exists");
        let place = self.place(index);
        // SAFETY: the list's invariant keeps the chunk alive.
        self.count_removed(unsafe { place.window.get(place.at) });
        self.count_added(element);
        self.splice(place, 1, Some(element), attempt);
    }

    /// Inserts before `index` (`index == len` appends). Logarithmic, and copies at most one chunk.
    ///
    /// # Panics
    /// When `index` is larger than the length.
    pub fn insert(&mut self, index: usize, element: &[u8], attempt: &mut Attempt) {
        if index == 0 {
            return self.push(Side::Front, element, attempt);
        }
        if index == self.len() {
            return self.push(Side::Back, element, attempt);
        }
        assert!(index < self.len(), "the place lies within the list");
        let place = self.place(index);
        self.count_added(element);
        self.splice(place, 0, Some(element), attempt);
    }

    /// Removes a range of elements. Logarithmic, plus the time to give up each chunk that falls away; at either end nothing is copied.
    ///
    /// # Panics
    /// When the range does not lie within the list.
    pub fn remove_range(&mut self, range: Range<usize>, attempt: &mut Attempt) {
        assert!(range.start <= range.end && range.end <= self.len(), "the range lies within the list");
        let mut remaining = range.len();
        if self.is_listpack() {
            for index in range.clone() {
                // SAFETY (of the borrow): the element is read before it is removed below.
                let size = listpack::entry_bytes(self.get(index).expect("the range lies within the list"));
                self.length_and_listpack -= size << LENGTH_BITS;
            }
        }
        let side = match (range.start, range.end == self.len()) {
            (0, _) => Some(Side::Front),
            (_, true) => Some(Side::Back),
            _ => None,
        };
        while remaining > 0 {
            let dropped = if let Some(side) = side {
                let region = self.outermost(side, attempt).expect("the range lies within the list");
                let dropped = remaining.min(self.window(region).len());
                self.drop_elements(region, side, dropped, attempt);
                dropped
            } else {
                let place = self.place(range.start);
                let dropped = remaining.min(place.window.len() - place.at);
                self.splice(place, dropped, None, attempt);
                dropped
            };
            self.length_and_listpack -= dropped as u64;
            remaining -= dropped;
        }
    }

    /// Removes up to `limit` elements for which `matches` says so, looking from one end; how many it removed. Linear: each chunk with matches
    /// is copied once.
    pub fn remove_matching(
        &mut self,
        from: Side,
        limit: usize,
        mut matches: impl FnMut(&[u8]) -> bool,
        attempt: &mut Attempt,
    ) -> usize {
        let mut removed = 0;
        // Elements on the side looked from that stay.
        let mut passed = 0;
        while removed < limit && passed < self.len() {
            let towards = from.opposite();
            let nth = |list: &Self, passed: usize| if from == Side::Front { passed } else { list.len() - 1 - passed };
            let Some(stay) = self.iter(nth(self, passed), towards).position(&mut matches) else { break };
            passed += stay;
            let place = self.place(nth(self, passed));
            let (gone, stay) = self.remove_in_window(place, towards, limit - removed, &mut matches, attempt);
            removed += gone;
            passed += stay;
        }
        removed
    }

    /// Removes the element at a place, which matches, and up to `limit - 1` more towards one end of its window; how many elements it removed
    /// and how many of those it looked at stay.
    fn remove_in_window(
        &mut self,
        place: Place,
        towards: Side,
        limit: usize,
        matches: &mut impl FnMut(&[u8]) -> bool,
        attempt: &mut Attempt,
    ) -> (usize, usize) {
        let Place { window, at, .. } = place;
        // What stays of the window, from the place on; the run that is still growing is the last.
        let mut kept: SmallVec<[Range<usize>; 16]> = SmallVec::new();
        let (mut removed, mut listpack_bytes, mut position) = (0, 0, at);
        // SAFETY: the list's invariant keeps the chunk alive.
        let mut run = unsafe { window.run(at, towards) };
        // SAFETY: as the line before.
        while let Some(element) = unsafe { run.next(towards) } {
            if removed == 0 || (removed < limit && matches(element)) {
                removed += 1;
                listpack_bytes += if self.is_listpack() { listpack::entry_bytes(element) } else { 0 };
            } else {
                match kept.last_mut() {
                    Some(last) if last.end == position => last.end += 1,
                    Some(last) if towards == Side::Front && last.start == position + 1 => last.start = position,
                    _ => kept.push(position..position + 1),
                }
            }
            position = if towards == Side::Back { position + 1 } else { position.wrapping_sub(1) };
        }
        let stay = kept.iter().map(Range::len).sum();
        if towards == Side::Back {
            kept.insert(0, 0..at);
        } else {
            kept.reverse();
            kept.push(at + 1..window.len());
        }
        let rest = if window.is_large() {
            Window::EMPTY
        } else {
            let sources: SmallVec<[_; 16]> =
                kept.iter().map(|range| Source::Run(window, range.start, range.end)).collect();
            // SAFETY: the list's invariant keeps the chunk alive.
            unsafe { Window::build(Side::Back, 0, &sources, attempt) }
        };
        give_up(window, attempt);
        self.put(place, if rest.is_empty() { &[] } else { std::slice::from_ref(&rest) }, attempt);
        self.length_and_listpack -= listpack_bytes << LENGTH_BITS | removed as u64;
        (removed, stay)
    }

    /// The element at `index` with a count on its chunk, so that it may outlive the pin; `None` where it shares a chunk with others: only
    /// elements above [`LIST_PACKED_ELEMENT_BYTES_MAX`] stand alone.
    pub fn shared(&self, index: usize) -> Option<Bytes> {
        let window = if index < self.len() { self.place(index).window } else { Window::EMPTY };
        // SAFETY: the list's invariant keeps the chunk alive; the chunk of an element on its own is never changed in place.
        if window.is_large() { Some(unsafe { window.share() }) } else { None }
    }

    /// A list of the same elements that shares no node with this one (COPY).
    pub fn copy(&self, attempt: &mut Attempt) -> List {
        let mut copy = List::new();
        for element in self.iter(0, Side::Back) {
            copy.push(Side::Back, element, attempt);
        }
        copy.length_and_listpack = self.length_and_listpack;
        copy
    }

    /// The same head, for a root that replaces this one's.
    pub fn share(&self) -> List {
        List { ends: self.ends, middle: self.middle, length_and_listpack: self.length_and_listpack }
    }

    /// Calls `visit` for every node, children first: `visit` may free what it is given.
    ///
    /// # Safety
    /// The tree is alive, and if `visit` frees nodes, the list is not used afterwards.
    pub unsafe fn for_each_node(&self, visit: &mut dyn FnMut(NodePtr)) {
        for end in &self.ends {
            [end.outer, end.inner].iter().filter_map(Window::node).for_each(&mut *visit);
        }
        // SAFETY: passed on to the caller.
        unsafe { self.middle.for_each_node(visit) }
    }

    /// About how many bytes the nodes take: the elements' bytes, without spare room. Walks the tree, but looks into no chunk.
    pub fn bytes(&self) -> usize {
        let ends: usize = self.ends.iter().map(|end| end.outer.bytes() + end.inner.bytes()).sum();
        // SAFETY: the list's invariant keeps the tree alive.
        ends + unsafe { self.middle.bytes(&Window::bytes) }
    }

    /// Whether OBJECT ENCODING says `listpack`, else `quicklist`.
    #[inline]
    pub fn is_listpack(&self) -> bool {
        self.length_and_listpack >> LENGTH_BITS != QUICKLIST
    }

    /// To be called before elements are added (LPUSH, LINSERT, LSET): the list becomes a quicklist where it would grow beyond the limit.
    /// Takes the number of elements and the sum of their lengths.
    pub fn grow_encoding(&mut self, count: usize, bytes: usize, limit: ListpackLimit) {
        let listpack = self.length_and_listpack >> LENGTH_BITS;
        if listpack != QUICKLIST && limit.is_exceeded(listpack as usize + bytes, self.len() + count) {
            self.length_and_listpack |= QUICKLIST << LENGTH_BITS;
        }
    }

    /// To be called after elements were removed (LPOP, LTRIM, LREM, LSET): the list becomes a listpack again once it takes no more than half of
    /// the limit.
    #[inline]
    pub fn shrink_encoding(&mut self, limit: ListpackLimit) {
        if !self.is_listpack() {
            self.become_listpack(limit);
        }
    }

    #[cold]
    fn become_listpack(&mut self, limit: ListpackLimit) {
        if !limit.is_within_half(listpack::EMPTY_BYTES as usize + 2 * self.len(), self.len()) {
            return;
        }
        let mut bytes = listpack::EMPTY_BYTES;
        for element in self.iter(0, Side::Back) {
            bytes += listpack::entry_bytes(element);
            if !limit.is_within_half(bytes as usize, self.len()) {
                return;
            }
        }
        self.length_and_listpack = bytes << LENGTH_BITS | self.len() as u64;
    }

    #[inline]
    fn count_added(&mut self, element: &[u8]) {
        self.length_and_listpack += 1;
        if self.is_listpack() {
            let listpack = (self.length_and_listpack >> LENGTH_BITS) + listpack::entry_bytes(element);
            self.length_and_listpack = listpack.min(QUICKLIST) << LENGTH_BITS | self.len() as u64;
        }
    }

    #[inline]
    fn count_removed(&mut self, element: &[u8]) {
        self.length_and_listpack -= 1;
        if self.is_listpack() {
            self.length_and_listpack -= listpack::entry_bytes(element) << LENGTH_BITS;
        }
    }

    #[inline]
    fn window(&self, region: usize) -> &Window {
        let end = &self.ends[usize::from(region > MIDDLE)];
        if region == 0 || region == REGIONS - 1 { &end.outer } else { &end.inner }
    }

    #[inline]
    fn window_mut(&mut self, region: usize) -> &mut Window {
        let end = &mut self.ends[usize::from(region > MIDDLE)];
        if region == 0 || region == REGIONS - 1 { &mut end.outer } else { &mut end.inner }
    }

    /// Elements in the tree.
    fn middle_len(&self) -> usize {
        self.len() - self.ends.iter().map(|end| end.outer.len() + end.inner.len()).sum::<usize>()
    }

    /// Where the element at `index < len` stands.
    fn place(&self, mut index: usize) -> Place {
        for region in 0..REGIONS {
            let length = if region == MIDDLE { self.middle_len() } else { self.window(region).len() };
            if index >= length {
                index -= length;
                continue;
            }
            if region != MIDDLE {
                return Place { region, window: *self.window(region), at: index, begins: 0 };
            }
            // SAFETY: the list's invariant keeps the tree alive; the position lies within it.
            let (window, at) = unsafe { self.middle.get(index as u64) };
            return Place { region, window, at: at as usize, begins: index as u64 - at };
        }
        panic!("the index is less than the length")
    }

    /// Replaces `removed` elements at a place, within its window, by `element`. The length is not kept here.
    fn splice(&mut self, place: Place, removed: usize, element: Option<&[u8]>, attempt: &mut Attempt) {
        let Place { window, at, .. } = place;
        let mut pieces = Pieces::default();
        if window.is_large() {
            if let Some(element) = element {
                pieces.add_element(element, attempt);
            }
            if removed == 0 {
                pieces.add(window);
            }
        } else {
            let left = Source::Run(window, 0, at);
            let right = Source::Run(window, at + removed, window.len());
            // SAFETY: the list's invariant keeps the window's chunk alive throughout.
            let build = |sources: &[Source<'_>], attempt: &mut Attempt| unsafe {
                Window::build(Side::Back, 0, sources, attempt)
            };
            // SAFETY: the list's invariant keeps the window's chunk alive throughout.
            let used = |sources: &[Source<'_>]| unsafe { used_by(sources) };
            match element {
                Some(element) if element.len() > LIST_PACKED_ELEMENT_BYTES_MAX => {
                    pieces.add(build(&[left], attempt));
                    pieces.add_element(element, attempt);
                    pieces.add(build(&[right], attempt));
                }
                Some(element) => {
                    let added = Source::Element(element);
                    if used(&[left, added, right]) <= CAPACITY_MAX {
                        pieces.add(build(&[left, added, right], attempt));
                    } else if used(&[left]) <= used(&[right]) {
                        pieces.add(build(&[left, added], attempt));
                        pieces.add(build(&[right], attempt));
                    } else {
                        pieces.add(build(&[left], attempt));
                        pieces.add(build(&[added, right], attempt));
                    }
                }
                None => pieces.add(build(&[left, right], attempt)),
            }
        }
        if !(window.is_large() && removed == 0) {
            give_up(window, attempt);
        }
        self.put(place, pieces.all(), attempt);
    }

    /// Puts windows in the place of one window, whose chunk has been given up (or is among them).
    fn put(&mut self, place: Place, pieces: &[Window], attempt: &mut Attempt) {
        let Place { region, begins, window, .. } = place;
        if region == MIDDLE {
            let Some((first, others)) = pieces.split_first() else {
                // SAFETY: the list's invariant keeps the tree alive; the window stands there.
                unsafe { self.middle.remove(begins, attempt) };
                return;
            };
            // SAFETY: as above.
            unsafe { self.middle.update(begins, attempt, |_, _, _, _| *first) };
            let mut position = begins + first.weight();
            for piece in others {
                // SAFETY: a window ends at `position`.
                unsafe { self.middle.insert(position, *piece, attempt) };
                position += piece.weight();
            }
            if pieces.len() == 1 && first.len() < window.len() {
                self.join_small(begins, *first, attempt);
            }
            return;
        }
        let side = if region < MIDDLE { Side::Front } else { Side::Back };
        let is_outer = region == 0 || region == REGIONS - 1;
        // From the end inwards.
        let nth = |n: usize| if side == Side::Front { pieces[n] } else { pieces[pieces.len() - 1 - n] };
        *self.window_mut(region) = if pieces.is_empty() { Window::EMPTY } else { nth(0) };
        let end = &mut self.ends[side as usize];
        let mut to_middle = 1..pieces.len();
        if is_outer && pieces.len() > 1 {
            let inner = std::mem::replace(&mut end.inner, nth(1));
            to_middle.start = 2;
            if !inner.is_empty() {
                self.push_to_middle(side, inner, attempt);
            }
        }
        for n in to_middle.rev() {
            self.push_to_middle(side, nth(n), attempt);
        }
    }

    /// Joins a window of the tree that has become small with a neighbour, so that a list whose elements are removed here and there
    /// shrinks.
    fn join_small(&mut self, begins: u64, window: Window, attempt: &mut Attempt) {
        if window.is_large() || window.used() > CAPACITY_MAX / 4 {
            return;
        }
        // SAFETY: the list's invariant keeps the tree alive.
        let total = unsafe { self.middle.weight() };
        let joins =
            |neighbour: &Window| !neighbour.is_large() && neighbour.used() + window.used() <= CAPACITY_MAX * 3 / 4;
        let behind = begins + window.weight();
        // SAFETY: the list's invariant keeps the tree alive; each position lies within it.
        let next = (behind < total).then(|| unsafe { self.middle.get(behind) }.0).filter(joins);
        let (start, left, right) = match next {
            Some(next) => (begins, window, next),
            None => {
                let Some(last) = begins.checked_sub(1) else { return };
                // SAFETY: as above.
                let Some(previous) = Some(unsafe { self.middle.get(last) }.0).filter(joins) else { return };
                (begins - previous.weight(), previous, window)
            }
        };
        let sources = [Source::Run(left, 0, left.len()), Source::Run(right, 0, right.len())];
        // SAFETY: the list's invariant keeps both chunks alive.
        let joined = unsafe { Window::build(Side::Back, 0, &sources, attempt) };
        // SAFETY: the right window begins here.
        unsafe { self.middle.remove(start + left.weight(), attempt) };
        // SAFETY: the left window begins here.
        unsafe { self.middle.update(start, attempt, |_, _, _, _| joined) };
        give_up(left, attempt);
        give_up(right, attempt);
    }
}

impl Default for List {
    fn default() -> Self {
        Self::new()
    }
}

impl std::fmt::Debug for List {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("List").field("len", &self.len()).finish_non_exhaustive()
    }
}

/// A window is copied once its elements take less than this part of its chunk.
const SHRINK_FACTOR: usize = 8;

/// The regions in the order in which they are met from one end.
const fn from_side(side: Side) -> [usize; REGIONS] {
    match side {
        Side::Front => [0, 1, 2, 3, 4],
        Side::Back => [4, 3, 2, 1, 0],
    }
}

/// The outer and the inner source of an end, from front to back.
fn in_order<'a>(side: Side, outer: Source<'a>, inner: Source<'a>) -> [Source<'a>; 2] {
    match side {
        Side::Front => [outer, inner],
        Side::Back => [inner, outer],
    }
}

/// Gives up the chunk of a window that the list no longer shows.
fn give_up(window: Window, attempt: &mut Attempt) {
    if let Some(node) = window.node() {
        // SAFETY: the window came out of a list of the attempt's own, which kept the chunk alive and no longer points to it.
        unsafe { attempt.replace(node) }
    }
}

/// The window, copied to a chunk with `spare` bytes of room if its elements take less than one part in `factor` of its chunk.
fn shrink(window: Window, factor: usize, side: Side, spare: usize, attempt: &mut Attempt) -> Window {
    let fits = |used: usize, capacity| used * factor >= capacity || capacity_for(used, spare) >= capacity;
    // SAFETY: the window came out of a list of the attempt's own, which keeps the chunk alive.
    if window.is_large() || fits(window.used(), unsafe { window.capacity() }) {
        return window;
    }
    // SAFETY: as above.
    let copy = unsafe { Window::build(side, spare, &[Source::Run(window, 0, window.len())], attempt) };
    give_up(window, attempt);
    copy
}

/// Up to three windows, without an allocation.
struct Pieces {
    windows: [Window; 3],
    count: usize,
}

impl Default for Pieces {
    fn default() -> Self {
        Self { windows: [Window::EMPTY; 3], count: 0 }
    }
}

impl Pieces {
    fn add(&mut self, window: Window) {
        if !window.is_empty() {
            self.windows[self.count] = window;
            self.count += 1;
        }
    }

    fn add_element(&mut self, element: &[u8], attempt: &mut Attempt) {
        self.add(if element.len() > LIST_PACKED_ELEMENT_BYTES_MAX {
            Window::large(element, attempt)
        } else {
            // SAFETY: the only source is the element.
            unsafe { Window::build(Side::Back, 0, &[Source::Element(element)], attempt) }
        });
    }

    fn all(&self) -> &[Window] {
        &self.windows[..self.count]
    }
}

/// Elements of a list, from an index towards one end.
pub struct Iter<'a> {
    /// What is left of the present window.
    run: Run,
    /// How many elements are to come in the windows beyond.
    beyond: usize,
    windows: Windows<'a>,
}

impl<'a> Iter<'a> {
    /// At most `count` of the elements; what is still an [`Iter`] walks each chunk in one tight loop.
    pub fn take(mut self, count: usize) -> Self {
        let now = self.run.remaining.min(count);
        self.run.remaining = now;
        self.beyond = self.beyond.min(count - now);
        self
    }

    #[cold]
    fn next_run(&mut self) -> bool {
        if self.beyond == 0 {
            return false;
        }
        self.run = self.windows.next_run().expect("there are more elements");
        self.run.remaining = self.run.remaining.min(self.beyond);
        self.beyond -= self.run.remaining;
        true
    }

    /// Gives elements to `step` until it breaks. The run is kept in registers, which `next` cannot do.
    #[inline]
    fn walk<B>(&mut self, mut step: impl FnMut(&'a [u8]) -> ControlFlow<B>) -> Option<B> {
        let towards = self.windows.towards;
        loop {
            let mut run = self.run;
            // SAFETY: the list is borrowed for `'a`, and its invariant keeps the chunk alive and unchanged.
            while let Some(element) = unsafe { run.next(towards) } {
                if let ControlFlow::Break(result) = step(element) {
                    self.run = run;
                    return Some(result);
                }
            }
            self.run = run;
            if !self.next_run() {
                return None;
            }
        }
    }
}

/// The windows that have elements, towards one end.
struct Windows<'a> {
    list: &'a List,
    towards: Side,
    /// Where the present window stands; [`REGIONS`] once there is none.
    region: usize,
    /// The present window's place in the tree, while it stands there.
    cursor: Option<Cursor<Window>>,
}

impl Windows<'_> {
    /// Goes on to the next window and gives its elements.
    #[cold]
    fn next_run(&mut self) -> Option<Run> {
        let window = self.next_window()?;
        let at = if self.towards == Side::Back { 0 } else { window.len() - 1 };
        // SAFETY: the list is borrowed, and its invariant keeps the chunk alive.
        Some(unsafe { window.run(at, self.towards) })
    }

    fn next_window(&mut self) -> Option<Window> {
        if let Some(cursor) = &mut self.cursor {
            // SAFETY: the list is borrowed, and its invariant keeps the tree alive.
            if unsafe { cursor.advance(self.towards) } {
                // SAFETY: as the line before.
                return Some(unsafe { cursor.leaf() });
            }
            self.cursor = None;
        }
        while self.region < REGIONS {
            self.region = match self.towards {
                Side::Back => self.region + 1,
                Side::Front => self.region.checked_sub(1).unwrap_or(REGIONS),
            };
            if self.region == MIDDLE && !self.list.middle.is_empty() {
                let position = if self.towards == Side::Back { 0 } else { self.list.middle_len() as u64 - 1 };
                // SAFETY: the list is borrowed, and its invariant keeps the tree alive; the position lies within it.
                let (cursor, _) = unsafe { self.list.middle.cursor(position) };
                // SAFETY: as the line before.
                return Some(unsafe { self.cursor.insert(cursor).leaf() });
            }
            if self.region != MIDDLE && self.region < REGIONS {
                let window = *self.list.window(self.region);
                if !window.is_empty() {
                    return Some(window);
                }
            }
        }
        None
    }
}

impl<'a> Iterator for Iter<'a> {
    type Item = &'a [u8];

    #[inline]
    fn next(&mut self) -> Option<&'a [u8]> {
        loop {
            // SAFETY: the list is borrowed for `'a`, and its invariant keeps the chunk alive and unchanged.
            if let Some(element) = unsafe { self.run.next(self.windows.towards) } {
                return Some(element);
            }
            if !self.next_run() {
                return None;
            }
        }
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let length = self.run.remaining + self.beyond;
        (length, Some(length))
    }

    #[inline]
    fn fold<B, F: FnMut(B, &'a [u8]) -> B>(mut self, init: B, mut step: F) -> B {
        let mut folded = Some(init);
        self.walk(|element| {
            folded = folded.take().map(|before| step(before, element));
            ControlFlow::<()>::Continue(())
        });
        folded.expect("put back after each step")
    }

    #[inline]
    fn for_each<F: FnMut(&'a [u8])>(mut self, mut step: F) {
        self.walk(|element| {
            step(element);
            ControlFlow::<()>::Continue(())
        });
    }

    #[inline]
    fn any<F: FnMut(&'a [u8]) -> bool>(&mut self, mut matches: F) -> bool {
        let found = |element| if matches(element) { ControlFlow::Break(()) } else { ControlFlow::Continue(()) };
        self.walk(found).is_some()
    }

    #[inline]
    fn position<F: FnMut(&'a [u8]) -> bool>(&mut self, mut matches: F) -> Option<usize> {
        let mut passed = 0;
        self.walk(|element| {
            if matches(element) {
                return ControlFlow::Break(passed);
            }
            passed += 1;
            ControlFlow::Continue(())
        })
    }
}

impl ExactSizeIterator for Iter<'_> {}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::ledger::{Ledger, Random, seeds};
    use std::collections::VecDeque;

    fn nodes(list: &List) -> Vec<NodePtr> {
        let mut nodes = Vec::new();
        // SAFETY: the test keeps the list's nodes alive, and the visitor frees nothing.
        unsafe { list.for_each_node(&mut |node| nodes.push(node)) };
        nodes
    }

    fn listpack_bytes(model: &VecDeque<Vec<u8>>) -> u64 {
        listpack::EMPTY_BYTES + model.iter().map(|element| listpack::entry_bytes(element)).sum::<u64>()
    }

    fn assert_same(list: &List, model: &VecDeque<Vec<u8>>, random: &mut Random) {
        assert_eq!(list.len(), model.len());
        assert!(list.iter(0, Side::Back).eq(model.iter().map(Vec::as_slice)), "forwards");
        assert!(
            list.iter(model.len().wrapping_sub(1), Side::Front).eq(model.iter().rev().map(Vec::as_slice)),
            "backwards"
        );
        if !model.is_empty() {
            let at = random.below(model.len());
            assert_eq!(list.get(at), Some(model[at].as_slice()));
            let stands_alone = model[at].len() > LIST_PACKED_ELEMENT_BYTES_MAX;
            assert_eq!(list.shared(at).as_deref(), Some(model[at].as_slice()).filter(|_| stands_alone));
            assert!(list.iter_from(at).eq(model.iter().skip(at).map(Vec::as_slice)));
            assert!(list.iter_back_from(at).eq(model.iter().take(at + 1).rev().map(Vec::as_slice)));
        }
        assert_eq!(list.get(model.len()), None);
        if list.is_listpack() {
            assert_eq!(list.length_and_listpack >> LENGTH_BITS, listpack_bytes(model));
        }
        // SAFETY: the test keeps the list's nodes alive.
        unsafe { list.middle.check() };
    }

    fn element(random: &mut Random) -> Vec<u8> {
        let length = match random.below(20) {
            0 => 0,
            1 => LIST_PACKED_ELEMENT_BYTES_MAX + random.below(3) - 1,
            2 => LIST_PACKED_ELEMENT_BYTES_MAX * 2 + random.below(1000),
            3..6 => random.below(LIST_PACKED_ELEMENT_BYTES_MAX),
            6..10 => return random.below(100_000).to_string().into_bytes(),
            _ => random.below(20),
        };
        random.bytes(length)
    }

    /// One operation on both the list and its model.
    fn step(list: &mut List, model: &mut VecDeque<Vec<u8>>, attempt: &mut Attempt, random: &mut Random, growth: usize) {
        let side = if random.below(2) == 0 { Side::Front } else { Side::Back };
        match random.below(30 + growth) {
            0..8 => {
                let taken = list.pop(side, attempt, <[u8]>::to_vec);
                assert_eq!(taken, if side == Side::Front { model.pop_front() } else { model.pop_back() });
            }
            8..11 if !model.is_empty() => {
                let at = random.below(model.len());
                let element = element(random);
                list.set(at, &element, attempt);
                model[at] = element;
            }
            11..16 => {
                let at = random.below(model.len() + 1);
                let element = element(random);
                list.insert(at, &element, attempt);
                model.insert(at, element);
            }
            16..18 => {
                let start = random.below(model.len() + 1);
                let most = 1 + random.below(50);
                let end = start + random.below((model.len() - start + 1).min(most));
                list.remove_range(start..end, attempt);
                model.drain(start..end);
            }
            18 => {
                let keep = random.below(model.len() + 1);
                list.remove_range(0..model.len() - keep, attempt);
                model.drain(..model.len() - keep);
            }
            19 => {
                let keep = model.len() - random.below(model.len() + 1) / 4;
                list.remove_range(keep..model.len(), attempt);
                model.truncate(keep);
            }
            20 => {
                let letter = b'0' + random.below(75) as u8;
                let limit = if random.below(2) == 0 { usize::MAX } else { random.below(5) };
                let removed = list.remove_matching(side, limit, |element| element.first() == Some(&letter), attempt);
                let mut left = limit;
                let mut keep = |element: &Vec<u8>| {
                    let goes = element.first() == Some(&letter) && left > 0;
                    left -= usize::from(goes);
                    !goes
                };
                let before = model.len();
                if side == Side::Front {
                    model.retain(keep);
                } else {
                    let mut kept: VecDeque<_> = model.drain(..).rev().filter(|element| keep(element)).collect();
                    kept.make_contiguous().reverse();
                    *model = kept;
                }
                assert_eq!(removed, before - model.len());
            }
            21 => list.grow_encoding(1, 100, ListpackLimit::DEFAULT),
            22 => list.shrink_encoding(ListpackLimit::DEFAULT),
            _ => {
                for _ in 0..1 + random.below(8) {
                    let element = element(random);
                    list.push(side, &element, attempt);
                    if side == Side::Front { model.push_front(element) } else { model.push_back(element) }
                }
            }
        }
    }

    #[test]
    fn a_list_behaves_like_a_vector_and_so_do_its_snapshots() {
        for seed in seeds(20, 2000) {
            eprintln!("seed {seed}");
            let mut random = Random::new(seed);
            let growth = random.below(40);
            let mut ledger = Ledger::default();
            let (mut list, mut model) = (List::new(), VecDeque::new());
            // Older versions of the list, with what the newer ones replaced.
            let mut snapshots: VecDeque<(List, VecDeque<Vec<u8>>, Vec<NodePtr>)> = VecDeque::new();
            for _ in 0..400 {
                let (mut new, mut new_model) = (list.share(), model.clone());
                let attempt = ledger.begin();
                for _ in 0..1 + random.below(3) {
                    step(&mut new, &mut new_model, attempt, &mut random, growth);
                }
                if random.below(4) == 0 {
                    ledger.fail();
                } else {
                    let replaced = ledger.succeed();
                    snapshots.push_back((list, model, replaced));
                    (list, model) = (new, new_model);
                }
                if random.below(8) == 0 {
                    ledger.check(nodes(&list));
                    assert_same(&list, &model, &mut random);
                    for (list, model, _) in &snapshots {
                        assert_same(list, model, &mut random);
                    }
                }
                while snapshots.len() > 20 {
                    // The oldest snapshot goes, and with it what its successor replaced.
                    let (.., replaced) = snapshots.pop_front().expect("there are some");
                    Ledger::free(replaced);
                }
            }
            snapshots.into_iter().for_each(|(.., replaced)| Ledger::free(replaced));
            assert_same(&list, &model, &mut random);
            let copy = list.copy(ledger.begin());
            assert!(ledger.succeed().is_empty());
            assert_same(&copy, &model, &mut random);
            ledger.end(nodes(&list).into_iter().chain(nodes(&copy)));
        }
    }

    #[test]
    fn a_push_after_a_pop_never_touches_the_tree() {
        let mut ledger = Ledger::default();
        let mut list = List::new();
        for number in 0..100_000 {
            list.push_back(format!("element {number}").as_bytes(), ledger.begin());
            Ledger::free(ledger.succeed());
        }
        for _ in 0..2000 {
            list.pop_front(ledger.begin(), |_| ()).expect("there are elements");
            Ledger::free(ledger.succeed());
            list.push_front(b"element again", ledger.begin());
            assert!(ledger.attempt.copied_bytes() <= LIST_COPY_BYTES_MAX as u64, "{}", ledger.attempt.copied_bytes());
            Ledger::free(ledger.succeed());
        }
        ledger.end(nodes(&list));
    }

    /// With the small limits of checking builds the chunks' headers weigh more.
    #[cfg(not(any(caswell_loom, caswell_checking)))]
    #[test]
    fn small_elements_take_little_more_than_their_bytes() {
        let mut ledger = Ledger::default();
        let mut list = List::new();
        for number in 100_000..200_000 {
            list.push_back(number.to_string().as_bytes(), ledger.begin());
            Ledger::free(ledger.succeed());
        }
        // Six bytes each, and two for the length.
        let allocated = |list: &List| -> usize {
            // SAFETY: the test keeps the list's nodes alive.
            nodes(list).into_iter().map(|node| unsafe { node.bytes() }).sum()
        };
        let per_element = allocated(&list) as f64 / 100_000.0;
        assert!(per_element < 8.0 * 1.03, "{per_element}");
        let ratio = list.bytes() as f64 / allocated(&list) as f64;
        assert!((0.95..=1.0).contains(&ratio), "{ratio}");
        // A list that shrinks gives its memory back, from either end and from the middle.
        let mut middle = list.share();
        let attempt = ledger.begin();
        let removed = middle.remove_matching(Side::Front, usize::MAX, |element| !element.ends_with(b"00"), attempt);
        assert_eq!((removed, middle.len()), (99_000, 1000));
        assert!(allocated(&middle) < 1000 * 8 * 4 + 5 * 4096, "{}", allocated(&middle));
        ledger.fail();
        while list.len() > 10 {
            list.pop_front(ledger.begin(), |_| ()).expect("there are elements");
            Ledger::free(ledger.succeed());
        }
        assert!(allocated(&list) < 1024, "{}", allocated(&list));
        ledger.end(nodes(&list));
    }

    #[test]
    fn the_encoding_turns_at_the_limit_and_back_at_half_of_it() {
        let mut ledger = Ledger::default();
        let mut list = List::new();
        let limit = ListpackLimit::new(10);
        let attempt = ledger.begin();
        for number in 0..11 {
            assert!(list.is_listpack());
            list.grow_encoding(1, 1, limit);
            list.push_back(format!("{number}").as_bytes(), attempt);
        }
        assert!(!list.is_listpack());
        for _ in 0..6 {
            list.shrink_encoding(limit);
            assert!(!list.is_listpack());
            list.pop_back(attempt, |_| ()).expect("there are elements");
        }
        list.shrink_encoding(limit);
        assert!(list.is_listpack());
        ledger.fail();
    }
}
