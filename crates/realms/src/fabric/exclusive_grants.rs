//! Requests grants of single-callee procedures from JetStream, with `single: strict`.
//!
//! A node has a lease ([`super::lease`]), which it renews every second. A procedure's key names the lease that holds it,
//! and is written only if unchanged since it was read, so that one of several writers wins. A key whose lease has ended,
//! or no longer exists, is free. A node serves its grants for 4 seconds after its last successful request to renew, and
//! so never when another node can end its lease. A node that stops in order empties its lease.

use std::collections::{BTreeSet, VecDeque};
use std::future::pending;
use std::pin::pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crosstie_fabric::Subjects;
use crosstie_front::seed::seed;
use crosstie_jetstream::{Connection, Failed, Put, Register, Server};
use parking_lot::Mutex;
use tokio::sync::{mpsc::UnboundedReceiver, oneshot};
use tokio::task::JoinSet;
use tokio::time::{self, MissedTickBehavior};

use super::bucket_queries::{Asked, Asking};
use super::dial::Speaking;
use super::lease::{KEPT, LIVES, Lease, RENEWED_EACH, Renewals, SERVES};
use crate::fabric::port::{FabricPort, Wish};
use crate::realm::SharedRealm;

/// Timeout of an answer. Servers without a leader keep no request: it is repeated.
const ANSWER_TIME: Duration = Duration::from_secs(1);

/// Lifetime of the entry that marks a lease as given up.
const LEAVING_LIVES: Duration = Duration::from_secs(1);

/// Timeout of a connection, so that the lease is renewed in time at the next server.
const DIAL_TIME: Duration = Duration::from_secs(2);

/// Timeout of a renewal, and the pause before the next attempt.
const RENEWAL_TIME: Duration = Duration::from_millis(800);
const RENEWAL_PAUSE: Duration = Duration::from_millis(200);

/// Time without an answered renewal after which the node asks another server.
const UNANSWERED_MAX: Duration = Duration::from_millis(1_500);

/// Maximum size of renewals of other nodes that wait to be noted. Beyond it none is noted on this connection.
const HEARD_BYTES_MAX: usize = 256 << 10;

/// Maximum silence of a server: others are asked while the lease lasts.
pub(super) const SILENCE_MAX: Duration = Duration::from_secs(2);

/// Pause after a connection has ended, and after a server was not reached.
const ENDED_PAUSE: Duration = Duration::from_millis(50);
const ROUND: Duration = Duration::from_millis(500);

/// Keeps the lease, and claims, until the port is stopped.
pub(super) async fn keep(port: &Arc<FabricPort>, realm: &Arc<SharedRealm>, speaking: &Speaking) {
    let (Some(asking), Some(wished)) = (&speaking.asking, port.take_wished()) else {
        return;
    };
    let mut keeper = Keeper {
        port: Arc::clone(port),
        realm: Arc::clone(realm),
        subjects: Subjects::new(&port.realm),
        wished,
        lease: None,
        renewals: Arc::default(),
        leases: 0,
        given_up: BTreeSet::new(),
        held: VecDeque::new(),
        is_told: false,
        is_connected: false,
        leaving: None,
    };
    let urls = &port.settings.urls;
    let mut next = seed() as usize % urls.len().max(1);
    while !port.is_stopped() {
        let url = &urls[next % urls.len()];
        next = next.wrapping_add(1);
        let server = Server {
            host: url.host.clone(),
            port: url.port,
            is_tls: url.is_tls,
        };
        let dialled = time::timeout(DIAL_TIME, Connection::dial(&server, asking));
        let dialled = keeper.holding(dialled).await;
        let dialled = dialled.unwrap_or_else(|_| Err("no answer in 2 s".to_owned()));
        if port.is_stopped() {
            return;
        }
        let (why, pause) = match dialled {
            Ok(connection) => (keeper.serve(connection).await.to_string(), ENDED_PAUSE),
            Err(why) => (why, ROUND),
        };
        if port.is_stopped() {
            return;
        }
        port.note_ungranted(&why);
        if !keeper.is_told {
            keeper.is_told = true;
            let realm = &port.realm;
            tracing::warn!("Realm '{realm}': JetStream grants no procedures for one callee: {why}");
        }
        keeper.holding(time::sleep(pause)).await;
    }
}

