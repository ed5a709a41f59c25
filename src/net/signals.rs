//! Signals: SIGTERM and SIGINT stop the server, and a second SIGINT does not wait.

use tokio::signal::unix::{SignalKind, signal};

use crate::server::{Server, ShutdownRequest};
use crate::sync::Arc;

/// Turns signals into requests to stop, for ever. Calls `ready` as soon as a signal stops the server in order, which it does not
/// before.
pub async fn watch(server: Arc<Server>, ready: impl FnOnce()) {
    let (mut interrupt, mut terminate) = match (signal(SignalKind::interrupt()), signal(SignalKind::terminate())) {
        (Ok(interrupt), Ok(terminate)) => (interrupt, terminate),
        (Err(error), _) | (_, Err(error)) => {
            tracing::warn!("signals cannot be handled: {error}");
            return ready();
        }
    };
    ready();
    loop {
        let choices = tokio::select! {
            _ = interrupt.recv() => {
                if server.shutdown.requested().is_some() {
                    tracing::warn!("You insist... exiting now.");
                    std::process::exit(1);
                }
                tracing::warn!("Received SIGINT scheduling shutdown...");
                &server.settings.shutdown_on_sigint
            }
            _ = terminate.recv() => {
                tracing::warn!("Received SIGTERM scheduling shutdown...");
                &server.settings.shutdown_on_sigterm
            }
        };
        server.shutdown.request(ShutdownRequest::of_choices(choices.get()));
    }
}
