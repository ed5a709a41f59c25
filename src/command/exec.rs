//! EXEC: runs queued commands as one transaction, and the keys watched for it.
//!
//! All data commands of the queue run in one attempt of one transaction, so they see each other's writes, and nobody sees some of them without the others.
//! An attempt that loses a race runs again from the first command. What is not about data (CONFIG, PUBLISH, CLIENT ...) runs once, after the commit, and its
//! reply is put in its place. A queue with a command about the whole keyspace (FLUSHALL, KEYS ...) runs under the gate instead, one command after the other:
//! nobody can look between.
//!
//! A watched key is a member of the transaction like a key that was read; what is compared is its stamp, which no two values share. A key that
//! had no value when it was watched is hooked meanwhile, so that its entry stays and keeps the stamp of whatever comes and goes (rule 24).

use super::args::Args;
use super::blocking;
use super::context::Context;
use super::dispatch::{publish_events, show_to_monitors};
use super::error::{CommandError, CommandResult};
use super::family::connection::protocol_after_hello;
use super::family::tracking::tracked_keys;
use super::scripting::{Outcome, Plan, Scripting};
use super::spec::{Flags, Handler};
use super::table::Command;
use crate::resp::{Protocol, Reply};
use crate::server::Server;
use crate::server::statistics::BatchTimer;
use crate::session::{Queue, Watched};
use crate::store::Worker;
use crate::sync::planted;
use crate::txn::{Events, Interest, RuntimeLimits, Scratch, Transaction};
use bytes::Bytes;
use smallvec::SmallVec;
use std::collections::BTreeSet;

/// One queued command, looked up.
struct Step<'a> {
    command: &'a Command,
    args: Args<'a>,
    /// What it runs, if it runs a script.
    script: Option<Result<Plan, CommandError>>,
    /// The code of the error that it ended with, in the attempt made last.
    error: Option<&'static str>,
}

impl Step<'_> {
    /// Whether it is a step of the attempt: about data, or a script.
    fn is_data(&self) -> bool {
        matches!(self.command.row.handler, Handler::Data(_) | Handler::Script(_))
    }

    /// Runs a data command or a script within an attempt.
    fn run(&mut self, tx: &mut Transaction<'_>, scripting: &mut Option<Scripting<'_>>, reply: &mut Reply) -> Outcome {
        let mark = reply.mark();
        self.error = None;
        let result = match (self.command.row.handler, &self.script, scripting) {
            (Handler::Data(handler), ..) => handler(tx, &self.args, reply).map(|()| Outcome::Done),
            (_, Some(Ok(plan)), Some(scripting)) => scripting.step(plan, tx, &self.args, reply),
            (_, Some(Err(error)), _) => Err(error.clone()),
            _ => return Outcome::Done,
        };
        result.unwrap_or_else(|error| {
            reply.rewind(mark);
            reply.error(&error);
            self.error = Some(error.code);
            Outcome::Done
        })
    }
}

/// EXEC.
pub fn exec(context: &mut Context<'_>, _: &Args<'_>, reply: &mut Reply) -> CommandResult {
    let Some(queue) = context.session.multi.take() else { return Err(CommandError::err("EXEC without MULTI")) };
    let watched = std::mem::take(&mut context.session.watched);
    let result = if queue.is_refused {
        Err(CommandError::with_code("EXECABORT", "Transaction discarded because of previous errors."))
    } else {
        run(context, &queue, &watched, reply)
    };
    context.session.note_transaction();
    unwatch(context.worker, context.scratch, context.session.client.id, &watched);
    result
}

/// What EXEC answers when it cannot run because of another error.
pub(super) fn aborted_because(error: &CommandError) -> CommandError {
    let code = if error.code == "ERR" { String::new() } else { format!("{} ", error.code) };
    let message = [b"Transaction discarded because of: ", code.as_bytes(), &error.message].concat();
    CommandError { code: "EXECABORT", message: message.into() }
}

