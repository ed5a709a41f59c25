//! Dispatch: runs the commands of one batch in order. The only place that knows what surrounds a command: look-up, arity, authentication, the
//! retry loop, statistics, which replies are wanted, who watches.
//!
//! A batch is taken in slices of [`BATCH_COMMANDS_MAX`] commands. A slice is looked up whole, the keys are hashed, and
//! their memory is asked for in three rounds (bucket heads, entries, roots) before the first command runs, so that the waits for memory overlap:
//! on a million keys this makes look-ups several times cheaper. Then the slice runs under one pin of the epoch. Between slices the pin and the
//! gate's slot are given up (rule 10 and 12 of docs/commit-protocol.md).
//!
//! Consecutive commands of one client on one key run in one attempt and become visible by one CAS: nobody can tell that from their running one right
//! after the other, and a key that several clients write at once changes hands once per group instead of once per command.

use super::args::Args;
use super::blocking::{self, Waiter};
use super::context::Context;
use super::error::{CommandError, CommandResult};
use super::exec;
use super::family::tracking::tracked_keys;
use super::scripting;
use super::spec::{DataHandler, Flags, Handler};
use super::table::Command;
use crate::config::Settings;
use crate::limits::{self, BATCH_COMMANDS_MAX};
use crate::pubsub::monitor_line;
use crate::resp::{Batch, Mark, Reply};
use crate::server::statistics::BatchTimer;
use crate::server::{ClientInfo, Paused, Server};
use crate::session::{Caching, Ending, Queue, QueueIsFull, ReplyMode, Session};
use crate::store::Worker;
use crate::sync::Ordering;
use crate::txn::{EventClass, RuntimeLimits, Transaction};
use smallvec::SmallVec;
use std::time::{SystemTime, UNIX_EPOCH};

/// A data command's first key, hashed ahead.
#[derive(Clone, Copy)]
struct FirstKey {
    argument: usize,
    hash: u64,
}

/// One command of the slice, looked up.
#[derive(Clone, Copy, Default)]
struct Prepared<'t> {
    /// `None` where the command line is refused; it is looked up again for the error.
    command: Option<&'t Command>,
    first_key: Option<FirstKey>,
}

impl<'t> Prepared<'t> {
    /// The command and its function, if it is a data command.
    #[inline]
    fn data(&self) -> Option<(&'t Command, DataHandler)> {
        let command = self.command?;
        match command.row.handler {
            Handler::Data(handler) => Some((command, handler)),
            _ => None,
        }
    }

    /// Its first key, if it can have no other.
    #[inline]
    fn only_key(&self) -> Option<FirstKey> {
        self.first_key.filter(|_| self.command.is_some_and(|command| command.has_one_key))
    }
}

/// Runs the commands of a batch in order and appends their replies; gives how many it ran. Fewer than all only where the connection is to end, or
/// where the replies have become so many that they should leave first.
pub fn execute_batch(context: &mut Context<'_>, input: &[u8], batch: &Batch, reply: &mut Reply) -> usize {
    let server = context.server;
    let worker = context.session.client.worker;
    let mut timer = server.statistics.begin_batch(worker, server.settings.latency_tracking.get());
    // The clock has just been read for the timer.
    context.session.client.active(timer.run_started());
    let limits = RuntimeLimits::from(&server.settings);
    context.worker.want_expired(limits.events.meets(EventClass::EXPIRED));
    let mut items = SmallVec::new();
    let mut executed = 0;
    while executed < batch.len() && context.session.is_ready() {
        if executed > 0 && reply.len() >= limits::REPLY_BYTES_PAUSE {
            break;
        }
        let slice = executed..batch.len().min(executed + BATCH_COMMANDS_MAX);
        let memory_is_full = server.memory_is_full();
        let (items, timer) = (&mut items, &mut timer);
        let first = slice.start;
        let mut slice = Slice { input, batch, first, items, limits, memory_is_full, timer, monitored: false };
        executed += slice.run(context, reply);
    }
    let client = &context.session.client;
    // Relaxed, both: a figure for CLIENT LIST, written by this connection's worker only.
    client.commands.store(client.commands.load(Ordering::Relaxed) + executed as u64, Ordering::Relaxed);
    executed
}

/// The part of a batch that is prepared together.
struct Slice<'a, 'i, 't> {
    input: &'i [u8],
    batch: &'a Batch,
    /// The slice's first command in the batch.
    first: usize,
    /// The present command's arguments; kept for its room.
    items: &'a mut SmallVec<[&'i [u8]; 16]>,
    limits: RuntimeLimits,
    /// Whether commands that may need more memory are refused.
    memory_is_full: bool,
    timer: &'a mut BatchTimer<'t>,
    /// Whether somebody watches all commands.
    monitored: bool,
}

