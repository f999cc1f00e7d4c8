//! Trust levels of publications and calls (WAMP advanced profile, "Publication Trust Levels", "Call Trust Levels").
//!
//! A level is given with the permission to publish or to call, and travels as an attribute of the message. It reaches
//! every subscriber and callee, retained, recorded, kept and unacknowledged events, and the realm's other nodes, which
//! trust it as they trust the publisher's identity. A message of a client with a level is refused: receivers would take
//! it for the router's.

use crosstie_wamp::{CallOptions, Dict, MatchPolicy, PublishOptions, TRUSTLEVEL, Value};

use crate::Action;
use crate::authz::{Asker, Subject};
use crate::context::Context;
use crate::fault::{Fault, error};
use crate::identity::SessionIndex;

/// Refuses attributes of a message that contain a level.
pub(crate) fn check_unsaid(passthru: Option<&Dict>) -> Result<(), Fault> {
    let mut said = passthru.into_iter().flatten();
    match said.any(|(key, _)| key == TRUSTLEVEL) {
        false => Ok(()),
        true => Err(said_by_client()),
    }
}

#[cold]
fn said_by_client() -> Fault {
    let text = "a trustlevel is given by the router, and is not said by who publishes or calls";
    Fault::new(error::OPTION_NOT_ALLOWED, text)
}

/// Options that may have a level.
pub(crate) trait Levelled: Clone {
    const ACTION: Action;
    fn passthru(&mut self) -> &mut Option<Box<Dict>>;
}

impl Levelled for PublishOptions {
    const ACTION: Action = Action::Publish;

    fn passthru(&mut self) -> &mut Option<Box<Dict>> {
        &mut self.passthru
    }
}

impl Levelled for CallOptions {
    const ACTION: Action = Action::Call;

    fn passthru(&mut self) -> &mut Option<Box<Dict>> {
        &mut self.passthru
    }
}

impl<H> Context<'_, H> {
    /// The options with the level of the session's role. `None` if it has none, or the session may not do it, which
    /// others check.
    // Out of line: realms whose roles give no levels do not come here.
    #[cold]
    #[inline(never)]
    pub(crate) fn levelled<O: Levelled>(
        &mut self,
        from: SessionIndex,
        options: &O,
        uri: &str,
    ) -> Option<Box<O>> {
        if uri.len() > self.config.limits.uri_bytes_max {
            return None;
        }
        let session = &self.sessions[from];
        let asker = Asker {
            key: self.sessions.key(from),
            id: session.id,
            identity: &session.identity,
        };
        let subject = Subject {
            action: O::ACTION,
            uri,
            match_policy: MatchPolicy::Exact,
        };
        let level = self
            .roles
            .trustlevel(self.now, session.role, &asker, &subject)?;
        let mut options = Box::new(options.clone());
        let passthru = options.passthru().get_or_insert_default();
        passthru.push((TRUSTLEVEL.to_owned(), Value::from(u64::from(level))));
        Some(options)
    }
}
