//! Scripts as transactions: runs the commands of a script, one after the other, as steps of one attempt.
//!
//! A script runs in one attempt of one transaction, so it sees its own writes, and nobody sees some of them without the others. An attempt that
//! loses a race runs the script again from its start; nothing that a failed run said is heard.
//!
//! A script that calls something about the whole keyspace, or about the server, which no attempt could take back, is run again under the gate: then each of
//! its commands is done at once, and nobody can look between. Only such a script holds others up, and cannot be ended once it has written.
//!
//! While a script runs, the clients of its own worker wait, those of other workers do not. SCRIPT KILL from one of those ends it.

use std::ops::Range;

use super::args::Args;
use super::blocking;
use super::context::Context;
use super::dispatch::publish_events;
use super::error::{CommandError, CommandResult};
use super::spec::{Flags, Handler};
use super::table::{Command, Table};
use crate::limits::SCRIPT_KEYS_PER_BREATH;
use crate::resp::Reply;
use crate::script::{Abort, Ended, Engine, Failure, Header, Host, LogLevel, Program};
use crate::server::Server;
use crate::server::running::Slot;
use crate::txn::{RuntimeLimits, Transaction};

/// What the error of a script says that somebody has ended.
const KILLED: &str = "Script killed by user with SCRIPT KILL...";

/// What a command line wants to have run, found out before its transaction begins.
pub struct Plan {
    /// The script or function.
    pub program: Program,
    /// Where among the arguments its keys are; behind them lie its other arguments.
    pub keys: Range<usize>,
    /// Commands that write are refused.
    pub read_only: bool,
}

impl Plan {
    /// The keys, and the other arguments of the script.
    fn split<'a>(&self, args: &Args<'a>) -> (&'a [&'a [u8]], &'a [&'a [u8]]) {
        args.from(self.keys.start).split_at(self.keys.len())
    }
}

/// What a row of a command that runs scripts has for a function.
pub type Planner = fn(&mut Context<'_>, &Args<'_>) -> Result<Plan, CommandError>;

/// How a script's run within an attempt ended. Its reply has been appended, unless it is to be run alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// By itself; or the attempt is void, which its commit will find.
    Done,
    /// It called what no attempt can take back: it is to be run alone. The attempt has read and written nothing.
    WantsGate,
    /// Somebody ended it. The attempt has read and written nothing.
    Killed,
}

/// Runs a script's command line as a transaction of its own.
///
/// # Errors
/// The command line is wrong, or its script does not exist or must not run now.
pub fn run(context: &mut Context<'_>, planner: Planner, args: &Args<'_>, reply: &mut Reply) -> CommandResult {
    let plan = planner(context, args)?;
    let server = context.server.clone();
    let mut scripting = Scripting::begin(context, plan.program.is_function())?;
    let limits = RuntimeLimits::from(&server.settings);
    let mark = reply.mark();
    let mut tx = Transaction::new(context.worker, context.scratch, context.session.database(), limits);
    let outcome = tx.run(|tx| {
        reply.rewind(mark);
        let outcome = scripting.step(&plan, tx, args, reply);
        if tx.has_hooked() {
            blocking::serve(tx, context.table);
        }
        outcome
    });
    server.clients.wake(&tx.take_wakes());
    publish_events(&server, context.worker, &context.session.client, &mut tx);
    drop(tx);
    if outcome == Ok(Outcome::WantsGate) {
        reply.rewind(mark);
        let _gate = context.worker.hold_gate();
        scripting.run_alone(&plan, context, args, reply);
        context.serve_all_waiting(limits);
    }
    scripting.end(context);
    outcome.map(drop)
}

/// The worker's Lua state, made when it is first wanted.
///
/// # Errors
/// There is no memory for it.
pub fn engine<'a>(context: &'a mut Context<'_>) -> Result<&'a mut Engine, CommandError> {
    match &mut *context.engine {
        Some(engine) => Ok(engine),
        none => Ok(none.insert(Engine::new()?)),
    }
}

/// What the scripts of one transaction need: the worker's Lua state, taken out of the context while they run.
pub struct Scripting<'a> {
    engine: Engine,
    ground: Ground<'a>,
}

impl<'a> Scripting<'a> {
    /// Begins to run scripts; to be ended by [`end`](Self::end).
    ///
    /// # Errors
    /// There is no memory for a Lua state.
    pub fn begin(context: &mut Context<'a>, is_function: bool) -> Result<Self, CommandError> {
        let server: &'a Server = context.server;
        let engine = context.engine.take().map_or_else(Engine::new, Ok)?;
        let slot = server.running.slot(context.session.client.worker);
        let now_ms = server.store.clock().now().unix_ms;
        let run = slot.begin(is_function, now_ms);
        Ok(Self { engine, ground: Ground { table: context.table, slot, run, memory_is_full: server.memory_is_full() } })
    }

