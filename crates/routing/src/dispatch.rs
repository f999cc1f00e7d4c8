//! Dispatches each message to the part of the realm that handles it.

use crosstie_wamp::{Message, MessageType};

use crate::broker::Broker;
use crate::dealer::Uncalled;
use crate::decline::decline_publication;
use crate::identity::SessionIndex;
use crate::{ClientFeature, Outbox, Realm, Time, Violation};

impl<H> Realm<H> {
    pub(crate) fn dispatch(
        &mut self,
        now: Time,
        from: SessionIndex,
        message: &Message<'_>,
        out: &mut dyn Outbox<H>,
    ) -> Result<(), Violation> {
        let (broker, dealer, mut context) = self.split(now, out);
        let context = &mut context;
        match message {
            Message::Call {
                request,
                options,
                procedure,
                payload,
            } => {
                if let Some(attributes) = options.passthru.as_deref() {
                    let needed = ClientFeature::CallerPayloadPassthruMode;
                    context.check_passthru(from, needed, message, attributes)?;
                    if let Err(fault) = context.check_said(from, attributes) {
                        return dealer.decline(context, from, *request, options, &fault);
                    }
                }
                let levelled;
                let mut options = options;
                if context.roles.give_trustlevels() {
                    levelled = context.levelled(from, options, procedure);
                    options = levelled.as_deref().unwrap_or(options);
                }
                let called = dealer.call(context, from, *request, options, procedure, *payload);
                return match called {
                    Ok(()) => Ok(()),
                    Err(Uncalled::Violation(violation)) => Err(violation),
                    Err(Uncalled::Reserved(fault)) => {
                        self.call_meta(now, from, *request, (procedure, fault), payload, out);
                        Ok(())
                    }
                };
            }
            Message::Yield {
                request,
                options,
                payload,
            } => {
                let said;
                let mut options = options;
                if let Some(attributes) = options.passthru.as_deref() {
                    let needed = ClientFeature::CalleePayloadPassthruMode;
                    context.check_passthru(from, needed, message, attributes)?;
                    said = context.said_in_result(from, options);
                    options = said.as_deref().unwrap_or(options);
                }
                // Called in one place, so that it is inlined.
                return dealer.handle_yield(context, from, *request, options, *payload);
            }
            Message::Publish {
                request,
                options,
                topic,
                payload,
            } => {
                if let Some(attributes) = options.passthru.as_deref() {
                    let needed = ClientFeature::PublisherPayloadPassthruMode;
                    context.check_passthru(from, needed, message, attributes)?;
                    if let Err(fault) = context.check_said(from, attributes) {
                        return decline_publication(context, from, *request, options, &fault);
                    }
                }
                context.take_request(from, *request)?;
                let levelled;
                let mut options = options;
                if context.roles.give_trustlevels() {
                    levelled = context.levelled(from, options, topic);
                    options = levelled.as_deref().unwrap_or(options);
                }
                broker.publish(context, from, *request, options, topic, *payload);
            }
            Message::Error {
                request_type,
                request,
                details,
                error,
                payload,
            } => {
                if *request_type != MessageType::Invocation {
                    return Err(Violation::new(format!(
                        "received ERROR for {}; a client answers INVOCATION only",
                        request_type.name()
                    )));
                }
                return dealer.handle_error(context, from, *request, details, error, *payload);
            }
            Message::Subscribe {
                request,
                options,
                topic,
            } => {
                context.take_request(from, *request)?;
                broker.subscribe(context, from, *request, options, topic);
                self.settle(now, out);
            }
            Message::Unsubscribe {
                request,
                subscription,
            } => {
                context.take_request(from, *request)?;
                broker.unsubscribe(context, from, *request, *subscription);
                self.settle(now, out);
            }
            Message::Register {
                request,
                options,
                procedure,
            } => {
                context.take_request(from, *request)?;
                dealer.register(context, from, *request, options, procedure);
                self.settle(now, out);
            }
            Message::Unregister {
                request,
                registration,
            } => {
                context.take_request(from, *request)?;
                dealer.unregister(context, from, *request, *registration);
                self.settle(now, out);
            }
            Message::Cancel { request, options } => {
                dealer.cancel(context, from, *request, options.mode);
            }
            Message::EventReceived { publication } => {
                return Broker::handle_received(context, from, *publication);
            }
            other => return Err(Violation::unexpected(other.kind())),
        }
        Ok(())
    }
}
