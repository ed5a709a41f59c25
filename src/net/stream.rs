//! A connected socket of either kind.

use std::io::{self, IoSlice};
use std::os::fd::{AsRawFd, RawFd};
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpStream, UnixStream};

/// A TCP or a Unix connection, registered with the runtime of the worker that serves it.
#[derive(Debug)]
pub enum Stream {
    /// Over TCP.
    Tcp(TcpStream),
    /// Through the Unix socket.
    Unix(UnixStream),
}

impl Stream {
    /// Reads into `buffer`. At most one system call; none while the last one has shown that the socket is empty.
    pub fn poll_read(&mut self, context: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        match self {
            Self::Tcp(stream) => Pin::new(stream).poll_read(context, buffer),
            Self::Unix(stream) => Pin::new(stream).poll_read(context, buffer),
        }
    }

    /// Writes the slices, or some of their bytes. At most one system call; none while the last one has shown that the socket is full.
    pub fn poll_write(&mut self, context: &mut Context<'_>, slices: &[IoSlice<'_>]) -> Poll<io::Result<usize>> {
        match self {
            // One slice goes by the plain call, which is cheaper.
            Self::Tcp(stream) if slices.len() == 1 => Pin::new(stream).poll_write(context, &slices[0]),
            Self::Tcp(stream) => Pin::new(stream).poll_write_vectored(context, slices),
            Self::Unix(stream) if slices.len() == 1 => Pin::new(stream).poll_write(context, &slices[0]),
            Self::Unix(stream) => Pin::new(stream).poll_write_vectored(context, slices),
        }
    }
}

impl AsRawFd for Stream {
    fn as_raw_fd(&self) -> RawFd {
        match self {
            Self::Tcp(stream) => stream.as_raw_fd(),
            Self::Unix(stream) => stream.as_raw_fd(),
        }
    }
}