fn run(context: &mut Context<'_>, queue: &Queue, watched: &[Watched], reply: &mut Reply) -> CommandResult {
    let server = context.server.clone();
    let arguments = queue.arguments();
    let mut steps = Vec::with_capacity(queue.len());
    for args in queue.commands(&arguments) {
        let command = context.table.resolve(&args)?;
        let script = match command.row.handler {
            Handler::Script(planner) => Some(planner(context, &args)),
            _ => None,
        };
        steps.push(Step { command, args, script, error: None });
    }
    if server.memory_is_full() && steps.iter().any(|step| step.command.row.flags.has(Flags::DENYOOM)) {
        return Err(aborted_because(&CommandError::OUT_OF_MEMORY));
    }
    let limits = RuntimeLimits::from(&server.settings);
    let worker = context.session.client.worker;
    let mut timer = server.statistics.begin_batch(worker, server.settings.latency_tracking.get());
    let mut scripting = match steps.iter().any(|step| step.script.is_some()) {
        true => Some(Scripting::begin(context, false)?),
        false => None,
    };
    if steps.iter().any(|step| step.command.row.whole_keyspace) || planted("exec_separate_commits") {
        return run_alone(context, &mut steps, scripting, watched, limits, &mut timer, reply);
    }
    let database = context.session.database();
    let mark = reply.mark();
    // Where all are data commands, their replies go where they belong at once.
    let is_plain = steps.iter().all(Step::is_data);
    let mut pieces: Vec<Reply> = Vec::new();
    // How many events come before each command that runs after the commit.
    let mut events_before: Vec<usize> = Vec::new();
    let tracked: Vec<Bytes> = match context.session.is_tracking {
        true => {
            steps.iter().flat_map(|step| tracked_keys(&server, context.session, step.command, &step.args)).collect()
        }
        false => Vec::new(),
    };
    server.remember_reads(worker, context.session.client.id, &tracked);
    let mut tx = Transaction::new(context.worker, context.scratch, database, limits);
    let mut outcome = Outcome::Done;
    let unchanged = tx.run(|tx| {
        reply.rewind(mark);
        pieces.clear();
        events_before.clear();
        tx.select(database);
        outcome = Outcome::Done;
        if !watched.iter().all(|watched| is_unchanged(tx, watched)) {
            return false;
        }
        prefetch(tx, &steps);
        reply.array(steps.len());
        let mut protocol = reply.protocol();
        for step in &mut steps {
            if is_plain {
                outcome = step.run(tx, &mut scripting, reply);
            } else if step.is_data() {
                let mut piece = Reply::new(protocol);
                outcome = step.run(tx, &mut scripting, &mut piece);
                pieces.push(piece);
            } else {
                events_before.push(tx.event_count());
                if let Some(database) = selects(step, tx.databases()) {
                    tx.select(database);
                }
                protocol = speaks(&server, step).unwrap_or(protocol);
            }
            if outcome != Outcome::Done {
                // The attempt has been abandoned with all that the steps before did.
                return true;
            }
        }
        if tx.has_hooked() && !planted("wakeup_lost") {
            blocking::serve(tx, context.table);
        }
        true
    });
    server.clients.wake(&tx.take_wakes());
    // Before it tells of its own writes, which take readers off the table.
    server.confirm_reads(worker, context.session.client.id, &tracked);
    let events = if is_plain { None } else { tx.take_events() };
    publish_events(&server, context.worker, &context.session.client, &mut tx);
    drop(tx);
    if outcome == Outcome::WantsGate {
        reply.rewind(mark);
        return run_alone(context, &mut steps, scripting, watched, limits, &mut timer, reply);
    }
    if let Some(scripting) = scripting {
        scripting.end(context);
    }
    if outcome == Outcome::Killed {
        reply.rewind(mark);
        return Err(CommandError::with_code("EXECABORT", "Transaction discarded because of: a script was killed."));
    }
    if !unchanged {
        reply.null_array();
        return Ok(());
    }
    let mut pieces = pieces.into_iter();
    let mut events = events.iter().flat_map(Events::iter);
    let mut events_before = events_before.into_iter();
    let mut published = 0;
    for step in &mut steps {
        timer.command_starts(step.command.index, step.command.is_quick);
        if !step.is_data() {
            // A message that the command publishes comes after the events of those before it.
            let before = events_before.next().unwrap_or(published);
            server.publish_events(worker, events.by_ref().take(before - published));
            published = before;
            run_server_step(context, step, reply);
        } else if !is_plain && let Some(mut piece) = pieces.next() {
            reply.append(&mut piece);
        }
        show(context, step);
        count(step, &mut timer);
    }
    server.publish_events(worker, events);
    Ok(())
}

