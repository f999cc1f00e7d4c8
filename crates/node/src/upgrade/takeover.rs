//! The successor's side of a hand-over.

use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use crosstie_router::handed;
use crosstie_router::passed::{self, Passed};
use rustix::process::{Pid, getppid};
use tokio::sync::mpsc;
use tracing::{info, warn};

use super::link::Link;
use super::message::{Order, PROTOCOL, Said};
use crate::process::inherit_limit_of_children;

/// Time for a process that has closed its sockets to end.
const ENDED_WITHIN: Duration = Duration::from_secs(10);
const LOOK_AGAIN_AFTER: Duration = Duration::from_millis(1);

/// The hand-over by a former process of the node. If that process is gone, this one goes on by itself.
#[derive(Debug)]
pub struct Takeover {
    link: Arc<Link>,
    /// The former process and its version, as it said.
    former: Option<(u64, String)>,
    lock: Option<OwnedFd>,
    /// Ends when the former process is gone.
    orders: mpsc::UnboundedReceiver<Order>,
}

impl Takeover {
    /// Receives what the former process passes over standard input, which is then empty. To be called before the process
    /// opens any descriptor.
    pub fn receive() -> io::Result<Self> {
        let link = rustix::io::fcntl_dupfd_cloexec(io::stdin(), 3)?;
        let link = Arc::new(Link::of(link)?);
        rustix::stdio::dup2_stdin(File::open("/dev/null")?)?;
        let (says, orders) = mpsc::unbounded_channel();
        let mut takeover = Self {
            link,
            former: None,
            lock: None,
            orders,
        };
        let received = takeover.read_all();
        if let Err(error) = &received {
            takeover.fail(&error.to_string());
        }
        if received? {
            let (link, former) = (Arc::clone(&takeover.link), takeover.former_pid());
            let reader = thread::Builder::new().name("hand-over".to_owned());
            reader.spawn(move || read_orders(&link, former, &says))?;
        }
        Ok(takeover)
    }

    /// Reads up to the last descriptor. Returns false if the former process is gone.
    fn read_all(&mut self) -> io::Result<bool> {
        let (mut sockets, mut of_manager) = (Vec::new(), Vec::new());
        let is_complete = loop {
            let Some(packet) = self.link.receive()? else {
                break false;
            };
            let order = Order::parse(&packet.text).ok_or_else(|| unknown(&packet.text))?;
            match (order, packet.descriptor) {
                (
                    Order::Hello {
                        protocol,
                        version,
                        pid,
                        children_descriptors,
                    },
                    _,
                ) => {
                    if protocol != PROTOCOL {
                        return Err(io::Error::other(format!(
                            "this version speaks version {PROTOCOL} of the hand-over's protocol, and the running \
                             node of version {version} speaks {protocol}: stop that node and start this one"
                        )));
                    }
                    self.former = Some((pid, version));
                    children_descriptors
                        .into_iter()
                        .for_each(inherit_limit_of_children);
                }
                (Order::Socket { name }, Some(fd)) => sockets.push(Passed { name, fd }),
                (Order::Handed { name }, Some(fd)) => of_manager.push(Passed { name, fd }),
                (Order::Lock, Some(fd)) => self.lock = Some(fd),
                (Order::All, _) if self.former.is_some() => break true,
                _ => return Err(unknown(&packet.text)),
            }
        };
        passed::keep(sockets);
        handed::inherit(of_manager);
        passed::own_files(false);
        Ok(is_complete)
    }

    fn former_pid(&self) -> Option<Pid> {
        let pid = self.former.as_ref().map(|(pid, _)| *pid);
        pid.and_then(|pid| Pid::from_raw(i32::try_from(pid).ok()?))
    }

    /// The lock of the node's directory.
    pub fn take_lock(&mut self) -> Option<OwnedFd> {
        self.lock.take()
    }

    /// Logs the beginning.
    pub fn report(&self) {
        if let Some((pid, version)) = &self.former {
            info!("Taking over from process {pid} of version {version}");
        }
    }

    /// Tells the former process why this one ends.
    pub fn fail(&self, why: &str) {
        self.say(&Said::Failed {
            why: why.to_owned(),
        });
    }

    pub(super) fn say(&self, said: &Said) {
        // A former process that is gone waits for nothing.
        let _ = self.link.send(&said.text(), None);
    }

    /// Waits for that order, or for the end of the former process. An error is a text for the operator.
    pub(super) async fn wait_for(&mut self, order: &Order) -> Result<(), String> {
        match self.orders.recv().await {
            Some(next) if next == *order => Ok(()),
            Some(next) => Err(unknown(&next.text()).to_string()),
            None => {
                warn!("The former process is gone: this one goes on by itself");
                Ok(())
            }
        }
    }

    /// Waits for the end of the former process.
    pub(super) async fn until_alone(mut self) {
        while self.orders.recv().await.is_some() {}
    }
}

fn unknown(text: &str) -> io::Error {
    io::Error::other(format!(
        "unexpected message of the running node, which may be newer: {text}"
    ))
}

/// Passes orders on, until the former process is gone.
fn read_orders(link: &Link, former: Option<Pid>, says: &mpsc::UnboundedSender<Order>) {
    while let Ok(Some(packet)) = link.receive() {
        let order = Order::parse(&packet.text);
        if let Some(order) = order
            && says.send(order).is_err()
        {
            return;
        }
    }
    // Its sockets are closed before the locks that it holds may be.
    let begun = Instant::now();
    while former.is_some() && getppid() == former && begun.elapsed() < ENDED_WITHIN {
        thread::sleep(LOOK_AGAIN_AFTER);
    }
}
