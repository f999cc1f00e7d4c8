//! The thread of a replicated vhost: connects to NATS again and again; on a connection it stands by, claims and owns.

use std::future::pending;
use std::io;
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use crosstie_front::http_client::Outgoing;
use crosstie_jetstream::{Connection, Failed, Server, Speaking, Stream};
use crosstie_ledger::{Ledger, Role as LedgerRole, Status};
use crosstie_nats::escaped;
use crosstie_queues::Time;

use super::beat::Beat;
use super::handing::Handing;
use super::handover::Handover;
use super::heartbeats::Beats;
use super::held::Held;
use super::known_log::Known;
use super::log::Names;
use super::orders::{Order, Orders};
use super::peers::Others;
use super::preparation::Preparation;
use super::seen::{Role, Seen};
use super::spare::{Dialler, Ear, Shown, Spare, lagging};
use super::task::{Task, Whose};
use super::term::{Opened, Term};

/// The state of the thread.
pub(super) struct Driver {
    pub(super) task: Task,
    pub(super) names: Names,
    pub(super) known: Known,
    pub(super) ledger: Ledger,
    pub(super) term: Option<Term>,
    /// A term that is about to begin.
    pub opening: Option<Opened>,
    pub others: Others,
    /// Orders from operators.
    pub(super) orders: Orders,
    /// A move that this node, the owner, prepares or carries out.
    pub(super) handover: Option<Handover>,
    /// A handover to another node that has not taken over yet.
    pub(super) handing: Option<Handing>,
    /// The preparation for a move to this node.
    pub(super) preparation: Option<Preparation>,
    pub(super) asking: Outgoing,
    /// The last logged reason of an unanswered log.
    unanswered: Option<String>,
    /// The last owner that was shown.
    shown: Option<Whose>,
    /// The time since which the log is shorter than known.
    pub(super) shorter_since: Option<Instant>,
    pub(super) dialler: Arc<Dialler>,
    start: Instant,
    pub connection: Option<Connection>,
    /// The second connection, for heartbeats.
    pub(super) second: Shown,
}

/// The state that a node's heartbeat announces.
pub(super) enum Saying {
    /// The node waits for an obstacle to disappear.
    Waiting,
    /// The node is ready to take over.
    StandingBy,
    Owning,
    /// The former owner, with the chosen successor and its deadline.
    Leaving(Option<(String, Duration)>),
}

/// Why the node cannot proceed.
pub(super) enum Obstacle {
    /// The servers do not answer; the node retries.
    Unanswered(Failed),
    /// An operator must act.
    Alarm(String),
}

/// Pause between two rounds over all servers.
const DIAL_WAIT: Duration = Duration::from_millis(200);

/// If an owner is disconnected for this long, it closes its clients' connections.
const LINK_GONE_MAX: Duration = Duration::from_secs(3);

/// Pause after an obstacle.
const OBSTACLE_WAIT: Duration = Duration::from_secs(1);

/// Pause if the log does not answer, as during an election.
const UNANSWERED_WAIT: Duration = Duration::from_millis(200);

/// Maximum time for pending records when the node stops.
const LEAVE_MAX: Duration = Duration::from_secs(5);

/// Starts the thread. An error names the file and its fault.
pub(crate) fn start(task: Task) -> Result<JoinHandle<()>, String> {
    let driver = Driver::new(task)?;
    let thread = thread::Builder::new().name("ledger".to_owned());
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    let started = runtime.and_then(|runtime| thread.spawn(move || runtime.block_on(driver.run())));
    started.map_err(|e| format!("the thread of a replicated vhost: {e}"))
}

