//! The state that broker and dealer borrow for one input.

use crosstie_wamp::uri::UriCheck;
use crosstie_wamp::{
    Dict, MatchPolicy, Message, MessageType, Payload, RequestId, Serializer, Unsupported, uri,
};

use crate::across::Crossing;
use crate::authz::{Asker, Judged, Roles, Subject};
use crate::events::{MetaEvents, is_under};
use crate::fault::{Fault, error};
use crate::features::is_passthru;
use crate::identity::SessionIndex;
use crate::party::Party;
use crate::random::Random;
use crate::session::{Session, Sessions};
use crate::wildcard::WILDCARD_COMPONENTS_MAX;
use crate::{
    Action, ClientFeature, CloseReason, Denial, Disclose, DiscloseMe, Note, Outbox, RealmConfig,
    Refused, RoleLimit, Time, Violation,
};

/// The parts of the realm that broker and dealer share.
pub(crate) struct Context<'r, H> {
    pub(crate) now: Time,
    pub(crate) config: &'r RealmConfig,
    pub(crate) roles: &'r mut Roles,
    pub(crate) sessions: &'r mut Sessions<H>,
    pub(crate) random: &'r mut Random,
    pub(crate) events: &'r mut MetaEvents,
    pub(crate) out: &'r mut dyn Outbox<H>,
    /// Cost of the input beside its base cost (see [`crate::Realm::take_steps`]).
    pub(crate) steps: &'r mut u32,
}

/// A bound of a session, and its origin.
pub(crate) struct RoleBound {
    pub(crate) value: usize,
    of_role: Option<RoleLimit>,
}

impl RoleBound {
    /// The fault of an exhausted bound, which `uri` names; counted if the bound is a role's.
    #[cold]
    pub(crate) fn reached<H>(
        &self,
        context: &mut Context<'_, H>,
        uri: &'static str,
        what: &str,
    ) -> Fault {
        if let Some(limit) = self.of_role {
            context.out.note(Note::RoleLimit(limit), 1);
        }
        Fault::new(uri, format!("a session may have {} {what}", self.value))
    }
}

