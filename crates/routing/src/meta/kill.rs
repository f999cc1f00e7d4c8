//! `wamp.session.kill` and the procedures that kill many sessions. These run in turns: a realm may have a million
//! sessions, and other sessions have work to do.

use std::mem;
use std::sync::Arc;

use crosstie_wamp::Value;

use super::arguments::Arguments;
use super::sessions::no_such_session;
use super::{Asked, ids};
use crate::fault::{Fault, error};
use crate::identity::SessionIndex;
use crate::session::Session;
use crate::{LoggedOut, Outbox, Realm, Revocation, SessionKey, Time};

/// Maximum number of kills under way in a realm: each has yet to walk all sessions.
const KILLS_MAX: usize = 64;

/// Places of the table examined per step, and the cost to end one session.
const PLACES_PER_STEP: usize = 8;
const STEPS_PER_KILL: u32 = 16;

/// The reason that a session is told, unless its caller gives one.
const KILLED: &str = "wamp.close.killed";

/// This reason also ends remembered logins.
const LOGOUT: &str = "wamp.close.logout";
const REVOKED: &str = "the principal is gone, or has other credentials";

/// The sessions to be killed.
pub(super) enum Target {
    Authid(String),
    Authrole(String),
    All,
    /// Removed principals; their sessions end without a caller's request.
    Revoked(Box<Revocation>),
}

/// The progress of killing many sessions.
pub(crate) struct Kill {
    target: Target,
    reason: String,
    message: Option<String>,
    /// `None`: no caller waits for the answer.
    asked: Option<Asked>,
    /// The caller.
    spared: Option<SessionKey>,
    place_next: usize,
    count: u64,
    /// Sessions found by their authid, which the caller is told.
    killed: Vec<u64>,
}

impl std::fmt::Debug for Kill {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Kill {{ place_next: {} }}", self.place_next)
    }
}

impl Target {
    fn is<H>(&self, session: &Session<H>) -> bool {
        match self {
            Self::Authid(authid) => *session.identity.authid == **authid,
            Self::Authrole(authrole) => *session.identity.authrole == **authrole,
            Self::All => true,
            Self::Revoked(revocation) => revocation.is_of(session),
        }
    }

    /// The principals principals logins are to be forgotten, if the reason is a logout.
    fn logged_out(&self) -> Option<LoggedOut<'_>> {
        match self {
            Self::Authid(authid) => Some(LoggedOut::Authid(authid)),
            Self::Authrole(authrole) => Some(LoggedOut::Authrole(authrole)),
            Self::All => Some(LoggedOut::All),
            Self::Revoked(_) => None,
        }
    }
}

impl Kill {
    pub(crate) fn of_revoked(revocation: Revocation) -> Self {
        Self {
            target: Target::Revoked(Box::new(revocation)),
            reason: LOGOUT.to_owned(),
            message: Some(REVOKED.to_owned()),
            asked: None,
            spared: None,
            place_next: 0,
            count: 0,
            killed: Vec::new(),
        }
    }
}

impl<H> Realm<H> {
    /// Ends one session, which cannot be the caller's own.
    pub(super) fn kill(
        &mut self,
        from: Option<SessionIndex>,
        arguments: &Arguments,
        out: &mut dyn Outbox<H>,
    ) -> Result<(), Fault> {
        let reason = arguments.optional_reason()?.unwrap_or(KILLED);
        let message = arguments.optional_text("message")?;
        let index = self.session_of(arguments)?;
        if Some(index) == from {
            return Err(no_such_session(self.sessions[index].id.0));
        }
        if reason == LOGOUT {
            let authid = Arc::clone(&self.sessions[index].identity.authid);
            self.log_out(LoggedOut::Authid(&authid), out);
        }
        self.end_with_goodbye(index, reason, message, out);
        Ok(())
    }

    /// Begins to end many sessions; the caller's stays.
    pub(super) fn kill_many(
        &mut self,
        (from, asked): (Option<SessionIndex>, Asked),
        target: Target,
        arguments: &Arguments,
        out: &mut dyn Outbox<H>,
    ) -> Result<(), Fault> {
        let reason = arguments.optional_reason()?.unwrap_or(KILLED).to_owned();
        let message = arguments.optional_text("message")?.map(str::to_owned);
        if self.kills.len() >= KILLS_MAX {
            let text = format!("{KILLS_MAX} calls that kill many sessions are under way");
            return Err(Fault::new(error::REALM_CALLS_MAX, text));
        }
        if reason == LOGOUT
            && let Some(principals) = target.logged_out()
        {
            self.log_out(principals, out);
        }
        self.kills.push_back(Kill {
            target,
            reason,
            message,
            asked: Some(asked),
            spared: from.map(|from| self.sessions.key(from)),
            place_next: 0,
            count: 0,
            killed: Vec::new(),
        });
        Ok(())
    }

    /// Ends some of the sessions to be killed, for that many steps; returns whether there were any.
    pub(crate) fn kill_some(&mut self, now: Time, steps_max: u32, out: &mut dyn Outbox<H>) -> bool {
        let Some(mut killing) = self.kills.pop_front() else {
            return false;
        };
        let mut looked_at = 0;
        let mut steps = 0;
        while killing.place_next < self.sessions.places() && steps <= steps_max {
            let found = self.sessions.at(killing.place_next);
            killing.place_next += 1;
            looked_at += 1;
            steps += u32::from(looked_at % PLACES_PER_STEP == 0);
            let Some((index, session)) = found else {
                continue;
            };
            let is_meant = !session.closing && session.is_welcomed && killing.target.is(session);
            let id = session.id.0;
            let is_caller = Some(self.sessions.key(index)) == killing.spared;
            if is_caller || !is_meant {
                continue;
            }
            if let Target::Revoked(revocation) = &killing.target
                && !revocation.ends_sessions
                && !self.forget_resumable(index)
            {
                continue;
            }
            killing.count += 1;
            if matches!(killing.target, Target::Authid(_)) {
                killing.killed.push(id);
            }
            self.end_with_goodbye(index, &killing.reason, killing.message.as_deref(), out);
            steps += STEPS_PER_KILL;
        }
        self.steps = self.steps.saturating_add(steps.max(1));
        if killing.place_next < self.sessions.places() {
            self.kills.push_front(killing);
        } else {
            self.answer_killing(now, killing, out);
        }
        true
    }

    fn answer_killing(&mut self, now: Time, mut killing: Kill, out: &mut dyn Outbox<H>) {
        let Some(asked) = killing.asked else {
            return;
        };
        let killed = mem::take(&mut killing.killed);
        let value = match killing.target {
            Target::Authid(_) => ids(killed),
            Target::Authrole(_) | Target::All | Target::Revoked(_) => Value::from(killing.count),
        };
        self.answer_meta(now, asked, Ok(value), out);
    }

    pub(crate) fn end_with_goodbye(
        &mut self,
        index: SessionIndex,
        reason: &str,
        message: Option<&str>,
        out: &mut dyn Outbox<H>,
    ) {
        self.begin_leave(index, out);
        out.goodbye(&self.sessions[index].handle, reason, message);
    }
}
