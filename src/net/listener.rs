//! Where clients come in: the sockets to listen on, and the rules by which a client is let in and dealt to a worker.

use std::fs;
use std::io::{self, Write};
use std::net::{IpAddr, Shutdown, SocketAddr, TcpListener, TcpStream, ToSocketAddrs};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use socket2::{Domain, Protocol, SockRef, Socket, TcpKeepalive, Type};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio::sync::mpsc;
use tokio::task;

use super::stream::Stream;
use super::worker::{Load, Worker};
use crate::config::Settings;
use crate::limits;
use crate::server::{ClientInfo, Server};
use crate::sync::{Arc, Ordering};

/// The sockets of one server.
#[derive(Debug, Default)]
pub struct Listeners {
    tcp: Vec<TcpListener>,
    unix: Option<UnixListener>,
    unix_path: Option<PathBuf>,
    /// The TCP sockets that replace the present ones, as often as the settings change.
    changes: Option<mpsc::Receiver<Vec<TcpListener>>>,
}

impl Listeners {
    /// Binds what the settings `bind`, `port`, `unixsocket` and their like say.
    ///
    /// # Errors
    /// If an address that is not marked optional (by a leading `-`) cannot be bound, or none can, or the Unix socket cannot. The
    /// text says which.
    pub fn bind(settings: &Settings) -> Result<Self, String> {
        let mut listeners = Self::default();
        let port = settings.port.get();
        let backlog = settings.tcp_backlog.get().min(i32::MAX as u32) as i32;
        if port != 0 {
            listeners.bind_tcp(&settings.strings("bind"), port, backlog, &[])?;
        }
        let path = settings.string("unixsocket");
        if !path.is_empty() {
            listeners.bind_unix(path.into(), settings.unixsocketperm.get(), backlog)?;
        }
        Ok(listeners)
    }

    /// Adds a socket that somebody else has bound.
    pub fn with_tcp(mut self, listener: TcpListener) -> Self {
        self.tcp.push(listener);
        self
    }

    /// The TCP addresses that were bound.
    pub fn addresses(&self) -> Vec<SocketAddr> {
        self.tcp.iter().filter_map(|listener| listener.local_addr().ok()).collect()
    }

    /// Whether there is no socket at all.
    pub fn is_empty(&self) -> bool {
        self.tcp.is_empty() && self.unix.is_none()
    }

    /// Follows CONFIG SET of `port` and `bind` from now on: new addresses are bound before the old ones are closed (where they overlap, after), and if one
    /// cannot be, the setting and the sockets stay as they were.
    ///
    /// # Errors
    /// If the system has no room for more descriptors.
    pub fn follow(mut self, settings: &Settings) -> io::Result<Self> {
        let (replace, changes) = mpsc::channel(limits::LISTENER_CHANGES_MAX);
        let moving = Arc::new(Moving { bound: Mutex::new(copies(&self.tcp)?), replace });
        self.changes = Some(changes);
        let follower = Arc::clone(&moving);
        settings.on_change(&["port"], move |settings| {
            follower.rebind(settings).map_err(|()| "Unable to listen on this port. Check server logs.".into())
        });
        settings.on_change(&["bind"], move |settings| {
            moving.rebind(settings).map_err(|()| "Failed to bind to specified addresses.".into())
        });
        Ok(self)
    }

    /// Binds each address, or takes a copy of the socket among `kept` that is bound to it already.
    fn bind_tcp(&mut self, addresses: &[String], port: u16, backlog: i32, kept: &[TcpListener]) -> Result<(), String> {
        for address in addresses {
            let (optional, host) = match address.strip_prefix('-') {
                Some(host) => (true, host),
                None => (false, address.as_str()),
            };
            match listen(host, port, backlog, kept) {
                Ok(listener) => self.tcp.push(listener),
                // An address or a family that this machine does not have; anything else is an error even so.
                Err(error) if optional && is_not_here(&error) => {}
                Err(error) => {
                    return Err(format!("Could not create server TCP listening socket {host}:{port}: {error}"));
                }
            }
        }
        if self.tcp.is_empty() && !addresses.is_empty() {
            return Err(format!("Failed listening on port {port} (tcp), no address could be bound"));
        }
        Ok(())
    }