    /// Gives the Lua state back.
    pub fn end(self, context: &mut Context<'_>) {
        self.ground.slot.end();
        *context.engine = Some(self.engine);
    }

    /// Runs a script within an attempt of a transaction, and appends its reply.
    ///
    /// # Errors
    /// The script must not run now.
    pub fn step(
        &mut self,
        plan: &Plan,
        tx: &mut Transaction<'_>,
        args: &Args<'_>,
        reply: &mut Reply,
    ) -> Result<Outcome, CommandError> {
        check(plan, self.ground.memory_is_full)?;
        let database = tx.database();
        let (keys, arguments) = plan.split(args);
        if keys.len() > 1 {
            tx.prefetch(keys.iter().copied());
        }
        let mut host = Attempt { state: State::new(self.ground, plan), tx, breaths: 0 };
        let ended = self.engine.run(&plan.program, keys, arguments, &mut host, reply)?;
        let wants_gate = host.state.wants_gate;
        tx.select(database);
        Ok(match ended {
            Ended::Aborted(Abort::Lost) if wants_gate => {
                tx.abandon();
                Outcome::WantsGate
            }
            Ended::Aborted(Abort::Killed(_)) => {
                tx.abandon();
                Outcome::Killed
            }
            Ended::Aborted(Abort::Lost) | Ended::Well | Ended::Failed => Outcome::Done,
        })
    }

    /// Runs a script while the caller holds the gate, each command as a transaction of its own, and appends its reply.
    pub fn run_alone(&mut self, plan: &Plan, context: &mut Context<'_>, args: &Args<'_>, reply: &mut Reply) {
        let database = context.session.database();
        let (keys, arguments) = plan.split(args);
        let mut host = Alone { state: State::new(self.ground, plan), context };
        let result = check(plan, self.ground.memory_is_full)
            .and_then(|()| self.engine.run(&plan.program, keys, arguments, &mut host, reply));
        context.session.select(database);
        if let Err(error) = result {
            reply.error(&error);
        }
    }
}

/// What the script's declaration says against its running now.
fn check(plan: &Plan, memory_is_full: bool) -> CommandResult {
    let header = plan.program.header();
    if !header.is_there {
        return Ok(());
    }
    if plan.read_only && !header.no_writes {
        return Err(CommandError::err("Can not execute a script with write flag using *_ro command."));
    }
    if memory_is_full && !header.allow_oom && !header.no_writes {
        return Err(CommandError::with_code(
            "OOM",
            "allow-oom flag is not set on the script, can not run it when used memory > 'maxmemory'",
        ));
    }
    Ok(())
}

/// What a script's commands need to know, wherever it runs.
#[derive(Clone, Copy)]
struct Ground<'a> {
    table: &'a Table,
    slot: &'a Slot,
    run: u64,
    memory_is_full: bool,
}

/// What is so of one run of a script.
struct State<'a> {
    ground: Ground<'a>,
    read_only: bool,
    /// It may write though memory is full.
    may_grow: bool,
    wants_gate: bool,
}

impl<'a> State<'a> {
    fn new(ground: Ground<'a>, plan: &Plan) -> Self {
        let header: &Header = plan.program.header();
        Self {
            ground,
            read_only: plan.read_only || header.no_writes,
            may_grow: !ground.memory_is_full || header.allow_oom,
            wants_gate: false,
        }
    }

    /// The command to run, if a script may run it.
    fn find(&mut self, args: &Args<'_>) -> Result<&'a Command, CommandError> {
        let Some(command) = self.ground.table.find_line(args) else {
            return Err(CommandError::err("Unknown Redis command called from script"));
        };
        if !command.fits(args.len()) {
            return Err(CommandError::err("Wrong number of args calling Redis command from script"));
        }
        let flags = command.row.flags;
        if flags.has(Flags::NOSCRIPT) || matches!(command.row.handler, Handler::Container) {
            return Err(CommandError::err("This Redis command is not allowed from script"));
        }
        let has_effects = flags.has(Flags::WRITE) || flags.has(Flags::MAY_REPLICATE);
        if has_effects && self.read_only {
            return Err(CommandError::err("Write commands are not allowed from read-only scripts."));
        }
        if flags.has(Flags::WRITE) {
            if flags.has(Flags::DENYOOM) && !self.may_grow {
                return Err(CommandError::OUT_OF_MEMORY);
            }
            // What has begun to write may end writing: a half-done script is worth less than the memory.
            self.may_grow = true;
        }
        Ok(command)
    }

    fn breathe(&self) -> Result<(), Abort> {
        if self.ground.slot.is_killed(self.ground.run) { Err(Abort::Killed(KILLED)) } else { Ok(()) }
    }
}

/// A script's commands as steps of an attempt.
struct Attempt<'a, 't, 'w> {
    state: State<'a>,
    tx: &'t mut Transaction<'w>,
    /// Breaths of the script since its keys were looked up again.
    breaths: usize,
}

