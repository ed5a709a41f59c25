//! Whole commands in process: table look-up of the key, transaction, commit and reply, but no network and no parsing.

use caswell::command::args::Args;
use caswell::command::family::FAMILIES;
use caswell::command::spec::Handler;
use caswell::command::table::Table;
use caswell::resp::{Protocol, Reply};
use caswell::store::{Store, StoreOptions, Worker};
use caswell::txn::{RuntimeLimits, Scratch, Transaction};
use std::hint::black_box;

/// A client with a store of its own.
pub struct Client {
    worker: Worker,
    scratch: Scratch,
    reply: Reply,
    table: Table,
    commands: usize,
}

impl Client {
    /// On an empty store.
    pub fn new() -> Self {
        let store = Store::new(StoreOptions::default());
        Self {
            worker: Worker::register(&store).expect("a free slot"),
            scratch: Scratch::default(),
            reply: Reply::new(Protocol::Resp2),
            table: Table::new(FAMILIES),
            commands: 0,
        }
    }

    /// Runs one command, with a section of its own.
    #[inline]
    pub fn run(&mut self, items: &[&[u8]]) {
        let args = Args::new(items);
        let Ok(command) = self.table.resolve(&args) else { panic!("no such command") };
        let Handler::Data(handler) = command.row.handler else { panic!("no data command") };
        self.reply.clear();
        let mut tx = Transaction::new(&self.worker, &mut self.scratch, 0, RuntimeLimits::default());
        let result = tx.run(|tx| handler(tx, &args, &mut self.reply));
        assert!(result.is_ok());
        drop(tx);
        black_box(self.reply.len());
        self.commands += 1;
        if self.commands.is_multiple_of(64) {
            self.worker.tick();
        }
    }
}
