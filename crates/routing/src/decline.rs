//! Declines a message whose content cannot be routed: its sender gets an answer, and no more happens.

use std::borrow::Cow;

use crosstie_wamp::{Message, MessageType, Payload, PublishOptions, RequestId, Serializer};

use crate::context::Context;
use crate::fault::{Fault, error};
use crate::identity::SessionIndex;
use crate::{Outbox, Realm, SessionKey, Time, Violation};

impl<H> Realm<H> {
    /// Handles a message that the session's owner cannot pass on, because of the given fault in its content. A request
    /// is answered with ERROR `wamp.error.invalid_argument`. A publication without `acknowledge` is dropped. The call
    /// that a YIELD or ERROR belongs to ends with the error. Any other message is handled as it is.
    pub fn decline(
        &mut self,
        now: Time,
        from: SessionKey,
        message: &Message<'_>,
        text: impl Into<Cow<'static, str>>,
        out: &mut dyn Outbox<H>,
    ) -> Result<(), Violation> {
        let fault = Fault::new(error::INVALID_ARGUMENT, text);
        let Some(index) = self.sessions.find(from) else {
            return Ok(());
        };
        let (_, dealer, mut context) = self.split(now, out);
        let context = &mut context;
        let outcome = match message {
            Message::Call {
                request, options, ..
            } => dealer.decline(context, index, *request, options, &fault),
            Message::Yield { request, .. }
            | Message::Error {
                request_type: MessageType::Invocation,
                request,
                ..
            } => {
                let arguments = fault.arguments();
                let payload = Payload::new(Serializer::Json, arguments.as_bytes(), &[]);
                dealer.handle_error(context, index, *request, &Vec::new(), fault.uri, payload)
            }
            Message::Publish {
                request, options, ..
            } => decline_publication(context, index, *request, options, &fault),
            Message::Subscribe { request, .. }
            | Message::Unsubscribe { request, .. }
            | Message::Register { request, .. }
            | Message::Unregister { request, .. } => {
                refuse(context, index, message.kind(), *request, &fault)
            }
            _ => return self.handle(now, from, message, out),
        };
        self.remove_closed(now, out);
        outcome
    }
}

/// Answers a publication with the fault if it is acknowledged, else drops it.
pub(crate) fn decline_publication<H>(
    context: &mut Context<'_, H>,
    from: SessionIndex,
    request: RequestId,
    options: &PublishOptions,
    fault: &Fault,
) -> Result<(), Violation> {
    match options.acknowledge {
        true => refuse(context, from, MessageType::Publish, request, fault),
        false => context.take_request(from, request),
    }
}

fn refuse<H>(
    context: &mut Context<'_, H>,
    from: SessionIndex,
    kind: MessageType,
    request: RequestId,
    fault: &Fault,
) -> Result<(), Violation> {
    context.take_request(from, request)?;
    context.refuse(from, kind, request, fault);
    Ok(())
}
