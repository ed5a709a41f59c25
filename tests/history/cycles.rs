//! Looks for dependencies that go round in a circle, and names what each circle means (Adya's phenomena, as Elle names them).

use crate::transactions::{Because, Dependencies, Oddity, Transaction, dependencies};
use std::collections::VecDeque;
use std::fmt::Write;

/// What is wrong with a history of transactions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Anomaly {
    /// A circle of overwritten writes.
    G0,
    /// A read of what was aborted.
    G1a,
    /// A read of what its own writer overwrote.
    G1b,
    /// A circle of overwritten and read writes.
    G1c,
    /// A circle with one read that missed a write.
    GSingle,
    /// A circle with several reads that missed writes.
    G2,
    /// A transaction that contradicts itself.
    Internal,
    /// Values from nowhere, lists that contradict each other, lengths that are no places.
    Incoherent,
}

/// A finding, in words.
#[derive(Clone, Debug)]
pub struct Finding {
    /// What it is.
    pub anomaly: Anomaly,
    /// Whether the circle needs the order of real time or of a connection.
    pub needs_outer_order: bool,
    /// The transactions and the reasons.
    pub story: String,
}

/// Judges a history; what is wrong with it, if anything is.
pub fn check(history: &[Transaction]) -> Result<(), Finding> {
    let found = dependencies(history).map_err(|oddity| told(history, &oddity))?;
    let Some(component) = components(&found).into_iter().find(|component| component.len() > 1) else { return Ok(()) };
    // Circles that the data alone show come before those that need the order of time; of either, from the gravest to the lightest.
    for needs_outer_order in [false, true] {
        let order = |because: &Because| needs_outer_order && because.is_outer();
        let wrote = |because: &Because| matches!(because, Because::WriteWrite(_));
        let read = |because: &Because| matches!(because, Because::WriteRead(_));
        let missed = |because: &Because| matches!(because, Because::ReadWrite(_));
        let writes = |because: &Because| order(because) || wrote(because);
        let seen = |because: &Because| writes(because) || read(because);
        let all = |because: &Because| seen(because) || missed(because);
        // Which reason the circle begins with, and which it may go on with.
        let kinds: [(Anomaly, Allowed<'_>, Allowed<'_>); 4] = [
            (Anomaly::G0, &wrote, &writes),
            (Anomaly::G1c, &read, &seen),
            (Anomaly::GSingle, &missed, &seen),
            (Anomaly::G2, &missed, &all),
        ];
        for (anomaly, first, others) in kinds {
            if let Some(circle) = smallest_circle(&found, &component, first, others) {
                return Err(tell_circle(history, &found, anomaly, needs_outer_order, &circle));
            }
        }
    }
    unreachable!("a component of several transactions has a circle")
}

/// Which reasons may be followed.
type Allowed<'a> = &'a dyn Fn(&Because) -> bool;

/// The smallest circle within a component that begins with a reason of one kind and goes on with reasons of another.
fn smallest_circle(
    found: &Dependencies,
    component: &[usize],
    first: Allowed<'_>,
    others: Allowed<'_>,
) -> Option<Vec<usize>> {
    let is_in = |at: usize| component.binary_search(&at).is_ok();
    let begin = |at: usize| found.edges[at].iter().filter(|(_, because)| first(because)).map(move |(to, _)| (at, *to));
    let edges = component.iter().flat_map(|at| begin(*at)).filter(|(_, to)| is_in(*to));
    // The way back begins with the edge's end, and ends with its beginning.
    edges.filter_map(|(from, to)| way(found, &is_in, to, from, others)).min_by_key(Vec::len)
}

/// The shortest way from one transaction to another within a component, both ends included.
fn way(
    found: &Dependencies,
    is_in: &dyn Fn(usize) -> bool,
    from: usize,
    to: usize,
    allowed: Allowed<'_>,
) -> Option<Vec<usize>> {
    let mut came_from = vec![usize::MAX; found.edges.len()];
    let mut queue = VecDeque::from([from]);
    came_from[from] = from;
    while let Some(at) = queue.pop_front() {
        if at == to {
            let mut way = vec![to];
            while way[way.len() - 1] != from {
                way.push(came_from[way[way.len() - 1]]);
            }
            way.reverse();
            return Some(way);
        }
        for (next, because) in &found.edges[at] {
            if is_in(*next) && came_from[*next] == usize::MAX && allowed(because) {
                came_from[*next] = at;
                queue.push_back(*next);
            }
        }
    }
    None
}

/// The strongly connected components (Tarjan, SIAM J. Comput. 1972), each in growing order.
fn components(found: &Dependencies) -> Vec<Vec<usize>> {
    const UNSEEN: usize = usize::MAX;
    let count = found.edges.len();
    let (mut number, mut low, mut on_stack) = (vec![UNSEEN; count], vec![UNSEEN; count], vec![false; count]);
    let (mut stack, mut done, mut next_number) = (Vec::new(), Vec::new(), 0);
    for root in 0..count {
        if number[root] != UNSEEN {
            continue;
        }
        // The calls of the recursive form: a transaction and its edges that are still to be looked at.
        let mut calls: Vec<(usize, Vec<usize>)> = Vec::new();
        let mut enter = Some(root);
        loop {
            if let Some(at) = enter.take() {
                (number[at], low[at], on_stack[at]) = (next_number, next_number, true);
                next_number += 1;
                stack.push(at);
                calls.push((at, found.edges[at].keys().copied().collect()));
            }
            let Some((at, rest)) = calls.last_mut() else { break };
            let at = *at;
            match rest.pop() {
                Some(next) if number[next] == UNSEEN => enter = Some(next),
                Some(next) => {
                    if on_stack[next] {
                        low[at] = low[at].min(number[next]);
                    }
                }
                None => {
                    calls.pop();
                    if let Some((caller, _)) = calls.last() {
                        low[*caller] = low[*caller].min(low[at]);
                    }
                    if low[at] == number[at] {
                        let begin = stack.iter().rposition(|one| *one == at).expect("it was pushed");
                        let mut component = stack.split_off(begin);
                        component.iter().for_each(|one| on_stack[*one] = false);
                        component.sort_unstable();
                        done.push(component);
                    }
                }
            }
        }
    }
    done
}

fn tell_circle(
    history: &[Transaction],
    found: &Dependencies,
    anomaly: Anomaly,
    needs_outer_order: bool,
    circle: &[usize],
) -> Finding {
    let mut story = format!(
        "{anomaly:?}: {} transactions of which each comes before the next, and the last before the first",
        circle.len()
    );
    for (place, at) in circle.iter().enumerate() {
        let next = circle[(place + 1) % circle.len()];
        let because = &found.edges[*at][&next];
        // Writing to a string cannot fail.
        let _ = write!(
            story,
            "\n  T{place}: {}\n    before T{} ({because})",
            history[*at].note,
            (place + 1) % circle.len()
        );
    }
    Finding { anomaly, needs_outer_order, story }
}

fn told(history: &[Transaction], oddity: &Oddity) -> Finding {
    let (anomaly, at, what) = match oddity {
        Oddity::Internal(at, what) => (Anomaly::Internal, at, what),
        Oddity::AbortedRead(at, what) => (Anomaly::G1a, at, what),
        Oddity::IntermediateRead(at, what) => (Anomaly::G1b, at, what),
        Oddity::Phantom(at, what) | Oddity::Incompatible(at, what) | Oddity::WrongLength(at, what) => {
            (Anomaly::Incoherent, at, what)
        }
    };
    let story = format!("{anomaly:?}: {what}\n  {}", history[*at].note);
    Finding { anomaly, needs_outer_order: false, story }
}
