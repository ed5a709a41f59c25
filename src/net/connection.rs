//! One connection: a hand-written state machine that one task polls.
//!
//! # A turn
//!
//! Send what waits; read once; decode what came; run the complete commands; send their replies. A turn costs one `recv` and one
//! `send` however many commands it runs. After [`limits::TURN_COMMANDS_MAX`] commands, or a reply of
//! [`limits::REPLY_BYTES_PAUSE`], the task goes to the end of its worker's queue, so that a client with a long pipeline delays
//! nobody for longer than that.
//!
//! # Memory
//!
//! Input is read into the worker's one buffer and run from there; replies are built in the worker's one buffer and sent from there. A
//! connection has bytes of its own only while a command is incomplete (`input`) or its socket is full (`output`), so an idle one
//! costs its task and its [`ClientInfo`](crate::server::ClientInfo) and nothing else. A large argument (its length is known) is read
//! straight into a buffer of its own: of exactly its size up to [`limits::INPUT_BYTES_AHEAD`], of at most twice what has arrived beyond.
//!
//! # Messages
//!
//! What other workers have to tell the client waits in its [outbox](crate::pubsub::Outbox) and becomes output when everything before it has
//! left, so that a message takes no memory of its own for each subscriber that is slow. Commands that must come after earlier messages (those
//! that end a subscription) put them before their replies.
//!
//! # Clients that wait
//!
//! While a client's command waits (BLPOP), or clients are paused, its task runs no other command. It reads on, up to
//! [`limits::WAITING_INPUT_BYTES_MAX`], so that it notices at once when the client goes. Whoever serves it leaves the reply in the store and wakes this task
//! (`command/blocking`).
//!
//! # Clients that do not read
//!
//! What the socket does not take waits in `output`, and the client may go on sending: a client that first sends its whole pipeline
//! and then reads must not hang. But what waits is bounded, for all clients of a worker together: a client whose share is used up is
//! not read from until it has taken some replies ([`Worker::output_share`]). `client-output-buffer-limit` closes it earlier if
//! configured.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

use tokio::io::ReadBuf;
use tokio::time::Sleep;

use super::output::Output;
use super::stream::Stream;
use super::worker::{Scratch, Worker};
use crate::command::exec::unwatch;
use crate::command::{Context as CommandContext, blocking, dispatch};
use crate::limits;
use crate::resp::{DecodeLimits, Decoder, Reply};
use crate::session::{Blocked, Ending, ReplyMode, Session};
use crate::sync::Ordering;
use crate::txn::{RuntimeLimits, Transaction};

/// A connection, and the future that serves it until it ends.
pub struct Connection {
    worker: Rc<Worker>,
    stream: Stream,
    session: Session,
    decoder: Decoder,
    /// Bytes that are no complete command yet, or whose turn has not come.
    input: Vec<u8>,
    /// Whether `input` may hold complete commands.
    has_commands: bool,
    /// Whether the last read filled its buffer, so that the socket may hold more.
    has_more: bool,
    output: Output,
    /// Runs while `output` is above the soft limit, and ends when it has been for too long.
    soft_limit: Option<Pin<Box<Sleep>>>,
    /// Runs while a command waits with a time-out, or while clients are paused.
    wait_clock: Option<Pin<Box<Sleep>>>,
    /// Runs while `output` is above the client's share, and ends when it is time to look whether the share has grown.
    share_check: Option<Pin<Box<Sleep>>>,
}

/// Why a connection ends at once.
enum Closed {
    /// The client closed it, or the network did.
    ByPeer,
    /// We close it: somebody asked for it, or a limit was reached.
    ByUs,
}

impl From<io::Error> for Closed {
    fn from(_: io::Error) -> Self {
        Self::ByPeer
    }
}

impl Future for Connection {
    type Output = ();

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let connection = self.get_mut();
        connection.session.client.outbox.set_waker(context.waker());
        match connection.serve(context) {
            Ok(poll) => poll,
            Err(Closed::ByPeer | Closed::ByUs) => Poll::Ready(()),
        }
    }
}

impl Connection {
    /// A connection for a client that has just been accepted.
    pub fn new(worker: Rc<Worker>, stream: Stream, session: Session) -> Self {
        Self {
            worker,
            stream,
            session,
            decoder: Decoder::default(),
            input: Vec::new(),
            has_commands: false,
            has_more: false,
            output: Output::default(),
            soft_limit: None,
            wait_clock: None,
            share_check: None,
        }
    }

