//! The dealer: registrations, and calls from CALL to final answer (WAMP basic profile, "Remote Procedure Calls").
//!
//! ```text
//!   CALL ──► call.rs ──► INVOCATION          registrations.rs   procedures and their callees (callees.rs)
//!                │      ▲                    callee_choice.rs   the least busy or the sticky callee
//!                │      │                    calls.rs           the open calls
//!                └─► call_queue.rs           kept.rs            CALLs that are kept whole
//!                                            reroute.rs         calls for the next callee
//!                                            anywhere.rs        callees of all nodes, in_order.rs in order
//!                                            bounce.rs          calls that another node returns
//!   CANCEL, timeout, leave ──► end.rs        open_calls.rs      calls that a stop waits for
//!                │
//!  RESULT ◄── answer.rs ◄── YIELD, ERROR
//! ```
//!
//! Every call with an invocation ends in exactly one final RESULT or ERROR to its caller, unless the caller has left.

mod across;
mod answer;
mod anywhere;
mod bounce;
mod call;
mod call_queue;
mod callee_choice;
mod callees;
mod calls;
mod course;
mod directory;
mod end;
mod entries;
mod in_order;
mod kept;
mod new_call;
mod node_choice;
mod open_calls;
mod partition;
mod parts;
mod placement;
mod queue_drain;
mod registrations;
mod remote_calls;
mod reroute;
mod strict;

pub(crate) use self::call::Uncalled;
pub(crate) use self::calls::calls_bytes;
pub(crate) use self::new_call::{too_long, unrepresentable};
pub use self::open_calls::OpenCalls;
pub use self::strict::Lease;

use crosstie_wamp::{Message, MessageType, RegisterOptions, RegistrationId, RequestId};

use self::across::Across;
use self::call_queue::Waiting;
use self::callees::Callee;
use self::calls::Calls;
use self::kept::Keeping;
use self::registrations::{Entered, Registrations};
use crate::context::Context;
use crate::fault::{Fault, error};
use crate::identity::SessionIndex;
use crate::random::Random;
use crate::session::Sessions;
use crate::{CallQueue, Time};

#[derive(Debug)]
pub(crate) struct Dealer {
    registrations: Registrations,
    calls: Calls,
    waiting: Waiting,
    keeping: Keeping,
    /// Set if the realm has other nodes.
    across: Option<Box<Across>>,
}

impl Dealer {
    /// Creates the dealer with these call queues.
    pub(crate) fn new(queues: &[CallQueue], random: &mut Random) -> Self {
        Self {
            registrations: Registrations::new(queues, random),
            calls: Calls::new(random),
            waiting: Waiting::default(),
            keeping: Keeping::default(),
            across: None,
        }
    }

    pub(crate) fn register<H>(
        &mut self,
        context: &mut Context<'_, H>,
        from: SessionIndex,
        request: RequestId,
        options: &RegisterOptions,
        procedure: &str,
    ) {
        let entered = self
            .check_line()
            .and_then(|()| self.registrations.enter(context, from, options, procedure));
        let Entered { id, waits } = match entered {
            Ok(entered) => entered,
            Err(fault) => return context.refuse(from, MessageType::Register, request, &fault),
        };
        if let Some(number) = waits
            && self.wait_for_others(context, from, request, Some((id, number)))
        {
            return;
        }
        self.waiting.stir(id);
        let registered = Message::Registered {
            request,
            registration: id,
        };
        let _ = context.reply(from, &registered);
    }

    /// Ends a registration. Its open calls stay open until they are answered.
    pub(crate) fn unregister<H>(
        &mut self,
        context: &mut Context<'_, H>,
        from: SessionIndex,
        request: RequestId,
        registration: RegistrationId,
    ) {
        if !self.registrations.remove(context, from, registration) {
            let fault = Fault::new(
                error::NO_SUCH_REGISTRATION,
                format!("this session has no registration {registration}"),
            );
            return context.refuse(from, MessageType::Unregister, request, &fault);
        }
        // A session that learns of it may register the procedure on another node.
        if self.check_line().is_ok() && self.wait_for_others(context, from, request, None) {
            return;
        }
        let unregistered = Message::Unregistered {
            request,
            revoked: None,
        };
        let _ = context.reply(from, &unregistered);
    }

    /// Shows `visit` the callees that a call of `procedure` may reach until it returns `false`.
    pub(crate) fn callees(&self, procedure: &str, visit: &mut dyn FnMut(SessionIndex) -> bool) {
        let exact = self.registrations.exact(procedure);
        let best = exact.or_else(|| self.registrations.best_pattern(procedure, &mut 0));
        if let Some(key) = best {
            self.registrations.callees(key).all(visit);
        }
    }

    /// The caller of an open invocation.
    pub(crate) fn caller<H>(
        &self,
        sessions: &Sessions<H>,
        callee: SessionIndex,
        invocation: RequestId,
    ) -> Option<SessionIndex> {
        let key = sessions.invocation(callee.into(), invocation)?;
        self.calls[key].caller.session()
    }

    /// When the first call timeout is due.
    pub(crate) fn next_timeout(&self) -> Option<Time> {
        let open = self.calls.next_deadline();
        match self.waiting.is_empty() {
            true => open,
            false => open.into_iter().chain(self.waiting.next_deadline()).min(),
        }
    }

    pub(crate) fn registrations(&self) -> usize {
        self.registrations.len()
    }

    /// Number of open and queued calls.
    pub(crate) fn calls(&self) -> usize {
        self.calls.len() + self.waiting.len()
    }

    /// Number of queued calls.
    pub(crate) fn calls_waiting(&self) -> usize {
        self.waiting.len()
    }

    /// Weight of kept calls against the bound.
    pub(crate) fn kept_bytes(&self) -> usize {
        self.keeping.bytes()
    }

    /// Asserts that tables and sessions agree. Walks everything.
    pub(crate) fn check_invariants<H>(&self, sessions: &Sessions<H>) {
        self.registrations.check_invariants(sessions, &self.calls);
        self.calls.check_invariants(sessions);
        self.waiting.check_invariants();
        let kept = self.waiting.kept().chain(self.calls.kept());
        self.keeping.check_invariants(kept);
        for id in self.waiting.blocked() {
            let Some(key) = self.registrations.of_id(id) else {
                assert!(self.registrations.has_ended(), "calls wait for nobody");
                continue;
            };
            let is_free = |callee: &Callee| callee.is_free() && !sessions[callee.session].closing;
            let mut callees = self.registrations[key].callees.iter();
            assert!(!callees.any(is_free), "calls wait beside a free callee");
        }
    }
}
