//! Changed transports: made ready beside the running ones, and then put in their places.
//!
//! A transport whose address stays takes over the listening socket, so that no client finds it closed. A new address is
//! bound before anything of the running transports changes; if one cannot be bound, nothing has changed. In both cases
//! the present connections stay, with their sessions, as they are. Only a transport that is gone ends its sessions.

use std::io;
use std::sync::Arc;

use crosstie_broker::{ReadyUsers, ReadyVhosts};
use crosstie_config::{self as model, TransportKind};
use crosstie_front::certificate::{Certificate, Read};
use crosstie_front::sockets;
use crosstie_realms::replaced::Replaced;

use crate::accepting::Ready;
use crate::conversing::{Conversing, Opened};
use crate::error::{StartError, StartFault};
use crate::router::Router;
use crate::transports::{RunningTransport, Served, channels_max, kind};

/// A transport that is ready to run.
pub struct ReadyTransport(Way);

enum Way {
    /// It has a socket of its own.
    Bound(Box<RunningTransport>, Option<Ready>),
    /// It takes over the socket of the transport of that id.
    Takes {
        of: String,
        transport: Box<model::Transport>,
        opened: Box<Opened>,
    },
    /// Only the files of its certificate have changed.
    Renews(Arc<Certificate>, Read),
}

impl Router {
    /// Makes a transport ready to run, in place of the running one with its address, or else with its id, if any.
    pub fn ready_transport(
        &self,
        transport: &model::Transport,
    ) -> Result<ReadyTransport, StartError> {
        let what = || self.of_worker("transport", &transport.id);
        self.check_runs(what)?;
        let ready = self.make_ready(transport);
        ready.map(ReadyTransport).map_err(|e| StartError {
            what: what(),
            fault: StartFault::Io(e),
        })
    }

    fn make_ready(&self, transport: &model::Transport) -> io::Result<Way> {
        if matches!(transport.kind, TransportKind::Testee(_)) {
            let running = self.listen(transport, None, None)?;
            return Ok(Way::Bound(Box::new(running), None));
        }
        let (of, earlier) = {
            let transports = self.transports.lock();
            let mut public = transports.iter().filter(|running| !running.is_private);
            let named = public.clone().find(|running| running.id == transport.id);
            let same = named.filter(|running| running.is_at(&transport.endpoint));
            let same = same.or_else(|| {
                let may_take = !transport.endpoint.is_chosen();
                public.find(|running| may_take && running.is_at(&transport.endpoint))
            });
            let former = same.or(named);
            let states = former.map(states).unwrap_or_default();
            (same.map(|running| running.id.clone()), states)
        };
        let Some(of) = of else {
            let (running, ready) = self.bind(transport, None, None, &earlier)?;
            return Ok(Way::Bound(Box::new(running), Some(ready)));
        };
        let opened = Box::new(self.endpoint(transport, None, &earlier)?);
        Ok(Way::Takes {
            of,
            transport: Box::new(transport.clone()),
            opened,
        })
    }

    /// Makes changed AMQP users and permissions ready. `None` if there is no broker.
    pub fn ready_users(&self, amqp: &model::Amqp) -> Result<Option<ReadyUsers>, StartError> {
        let Some(broker) = self.state.amqp() else {
            return Ok(None);
        };
        let ready = broker.ready_users(amqp, &self.options.directory);
        ready.map(Some).map_err(|why| self.amqp_fault(why))
    }

    /// Makes changed AMQP vhosts and limits ready. `None` if there is no broker.
    pub fn ready_vhosts(&self, amqp: &model::Amqp) -> Result<Option<ReadyVhosts>, StartError> {
        let Some(broker) = self.state.amqp() else {
            return Ok(None);
        };
        let ready = broker.ready_vhosts(amqp, &self.options.directory);
        ready.map(Some).map_err(|why| self.amqp_fault(why))
    }

    /// Puts AMQP vhosts and limits in force.
    pub fn put_vhosts(&self, vhosts: ReadyVhosts) {
        if let Some(broker) = self.state.amqp() {
            broker.put_vhosts(vhosts);
        }
    }

    fn amqp_fault(&self, why: String) -> StartError {
        StartError {
            what: format!("AMQP of worker {}", self.id()),
            fault: StartFault::Io(io::Error::other(why)),
        }
    }

    /// Puts AMQP users and permissions in force, for present connections too.
    pub fn put_users(&self, users: ReadyUsers) {
        if let Some(broker) = self.state.amqp() {
            broker.put_users(users);
        }
    }

    /// Reads the files of a running transport's certificate again if they have changed.
    pub fn ready_certificate(&self, id: &str) -> Result<Option<ReadyTransport>, StartError> {
        let certificate = {
            let transports = self.transports.lock();
            let running = transports.iter().find(|other| other.id == id);
            running.and_then(|running| running.certificate.clone())
        };
        let Some(certificate) = certificate.filter(|own| own.has_new_files()) else {
            return Ok(None);
        };
        let read = certificate.read().map_err(|e| StartError {
            what: self.of_worker("transport", id),
            fault: StartFault::Io(e),
        })?;
        Ok(Some(ReadyTransport(Way::Renews(certificate, read))))
    }

