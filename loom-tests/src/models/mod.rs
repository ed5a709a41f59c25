//! The models, one file per protocol. A new file is named here twice: as a module and in [`all`].

mod commit;
mod deque;
mod door;
mod outbox;
mod store;
mod table;

use crate::Model;

/// Every model, in the order in which they are run and listed.
pub fn all() -> impl Iterator<Item = &'static Model> {
    [door::MODELS, commit::MODELS, table::MODELS, deque::MODELS, outbox::MODELS].into_iter().flatten()
}
