//! Commands that wait: how a client waits for keys, and how a writer serves it.
//!
//! A blocked client is data in the store's internal database: a *state* under the client's id, and interest in each of its keys
//! (`txn/interest.rs`). Blocking writes both, in the very commit that found the keys empty. A writer that gives a hooked key a value runs the
//! waiting commands again, in the order of arrival, inside its own transaction, so that what it wrote and who took it become visible at one moment: no other
//! client can come between (rule 23). It leaves the reply as the client's new state, and the client's own worker sends it. Time-out, disconnection and CLIENT
//! UNBLOCK are transactions over the state too: whichever commits first has the client.
//!
//! ```text
//! state:  WAITING | protocol | database | positions of the keys | the command line      -> SERVED | reply
//!                                                                                       -> GIVEN_UP | error line or nothing
//! ```

use super::args::Args;
use super::error::CommandError;
use super::float_text::{self, LongDouble};
use super::spec::Handler;
use super::string_value::{self, StringValue};
use super::table::Table;
use crate::resp::{Protocol, Reply};
use crate::txn::{Interest, KeyId, Otherwise, Transaction, Wait};
use crate::types::{StringEncoding, View};
use rustc_apfloat::{Float, Round, Status};
use std::collections::BTreeSet;
use std::ops::Range;

/// First byte of the internal database's keys that hold a blocked client's state; the client's id follows.
const STATE_PREFIX: u8 = b'c';

const WAITING: u8 = b'w';
const SERVED: u8 = b's';
const GIVEN_UP: u8 = b'g';

/// The longest time-out: added to the present time, until the year 2109, it is still a time in 63 bits.
const TIMEOUT_MS_MAX: i128 = (i64::MAX - (1 << 42)) as i128;

/// A client that blocks.
#[derive(Clone, Copy, Debug)]
pub struct Waiter {
    /// Its id.
    pub client: u64,
    /// The protocol version of its replies.
    pub protocol: Protocol,
}

/// What has come of a blocked client's wait.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It goes on waiting.
    Waiting,
    /// Its command has run, with this reply.
    Served(Vec<u8>),
    /// It is to answer as after a time-out, or with this error line.
    GivenUp(Vec<u8>),
}

/// A waiting command.
struct Request {
    protocol: Protocol,
    database: usize,
    keys: Range<usize>,
    words: Vec<Vec<u8>>,
}

impl Request {
    fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = vec![WAITING, u8::from(self.protocol == Protocol::Resp3)];
        for number in [self.database, self.keys.start, self.keys.end] {
            bytes.extend_from_slice(&(number as u32).to_le_bytes());
        }
        for word in &self.words {
            bytes.extend_from_slice(&(word.len() as u32).to_le_bytes());
            bytes.extend_from_slice(word);
        }
        bytes
    }

    fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let [WAITING, is_resp3, rest @ ..] = bytes else { return None };
        let mut rest = rest;
        let number = |rest: &mut &[u8]| {
            let (first, others) = rest.split_first_chunk::<4>()?;
            *rest = others;
            Some(u32::from_le_bytes(*first) as usize)
        };
        let (database, start, end) = (number(&mut rest)?, number(&mut rest)?, number(&mut rest)?);
        let mut words = Vec::new();
        while !rest.is_empty() {
            let length = number(&mut rest)?;
            let (word, others) = rest.split_at_checked(length)?;
            words.push(word.to_vec());
            rest = others;
        }
        let protocol = if *is_resp3 == 1 { Protocol::Resp3 } else { Protocol::Resp2 };
        Some(Self { protocol, database, keys: start..end, words })
    }

    /// Its keys, each once.
    fn keys(&self) -> BTreeSet<&[u8]> {
        self.words[self.keys.clone()].iter().map(Vec::as_slice).collect()
    }
}

/// Blocks a client on the command that it has just run in vain: part of that command's own attempt.
pub fn register(tx: &mut Transaction<'_>, waiter: Waiter, args: &Args<'_>, wait: &Wait) {
    let request = Request {
        protocol: waiter.protocol,
        database: tx.database(),
        keys: wait.keys.clone(),
        words: args.from(0).iter().map(|word| word.to_vec()).collect(),
    };
    set_state(tx, waiter.client, &request.to_bytes());
    for key in request.keys() {
        let key = tx.open(key);
        tx.add_interest(key, Interest::WaitingForList(waiter.client));
    }
}

/// Runs the commands that wait for what this attempt has written, in the order of arrival, until none can be served any more. Called after
/// a command's last step, within its attempt; cheap where nobody waits.
pub fn serve(tx: &mut Transaction<'_>, table: &Table) {
    // Ends because each round but the last takes a client off the lists.
    while tx.hooked_and_written().into_iter().any(|key| serve_key(tx, table, key)) {}
}

/// Serves those who wait for one key, as far as its value goes; whether anybody was served.
pub fn serve_key(tx: &mut Transaction<'_>, table: &Table, key: KeyId) -> bool {
    let mut any = false;
    for interest in tx.interests(key) {
        let is_list = matches!(tx.root(key).and_then(|root| root.view()), Some(View::List(_)));
        match interest {
            Interest::WaitingForList(client) if is_list => any |= serve_client(tx, table, client),
            _ => {}
        }
    }
    any
}

