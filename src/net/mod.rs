//! The network: one thread per core, each with its own runtime, its own connections and its own access to the store.
//!
//! | file | what it holds |
//! | --- | --- |
//! | `listener` | the sockets to listen on; who is let in; to which worker a client goes |
//! | `worker` | a thread, and the buffers that its connections use in turn |
//! | `connection` | one client from its first byte to its last: read, decode, run, write |
//! | `output`, `stream` | replies that wait for the socket; the socket |
//! | `descriptors`, `signals` | the process's limit of open files; SIGTERM and SIGINT |
//!
//! Worker 0 also accepts. It deals each socket to the worker with the fewest connections, and there the connection stays: no
//! command ever crosses threads, and no queue stands between a socket and the store.

mod connection;
mod descriptors;
mod listener;
mod output;
mod signals;
mod stream;
mod worker;

use std::io;
use std::net::SocketAddr;
use std::rc::Rc;

use tokio::sync::mpsc;

pub use listener::Listeners;

use crate::limits;
use crate::server::{Server, ShutdownRequest, process};
use crate::sync::{Arc, AtomicUsize, thread};
use listener::Dealer;

/// Binds what the settings say and serves until SIGTERM, SIGINT or SHUTDOWN.
///
/// # Errors
/// If a socket cannot be bound, or a thread or its event queue cannot be made.
pub fn run(server: Arc<Server>) -> Result<(), String> {
    descriptors::make_room(&server.settings).map_err(|error| error.to_string())?;
    server.settings.on_change(&["maxclients"], descriptors::check_room);
    let listeners = Listeners::bind(&server.settings)?.follow(&server.settings).map_err(|error| error.to_string())?;
    let announce = {
        let (server, addresses) = (server.clone(), listeners.addresses());
        move || announce(&server, &addresses)
    };
    let signals = signals::watch(server.clone(), announce);
    serve(server, listeners, signals).map_err(|error| error.to_string())
}

/// Tells people and the supervisor that the server is ready.
fn announce(server: &Server, addresses: &[SocketAddr]) {
    for address in addresses {
        tracing::info!("Ready to accept connections on {address}");
    }
    let path = server.settings.string("unixsocket");
    if !path.is_empty() {
        tracing::info!("Ready to accept connections on {path}");
    }
    if let Err(error) = process::notify_supervisor(&server.settings) {
        tracing::warn!("The supervisor cannot be told that the server is ready: {error}");
    }
}

/// Serves the clients of `listeners` until the server is told to stop. `beside` is polled on worker 0 meanwhile.
///
/// # Errors
/// If a thread or its event queue cannot be made, or a worker ended by a panic.
pub fn serve(
    server: Arc<Server>,
    listeners: Listeners,
    beside: impl Future<Output = ()> + Send + 'static,
) -> io::Result<()> {
    let count = usize::from(server.settings.threads.get()).max(1);
    let load: worker::Load = (0..count).map(|_| AtomicUsize::new(0)).collect();
    let (ways, queues): (Vec<_>, Vec<_>) = (0..count).map(|_| mpsc::channel(limits::ACCEPT_QUEUE_SOCKETS)).unzip();
    let mut first = Some((listeners, ways, beside));
    let mut threads = Vec::with_capacity(count);
    for (index, accepted) in queues.into_iter().enumerate() {
        let start = worker::Start { index, server: server.clone(), accepted, load: load.clone() };
        let (first, load) = (first.take(), load.clone());
        let body = move || {
            let stop = StopWithMe(start.server.clone());
            let result = worker::run(start, accept(first, stop.0.clone(), load));
            drop(stop);
            result
        };
        threads.push(
            thread::Builder::new()
                .name(format!("worker-{index}"))
                .stack_size(limits::WORKER_STACK_BYTES)
                .spawn(body)?,
        );
    }
    let panicked = |_| Err(io::Error::other("a worker panicked"));
    threads.into_iter().map(|thread| thread.join().unwrap_or_else(panicked)).fold(Ok(()), io::Result::and)
}

/// What worker 0 does beside serving: accepts, until the worker ends and drops this.
async fn accept(
    duty: Option<(Listeners, Vec<mpsc::Sender<listener::Accepted>>, impl Future<Output = ()>)>,
    server: Arc<Server>,
    load: worker::Load,
) {
    let Some((listeners, workers, beside)) = duty else { return };
    let dealer = Rc::new(Dealer { load, workers });
    match listeners.accept_all(&server, &dealer) {
        Ok(mut accepting) => {
            tokio::join!(beside, accepting.follow(&server, &dealer));
            std::future::pending().await
        }
        Err(error) => {
            tracing::error!("the sockets cannot be watched: {error}");
            server.shutdown.request(ShutdownRequest::default());
        }
    }
}

/// Stops the server when dropped, so that no worker ends alone.
struct StopWithMe(Arc<Server>);

impl Drop for StopWithMe {
    fn drop(&mut self) {
        self.0.shutdown.request(ShutdownRequest::default());
    }
}
