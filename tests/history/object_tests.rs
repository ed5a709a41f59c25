//! The object's rules judged by hand-made histories: deadlines, and clients that wait.

use crate::linearizability::{Verdict, check};
use crate::object::Object;
use crate::operation::{Record, Request, Unit, words};
use crate::peer::Value;

const MS: u64 = 1_000_000;

/// A record of a client of its own: when it was called and answered in milliseconds, and the reply (`None`: not waited for).
fn record(client: usize, called: u64, returned: u64, request: Request, reply: Option<Value>) -> Record {
    let returned = reply.is_some().then_some(returned * MS);
    Record {
        client,
        connection: 0,
        worker: 0,
        request,
        waits_since: None,
        called: called * MS,
        returned,
        gone: None,
        reply,
    }
}

fn command(line: &str) -> Request {
    Request::Command(0, words(line))
}

fn take(timeout_ms: u64) -> Request {
    Request::Take { object: 0, key: "k".into(), command: "BLPOP", timeout_ms }
}

fn bulk(text: &str) -> Value {
    Value::Bulk(text.as_bytes().to_vec())
}

fn ok() -> Value {
    Value::Simple(b"OK".to_vec())
}

fn served(element: &str) -> Value {
    Value::Array(vec![bulk("k"), bulk(element)])
}

/// Whether there is an order; each record is `(called, returned, request, reply)`.
fn sound(records: Vec<(u64, u64, Request, Option<Value>)>) -> bool {
    sound_with(records, &[])
}

/// The same, where the first records' clients were seen to wait at these times.
fn sound_with(records: Vec<(u64, u64, Request, Option<Value>)>, waits_since: &[u64]) -> bool {
    let (mut object, nothing) = Object::new(&["k".into(), "l".into()]);
    for (client, (called, returned, request, reply)) in records.into_iter().enumerate() {
        let waits_since = waits_since.get(client).map(|since| since * MS);
        object.add(0, client, &Record { waits_since, ..record(client, called, returned, request, reply) });
    }
    match check(&object, &nothing, &object.history, 1_000_000) {
        Verdict::Linearizable => true,
        Verdict::Violation(_) => false,
        Verdict::Undecided => panic!("undecided"),
    }
}

#[test]
fn a_key_goes_at_its_deadline_and_not_before() {
    let set = || (1, 2, command("SET k v PX 10"), Some(ok()));
    let get = |called, returned, reply| (called, returned, command("GET k"), Some(reply));
    assert!(sound(vec![set(), get(3, 4, bulk("v"))]));
    assert!(sound(vec![set(), get(5, 12, Value::NullBulk)]));
    assert!(!sound(vec![set(), get(5, 9, Value::NullBulk)]), "gone before its time");
    assert!(!sound(vec![set(), get(11, 14, Value::NullBulk), get(15, 16, bulk("v"))]), "there again");
    assert!(!sound(vec![set(), get(60, 61, bulk("v"))]), "there long after its time");
    // A later SET takes the deadline away, and RENAME takes it along.
    assert!(!sound(vec![set(), (3, 4, command("SET k w"), Some(ok())), get(30, 31, Value::NullBulk)]));
    let rename = || (3, 4, command("RENAME k l"), Some(ok()));
    assert!(sound(vec![set(), rename(), (30, 31, command("GET l"), Some(Value::NullBulk))]));
    assert!(!sound(vec![set(), rename(), (5, 6, command("GET l"), Some(Value::NullBulk))]));
    // One that is not waited for may have set it, or not.
    let expire = || (3, 0, command("PEXPIRE k 10"), None);
    assert!(sound(vec![(1, 2, command("SET k v"), Some(ok())), expire(), get(30, 31, Value::NullBulk)]));
    assert!(sound(vec![(1, 2, command("SET k v"), Some(ok())), expire(), get(90, 91, bulk("v"))]));
}

