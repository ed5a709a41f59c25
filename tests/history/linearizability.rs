//! Is there an order of these operations that explains what each of them answered, and in which whoever was answered before another was called comes
//! first? The search of Wing and Gong (JPDC 1993) with Lowe's memory of the configurations that led nowhere (*Testing for linearizability*, 2017).
//!
//! The search has a bound. A history that it does not decide within that is reported as undecided, never as sound.

use std::collections::HashSet;
use std::hash::{DefaultHasher, Hash, Hasher};

/// What the operations do to one object, one at a time.
pub trait Specification {
    /// What the object holds.
    type State: Clone + Eq + Hash;
    /// An operation together with what it answered.
    type Step: Clone;
    /// The state after `step`, if it can happen in `state` with this answer.
    fn apply(&self, state: &Self::State, step: &Self::Step) -> Option<Self::State>;
    /// Whether the step leaves as it is every state in which it can happen with this answer. A history without it is no harder to explain.
    fn only_reads(&self, step: &Self::Step) -> bool;
}

/// One operation of a history.
#[derive(Clone, Debug)]
pub struct Event<S> {
    /// What it was.
    pub step: S,
    /// When it was called, on a clock that all events share.
    pub called: u64,
    /// When it was answered, or could not happen any more; `None`: it could at any time since it was called.
    pub ended: Option<u64>,
    /// Whether it happened. An event that is not certain may have happened, or not.
    pub is_certain: bool,
    /// The event that the same client asked for before it on one connection, if the server was to do them in order.
    pub after: Option<usize>,
}

/// What the search found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// There is such an order.
    Linearizable,
    /// There is none. The longest order that was found explains these events.
    Violation(Vec<usize>),
    /// The bound was reached.
    Undecided,
}

/// Searches for an order, applying at most `steps_max` steps.
pub fn check<S: Specification>(
    specification: &S,
    initial: &S::State,
    history: &[Event<S::Step>],
    steps_max: u64,
) -> Verdict {
    Search::new(specification, initial, history).run(steps_max)
}

/// A shorter history that is no more linearizable than this one, which is not: the shortest beginning, and without the reads that prove nothing.
/// Leaving out what came later, or what only read, can only make a history easier to explain.
pub fn reduce<S: Specification>(
    specification: &S,
    initial: &S::State,
    history: &[Event<S::Step>],
    steps_max: u64,
) -> Vec<Event<S::Step>> {
    let violates =
        |part: &[Event<S::Step>]| matches!(check(specification, initial, part, steps_max), Verdict::Violation(_));
    let mut moments: Vec<u64> = history.iter().filter_map(|event| event.ended).collect();
    moments.sort_unstable();
    let enough = moments.partition_point(|moment| !violates(&until(history, *moment)));
    let mut reduced = moments.get(enough).map_or_else(|| history.to_vec(), |moment| until(history, *moment));
    let mut at = reduced.len();
    while at > 0 {
        at -= 1;
        if specification.only_reads(&reduced[at].step) {
            let shorter = without(&reduced, |index| index != at);
            if violates(&shorter) {
                reduced = shorter;
            }
        }
    }
    reduced
}

/// The history as it stood at `moment`.
fn until<S: Clone>(history: &[Event<S>], moment: u64) -> Vec<Event<S>> {
    let mut part = without(history, |index| history[index].called <= moment);
    for event in &mut part {
        if event.ended.is_none_or(|ended| ended > moment) {
            (event.ended, event.is_certain) = (None, false);
        }
    }
    part
}

/// The history with only the events that `keep` picks.
fn without<S: Clone>(history: &[Event<S>], keep: impl Fn(usize) -> bool) -> Vec<Event<S>> {
    let mut places = vec![None; history.len()];
    let mut part: Vec<Event<S>> = Vec::new();
    for (index, event) in history.iter().enumerate() {
        // Who asked before one that is left out comes before who asked after it.
        let before = event.after.and_then(|before| places[before]);
        if keep(index) {
            places[index] = Some(part.len());
            part.push(Event { after: before, ..event.clone() });
        } else {
            places[index] = before;
        }
    }
    part
}

