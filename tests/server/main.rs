//! A whole server, over sockets.

mod client;
mod configuration;
mod connection;
mod harness;
mod information;
mod input;
mod lifecycle;
mod limits;
mod names;
mod start;