impl<H> Context<'_, H> {
    /// The smaller of the bound of the session's role or listener and the realm's.
    pub(crate) fn role_bound(
        &self,
        from: SessionIndex,
        limit: RoleLimit,
        realm_max: usize,
    ) -> RoleBound {
        let session = &self.sessions[from];
        let limits = session.limits(self.roles.limits(session.role));
        let role_max = match limit {
            RoleLimit::Subscriptions => limits.subscriptions_max,
            RoleLimit::Registrations => limits.registrations_max,
            RoleLimit::Calls => limits.calls_max,
        };
        let role_max = role_max.filter(|max| *max < realm_max);
        RoleBound {
            value: role_max.unwrap_or(realm_max),
            of_role: role_max.map(|_| limit),
        }
    }

    /// Checks the id of a new request.
    pub(crate) fn take_request(
        &mut self,
        from: SessionIndex,
        request: RequestId,
    ) -> Result<(), Violation> {
        self.sessions[from].take_request(request, self.config.request_id_check)
    }

    /// Refuses payload passthru mode from a session that did not announce it (WAMP advanced profile, "Payload Passthru
    /// Mode").
    pub(crate) fn check_passthru(
        &self,
        from: SessionIndex,
        needed: ClientFeature,
        message: &Message<'_>,
        attributes: &Dict,
    ) -> Result<(), Violation> {
        if !is_passthru(attributes) || self.sessions[from].features.has(needed) {
            return Ok(());
        }
        let (role, feature) = needed.name();
        Err(Violation::new(format!(
            "{} has ppt_scheme, but {role}.{feature} was not announced",
            message.kind().name()
        )))
    }

    /// Checks a whole topic or procedure.
    pub(crate) fn check_uri(&self, action: Action, uri: &str) -> Result<(), Fault> {
        self.check_length(uri)?;
        match uri::check(uri, self.config.uri_check) {
            None => Ok(()),
            Some(reason) => Err(self.invalid_uri(action, uri, reason)),
        }
    }

    /// Checks a topic, procedure or pattern to be subscribed to or registered.
    pub(crate) fn check_pattern(
        &self,
        action: Action,
        pattern: &str,
        policy: MatchPolicy,
    ) -> Result<(), Fault> {
        self.check_length(pattern)?;
        if policy == MatchPolicy::Wildcard
            && pattern.split('.').nth(WILDCARD_COMPONENTS_MAX).is_some()
        {
            return Err(Fault::new(
                error::INVALID_URI,
                format!("a wildcard pattern may have {WILDCARD_COMPONENTS_MAX} components"),
            ));
        }
        match uri::check_pattern(pattern, policy, self.config.uri_check) {
            None => Ok(()),
            Some(reason) => Err(self.invalid_uri(action, pattern, reason)),
        }
    }

    /// Checks the permissions of the session's role; returns whether they disclose the session.
    #[inline(always)]
    pub(crate) fn authorize(
        &mut self,
        from: SessionIndex,
        action: Action,
        uri: &str,
        policy: MatchPolicy,
    ) -> Result<Disclose, Fault> {
        let session = &self.sessions[from];
        if let Some(disclose) = self.roles.judge(session.role, action, uri, policy) {
            return Ok(disclose);
        }
        let subject = Subject {
            action,
            uri,
            match_policy: policy,
        };
        self.authorize_otherwise(from, &subject)
    }

    /// The same for an action within another message. Out of line, so that it does not change how the common path
    /// compiles.
    #[cold]
    #[inline(never)]
    pub(crate) fn authorize_besides(
        &mut self,
        from: SessionIndex,
        subject: &Subject<'_>,
    ) -> Result<Disclose, Fault> {
        let Subject {
            action,
            uri,
            match_policy,
        } = *subject;
        let role = self.sessions[from].role;
        match self.roles.judge(role, action, uri, match_policy) {
            Some(disclose) => Ok(disclose),
            None => self.authorize_otherwise(from, subject),
        }
    }

    /// The same for an action that no permission allows.
    #[inline(never)]
    fn authorize_otherwise(
        &mut self,
        from: SessionIndex,
        subject: &Subject<'_>,
    ) -> Result<Disclose, Fault> {
        let session = &self.sessions[from];
        let asker = Asker {
            key: self.sessions.key(from),
            id: session.id,
            identity: &session.identity,
        };
        let before = self.roles.decision_bytes();
        let judged = self
            .roles
            .judge_otherwise(self.now, session.role, &asker, subject);
        if self.roles.decision_bytes() != before {
            self.out.keep(self.roles.decision_bytes());
        }
        let Subject { action, uri, .. } = *subject;
        let (cause, fault) = match judged {
            Judged::Allowed(disclose) => return Ok(disclose),
            Judged::Refused(cause) => (cause, self.not_authorized(from, action, uri)),
            Judged::Failed { cause, text } => (cause, authorization_failed(subject, &text)),
            // A testament of a session that has left was allowed when it was added.
            Judged::Unknown(_) if !session.is_in() => return Ok(Disclose::default()),
            Judged::Unknown(question) => {
                self.out.ask(&session.handle, *question);
                self.sessions[from].give_back_request(self.config.request_id_check);
                return Err(Fault::ASKED);
            }
        };
        self.out.denied(&Denial {
            handle: &self.sessions[from].handle,
            session: self.sessions[from].id,
            identity: &self.sessions[from].identity,
            action,
            uri,
            cause,
        });
        Err(fault)
    }

    /// Refuses a request with an unsupported option.
    pub(crate) fn check_options(&self, unsupported: Option<Unsupported>) -> Result<(), Fault> {
        unsupported.map_or(Ok(()), |option| {
            let text = format!("this router does not have the option {}", option.name());
            Err(Fault::new(error::OPTION_NOT_ALLOWED, text))
        })
    }

    /// Whether the sender is disclosed to the receivers of its message.
    pub(crate) fn disclose(
        &self,
        by_permission: bool,
        disclose_me: Option<bool>,
    ) -> Result<bool, Fault> {
        if by_permission || disclose_me != Some(true) {
            return Ok(by_permission);
        }
        match self.config.disclose_me {
            DiscloseMe::Allow => Ok(true),
            DiscloseMe::Refuse => Err(Fault::new(
                error::DISCLOSE_ME_DISALLOWED,
                "this realm does not disclose sessions at their own wish",
            )),
        }
    }

    /// In Crossbar.io's words, which programs may compare.
    #[cold]
    fn not_authorized(&self, from: SessionIndex, action: Action, uri: &str) -> Fault {
        let session = &self.sessions[from];
        let (authid, authrole) = (&session.identity.authid, &session.identity.authrole);
        let text = match action {
            Action::Publish => format!("session not authorized to publish to topic '{uri}'"),
            Action::Subscribe | Action::Register | Action::Call => format!(
                "session (session_id={}, authid=\"{authid}\", authrole=\"{authrole}\") is not \
                 authorized to {} \"{uri}\" on realm \"{}\"",
                session.id,
                action.phrase(),
                self.config.name,
            ),
        };
        Fault::new(error::NOT_AUTHORIZED, text)
    }

    /// Begins with Crossbar.io's words, and adds the reason.
    #[cold]
    fn invalid_uri(&self, action: Action, uri: &str, reason: &str) -> Fault {
        let strict = match self.config.uri_check {
            UriCheck::Strict => "True",
            UriCheck::Loose => "False",
        };
        let checking = format!("(URI strict checking {strict})");
        let text = match action {
            Action::Subscribe => format!("subscribe for invalid topic URI '{uri}'"),
            Action::Publish => format!("publish with invalid topic URI '{uri}' {checking}"),
            Action::Register => format!("register for invalid procedure URI '{uri}' {checking}"),
            Action::Call => format!("call with invalid procedure URI '{uri}' {checking}"),
        };
        Fault::new(error::INVALID_URI, format!("{text}: {reason}"))
    }

    fn check_length(&self, uri: &str) -> Result<(), Fault> {
        let uri_bytes_max = self.config.limits.uri_bytes_max;
        if uri.len() <= uri_bytes_max {
            return Ok(());
        }
        Err(Fault::new(
            error::INVALID_URI,
            format!(
                "a URI may have {uri_bytes_max} bytes; this one has {}",
                uri.len()
            ),
        ))
    }

    /// The time of day, in microseconds since 1970.
    pub(crate) fn unix_us(&self) -> u64 {
        self.events.epoch_us().saturating_add(self.now.0)
    }

    /// Notes that a callee has answered a call of that age.
    #[inline]
    pub(crate) fn note_answered(&mut self, caller: Party, since: Time) {
        if let Some(caller) = caller.session() {
            let session = &self.sessions[caller];
            // The role of a session that leaves may be removed, and its slot reused.
            if session.is_in() {
                self.roles
                    .note_answered(session.role, self.now.0.saturating_sub(since.0));
            }
        }
    }

    /// Adds to the cost of the input.
    pub(crate) fn spend(&mut self, steps: u32) {
        *self.steps = self.steps.saturating_add(steps);
    }

    /// Changes the bytes held for a session or node.
    pub(crate) fn hold(&mut self, party: impl Into<Party>, delta: isize) {
        match party.into().session() {
            Some(session) => self.out.hold(&self.sessions[session].handle, delta),
            None => self.out.hold_across(delta),
        }
    }

    /// Whether a session that holds `has` of the realm's `all`, bounded by `all_max`, may have one more. The last
    /// quarter is for sessions with less than their share.
    pub(crate) fn may_have_more(&self, has: usize, all: usize, all_max: usize) -> bool {
        all < all_max - all_max / 4 || (all < all_max && has < all_max / self.sessions.len().max(1))
    }

    /// Sends a message whose loss does not harm the receiver; the caller handles the refusal.
    pub(crate) fn send(&mut self, to: SessionIndex, message: &Message<'_>) -> Result<(), Refused> {
        deliver(self.out, &self.sessions[to], message)
    }

    /// Sends an answer that the receiver waits for. If its queue is full, the session is closed: without the answer it
    /// would wait for ever.
    #[inline]
    pub(crate) fn reply(&mut self, to: SessionIndex, message: &Message<'_>) -> Result<(), Refused> {
        let outcome = self.send(to, message);
        if outcome == Err(Refused::Full) {
            self.close_untold(to);
        }
        outcome
    }

    #[cold]
    #[inline(never)]
    fn close_untold(&mut self, session: SessionIndex) {
        if self.sessions.doom(session) {
            self.out
                .close(&self.sessions[session].handle, CloseReason::ResultRefused);
        }
    }

    /// Sends an answer to a caller on this node or another one.
    #[inline]
    pub(crate) fn answer(&mut self, to: Party, message: &Message<'_>) -> Result<(), Refused> {
        match to.session() {
            Some(session) => self.reply(session, message),
            None => self.answer_across(to, message),
        }
    }

    #[cold]
    #[inline(never)]
    fn answer_across(&mut self, to: Party, message: &Message<'_>) -> Result<(), Refused> {
        let crossing = match message {
            Message::Result { .. } => Crossing::Result(message),
            _ => Crossing::Error(message),
        };
        self.cross(to, &crossing)
    }

    /// Sends a message to another node.
    pub(crate) fn cross(&mut self, to: Party, crossing: &Crossing<'_>) -> Result<(), Refused> {
        let neighbours = &self.sessions.neighbours;
        let neighbour = to.neighbour().map(|index| &neighbours[index]);
        match neighbour.filter(|neighbour| !neighbour.closing) {
            Some(neighbour) => self.out.cross(neighbour.key, crossing),
            None => Err(Refused::Gone),
        }
    }

    /// Answers a request with an ERROR.
    pub(crate) fn refuse(
        &mut self,
        to: impl Into<Party>,
        request_type: MessageType,
        request: RequestId,
        fault: &Fault,
    ) {
        if fault.is_asked() {
            return;
        }
        let arguments = fault.arguments();
        let error = Message::Error {
            request_type,
            request,
            details: Vec::new(),
            error: fault.uri.into(),
            payload: Payload::new(Serializer::Json, arguments.as_bytes(), &[]),
        };
        // `Full` closes the session and `Gone` means it is closed. This text fits every serializer, and a peer with a
        // shorter message limit cannot be told anything.
        let _ = self.answer(to.into(), &error);
    }
}

