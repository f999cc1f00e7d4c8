//! Upgrades: another program takes over the listening sockets, the stores and the directory of a running node.
//!
//! ```text
//! `crossbar.upgrade` ─▶ the new program starts, and gets the sockets ─▶ its answers and its end are events
//!      ─▶ routers without a store move, and their clients leave ─▶ the others stop, and start there
//!      ─▶ this process ends its children, and itself; or the new program fails, and all of it goes back
//! ```
//!
//! [`Steps`] decides; this module acts. At any time either process can serve: descriptors are duplicated before they are
//! sent, and a successor goes on by itself if this process is gone.

mod early;
mod link;
mod message;
mod news;
mod steps;
mod successor;
mod take_over;
mod takeover;

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crosstie_config::Worker as Definition;
use crosstie_router::passed::{self, Passed};
use crosstie_router::{Haste, Router, handed};
use serde_json::json;
use tracing::{info, warn};

use self::early::moves_early;
use self::message::{Order, PROTOCOL, Said};
pub(crate) use self::news::News;
use self::steps::{Action, Input, Phase, Steps, Undo};
use self::successor::Estate;
pub(crate) use self::successor::Successor;
pub use self::successor::TAKES_OVER;
pub use self::takeover::Takeover;
use crate::event::Event;
use crate::management::errors::{self, Refusal};
use crate::management::{Management, Reply};
use crate::node::Node;
use crate::outcome::Outcome;
use crate::process::limit_of_children;
use crate::workers::Wanted;

/// The interval of slices.
const TICK: Duration = Duration::from_millis(20);

/// Time for clients to close their connections before the stores move.
const CLIENTS_WITHIN: Duration = Duration::from_millis(20);

/// Time for the caller to leave when it has its answer, and the interval of looks.
const CALLER_WITHIN: Duration = Duration::from_secs(2);
const CALLER_LOOKS: Duration = Duration::from_millis(5);

/// An upgrade that was requested.
pub(crate) struct UpgradeOrder {
    pub(crate) program: PathBuf,
    pub(crate) times: Times,
    pub(crate) reply: Reply,
}

/// The present upgrade.
pub(crate) struct Upgrade {
    /// Distinguishes it from earlier ones.
    number: u64,
    steps: Steps,
    successor: Successor,
    /// Second descriptors of all sockets, until listeners close.
    sockets: Vec<Passed>,
    times: Times,
    /// The workers whose clients leave first.
    early: Vec<String>,
    leaving_since: Instant,
    reply: Reply,
    /// The node ends after the way back, with this outcome.
    then_ends: Option<Outcome>,
}

/// The times of an upgrade.
#[derive(Clone, Copy)]
pub(crate) struct Times {
    /// Clients of routers that move first leave over this time; calls of the others may be answered in it.
    pub(crate) over: Duration,
    /// For each answer of the successor.
    pub(crate) timeout: Duration,
}

impl Node {
    /// Begins an upgrade, or has it wait until the node is ready.
    pub(crate) fn upgrade(&mut self, order: UpgradeOrder) {
        if let Some(other) = self.upgrade_waiting.replace(order) {
            let text = "another upgrade was requested since";
            let _ = other.reply.send(Err(errors::not_upgraded(text)));
        }
        self.begin_upgrade();
    }

    /// Begins the upgrade that waits, if the node is ready.
    pub(crate) fn begin_upgrade(&mut self) {
        let is_ready = self.is_ready() && !self.awaits_former;
        if !is_ready && !self.is_ending() {
            return;
        }
        let Some(order) = self.upgrade_waiting.take() else {
            return;
        };
        let UpgradeOrder {
            program,
            times,
            reply,
        } = order;
        let program = program.as_path();
        let started = self.check_upgrade().and_then(|()| {
            self.upgrades += 1;
            self.start_successor(program)
        });
        let (successor, sockets) = match started {
            Ok(started) => started,
            Err(refusal) => return drop(reply.send(Err(refusal))),
        };
        let workers = self.workers.iter();
        let early = workers.filter(|worker| moves_early(&worker.definition));
        let early: Vec<_> = early.map(|worker| worker.id().to_owned()).collect();
        info!(
            "Upgrading: process {} of '{}' is to take over",
            successor.process.id(),
            program.display()
        );
        self.upgrade = Some(Upgrade {
            number: self.upgrades,
            steps: Steps::new(!early.is_empty()),
            successor,
            sockets,
            times,
            early,
            leaving_since: Instant::now(),
            reply,
            then_ends: None,
        });
        self.limit_upgrade_step();
    }

