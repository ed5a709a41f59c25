//! Room for file descriptors: as many as `maxclients` needs.

use std::io;

use crate::config::Settings;
use crate::limits;

/// Raises the process's limit of open files so that `maxclients` clients fit, or lowers `maxclients` to what fits.
///
/// # Errors
/// If the limit leaves no room for any client.
pub fn make_room(settings: &Settings) -> io::Result<()> {
    let clients = settings.maxclients.get();
    let fitting = raise_for(clients)?;
    if fitting == clients {
        return Ok(());
    }
    let reached = u64::from(fitting) + limits::DESCRIPTORS_RESERVED;
    if fitting == 0 {
        let text = format!("the limit of {reached} open files leaves no room for clients; raise it (ulimit -n)");
        return Err(io::Error::other(text));
    }
    let wanted = u64::from(clients) + limits::DESCRIPTORS_RESERVED;
    tracing::warn!(
        "maxclients is lowered from {clients} to {fitting}: the system allows {reached} open files (ulimit -n), \
         and {wanted} are needed"
    );
    settings.overrule("maxclients", i64::from(fitting));
    Ok(())
}

/// Raises the limit for a `maxclients` that CONFIG SET wants, worded as in Redis where it cannot be raised so far.
pub fn check_room(settings: &Settings) -> Result<(), String> {
    let clients = settings.maxclients.get();
    match raise_for(clients) {
        Ok(fitting) if fitting < clients => Err(format!(
            "The operating system is not able to handle the specified number of clients, try with {fitting}"
        )),
        Ok(_) => Ok(()),
        Err(error) => Err(error.to_string()),
    }
}

/// Raises the limit as far as needed and possible; how many of `clients` then fit.
fn raise_for(clients: u32) -> io::Result<u32> {
    let wanted = u64::from(clients) + limits::DESCRIPTORS_RESERVED;
    let (soft, hard) = open_files()?;
    if soft >= wanted || raise_to(wanted, hard.max(wanted)).is_ok() {
        return Ok(clients);
    }
    let reached = if raise_to(hard.min(wanted), hard).is_ok() { hard.min(wanted) } else { soft };
    Ok(reached.saturating_sub(limits::DESCRIPTORS_RESERVED) as u32)
}

/// The soft and the hard limit.
fn open_files() -> io::Result<(u64, u64)> {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: `limit` lives on this stack, and the call only writes to it.
    let result = unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &mut limit) };
    if result == 0 { Ok((limit.rlim_cur, limit.rlim_max)) } else { Err(io::Error::last_os_error()) }
}

fn raise_to(soft: u64, hard: u64) -> io::Result<()> {
    let limit = libc::rlimit { rlim_cur: soft, rlim_max: hard };
    // SAFETY: `limit` lives on this stack, and the call only reads it.
    let result = unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &limit) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}
