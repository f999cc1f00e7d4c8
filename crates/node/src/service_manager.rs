//! The service manager that started the node, such as systemd: states are sent to its socket (`NOTIFY_SOCKET`), and its
//! watchdog (`WATCHDOG_USEC`) is fed while every router thread takes turns.
//!
//! One datagram is one message of the protocol `sd_notify`, so that no library is needed.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crosstie_router::Threads;
use parking_lot::Mutex;
use tracing::{error, info, warn};

/// The manager of this process; without one, everything here does nothing.
#[derive(Clone, Debug, Default)]
pub struct ServiceManager(Option<Arc<Shared>>);

#[derive(Debug)]
struct Shared {
    socket: UnixDatagram,
    address: SocketAddr,
    /// The time after which the manager ends a process that has not fed its watchdog.
    watchdog: Option<Duration>,
    watched: Mutex<Vec<Threads>>,
    is_stopping: AtomicBool,
    /// Another process is the service.
    is_handed_over: AtomicBool,
}

/// A manager whose queue is full does not delay the node for longer.
const SEND_TIMEOUT: Duration = Duration::from_secs(1);

/// Messages within a watchdog's time: two may be lost or late.
const FEEDS: u32 = 4;

impl ServiceManager {
    /// Reads the manager's variables. An error names the variable.
    pub fn from_environment(variable: &dyn Fn(&str) -> Option<OsString>) -> io::Result<Self> {
        let Some(path) = variable("NOTIFY_SOCKET").filter(|path| !path.is_empty()) else {
            return Ok(Self::default());
        };
        let failed = |e: io::Error| {
            let text = format!("NOTIFY_SOCKET='{}': {e}", path.display());
            io::Error::new(e.kind(), text)
        };
        let address = address(&path).map_err(failed)?;
        let socket = UnixDatagram::unbound()?;
        socket.set_write_timeout(Some(SEND_TIMEOUT))?;
        let text = |name: &str| variable(name).map(|value| value.to_string_lossy().into_owned());
        let watchdog = watchdog(std::process::id(), &text).map_err(io::Error::other)?;
        Ok(Self(Some(Arc::new(Shared {
            socket,
            address,
            watchdog,
            watched: Mutex::default(),
            is_stopping: AtomicBool::new(false),
            is_handed_over: AtomicBool::new(false),
        }))))
    }

    /// Feeds the watchdog only while these threads take turns, too. Ends with their router.
    pub(crate) fn watch(&self, threads: Threads) {
        if let Some(shared) = &self.0 {
            shared.watched.lock().push(threads);
        }
    }

    /// Every transport listens. The watchdog is fed from now on.
    pub(crate) fn ready(&self) -> io::Result<()> {
        let Some(shared) = &self.0 else {
            return Ok(());
        };
        shared.send("READY=1\nSTATUS=Transports listen");
        let Some(watchdog) = shared.watchdog else {
            return Ok(());
        };
        let fed = Arc::clone(shared);
        let feeder = thread::Builder::new().name("watchdog".to_owned());
        feeder.spawn(move || fed.feed(watchdog))?;
        let seconds = watchdog.as_secs_f64();
        info!("Feeding the service manager's watchdog, which waits for {seconds} s");
        Ok(())
    }

    /// All workers and components have started, or failed to.
    pub(crate) fn settled(&self) {
        self.send("STATUS=Ready");
    }

    /// Another process is the service from now on. The watchdog is that one's to feed.
    pub(crate) fn hand_over_to(&self, pid: u32) {
        if let Some(shared) = &self.0 {
            shared.is_handed_over.store(true, Ordering::Relaxed);
        }
        self.send(&format!("MAINPID={pid}"));
    }

    pub(crate) fn stopping(&self) {
        if let Some(shared) = &self.0 {
            shared.is_stopping.store(true, Ordering::Relaxed);
        }
        self.send("STOPPING=1\nSTATUS=Shutting down");
    }

    fn send(&self, message: &str) {
        if let Some(shared) = &self.0 {
            shared.send(message);
        }
    }
}

impl Shared {
    fn send(&self, message: &str) {
        let sent = self.socket.send_to_addr(message.as_bytes(), &self.address);
        if let Err(error) = sent {
            let what = message.lines().next().unwrap_or_default();
            warn!("cannot send {what} to the service manager: {error}");
        }
    }