    /// Takes turns until there is nothing to do (pending), until it is others' turn (pending, but awake), or to the end.
    fn serve(&mut self, context: &mut Context<'_>) -> Result<Poll<()>, Closed> {
        let mut delivered = false;
        loop {
            if self.session.client.is_killed() {
                return Err(Closed::ByUs);
            }
            let flushed = self.flush(context)?;
            if self.soft_limit.is_some() || flushed.is_pending() {
                self.check_soft_limit(context)?;
            }
            match self.session.ending {
                Ending::Now => return Err(Closed::ByUs),
                Ending::AfterReplies if flushed.is_ready() => return Ok(Poll::Ready(())),
                Ending::AfterReplies => return Ok(Poll::Pending),
                Ending::None => {}
            }
            // Also to one whose command waits.
            if flushed.is_ready() && !self.session.messages.is_empty() {
                if delivered {
                    // Others first. What woke this task is over, so it wakes itself.
                    context.waker().wake_by_ref();
                    return Ok(Poll::Pending);
                }
                delivered = true;
                self.deliver(context)?;
                continue;
            }
            if let Some(until) = self.session.paused_until.take() {
                let sleep = || Box::pin(tokio::time::sleep_until(until.into()));
                let is_over = self.wait_clock.get_or_insert_with(sleep).as_mut().poll(context).is_ready();
                if !is_over && self.worker.server().pause.current().is_some() {
                    self.session.paused_until = Some(until);
                    // It may have gone meanwhile.
                    return self.read_ahead(context);
                }
                self.wait_clock = None;
            }
            if let Some(blocked) = self.session.blocked {
                if self.poll_blocked(blocked, context)?.is_pending() {
                    return Ok(Poll::Pending);
                }
                continue;
            }
            if self.output.len() > self.worker.output_share() {
                // `flush` has left the task's waker with the socket, for the case that the client reads.
                if self.await_share(context).is_pending() {
                    return Ok(Poll::Pending);
                }
                continue;
            }
            self.share_check = None;
            if self.has_commands {
                self.run_own(context)?;
            } else if self.read(context)?.is_pending() {
                return Ok(Poll::Pending);
            }
            if self.has_commands || std::mem::take(&mut self.has_more) {
                // Others first. No socket event will come for what has been read, or was there to be read.
                context.waker().wake_by_ref();
                return Ok(Poll::Pending);
            }
        }
    }

    /// Ready when the client's command waits no longer: its reply is on its way then.
    fn poll_blocked(&mut self, blocked: Blocked, context: &mut Context<'_>) -> Result<Poll<()>, Closed> {
        let gives_up = blocked.deadline.is_some_and(|deadline| {
            let sleep = || Box::pin(tokio::time::sleep_until(deadline.into()));
            self.wait_clock.get_or_insert_with(sleep).as_mut().poll(context).is_ready()
        });
        let client = self.session.client.id;
        let worker = self.worker.clone();
        let mut scratch = worker.scratch();
        let Scratch { reply, transactions, .. } = &mut *scratch;
        let mut tx = Transaction::new(worker.store(), transactions, 0, RuntimeLimits::default());
        let ending = if gives_up { blocking::cancel } else { blocking::collect };
        let outcome = tx.run(|tx| ending(tx, client));
        // Nobody but this task.
        drop(tx.take_wakes());
        drop(tx);
        reply.clear();
        reply.set_protocol(self.session.protocol());
        match outcome {
            blocking::Outcome::Waiting => {
                drop(scratch);
                return self.read_ahead(context);
            }
            blocking::Outcome::Served(bytes) => reply.raw(&bytes),
            blocking::Outcome::GivenUp(error) if !error.is_empty() => reply.raw(&error),
            blocking::Outcome::GivenUp(_) => blocking::answer_otherwise(blocked.otherwise, reply),
        }
        self.session.unblock();
        self.wait_clock = None;
        if blocked.is_wanted {
            self.send(context, reply)?;
        }
        Ok(Poll::Ready(()))
    }