impl Driver {
    fn new(mut task: Task) -> Result<Self, String> {
        let orders = Orders::taken(&mut task.orders);
        let settings = &task.settings;
        let named = |e: io::Error| format!("vhost '{}': {e}", task.vhost);
        let speaking = Speaking::read(
            settings.credentials.as_deref(),
            &settings.ca_certificates,
            &task.node_directory,
        );
        let servers = settings.urls.iter().map(|url| Server {
            host: url.host.clone(),
            port: url.port,
            is_tls: url.is_tls,
        });
        let known = format!("{}.known", escaped(&task.vhost));
        let authorities = settings.ca_certificates.iter();
        let authorities = authorities.map(|file| task.node_directory.join(file));
        Ok(Self {
            names: Names::of(&task.vhost),
            known: Known::read(task.directory.join(known)).map_err(named)?,
            asking: Outgoing::new(&authorities.collect::<Vec<_>>()).map_err(named)?,
            dialler: Arc::new(Dialler {
                servers: servers.collect(),
                speaking: speaking.map_err(named)?,
                beat: Names::of(&task.vhost).beat,
            }),
            second: Shown::default(),
            ledger: Ledger::new(task.config()),
            term: None,
            opening: None,
            others: Others::new(&task.node, task.incarnation),
            orders,
            handover: None,
            handing: None,
            preparation: None,
            unanswered: None,
            shown: None,
            shorter_since: None,
            start: Instant::now(),
            connection: None,
            task,
        })
    }

    async fn run(mut self) {
        let mut stopping = self.task.stopping.clone();
        tokio::select! {
            () = self.keep() => {}
            _ = stopping.wait_for(|is_stopping| *is_stopping) => {}
        }
        self.leave().await;
    }

    /// Connects again and again.
    async fn keep(&mut self) {
        if let Some(dialler) = Arc::get_mut(&mut self.dialler) {
            dialler.order(self.task.incarnation).await;
        }
        let mut spare = Spare::new(&self.dialler, &self.second);
        let mut lost = None;
        let mut is_told = false;
        loop {
            let attached = match spare.take() {
                Some(ear) => Ok(ear),
                None => {
                    let dialler = Arc::clone(&self.dialler);
                    let deadline = self.link_deadline();
                    tokio::select! {
                        dialled = dialler.dial(lost, false) => dialled,
                        () = until(deadline) => {
                            self.end_term("the node has lost NATS");
                            continue;
                        }
                    }
                }
            };
            match attached {
                Ok(first) => {
                    is_told = false;
                    lost = Some(first.server);
                    spare.begin(&first);
                    let server = first.connection.greeting().name.clone();
                    let why = self.serve(first, &mut spare).await;
                    let vhost = &self.task.vhost;
                    tracing::warn!("vhost '{vhost}': NATS server '{server}' is lost: {why}");
                }
                Err(why) => {
                    if !is_told {
                        is_told = true;
                        let vhost = &self.task.vhost;
                        tracing::warn!("vhost '{vhost}': no NATS server is reached ({why})");
                    }
                    if self.term.is_none() {
                        let why = format!("no NATS server is reached ({why})");
                        self.refuse_orders(&why);
                        self.show(Whose::Nobody { why: why.into() });
                    }
                    tokio::time::sleep(DIAL_WAIT).await;
                }
            }
        }
    }

    /// Uses a connection until it ends. Returns the reason of its end.
    async fn serve(&mut self, first: Ear, spare: &mut Spare) -> String {
        let Ear {
            connection,
            beats,
            since,
            ..
        } = first;
        self.connection = Some(connection.clone());
        let greeting = connection.greeting().clone();
        let vhost = Arc::clone(&self.task.vhost);
        tracing::info!("vhost '{vhost}': on NATS server '{}'", greeting.name);
        self.note(|seen| seen.server = greeting.name);
        if let Some(term) = &mut self.term {
            term.link_lost = None;
        }
        self.others.attached(since);
        let second = Arc::clone(&self.second);
        let beats = Beats {
            first: beats,
            spare,
        };
        let why = tokio::select! {
            why = connection.ended() => why,
            why = lagging(&connection, &second) => why,
            why = self.work(&connection, beats) => why,
        };
        self.connection = None;
        self.abandon_opening().await;
        self.note(|seen| {
            seen.server = String::new();
            if seen.role != Role::Owner {
                seen.role = Role::Detached;
            }
        });
        if let Some(term) = &mut self.term {
            term.link_lost = Some(Instant::now());
        }
        why
    }

