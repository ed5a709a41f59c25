//! The models, one file per protocol. A new file is named here twice: as a module and in [`all`].

mod door;

use crate::Model;

/// Every model, in the order in which they are run and listed.
pub fn all() -> impl Iterator<Item = &'static Model> {
    [door::MODELS].into_iter().flatten()
}
