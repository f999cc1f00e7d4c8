//! Socket pairs, protocols and stages that the tests share.

use std::future::Future;
use std::io::{self, Read};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::time::Duration;

use crosstie_transport::{
    Account, Connection, ConnectionLimits, Outcome, PeerAddress, Protocol, Refused, Socket, Stage,
    StageError, uncork,
};
use parking_lot::Mutex;
use rustix::net::sockopt;
use tokio::io::AsyncReadExt;

/// A test that takes longer has failed. Nothing else depends on time.
const GUARD: Duration = Duration::from_secs(60);

/// Runs a test on one thread, as a worker would.
pub(crate) fn run<T>(test: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime");
    runtime.block_on(async { tokio::time::timeout(GUARD, test).await.expect("in time") })
}

/// Waits until `condition` holds, while the other tasks run.
pub(crate) async fn until(mut condition: impl FnMut() -> bool) {
    while !condition() {
        tokio::task::yield_now().await;
    }
}

/// Lets the other tasks handle the bytes that are there already.
pub(crate) async fn settle() {
    for _ in 0..8 {
        tokio::task::yield_now().await;
    }
}

pub(crate) fn limits(queue_bytes_max: usize, account_bytes_max: usize) -> Arc<ConnectionLimits> {
    Arc::new(ConnectionLimits {
        queue_bytes_max,
        stall_max: Duration::ZERO,
        message_max: Duration::MAX,
        bytes_per_second_min: 0,
        account: Arc::new(Account::new(account_bytes_max)),
    })
}

/// Bounds that are not reached.
pub(crate) fn generous() -> Arc<ConnectionLimits> {
    limits(1 << 30, 1 << 30)
}

/// A connection and its peer, with socket buffers as small as the kernel makes them.
pub(crate) fn pair(limits: &Arc<ConnectionLimits>) -> (Arc<Connection>, UnixStream) {
    pair_with(None, limits, 1)
}

/// The same with a stage, and with socket buffers of so many bytes.
pub(crate) fn pair_with(
    stage: Option<Box<Mutex<dyn Stage>>>,
    limits: &Arc<ConnectionLimits>,
    buffer_bytes: usize,
) -> (Arc<Connection>, UnixStream) {
    let (ours, peer) = UnixStream::pair().expect("a pair");
    for socket in [&ours, &peer] {
        socket.set_nonblocking(true).expect("non-blocking");
        sockopt::set_socket_send_buffer_size(socket, buffer_bytes).expect("a buffer size");
    }
    let socket = Socket::new(ours.into(), PeerAddress::Unix(None));
    let connection = Connection::new(socket, stage, Arc::clone(limits));
    (Arc::new(connection), peer)
}

/// The peer as a tokio stream.
pub(crate) fn stream(peer: UnixStream) -> tokio::net::UnixStream {
    tokio::net::UnixStream::from_std(peer).expect("a registration")
}

/// All bytes that the peer receives until the end.
pub(crate) async fn received(peer: UnixStream) -> Vec<u8> {
    let mut bytes = Vec::new();
    let read = stream(peer).read_to_end(&mut bytes).await;
    read.expect("no error before the end");
    bytes
}

/// The bytes that wait for the peer now.
pub(crate) fn waiting(peer: &mut UnixStream) -> Vec<u8> {
    let mut bytes = vec![0; 1 << 20];
    let count = match peer.read(&mut bytes) {
        Ok(count) => count,
        Err(e) if e.kind() == io::ErrorKind::WouldBlock => 0,
        Err(e) => panic!("expected bytes or none, got {e}"),
    };
    bytes.truncate(count);
    bytes
}

pub(crate) fn append(connection: &Arc<Connection>, bytes: &[u8]) -> Result<(), Refused<()>> {
    connection.append(|out| {
        out.extend_from_slice(bytes);
        Ok(())
    })
}

/// `length` bytes that encode their position.
pub(crate) fn pattern(length: usize) -> Vec<u8> {
    (0..length).map(|index| (index % 251) as u8).collect()
}

/// Appends until the connection refuses; returns how many bytes it took.
pub(crate) fn fill(connection: &Arc<Connection>, portion: usize) -> usize {
    let mut filled = 0;
    loop {
        match append(connection, &pattern(portion)) {
            Ok(()) => filled += portion,
            Err(Refused::Full) => return filled,
            Err(other) => panic!("expected Full, got {other:?}"),
        }
        uncork();
    }
}

/// Items with a length of four bytes before each.
#[derive(Default)]
pub(crate) struct Items {
    pub(crate) items: Vec<Vec<u8>>,
    /// Whether it reports how much it wants, as far as known.
    pub(crate) tells: bool,
    pub(crate) inputs: usize,
}

impl Protocol for Items {
    fn handle_input(&mut self, input: &mut [u8]) -> Outcome {
        self.inputs += 1;
        let mut consumed = 0;
        let mut wanted = 0;
        while let Some(prefix) = input[consumed..].first_chunk() {
            let total = 4 + u32::from_be_bytes(*prefix) as usize;
            let Some(item) = input.get(consumed + 4..consumed + total) else {
                wanted = total;
                break;
            };
            self.items.push(item.to_vec());
            consumed += total;
        }
        let wanted = if self.tells { wanted } else { 0 };
        Outcome::Continue { consumed, wanted }
    }
}

/// The bytes of `items` as [`Items`] reads them.
pub(crate) fn framed(items: &[Vec<u8>]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for item in items {
        bytes.extend_from_slice(&(item.len() as u32).to_be_bytes());
        bytes.extend_from_slice(item);
    }
    bytes
}

/// A stage that inverts bytes both ways, ends with its last byte, and greets by itself.
#[derive(Default)]
pub(crate) struct Inverting {
    to_say: Vec<u8>,
    is_ended: bool,
}

/// Not inverted: the end, a greeting to be answered, its answer, and an error.
pub(crate) const END: u8 = 1;
pub(crate) const GREETING: u8 = 2;
pub(crate) const ANSWER: u8 = 3;
pub(crate) const WRONG: u8 = 4;
pub(crate) const ALERT: u8 = 5;

impl Stage for Inverting {
    fn send(&mut self, queued: &[u8], out: &mut Vec<u8>) -> Result<(), StageError> {
        out.append(&mut self.to_say);
        out.extend(queued.iter().map(|byte| !byte));
        Ok(())
    }

    fn receive(&mut self, received: &[u8], out: &mut Vec<u8>) -> Result<(), StageError> {
        for byte in received {
            match *byte {
                END => self.is_ended = true,
                GREETING => self.to_say.push(ANSWER),
                WRONG => {
                    self.to_say.push(ALERT);
                    return Err(StageError("wrong".to_owned()));
                }
                byte => out.push(!byte),
            }
        }
        Ok(())
    }

    fn is_ended(&self) -> bool {
        self.is_ended
    }

    fn finish(&mut self) {
        self.to_say.push(END);
    }
}

pub(crate) fn inverting() -> Option<Box<Mutex<dyn Stage>>> {
    Some(Box::new(Mutex::new(Inverting::default())))
}

pub(crate) fn inverted(bytes: &[u8]) -> Vec<u8> {
    bytes.iter().map(|byte| !byte).collect()
}
