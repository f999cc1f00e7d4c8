//! `wamp.session.count`, `list` and `get`, and the meta events for sessions that join or leave.

use crosstie_wamp::codec::{self, Limits};
use crosstie_wamp::{Dict, Serializer, SessionId, Value};

use super::arguments::Arguments;
use super::ids;
use crate::events::{ON_JOIN, ON_LEAVE};
use crate::fault::{Fault, error};
use crate::identity::SessionIndex;
use crate::session::{Session, Sessions};
use crate::{Identity, Login, OnLeave, Outbox, Realm, SessionKey, Time};

/// Places of a table examined per step, and ids encoded per step.
const PLACES_PER_STEP: usize = 16;
const IDS_PER_STEP: usize = 2;

/// A client may set any `authextra`; a longer one is not kept.
const AUTHEXTRA_BYTES_MAX: usize = 4_096;

impl<H> Realm<H> {
    /// Keeps the `authextra` of a session's authentication, for `wamp.session.get`. If there is one, call this before
    /// [`Realm::welcomed`].
    pub fn keep_authextra(
        &mut self,
        session: SessionKey,
        authextra: &Dict,
        out: &mut dyn Outbox<H>,
    ) {
        let found = self.sessions.find(session);
        let Some(index) = found.filter(|_| self.config.meta_api && !authextra.is_empty()) else {
            return;
        };
        let mut bytes = Vec::new();
        let value = Value::Dict(authextra.clone());
        let written = codec::encode_value(&value, Serializer::Cbor, &mut bytes);
        if written.is_err() || bytes.len() > AUTHEXTRA_BYTES_MAX {
            return;
        }
        let session = &mut self.sessions[index];
        out.hold(&session.handle, bytes.len() as isize);
        session.rare.get_or_insert_default().authextra = bytes.into();
    }

    /// Publishes `on_join`. To be called when a session that joined has been sent its WELCOME. A session that leaves
    /// before is never announced.
    pub fn welcomed(&mut self, now: Time, session: SessionKey, out: &mut dyn Outbox<H>) {
        let Some(index) = self.sessions.find(session) else {
            return;
        };
        self.sessions.welcome(index);
        if !self.events.is_watched() {
            return;
        }
        let details = describe(&self.config.name, &self.sessions[index], out);
        self.events.add(ON_JOIN, vec![Value::Dict(details)]);
        self.settle(now, out);
    }

    /// Publishes `on_leave` for a session that has left and holds nothing any more.
    pub(crate) fn tell_left(&mut self, session: &Session<H>) {
        if !session.is_welcomed || !self.events.is_watched() {
            return;
        }
        let (authid, authrole) = (&session.identity.authid, &session.identity.authrole);
        let mut arguments = vec![Value::from(session.id.0)];
        if self.config.on_leave == OnLeave::Specified {
            arguments.extend([Value::from(&**authid), Value::from(&**authrole)]);
        }
        self.events.add(ON_LEAVE, arguments);
    }

    pub(super) fn count_sessions(&mut self, arguments: &Arguments) -> Result<Value, Fault> {
        let count = match arguments.texts("filter_authroles")? {
            None => self.sessions.welcomed(),
            Some(names) if self.sessions.welcomed() == self.sessions.len() => {
                self.roles.sessions_of(&names)
            }
            Some(names) => {
                self.spend(self.sessions.places() / PLACES_PER_STEP);
                self.listed(Some(&names)).count()
            }
        };
        Ok(Value::from(count as u64))
    }

    /// Lists sessions in the order of their places in the table, which new sessions fill anywhere.
    pub(super) fn list_sessions(&mut self, arguments: &Arguments) -> Result<Value, Fault> {
        let names = arguments.texts("filter_authroles")?;
        let listed = self.listed(names.as_deref());
        let part = arguments.page()?.of(listed.map(|session| session.id.0))?;
        self.spend(self.sessions.places() / PLACES_PER_STEP + part.len() / IDS_PER_STEP);
        Ok(ids(part))
    }

    /// The sessions visible to the meta API, or those among them with one of these roles.
    fn listed<'r>(&'r self, names: Option<&'r [&str]>) -> impl Iterator<Item = &'r Session<H>> {
        let is_meant = move |session: &&Session<H>| {
            let role = &*session.identity.authrole;
            session.is_welcomed && names.is_none_or(|names| names.contains(&role))
        };
        self.sessions
            .joined()
            .map(|(_, session)| session)
            .filter(is_meant)
    }

    pub(super) fn get_session(
        &self,
        arguments: &Arguments,
        out: &dyn Outbox<H>,
    ) -> Result<Value, Fault> {
        let index = self.session_of(arguments)?;
        let details = describe(&self.config.name, &self.sessions[index], out);
        Ok(Value::Dict(details))
    }

    /// The session in the arguments.
    pub(super) fn session_of(&self, arguments: &Arguments) -> Result<SessionIndex, Fault> {
        find_session(&self.sessions, arguments.id("session_id")?)
    }

    fn spend(&mut self, steps: usize) {
        self.steps = self.steps.saturating_add(steps as u32);
    }
}

/// The session with that id, if it is visible to the meta API.
pub(super) fn find_session<H>(sessions: &Sessions<H>, id: u64) -> Result<SessionIndex, Fault> {
    let found = sessions.find_id(SessionId(id));
    // A session that is being closed for a full queue has left for everyone else.
    let is_seen = |session: &Session<H>| session.is_welcomed && !session.closing;
    let found = found.filter(|index| is_seen(&sessions[*index]));
    found.ok_or_else(|| no_such_session(id))
}

/// In Crossbar.io's words.
pub(super) fn no_such_session(id: u64) -> Fault {
    let text = format!("no session with ID {id} exists on this router");
    Fault::new(error::NO_SUCH_SESSION, text)
}

/// The public details of a session: the specification's fields, then Crossbar.io's.
pub(super) fn describe<H>(realm: &str, session: &Session<H>, out: &dyn Outbox<H>) -> Dict {
    let Identity { authid, login } = &session.identity;
    let Login {
        authrole,
        authmethod,
        authprovider,
    } = &**login;
    let mut details = vec![
        ("session".to_owned(), Value::from(session.id.0)),
        ("authid".to_owned(), Value::from(&**authid)),
        ("authrole".to_owned(), Value::from(&**authrole)),
        ("authmethod".to_owned(), Value::from(&**authmethod)),
        ("authprovider".to_owned(), Value::from(&**authprovider)),
        ("realm".to_owned(), Value::from(realm)),
        ("authextra".to_owned(), authextra(session)),
    ];
    out.describe(&session.handle, &mut details);
    let rare = session.rare.as_deref();
    let resumable = rare.and_then(|rare| rare.resumable.as_deref());
    let is_resumed = resumable.is_some_and(|resumable| resumable.is_resumed);
    details.extend([
        ("resumed".to_owned(), Value::Bool(is_resumed)),
        ("resumable".to_owned(), Value::Bool(resumable.is_some())),
        // The token is for the session's client alone.
        ("resume_token".to_owned(), Value::Null),
    ]);
    details
}

fn authextra<H>(session: &Session<H>) -> Value {
    let kept = session.rare.as_deref().map(|rare| &*rare.authextra);
    let read = |bytes| codec::decode_value(Serializer::Cbor, bytes, &Limits { depth_max: 512 });
    let value = kept.filter(|bytes| !bytes.is_empty()).map(read);
    value.and_then(Result::ok).unwrap_or(Value::Null)
}
