//! The checker judged: by histories made by hand, and beside an independent implementation (`todc-utils`) on random ones.

use crate::linearizability::{Event, Specification, Verdict, check, reduce};
use caswell::random::Random;
use std::fmt::Debug;
use std::hash::Hash;

/// A number that is read, set and counted up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Register {
    Read(u8),
    Set(u8),
    /// Adds one and answers the sum.
    Add(u8),
}

use Register::{Add, Read, Set};

impl Register {
    fn after(self, state: u8) -> Option<u8> {
        match self {
            Read(seen) => (seen == state).then_some(state),
            Set(new) => Some(new),
            Add(sum) => (sum == state.wrapping_add(1)).then_some(sum),
        }
    }
}

struct OneRegister;

impl Specification for OneRegister {
    type State = u8;
    type Step = Register;
    fn apply(&self, state: &u8, step: &Register) -> Option<u8> {
        step.after(*state)
    }
    fn only_reads(&self, step: &Register) -> bool {
        matches!(step, Read(_))
    }
}

const STEPS_MAX: u64 = 1_000_000;

/// Events from called, answered (0: never) and step.
fn history<S: Copy>(events: &[(u64, u64, S)]) -> Vec<Event<S>> {
    let event = |(called, returned, step): &(u64, u64, S)| Event {
        step: *step,
        called: *called,
        ended: Some(*returned).filter(|returned| *returned > 0),
        is_certain: *returned > 0,
        after: None,
    };
    events.iter().map(event).collect()
}

fn verdict(events: &[(u64, u64, Register)]) -> Verdict {
    check(&OneRegister, &0, &history(events), STEPS_MAX)
}

fn violates(events: &[(u64, u64, Register)]) -> bool {
    matches!(verdict(events), Verdict::Violation(_))
}

#[test]
fn sound_histories_pass() {
    for sound in [
        &[][..],
        &[(1, 2, Set(1)), (3, 4, Read(1))],
        // Overlapping, so in either order.
        &[(1, 5, Set(1)), (2, 4, Read(0))],
        &[(1, 5, Set(1)), (2, 4, Read(1))],
        // At the very moment of an answer is still together with it.
        &[(1, 2, Set(1)), (2, 3, Read(0))],
        // Three writes, read in a turn that none of their beginnings tells.
        &[(1, 9, Set(1)), (1, 9, Set(2)), (1, 9, Set(3)), (2, 3, Read(3)), (4, 5, Read(2)), (6, 7, Read(1))],
        // Never answered: it happened late, or never.
        &[(1, 0, Set(1)), (2, 3, Read(0)), (8, 9, Read(1))],
        &[(1, 0, Set(1)), (2, 3, Read(0)), (8, 9, Read(0))],
        &[(1, 4, Add(2)), (2, 3, Add(1)), (5, 6, Read(2))],
    ] {
        assert_eq!(verdict(sound), Verdict::Linearizable, "{sound:?}");
    }
}

#[test]
fn violations_are_found() {
    for wrong in [
        // Stale, from nowhere, and back in time.
        &[(1, 2, Set(1)), (3, 4, Read(0))][..],
        &[(1, 2, Read(7))],
        &[(1, 9, Set(1)), (2, 3, Read(1)), (4, 5, Read(0))],
        // A lost update, and one that counted twice.
        &[(1, 4, Add(1)), (2, 3, Add(1))],
        &[(1, 4, Add(1)), (5, 6, Read(2))],
        // Unanswered, but seen and then unseen.
        &[(1, 0, Set(1)), (2, 3, Read(1)), (4, 5, Read(0))],
        // An unanswered addition counts once at most.
        &[(1, 0, Add(1)), (2, 3, Read(2))],
    ] {
        assert!(violates(wrong), "{wrong:?}");
    }
}