    /// Reads what a client sends while its command waits; pending until it does, and an error when it has gone.
    fn read_ahead(&mut self, context: &mut Context<'_>) -> Result<Poll<()>, Closed> {
        let worker = self.worker.clone();
        let mut shared = worker.input();
        while self.input.len() < limits::WAITING_INPUT_BYTES_MAX {
            let mut buffer = ReadBuf::new(&mut shared);
            if let Poll::Ready(result) = self.stream.poll_read(context, &mut buffer) {
                result?;
            } else {
                return Ok(Poll::Pending);
            }
            let read = buffer.filled();
            if read.is_empty() {
                return Err(Closed::ByPeer);
            }
            self.input.extend_from_slice(read);
            self.has_commands = true;
            let read = read.len();
            self.count_received(read);
            self.session.client.active(Instant::now());
        }
        Ok(Poll::Pending)
    }

    /// Sends what waits.
    fn flush(&mut self, context: &mut Context<'_>) -> Result<Poll<()>, Closed> {
        if self.output.is_empty() {
            return Ok(Poll::Ready(()));
        }
        let mut sent = 0;
        let before = self.output.len();
        let flushed = self.output.poll_flush(&mut self.stream, context, &mut sent);
        self.worker.output_changed(before, self.output.len());
        self.count_sent(sent);
        match flushed {
            Poll::Ready(result) => result.map(Poll::Ready).map_err(Closed::from),
            Poll::Pending => Ok(Poll::Pending),
        }
    }

    /// Sends some messages, or queues what the socket does not take of them.
    fn deliver(&mut self, context: &mut Context<'_>) -> Result<(), Closed> {
        let worker = self.worker.clone();
        let mut scratch = worker.scratch();
        let reply = &mut scratch.reply;
        reply.clear();
        reply.set_protocol(self.session.protocol());
        self.session.messages.deliver(reply, limits::REPLY_BYTES_PAUSE);
        self.send(context, reply)
    }

    /// Reads once and runs what is complete.
    fn read(&mut self, context: &mut Context<'_>) -> Result<Poll<()>, Closed> {
        let expected = self.decoder.expected();
        if self.input.len().max(expected) > limits::SHARED_INPUT_BYTES / 2 {
            return self.read_own(context, expected);
        }
        let worker = self.worker.clone();
        let mut shared = worker.input();
        // What is left from before goes to the front of the shared buffer, so that commands are contiguous.
        let kept = self.input.len();
        shared[..kept].copy_from_slice(&self.input);
        let mut buffer = ReadBuf::new(&mut shared[kept..]);
        let read = match self.stream.poll_read(context, &mut buffer) {
            Poll::Pending => return Ok(Poll::Pending),
            Poll::Ready(result) => {
                result?;
                buffer.filled().len()
            }
        };
        if read == 0 {
            return self.peer_is_done();
        }
        self.count_received(read);
        let filled = kept + read;
        let consumed = self.run(context, &mut shared[..filled])?;
        self.has_more |= filled == shared.len();
        let left = &shared[consumed..filled];
        if left.is_empty() {
            self.input = Vec::new();
        } else {
            self.input.clear();
            self.input.extend_from_slice(left);
        }
        self.check_query_buffer()?;
        Ok(Poll::Ready(()))
    }

    /// Reads once into the connection's own buffer, which has exactly the room for a large argument if one is expected.
    fn read_own(&mut self, context: &mut Context<'_>, expected: usize) -> Result<Poll<()>, Closed> {
        // A length that was only announced costs no memory: the room at most doubles what has come.
        let ahead = self.input.len().max(limits::INPUT_BYTES_AHEAD);
        let wanted = match expected.saturating_sub(self.input.len()) {
            0 => limits::SHARED_INPUT_BYTES,
            missing => missing.min(ahead),
        };
        if self.input.try_reserve_exact(wanted).is_err() {
            tracing::warn!("no memory for a request of {} bytes", self.input.len() + wanted);
            return Err(Closed::ByUs);
        }
        let room = self.input.spare_capacity_mut();
        let wanted = wanted.min(room.len());
        let mut buffer = ReadBuf::uninit(&mut room[..wanted]);
        match self.stream.poll_read(context, &mut buffer) {
            Poll::Pending => return Ok(Poll::Pending),
            Poll::Ready(result) => result?,
        }
        let read = buffer.filled().len();
        if read == 0 {
            return self.peer_is_done();
        }
        let filled = self.input.len() + read;
        // SAFETY: `buffer` began at the vector's end, and `filled()` says that its first `read` bytes have been written.
        unsafe { self.input.set_len(filled) };
        self.count_received(read);
        self.has_more = read == wanted;
        self.session.client.active(Instant::now());
        if filled >= expected {
            self.run_own(context)?;
        }
        self.check_query_buffer()?;
        Ok(Poll::Ready(()))
    }