    fn bind_unix(&mut self, path: PathBuf, mode: u32, backlog: i32) -> Result<(), String> {
        let failed = |error: io::Error| format!("Failed opening Unix socket {}: {error}", path.display());
        // What an earlier server left behind would make `bind` fail.
        let _ = fs::remove_file(&path);
        let socket = Socket::new(Domain::UNIX, Type::STREAM, None).map_err(failed)?;
        socket.bind(&socket2::SockAddr::unix(&path).map_err(failed)?).map_err(failed)?;
        if mode != 0 {
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).map_err(failed)?;
        }
        socket.listen(backlog).map_err(failed)?;
        socket.set_nonblocking(true).map_err(failed)?;
        self.unix = Some(UnixListener::from(OwnedFd::from(socket)));
        self.unix_path = Some(path);
        Ok(())
    }

    /// Starts a task for each socket, on the calling worker's runtime, that lets clients in and deals them.
    ///
    /// # Errors
    /// If the runtime cannot watch a socket.
    pub fn accept_all(self, server: &Arc<Server>, dealer: &Rc<Dealer>) -> io::Result<Accepting> {
        let mut accepting = Accepting { tcp: Vec::new(), unix: None, unix_path: self.unix_path, changes: self.changes };
        if let (Some(listener), Some(path)) = (self.unix, &accepting.unix_path) {
            let path = Some(path.display().to_string());
            accepting.unix = Some(accept_on(Socket::from(listener), path, server, dealer)?);
        }
        accepting.replace_tcp(self.tcp, server, dealer)?;
        Ok(accepting)
    }
}

/// Starts a task that accepts from one socket.
fn accept_on(
    socket: Socket,
    path: Option<String>,
    server: &Arc<Server>,
    dealer: &Rc<Dealer>,
) -> io::Result<task::JoinHandle<()>> {
    socket.set_nonblocking(true)?;
    // SAFETY: a `Socket` owns its descriptor, gives no other, and is closed only when the `AsyncFd` drops it.
    let socket = unsafe { AsyncFd::register_with_interest(socket, Interest::READABLE) }?;
    Ok(task::spawn_local(accept_from(socket, path, server.clone(), dealer.clone())))
}

/// The tasks that accept. Dropping it closes the sockets and removes the Unix socket's path.
#[derive(Debug)]
pub struct Accepting {
    tcp: Vec<task::JoinHandle<()>>,
    unix: Option<task::JoinHandle<()>>,
    unix_path: Option<PathBuf>,
    changes: Option<mpsc::Receiver<Vec<TcpListener>>>,
}

impl Accepting {
    /// Replaces the TCP sockets whenever the settings change, for ever.
    pub async fn follow(&mut self, server: &Arc<Server>, dealer: &Rc<Dealer>) {
        let Some(mut changes) = self.changes.take() else { return std::future::pending().await };
        while let Some(tcp) = changes.recv().await {
            if let Err(error) = self.replace_tcp(tcp, server, dealer) {
                tracing::error!("a new socket cannot be watched: {error}");
            }
        }
    }

    fn replace_tcp(&mut self, tcp: Vec<TcpListener>, server: &Arc<Server>, dealer: &Rc<Dealer>) -> io::Result<()> {
        self.tcp.drain(..).for_each(|task| task.abort());
        for listener in tcp {
            self.tcp.push(accept_on(Socket::from(listener), None, server, dealer)?);
        }
        Ok(())
    }
}

impl Drop for Accepting {
    fn drop(&mut self) {
        self.tcp.iter().chain(&self.unix).for_each(task::JoinHandle::abort);
        if let Some(path) = &self.unix_path {
            let _ = fs::remove_file(path);
        }
    }
}

/// What CONFIG SET of an address needs: it runs on any worker, the sockets are watched on worker 0.
struct Moving {
    /// Copies of the sockets that stand.
    bound: Mutex<Vec<TcpListener>>,
    replace: mpsc::Sender<Vec<TcpListener>>,
}

impl Moving {
    /// Binds what the settings say now and hands it to worker 0; logs the reason where that fails.
    fn rebind(&self, settings: &Settings) -> Result<(), ()> {
        let mut bound = self.bound.lock().unwrap_or_else(PoisonError::into_inner);
        let port = settings.port.get();
        let backlog = settings.tcp_backlog.get().min(i32::MAX as u32) as i32;
        let bind = |kept: &[TcpListener]| {
            let mut new = Listeners::default();
            if port != 0 {
                new.bind_tcp(&settings.strings("bind"), port, backlog, kept)?;
            }
            Ok::<_, String>(new.tcp)
        };
        let result = bind(&bound).or_else(|reason| {
            if !bound.iter().any(|listener| listener.local_addr().is_ok_and(|bound| bound.port() == port)) {
                return Err(reason);
            }
            // `*` cannot be bound while 127.0.0.1 listens on the same port. So the old sockets stop first, and go on if that was of no use.
            bound.iter().for_each(|listener| drop(SockRef::from(listener).shutdown(Shutdown::Read)));
            bind(&[]).inspect_err(|_| bound.iter().for_each(|listener| drop(SockRef::from(listener).listen(backlog))))
        });
        let handed = result.and_then(|tcp| {
            let copies = copies(&tcp).map_err(|error| error.to_string())?;
            self.replace.try_send(tcp).map_err(|error| error.to_string())?;
            Ok(copies)
        });
        *bound = handed.map_err(|reason| tracing::warn!("{reason}"))?;
        Ok(())
    }
}