#[test]
fn what_could_happen_no_more_did_before_or_never() {
    let mut events = history(&[(1, 3, Set(1)), (4, 5, Read(0)), (6, 7, Read(1))]);
    events[0].is_certain = false;
    assert!(matches!(check(&OneRegister, &0, &events, STEPS_MAX), Verdict::Violation(_)));
    events[2].step = Read(0);
    assert_eq!(check(&OneRegister, &0, &events, STEPS_MAX), Verdict::Linearizable);
    // A read that fits at once, and again later, when what is uncertain has happened in between.
    let mut events = history(&[(1, 2, Add(1)), (3, 4, Set(1)), (5, 6, Read(1)), (7, 8, Add(2))]);
    events[1].is_certain = false;
    assert_eq!(check(&OneRegister, &0, &events, STEPS_MAX), Verdict::Linearizable);
    let mut events = history(&[(1, 3, Set(1)), (4, 5, Read(0)), (6, 7, Read(0))]);
    events[0].is_certain = false;
    events[0].ended = Some(5);
    assert_eq!(check(&OneRegister, &0, &events, STEPS_MAX), Verdict::Linearizable);
    events[2].step = Read(1);
    assert_eq!(check(&OneRegister, &0, &events, STEPS_MAX), Verdict::Linearizable);
}

#[test]
fn one_connection_is_served_in_order() {
    let mut events = history(&[(1, 4, Set(1)), (1, 5, Set(2)), (6, 7, Read(1))]);
    assert_eq!(check(&OneRegister, &0, &events, STEPS_MAX), Verdict::Linearizable);
    events[1].after = Some(0);
    assert!(matches!(check(&OneRegister, &0, &events, STEPS_MAX), Verdict::Violation(_)));
    // Also where what was asked for first is not known to have happened.
    let mut events = history(&[(1, 0, Read(7)), (1, 0, Set(2)), (6, 7, Read(2))]);
    events[1].after = Some(0);
    assert_eq!(check(&OneRegister, &0, &events, STEPS_MAX), Verdict::Linearizable);
}

#[test]
fn too_long_a_search_is_undecided() {
    let events = history(&[(1, 9, Set(1)), (1, 9, Set(2)), (2, 3, Read(2)), (4, 5, Read(1))]);
    assert_eq!(check(&OneRegister, &0, &events, 3), Verdict::Undecided);
}

#[test]
fn what_proves_nothing_is_left_out() {
    let mut events: Vec<_> = (0..50).map(|at| (10 * at + 1, 10 * at + 4, Add(at as u8 + 1))).collect();
    events.extend((0..50).map(|at| (10 * at + 6, 10 * at + 7, Read(at as u8 + 1))));
    // Between two that are sound: an addition that was lost.
    events.push((102, 103, Add(11)));
    let whole = history(&events);
    assert!(violates(&events));
    let reduced = reduce(&OneRegister, &0, &whole, STEPS_MAX);
    assert!(reduced.len() <= 13, "{reduced:?}");
    assert!(matches!(check(&OneRegister, &0, &reduced, STEPS_MAX), Verdict::Violation(_)));
}

/// A queue with unique elements, the object on which checkers go wrong most easily.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Queue {
    Push(u8),
    Pop(Option<u8>),
}

impl Queue {
    fn after(self, state: &[u8]) -> Option<Vec<u8>> {
        match self {
            Self::Push(element) => Some([state, &[element]].concat()),
            Self::Pop(None) => state.is_empty().then(Vec::new),
            Self::Pop(Some(element)) => state.strip_prefix(&[element]).map(<[u8]>::to_vec),
        }
    }
}

struct OneQueue;

impl Specification for OneQueue {
    type State = Vec<u8>;
    type Step = Queue;
    fn apply(&self, state: &Vec<u8>, step: &Queue) -> Option<Vec<u8>> {
        step.after(state)
    }
    fn only_reads(&self, step: &Queue) -> bool {
        matches!(step, Queue::Pop(None))
    }
}