    /// Gives up transports that were made ready.
    pub fn discard_transports(&self, ready: Vec<ReadyTransport>) {
        for ReadyTransport(way) in ready {
            if let Way::Bound(mut running, _) = way
                && let Served::Testee(testee) = &running.served
            {
                self.state.remove_testee(testee);
                if let Some(accepting) = running.accepting.take() {
                    accepting.stop();
                }
            }
        }
    }

    /// Puts transports in the places of those with their addresses, or else with their ids, and stops those of the ids
    /// `gone`. Returns the number of principals that are revoked with it.
    pub fn replace_transports(&self, ready: Vec<ReadyTransport>, gone: &[String]) -> usize {
        let mut transports = self.transports.lock();
        let mut replaced = Vec::new();
        let mut next = Vec::new();
        let mut bound = Vec::new();
        for ReadyTransport(way) in ready {
            let (of, transport, opened) = match way {
                Way::Renews(certificate, read) => {
                    certificate.put(read);
                    continue;
                }
                Way::Bound(running, ready) => {
                    bound.push((running, ready));
                    continue;
                }
                Way::Takes {
                    of,
                    transport,
                    opened,
                } => (of, transport, opened),
            };
            let Some(at) = transports.iter().position(|running| running.id == of) else {
                continue;
            };
            let mut running = transports.remove(at);
            self.take_over(&mut running, &transport, *opened);
            replaced.push(running.earlier.last().cloned().zip(present(&running)));
            next.push(running);
        }
        for running in &mut next {
            // Its own former address, if nobody has taken that over.
            if let Some(moved) = close(&mut transports, &running.id) {
                replaced.push(present(&moved).zip(present(running)));
                running.earlier.splice(0..0, states(&moved));
            }
        }
        for (mut running, ready) in bound {
            if let Some(moved) = close(&mut transports, &running.id) {
                running.earlier = states(&moved);
                replaced.push(present(&moved).zip(present(&running)));
            }
            if let Some(ready) = ready {
                running.accepting = Some(ready.accept(&self.workers));
            }
            next.push(*running);
        }
        let stopped = gone.iter().filter_map(|id| close(&mut transports, id));
        let stopped: Vec<_> = stopped.collect();
        transports.append(&mut next);
        self.note_transports(&transports);
        let entrances = transports.iter().filter_map(|t| present(t)?.entrance);
        let entrances: Vec<_> = entrances.collect();
        let mut revoked = Replaced::default();
        for (was, is) in replaced.into_iter().flatten() {
            if let Some((was, is)) = was.entrance.zip(is.entrance) {
                revoked.add(&was, &is, &entrances);
            }
        }
        transports.iter().for_each(follow);
        drop(transports);
        for running in stopped {
            self.end_served(running.served, running.earlier);
        }
        // Last: no session of a former login joins any more.
        revoked.revoke(self.state.realms.revoking())
    }

    fn take_over(
        &self,
        running: &mut RunningTransport,
        transport: &model::Transport,
        opened: Opened,
    ) {
        let Opened {
            conversing,
            endpoint,
            nodelay,
            certificate,
        } = opened;
        if let Some(listener) = running.listener.upgrade() {
            let stall_max = self.state.bounds.limits.stall_max;
            let adjusted = sockets::adjust(&listener, &transport.endpoint, nodelay, stall_max);
            if let Err(e) = adjusted {
                tracing::warn!("transport '{}': {e}", transport.id);
            }
            (running.urls, running.pages) = self.urls(transport, &listener);
        }
        if let Some(destination) = &running.destination {
            destination.set(Arc::clone(&conversing.listening), endpoint);
        }
        running.earlier = states(running);
        running.id.clone_from(&transport.id);
        running.kind = kind(&transport.kind);
        running.endpoint = transport.endpoint.clone();
        running.channels_max = channels_max(&transport.kind);
        running.certificate = certificate;
        running.nodelay = nodelay;
        running.served = Served::Conversations(conversing);
    }
}

impl RunningTransport {
    /// Whether a transport with that endpoint can take over its socket.
    fn is_at(&self, endpoint: &model::Endpoint) -> bool {
        self.destination.is_some() && self.endpoint.has_address_of(endpoint)
    }
}

/// Takes the transport out, and closes its listener. Under the lock, as in `stop_transport`.
fn close(transports: &mut Vec<RunningTransport>, id: &str) -> Option<RunningTransport> {
    let at = transports.iter().position(|running| running.id == id)?;
    let mut running = transports.remove(at);
    if let Some(accepting) = running.accepting.take() {
        accepting.stop();
    }
    Some(running)
}

/// The connections of former states log in by the present methods.
fn follow(running: &RunningTransport) {
    let Some(Conversing {
        entrance: Some(present),
        ..
    }) = present(running)
    else {
        return;
    };
    let former = running.earlier.iter().filter_map(|of| of.entrance.as_ref());
    former.for_each(|former| former.follow(&present));
}

fn present(running: &RunningTransport) -> Option<Conversing> {
    match &running.served {
        Served::Conversations(conversing) => Some(conversing.clone()),
        Served::Testee(_) => None,
    }
}

/// The states of a transport that is replaced, the present one last; without those that have no connection any more.
fn states(running: &RunningTransport) -> Vec<Conversing> {
    let mut states: Vec<_> = running.earlier.clone();
    states.retain(|of| of.listening.connections() > 0);
    states.extend(present(running));
    states
}
