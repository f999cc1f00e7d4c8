//! Requests grants of single-callee procedures from JetStream, with `single: strict`.
//!
//! A node has a lease: a key with a lifetime of 20 seconds, which it renews every 5. A procedure's key names the lease
//! that holds it, and is written only if unchanged since it was read, so that one of several writers wins. A key whose
//! lease no longer exists is free. The node considers its own lease expired 15 seconds after its last successful
//! request to renew it, so before any other node can see it expire. A node that stops in order empties its lease.

use std::collections::{BTreeSet, VecDeque};
use std::future::pending;
use std::pin::pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crosstie_fabric::Subjects;
use crosstie_front::seed::seed;
use crosstie_jetstream::{Connection, Failed, Put, Register, Server};
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::time::{self, MissedTickBehavior};

use super::bucket_queries::{Asked, Asking, Lease};
use super::dial::Speaking;
use crate::fabric::port::{FabricPort, Wish};
use crate::realm::SharedRealm;

const LEASE_LIVES: Duration = Duration::from_secs(20);
const LEASE_LASTS: Duration = Duration::from_secs(15);
const RENEWED_EACH: Duration = Duration::from_secs(5);

/// Lifetime of the entry that marks a lease as given up.
const LEAVING_LIVES: Duration = Duration::from_secs(1);

/// Timeout of an answer, longer than most elections.
const ANSWER_TIME: Duration = Duration::from_secs(4);

/// Pause between two rounds over all servers.
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
        leases: 0,
        given_up: BTreeSet::new(),
        held: VecDeque::new(),
        is_told: false,
        is_leaving: false,
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
        let why = match keeper.holding(Connection::dial(&server, asking)).await {
            Ok(connection) => keeper.serve(connection).await.to_string(),
            Err(why) => why,
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
        keeper.holding(time::sleep(ROUND)).await;
    }
}