/// Runs a waiting client's command once more; whether it need wait no longer.
fn serve_client(tx: &mut Transaction<'_>, table: &Table, client: u64) -> bool {
    let state = open_state(tx, client);
    let Some(request) = read_state(tx, state).and_then(|bytes| Request::from_bytes(&bytes)) else { return false };
    let items: Vec<&[u8]> = request.words.iter().map(Vec::as_slice).collect();
    let args = Args::new(&items);
    let Some(Handler::Data(handler)) = table.find_line(&args).map(|command| command.row.handler) else { return false };
    let mut reply = Reply::new(request.protocol);
    let (database, may_wait) = (tx.database(), tx.may_wait());
    tx.select(request.database);
    tx.allow_waiting(true);
    let result = handler(tx, &args, &mut reply);
    let still_waits = tx.take_wait().is_some();
    if !still_waits {
        if let Err(error) = result {
            reply.clear();
            reply.error(&error);
        }
        forget(tx, client, &request);
        set_state(tx, client, &[&[SERVED], reply.to_vec().as_slice()].concat());
        tx.wake(client);
    }
    tx.select(database);
    tx.allow_waiting(may_wait);
    !still_waits
}

/// What has come of a client's wait; its state is removed unless it goes on waiting.
pub fn collect(tx: &mut Transaction<'_>, client: u64) -> Outcome {
    let state = open_state(tx, client);
    let outcome = match read_state(tx, state) {
        Some(bytes) => match bytes.split_first() {
            Some((&WAITING, _)) => return Outcome::Waiting,
            Some((&SERVED, reply)) => Outcome::Served(reply.to_vec()),
            Some((_, error)) => Outcome::GivenUp(error.to_vec()),
            None => Outcome::GivenUp(Vec::new()),
        },
        None => Outcome::GivenUp(Vec::new()),
    };
    tx.delete(state);
    outcome
}

/// Ends a client's wait, if it has not been served meanwhile: then its outcome is what came first.
pub fn cancel(tx: &mut Transaction<'_>, client: u64) -> Outcome {
    give_up(tx, client, &[]);
    collect(tx, client)
}

/// Makes a client that waits give up, as after a time-out or with an error line; whether it waited.
pub fn give_up(tx: &mut Transaction<'_>, client: u64, error: &[u8]) -> bool {
    let state = open_state(tx, client);
    let Some(request) = read_state(tx, state).and_then(|bytes| Request::from_bytes(&bytes)) else { return false };
    forget(tx, client, &request);
    set_state(tx, client, &[&[GIVEN_UP], error].concat());
    tx.wake(client);
    true
}

/// What a command answers that has waited in vain, or was not allowed to wait.
pub fn answer_otherwise(otherwise: Otherwise, reply: &mut Reply) {
    match otherwise {
        Otherwise::NullArray => reply.null_array(),
        Otherwise::Zero => reply.integer(0),
    }
}

/// The time-out of a blocking command, in milliseconds: a number of seconds, rounded up; `None`, for ever, where it is zero.
pub fn timeout_ms(text: &[u8]) -> Result<Option<u64>, CommandError> {
    let seconds = float_text::parse(text).filter(|seconds| !seconds.is_nan());
    let seconds = seconds.ok_or(CommandError::err("timeout is not a float or out of range"))?;
    let thousand = LongDouble::from_u128(1000).value;
    let milliseconds = (seconds * thousand).value.to_i128_r(64, Round::TowardPositive, &mut false);
    let is_number = !milliseconds.status.contains(Status::INVALID_OP);
    // What is no whole number of 64 bits may be negative all the same.
    let milliseconds = if is_number {
        milliseconds.value
    } else if seconds.is_negative() {
        -1
    } else {
        i128::MAX
    };
    checked_timeout_ms(milliseconds)
}

/// A time-out given in milliseconds, checked as all are; `None`, for ever, where it is zero.
pub fn checked_timeout_ms(milliseconds: i128) -> Result<Option<u64>, CommandError> {
    match milliseconds {
        ..0 => Err(CommandError::err("timeout is negative")),
        0 => Ok(None),
        1..=TIMEOUT_MS_MAX => Ok(Some(milliseconds as u64)),
        _ => Err(CommandError::err("timeout is out of range")),
    }
}

/// Instead of a reply: waits, or answers that there is nothing where waiting is not allowed.
pub fn wait_or_answer(tx: &mut Transaction<'_>, wait: Wait, reply: &mut Reply) {
    if tx.may_wait() {
        tx.wait_for(wait);
    } else {
        answer_otherwise(wait.otherwise, reply);
    }
}

/// Takes a client off the lists of its keys.
fn forget(tx: &mut Transaction<'_>, client: u64, request: &Request) {
    for key in request.keys() {
        let key = tx.open_in(request.database, key);
        tx.remove_interest(key, Interest::WaitingForList(client));
    }
}

fn open_state(tx: &mut Transaction<'_>, client: u64) -> KeyId {
    let mut name = [STATE_PREFIX; 9];
    name[1..].copy_from_slice(&client.to_le_bytes());
    tx.open_internal(&name)
}

fn read_state(tx: &Transaction<'_>, state: KeyId) -> Option<Vec<u8>> {
    let value = StringValue::of(tx.root(state)?).ok()?;
    Some(value.bytes(&mut itoa::Buffer::new()).into_owned())
}

fn set_state(tx: &mut Transaction<'_>, client: u64, bytes: &[u8]) {
    let state = open_state(tx, client);
    let value = string_value::from_parts(&[bytes], StringEncoding::Raw, None, tx.attempt());
    tx.set(state, value);
}
