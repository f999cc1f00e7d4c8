//! The floor of the WebSocket benches: the smallest possible server. One thread, one epoll, the system calls that any
//! server makes for a connection, and no checks except for the accept key. Messages are returned unchanged, their
//! frames unmasked, all of one read in one write. Blocking instead would take a thread for each connection.

use std::net::{Ipv4Addr, SocketAddrV4, TcpListener};
use std::os::fd::{AsRawFd, OwnedFd};

use crosstie_wamp::framing::websocket::accept_key;
use rustix::buffer::spare_capacity;
use rustix::event::epoll::{self, EventData, EventFlags};
use rustix::io::Errno;
use rustix::net::sockopt::{set_socket_reuseaddr, set_tcp_nodelay};
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, accept_with, bind, listen, recv,
    send, socket_with,
};
use serde::{Deserialize, Serialize};

use crate::process::{Listening, WorkerError, say};
use crate::subject::Endpoint;

pub(crate) const ROLE: &str = "websocket-floor";

/// The address to listen on, with a free port.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct FloorOrder {
    pub ip: Ipv4Addr,
}

pub(crate) fn work(order: FloorOrder) -> Result<(), WorkerError> {
    let listener = listen_on(order.ip)?;
    let endpoint = Endpoint::Tcp(listener.local_addr()?);
    say(&Listening { endpoint });
    let error = Server::new(listener).and_then(Server::serve).err();
    Err(WorkerError::Io(error.unwrap_or(Errno::CANCELED).into()))
}

/// Waiting connections are bounded by the system's own limit.
const BACKLOG: i32 = 4096;

fn listen_on(ip: Ipv4Addr) -> std::io::Result<TcpListener> {
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    let fd = socket_with(AddressFamily::INET, SocketType::STREAM, flags, None)?;
    set_socket_reuseaddr(&fd, true)?;
    // Accepted sockets inherit it, which saves them a system call.
    set_tcp_nodelay(&fd, true)?;
    bind(&fd, &SocketAddrV4::new(ip, 0))?;
    listen(&fd, BACKLOG)?;
    Ok(TcpListener::from(fd))
}

const READ_BYTES: usize = 64 * 1024;

/// A longer frame ends its connection.
const FRAME_BYTES_MAX: usize = 64 << 20;

struct Server {
    listener: TcpListener,
    epoll: OwnedFd,
    /// By descriptor: the kernel assigns the lowest free one, so this has no holes.
    connections: Vec<Option<Connection>>,
    input: Vec<u8>,
    output: Vec<u8>,
}

struct Connection {
    fd: OwnedFd,
    is_open: bool,
    /// Half a frame, or half a request.
    rest: Vec<u8>,
    /// The bytes that the socket has not taken yet. Nothing is read while there are any.
    pending: Vec<u8>,
}

