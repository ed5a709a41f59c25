//! A whole server, over sockets.

mod client;
mod configuration;
mod harness;
mod information;
mod names;
mod start;