fn copies(listeners: &[TcpListener]) -> io::Result<Vec<TcpListener>> {
    listeners.iter().map(TcpListener::try_clone).collect()
}

/// A socket that listens on one address; `*` is every IPv4 address and `::*` every IPv6 address.
fn listen(host: &str, port: u16, backlog: i32, kept: &[TcpListener]) -> io::Result<TcpListener> {
    let host = match host {
        "*" => "0.0.0.0",
        "::*" => "::",
        host => host,
    };
    let unknown = || io::Error::new(io::ErrorKind::AddrNotAvailable, "the name has no address");
    let address = (host, port).to_socket_addrs()?.next().ok_or_else(unknown)?;
    if let Some(listener) = kept.iter().find(|listener| listener.local_addr().is_ok_and(|bound| bound == address)) {
        return listener.try_clone();
    }
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
    if address.is_ipv6() {
        // IPv4 has its own socket.
        socket.set_only_v6(true)?;
    }
    socket.set_reuse_address(true)?;
    socket.bind(&address.into())?;
    socket.listen(backlog)?;
    Ok(socket.into())
}

/// Whether an address could not be bound because this machine does not have it, or not its family.
fn is_not_here(error: &io::Error) -> bool {
    let absent =
        [libc::EADDRNOTAVAIL, libc::EAFNOSUPPORT, libc::ENOPROTOOPT, libc::EPROTONOSUPPORT, libc::EPFNOSUPPORT];
    error.raw_os_error().is_some_and(|code| absent.contains(&code))
}

/// A client's socket on its way from the listener to its worker.
#[derive(Debug)]
pub enum Accepted {
    /// Over TCP, from this address.
    Tcp(TcpStream, SocketAddr),
    /// Through the Unix socket of this path.
    Unix(UnixStream, String),
}

impl AsFd for Accepted {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Tcp(stream, _) => stream.as_fd(),
            Self::Unix(stream, _) => stream.as_fd(),
        }
    }
}

impl Accepted {
    /// Registers the socket with the runtime of its worker, and the client with the server.
    pub fn open(self, worker: &Worker) -> io::Result<(Stream, Arc<ClientInfo>)> {
        let server = worker.server();
        let id = server.clients.next_id();
        let descriptor = self.as_fd().as_raw_fd();
        let (stream, info) = match self {
            Self::Tcp(stream, peer) => {
                stream.set_nonblocking(true)?;
                stream.set_nodelay(true)?;
                keep_alive(&stream, server.settings.tcp_keepalive_seconds.get())?;
                let (address, local) = (peer.to_string(), stream.local_addr()?.to_string());
                let info = ClientInfo::new(id, address, local, descriptor, false, worker.index());
                (Stream::Tcp(tokio::net::TcpStream::from_std(stream)?), info)
            }
            Self::Unix(stream, path) => {
                stream.set_nonblocking(true)?;
                let address = format!("{path}:0");
                let info = ClientInfo::new(id, address.clone(), address, descriptor, true, worker.index());
                (Stream::Unix(tokio::net::UnixStream::from_std(stream)?), info)
            }
        };
        let client = Arc::new(info);
        server.clients.insert(client.clone());
        Ok((stream, client))
    }

    /// Whether the client is on this machine.
    fn is_local(&self) -> bool {
        match self {
            Self::Tcp(_, peer) => match peer.ip() {
                IpAddr::V4(address) => address.is_loopback(),
                IpAddr::V6(address) => address.is_loopback(),
            },
            Self::Unix(..) => true,
        }
    }

    /// Sends an error as far as the socket takes it at once, and closes.
    fn refuse(self, text: &str) {
        let sent = match &self {
            Self::Tcp(stream, _) => stream.set_nonblocking(true).and_then(|()| (&mut &*stream).write(text.as_bytes())),
            Self::Unix(stream, _) => stream.set_nonblocking(true).and_then(|()| (&mut &*stream).write(text.as_bytes())),
        };
        // The connection is closed in any case.
        let _ = sent;
    }
}

