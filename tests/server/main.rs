//! A whole server, over sockets.

mod blocking;
mod client;
mod configuration;
mod connection;
mod harness;
mod information;
mod input;
mod lifecycle;
mod limits;
mod monitor;
mod names;
mod pubsub;
mod scripting;
mod start;
mod tracking;
mod transactions;