impl<'i> Slice<'_, 'i, '_> {
    fn arguments(&mut self, position: usize) -> Args<'_> {
        self.items.clear();
        self.items.extend(self.batch.arguments(self.first + position).iter().map(|span| span.of(self.input)));
        Args::new(self.items)
    }

    /// Runs the slice, or as much of it as the connection wants; gives the number of commands run.
    fn run(&mut self, context: &mut Context<'_>, reply: &mut Reply) -> usize {
        let count = (self.batch.len() - self.first).min(BATCH_COMMANDS_MAX);
        let prepared: SmallVec<[Prepared<'_>; BATCH_COMMANDS_MAX]> =
            (0..count).map(|position| self.prepare(context, position)).collect();
        let mut position = 0;
        while position < count && context.session.is_ready() && reply.len() < limits::REPLY_BYTES_PAUSE {
            self.monitored = context.server.monitors.any();
            let mut allowed = count - position;
            if let Some(pause) = context.server.pause.current() {
                let queue = context.session.multi.as_ref();
                allowed = prepared[position..].iter().take_while(|one| !is_paused(pause, one.command, queue)).count();
                if allowed == 0 {
                    context.session.paused_until = Some(pause.until);
                    break;
                }
            }
            let data = match takes_data(context) {
                true => prepared[position..][..allowed].iter().take_while(|one| self.runs_as_data(one)).count(),
                false => 0,
            };
            if data > 0 {
                position += self.run_data(context, position, &prepared[position..position + data], reply);
            } else {
                self.run_other(context, position, prepared[position].command, reply);
                position += 1;
            }
        }
        position
    }

    /// Whether it is a data command that may run; one that memory is too short for is refused by `run_other`.
    fn runs_as_data(&self, one: &Prepared<'_>) -> bool {
        one.command.is_some_and(|command| {
            matches!(command.row.handler, Handler::Data(_)) && !(self.memory_is_full && needs_memory(command))
        })
    }

    /// Looks a command up and hashes its first key.
    fn prepare<'c>(&mut self, context: &Context<'c>, position: usize) -> Prepared<'c> {
        let args = self.arguments(position);
        let command = context.table.find_line(&args).filter(|command| command.fits(args.len()));
        let argument = command.map_or(0, |command| command.key_range.0 as usize);
        let first_key = (argument > 0 && argument < args.len())
            .then(|| FirstKey { argument, hash: context.worker.store().hash(args.at(argument)) });
        Prepared { command, first_key }
    }

    /// Runs consecutive data commands, from `position` on, in one section; gives the number run, fewer than all only where the replies have
    /// become so many that they should leave first, or where one waits.
    fn run_data(
        &mut self,
        context: &mut Context<'_>,
        position: usize,
        prepared: &[Prepared<'_>],
        reply: &mut Reply,
    ) -> usize {
        let mut tx = Transaction::new(context.worker, context.scratch, context.session.database(), self.limits);
        if prepared.len() > 1 {
            let hashes = || prepared.iter().filter_map(|one| one.first_key).map(|key| key.hash);
            let (table, pin) = (tx.table(), tx.pin());
            hashes().for_each(|hash| table.prefetch_head(hash));
            hashes().for_each(|hash| table.prefetch_entry(hash, pin));
            hashes().for_each(|hash| table.prefetch_root(hash, pin));
        }
        let waiter = Waiter { client: context.session.client.id, protocol: context.session.protocol() };
        tx.allow_waiting(true);
        let mut wait = None;
        let mut is_wanted = true;
        let mut ran = 0;
        while ran < prepared.len() && wait.is_none() && reply.len() < limits::REPLY_BYTES_PAUSE {
            let group = match context.session.replies {
                ReplyMode::On
                    if !self.monitored
                        && !context.session.is_tracking
                        && self.limits.events == EventClass::default() =>
                {
                    self.group(position + ran, &prepared[ran..])
                }
                _ => 1,
            };
            let group = &prepared[ran..ran + group];
            let tracked = match group[0].data() {
                Some((command, _)) if context.session.is_tracking => {
                    let args = self.arguments(position + ran);
                    tracked_keys(context.server, context.session, command, &args)
                }
                _ => Vec::new(),
            };
            let (worker, client) = (context.session.client.worker, context.session.client.id);
            context.server.remember_reads(worker, client, &tracked);
            let mark = reply.mark();
            let mut failed: SmallVec<[(usize, &'static str); 1]> = SmallVec::new();
            let done = tx.run(|tx| {
                reply.rewind(mark);
                failed.clear();
                for (offset, one) in group.iter().enumerate() {
                    let Some((_, handler)) = one.data() else { continue };
                    let args = self.arguments(position + ran + offset);
                    if let Some(key) = one.first_key {
                        tx.hint(args.at(key.argument), key.hash);
                    }
                    let mark = reply.mark();
                    if let Err(error) = handler(tx, &args, reply) {
                        reply.rewind(mark);
                        reply.error(&error);
                        failed.push((offset, error.code));
                    }
                    wait = tx.take_wait();
                    if let Some(wait) = &wait {
                        blocking::register(tx, waiter, &args, wait);
                    } else if tx.has_hooked() {
                        blocking::serve(tx, context.table);
                    }
                    if wait.is_some() || reply.len() >= limits::REPLY_BYTES_PAUSE {
                        return offset + 1;
                    }
                }
                group.len()
            });
            for (offset, one) in group[..done].iter().enumerate() {
                let Some((command, _)) = one.data() else { continue };
                self.timer.command_starts(command.index, command.is_quick);
                if let Some((_, code)) = failed.iter().find(|(position, _)| *position == offset) {
                    self.timer.statistics().count_failed(command.index);
                    self.timer.statistics().count_error(code);
                }
                self.timer.command_done();
            }
            is_wanted = context.session.replies == ReplyMode::On;
            if !is_wanted {
                withhold(&mut context.session.replies, mark, reply);
            }
            context.server.clients.wake(&tx.take_wakes());
            publish_events(context.server, context.worker, &context.session.client, &mut tx);
            context.server.confirm_reads(worker, client, &tracked);
            context.session.caching = Caching::No;
            deliver(context.session, reply);
            if self.monitored
                && let Some((command, _)) = group[0].data()
            {
                let args = self.arguments(position + ran);
                show_to_monitors(context.server, &context.session.client, tx.database(), command, &args);
                deliver(context.session, reply);
            }
            ran += done;
        }
        drop(tx);
        if let Some(wait) = wait {
            context.session.block(&wait, is_wanted);
        }
        note_last_command(context, prepared[..ran].last().and_then(|one| one.command));
        ran
    }

    /// How many of the data commands `prepared`, of which the first is the slice's command `position`, are about one and the same key and no other.
    fn group(&mut self, position: usize, prepared: &[Prepared<'_>]) -> usize {
        let Some(first) = prepared[0].only_key() else { return 1 };
        let same_hash =
            prepared.iter().take_while(|one| one.only_key().is_some_and(|key| key.hash == first.hash)).count();
        let key =
            |position: usize, key: FirstKey| self.batch.arguments(self.first + position)[key.argument].of(self.input);
        let is_same = |(offset, one): &(usize, &Prepared<'_>)| {
            one.only_key().is_some_and(|this| key(position + offset, this) == key(position, first))
        };
        if same_hash == 1 { 1 } else { prepared[..same_hash].iter().enumerate().take_while(is_same).count() }
    }

    /// Runs a command about the client or the server, or refuses one.
    fn run_other(&mut self, context: &mut Context<'_>, position: usize, command: Option<&Command>, reply: &mut Reply) {
        let mark = reply.mark();
        let args = self.arguments(position);
        note_last_command(context, command.or_else(|| context.table.find_line(&args)));
        let is_exec = args.is(0, "exec");
        let Some(command) = command else {
            let error = match context.table.resolve(&args) {
                Err(error) => error,
                Ok(_) => unreachable!("prepared from the same table"),
            };
            if context.table.find(args.at(0)).is_none() && is_http(args.at(0)) {
                tracing::warn!(
                    "Possible SECURITY ATTACK detected. It looks like somebody is sending POST or Host: commands. Connection \
                     from {} aborted.",
                    context.session.client.address
                );
                return context.session.end(Ending::Now);
            }
            if let Some(command) = context.table.find_line(&args) {
                self.timer.statistics().count_rejected(command.index);
            }
            let error = abandon_exec(context, is_exec, error);
            return refuse(context, self.timer, error, mark, reply);
        };
        if !context.authenticated() && !command.row.flags.has(Flags::NO_AUTH) {
            self.timer.statistics().count_rejected(command.index);
            let error = abandon_exec(context, is_exec, CommandError::NOT_AUTHENTICATED);
            return refuse(context, self.timer, error, mark, reply);
        }
        if self.memory_is_full && needs_memory(command) {
            self.timer.statistics().count_rejected(command.index);
            return refuse(context, self.timer, CommandError::OUT_OF_MEMORY, mark, reply);
        }
        if context.session.is_only_subscriber() && !is_for_subscribers(command) {
            self.timer.statistics().count_rejected(command.index);
            return refuse(context, self.timer, only_for_subscribers(command), mark, reply);
        }
        if let Some(queue) = context.session.multi.as_mut()
            && !runs_within_multi(command)
        {
            queue.has_writes |= command.row.flags.has(Flags::WRITE) || command.row.flags.has(Flags::MAY_REPLICATE);
            let args = self.arguments(position);
            let result = match queue.push(&args) {
                _ if command.row.flags.has(Flags::NO_MULTI) => {
                    Err(CommandError::err("Command not allowed inside a transaction"))
                }
                Err(QueueIsFull) => Err(CommandError::OUT_OF_MEMORY),
                Ok(()) => Ok(()),
            };
            context.session.note_transaction();
            match result {
                Ok(()) => reply.simple("QUEUED"),
                Err(error) => return refuse(context, self.timer, error, mark, reply),
            }
            return withhold(&mut context.session.replies, mark, reply);
        }
        self.timer.command_starts(command.index, command.is_quick);
        let args = self.arguments(position);
        let result = match command.row.handler {
            Handler::Server(handler) => handler(context, &args, reply),
            Handler::Script(planner) => scripting::run(context, planner, &args, reply),
            Handler::Data(_) => {
                unreachable!("run_data runs those that were not refused above")
            }
            // A container without a subcommand: its arity has refused that, but for COMMAND, which has a handler.
            Handler::Container => Err(CommandError::wrong_arity(&command.full_name)),
        };
        finish(&mut context.session.replies, self.timer, command, result, mark, reply);
        if context.session.multi.is_none() && !command.full_name.starts_with("client|") {
            context.session.caching = Caching::No;
        }
        if self.monitored {
            let args = self.arguments(position);
            show_to_monitors(context.server, &context.session.client, context.session.database(), command, &args);
        }
        deliver(context.session, reply);
    }
}

/// After a command: its error, its statistics, and whether its reply is wanted.
#[inline]
fn finish(
    replies: &mut ReplyMode,
    timer: &mut BatchTimer<'_>,
    command: &Command,
    result: CommandResult,
    mark: Mark,
    reply: &mut Reply,
) {
    if let Err(error) = result {
        reply.withdraw(mark);
        reply.error(&error);
        timer.statistics().count_failed(command.index);
        timer.statistics().count_error(error.code);
    }
    timer.command_done();
    if *replies != ReplyMode::On {
        withhold(replies, mark, reply);
    }
}

/// The error with which a command line is refused: where it is an EXEC, what was queued and watched is given up too, and the error says so.
fn abandon_exec(context: &mut Context<'_>, is_exec: bool, error: CommandError) -> CommandError {
    if !is_exec {
        return error;
    }
    context.session.multi = None;
    exec::unwatch_all(context);
    exec::aborted_because(&error)
}

/// Answers a command that is not run. What EXEC would have run is then incomplete.
#[cold]
fn refuse(context: &mut Context<'_>, timer: &BatchTimer<'_>, error: CommandError, mark: Mark, reply: &mut Reply) {
    if let Some(queue) = context.session.multi.as_mut() {
        queue.is_refused = true;
    }
    reply.error(&error);
    timer.statistics().count_error(error.code);
    withhold(&mut context.session.replies, mark, reply);
}

/// Takes back a reply that CLIENT REPLY has said is not wanted.
#[cold]
fn withhold(replies: &mut ReplyMode, mark: Mark, reply: &mut Reply) {
    *replies = match *replies {
        ReplyMode::On => return,
        ReplyMode::Off => ReplyMode::Off,
        // CLIENT REPLY SKIP itself, which answers nothing: the next command's reply is the one to skip.
        ReplyMode::SkipNext => return *replies = ReplyMode::Skip,
        ReplyMode::Skip => ReplyMode::On,
    };
    reply.withdraw(mark);
}

fn note_last_command(context: &Context<'_>, command: Option<&Command>) {
    let number = command.map_or(0, |command| command.index as u32 + 1);
    // Relaxed: a figure for CLIENT LIST.
    context.session.client.last_command.store(number, Ordering::Relaxed);
}

/// Publishes what the commands run so far have done to keys, and which keys they found expired; tells the clients that track keys.
#[inline]
pub(super) fn publish_events(server: &Server, worker: &Worker, client: &ClientInfo, tx: &mut Transaction<'_>) {
    tx.publish_events(|events| server.publish_events(client.worker, events.iter()));
    let (expired, written) = (worker.take_expired(), tx.take_written());
    if expired.is_some() || written.is_some() {
        server.tell_of_changes(client.worker, Some(client.id), expired, written);
    }
}

/// What a command has told its own client follows its reply, before the next command's.
#[inline]
pub(super) fn deliver(session: &mut Session, reply: &mut Reply) {
    if !session.messages.is_empty() {
        session.messages.deliver(reply, usize::MAX);
        reply.keep();
    }
}

/// Shows a command to those who watch, once it has run; secrets and commands of administration are not for them.
#[cold]
pub(super) fn show_to_monitors(
    server: &Server,
    client: &ClientInfo,
    database: usize,
    command: &Command,
    args: &Args<'_>,
) {
    if command.row.flags.has(Flags::SKIP_MONITOR) || command.row.flags.has(Flags::ADMIN) {
        return;
    }
    let secret = |index: usize| match command.row.name {
        "auth" => index > 0,
        // The name and the password stand after AUTH, which stands after the version.
        "hello" => (1..=2).any(|distance| index > 1 + distance && args.is(index - distance, "auth")),
        _ => false,
    };
    let shown = |index| if secret(index) { &b"(redacted)"[..] } else { args.at(index) };
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let unix = client.is_unix.then(|| format!("unix:{}", client.address.trim_end_matches(":0")));
    let source = unix.as_deref().unwrap_or(&client.address);
    let line = monitor_line(now, database, source, (0..args.len()).map(shown));
    server.show_to_monitors(client.worker, &line);
}

/// Whether the client's data commands run at once.
fn takes_data(context: &Context<'_>) -> bool {
    context.authenticated() && !context.session.is_only_subscriber() && context.session.multi.is_none()
}

/// Whether a subscriber that speaks RESP2 may use it.
fn is_for_subscribers(command: &Command) -> bool {
    const NAMES: [&str; 9] = [
        "subscribe",
        "psubscribe",
        "ssubscribe",
        "unsubscribe",
        "punsubscribe",
        "sunsubscribe",
        "ping",
        "quit",
        "reset",
    ];
    NAMES.contains(&&*command.full_name)
}

#[cold]
fn only_for_subscribers(command: &Command) -> CommandError {
    CommandError::owned(format!(
        "Can't execute '{}': only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING / QUIT / RESET are allowed in this context",
        command.full_name
    ))
}

/// Whether CLIENT PAUSE keeps the command from running.
#[cold]
fn is_paused(pause: Paused, command: Option<&Command>, queue: Option<&Queue>) -> bool {
    const EFFECTS: [Flags; 2] = [Flags::WRITE, Flags::MAY_REPLICATE];
    let writes = |command: &Command| {
        let queued_writes = *command.full_name == *"exec" && queue.is_some_and(|queue| queue.has_writes);
        queued_writes || EFFECTS.into_iter().any(|flag| command.row.flags.has(flag))
    };
    pause.all || command.is_some_and(writes)
}

/// Whether the command runs at once though others are being queued.
fn runs_within_multi(command: &Command) -> bool {
    matches!(&*command.full_name, "exec" | "discard" | "multi" | "watch" | "quit" | "reset")
}

fn needs_memory(command: &Command) -> bool {
    command.row.flags.has(Flags::DENYOOM)
}

/// Whether this is how an HTTP request begins, which a browser may have been tricked into sending here.
fn is_http(name: &[u8]) -> bool {
    name.eq_ignore_ascii_case(b"post") || name.eq_ignore_ascii_case(b"host:")
}

impl From<&Settings> for RuntimeLimits {
    fn from(settings: &Settings) -> Self {
        let policy = settings.maxmemory_policy.get();
        Self {
            proto_max_bulk_len: settings.proto_max_bulk_len.get(),
            list_max_listpack_size: settings.list_max_listpack_size.get(),
            lfu: policy.is_lfu(),
            lfu_decay_minutes: settings.lfu_decay_time.get(),
            lfu_log_factor: settings.lfu_log_factor.get(),
            events: EventClass::wanted(settings.notify_keyspace_events.get()),
            shared_integers: settings.maxmemory.get() == 0 || !(policy.is_lfu() || policy.is_lru()),
        }
    }
}