    fn check_upgrade(&self) -> Result<(), Refusal> {
        let refused = |text| Err(errors::not_upgraded(text));
        if self.is_ending() {
            return Err(errors::ending());
        }
        self.check_not_upgrading()?;
        self.check_not_draining()?;
        if self.reloads.is_running() {
            return refused("a reload is in progress: try again when it is complete");
        }
        if std::process::id() == 1 {
            return refused(
                "the node is the first process of its container, which ends with it: replace the container instead",
            );
        }
        Ok(())
    }

    /// Refuses what would change the node during an upgrade.
    pub(crate) fn check_not_upgrading(&self) -> Result<(), Refusal> {
        if self.succeeded.is_some() {
            return Err(errors::ending());
        }
        match self.upgrade.is_some() {
            true => Err(errors::not_upgraded(
                "an upgrade of the node is in progress: try again when it is complete",
            )),
            false => Ok(()),
        }
    }

    fn start_successor(&self, program: &Path) -> Result<(Successor, Vec<Passed>), Refusal> {
        let started = || {
            let sockets = self.sockets()?;
            let estate = Estate {
                hello: Order::Hello {
                    protocol: PROTOCOL,
                    version: self.version.to_owned(),
                    pid: std::process::id().into(),
                    children_descriptors: limit_of_children(),
                },
                sockets: self.sockets()?,
                of_manager: handed::duplicates()?,
                occupied: self.occupied.clone(),
            };
            let successor = Successor::start(program, estate, self.upgrades, &self.events)?;
            Ok((successor, sockets))
        };
        let started: std::io::Result<_> = started();
        started.map_err(|e| errors::not_upgraded(&e.to_string()))
    }

    /// Second descriptors of all listening sockets.
    fn sockets(&self) -> std::io::Result<Vec<Passed>> {
        let mut sockets = Vec::new();
        for router in self.routers() {
            sockets.extend(router.sockets()?);
        }
        if let Some(admin) = &self.admin {
            sockets.extend(admin.socket()?);
        }
        // In a directory of its own each process has a socket of its own.
        if let Some(management) = self.shared_management() {
            sockets.extend(management.sockets()?);
        }
        Ok(sockets)
    }

    pub(crate) fn handle_upgrade(&mut self, number: u64, news: News) {
        let Some(upgrade) = self.upgrade.as_mut().filter(|own| own.number == number) else {
            return;
        };
        let input = match news {
            News::Said(said) => Input::Said(said),
            News::Nonsense => Input::Nonsense,
            News::Lost(why) => Input::Said(Said::Failed {
                why: format!("cannot pass the sockets on: {why}"),
            }),
            News::Ended => Input::Ended(upgrade.successor.process.reap().to_string()),
            News::Overdue(phase) => Input::Overdue(phase),
            News::Stopped => Input::Stopped,
            News::Due => return self.handle_upgrade_due(),
        };
        self.advance(input);
    }

    /// The node is to end: the upgrade is given up first. Returns false if there is none.
    pub(crate) fn end_upgrade(&mut self, outcome: Outcome) -> bool {
        let Some(upgrade) = &mut self.upgrade else {
            return false;
        };
        upgrade.then_ends.get_or_insert(outcome);
        self.advance(Input::Shutdown);
        true
    }

    fn advance(&mut self, input: Input) {
        let Some(upgrade) = &mut self.upgrade else {
            return;
        };
        for action in upgrade.steps.handle(input) {
            self.act(action);
        }
    }