impl Server {
    fn new(listener: TcpListener) -> Result<Self, Errno> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        let at = EventData::new_u64(listener.as_raw_fd() as u64);
        epoll::add(&epoll, &listener, at, EventFlags::IN)?;
        Ok(Self {
            listener,
            epoll,
            connections: Vec::new(),
            input: vec![0; READ_BYTES],
            output: Vec::with_capacity(READ_BYTES),
        })
    }

    fn serve(mut self) -> Result<(), Errno> {
        let listener = self.listener.as_raw_fd() as usize;
        let mut events = Vec::with_capacity(256);
        loop {
            match epoll::wait(&self.epoll, spare_capacity(&mut events), None) {
                Ok(_) | Err(Errno::INTR) => {}
                Err(error) => return Err(error),
            }
            for event in events.drain(..) {
                match event.data.u64() as usize {
                    at if at == listener => self.accept()?,
                    at => self.advance(at),
                }
            }
        }
    }

    fn accept(&mut self) -> Result<(), Errno> {
        loop {
            let fd = match accept_with(&self.listener, SocketFlags::NONBLOCK | SocketFlags::CLOEXEC)
            {
                Ok(fd) => fd,
                Err(Errno::INTR | Errno::CONNABORTED) => continue,
                // The rest waits in the backlog for descriptors to become free.
                Err(Errno::AGAIN | Errno::MFILE | Errno::NFILE) => return Ok(()),
                Err(error) => return Err(error),
            };
            let at = fd.as_raw_fd() as usize;
            let interest = EventFlags::IN | EventFlags::RDHUP | EventFlags::ET;
            epoll::add(&self.epoll, &fd, EventData::new_u64(at as u64), interest)?;
            if self.connections.len() <= at {
                self.connections.resize_with(at + 1, || None);
            }
            self.connections[at] = Some(Connection {
                fd,
                is_open: false,
                rest: Vec::new(),
                pending: Vec::new(),
            });
        }
    }

    /// Reads and answers until the socket is empty, or full.
    fn advance(&mut self, at: usize) {
        let Some(mut connection) = self.connections.get_mut(at).and_then(Option::take) else {
            return;
        };
        if !connection.pending.is_empty() {
            self.output.clear();
            self.output.append(&mut connection.pending);
            if !self.send(&mut connection, at) {
                return;
            }
        }
        while connection.pending.is_empty() {
            let length = match recv(&connection.fd, &mut self.input[..], RecvFlags::empty()) {
                Ok((0, _)) => return,
                Ok((length, _)) => length,
                Err(Errno::INTR) => continue,
                Err(Errno::AGAIN) => break,
                Err(_) => return,
            };
            self.output.clear();
            let mut earlier = std::mem::take(&mut connection.rest);
            let (used, goes_on) = if earlier.is_empty() {
                let bytes = &self.input[..length];
                let answered = answer(bytes, &mut connection.is_open, &mut self.output);
                connection.rest.extend_from_slice(&bytes[answered.0..]);
                answered
            } else {
                earlier.extend_from_slice(&self.input[..length]);
                answer(&earlier, &mut connection.is_open, &mut self.output)
            };
            if !earlier.is_empty() {
                earlier.drain(..used);
                connection.rest = earlier;
            }
            // Dropping a connection closes it.
            if !self.send(&mut connection, at) || !goes_on {
                return;
            }
            if length < self.input.len() {
                break;
            }
        }
        self.connections[at] = Some(connection);
    }

    /// Sends the output, and keeps the bytes that the socket does not take. False if it takes no more.
    fn send(&self, connection: &mut Connection, at: usize) -> bool {
        let mut rest = &self.output[..];
        while !rest.is_empty() {
            match send(&connection.fd, rest, SendFlags::NOSIGNAL) {
                Ok(length) => rest = &rest[length..],
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => {
                    connection.pending.extend_from_slice(rest);
                    let interest =
                        EventFlags::IN | EventFlags::OUT | EventFlags::RDHUP | EventFlags::ET;
                    let data = EventData::new_u64(at as u64);
                    return epoll::modify(&self.epoll, &connection.fd, data, interest).is_ok();
                }
                Err(_) => return false,
            }
        }
        true
    }
}

const RESPONSE: &[u8] = b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n\
                          Connection: Upgrade\r\nSec-WebSocket-Accept: ";
const KEY: &[u8] = b"Sec-WebSocket-Key: ";

/// Answers everything in `input`. Returns how many bytes of it were used, and whether more may follow.
fn answer(input: &[u8], is_open: &mut bool, out: &mut Vec<u8>) -> (usize, bool) {
    let mut at = 0;
    if !*is_open {
        let Some(end) = input.windows(4).position(|four| four == b"\r\n\r\n") else {
            return (0, input.len() <= READ_BYTES);
        };
        let head = &input[..end];
        let key = head.windows(KEY.len()).position(|name| name == KEY);
        let key = key.and_then(|at| head.get(at + KEY.len()..at + KEY.len() + 24));
        let Some(key) = key.and_then(|key| std::str::from_utf8(key).ok()) else {
            return (end, false);
        };
        out.extend_from_slice(RESPONSE);
        out.extend_from_slice(accept_key(key).as_bytes());
        out.extend_from_slice(b"\r\n\r\n");
        *is_open = true;
        at = end + 4;
    }
    loop {
        match frame(&input[at..], out) {
            Frame::Echoed(length) => at += length,
            Frame::Partly => return (at, true),
            Frame::Last => return (at, false),
        }
    }
}

enum Frame {
    Echoed(usize),
    Partly,
    Last,
}

