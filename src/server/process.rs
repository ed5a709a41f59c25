//! The process: what the operating system allows it, knows of it, and charges it for.

use std::io;
use std::path::Path;
use std::time::Duration;

use crate::config::Settings;

/// Leaves the terminal: goes on in a child process with no terminal and with `/dev/null` as standard streams.
///
/// # Safety
/// No other thread may run.
///
/// # Errors
/// What the operating system says.
pub unsafe fn daemonize() -> io::Result<()> {
    // SAFETY: the caller promises that there is one thread, so the child is whole.
    if unsafe { libc::daemon(1, 0) } == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Tells systemd that the server is ready, if `supervised` wants it and systemd said where.
///
/// # Errors
/// If systemd's socket cannot be reached.
pub fn notify_supervisor(settings: &Settings) -> io::Result<()> {
    use std::os::linux::net::SocketAddrExt;
    use std::os::unix::ffi::OsStrExt;
    use std::os::unix::net::{SocketAddr, UnixDatagram};
    let wanted = matches!(settings.print_named("supervised").as_slice(), b"systemd" | b"auto");
    let Some(path) = std::env::var_os("NOTIFY_SOCKET").filter(|_| wanted) else { return Ok(()) };
    let address = match path.as_bytes() {
        [b'@', name @ ..] => SocketAddr::from_abstract_name(name)?,
        _ => SocketAddr::from_pathname(Path::new(&path))?,
    };
    UnixDatagram::unbound()?.send_to_addr(b"STATUS=Ready to accept connections\nREADY=1\n", &address).map(|_| ())
}

/// Processor time.
#[derive(Clone, Copy, Debug, Default)]
pub struct ProcessorTime {
    /// In the kernel.
    pub system: Duration,
    /// In the program.
    pub user: Duration,
}

/// Whose processor time.
#[derive(Clone, Copy, Debug)]
pub enum Who {
    /// All threads of this process.
    Process,
    /// Its ended children.
    Children,
    /// The calling thread.
    Thread,
}

/// Processor time used so far.
pub fn processor_time(who: Who) -> ProcessorTime {
    let who = match who {
        Who::Process => libc::RUSAGE_SELF,
        Who::Children => libc::RUSAGE_CHILDREN,
        Who::Thread => libc::RUSAGE_THREAD,
    };
    // SAFETY: `rusage` is a C structure of integers, for which all zeros are valid.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: the pointer is to a living value of the right type.
    unsafe { libc::getrusage(who, &raw mut usage) };
    let duration = |time: libc::timeval| Duration::new(time.tv_sec as u64, time.tv_usec as u32 * 1000);
    ProcessorTime { system: duration(usage.ru_stime), user: duration(usage.ru_utime) }
}

/// Resident memory of this process in bytes; zero where the kernel does not say.
pub fn resident_bytes() -> u64 {
    let pages = std::fs::read_to_string("/proc/self/statm")
        .ok()
        .and_then(|text| text.split(' ').nth(1).and_then(|pages| pages.parse::<u64>().ok()));
    pages.unwrap_or(0) * system_number(libc::_SC_PAGESIZE)
}

/// Memory of the machine in bytes.
pub fn machine_bytes() -> u64 {
    system_number(libc::_SC_PHYS_PAGES) * system_number(libc::_SC_PAGESIZE)
}

fn system_number(name: libc::c_int) -> u64 {
    // SAFETY: sysconf takes any number and keeps nothing.
    unsafe { libc::sysconf(name) }.max(0) as u64
}

/// The operating system's name, release and machine.
pub fn operating_system() -> String {
    // SAFETY: `utsname` is a C structure of characters, for which all zeros are valid.
    let mut names: libc::utsname = unsafe { std::mem::zeroed() };
    // SAFETY: the pointer is to a living value of the right type.
    unsafe { libc::uname(&raw mut names) };
    let text = |bytes: &[libc::c_char]| {
        let bytes: Vec<u8> = bytes.iter().take_while(|byte| **byte != 0).map(|byte| *byte as u8).collect();
        String::from_utf8_lossy(&bytes).into_owned()
    };
    format!("{} {} {}", text(&names.sysname), text(&names.release), text(&names.machine))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_operating_system_answers() {
        assert!(resident_bytes() > 100_000);
        assert!(machine_bytes() > resident_bytes());
        assert!(operating_system().starts_with("Linux "));
        let thread = processor_time(Who::Thread);
        let process = processor_time(Who::Process);
        assert!(process.user + process.system >= thread.user);
    }
}