    fn act(&mut self, action: Action) {
        let Some(upgrade) = &mut self.upgrade else {
            return;
        };
        match action {
            Action::Ask(order) => {
                upgrade.successor.tell(&order);
                self.limit_upgrade_step();
            }
            Action::Leave => self.leave_early(),
            Action::Stop => self.stop_routers(),
            Action::GiveFiles => self.give_files(),
            Action::Kill => upgrade.successor.process.kill(),
            Action::Return(undo, why) => self.go_back(undo, &why),
            Action::Finish => self.finish_upgrade(),
        }
    }

    fn limit_upgrade_step(&self) {
        if let Some(upgrade) = &self.upgrade {
            let (number, news) = (upgrade.number, News::Overdue(upgrade.steps.phase()));
            self.send_after(upgrade.times.timeout, Event::Upgrade { number, news });
        }
    }

    /// Keeps every socket open, for the way back. The files of sockets stay, whoever closes them.
    fn keep_sockets(&mut self) {
        if let Some(upgrade) = &mut self.upgrade {
            passed::own_files(false);
            passed::keep(std::mem::take(&mut upgrade.sockets));
        }
    }

    /// The successor accepts the clients of routers without a store.
    fn leave_early(&mut self) {
        self.keep_sockets();
        let Some(upgrade) = &self.upgrade else {
            return;
        };
        let routers = self.routers_of(&upgrade.early);
        let clients: usize = routers.map(Router::close_for_drain).sum();
        info!("Upgrading: the new program accepts; clients that leave for it: {clients}");
        if let Some(upgrade) = &mut self.upgrade {
            upgrade.leaving_since = Instant::now();
        }
        self.handle_upgrade_due();
    }

    /// The routers among these workers.
    fn routers_of(&self, early: &[String]) -> impl Iterator<Item = &Router> {
        let workers = self.workers.iter();
        let early = workers.filter(|worker| early.iter().any(|id| id == worker.id()));
        early.filter_map(|worker| Some(&worker.router.as_ref()?.router))
    }

    fn handle_upgrade_due(&mut self) {
        let Some(upgrade) = &self.upgrade else {
            return;
        };
        if upgrade.steps.phase() != Phase::Leaving {
            return;
        }
        let (over, elapsed) = (upgrade.times.over, upgrade.leaving_since.elapsed());
        let share = match over.is_zero() {
            true => 1.0,
            false => elapsed.as_secs_f64() / over.as_secs_f64(),
        };
        let routers = self.routers_of(&upgrade.early);
        let left: usize = routers.map(|router| router.dismiss(share)).sum();
        // Those that are left have open calls, and the stop waits for these.
        if share >= 1.0 && (left == 0 || elapsed >= 2 * over) {
            return self.advance(Input::Left);
        }
        let number = upgrade.number;
        let news = News::Due;
        self.send_after(TICK, Event::Upgrade { number, news });
    }

    /// Stops all routers and what depends on them; their sockets stay open.
    fn stop_routers(&mut self) {
        self.keep_sockets();
        let Some(upgrade) = &self.upgrade else {
            return;
        };
        let (number, calls) = (upgrade.number, upgrade.times.over);
        if let Some(admin) = self.admin.take() {
            admin.stop();
        }
        if let Some(management) = &self.management {
            management.stop_console();
        }
        let workers = self.workers.iter_mut();
        let running = workers.filter_map(|worker| worker.router.take());
        let routers: Vec<_> = running.map(|running| running.router).collect();
        let clients = CLIENTS_WITHIN;
        let events = self.events.clone();
        tokio::task::spawn_blocking(move || {
            routers
                .iter()
                .for_each(|router| router.hurry(Haste { calls, clients }));
            routers.iter().for_each(Router::begin_stop);
            // A store that is incomplete is the successor's to judge, as after a crash.
            let stored: Vec<bool> = routers.into_iter().map(Router::stop).collect();
            if stored.contains(&false) {
                warn!("Upgrading: not all durable data could be stored");
            }
            let news = News::Stopped;
            let _ = events.send(Event::Upgrade { number, news });
        });
    }

    /// The files were given when the first listener closed. What remains is the management realm's socket, if both
    /// processes have the same.
    fn give_files(&self) {
        if let Some(management) = self.shared_management() {
            management.accept_none();
        }
    }

    /// The management realm, if its socket is not in a directory of this process's own.
    fn shared_management(&self) -> Option<&Management> {
        let management = self.management.as_ref();
        management.filter(|_| !self.place.is_private())
    }

