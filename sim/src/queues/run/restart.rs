//! Commits, crashes, and the state of a vhost afterwards.

use std::sync::Arc;

use crosstie_amqp::method::BasicConsume;
use crosstie_auth::Permissions;
use crosstie_queues::{Client, Destination, Time, Vhost, VhostConfig};

use super::VhostSimulation;
use crate::queues::disk::Disk;
use crate::queues::model::Model;
use crate::queues::recorder::{Recorder, Sent};

/// A new vhost.
pub(super) fn vhost(seed: u64, input_steps_max: u32) -> Vhost<u32> {
    let config = VhostConfig {
        // No timeouts here.
        consumer_timeout_ms: None,
        // Every change of the topology is followed.
        dead_letter_retry_ms: 0,
        input_steps_max,
        ..VhostConfig::named("/")
    };
    Vhost::new(config, seed)
}

/// A client that may do everything.
pub(in crate::queues) fn client() -> Client {
    Client {
        user: "simulated".into(),
        permissions: Arc::new(Permissions::all()),
        consumer_cancel_notify: true,
        is_impersonator: false,
    }
}

impl VhostSimulation {
    /// The disk writes the oldest of its pending records; a crash at that point must restore exactly these.
    pub(super) fn commit(&mut self) -> Result<(), String> {
        let Some(pending) = self.pending.pop_front() else {
            return Ok(());
        };
        for record in pending.records {
            self.disk.write(record)?;
        }
        self.kept = pending.durable;
        self.check_restart()?;
        self.vhost.handle_committed(pending.position, &mut self.out);
        Ok(())
    }

    /// Continues with a vhost that was restored from the disk.
    pub(super) fn crash(&mut self) -> Result<(), String> {
        if self.pending.is_empty() {
            // Nothing durable has changed without a record.
            let found = describe(&self.model.durable(false));
            let kept = describe(&self.kept);
            if kept != found {
                return Err(format!("of {found:?} only {kept:?} was written down"));
            }
        }
        self.restart()
    }

    /// Ends the vhost in good order, and continues with one restored from its records.
    pub(super) fn stop(&mut self) -> Result<(), String> {
        while !self.pending.is_empty() {
            self.commit()?;
        }
        self.vhost.rest(Time(self.model.now_ms), &mut self.out);
        for record in std::mem::take(&mut self.vhost.journal().records) {
            self.disk.write(record)?;
        }
        // All clients have left.
        self.out.sent.clear();
        self.model.settle_queues();
        self.kept = self.model.durable(true);
        self.restart()
    }

    fn restart(&mut self) -> Result<(), String> {
        self.check_restart()?;
        let (now_ms, input) = (self.model.now_ms, self.model.input);
        self.pending.clear();
        self.connections.clear();
        self.channels.clear();
        self.out.refusing.clear();
        self.vhost = restore(
            &self.disk,
            Time(now_ms),
            self.chance.number(),
            self.input_steps_max,
            &mut self.out,
        );
        self.disk.wake();
        self.model = self.kept.clone();
        self.model.bury_over_limit();
        // A crash from here on.
        self.kept = self.kept.durable(false);
        self.model.now_ms = now_ms;
        self.model.input = input;
        Ok(())
    }

    /// Restores a vhost at the time at which this was so, and looks at everything in it.
    fn check_restart(&self) -> Result<(), String> {
        let mut kept = self.kept.clone();
        kept.bury_over_limit();
        // A message behind a removed one may have expired.
        kept.settle_queues();
        let now = Time(kept.now_ms);
        let mut out = Recorder::default();
        let mut vhost = restore(&self.disk, now, 1, super::WHOLE, &mut out);
        let connection = vhost.open_connection(1, client());
        let channel = vhost.open_channel(connection, 1);
        let channel = channel.map_err(|fault| fault.text)?;
        let names = compare(&vhost, &kept)?;
        // Those for dead letters first (`d…`): emptying another may send some there.
        for name in names {
            // Some queues are only to be consumed.
            let consume = BasicConsume {
                queue: &name,
                consumer_tag: &name,
                no_ack: true,
                ..BasicConsume::default()
            };
            vhost
                .handle(now, channel, &consume.into(), &mut out)
                .map_err(|fault| fault.text)?;
            while vhost.has_backlog() {
                vhost.work(now, super::WHOLE, &mut out);
            }
            let mut messages = Vec::new();
            for (_, sent) in std::mem::take(&mut out.sent) {
                match sent {
                    Sent::Deliver {
                        consumer,
                        message,
                        redelivered,
                        ..
                    } if consumer == name => messages.push((message, redelivered)),
                    // A message that dies here is published to a queue that has been checked.
                    Sent::Deliver { .. } | Sent::Answer { .. } => {}
                    other => return Err(format!("after a crash {name} gives {other:?}")),
                }
            }
            let entries = kept.queue(&name).map(|queue| queue.entries.iter());
            let mut lasting = entries.into_iter().flatten().collect::<Vec<_>>();
            lasting.retain(|entry| entry.expires_at.is_none_or(|due| due > kept.now_ms));
            let expected: Vec<(u64, bool)> = lasting
                .iter()
                .map(|entry| (entry.message, entry.redelivered))
                .collect();
            if messages != expected {
                return Err(format!(
                    "after a crash {name} has {messages:?}, expected {expected:?}"
                ));
            }
        }
        Ok(())
    }
}