/// Runs the commands one after the other, while nobody else can do anything.
fn run_alone(
    context: &mut Context<'_>,
    steps: &mut [Step<'_>],
    mut scripting: Option<Scripting<'_>>,
    watched: &[Watched],
    limits: RuntimeLimits,
    timer: &mut BatchTimer<'_>,
    reply: &mut Reply,
) -> CommandResult {
    let _gate = (!planted("exec_separate_commits")).then(|| context.worker.hold_gate());
    let mut tx = Transaction::new(context.worker, context.scratch, context.session.database(), limits);
    let unchanged = tx.run(|tx| watched.iter().all(|watched| is_unchanged(tx, watched)));
    drop(tx);
    if !unchanged {
        if let Some(scripting) = scripting {
            scripting.end(context);
        }
        reply.null_array();
        return Ok(());
    }
    reply.array(steps.len());
    for step in steps {
        timer.command_starts(step.command.index, step.command.is_quick);
        if let (Some(Ok(plan)), Some(scripting)) = (&step.script, &mut scripting) {
            scripting.run_alone(plan, context, &step.args, reply);
        } else if step.is_data() {
            let mark = reply.mark();
            let mut tx = Transaction::new(context.worker, context.scratch, context.session.database(), limits);
            tx.run(|tx| {
                reply.rewind(mark);
                step.run(tx, &mut None, reply);
            });
            context.server.clients.wake(&tx.take_wakes());
            publish_events(context.server, context.worker, &context.session.client, &mut tx);
        } else {
            run_server_step(context, step, reply);
        }
        show(context, step);
        count(step, timer);
    }
    context.serve_all_waiting(limits);
    if let Some(scripting) = scripting {
        scripting.end(context);
    }
    Ok(())
}

/// Runs a command about the client or the server.
fn run_server_step(context: &mut Context<'_>, step: &mut Step<'_>, reply: &mut Reply) {
    let Handler::Server(handler) = step.command.row.handler else { return };
    let mark = reply.mark();
    context.may_wait = false;
    let result = handler(context, &step.args, reply);
    context.may_wait = true;
    if let Err(error) = result {
        reply.rewind(mark);
        reply.error(&error);
        step.error = Some(error.code);
    }
}

/// Shows a command that has run to those who watch all commands.
fn show(context: &Context<'_>, step: &Step<'_>) {
    if context.server.monitors.any() {
        let database = context.session.database();
        show_to_monitors(context.server, &context.session.client, database, step.command, &step.args);
    }
}

fn count(step: &Step<'_>, timer: &mut BatchTimer<'_>) {
    if let Some(code) = step.error {
        timer.statistics().count_failed(step.command.index);
        timer.statistics().count_error(code);
    }
    timer.command_done();
}

/// The database that the step changes to, if it is a SELECT that will succeed: the commands behind it work there.
fn selects(step: &Step<'_>, databases: usize) -> Option<usize> {
    let number = (*step.command.full_name == *"select").then(|| step.args.integer(1).ok()).flatten()?;
    usize::try_from(number).ok().filter(|database| *database < databases)
}

/// The protocol that the step changes to, if it is a HELLO that does: the replies behind it are written in that one.
fn speaks(server: &Server, step: &Step<'_>) -> Option<Protocol> {
    (*step.command.full_name == *"hello").then(|| protocol_after_hello(server, &step.args)).flatten()
}

/// Brings the steps' first keys nearer.
fn prefetch(tx: &mut Transaction<'_>, steps: &[Step<'_>]) {
    if steps.len() > 1 {
        let at = |step: &Step<'_>| step.command.key_range.0.max(0) as usize;
        let with_key = steps.iter().filter(|step| at(step) > 0);
        let keys: SmallVec<[&[u8]; 16]> = with_key.filter_map(|step| step.args.get(at(step))).collect();
        tx.prefetch(keys.iter().copied());
    }
}

/// WATCH: notes what the keys hold, all at one moment.
pub fn watch(context: &mut Context<'_>, keys: &[&[u8]]) {
    let client = context.session.client.id;
    let database = context.session.database();
    let here = context.session.watched.iter().filter(|one| one.database == database);
    let known: BTreeSet<&[u8]> = here.map(|one| &*one.key).collect();
    let new: BTreeSet<&[u8]> = keys.iter().copied().filter(|key| !known.contains(key)).collect();
    let limits = RuntimeLimits::from(&context.server.settings);
    let mut tx = Transaction::new(context.worker, context.scratch, database, limits);
    let watched = tx.run(|tx| {
        let watch_one = |key: &&[u8]| {
            let id = tx.open(key);
            let was_absent = tx.root(id).is_none();
            if was_absent {
                tx.add_interest(id, Interest::Watching(client));
            }
            Watched { database, key: (*key).into(), stamp: tx.seen_stamp(id), was_absent, swaps: tx.swaps_of(database) }
        };
        new.iter().map(watch_one).collect::<Vec<_>>()
    });
    drop(tx);
    context.session.watched.extend(watched);
    context.session.note_transaction();
}

fn is_unchanged(tx: &mut Transaction<'_>, watched: &Watched) -> bool {
    let id = tx.open_in(watched.database, &watched.key);
    // A value that was swapped away and back again has its old stamp.
    let moved = !watched.was_absent && tx.swaps_of(watched.database) != watched.swaps;
    tx.seen_stamp(id) == watched.stamp && !moved
}

/// Forgets all keys that the session watches.
pub fn unwatch_all(context: &mut Context<'_>) {
    let watched = std::mem::take(&mut context.session.watched);
    context.session.note_transaction();
    unwatch(context.worker, context.scratch, context.session.client.id, &watched);
}

/// Takes a client's interest in keys that it watched back.
pub fn unwatch(worker: &Worker, scratch: &mut Scratch, client: u64, watched: &[Watched]) {
    if !watched.iter().any(|watched| watched.was_absent) {
        return;
    }
    let mut tx = Transaction::new(worker, scratch, 0, RuntimeLimits::default());
    tx.run(|tx| {
        for watched in watched.iter().filter(|watched| watched.was_absent) {
            let id = tx.open_in(watched.database, &watched.key);
            tx.remove_interest(id, Interest::Watching(client));
        }
    });
}
