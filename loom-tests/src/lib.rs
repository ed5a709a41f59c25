//! Model checks of the shipped lock-free files; see README.md.