struct Keeper {
    port: Arc<FabricPort>,
    realm: Arc<SharedRealm>,
    subjects: Subjects,
    wished: UnboundedReceiver<Wish>,
    lease: Option<Lease>,
    /// Number of leases so far.
    leases: u64,
    /// Keys to be freed that the present lease holds.
    given_up: BTreeSet<String>,
    /// Requests that wait for a connection, in order: claims of the realm's registrations, and keys to be given up.
    held: VecDeque<Asked>,
    /// The loss of grants was logged.
    is_told: bool,
    /// The realm has ended while there was no connection.
    is_leaving: bool,
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
                    Some(Wish::Leave(_)) => self.is_leaving = true,
                    None => return other.await,
                },
                () = until(due) => self.refuse_late(),
            }
        }
    }

    fn refuse_late(&mut self) {
        let now = Instant::now();
        for asked in std::mem::take(&mut self.held) {
            match asked.deadline() {
                Some(deadline) if deadline <= now => self.refuse(asked),
                _ => self.held.push_back(asked),
            }
        }
    }

    /// A query has no answer: if it succeeded nevertheless, it is undone later.
    fn refuse(&mut self, asked: Asked) {
        if let Some(claim) = asked.claim {
            self.answer(claim, false);
        }
        self.given_up.insert(asked.key);
    }

    fn answer(&self, claim: u64, is_granted: bool) {
        self.port.note_claimed(is_granted);
        self.realm.handle_claimed(claim, is_granted);
        crosstie_transport::uncork();
    }

    /// Serves requests on a connection until it ends, or the lease does. Returns the reason.
    async fn serve(&mut self, connection: Connection) -> Failed {
        let granted = self.subjects.granted();
        let mut register = Register::new(connection.clone(), &self.subjects.bucket());
        register.wait(ANSWER_TIME);
        let replicas = self.port.settings.strict_replicas.unwrap_or(1);
        let created = self.holding(register.create(&granted, replicas)).await;
        if let Err(failed) = created {
            return failed;
        }
        let mut asking = Asking::default();
        for asked in std::mem::take(&mut self.held) {
            self.given_up.remove(&asked.key);
            asking.add(asked);
        }
        let failed = self.serve_asking(&connection, &register, &mut asking);
        let failed = failed.await;
        self.held.extend(asking.take_all());
        failed
    }

    async fn serve_asking(
        &mut self,
        connection: &Connection,
        register: &Register,
        asking: &mut Asking,
    ) -> Failed {
        let mut renewal = time::interval(RENEWED_EACH);
        renewal.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                _ = renewal.tick() => {
                    if let Err(failed) = self.renew(register).await {
                        return failed;
                    }
                    for key in std::mem::take(&mut self.given_up) {
                        asking.add(Asked::now(key, None));
                    }
                }
                why = connection.ended() => return Failed::Ended(why),
                Some((asked, done)) = asking.next() => match (done, asked.claim) {
                    (Ok(is_granted), Some(claim)) => self.answer(claim, is_granted),
                    (Ok(_), None) => {}
                    (Err(_), _) => self.refuse(asked),
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
                    Some(Wish::Leave(_leaving)) => {
                        self.give_lease_up(register).await;
                        return ended();
                    }
                    None => return ended(),
                },
            }
            if self.is_leaving {
                return ended();
            }
            if let Some(lease) = &self.lease {
                asking.begin(register, &self.subjects, lease);
            }
        }
    }

    /// Renews the lease, or creates one; an error if that fails on this connection.
    async fn renew(&mut self, register: &Register) -> Result<(), Failed> {
        let mut lease = self.lease.take().unwrap_or_else(|| self.new_lease());
        let asked = Instant::now();
        let value = lease.name.clone().into_bytes();
        let put = register.put(&lease.key, lease.sequence, &value, Some(LEASE_LIVES));
        let sequence = match put.await {
            Ok(Put::Done(sequence)) => Some(sequence),
            // An unanswered request may have succeeded.
            Ok(Put::Refused) => match register.get(&lease.key).await {
                Ok(Some((sequence, found))) if found == value => {
                    lease.sequence = sequence;
                    None
                }
                Ok(_) => return Err(Failed::Ended("the lease has run out".to_owned())),
                Err(failed) => {
                    self.lease = Some(lease);
                    return Err(failed);
                }
            },
            Err(failed) => {
                self.lease = Some(lease);
                return Err(failed);
            }
        };
        if let Some(sequence) = sequence {
            lease.sequence = sequence;
            self.realm.handle_lease(asked, LEASE_LASTS);
            self.port.note_leased();
            crosstie_transport::uncork();
            if self.is_told {
                self.is_told = false;
                let realm = &self.port.realm;
                tracing::info!("Realm '{realm}': JetStream grants procedures for one callee again");
            }
        }
        self.lease = Some(lease);
        Ok(())
    }

    /// Gives the lease up, and with it all grants. Nodes of an earlier release wait until the empty one has expired.
    async fn give_lease_up(&mut self, register: &Register) {
        let Some(lease) = self.lease.take() else {
            return;
        };
        self.realm.handle_lease(Instant::now(), Duration::ZERO);
        let put = register.put(&lease.key, lease.sequence, b"", Some(LEAVING_LIVES));
        if let Err(why) = put.await {
            let realm = &self.port.realm;
            tracing::warn!(
                "Realm '{realm}': this node's grants last up to 20 s longer, because they could not be given up: {why}"
            );
        }
    }

    /// Keys of the previous lease are lost with it: the realm's grants are withdrawn before new ones are made.
    fn new_lease(&mut self) -> Lease {
        self.leases += 1;
        self.given_up.clear();
        self.realm.handle_lease(Instant::now(), Duration::ZERO);
        let name = format!("{:016x}-{}", self.port.incarnation, self.leases);
        Lease {
            key: self.subjects.of_lease(&name),
            name,
            sequence: 0,
        }
    }
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