struct Keeper {
    port: Arc<FabricPort>,
    realm: Arc<SharedRealm>,
    subjects: Subjects,
    wished: UnboundedReceiver<Wish>,
    lease: Option<Lease>,
    renewals: Arc<Mutex<Renewals>>,
    /// Number of leases so far.
    leases: u64,
    /// Keys to be freed that the present lease holds.
    given_up: BTreeSet<String>,
    /// Requests that wait for a connection, in order: claims of the realm's registrations, and keys to be given up.
    held: VecDeque<Asked>,
    /// The loss of grants was logged.
    is_told: bool,
    is_connected: bool,
    /// The realm has ended, and waits until the lease is given up.
    leaving: Option<oneshot::Sender<()>>,
}

impl Keeper {
    /// Keeps claims while `other` is awaited, and refuses overdue ones: servers elect a new leader within seconds, and
    /// a connection is soon replaced.
    async fn holding<T>(&mut self, other: impl Future<Output = T>) -> T {
        let mut other = pin!(other);
        loop {
            let due = self.held.iter().filter_map(Asked::deadline).min();
            tokio::select! {
                done = &mut other => return done,
                wish = self.wished.recv() => match wish {
                    Some(Wish::Claim(claim, key)) => self.held.push_back(Asked::now(key, Some(claim))),
                    Some(Wish::GiveUp(key)) => self.held.push_back(Asked::now(key, None)),
                    // Without a connection the lease ends by itself.
                    Some(Wish::Leave(leaving)) => self.leaving = self.is_connected.then_some(leaving),
                    None => return other.await,
                },
                () = until(due) => self.refuse_late(),
            }
        }
    }

    fn refuse_late(&mut self) {
        let now = Instant::now();
        let held = std::mem::take(&mut self.held).into_iter();
        let is_late = |asked: &Asked| asked.deadline().is_some_and(|due| due <= now);
        let (late, held) = held.partition::<VecDeque<_>, _>(is_late);
        self.held = held;
        for asked in late {
            let is_asked_again = self.held.iter().any(|later| later.key == asked.key);
            self.refuse(asked, is_asked_again);
        }
    }

    /// A query has no answer: if it succeeded nevertheless, it is undone later, or by the next query of the key.
    fn refuse(&mut self, asked: Asked, is_asked_again: bool) {
        if let Some(claim) = asked.claim {
            self.answer(claim, false);
        }
        if !is_asked_again {
            self.given_up.insert(asked.key);
        }
    }

    fn answer(&self, claim: u64, is_granted: bool) {
        self.port.note_claimed(is_granted);
        self.realm.handle_claimed(claim, is_granted);
        crosstie_transport::uncork();
    }

    /// Serves requests on a connection until it ends, or the lease does. Returns the reason.
    async fn serve(&mut self, connection: Connection) -> Failed {
        let mut register = Register::new(connection.clone(), &self.subjects.bucket());
        register.wait(ANSWER_TIME);
        let mut asking = Asking::default();
        self.take_held(&mut asking);
        self.is_connected = true;
        let failed = self.serve_asking(&connection, &register, &mut asking);
        let failed = failed.await;
        self.is_connected = false;
        self.leaving = None;
        self.held.extend(asking.take_all());
        failed
    }

    /// Lines up what came while something else was awaited, before later requests.
    fn take_held(&mut self, asking: &mut Asking) {
        for asked in std::mem::take(&mut self.held) {
            self.given_up.remove(&asked.key);
            asking.add(asked);
        }
    }

