//! The process that is to succeed this one: started, sent the descriptors, heard and killed.

use std::io;
use std::os::fd::AsFd;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::Duration;

use crosstie_router::passed::Passed;

use super::link::Link;
use super::message::{Order, Said};
use super::news::News;
use crate::directory::Occupied;
use crate::event::{Event, Events};
use crate::process::Apart;

/// The option with which a successor starts. A program that does not know it ends at once.
pub const TAKES_OVER: &str = "--takes-over";

/// Variables that speak to this process alone.
const OWN_VARIABLES: [&str; 4] = ["LISTEN_PID", "LISTEN_FDS", "LISTEN_FDNAMES", "WATCHDOG_PID"];

/// Time after the end of the process for its last messages, if another process holds its socket.
const LAST_WORDS_WITHIN: Duration = Duration::from_secs(1);

/// What the successor gets.
pub(super) struct Estate {
    pub(super) hello: Order,
    pub(super) sockets: Vec<Passed>,
    pub(super) of_manager: Vec<Passed>,
    pub(super) occupied: Option<Arc<Occupied>>,
}

/// A running successor.
pub(crate) struct Successor {
    pub(super) process: Apart,
    link: Arc<Link>,
}

impl Successor {
    /// Starts a program with the arguments of this one. Its messages and its end become events of that number.
    pub(super) fn start(
        program: &Path,
        estate: Estate,
        number: u64,
        events: &Events,
    ) -> io::Result<Self> {
        let (link, other) = Link::pair()?;
        let link = Arc::new(link);
        let mut command = Command::new(program);
        let arguments = std::env::args_os().skip(1);
        command
            .args(arguments.filter(|argument| argument != TAKES_OVER))
            .arg(TAKES_OVER)
            .stdin(Stdio::from(other));
        for name in OWN_VARIABLES {
            command.env_remove(name);
        }
        let process = Apart::start(&mut command).map_err(|e| {
            io::Error::new(
                e.kind(),
                format!("cannot start '{}': {e}", program.display()),
            )
        })?;
        // The command has the other end, too, and the link would not end with the process.
        drop(command);
        let successor = Self { process, link };
        successor
            .listen(estate, number, events)
            .inspect_err(|_| successor.process.kill())?;
        Ok(successor)
    }

    fn listen(&self, estate: Estate, number: u64, events: &Events) -> io::Result<()> {
        let (link, tell) = (Arc::clone(&self.link), events.clone());
        let (alive, ended) = mpsc::channel::<()>();
        let reader = thread::Builder::new().name("successor".to_owned());
        reader.spawn(move || {
            // Dropped with the last message.
            let _alive = alive;
            let tell = |news| drop(tell.send(Event::Upgrade { number, news }));
            match estate.send(&link) {
                Ok(()) => {}
                // The end of the process says more.
                Err(error) if is_end(&error) => {}
                Err(error) => return tell(News::Lost(error.to_string())),
            }
            while let Ok(Some(packet)) = link.receive() {
                tell(match Said::parse(&packet.text) {
                    Some(said) => News::Said(said),
                    None => News::Nonsense,
                });
            }
        })?;
        let (await_end, tell) = (self.process.awaiting(), events.clone());
        let waiter = thread::Builder::new().name("successor-end".to_owned());
        waiter.spawn(move || {
            await_end();
            // Its last message may say why.
            let _ = ended.recv_timeout(LAST_WORDS_WITHIN);
            let news = News::Ended;
            drop(tell.send(Event::Upgrade { number, news }));
        })?;
        Ok(())
    }

    pub(super) fn tell(&self, order: &Order) {
        // Its end is an event of its own.
        let _ = self.link.send(&order.text(), None);
    }
}

impl Drop for Successor {
    fn drop(&mut self) {
        // The thread that reads ends, whoever holds the other end.
        self.link.shut();
    }
}

/// Whether the other end is closed.
fn is_end(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset
    )
}

impl Estate {
    fn send(&self, link: &Link) -> io::Result<()> {
        link.send(&self.hello.text(), None)?;
        for Passed { name, fd } in &self.sockets {
            let name = name.clone();
            link.send(&Order::Socket { name }.text(), Some(fd.as_fd()))?;
        }
        for Passed { name, fd } in &self.of_manager {
            let name = name.clone();
            link.send(&Order::Handed { name }.text(), Some(fd.as_fd()))?;
        }
        if let Some(occupied) = &self.occupied {
            link.send(&Order::Lock.text(), Some(occupied.lock()))?;
        }
        link.send(&Order::All.text(), None)
    }
}