    /// The successor serves: this process ends.
    fn finish_upgrade(&mut self) {
        let Some(upgrade) = self.upgrade.take() else {
            return;
        };
        let pid = upgrade.successor.process.id();
        self.manager.hand_over_to(pid);
        upgrade.successor.tell(&Order::Announced);
        info!("Upgraded: process {pid} serves, and this one ends");
        // Its link stays open until this process has ended, by which the successor knows.
        self.succeeded = Some(upgrade.successor);
        let sessions = self.management.as_ref().map_or(0, Management::sessions);
        let _ = upgrade.reply.send(Ok(json!({"pid": pid})));
        let until = Instant::now() + CALLER_WITHIN;
        self.handle_farewell(sessions, until);
    }

    /// Ends this process once the caller has its answer, and has left.
    pub(crate) fn handle_farewell(&mut self, sessions: usize, until: Instant) {
        let now = self.management.as_ref().map_or(0, Management::sessions);
        if self.is_ending() {
            return;
        }
        if now < sessions || Instant::now() > until {
            return self.begin_end(Outcome::Orderly);
        }
        self.send_after(CALLER_LOOKS, Event::Farewell { sessions, until });
    }

    /// The successor has failed and ended: this process goes on.
    fn go_back(&mut self, undo: Undo, why: &str) {
        let Some(upgrade) = self.upgrade.take() else {
            return;
        };
        passed::own_files(true);
        warn!("The upgrade has failed, and this process goes on: {why}");
        if let Some(outcome) = upgrade.then_ends {
            let _ = upgrade.reply.send(Err(errors::not_upgraded(why)));
            return self.begin_end(outcome);
        }
        let mut troubles = Vec::new();
        match undo {
            Undo::Nothing => {}
            Undo::Reopen => {
                for router in self.routers_of(&upgrade.early) {
                    router.set_draining(false);
                    let outcomes = router.reopen().into_iter().filter_map(Result::err);
                    troubles.extend(outcomes.map(|trouble| trouble.to_string()));
                }
            }
            Undo::Restart => troubles = self.restart_routers(),
        }
        if let Some(management) = self.shared_management()
            && let Err(error) = management.accept_again()
        {
            troubles.push(format!("the management realm: {error}"));
        }
        passed::release();
        self.announce();
        let mut why = why.to_owned();
        for trouble in &troubles {
            tracing::error!("After the failed upgrade: {trouble}");
            why += &format!("; and this node did not come back whole: {trouble}");
        }
        let _ = upgrade.reply.send(Err(errors::not_upgraded(&why)));
        if !troubles.is_empty() {
            // A service manager starts it anew.
            self.begin_end(Outcome::WithFailure);
        }
    }

    /// Starts the routers that were stopped, from their definitions. Returns what fails.
    fn restart_routers(&mut self) -> Vec<String> {
        let mut troubles = Vec::new();
        let mut restarted = Vec::new();
        for index in 0..self.workers.len() {
            let worker = &self.workers[index];
            let is_router = matches!(
                worker.definition,
                Definition::Router(_) | Definition::WebSocketTestee(_)
            );
            if !is_router || worker.router.is_some() {
                continue;
            }
            let id = worker.id().to_owned();
            match self.open_again(worker) {
                Ok(running) => {
                    self.workers[index].router = Some(running);
                    restarted.push(id);
                }
                Err(error) => troubles.push(format!("worker '{id}': {}", error.text)),
            }
        }
        let config = self.reloads.config.clone();
        if let Err(error) = self.start_admin(&config) {
            troubles.push(error.to_string());
        }
        if let Err(error) = self.start_console(&config) {
            troubles.push(error.to_string());
        }
        for id in restarted {
            self.bridge_meta_apis(&id);
            // The host of its components has the way to the former sockets.
            let worker = self.worker_mut(&id);
            if let Some(worker) = worker
                && let Some(process) = &mut worker.process
                && process.is_running()
            {
                process.terminate();
                worker.wanted = Wanted::Restart;
                self.kill_later(&id);
            }
        }
        troubles
    }
}
