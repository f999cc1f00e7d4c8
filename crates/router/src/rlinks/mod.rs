//! Links between a realm of this router and one of another: `crosstie_rlinks` decides, with two sessions.
//!
//! ```text
//!   realm ═ Room::route ◄───────────── Link ◄────────────── client::Pipe ◄── the other router
//!         ─► socket ─► local.rs ─────► (one lock) ─► client::PipeSender ───►
//! ```
//!
//! Messages of the other router enter the realm on the thread that reads them. The realm's messages pass through a
//! socket, as with any session, and have the same limits: while the other router does not read, the link does not read
//! either. If one side is lost, the other leaves, so that mirrored subscriptions and registrations end at once, and the
//! link reconnects.

mod connected;
mod local;
mod remote;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant, SystemTime};

use crosstie_client::pipe::Pipe;
use crosstie_config as model;
use crosstie_realms::resident::{Room, Rooms as _};
use parking_lot::Mutex;
use tokio::sync::watch;

use crate::error::{StartError, StartFault, StopError};
use crate::registry::Registry;
use crate::rlink_state::{AtWork, Counts, RLink, RLinkStatus};
use crate::router::Router;
use connected::Running;

/// The first pause before a link reconnects.
const WAIT_MIN: Duration = Duration::from_millis(250);
/// A link that was connected for this long reconnects at once.
const HELD: Duration = Duration::from_secs(30);

impl Router {
    /// Starts a link of a realm. It connects as soon as the realm and the other router are available, and again after a
    /// loss.
    pub fn start_rlink(&self, realm: &str, link: &model::RLink) -> Result<(), StartError> {
        let what = || self.of_worker("link", &link.id);
        self.check_runs(what)?;
        let failed = |fault| StartError {
            what: what(),
            fault,
        };
        let client = remote::config(
            link,
            self.state.realms.key.as_ref(),
            &self.options.directory,
        );
        let client = client.map_err(|why| failed(StartFault::Io(std::io::Error::other(why))))?;
        let runtime = self.workers.aside_handle();
        let runtime = runtime.map_err(|e| failed(StartFault::Io(e)))?;
        let started = Arc::new(RLink {
            realm: realm.to_owned(),
            model: link.clone(),
            started: SystemTime::now(),
            is_connected: AtomicBool::new(false),
            counts: Counts::default(),
            running: Mutex::default(),
            trouble: Mutex::default(),
            stop: watch::Sender::new(false),
        });
        if !self.state.rlinks.add(&started) {
            return Err(failed(StartFault::AlreadyRunning));
        }
        let state = Arc::clone(&self.state);
        runtime.spawn(keep(started, state, client));
        Ok(())
    }

    /// Stops a link of a realm: both of its sessions leave.
    pub fn stop_rlink(&self, realm: &str, id: &str) -> Result<(), StopError> {
        match self.state.rlinks.take(realm, Some(id)).pop() {
            Some(link) => {
                link.stop.send_replace(true);
                Ok(())
            }
            None => Err(StopError {
                what: self.of_worker("link", id),
            }),
        }
    }

    /// Stops all links of a realm.
    pub fn stop_rlinks(&self, realm: &str) {
        for link in self.state.rlinks.take(realm, None) {
            link.stop.send_replace(true);
        }
    }

    /// The links, in the order of their starts.
    pub fn rlinks(&self) -> Vec<RLinkStatus> {
        let links = self.state.rlinks.all();
        links.iter().map(|link| link.status()).collect()
    }
}

/// Keeps a link running until it is stopped, or its router ends.
async fn keep(link: Arc<RLink>, state: Arc<Registry>, client: crosstie_client::Config) {
    tokio::select! {
        () = keep_connecting(&link, &state, &client) => {}
        () = link.stopped() => {}
    }
    // The pipe ended with the future; the local session did not.
    let running = link.running.lock().take();
    if let Some(running) = running {
        running.end("the link was stopped");
    }
    link.is_connected.store(false, Ordering::Relaxed);
}

async fn keep_connecting(
    link: &Arc<RLink>,
    state: &Arc<Registry>,
    client: &crosstie_client::Config,
) {
    let mut wait = WAIT_MIN;
    loop {
        let begun = Instant::now();
        let why = connect(link, state, client).await;
        let was_connected = link.is_connected.swap(false, Ordering::Relaxed);
        *link.running.lock() = None;
        if state.bounds.is_stopping() {
            return;
        }
        if begun.elapsed() > HELD {
            wait = WAIT_MIN;
        }
        link.counts.restarted();
        // The same reason is logged once.
        let is_new = link.trouble.lock().replace(why.clone()).as_ref() != Some(&why);
        let (id, ms) = (&link.model.id, wait.as_millis());
        match was_connected || is_new {
            true => tracing::warn!("Link '{id}' reconnects in {ms} ms: {why}"),
            false => tracing::debug!("Link '{id}' reconnects in {ms} ms: {why}"),
        }
        tokio::time::sleep(wait).await;
        wait = (wait * 2).min(link.model.reconnect_delay_max);
    }
}

/// Connects, and runs the link until one of its sides is lost. Returns the reason.
async fn connect(
    link: &Arc<RLink>,
    state: &Arc<Registry>,
    client: &crosstie_client::Config,
) -> String {
    let room = awaited(state, &link.realm).await;
    let (mut pipe, welcome) = match Pipe::connect(client).await {
        Ok(connected) => connected,
        Err(e) => return e.to_string(),
    };
    let running = match Running::begin(link, state, room, &pipe, &welcome) {
        Ok(running) => running,
        Err(why) => return why,
    };
    let at_work: Arc<dyn AtWork> = Arc::clone(&running) as _;
    *link.running.lock() = Some(at_work);
    link.is_connected.store(true, Ordering::Relaxed);
    *link.trouble.lock() = None;
    tracing::info!(
        "Link '{}' joins realm '{}' to realm '{}' at {}, as '{}' with the role '{}' there",
        link.model.id,
        link.realm,
        link.model.realm,
        client.endpoint,
        welcome.authid.as_deref().unwrap_or_default(),
        welcome.authrole.as_deref().unwrap_or_default(),
    );
    let mut from_remote = connected::FromRemote(Arc::clone(&running));
    let why = tokio::select! {
        biased;
        why = running.ended() => why,
        why = pipe.run(&mut from_remote) => why.to_string(),
        () = link.stopped() => "the link was stopped".to_owned(),
    };
    // The link's own error is more precise.
    let why = running.why().unwrap_or(why);
    running.end(&why);
    pipe.finish().await;
    why
}

/// Waits for the realm.
async fn awaited(state: &Arc<Registry>, realm: &str) -> Arc<dyn Room> {
    let mut comings = state.realms.comings();
    loop {
        comings.mark_unchanged();
        if let Some(room) = state.realms.room(realm) {
            return room;
        }
        // The caller holds the state.
        let _ = comings.changed().await;
    }
}
