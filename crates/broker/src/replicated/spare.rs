//! A second connection, to another NATS server: the heartbeats that a node sends and hears do not depend on one server.
//!
//! If the first connection is lost, this one takes its place at once, and has heard the owner meanwhile. Without it, a
//! node whose server is lost is silent for as long as it takes to notice that, and another node claims the vhost.

use std::future::pending;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crosstie_jetstream::{Connection, Failed, Message, Server, Speaking, Subscription};
use parking_lot::Mutex;
use tokio::task::JoinHandle;

/// A connection, with its subscription to heartbeats.
pub(super) struct Ear {
    pub(super) connection: Connection,
    pub(super) beats: Subscription,
    /// The time since which heartbeats are heard on it.
    pub(super) since: Instant,
    /// The server's place in the list.
    pub(super) server: usize,
}

/// The servers, and the way to connect to them.
pub(super) struct Dialler {
    pub(super) servers: Vec<Server>,
    pub(super) speaking: Speaking,
    /// The subject of heartbeats.
    pub(super) beat: String,
}

/// The second connection, or the attempts at one.
pub(super) struct Spare {
    dialler: Arc<Dialler>,
    ear: Option<Ear>,
    dialling: Option<JoinHandle<Option<Ear>>>,
    /// The server of the first connection.
    first: usize,
    /// The same connection, for those that publish on it.
    shown: Shown,
}

/// The second connection, while there is one.
pub(super) type Shown = Arc<Mutex<Option<Connection>>>;

/// Maximum bytes of waiting heartbeats.
const BEATS_BYTES_MAX: usize = 1 << 20;

/// Pause between two rounds over the other servers.
const DIAL_WAIT: Duration = Duration::from_secs(1);

/// Silence of the first server after which the second one is preferred, if that answers.
const LAGGING_MAX: Duration = Duration::from_millis(1500);

/// Silence of a server that answers pings, at most.
pub(super) const FRESH_MAX: Duration = Duration::from_secs(1);

const TICK: Duration = Duration::from_millis(200);

impl Dialler {
    /// Puts servers of this machine first: its loss then costs the node no connection that outlives it. The others
    /// begin at a random one, so that nodes spread over them.
    pub(super) async fn order(&mut self, chance: u64) {
        let count = self.servers.len().max(1);
        self.servers.rotate_left((chance % count as u64) as usize);
        let mut here = Vec::new();
        let mut elsewhere = Vec::new();
        for server in self.servers.drain(..) {
            match server.is_here().await {
                true => here.push(server),
                false => elsewhere.push(server),
            }
        }
        here.append(&mut elsewhere);
        self.servers = here;
    }

    /// Connects to the first server that answers, in the order of the list. With `behind` the order begins behind that
    /// one, and it is the last, unless `is_other` leaves it out.
    pub(super) async fn dial(&self, behind: Option<usize>, is_other: bool) -> Result<Ear, String> {
        let count = self.servers.len();
        let begin = behind.map_or(0, |place| place + 1);
        let tried = count - usize::from(is_other);
        let mut failures = Vec::new();
        for place in (begin..begin + tried).map(|place| place % count) {
            let server = &self.servers[place];
            let dialled = Connection::dial(server, &self.speaking).await;
            match dialled.and_then(|connection| self.ear(connection, place)) {
                Ok(ear) => return Ok(ear),
                Err(why) => failures.push(format!("{}:{}: {why}", server.host, server.port)),
            }
        }
        Err(failures.join("; "))
    }

    fn ear(&self, connection: Connection, server: usize) -> Result<Ear, String> {
        let beats = self.subscribed(&connection).map_err(|e| e.to_string())?;
        Ok(Ear {
            connection,
            beats,
            since: Instant::now(),
            server,
        })
    }

    pub(super) fn subscribed(&self, connection: &Connection) -> Result<Subscription, Failed> {
        connection.subscribe(&self.beat, BEATS_BYTES_MAX)
    }
}

impl Spare {
    pub(super) fn new(dialler: &Arc<Dialler>, shown: &Shown) -> Self {
        Self {
            dialler: Arc::clone(dialler),
            ear: None,
            dialling: None,
            first: 0,
            shown: Arc::clone(shown),
        }
    }

    /// A first connection begins.
    pub(super) fn begin(&mut self, first: &Ear) {
        self.first = first.server;
        // An attempt may be at that very server.
        self.give_up();
        if self
            .ear
            .as_ref()
            .is_some_and(|ear| ear.server == first.server)
        {
            self.drop_ear();
        }
    }

    /// Takes the connection, to use it as the first one.
    pub(super) fn take(&mut self) -> Option<Ear> {
        *self.shown.lock() = None;
        let ear = self.ear.take()?;
        (!ear.connection.has_ended()).then_some(ear)
    }

    /// The next heartbeat on it. Connects as long as that is polled.
    pub(super) async fn next(&mut self) -> Message {
        if self.dialler.servers.len() < 2 {
            return pending().await;
        }
        loop {
            if let Some(ear) = &mut self.ear {
                if let Some(message) = ear.beats.next().await {
                    return message;
                }
                self.drop_ear();
            }
            let dialling = self.dialling.get_or_insert_with(|| {
                let (dialler, first) = (Arc::clone(&self.dialler), self.first);
                tokio::spawn(async move {
                    let dialled = dialler.dial(Some(first), true).await;
                    if dialled.is_err() {
                        tokio::time::sleep(DIAL_WAIT).await;
                    }
                    dialled.ok()
                })
            });
            let dialled = dialling.await;
            self.dialling = None;
            if let Ok(Some(ear)) = dialled {
                *self.shown.lock() = Some(ear.connection.clone());
                self.ear = Some(ear);
            }
        }
    }

    /// A heartbeat that has arrived already.
    pub(super) fn next_waiting(&mut self) -> Option<Message> {
        self.ear.as_mut()?.beats.next_waiting()
    }

    fn drop_ear(&mut self) {
        self.ear = None;
        *self.shown.lock() = None;
    }

    fn give_up(&mut self) {
        if let Some(dialling) = self.dialling.take() {
            dialling.abort();
        }
    }
}

impl Drop for Spare {
    fn drop(&mut self) {
        self.give_up();
        self.drop_ear();
    }
}

/// Whether the second connection's server answers.
pub(super) fn is_fresh(shown: &Shown) -> bool {
    let shown = shown.lock();
    let fresh =
        |connection: &Connection| !connection.has_ended() && connection.silence() < FRESH_MAX;
    shown.as_ref().is_some_and(fresh)
}

/// Waits until the first connection's server does not answer and the second one's does. Returns the reason to change.
pub(super) async fn lagging(first: &Connection, shown: &Shown) -> String {
    let mut ticks = 0;
    loop {
        tokio::time::sleep(TICK).await;
        let silence = first.silence();
        // A node that was stopped reads from one connection before the other.
        ticks = match silence >= LAGGING_MAX && is_fresh(shown) {
            true => ticks + 1,
            false => 0,
        };
        if ticks > 1 {
            let ms = silence.as_millis();
            return format!("it has said nothing for {ms} ms, and another server answers");
        }
    }
}