    /// The client sends no more. What it has still to take is sent, if it was only its sending side that it closed.
    fn peer_is_done(&mut self) -> Result<Poll<()>, Closed> {
        self.session.end(if self.output.is_empty() { Ending::Now } else { Ending::AfterReplies });
        Ok(Poll::Ready(()))
    }

    /// Runs complete commands of the connection's own input.
    fn run_own(&mut self, context: &mut Context<'_>) -> Result<(), Closed> {
        let mut input = std::mem::take(&mut self.input);
        let consumed = self.run(context, &mut input)?;
        input.drain(..consumed);
        // An empty buffer is given back; so is room that a large argument has left behind.
        input.shrink_to(input.len());
        self.input = input;
        Ok(())
    }

    /// Decodes `input`, runs its complete commands as far as the turn allows, and sends the replies. Gives the number of bytes done
    /// with; `has_commands` says whether there may be a complete command behind them.
    fn run(&mut self, context: &mut Context<'_>, input: &mut [u8]) -> Result<usize, Closed> {
        let worker = self.worker.clone();
        let mut scratch = worker.scratch();
        let Scratch { batch, reply, transactions, engine } = &mut *scratch;
        // A turn that ended early may have left something behind.
        reply.clear();
        let server = worker.server();
        let limits = DecodeLimits {
            bulk_bytes_max: server.settings.proto_max_bulk_len.get() as usize,
            authenticated: self.session.authenticated || !server.settings.password_required.get(),
            commands_max: limits::TURN_COMMANDS_MAX,
        };
        let decoded = self.decoder.decode(input, &limits, batch);
        let mut consumed = decoded.consumed;
        self.has_commands = decoded.paused;
        if batch.is_empty() {
            self.session.client.active(Instant::now());
        } else {
            reply.set_protocol(self.session.protocol());
            let mut commands = CommandContext {
                table: &server.table,
                server,
                worker: worker.store(),
                scratch: transactions,
                may_wait: true,
                engine,
                session: &mut self.session,
            };
            let executed = dispatch::execute_batch(&mut commands, input, batch, reply);
            if executed < batch.len() {
                consumed = batch.offset(executed);
                self.decoder.reset();
                self.has_commands = true;
            }
        }
        if let Some(error) = decoded.error
            && !self.has_commands
            && self.session.is_ready()
        {
            tracing::debug!("protocol error ({error:?}) from client {}", self.session.client.address);
            if self.session.replies == ReplyMode::On {
                error.write(reply);
            }
            self.session.end(Ending::AfterReplies);
        }
        if decoded.error.is_some() && self.session.blocked.is_some() {
            // Its turn comes when the client's command has come to its end.
            self.decoder.reset();
            self.has_commands = true;
        }
        if self.session.ending != Ending::None {
            self.has_commands = false;
            consumed = input.len();
        }
        self.send(context, reply)?;
        Ok(consumed)
    }

    /// Sends the worker's reply buffer, or queues what the socket does not take.
    fn send(&mut self, context: &mut Context<'_>, reply: &mut Reply) -> Result<(), Closed> {
        if reply.is_empty() {
            return Ok(());
        }
        let before = self.output.len();
        let limit = self.worker.server().settings.output_limit(self.session.class());
        let hard = limit.hard.get() as usize;
        if hard > 0 && before + reply.len() > hard {
            return self.output_limit_reached();
        }
        if self.output.is_empty() {
            let sent = self.output.send(&mut self.stream, context, reply)?;
            self.count_sent(sent);
        } else {
            self.output.push(reply);
            self.session.client.sent(0, self.output.len(), self.output.chunks());
        }
        if reply.buffer().is_empty() && reply.capacity() > limits::REPLY_BYTES_KEPT {
            reply.take();
        }
        self.worker.output_changed(before, self.output.len());
        Ok(())
    }