    /// Stands by, claims and owns, in turn.
    async fn work(&mut self, connection: &Connection, mut beats: Beats<'_>) -> String {
        let stream = self.names.stream(connection);
        let beats = &mut beats;
        loop {
            if self.term.is_none() {
                self.note(|seen| seen.role = Role::Standby);
                let claimed = match self.stand_by(&stream, beats).await {
                    Ok(()) => self.claim(&stream, beats).await,
                    Err(obstacle) => Err(obstacle),
                };
                // A node that did not write a claim keeps its place in the log.
                let is_following = self.ledger.role() == LedgerRole::Following;
                let keeps = is_following && self.task.settings.is_standby_warm;
                match claimed {
                    Ok(true) => self.begin_term(&stream).await,
                    Ok(false) => {
                        if !keeps {
                            self.begin_anew();
                        }
                        self.others.begin_anew();
                        self.others.expect();
                        continue;
                    }
                    // The owner's silence so far still counts.
                    Err(obstacle) => {
                        if !keeps || matches!(obstacle, Obstacle::Alarm(_)) {
                            self.begin_anew();
                        }
                        self.wait_for_change(&stream, beats, obstacle).await;
                        continue;
                    }
                }
            }
            let why = self.own(&stream, beats).await;
            self.end_term(&why);
            self.others.begin_anew();
            self.others.expect();
        }
    }

    /// Logs an obstacle, and waits before the next attempt.
    async fn wait_for_change(
        &mut self,
        stream: &Stream,
        beats: &mut Beats<'_>,
        obstacle: Obstacle,
    ) {
        let vhost = Arc::clone(&self.task.vhost);
        let wait = match obstacle {
            Obstacle::Unanswered(_) => UNANSWERED_WAIT,
            Obstacle::Alarm(_) => OBSTACLE_WAIT,
        };
        let why = match obstacle {
            Obstacle::Unanswered(failed) => {
                self.others.expect();
                let why = match stream.connection.denied() {
                    Some(denied) => format!("its log: {failed}; the NATS server says: {denied}"),
                    None => format!("its log: {failed}"),
                };
                if self.unanswered.replace(why.clone()).as_ref() != Some(&why) {
                    tracing::warn!("vhost '{vhost}': {why}");
                }
                why
            }
            Obstacle::Alarm(why) => {
                let is_new = self.task.seen.lock().alarm.as_ref() != Some(&why);
                if is_new {
                    tracing::error!("vhost '{vhost}' is not opened: {why}");
                }
                self.note(|seen| seen.alarm = Some(why.clone()));
                why
            }
        };
        if !self.others.has_owner() {
            self.show(Whose::Nobody { why: why.into() });
        }
        let until = tokio::time::Instant::now() + wait;
        self.beat(stream, Saying::Waiting);
        loop {
            self.judge_handing();
            tokio::select! {
                heard = beats.next() => self.handle_beat(stream, beats, heard).await,
                Some(order) = self.orders.recv() => {
                    if self.obey(stream, beats, order).await {
                        return;
                    }
                }
                () = tokio::time::sleep_until(until) => return,
            }
        }
    }

    /// Obeys an operator's order while this node does not own the vhost. Returns whether the log has been replaced.
    pub(super) async fn obey(
        &mut self,
        stream: &Stream,
        beats: &mut Beats<'_>,
        order: Order,
    ) -> bool {
        match order {
            Order::Move(order) => {
                order.reply.answer(Err(self.not_owned()));
                false
            }
            Order::Recover(order) => {
                self.listen(stream, beats).await;
                self.recover(stream, order).await
            }
        }
    }

    fn not_owned(&self) -> String {
        match (self.others.owner(), &self.shown) {
            (Some(owner), _) => format!("this node does not own it: node {} does", owner.node),
            (None, Some(Whose::Nobody { why })) => format!("it has no owner at present: {why}"),
            (None, _) => "it has no owner at present".to_owned(),
        }
    }

    /// Refuses all orders with the reason.
    fn refuse_orders(&mut self, why: &str) {
        if let Some(handing) = self.handing.take() {
            handing.reply.answer(Err(why.to_owned()));
        }
        while let Some(order) = self.orders.next() {
            order.refuse(why);
        }
    }

