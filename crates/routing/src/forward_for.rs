//! Checks `forward_for`, in which links between realms name the origin of a forwarded publication or call.
//!
//! Every session may set it, as in Crossbar.io, because a link is an ordinary client to the other router. Its content
//! is then as trustworthy as the session. An operator may restrict it to the roles of links.

use crosstie_wamp::{Dict, FORWARD_FOR, Unsupported, YieldOptions};

use crate::context::Context;
use crate::fault::{Fault, error};
use crate::identity::SessionIndex;
use crate::trustlevels;

impl<H> Context<'_, H> {
    /// Checks the attributes of a publication, a testament or a call.
    pub(crate) fn check_said(&self, from: SessionIndex, passthru: &Dict) -> Result<(), Fault> {
        trustlevels::check_unsaid(Some(passthru))?;
        if has_forward_for(passthru) && !self.may_forward(from) {
            return Err(not_for_others());
        }
        Ok(())
    }

    /// Checks the attributes of a subscription or registration: whether it may use `forward_for`, and has only
    /// supported options.
    pub(crate) fn check_asked(
        &self,
        from: SessionIndex,
        is_forwarded: bool,
        unsupported: Option<Unsupported>,
    ) -> Result<(), Fault> {
        if is_forwarded && !self.may_forward(from) {
            return Err(not_for_others());
        }
        self.check_options(unsupported)
    }

    /// A result cannot be refused: `forward_for` is removed if its callee may not set it. `None` if the attribute is
    /// absent.
    pub(crate) fn said_in_result(
        &self,
        from: SessionIndex,
        options: &YieldOptions,
    ) -> Option<Box<YieldOptions>> {
        let passthru = options.passthru.as_deref()?;
        if !has_forward_for(passthru) || self.may_forward(from) {
            return None;
        }
        let mut options = Box::new(options.clone());
        if let Some(passthru) = options.passthru.as_deref_mut() {
            passthru.retain(|(key, _)| key != FORWARD_FOR);
        }
        Some(options)
    }

    fn may_forward(&self, from: SessionIndex) -> bool {
        self.roles.may_forward(self.sessions[from].role)
    }
}

fn has_forward_for(passthru: &Dict) -> bool {
    passthru.iter().any(|(key, _)| key == FORWARD_FOR)
}

#[cold]
fn not_for_others() -> Fault {
    let text = "forward_for is for those who carry what others say, and this role is not to";
    Fault::new(error::OPTION_NOT_ALLOWED, text)
}