    /// Ready when it is time to look at the share again: others that have left make it grow, and a client that sends its whole pipeline
    /// before it reads would wait for ever.
    fn await_share(&mut self, context: &mut Context<'_>) -> Poll<()> {
        let period = Duration::from_millis(limits::OUTPUT_SHARE_CHECK_INTERVAL_MS);
        let clock = self.share_check.get_or_insert_with(|| Box::pin(tokio::time::sleep(period)));
        ready!(clock.as_mut().poll(context));
        self.share_check = None;
        Poll::Ready(())
    }

    /// Starts or stops the clock of the soft limit, and looks at it.
    fn check_soft_limit(&mut self, context: &mut Context<'_>) -> Result<(), Closed> {
        let limit = self.worker.server().settings.output_limit(self.session.class());
        let soft = limit.soft.get() as usize;
        if soft == 0 || self.session.client.output_buffer() <= soft {
            self.soft_limit = None;
            return Ok(());
        }
        let seconds = Duration::from_secs(limit.soft_seconds.get());
        let clock = self.soft_limit.get_or_insert_with(|| Box::pin(tokio::time::sleep(seconds)));
        if clock.as_mut().poll(context).is_ready() { self.output_limit_reached() } else { Ok(()) }
    }

    #[cold]
    fn output_limit_reached(&mut self) -> Result<(), Closed> {
        self.worker.counters().output_buffer_limit_disconnections.add(1);
        tracing::warn!("closing client {}: it exceeds client-output-buffer-limit", self.session.client.address);
        Err(Closed::ByUs)
    }

    fn check_query_buffer(&mut self) -> Result<(), Closed> {
        let bytes = self.input.len();
        // Relaxed: figures for CLIENT LIST, which order nothing; this task is their only writer.
        self.session.client.query_buffer.store(bytes, Ordering::Relaxed);
        self.session.client.query_buffer_free.store(self.input.capacity() - bytes, Ordering::Relaxed);
        let mut limit = self.worker.server().settings.client_query_buffer_limit.get() as usize;
        if !self.session.authenticated {
            limit = limit.min(limits::UNAUTHENTICATED_QUERY_BYTES_MAX);
        }
        if bytes <= limit.min(limits::DECODER_INPUT_BYTES_MAX - limits::SHARED_INPUT_BYTES) {
            return Ok(());
        }
        self.worker.counters().query_buffer_limit_disconnections.add(1);
        tracing::warn!("closing client {}: it exceeds client-query-buffer-limit", self.session.client.address);
        Err(Closed::ByUs)
    }

    /// Takes back what the store knows of the client: that it waits for keys, or watches them.
    fn leave_keys(&mut self) {
        let client = self.session.client.id;
        if self.session.blocked.is_none() && self.session.watched.is_empty() {
            return;
        }
        let mut scratch = self.worker.scratch();
        let transactions = &mut scratch.transactions;
        unwatch(self.worker.store(), transactions, client, &self.session.watched);
        if self.session.blocked.is_some() {
            let mut tx = Transaction::new(self.worker.store(), transactions, 0, RuntimeLimits::default());
            tx.run(|tx| blocking::cancel(tx, client));
            drop(tx.take_wakes());
        }
    }

    fn count_received(&mut self, bytes: usize) {
        let counters = self.worker.counters();
        counters.reads_processed.add(1);
        counters.net_input_bytes.add(bytes as u64);
        self.session.client.received(bytes);
    }

    fn count_sent(&mut self, bytes: usize) {
        let counters = self.worker.counters();
        counters.writes_processed.add(1);
        counters.net_output_bytes.add(bytes as u64);
        self.session.client.sent(bytes, self.output.len(), self.output.chunks());
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.leave_keys();
        self.worker.output_changed(self.output.len(), 0);
        self.worker.connection_closed();
        let server = self.worker.server();
        let client = self.session.client.clone();
        self.session.change_subscriptions(|subscriptions| server.hub.leave(subscriptions, &client.outbox));
        if self.session.is_tracking {
            server.untrack(client.id);
        }
        if client.is_monitor() {
            server.monitors.remove(&client.outbox);
        }
        server.clients.remove(self.session.client.id);
        self.session.messages.close();
    }
}
