//! How the server is told to stop: one request, seen by every worker.

use tokio::sync::watch;

/// How to stop, as SHUTDOWN's options or a signal say.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct ShutdownRequest {
    /// Write no snapshot even if save points are configured.
    pub no_save: bool,
    /// Write a snapshot even if no save points are configured.
    pub save: bool,
    /// Do not wait for replicas that lag behind.
    pub now: bool,
    /// Stop even if something could not be saved.
    pub force: bool,
}

impl ShutdownRequest {
    /// What `shutdown-on-sigint` or `shutdown-on-sigterm` asks for: bits in the order save, nosave, now, force.
    pub fn of_choices(bits: u32) -> Self {
        let has = |bit: u32| bits >> bit & 1 != 0;
        Self { save: has(0), no_save: has(1), now: has(2), force: has(3) }
    }
}

/// The request to stop. Any thread may raise it; every worker awaits it.
pub struct Shutdown {
    request: watch::Sender<Option<ShutdownRequest>>,
}

impl Default for Shutdown {
    fn default() -> Self {
        Self { request: watch::Sender::new(None) }
    }
}

impl Shutdown {
    /// Asks every worker to stop. The first request stands.
    pub fn request(&self, request: ShutdownRequest) {
        self.request.send_if_modified(|current| {
            let first = current.is_none();
            current.get_or_insert(request);
            first
        });
    }

    /// The request, if there is one.
    pub fn requested(&self) -> Option<ShutdownRequest> {
        *self.request.borrow()
    }

    /// Completes when a request was made. Cancel safe.
    pub async fn wait(&self) -> ShutdownRequest {
        let mut receiver = self.request.subscribe();
        let request = receiver.wait_for(Option::is_some).await.expect("the sender lives as long as `self`");
        request.expect("waited for a request")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn choices_are_bits_in_the_order_of_the_setting() {
        let settings = crate::config::Settings::new();
        settings.set(&[(b"shutdown-on-sigint", b"nosave force")], false).expect("valid choices");
        let expected = ShutdownRequest { no_save: true, force: true, ..ShutdownRequest::default() };
        assert_eq!(ShutdownRequest::of_choices(settings.shutdown_on_sigint.get()), expected);
    }

    #[test]
    fn the_first_request_stands_and_is_seen_by_late_waiters() {
        let shutdown = Shutdown::default();
        assert_eq!(shutdown.requested(), None);
        let first = ShutdownRequest { no_save: true, ..Default::default() };
        shutdown.request(first);
        shutdown.request(ShutdownRequest { force: true, ..Default::default() });
        let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
        assert_eq!(runtime.block_on(shutdown.wait()), first);
    }
}