/// A moment of the history, in a doubly linked list from which what is explained is lifted out.
#[derive(Clone, Copy)]
struct Node {
    before: usize,
    next: usize,
}

/// A point of the search: what may come next, and what was taken.
struct Point<T> {
    /// In the order in which they are tried, the last one first.
    choices: Vec<usize>,
    taken: Option<Taken<T>>,
}

struct Taken<T> {
    event: usize,
    state_before: T,
    /// Uncertain events that were given up as never having happened, since this one was called after they could have.
    given_up: Vec<usize>,
}

struct Search<'h, S: Specification> {
    specification: &'h S,
    history: &'h [Event<S::Step>],
    /// By event: the one that must be explained before it.
    after: Vec<Option<usize>>,
    /// Event `e` is called at node `2e` and ends at node `2e + 1`; the last node is head and end of the list.
    nodes: Vec<Node>,
    head: usize,
    /// One bit for each event that is explained.
    explained: Box<[u64]>,
    /// Certain events that are not explained.
    left: usize,
    points: Vec<Point<S::State>>,
    state: S::State,
    longest: Vec<usize>,
    /// Fingerprints of what was explained and the state: 128 bits, so that two are never alike by chance. If ever they were, that would be a false alarm.
    seen: HashSet<u128>,
}

impl<'h, S: Specification> Search<'h, S> {
    fn new(specification: &'h S, initial: &S::State, history: &'h [Event<S::Step>]) -> Self {
        let head = 2 * history.len();
        // At the same moment calls come first: such events overlap.
        let mut moments: Vec<(u64, bool, usize)> = Vec::new();
        let mut after: Vec<Option<usize>> = Vec::new();
        for (event, one) in history.iter().enumerate() {
            // What only reads and need not have happened proves nothing.
            let matters = |one: &Event<S::Step>| one.is_certain || !specification.only_reads(&one.step);
            if matters(one) {
                moments.push((one.called, false, 2 * event));
                moments.extend(one.ended.map(|ended| (ended, true, 2 * event + 1)));
            }
            after.push(
                one.after.and_then(|before| if matters(&history[before]) { Some(before) } else { after[before] }),
            );
        }
        moments.sort_unstable();
        let mut nodes = vec![Node { before: head, next: head }; head + 1];
        let mut last = head;
        for (_, _, node) in moments {
            nodes[last].next = node;
            nodes[node].before = last;
            last = node;
        }
        nodes[last].next = head;
        nodes[head].before = last;
        Self {
            specification,
            history,
            after,
            nodes,
            head,
            explained: vec![0; history.len().div_ceil(64)].into_boxed_slice(),
            left: history.iter().filter(|event| event.is_certain).count(),
            points: Vec::new(),
            state: initial.clone(),
            longest: Vec::new(),
            seen: HashSet::new(),
        }
    }

    fn run(mut self, steps_max: u64) -> Verdict {
        let mut steps = 0;
        let first = self.choices();
        self.points.push(Point { choices: first, taken: None });
        while self.left > 0 {
            let Some(point) = self.points.last_mut() else { return Verdict::Violation(self.longest) };
            // Coming back to a point means that what was taken there was wrong.
            if let Some(taken) = point.taken.take() {
                self.undo(taken);
            }
            let Some(event) = self.points.last_mut().and_then(|point| point.choices.pop()) else {
                self.points.pop();
                continue;
            };
            steps += 1;
            if steps > steps_max {
                return Verdict::Undecided;
            }
            if self.explain(event) {
                let choices = self.choices();
                self.points.push(Point { choices, taken: None });
            }
        }
        Verdict::Linearizable
    }

