//! MONITOR: clients that are shown every command.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;

use super::outbox::{Outbox, OutboxLimits, Placed};
use crate::sync::{Arc, AtomicUsize, Ordering};

/// The clients that watch. Lines of commands that ran at the same time on several workers come in any order, but in the same one to all who
/// watch; the line of a command that was answered comes before those of commands that were sent later.
#[derive(Default)]
pub struct Monitors {
    outboxes: Mutex<Vec<Arc<Outbox>>>,
    count: AtomicUsize,
}

impl Monitors {
    /// Whether anybody watches.
    #[inline]
    pub fn any(&self) -> bool {
        // Relaxed: whoever was told that it watches finds the lines of the batches that began since; nothing else depends on it.
        self.count.load(Ordering::Relaxed) > 0
    }

    /// Adds a client that does not watch yet.
    pub fn add(&self, outbox: &Arc<Outbox>) {
        let mut outboxes = self.lock();
        outboxes.push(outbox.clone());
        // Relaxed: see `any`.
        self.count.store(outboxes.len(), Ordering::Relaxed);
    }

    /// Removes a client.
    pub fn remove(&self, outbox: &Arc<Outbox>) {
        let mut outboxes = self.lock();
        outboxes.retain(|one| !Arc::ptr_eq(one, outbox));
        // Relaxed: see `any`.
        self.count.store(outboxes.len(), Ordering::Relaxed);
    }

    /// Shows a line to all; gives the number of those that are being closed because of it.
    pub fn show(&self, line: &Bytes, limits: OutboxLimits) -> u64 {
        let place = |outbox: &&Arc<Outbox>| outbox.push(line.clone(), limits) == Placed::Overflow;
        self.lock().iter().filter(place).count() as u64
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Arc<Outbox>>> {
        // Nothing that holds the lock can panic half way through a change.
        self.outboxes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The line for a command: when it ran (since the beginning of Unix time), in which database, who sent it, and its arguments in quotes.
pub fn monitor_line<'a>(
    time: Duration,
    database: usize,
    source: &str,
    arguments: impl Iterator<Item = &'a [u8]>,
) -> Bytes {
    let mut line = format!("+{}.{:06} [{database} {source}]", time.as_secs(), time.subsec_micros()).into_bytes();
    for argument in arguments {
        line.push(b' ');
        quote(argument, &mut line);
    }
    line.extend_from_slice(b"\r\n");
    line.into()
}

/// Puts an argument in quotes, with escapes for what cannot be printed.
fn quote(argument: &[u8], line: &mut Vec<u8>) {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    line.push(b'"');
    for &byte in argument {
        match byte {
            b'\\' | b'"' => line.extend([b'\\', byte]),
            b'\n' => line.extend(b"\\n"),
            b'\r' => line.extend(b"\\r"),
            b'\t' => line.extend(b"\\t"),
            0x07 => line.extend(b"\\a"),
            0x08 => line.extend(b"\\b"),
            b' '..=b'~' => line.push(byte),
            _ => line.extend([b'\\', b'x', DIGITS[usize::from(byte >> 4)], DIGITS[usize::from(byte & 15)]]),
        }
    }
    line.push(b'"');
}

#[cfg(all(test, not(caswell_loom)))]
mod tests {
    use super::*;

    #[test]
    fn lines_are_quoted_as_in_redis() {
        let arguments: [&[u8]; 4] = [b"set", b"a \"b\"\\", b"\r\n\t\x07\x08\0\xff", b""];
        let line = monitor_line(Duration::from_micros(12_000_034), 3, "127.0.0.1:5", arguments.into_iter());
        assert_eq!(
            String::from_utf8_lossy(&line),
            "+12.000034 [3 127.0.0.1:5] \"set\" \"a \\\"b\\\"\\\\\" \"\\r\\n\\t\\a\\b\\x00\\xff\" \"\"\r\n"
        );
    }

    #[test]
    fn all_who_watch_are_shown_a_line() {
        let monitors = Monitors::default();
        let outboxes = [Arc::new(Outbox::default()), Arc::new(Outbox::default())];
        outboxes.iter().for_each(|outbox| monitors.add(outbox));
        let limits = OutboxLimits { hard: 1000, soft: 0 };
        assert_eq!(monitors.show(&Bytes::from_static(b"+x\r\n"), limits), 0);
        assert!(outboxes.iter().all(|outbox| !outbox.is_empty()));
        assert_eq!(monitors.show(&vec![b'x'; 2000].into(), limits), 2);
        outboxes.iter().for_each(|outbox| monitors.remove(outbox));
        assert!(!monitors.any());
    }
}
