//! What a command about the client or the server may touch.

use super::table::Table;
use crate::server::Server;
use crate::session::Session;
use crate::store::Worker;
use crate::sync::Arc;

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
    /// The client that sent the command.
    pub session: &'a mut Session,
}

impl Context<'_> {
    /// Whether the client has shown who it is, or need not while no password is set.
    #[inline]
    pub fn authenticated(&self) -> bool {
        self.session.authenticated || !self.server.settings.password_required.get()
    }
}
