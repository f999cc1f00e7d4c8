//! A client that opens a replicated vhost, and a node that brings a client.

use std::mem;
use std::sync::Arc;
use std::time::Instant;

use crosstie_front::report;

use super::{AmqpEndpoint, Conversation, State};
use crate::handled::{End, Handled};
use crate::let_in::LetIn;
use crate::open::Entered;
use crate::splice::{Account, Greeted, Refusal, Spliced, Splices, Way, accept, refuse};
use crate::turned_away::TurnedAway;

impl Conversation {
    /// Lets a client into its vhost, splices it to the owner node, or makes it wait for an owner.
    pub(super) fn admit(
        &mut self,
        mut client: Box<LetIn>,
        since: Option<Instant>,
        consumed: usize,
    ) -> Handled {
        let broker = Arc::clone(&self.endpoint.broker);
        let whose = match broker.vhost(&client.vhost) {
            Ok(vhost) => {
                if let Err(away) = broker.decide(&mut client) {
                    return Handled::End(End::TurnedAway(Box::new(away)));
                }
                return match self.enter(client.enter(vhost)) {
                    true => Handled::Done { consumed },
                    false => Handled::End(End::Answered),
                };
            }
            Err(whose) => whose,
        };
        let replicated = broker.replicated_of(&client.vhost);
        let way = replicated.map(|found| (Way::of(&whose, found.splicing(), since), found));
        match way {
            Some((Way::PassOn, _)) if client.permissions.are_judged() => {
                let why = "another node has the vhost, and cannot ask the user's backend";
                let away = TurnedAway::elsewhere(why, &client);
                Handled::End(End::TurnedAway(Box::new(away)))
            }
            Some((Way::PassOn, replicated)) => {
                let replicated = Arc::clone(replicated);
                let node = &broker.home.node;
                let spliced = Spliced::new(*client, replicated, &self.connection, node);
                self.state = State::PassedOn(Some(Box::new(spliced)));
                Handled::HandOver { consumed }
            }
            Some((Way::Wait, replicated)) => {
                self.state = State::Waiting(client, since.unwrap_or_else(Instant::now));
                self.connection.pause_reading();
                let connection = Arc::downgrade(&self.connection);
                let replicated = Arc::clone(replicated);
                broker.logins.keeper.spawn(async move {
                    replicated.await_owner().await;
                    if let Some(connection) = connection.upgrade() {
                        connection.resume_reading();
                    }
                });
                Handled::Yield { consumed }
            }
            Some((Way::Refuse, _)) | None => {
                Splices::count(&broker.splices.refused);
                let away = TurnedAway::elsewhere(&whose.refusal(&client.vhost), &client);
                Handled::End(End::TurnedAway(Box::new(away)))
            }
        }
    }

    /// Continues after the wait: the vhost has an owner, or the timeout ended.
    pub(super) fn go_on(&mut self) -> Handled {
        match mem::replace(&mut self.state, State::Over) {
            State::Waiting(client, since) => self.admit(client, Some(since), 0),
            _ => Handled::End(End::Answered),
        }
    }

    /// Lets in a client that another node has authenticated.
    fn pass_in(&mut self, account: Account) -> Result<(), (Refusal, String)> {
        // An excess connection is refused only once it is known to come from a node.
        if let Some(excess) = self.excess {
            return Err((Refusal::Full, excess.text().to_owned()));
        }
        let replicated = self.endpoint.broker.replicated_of(&account.vhost);
        let vhost = replicated.and_then(|replicated| replicated.here());
        let not_owner = || (Refusal::NotOwner, "the vhost is not owned here".to_owned());
        // The other node then waits for the next owner.
        if self.listening.is_stopping() {
            return Err((Refusal::NotOwner, "this node stops".to_owned()));
        }
        let vhost = vhost.ok_or_else(not_owner)?;
        let decided = self.endpoint.broker.decide_for_other(&account);
        let decided = decided.map_err(|why| (Refusal::NotAllowed, why))?;
        let is_decided_here = decided.0.is_some();
        let entered = Entered::passed_on(account, vhost, decided);
        let entered = entered.map_err(|why| (Refusal::Malformed, why))?;
        accept(&self.connection);
        if !self.enter(entered) {
            return Err((Refusal::NotOwner, "this node stops".to_owned()));
        }
        if let State::Open(open) = &self.state
            && is_decided_here
        {
            self.endpoint.broker.follow_permissions(open.peer());
        }
        Ok(())
    }

    /// Handles a node's greeting, which describes its client.
    pub(super) fn greet(&mut self, input: &[u8]) -> Handled {
        let AmqpEndpoint {
            cluster, broker, ..
        } = &*self.endpoint;
        let (State::Greeting(greeting), Some(cluster)) = (&mut self.state, cluster) else {
            return Handled::End(End::Answered);
        };
        let mut greeted = greeting.handle(input, cluster, &broker.splices, &self.connection);
        if let Greeted::Client(account, consumed) = greeted {
            match self.pass_in(*account) {
                Ok(()) => return Handled::Done { consumed },
                Err((refusal, why)) => greeted = refuse(&self.connection, refusal, &why),
            }
        }
        match greeted {
            Greeted::Done { consumed } | Greeted::Client(_, consumed) => Handled::Done { consumed },
            Greeted::Wait { wanted } => Handled::Wait {
                consumed: 0,
                wanted,
            },
            Greeted::Ended { why, is_stranger } => {
                match is_stranger {
                    true => report::peer_fault(&self.connection, "no node", &why),
                    false => {
                        let refused = report::Refused::new("splice", &why);
                        report::connection_refused(&self.connection, &refused);
                    }
                }
                self.count_refused();
                Handled::End(End::Answered)
            }
        }
    }
}