    /// What may come next: events that were called before any certain event that is left had ended. A read that fits comes at once and alone, for it
    /// could be moved here from wherever else an order has it (unless that would pass what may have happened before it). Then certain events, the first to end first; uncertain ones last.
    fn choices(&self) -> Vec<usize> {
        let mut choices = Vec::new();
        // Whether taking what follows means that something never happened.
        let mut gives_up = false;
        let mut node = self.nodes[self.head].next;
        while node != self.head {
            let event = node / 2;
            let one = &self.history[event];
            if node % 2 == 1 {
                if one.is_certain {
                    break;
                }
                gives_up = true;
            } else if self.after[event].is_none_or(|before| self.is_explained(before)) {
                if one.is_certain
                    && !gives_up
                    && self.specification.only_reads(&one.step)
                    && self.specification.apply(&self.state, &one.step).is_some()
                {
                    return vec![event];
                }
                choices.push(event);
            }
            node = self.nodes[node].next;
        }
        choices.sort_unstable_by_key(|event| {
            let one = &self.history[*event];
            std::cmp::Reverse((!one.is_certain, one.ended, *event))
        });
        choices
    }

    fn is_explained(&self, event: usize) -> bool {
        self.explained[event / 64] & 1 << (event % 64) != 0
    }

    /// Takes the event as the next one, if it can be and that leads to where the search has not been.
    fn explain(&mut self, event: usize) -> bool {
        let one = &self.history[event];
        let Some(state) = self.specification.apply(&self.state, &one.step) else { return false };
        self.explained[event / 64] |= 1 << (event % 64);
        if !self.seen.insert(fingerprint(&(&self.explained, &state))) {
            self.explained[event / 64] &= !(1 << (event % 64));
            return false;
        }
        let state_before = std::mem::replace(&mut self.state, state);
        let mut given_up = Vec::new();
        let mut node = self.nodes[self.head].next;
        while node != 2 * event {
            if node % 2 == 1 {
                given_up.push(node / 2);
            }
            node = self.nodes[node].next;
        }
        given_up.iter().for_each(|uncertain| self.lift(*uncertain));
        self.lift(event);
        self.left -= usize::from(one.is_certain);
        let point = self.points.last_mut().expect("the search is at a point");
        point.taken = Some(Taken { event, state_before, given_up });
        if self.points.len() > self.longest.len() {
            self.longest =
                self.points.iter().filter_map(|point| point.taken.as_ref()).map(|taken| taken.event).collect();
        }
        true
    }

    fn undo(&mut self, taken: Taken<S::State>) {
        self.state = taken.state_before;
        self.explained[taken.event / 64] &= !(1 << (taken.event % 64));
        self.left += usize::from(self.history[taken.event].is_certain);
        self.drop_in(taken.event);
        taken.given_up.iter().rev().for_each(|uncertain| self.drop_in(*uncertain));
    }

    /// Takes an event out of the list.
    fn lift(&mut self, event: usize) {
        self.unlink(2 * event);
        if self.history[event].ended.is_some() {
            self.unlink(2 * event + 1);
        }
    }

    /// Puts back the event that was taken out last.
    fn drop_in(&mut self, event: usize) {
        if self.history[event].ended.is_some() {
            self.link(2 * event + 1);
        }
        self.link(2 * event);
    }

    fn unlink(&mut self, node: usize) {
        let Node { before, next } = self.nodes[node];
        self.nodes[before].next = next;
        self.nodes[next].before = before;
    }

    fn link(&mut self, node: usize) {
        let Node { before, next } = self.nodes[node];
        self.nodes[before].next = node;
        self.nodes[next].before = node;
    }
}

fn fingerprint(value: &impl Hash) -> u128 {
    let half = |salt: u8| {
        let mut hasher = DefaultHasher::new();
        (salt, value).hash(&mut hasher);
        u128::from(hasher.finish())
    };
    half(0) << 64 | half(1)
}