    async fn serve_asking(
        &mut self,
        connection: &Connection,
        register: &Register,
        asking: &mut Asking,
    ) -> Failed {
        let mut renewing = register.clone();
        renewing.wait(RENEWAL_TIME);
        let _hearing = match Self::hear(connection, &self.subjects, &self.renewals) {
            Ok(hearing) => hearing,
            Err(failed) => return failed,
        };
        let mut renewal = time::interval(RENEWED_EACH);
        renewal.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut unanswered: Option<Unanswered> = None;
        loop {
            tokio::select! {
                _ = renewal.tick() => {
                    let renewed = self.renew_or_look(register, &renewing, &mut unanswered).await;
                    self.take_held(asking);
                    for late in asking.take_late(Instant::now()) {
                        let is_asked_again = asking.has(&late.key);
                        self.refuse(late, is_asked_again);
                    }
                    match renewed {
                        Ok(true) => {
                            for key in std::mem::take(&mut self.given_up) {
                                asking.add(Asked::now(key, None));
                            }
                        }
                        Ok(false) => renewal.reset_after(RENEWAL_PAUSE),
                        Err(failed) => return failed,
                    }
                }
                why = connection.ended() => return Failed::Ended(why),
                Some((asked, done)) = asking.next() => match (done, asked.claim) {
                    (Ok(is_granted), Some(claim)) => self.answer(claim, is_granted),
                    (Ok(_), None) => {}
                    (Err(_), _) => {
                        let is_asked_again = asking.has(&asked.key);
                        self.refuse(asked, is_asked_again);
                    }
                },
                wish = self.wished.recv() => match wish {
                    Some(Wish::Claim(claim, key)) => {
                        self.given_up.remove(&key);
                        asking.add(Asked::now(key, Some(claim)));
                    }
                    Some(Wish::GiveUp(key)) => {
                        self.given_up.remove(&key);
                        asking.add(Asked::now(key, None));
                    }
                    Some(Wish::Leave(leaving)) => self.leaving = Some(leaving),
                    None => return ended(),
                },
            }
            if self.leaving.is_some() {
                self.give_lease_up(register).await;
                return ended();
            }
            if let Some(lease) = &self.lease {
                asking.begin(register, &self.subjects, (lease, &self.renewals));
            }
        }
    }

    /// Renews the lease; `false` without an answer, which another attempt may get. Creates a missing bucket.
    async fn renew_or_look(
        &mut self,
        register: &Register,
        renewing: &Register,
        unanswered: &mut Option<Unanswered>,
    ) -> Result<bool, Failed> {
        let begun = Instant::now();
        match self.renew(renewing).await {
            Ok(()) => {
                *unanswered = None;
                return Ok(true);
            }
            Err(Failed::Silent | Failed::Nobody) => {}
            Err(failed) => return Err(failed),
        }
        let Unanswered { since, is_missing } = match *unanswered {
            Some(known) => known,
            None => {
                let is_missing = self.is_missing(register).await;
                if is_missing {
                    self.create(renewing).await?;
                }
                *unanswered.insert(Unanswered {
                    since: begun,
                    is_missing,
                })
            }
        };
        match (since.elapsed() < UNANSWERED_MAX, is_missing) {
            (true, _) => Ok(false),
            (false, true) => Err(Failed::Nobody),
            (false, false) => Err(Failed::Silent),
        }
    }

    /// Notes the renewals of other nodes while the connection lasts and the result is kept.
    fn hear(
        connection: &Connection,
        subjects: &Subjects,
        renewals: &Arc<Mutex<Renewals>>,
    ) -> Result<JoinSet<()>, Failed> {
        let mut said = connection.subscribe(&subjects.of_lease("*"), HEARD_BYTES_MAX)?;
        let renewals = Arc::clone(renewals);
        let mut hearing = JoinSet::new();
        hearing.spawn(async move {
            while let Some(message) = said.next().await {
                renewals.lock().hear(&message.payload, Instant::now());
            }
        });
        Ok(hearing)
    }

