//! A realm as seen by the router's own sessions.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crosstie_auth::wamp::{Answer, Unanswered};
use crosstie_front::end_reason::EndReason;
use crosstie_routing::{
    ClientFeatures, Identity, JoinError, Question, RetainedPage, RetainedQuery, SessionKey, Verdict,
};
use crosstie_spans::OpenSpans;
use crosstie_transport::{Connection, ConnectionLimits};
use crosstie_wamp::{Dict, Message, Payload, SessionId};
use tokio::sync::{oneshot, watch};

use crate::handled::Handled;
use crate::origin;
use crate::payload_encodings::Source;
use crate::peer::Peer;
use crate::question;
use crate::realm::{DETACHED, NotJoined, SharedRealm};
use crate::realms::Realms;
use crate::resident::{NotLetIn, Room, Rooms};
use crate::spans;

impl Rooms for Realms {
    fn room(&self, realm: &str) -> Option<Arc<dyn Room>> {
        self.realm(realm).map(|realm| realm as Arc<dyn Room>)
    }

    fn comings(&self) -> watch::Receiver<()> {
        self.comings.subscribe()
    }

    fn limits(&self) -> Arc<ConnectionLimits> {
        Arc::clone(&self.bounds.limits)
    }
}

impl Room for SharedRealm {
    fn number(&self) -> u32 {
        self.number
    }

    fn let_in(
        &self,
        peer: Peer,
        identity: Identity,
        features: ClientFeatures,
        is_shown: bool,
    ) -> Result<(SessionKey, SessionId), NotLetIn> {
        let told = (None, &Dict::new());
        let mut session = SessionId::default();
        let joined = self.join(peer, identity, features, told, |id| {
            session = id;
            is_shown
        });
        joined.map(|key| (key, session)).map_err(|e| match e {
            NotJoined::Stopped => NotLetIn::NoSuchRealm {
                realm: self.name().to_owned(),
            },
            NotJoined::Detached => NotLetIn::Failed {
                text: DETACHED.to_owned(),
            },
            NotJoined::Refused(JoinError::NoSuchRole { authrole }) => NotLetIn::NoSuchRole {
                realm: self.name().to_owned(),
                role: authrole,
            },
            NotJoined::Refused(e) => NotLetIn::Failed {
                text: e.to_string(),
            },
        })
    }

    fn route(
        &self,
        key: SessionKey,
        message: &Message<'_>,
        connection: &Arc<Connection>,
    ) -> Handled {
        self.handle(Instant::now(), key, message, source(connection, message))
    }

    fn route_judged(
        &self,
        key: SessionKey,
        message: &Message<'_>,
        connection: &Arc<Connection>,
        judged: (Question, Verdict),
    ) -> Handled {
        Self::handle_judged(
            self,
            Instant::now(),
            key,
            message,
            source(connection, message),
            judged,
        )
    }

    fn judge<'f>(
        &'f self,
        key: SessionKey,
        peer: &'f Peer,
        question: &'f Question,
        bytes: &'f [u8],
    ) -> Pin<Box<dyn Future<Output = Verdict> + Send + 'f>> {
        Box::pin(judge(self, key, peer, question, bytes))
    }

    fn retained_number(&self) -> u64 {
        self.realm.lock().retained_number()
    }

    fn retained_page(&self, key: SessionKey, query: &RetainedQuery<'_>) -> (RetainedPage, u32) {
        let now = self.now();
        let mut realm = self.realm.lock();
        let page = realm.retained_page(now, key, query);
        (page, realm.take_steps())
    }

    fn let_out(&self, key: SessionKey) {
        self.leave(key, EndReason::Closed);
    }
}

impl SharedRealm {
    /// Routes a judged message that arrived earlier. A separate function, as the verdict would otherwise be moved
    /// for every message.
    #[cold]
    pub(crate) fn handle_judged(
        &self,
        now: Instant,
        from: SessionKey,
        message: &Message<'_>,
        source: Source<'_>,
        judged: (Question, Verdict),
    ) -> Handled {
        let span = spans::begin(self.name(), message, source.len);
        let now = self.time(now);
        let mut encodings = self.encodings(from, message, source);
        self.enter(&mut encodings, EndReason::Closed, |realm, outbox| {
            let span = span.and_then(|span| spans::keep(&self.spans, source, message, span));
            let outcome = realm.handle_judged(now, from, message, judged, outbox);
            if span.is_some() || outbox.spans.is_some_and(OpenSpans::has_some) {
                self.settle_spans(realm, outbox, (from, message, source), span);
            }
            Handled::of(outcome, realm, outbox)
        })
    }
}

/// A message of the router's own has never been encoded: its length is that of its payload.
fn source<'s>(connection: &'s Arc<Connection>, message: &Message<'_>) -> Source<'s> {
    Source {
        connection,
        bytes: None,
        len: message.payload().map_or(0, Payload::len),
    }
}

async fn judge(
    realm: &SharedRealm,
    key: SessionKey,
    peer: &Peer,
    question: &Question,
    bytes: &[u8],
) -> Verdict {
    if realm.waits_for_itself(key) {
        return question::unavailable(question::WAITS_FOR_ITSELF);
    }
    let mut answer = ask(realm, peer, question, Some(bytes)).await;
    if question::takes_no_options(&answer) {
        answer = ask(realm, peer, question, None).await;
    }
    if let Answer::Unanswered(_) | Answer::Error { .. } = answer {
        realm.log.authorizer_failed(&question.procedure, &answer);
    }
    question::verdict(answer)
}

async fn ask(
    realm: &SharedRealm,
    peer: &Peer,
    question: &Question,
    bytes: Option<&[u8]>,
) -> Answer {
    let lost = |text: &str| {
        Answer::Unanswered(Unanswered::Lost {
            text: text.to_owned(),
        })
    };
    let Some(router) = realm.router() else {
        return lost("the router has gone");
    };
    let transport = origin::transport(peer, false);
    let options = bytes.map(|bytes| question::options(peer, bytes));
    let arguments = question::arguments(question, None, transport, options);
    let (sender, answer) = oneshot::channel();
    let then = move |answer| {
        let _ = sender.send(answer);
    };
    let asked = router
        .authenticators
        .ask(&router, realm.name(), question, &arguments, then);
    let _asked = match asked {
        Ok(asked) => asked,
        Err(unanswered) => return Answer::Unanswered(unanswered),
    };
    crosstie_transport::uncork();
    let timeout = Duration::from_millis(question.timeout_ms);
    match tokio::time::timeout(timeout, answer).await {
        Ok(Ok(answer)) => answer,
        Ok(Err(_)) => lost("its realm was stopped"),
        Err(_) => Answer::Unanswered(Unanswered::Timeout {
            timeout_ms: question.timeout_ms,
        }),
    }
}