impl todc_utils::Specification for OneRegister {
    type State = u8;
    type Operation = Register;
    fn init() -> u8 {
        0
    }
    fn apply(operation: &Register, state: &u8) -> (bool, u8) {
        operation.after(*state).map_or((false, *state), |state| (true, state))
    }
}

impl todc_utils::Specification for OneQueue {
    type State = Vec<u8>;
    type Operation = Queue;
    fn init() -> Vec<u8> {
        Vec::new()
    }
    fn apply(operation: &Queue, state: &Vec<u8>) -> (bool, Vec<u8>) {
        operation.after(state).map_or_else(|| (false, state.clone()), |state| (true, state))
    }
}

/// Whether the independent implementation finds an order. It knows no unanswered operations, so these histories have none.
fn independently<S>(history: &[Event<S::Operation>]) -> bool
where
    S: todc_utils::Specification,
    S::Operation: Copy,
{
    use todc_utils::Action::{Call, Response};
    let mut moments: Vec<(u64, bool, usize)> = Vec::new();
    for (event, one) in history.iter().enumerate() {
        moments.push((one.called, false, event));
        moments.push((one.ended.expect("it was answered"), true, event));
    }
    moments.sort_unstable();
    let action = |(_, is_answer, event): (u64, bool, usize)| {
        let step = history[event].step;
        (event, if is_answer { Response(step) } else { Call(step) })
    };
    todc_utils::WGLChecker::<S>::is_linearizable(todc_utils::History::from_actions(
        moments.into_iter().map(action).collect(),
    ))
}

/// Random histories of a few operations: run in some order, so most are sound, and then in part answered wrongly. Gives how many were of each kind.
fn compare<S, T, O>(specification: &S, initial: &T, seed: u64, step: impl Fn(&mut Random, &T, u8) -> O) -> [usize; 2]
where
    S: Specification<State = T, Step = O> + todc_utils::Specification<Operation = O>,
    T: Clone + Eq + Hash,
    O: Copy + Debug,
{
    let mut random = Random::from_seed(seed);
    let mut counts = [0; 2];
    for _ in 0..3_000 {
        let length = 2 + random.below(7);
        let mut state = initial.clone();
        let mut events = Vec::new();
        for at in 0..length {
            let step = step(&mut random, &state, at as u8);
            state = specification.apply(&state, &step).unwrap_or(state);
            // Around the moment of its turn; the wider the more overlap. Moments differ, as the other implementation takes no two at once.
            let turn = 100 * (at + 5);
            let called = turn - 1 - random.below(350);
            let returned = turn + 1 + random.below(350);
            events.push(Event {
                step,
                called: called * 16 + at,
                ended: Some(returned * 16 + at + 8),
                is_certain: true,
                after: None,
            });
        }
        let theirs = independently::<S>(&events);
        let ours = match check(specification, initial, &events, STEPS_MAX) {
            Verdict::Linearizable => true,
            Verdict::Violation(_) => false,
            Verdict::Undecided => panic!("undecided: {events:?}"),
        };
        assert_eq!(ours, theirs, "{events:?}");
        counts[usize::from(ours)] += 1;
    }
    counts
}

#[test]
fn verdicts_agree_with_an_independent_checker() {
    let seed = crate::seed();
    let register = compare(&OneRegister, &0, seed, |random, state, at| {
        let shown = if random.below(8) == 0 { random.below(4) as u8 } else { *state };
        match random.below(3) {
            0 => Read(shown),
            1 => Set(at % 4),
            _ => Add(shown + 1),
        }
    });
    let queue = compare(&OneQueue, &Vec::new(), seed, |random, state, at| {
        let first = state.first().copied();
        match random.below(2) {
            0 => Queue::Push(at),
            _ if random.below(8) == 0 => Queue::Pop(Some(at.wrapping_sub(1))),
            _ => Queue::Pop(first),
        }
    });
    println!("violations and sound histories: registers {register:?}, queues {queue:?}");
    assert!([register, queue].iter().flatten().all(|count| *count > 100), "one-sided: {register:?} {queue:?}");
}
