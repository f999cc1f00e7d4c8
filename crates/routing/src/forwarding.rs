//! For whom somebody says to publish or call: `forward_for`, which links between realms put beside what they carry.
//!
//! Every session may say it, as on Crossbar.io, because a link is to the other router a client as any. What stands there is
//! then as trustworthy as who says it. So an operator may keep it to those roles that links have.

use crosstie_wamp::{Dict, FORWARD_FOR, Unsupported, YieldOptions};

use crate::context::Context;
use crate::fault::{Fault, error};
use crate::identity::SessionIndex;
use crate::trustlevels;

impl<H> Context<'_, H> {
    /// Judges what a publication, a testament or a call says beside itself.
    pub(crate) fn check_said(&self, from: SessionIndex, passthru: &Dict) -> Result<(), Fault> {
        trustlevels::check_unsaid(Some(passthru))?;
        if says_for_whom(passthru) && !self.may_forward(from) {
            return Err(not_for_others());
        }
        Ok(())
    }

    /// Judges what a subscription or registration asks for: whether it may be for others, and has an option that is not
    /// honoured here.
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

    /// A result cannot be refused: what its callee may not say is taken out. `None` if there is no such thing.
    pub(crate) fn said_in_result(
        &self,
        from: SessionIndex,
        options: &YieldOptions,
    ) -> Option<Box<YieldOptions>> {
        let passthru = options.passthru.as_deref()?;
        if !says_for_whom(passthru) || self.may_forward(from) {
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

fn says_for_whom(passthru: &Dict) -> bool {
    passthru.iter().any(|(key, _)| key == FORWARD_FOR)
}

#[cold]
fn not_for_others() -> Fault {
    let text = "forward_for is for those who carry what others say, and this role is not to";
    Fault::new(error::OPTION_NOT_ALLOWED, text)
}