/// Sends one frame back: the same without its mask.
fn frame(input: &[u8], out: &mut Vec<u8>) -> Frame {
    let (head, length) = match *input {
        [_, second, ..] if second & 0x7f < 126 => (2, usize::from(second & 0x7f)),
        [_, second, a, b, ..] if second & 0x7f == 126 => {
            (4, usize::from(u16::from_be_bytes([a, b])))
        }
        [_, second, a, b, c, d, e, f, g, h, ..] if second & 0x7f == 127 => {
            let length = u64::from_be_bytes([a, b, c, d, e, f, g, h]);
            (10, usize::try_from(length).unwrap_or(usize::MAX))
        }
        _ => return Frame::Partly,
    };
    if length > FRAME_BYTES_MAX {
        return Frame::Last;
    }
    let Some(whole) = input.get(..head + 4 + length) else {
        return Frame::Partly;
    };
    let mask = [
        whole[head],
        whole[head + 1],
        whole[head + 2],
        whole[head + 3],
    ];
    let begin = out.len();
    out.extend_from_slice(&whole[..head]);
    out[begin + 1] &= 0x7f;
    out.extend_from_slice(&whole[head + 4..]);
    unmask(&mut out[begin + head..], mask);
    match whole[0] & 0x0f {
        8 => Frame::Last,
        _ => Frame::Echoed(head + 4 + length),
    }
}

/// RFC 6455 section 5.3, eight bytes at a time.
pub(crate) fn unmask(bytes: &mut [u8], mask: [u8; 4]) {
    let [a, b, c, d] = mask;
    let wide = u64::from_ne_bytes([a, b, c, d, a, b, c, d]);
    let (eights, rest) = bytes.as_chunks_mut::<8>();
    for eight in eights {
        *eight = (u64::from_ne_bytes(*eight) ^ wide).to_ne_bytes();
    }
    for (byte, mask) in rest.iter_mut().zip(mask.iter().cycle()) {
        *byte ^= mask;
    }
}

/// A floor for tests, in a thread that ends with them.
#[cfg(test)]
pub(crate) fn in_background() -> std::net::SocketAddr {
    let listener = listen_on(Ipv4Addr::LOCALHOST).unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(|| Server::new(listener).and_then(Server::serve));
    address
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_bytes_are_echoed() {
        #[track_caller]
        fn check(input: &[u8], expected: &[u8], expected_rest: usize, expected_to_go_on: bool) {
            let mut out = Vec::new();
            let (used, goes_on) = answer(input, &mut true, &mut out);
            assert_eq!(out, expected);
            assert_eq!(input.len() - used, expected_rest);
            assert_eq!(goes_on, expected_to_go_on);
        }
        check(&[], &[], 0, true);
        let one = [0x82, 0x82, 1, 2, 3, 4, 1 ^ 7, 2 ^ 8];
        check(&one, &[0x82, 2, 7, 8], 0, true);
        check(&[&one[..], &one[..5]].concat(), &[0x82, 2, 7, 8], 5, true);
        check(
            &[0x88, 0x82, 0, 0, 0, 0, 3, 0xe9],
            &[0x88, 2, 3, 0xe9],
            8,
            false,
        );
        let mut long = vec![0x81, 0xfe, 0, 200, 9, 9, 9, 9];
        long.resize(8 + 200, b'x' ^ 9);
        let mut back = vec![0x81, 126, 0, 200];
        back.resize(4 + 200, b'x');
        check(&long, &back, 0, true);
        check(
            &[0x82, 0xff, 0xff, 0, 0, 0, 0, 0, 0, 0, 1, 2, 3, 4],
            &[],
            14,
            false,
        );
    }

    #[test]
    fn a_request_is_answered_with_its_proof() {
        let request = b"GET / HTTP/1.1\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n";
        let (mut is_open, mut out) = (false, Vec::new());
        assert_eq!(answer(&request[..20], &mut is_open, &mut out), (0, true));
        assert!(!is_open && out.is_empty());
        let answered = answer(request, &mut is_open, &mut out);
        assert_eq!(answered, (request.len(), true));
        assert!(is_open && out.ends_with(b"s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n"));
        let (_, goes_on) = answer(b"GET / HTTP/1.1\r\n\r\n", &mut false, &mut out);
        assert!(!goes_on);
    }
}