/// The fault of an authorizer that has not decided, in Crossbar.io's words.
#[cold]
fn authorization_failed(subject: &Subject<'_>, text: &str) -> Fault {
    let (phrase, uri) = (subject.action.failure_phrase(), subject.uri);
    let text = format!("failed to authorize session for {phrase} '{uri}': {text}");
    Fault::new(error::AUTHORIZATION_FAILED, text)
}

/// Sends to one session, unless it has been closed. A function, so that the message may borrow from other sessions.
pub(crate) fn deliver<H>(
    out: &mut dyn Outbox<H>,
    to: &Session<H>,
    message: &Message<'_>,
) -> Result<(), Refused> {
    if to.closing {
        return Err(Refused::Gone);
    }
    out.send(&to.handle, message)
}

/// The fault of a session that may not have one more of a bounded resource.
#[cold]
pub(crate) fn none_left(uri: &'static str, what: &str, all_max: usize) -> Fault {
    let text = format!(
        "the realm has nearly or all of its {all_max} {what}, and this session has its share of them"
    );
    Fault::new(uri, text)
}

/// Whether the first component of a URI is `wamp`, which is reserved for the router (WAMP basic profile, "Reserved
/// URIs").
#[inline(always)]
pub(crate) fn is_reserved(uri: &str) -> bool {
    is_under("wamp", uri)
}

/// Whether only the router serves a procedure: one under `wamp`, or another of this router's own.
pub(crate) fn is_own_procedure(uri: &str) -> bool {
    is_reserved(uri) || is_under("crosstie.authorizer", uri)
}

/// The fault of registering or publishing under a reserved URI, in Crossbar.io's words.
pub(crate) fn reserved_uri(action: Action, uri: &str) -> Fault {
    let text = match action {
        Action::Register => format!("register for restricted procedure URI '{uri}')"),
        _ => format!("publish with restricted topic URI '{uri}'"),
    };
    Fault::new(error::INVALID_URI, text)
}