    /// Drops everything read from the log.
    pub(super) fn begin_anew(&mut self) {
        self.ledger = Ledger::new(self.task.config());
        self.preparation = None;
    }

    /// Shows the owner, if it has changed.
    pub(super) fn show(&mut self, whose: Whose) {
        if self.shown.as_ref() != Some(&whose) {
            self.task.holder.show(&whose);
            self.shown = Some(whose);
        }
    }

    /// Makes the next call of [`Self::show`] effective.
    pub(super) fn forget_shown(&mut self) {
        self.shown = None;
    }

    /// Updates the status for operators.
    pub(super) fn note(&self, note: impl FnOnce(&mut Seen)) {
        note(&mut self.task.seen.lock());
    }

    /// The current time for the ledger.
    pub(crate) fn now(&self) -> Time {
        Time(self.start.elapsed().as_millis() as u64)
    }

    /// The instant of a ledger's time.
    pub(crate) fn at(&self, Time(ms): Time) -> tokio::time::Instant {
        (self.start + Duration::from_millis(ms)).into()
    }

    /// Publishes this node's heartbeat.
    pub(super) fn beat(&self, stream: &Stream, saying: Saying) {
        let status = self.ledger.status();
        self.say(stream, &status, saying);
    }

    /// The same, with the status of a ledger that another thread holds.
    pub(crate) fn say(&self, stream: &Stream, status: &Status, saying: Saying) {
        let settings = &self.task.settings;
        let beat = Beat {
            node: self.task.node.clone(),
            incarnation: self.task.incarnation,
            is_owner: matches!(saying, Saying::Owning | Saying::Leaving(_)),
            is_leaving: matches!(saying, Saying::Leaving(_)),
            is_ready: matches!(saying, Saying::StandingBy),
            is_warm: settings.is_standby_warm,
            is_holding: self.holds().is_some(),
            handed: match saying {
                Saying::Leaving(handed) => handed,
                _ => None,
            },
            epoch: status.epoch,
            log: self.known.log,
            sequence: self.known.sequence.max(status.sequence.0),
            passes_over: true,
            knows_clearances: true,
            answers: self.term.as_ref().is_some_and(|term| term.answers),
            address: settings.address.clone().unwrap_or_default(),
            preparing: self.handover.as_ref().map(|move_| move_.to().to_owned()),
            prepared: self.preparation.as_ref().map_or(0, Preparation::prepared),
            prepares: true,
            reads_settings: true,
        };
        let beat = beat.encode();
        // If a connection has no room, the next heartbeat follows soon.
        let _ = stream.connection.publish(&self.names.beat, &beat);
        if let Some(second) = &*self.second.lock() {
            let _ = second.publish(&self.names.beat, &beat);
        }
    }

    /// The vhost's contents in the worker's store from before it was replicated; `None` once this node knows its log.
    pub(super) fn holds(&self) -> Option<Held> {
        self.task.held.filter(|_| self.known.log == 0)
    }

    fn link_deadline(&self) -> Option<Instant> {
        let lost = self.term.as_ref()?.link_lost?;
        Some(lost + LINK_GONE_MAX)
    }

    /// Stops in order: writes pending records, and lets other nodes take over at once.
    async fn leave(mut self) {
        self.abandon_opening().await;
        if let (Some(connection), true) = (self.connection.clone(), self.term.is_some()) {
            let stream = self.names.stream(&connection);
            let left = tokio::time::timeout(LEAVE_MAX, self.write_rest(&stream)).await;
            if left.is_err() {
                let vhost = &self.task.vhost;
                tracing::error!("vhost '{vhost}': not all records could be written to its log");
            }
            self.beat(&stream, Saying::Leaving(None));
            // An answer to a later request shows that the heartbeat has been sent.
            let _ = tokio::time::timeout(DIAL_WAIT, stream.info()).await;
        }
        if let Some(copy) = self.term.as_mut().and_then(|term| term.copy.take()) {
            copy.finish();
        }
        self.end_term("the node is being stopped");
        self.known.write();
    }
}

async fn until(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => tokio::time::sleep_until(deadline.into()).await,
        None => pending().await,
    }
}