/// Compares everything but messages; returns the names of the queues.
fn compare(vhost: &Vhost<u32>, kept: &Model) -> Result<Vec<String>, String> {
    let found = describe_vhost(vhost);
    let (exchanges, bindings, _) = describe(kept);
    if found != (exchanges, bindings) {
        return Err(format!(
            "after a crash there is {found:?}, expected {kept:?}"
        ));
    }
    let mut names: Vec<String> = vhost.queues().map(|queue| queue.name.to_string()).collect();
    names.sort();
    let expected: Vec<&String> = kept.queues.iter().map(|queue| &queue.name).collect();
    if names.len() != expected.len() || !names.iter().all(|name| expected.contains(&name)) {
        return Err(format!(
            "after a crash there are {names:?}, expected {expected:?}"
        ));
    }
    let (found, expected) = (vhost.counts().dead_letters_kept, kept.letters());
    if found != expected {
        return Err(format!(
            "after a crash {found} dead letters are kept, expected {expected}"
        ));
    }
    Ok(names)
}

fn restore(
    disk: &Disk,
    now: Time,
    seed: u64,
    input_steps_max: u32,
    out: &mut Recorder,
) -> Vhost<u32> {
    let mut vhost = vhost(seed, input_steps_max);
    for record in disk.records() {
        vhost.restore(now, record);
    }
    vhost.restored(now, out);
    vhost
}

type Described = Vec<(String, String, String)>;
/// Per queue its messages, and how often each came back.
type Contents = Vec<(String, Vec<(u64, u32)>)>;

/// Exchanges, bindings, and the contents of each queue.
fn describe(model: &Model) -> (Described, Described, Contents) {
    let exchanges = model.exchanges.iter();
    let bindings = model.bindings.iter();
    let queues = model.queues.iter();
    let mut described = (
        exchanges
            .map(|known| (known.name.clone(), known.kind.to_owned(), String::new()))
            .collect::<Vec<_>>(),
        bindings
            .map(|known| {
                (
                    known.exchange.clone(),
                    known.queue.clone(),
                    known.key.clone(),
                )
            })
            .collect::<Vec<_>>(),
        queues
            .map(|queue| {
                let entries = queue.entries.iter();
                let entries = entries.map(|entry| (entry.message, entry.deliveries));
                // A kept dead letter is never delivered.
                let letters = queue.letters.iter().map(|entry| (entry.message, u32::MAX));
                (queue.name.clone(), entries.chain(letters).collect())
            })
            .collect::<Vec<_>>(),
    );
    described.0.sort();
    described.1.sort();
    described.2.sort();
    described
}

fn describe_vhost(vhost: &Vhost<u32>) -> (Described, Described) {
    let is_own = |name: &str| !name.is_empty() && !name.starts_with("amq.");
    let mut exchanges: Described = vhost
        .exchanges()
        .filter(|exchange| is_own(&exchange.name))
        .map(|exchange| {
            (
                exchange.name.to_string(),
                exchange.kind.to_string(),
                String::new(),
            )
        })
        .collect();
    let mut bindings: Described = vhost
        .bindings()
        .filter(|binding| is_own(&binding.source))
        .map(|binding| {
            let (Destination::Queue(name) | Destination::Exchange(name)) = &binding.destination;
            let (source, key) = (binding.source.to_string(), binding.routing_key.to_string());
            (source, name.to_string(), key)
        })
        .collect();
    exchanges.sort();
    bindings.sort();
    (exchanges, bindings)
}
