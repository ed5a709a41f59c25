//! What a command about the client or the server may touch.

use super::blocking;
use super::table::Table;
use crate::resp::Reply;
use crate::server::Server;
use crate::session::Session;
use crate::store::Worker;
use crate::sync::{Arc, Ordering};
use crate::txn::{RuntimeLimits, Transaction, databases};

/// Handed to every [`Handler::Server`](super::spec::Handler::Server) function. Such a command runs once, on its client's worker.
pub struct Context<'a> {
    /// All commands.
    pub table: &'a Table,
    /// What all workers share.
    pub server: &'a Arc<Server>,
    /// This thread's access to the store.
    pub worker: &'a Worker,
    /// Memory for transactions.
    pub scratch: &'a mut crate::txn::Scratch,
    /// Whether the command may wait: not within EXEC.
    pub may_wait: bool,
    /// This thread's Lua state, made when it is first wanted.
    pub engine: &'a mut Option<crate::script::Engine>,
    /// The client that sent the command.
    pub session: &'a mut Session,
}

impl Context<'_> {
    /// Puts before all that follows what other workers, or this command, have told the client. Not among the replies of EXEC, which are counted.
    pub fn deliver(&mut self, reply: &mut Reply) {
        if !self.may_wait {
            return;
        }
        self.session.messages.deliver(reply, usize::MAX);
        reply.keep();
    }

    /// Ends all of the client's subscriptions and its tracking, and that it is shown commands; what came by them before is put into `reply`.
    pub fn stop_listening(&mut self, reply: &mut Reply) {
        let client = self.session.client.clone();
        self.session.change_subscriptions(|subscriptions| self.server.hub.leave(subscriptions, &client.outbox));
        if std::mem::take(&mut self.session.is_tracking) {
            self.server.untrack(client.id);
        }
        // Relaxed: a flag that its own worker alone changes.
        if client.is_monitor.swap(false, Ordering::Relaxed) {
            self.server.monitors.remove(&client.outbox);
        }
        self.deliver(reply);
    }

    /// Serves all clients that wait for a key which has a value that they can take, after something that gave many keys other values at once.
    pub fn serve_all_waiting(&mut self, limits: RuntimeLimits) {
        for (database, key) in databases::keys_of_interest(self.worker) {
            let mut tx = Transaction::new(self.worker, self.scratch, database, limits);
            tx.run(|tx| {
                let id = tx.open(&key);
                blocking::serve_key(tx, self.table, id);
                blocking::serve(tx, self.table);
            });
            let wakes = tx.take_wakes();
            drop(tx);
            self.server.clients.wake(&wakes);
        }
    }

    /// Whether the client has shown who it is, or need not while no password is set.
    #[inline]
    pub fn authenticated(&self) -> bool {
        self.session.authenticated || !self.server.settings.password_required.get()
    }
}