impl Host for Attempt<'_, '_, '_> {
    fn call(&mut self, args: &Args<'_>, reply: &mut Reply) -> Result<(), Failure> {
        let command = self.state.find(args).map_err(Failure::Error)?;
        match command.row.handler {
            Handler::Data(handler) if !command.row.whole_keyspace => {
                handler(self.tx, args, reply).map_err(Failure::Error)?;
                if self.tx.is_void() { Err(Failure::Abort(Abort::Lost)) } else { Ok(()) }
            }
            _ if command.row.name == "select" => {
                let database = database_of(args, self.tx.databases()).map_err(Failure::Error)?;
                self.tx.select(database);
                reply.ok();
                Ok(())
            }
            _ if answer_pure(command, args, self.tx.now_ms(), reply) => Ok(()),
            _ => {
                self.state.wants_gate = true;
                Err(Failure::Abort(Abort::Lost))
            }
        }
    }

    fn breathe(&mut self) -> Result<(), Abort> {
        self.state.breathe()?;
        self.breaths += 1;
        // To look all keys up again costs time for each; so the more there are, the rarer it is.
        if self.tx.is_waited_for() || self.breaths * SCRIPT_KEYS_PER_BREATH >= self.tx.opened_count() {
            self.breaths = 0;
            self.tx.breathe().map_err(|_| Abort::Lost)?;
        }
        Ok(())
    }

    fn may_run(&mut self, args: &Args<'_>) -> Option<bool> {
        self.state.ground.table.find_line(args).map(|_| true)
    }

    fn log(&mut self, level: LogLevel, line: &[u8]) {
        log(level, line);
    }
}

/// Answers what touches neither data nor server.
fn answer_pure(command: &Command, args: &Args<'_>, now_ms: i64, reply: &mut Reply) -> bool {
    match (command.row.name, args.get(1)) {
        ("ping", None) => reply.simple("PONG"),
        ("ping" | "echo", Some(text)) => reply.bulk(text),
        // As all of an attempt's commands, it reads the clock that the attempt has read.
        ("time", _) => {
            reply.array(2);
            reply.bulk_integer(now_ms.div_euclid(1000));
            reply.bulk_integer(now_ms.rem_euclid(1000) * 1000);
        }
        _ => return false,
    }
    true
}

/// The database that a SELECT names.
fn database_of(args: &Args<'_>, databases: usize) -> Result<usize, CommandError> {
    let number = args.integer(1).map_err(|_| CommandError::err("invalid DB index"))?;
    let database = usize::try_from(number).ok().filter(|database| *database < databases);
    database.ok_or(CommandError::err("DB index is out of range"))
}

/// Writes a script's line to the server's log.
fn log(level: LogLevel, line: &[u8]) {
    let line = String::from_utf8_lossy(line);
    match level {
        LogLevel::Debug => tracing::trace!("{line}"),
        LogLevel::Verbose => tracing::debug!("{line}"),
        LogLevel::Notice => tracing::info!("{line}"),
        LogLevel::Warning => tracing::warn!("{line}"),
    }
}

/// A script's commands while nobody else can do anything.
struct Alone<'a, 'c, 'b> {
    state: State<'a>,
    context: &'c mut Context<'b>,
}

impl Host for Alone<'_, '_, '_> {
    fn call(&mut self, args: &Args<'_>, reply: &mut Reply) -> Result<(), Failure> {
        let command = self.state.find(args).map_err(Failure::Error)?;
        let mark = reply.mark();
        if command.row.flags.has(Flags::WRITE) {
            self.state.ground.slot.note_commit();
        }
        let result = match command.row.handler {
            Handler::Data(handler) => {
                let (database, limits) =
                    (self.context.session.database(), RuntimeLimits::from(&self.context.server.settings));
                let mut tx = Transaction::new(self.context.worker, self.context.scratch, database, limits);
                let result = tx.run(|tx| {
                    reply.rewind(mark);
                    handler(tx, args, reply)
                });
                publish_events(self.context.server, self.context.worker, &self.context.session.client, &mut tx);
                result
            }
            Handler::Server(handler) => {
                let may_wait = std::mem::replace(&mut self.context.may_wait, false);
                let result = handler(self.context, args, reply);
                self.context.may_wait = may_wait;
                result
            }
            Handler::Script(_) | Handler::Container => unreachable!("`find` has refused them"),
        };
        result.map_err(Failure::Error)
    }

    fn breathe(&mut self) -> Result<(), Abort> {
        self.state.breathe()
    }

    fn may_run(&mut self, args: &Args<'_>) -> Option<bool> {
        self.state.ground.table.find_line(args).map(|_| true)
    }

    fn log(&mut self, level: LogLevel, line: &[u8]) {
        log(level, line);
    }
}
