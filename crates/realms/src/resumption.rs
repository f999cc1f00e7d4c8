//! Sessions that outlive their connections: the announcement in WELCOME, the return of a client, and the handling of a
//! session whose connection has ended.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use crosstie_auth::wamp::{ResumeToken, Resumption};
use crosstie_front::counters::{Counter, counters};
use crosstie_front::end_reason::EndReason;
use crosstie_routing::{ClientFeatures, Identity, SessionKey};
use crosstie_wamp::codec::Detail;
use crosstie_wamp::{Dict, Payload, SessionId, Value};

use crate::payload_encodings::PayloadEncodings;
use crate::peer::Peer;
use crate::pending_handshake::Wishes;
use crate::realm::SharedRealm;
use crate::session::{Session, State};
use crate::welcome::Welcome;

/// The resumption details in WELCOME.
#[derive(Default)]
pub(super) struct Told {
    is_resumed: bool,
    /// The token that resumes the session, if it is resumable.
    pub(super) token: Option<ResumeToken>,
    text: String,
}

static YES: Value = Value::Bool(true);
static NO: Value = Value::Bool(false);

impl Told {
    /// A new session is resumable if the system provides random bytes.
    pub(super) fn new_token() -> Self {
        let mut chance = [0; ResumeToken::BYTES];
        match getrandom::fill(&mut chance) {
            Ok(()) => Self::with(ResumeToken::new(chance), false),
            Err(_) => Self::default(),
        }
    }

    fn with(token: ResumeToken, is_resumed: bool) -> Self {
        Self {
            is_resumed,
            token: Some(token),
            text: token.text(),
        }
    }

    pub(super) fn details(&self) -> impl Iterator<Item = (&'static str, Detail<'_>)> {
        let said = |is| Detail::Value(if is { &YES } else { &NO });
        let token = self
            .token
            .map(|_| ("resume_token", Detail::Text(&self.text)));
        [
            ("resumed", said(self.is_resumed)),
            ("resumable", said(self.token.is_some())),
        ]
        .into_iter()
        .chain(token)
    }
}

impl Session {
    /// Resumes a session, which is the `Err`; otherwise returns the details for a new one, if the client requested
    /// some.
    pub(super) fn resume_or_tell(
        &mut self,
        realm: &Arc<SharedRealm>,
        identity: &Identity,
        (features, resumption): Wishes,
        told: (&Dict, Option<(&str, &str)>),
    ) -> Result<Option<Told>, ControlFlow<()>> {
        let Some(asked) = resumption else {
            return Ok(None);
        };
        if asked.session.is_some()
            && let Some(flow) = self.resume(realm, identity, (features, &asked), told)
        {
            return Err(flow);
        }
        Ok(Some(match asked.is_resumable && realm.is_resumable {
            true => Told::new_token(),
            false => Told::default(),
        }))
    }

    /// Attaches a session to this connection.
    pub(super) fn begin(
        &mut self,
        (realm, key): (&Arc<SharedRealm>, SessionKey),
        identity: &Identity,
        told: Option<&Told>,
    ) {
        if let Some(token) = told.and_then(|told| told.token) {
            realm.keep_resumable(key, token);
        }
        self.begin_limits(realm, key);
        if let Some(authids) = &self.entrance.authids {
            authids.keep((realm.number, key), Arc::clone(&identity.authid));
        }
    }

    /// Resumes a session if it belongs to the client; `None` for a new session. The reason is not disclosed.
    fn resume(
        &mut self,
        realm: &Arc<SharedRealm>,
        identity: &Identity,
        (features, asked): (ClientFeatures, &Resumption),
        (extra, own): (&Dict, Option<(&str, &str)>),
    ) -> Option<ControlFlow<()>> {
        let shown = asked
            .token
            .unwrap_or_else(|| ResumeToken::new([0; ResumeToken::BYTES]));
        let told = Told::with(shown, true);
        let session = asked.session.filter(|_| asked.token.is_some());
        let mut welcomed = Ok(());
        let welcome = |session, identity: &Identity| {
            let welcome = Welcome {
                session,
                realm,
                identity,
                extra,
                own,
                resumption: Some(&told),
            };
            welcomed = self.welcome(&welcome);
            welcomed.is_ok()
        };
        let key = realm.resume(
            self.peer.clone(),
            (identity, features),
            (session.unwrap_or_default(), shown),
            welcome,
        )?;
        let session = session.unwrap_or_default();
        realm.log.session_joined(&self.peer, session, identity);
        counters().count(Counter::SessionsResumed);
        self.begin((realm, key), identity, None);
        if realm.asks_about(&identity.authrole) {
            self.keep_extra(realm, key, extra.clone());
        }
        self.state = State::Joined {
            realm: Arc::clone(realm),
            key,
        };
        self.refusals = 0;
        Some(self.conclude(welcomed))
    }
}

impl SharedRealm {
    fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::Relaxed)
    }

    /// Makes a session that has just joined resumable.
    pub(super) fn keep_resumable(&self, session: SessionKey, token: ResumeToken) {
        self.realm.lock().keep_resumable(session, token.bytes());
    }

    /// Moves a session to another connection if the token matches. `welcome` queues WELCOME, and returns whether it
    /// could.
    fn resume(
        &self,
        peer: Peer,
        (identity, features): (&Identity, ClientFeatures),
        (id, token): (SessionId, ResumeToken),
        welcome: impl FnOnce(SessionId, &Identity) -> bool,
    ) -> Option<SessionKey> {
        let now = self.now();
        let mut encodings = PayloadEncodings::new(Payload::EMPTY);
        self.enter(&mut encodings, EndReason::Closed, |realm, outbox| {
            if self.is_stopped() {
                return None;
            }
            let is_token = |kept: &[u8; ResumeToken::BYTES]| token.is(kept);
            let resumed = realm.resume(id, (identity, features), peer, is_token, outbox);
            let (key, identity) = resumed?;
            if welcome(id, &identity) {
                realm.deliver_again(now, key, outbox);
            }
            Some(key)
        })
    }

    /// A session's connection has ended without the client's GOODBYE. Returns whether the session waits for its return.
    pub(super) fn detach(&self, session: SessionKey, why: EndReason) -> bool {
        let is_cut = matches!(
            why,
            EndReason::Closed | EndReason::Lost | EndReason::Silent | EndReason::Stalled
        );
        if !self.is_resumable || !is_cut || self.is_stopped() {
            return false;
        }
        let now = self.now();
        let mut encodings = PayloadEncodings::new(Payload::EMPTY);
        self.enter(&mut encodings, why, |realm, outbox| {
            realm.detach(now, session, outbox)
        })
    }
}