    /// Renews the lease, or creates one; an error if that fails on this connection.
    async fn renew(&mut self, register: &Register) -> Result<(), Failed> {
        let mut lease = self.lease.take().unwrap_or_else(|| self.new_lease());
        let began = Instant::now();
        let value = lease.renewal(began).into_bytes();
        let put = register.put(&lease.key, lease.sequence, &value, Some(LIVES));
        let renewed = match put.await {
            Ok(Put::Done(sequence)) => Ok((sequence, began)),
            // An unanswered request may have succeeded.
            Ok(Put::Refused) => match register.get(&lease.key).await {
                Ok(Some((sequence, found))) if let Some(written) = lease.written(&found) => {
                    match written.is_news {
                        true => Ok((sequence, written.asked)),
                        false => Err(Failed::Silent),
                    }
                }
                Ok(_) => return Err(Failed::Ended("the lease has run out".to_owned())),
                Err(failed) => Err(failed),
            },
            Err(failed) => Err(failed),
        };
        let (sequence, asked) = match renewed {
            Ok(renewed) => renewed,
            Err(failed) => {
                self.lease = Some(lease);
                return Err(failed);
            }
        };
        lease.note(sequence, asked);
        self.lease = Some(lease);
        self.renewals.lock().note(sequence, Instant::now());
        self.realm.handle_lease(asked, (SERVES, KEPT));
        self.port.note_leased();
        crosstie_transport::uncork();
        if self.is_told {
            self.is_told = false;
            let realm = &self.port.realm;
            tracing::info!("Realm '{realm}': JetStream grants procedures for one callee again");
        }
        Ok(())
    }

    /// Gives the lease up, and with it all grants. Nodes of an earlier release wait until the empty one has expired.
    async fn give_lease_up(&mut self, register: &Register) {
        let Some(lease) = self.lease.take() else {
            return;
        };
        self.realm
            .handle_lease(Instant::now(), (Duration::ZERO, Duration::ZERO));
        let put = register.put(&lease.key, lease.sequence, b"", Some(LEAVING_LIVES));
        if let Err(why) = put.await {
            let realm = &self.port.realm;
            tracing::warn!(
                "Realm '{realm}': other nodes wait some seconds for this node's grants, which could not be given up: {why}"
            );
        }
    }

    /// Whether there is no bucket. A renewal does not tell: nodes that hear it count as its responders.
    async fn is_missing(&mut self, register: &Register) -> bool {
        let key = self.lease.as_ref().map(|lease| lease.key.clone());
        let key = key.unwrap_or_else(|| self.subjects.of_lease("*"));
        let mut looking = register.clone();
        looking.wait(RENEWAL_PAUSE);
        self.holding(looking.is_missing(&key)).await
    }

    /// Creates the bucket, if the servers agree on one now; an error if they refuse that.
    async fn create(&mut self, register: &Register) -> Result<(), Failed> {
        let granted = self.subjects.granted();
        let replicas = self.port.settings.strict_replicas.unwrap_or(1);
        match self.holding(register.create(&granted, replicas)).await {
            Err(failed @ (Failed::Refused(_) | Failed::Ended(_))) => Err(failed),
            _ => Ok(()),
        }
    }

    /// Keys of the previous lease are lost with it: the realm's grants are withdrawn before new ones are made.
    fn new_lease(&mut self) -> Lease {
        self.leases += 1;
        self.given_up.clear();
        self.renewals.lock().forget();
        self.realm
            .handle_lease(Instant::now(), (Duration::ZERO, Duration::ZERO));
        let name = format!("{:016x}-{}", self.port.incarnation, self.leases);
        let key = self.subjects.of_lease(&name);
        Lease::new(name, key)
    }
}

/// Renewals without an answer.
#[derive(Clone, Copy)]
struct Unanswered {
    since: Instant,
    /// There was no bucket at the first of them.
    is_missing: bool,
}

async fn until(due: Option<Instant>) {
    match due {
        Some(due) => time::sleep_until(due.into()).await,
        None => pending().await,
    }
}

fn ended() -> Failed {
    Failed::Ended("the realm has ended".to_owned())
}
