//! A connected client logs in again, by AUTH. The realm learns nothing of it: the client has to be the same user, in the
//! same role.

use std::sync::{Arc, Weak};
use std::time::Duration;

use crosstie_front::end_reason::EndReason;
use crosstie_front::report;
use crosstie_mqtt::{Auth, ReasonCode};
use tokio::task::AbortHandle;

use crate::client::Client;
use crate::conversation::End;
use crate::ground::Ground;
use crate::open::{Handled, Open, Pending};
use crate::scram::{self, Exchange, First};
use crate::talk::{LoggedIn, Proving, Talk};

/// A login that goes on beside a client's packets.
pub(crate) struct Reauthentication {
    talk: Talk,
    exchange: Exchange,
    /// Ends a client that does not finish it: it holds a place among pending handshakes.
    deadline: AbortHandle,
}

impl Drop for Reauthentication {
    fn drop(&mut self) {
        self.deadline.abort();
        self.talk.leave(EndReason::Closed);
    }
}

impl Reauthentication {
    fn begin(client: &Arc<Client>, first: &First, ground: &Ground) -> (Box<Self>, LoggedIn) {
        let entrance = &ground.entrance;
        let within = entrance.listening.handshake_timeout;
        let deadline = entrance
            .realms
            .door
            .keeper()
            .spawn(end_after(within, Arc::downgrade(client)));
        let who = (client.client_id(), first);
        let twin = client.twin(&entrance.realms.bounds.limits);
        let (talk, flow) = Talk::begin_check(entrance, &ground.endpoint, twin, who);
        let mut own = Box::new(Self {
            talk,
            exchange: first.exchange(),
            deadline: deadline.abort_handle(),
        });
        let Self { talk, exchange, .. } = &mut *own;
        let logged_in = talk.log_in(flow, Proving::Exchange(exchange));
        (own, logged_in)
    }

    /// Whether an outcome is due before the next packet.
    pub(crate) fn waits(&self) -> bool {
        self.talk.client.mailbox.is_reading_paused()
    }
}

async fn end_after(within: Duration, client: Weak<Client>) {
    tokio::time::sleep(within).await;
    if let Some(client) = client.upgrade() {
        client.end(ReasonCode::NotAuthorized);
        crosstie_transport::uncork();
        client.connection.close();
    }
}

impl Open {
    /// Handles AUTH.
    pub(crate) fn reauthenticate(
        &mut self,
        auth: &Auth<'_>,
        ground: &Ground,
    ) -> Result<Handled, End> {
        let data = auth.properties.authentication_data().unwrap_or_default();
        let is_again = matches!(self.pending.take().as_deref(), Some(Pending::Auth));
        let former = self.enhanced.as_mut().and_then(|one| one.login.take());
        let (login, logged_in) = match former {
            Some(mut login) if is_again => {
                let Reauthentication { talk, exchange, .. } = &mut *login;
                let logged_in = talk.go_on_logging_in(Proving::Exchange(exchange));
                (login, logged_in)
            }
            Some(mut login) if self.may_continue(auth, &login) => {
                let Reauthentication { talk, exchange, .. } = &mut *login;
                let logged_in = match exchange.prove(data) {
                    Some(proof) => talk.prove(proof, exchange),
                    None => LoggedIn::Refused(ReasonCode::NotAuthorized),
                };
                (login, logged_in)
            }
            None if self.may_begin(auth) => {
                let first = First::parse(data);
                let first = first.ok_or(End::Reason(ReasonCode::NotAuthorized))?;
                Reauthentication::begin(self.client(), &first, ground)
            }
            _ => return Err(self.unexpected_auth(auth)),
        };
        let enhanced = self.enhanced.as_ref();
        let packet_bytes_max = enhanced.map_or(0, |one| one.packet_bytes_max);
        match logged_in {
            LoggedIn::Waits => {
                self.pending = Some(Box::new(Pending::Auth));
                self.keep(login);
                return Ok(Handled::Waits);
            }
            LoggedIn::Challenged(data) => {
                let reason = ReasonCode::ContinueAuthentication;
                scram::send_auth(self.client(), reason, &data, packet_bytes_max)?;
                self.keep(login);
            }
            LoggedIn::As(owner, realm) if realm == ground.endpoint.options.realm() => {
                if !ground.space.is_user(self.client().client_id(), &owner) {
                    return Err(End::Reason(ReasonCode::NotAuthorized));
                }
                let verifier = login.exchange.verifier().unwrap_or_default();
                let reason = ReasonCode::Success;
                scram::send_auth(self.client(), reason, verifier, packet_bytes_max)?;
            }
            LoggedIn::TurnedBack if ground.entrance.is_stopping() => return Err(End::Silent),
            // A limit of handshakes or of failures.
            LoggedIn::TurnedBack => return Err(End::Reason(ReasonCode::ServerBusy)),
            LoggedIn::As(..) | LoggedIn::Refused(_) => {
                return Err(End::Reason(ReasonCode::NotAuthorized));
            }
        }
        Ok(Handled::Done(0))
    }

    fn keep(&mut self, login: Box<Reauthentication>) {
        if let Some(enhanced) = &mut self.enhanced {
            enhanced.login = Some(login);
        }
    }

    fn may_begin(&self, auth: &Auth<'_>) -> bool {
        let is_begin = auth.reason == ReasonCode::Reauthenticate;
        self.enhanced.is_some() && is_begin && scram::is_method(auth.properties)
    }

    fn may_continue(&self, auth: &Auth<'_>, login: &Reauthentication) -> bool {
        let is_continuation = auth.reason == ReasonCode::ContinueAuthentication;
        is_continuation && login.exchange.is_asked() && scram::is_method(auth.properties)
    }

    /// An AUTH that nothing has asked for, or with another method than CONNECT.
    fn unexpected_auth(&self, auth: &Auth<'_>) -> End {
        let reason = match self.enhanced.is_some() && !scram::is_method(auth.properties) {
            true => ReasonCode::BadAuthenticationMethod,
            false => ReasonCode::ProtocolError,
        };
        report::peer_fault(&self.client().connection, reason.name(), "AUTH");
        End::Reason(reason)
    }
}
