//! Invocations from the router: a new one, a further chunk of one, an INTERRUPT.

use crosstie_wamp::{InterruptOptions, InvocationDetails, Payload, RegistrationId, RequestId};

use super::handle::{Handled, never_refused};
use super::{Effect, Invocation, Session, Violation};
use crate::outgoing::Outgoing;

impl<W, I> Session<W, I> {
    pub(super) fn handle_interrupt<'a>(
        &'a mut self,
        request: RequestId,
        options: InterruptOptions<'a>,
    ) -> Effect<'a, W, I> {
        let invocation = self.invocations.get_mut(&request);
        let running = invocation.and_then(|invocation| invocation.running.as_mut());
        match running {
            Some(running) => Effect::Interrupted { running, options },
            // It crossed the answer.
            None => Effect::None,
        }
    }

    pub(super) fn handle_invocation<'a>(
        &'a mut self,
        request: RequestId,
        registration: RegistrationId,
        details: InvocationDetails<'a>,
        payload: Payload<'a>,
        out: &mut Outgoing,
    ) -> Handled<'a, W, I> {
        if self.invocations.contains_key(&request) {
            return self.handle_chunk(request, details.progress, payload);
        }
        if let Some(at) = self.answered_early.iter().position(|id| *id == request) {
            if !details.progress {
                self.answered_early.remove(at);
            }
            return Ok(Effect::None);
        }
        let invocation = Invocation {
            running: None,
            open: details.progress,
        };
        self.invocations.insert(request, invocation);
        let Some(&key) = self.registrations.get(&registration) else {
            // It crossed an UNREGISTER.
            let payload = Payload::EMPTY;
            let reply = self.yield_error(request, "wamp.error.unavailable", payload, out);
            never_refused(reply.map(drop));
            return Ok(Effect::None);
        };
        Ok(Effect::Invoked {
            request,
            key,
            details,
            payload,
        })
    }

    fn handle_chunk<'a>(
        &'a mut self,
        request: RequestId,
        more: bool,
        payload: Payload<'a>,
    ) -> Handled<'a, W, I> {
        let Some(invocation) = self.invocations.get_mut(&request) else {
            return Ok(Effect::None);
        };
        if !invocation.open {
            return Err(Violation {
                expected: "an INVOCATION with a new request id".to_owned(),
                found: format!("INVOCATION {request}, which is open and not progressive"),
            });
        }
        invocation.open = more;
        Ok(match &mut invocation.running {
            Some(running) => Effect::Continued {
                request,
                running,
                last: !more,
                payload,
            },
            None => Effect::None,
        })
    }
}