#[test]
fn who_waits_first_is_served_first() {
    let push =
        |called, element: &str| (called, called + 1, command(&format!("RPUSH k {element}")), Some(Value::Integer(1)));
    let wait = |called, returned, element| (called, returned, take(50), Some(served(element)));
    assert!(sound(vec![wait(1, 9, "a"), push(3, "a")]));
    assert!(sound(vec![wait(1, 9, "a"), wait(1, 9, "b"), push(3, "b"), push(6, "a")]), "both came at once");
    // The first was seen to wait before the second came.
    let both = |first, second| vec![wait(1, 20, first), wait(4, 20, second), push(6, "a"), push(9, "b")];
    assert!(sound_with(both("a", "b"), &[3, 5]));
    assert!(!sound_with(both("b", "a"), &[3, 5]), "overtaken by another that waits");
    let popped = (6, 9, command("LPOP k"), Some(bulk("a")));
    let overtaken = || vec![wait(1, 20, "b"), push(5, "a"), popped.clone(), push(11, "b")];
    assert!(sound(overtaken()));
    assert!(!sound_with(overtaken(), &[3]), "overtaken by one that does not wait");
    assert!(!sound(vec![wait(1, 9, "a")]), "from nowhere");
    assert!(!sound(vec![wait(1, 4, "a"), wait(1, 4, "a"), push(2, "a")]), "given twice");
}

#[test]
fn nobody_waits_in_vain() {
    let in_vain = |called, returned, timeout| (called, returned, take(timeout), Some(Value::NullArray));
    let push = |called| (called, called + 1, command("RPUSH k a"), Some(Value::Integer(1)));
    assert!(sound(vec![in_vain(1, 12, 10)]));
    assert!(sound(vec![in_vain(1, 12, 10), push(20)]));
    assert!(sound(vec![in_vain(1, 30, 10), push(15)]), "pushed after its time was up");
    assert!(
        !sound(vec![in_vain(1, 12, 10), push(3), (20, 21, command("LLEN k"), Some(Value::Integer(1)))]),
        "never woken"
    );
    assert!(!sound(vec![push(1), in_vain(3, 14, 10)]), "there all the time");
    // An element that another took at once may be missed by who begins to wait late.
    assert!(sound(vec![in_vain(1, 12, 10), push(3), (5, 6, command("LPOP k"), Some(bulk("a")))]));
}

#[test]
fn a_unit_happens_at_once_or_not_at_all() {
    let unit = || Request::Several(0, vec![words("INCR k"), words("INCR k")], Unit::Exec);
    let answer = |first, second| Some(Value::Array(vec![Value::Integer(first), Value::Integer(second)]));
    let incr = |reply| (1, 9, command("INCR k"), Some(Value::Integer(reply)));
    assert!(sound(vec![(1, 9, unit(), answer(1, 2)), incr(3)]));
    assert!(!sound(vec![(1, 9, unit(), answer(1, 3)), incr(2)]));
    assert!(sound(vec![(1, 9, unit(), Some(Value::NullArray)), incr(1)]));
    assert!(!sound(vec![(1, 9, unit(), Some(Value::NullArray)), incr(3)]));
}

#[test]
fn a_flush_within_a_unit_meets_all_objects() {
    let unit = |object| Request::Several(object, vec![words("INCR x"), words("FLUSHDB")], Unit::Exec);
    let done = || Some(Value::Array(vec![Value::Integer(1), ok()]));
    let set = || (1, 2, command("SET k v"), Some(ok()));
    let get = |reply| (7, 8, command("GET k"), Some(reply));
    assert!(sound(vec![set(), (3, 4, unit(1), done()), get(Value::NullBulk)]));
    assert!(!sound(vec![set(), (3, 4, unit(1), done()), get(bulk("v"))]));
    assert!(sound(vec![set(), (3, 4, unit(1), Some(Value::NullArray)), get(bulk("v"))]));
}

#[test]
fn an_exchange_sees_what_it_read() {
    let exchange = |reply| (5, 9, Request::Exchange(0, "k".into(), Some(b"v".to_vec()), "w".into()), Some(reply));
    let set = |called, value: &str| (called, called + 1, command(&format!("SET k {value}")), Some(ok()));
    let done = || Value::Array(vec![ok()]);
    assert!(sound(vec![set(1, "v"), exchange(done()), (10, 11, command("GET k"), Some(bulk("w")))]));
    assert!(!sound(vec![set(1, "v"), set(3, "x"), exchange(done())]));
    assert!(sound(vec![
        set(1, "v"),
        set(3, "x"),
        exchange(Value::NullArray),
        (10, 11, command("GET k"), Some(bulk("x")))
    ]));
}