    /// Feeds the watchdog for as long as the process is the service. Half of the time may pass without a turn of a thread: with
    /// the interval of messages, and the time that the manager waits, a thread that is blocked for less than the whole time
    /// is harmless.
    fn feed(&self, watchdog: Duration) {
        let mut before = Vec::new();
        while !self.is_handed_over.load(Ordering::Relaxed) {
            let stuck = match self.is_stopping.load(Ordering::Relaxed) {
                // The manager limits the time of a stop; threads that have ended are no fault.
                true => Vec::new(),
                false => self.stuck(watchdog / 2),
            };
            if stuck.is_empty() {
                self.send("WATCHDOG=1");
            }
            if stuck != before {
                report(&stuck, watchdog / 2);
                before = stuck;
            }
            thread::sleep((watchdog / FEEDS).max(Duration::from_millis(1)));
        }
    }

    fn stuck(&self, limit: Duration) -> Vec<String> {
        let now = Instant::now();
        let mut stuck = Vec::new();
        self.watched.lock().retain(|threads| {
            let of_it = threads.stuck(now, limit);
            let is_running = of_it.is_some();
            stuck.extend(of_it.unwrap_or_default());
            is_running
        });
        stuck
    }
}

fn report(stuck: &[String], limit: Duration) {
    if stuck.is_empty() {
        info!("Every thread takes turns again: the watchdog is fed");
        return;
    }
    let (names, seconds) = (stuck.join(", "), limit.as_secs_f64());
    error!("The watchdog is not fed: {names} took no turn for {seconds} s");
}

fn address(path: &OsStr) -> io::Result<SocketAddr> {
    match path.as_bytes() {
        [b'/', ..] => SocketAddr::from_pathname(path),
        [b'@', name @ ..] => SocketAddr::from_abstract_name(name),
        _ => Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            "expected the path of a Unix socket, or @ and the name of one",
        )),
    }
}

/// The watchdog's time, unless it is meant for another process.
fn watchdog(
    pid: u32,
    variable: &dyn Fn(&str) -> Option<String>,
) -> Result<Option<Duration>, String> {
    let Some(time) = variable("WATCHDOG_USEC") else {
        return Ok(None);
    };
    if variable("WATCHDOG_PID").is_some_and(|of| of.parse() != Ok(pid)) {
        return Ok(None);
    }
    match time.parse() {
        Ok(microseconds @ 1..) => Ok(Some(Duration::from_micros(microseconds))),
        _ => Err(format!(
            "WATCHDOG_USEC='{time}': expected a number of microseconds, 1 or more"
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_watchdogs_time_is_read_from_the_environment() {
        for (variables, expected) in [
            ("", Ok(None)),
            ("WATCHDOG_USEC=5000", Ok(Some(5))),
            ("WATCHDOG_USEC=5000 WATCHDOG_PID=7", Ok(Some(5))),
            ("WATCHDOG_USEC=5000 WATCHDOG_PID=8", Ok(None)),
            ("WATCHDOG_USEC=x WATCHDOG_PID=8", Ok(None)),
            (
                "WATCHDOG_USEC=0",
                Err("WATCHDOG_USEC='0': expected a number of microseconds, 1 or more"),
            ),
            (
                "WATCHDOG_USEC=5s WATCHDOG_PID=7",
                Err("WATCHDOG_USEC='5s': expected a number of microseconds, 1 or more"),
            ),
        ] {
            let set = |name: &str| {
                let mut pairs = variables.split(' ').filter_map(|pair| pair.split_once('='));
                let found = pairs.find(|(key, _)| *key == name)?;
                Some(found.1.to_owned())
            };
            let time = watchdog(7, &set);
            let time = time.as_ref().map(|time| time.map(|time| time.as_millis()));
            assert_eq!(time.map_err(String::as_str), expected, "{variables}");
        }
    }

    #[test]
    fn a_managers_socket_has_a_path_or_a_name() {
        for (path, is_accepted) in [
            ("/run/systemd/notify", true),
            ("@/org/example", true),
            ("vsock:2:1234", false),
            ("notify", false),
        ] {
            assert_eq!(address(OsStr::new(path)).is_ok(), is_accepted, "{path}");
        }
    }
}