/// Lets the kernel probe a connection after so many seconds of silence, three times in as many seconds again; 0 for never.
fn keep_alive(stream: &TcpStream, seconds: u32) -> io::Result<()> {
    if seconds == 0 {
        return Ok(());
    }
    let interval = Duration::from_secs(u64::from((seconds / 3).max(1)));
    let probes =
        TcpKeepalive::new().with_time(Duration::from_secs(u64::from(seconds))).with_interval(interval).with_retries(3);
    socket2::SockRef::from(stream).set_tcp_keepalive(&probes)
}

/// Deals sockets to workers.
#[derive(Debug)]
pub struct Dealer {
    /// How many connections each worker serves.
    pub load: Load,
    /// The way to each worker.
    pub workers: Vec<mpsc::Sender<Accepted>>,
}

impl Dealer {
    /// Connections of all workers.
    fn connections(&self) -> usize {
        // Relaxed: the only thread that adds to the figures is this one; a connection that just ended may still count.
        self.load.iter().map(|load| load.load(Ordering::Relaxed)).sum()
    }

    /// Gives the socket to the worker with the fewest connections. Waits while that one's queue is full.
    async fn deal(&self, socket: Accepted) {
        // Relaxed: the figures only balance the load.
        let least =
            (0..self.workers.len()).min_by_key(|&worker| self.load[worker].load(Ordering::Relaxed)).unwrap_or(0);
        self.load[least].fetch_add(1, Ordering::Relaxed);
        // Fails only if the worker has stopped, and then the server is about to.
        let _ = self.workers[least].send(socket).await;
    }
}

/// Accepts for ever from a TCP socket, or from the Unix socket of this path.
async fn accept_from(listener: AsyncFd<Socket>, path: Option<String>, server: Arc<Server>, dealer: Rc<Dealer>) {
    let accept = |listener: &Socket| {
        let (socket, peer) = listener.accept()?;
        Ok(match (&path, peer.as_socket()) {
            (None, Some(peer)) => Accepted::Tcp(socket.into(), peer),
            _ => Accepted::Unix(OwnedFd::from(socket).into(), path.clone().unwrap_or_default()),
        })
    };
    loop {
        let socket = match listener.async_io(Interest::READABLE, accept).await {
            Ok(socket) => socket,
            Err(error) if is_exhaustion(&error) => {
                // The client stays in the backlog, and the listener stays readable; without the pause this would spin.
                tracing::warn!("Accepting client connection: {error}");
                tokio::time::sleep(Duration::from_millis(limits::ACCEPT_PAUSE_MS)).await;
                continue;
            }
            // This one client was lost.
            Err(error) => {
                tracing::debug!("Accepting client connection: {error}");
                continue;
            }
        };
        let settings = &server.settings;
        if dealer.connections() >= settings.maxclients.get() as usize {
            server.statistics.worker(0).counters.connections_rejected.add(1);
            socket.refuse("-ERR max number of clients reached\r\n");
        } else if settings.protected_mode.get() && !settings.password_required.get() && !socket.is_local() {
            socket.refuse(PROTECTED_MODE);
        } else {
            dealer.deal(socket).await;
        }
    }
}

/// Whether accepting failed for want of descriptors or memory, which lasts.
fn is_exhaustion(error: &io::Error) -> bool {
    let lasting = [libc::EMFILE, libc::ENFILE, libc::ENOBUFS, libc::ENOMEM];
    error.raw_os_error().is_some_and(|code| lasting.contains(&code))
}

/// Told to clients of other machines in protected mode; interface, word for word as Redis has it.
const PROTECTED_MODE: &str = "-DENIED Redis is running in protected mode because protected mode is enabled and no \
    password is set for the default user. In this mode connections are only accepted from the loopback interface. If you \
    want to connect from external computers to Redis you may adopt one of the following solutions: 1) Just disable \
    protected mode sending the command 'CONFIG SET protected-mode no' from the loopback interface by connecting to Redis \
    from the same host the server is running, however MAKE SURE Redis is not publicly accessible from internet if you do \
    so. Use CONFIG REWRITE to make this change permanent. 2) Alternatively you can just disable the protected mode by \
    editing the Redis configuration file, and setting the protected mode option to 'no', and then restarting the server. \
    3) If you started the server manually just for testing, restart it with the '--protected-mode no' option. 4) Setup a \
    an authentication password for the default user. NOTE: You only need to do one of the above things in order for the \
    server to start accepting connections from the outside.\r\n";
