//! A procedure that is served by servers of oslo.messaging, which know nothing of WAMP.

use std::borrow::Cow;
use std::collections::HashMap;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use crosstie_amqp::BasicProperties;
use crosstie_config::ProcedureToTarget;
use crosstie_joints::{Arguments, Call, Reply, RequestText, read_reply};
use crosstie_realms::resident::Invocation;
use crosstie_wamp::{Disclosed, RegisterOptions};
use parking_lot::Mutex;
use serde_json::{Map, Value};
use tokio::sync::oneshot;

use super::bond::{Bond, Publication};
use super::course::Course;
use super::deliveries::Incoming;
use super::setting::{SERIALIZER, Setting, identifier, payload, said};
use super::topic::{SHORT_BYTES_MAX, rest};
use crate::joint_counts::{Count, JointCounts};

/// Calls that wait for their reply, by `_msg_id`.
#[derive(Default)]
struct Waiting {
    calls: Mutex<HashMap<String, Called>>,
}

struct Called {
    answer: oneshot::Sender<Answer>,
    /// A result that arrived before the final reply, as from old servers.
    ahead: Value,
}

/// The outcome of a call.
enum Answer {
    Reply(Reply),
    /// No queue matched.
    Returned,
}

/// A call's entry among those that wait, removed on drop.
struct Place {
    msg_id: String,
    waiting: Arc<Waiting>,
    answered: oneshot::Receiver<Answer>,
}

/// An error of the joint itself.
type Refusal = (&'static str, Arguments);

const INVALID_ARGUMENT: &str = "wamp.error.invalid_argument";
const TIMEOUT: &str = "wamp.error.timeout";
const PAYLOAD_SIZE_EXCEEDED: &str = "wamp.error.payload_size_exceeded";
const UNAVAILABLE: &str = "crosstie.error.target_unavailable";
const NO_SUCH_TARGET: &str = "crosstie.error.no_such_target";
const PENDING_MAX: &str = "crosstie.error.joint_pending_max";
const HOPS_MAX: &str = "crosstie.error.hops_max";

/// Serves the procedure until the session or the bond ends.
pub(super) async fn run(
    setting: &Arc<Setting>,
    joint: &ProcedureToTarget,
) -> Result<Infallible, String> {
    let session = setting.place.awaited().await;
    let waiting = Arc::new(Waiting::default());
    let (heard, counts) = (Arc::clone(&waiting), Arc::clone(&setting.counts));
    let bond = setting
        .bond(move |incoming| heard.handle(&incoming, &counts))
        .await?;
    bond.declare_target(&joint.target, joint.is_fanout).await?;
    let reply_queue = format!("reply_{}", identifier());
    match joint.is_cast {
        true => {
            bond.ask(&crosstie_amqp::method::ConfirmSelect { no_wait: false })
                .await?;
            bond.note_confirming();
        }
        false => {
            bond.declare_own_queue(&reply_queue).await?;
            bond.consume(&reply_queue, true).await?;
        }
    }
    let options = RegisterOptions {
        match_policy: joint.match_policy,
        ..RegisterOptions::default()
    };
    let registered = session.register(&joint.procedure, options).await;
    let mut invocations = registered.map_err(|e| format!("cannot register: {e}"))?;
    setting.say_ready();
    let server = Server {
        setting: Arc::clone(setting),
        joint: joint.clone(),
        bond: Arc::clone(&bond),
        waiting: Arc::clone(&waiting),
        reply_queue,
    };
    let server = Arc::new(server);
    let _unanswered = Unanswered(waiting);
    loop {
        let invocation = tokio::select! {
            why = bond.ended() => return Err(why),
            invocation = invocations.next() => invocation,
        };
        server.serve(invocation.ok_or("its session has ended")?);
    }
}

/// Ends waiting calls with an error at the end.
struct Unanswered(Arc<Waiting>);

impl Drop for Unanswered {
    fn drop(&mut self) {
        self.0.calls.lock().clear();
    }
}

struct Server {
    setting: Arc<Setting>,
    joint: ProcedureToTarget,
    bond: Arc<Bond>,
    waiting: Arc<Waiting>,
    reply_queue: String,
}

impl Server {
    /// Sends a call's request, in the order of calls, and starts to wait for its answer.
    fn serve(self: &Arc<Self>, mut invocation: Invocation) {
        let refused = |invocation, refusal: Refusal| {
            self.setting.counts.count(Count::Refused);
            fail(invocation, refusal.0, &refusal.1);
        };
        let begun = self.place().and_then(|place| {
            let body = self.body(&invocation, &place.msg_id)?;
            let timeout = self.timeout(&invocation);
            let properties = self.properties(&invocation, &place.msg_id, timeout)?;
            Ok((place, body, properties, timeout))
        });
        let (place, body, properties, timeout) = match begun {
            Ok(begun) => begun,
            Err(refusal) => return refused(invocation, refusal),
        };
        let server = Arc::clone(self);
        if self.joint.is_cast {
            self.setting.runtime.spawn(async move {
                let cast = tokio::select! {
                    cast = server.cast(place, &properties, &body, timeout) => cast,
                    // Dropping it answers it.
                    () = invocation.interrupted() => return,
                };
                match cast {
                    Ok(()) => server.answer(invocation, &Arguments::default()),
                    Err(refusal) => server.refuse(invocation, &refusal),
                }
            });
            return;
        }
        let (exchange, routing_key) = self.route();
        let published = self.bond.publish(Publication {
            exchange: &exchange,
            routing_key: &routing_key,
            is_mandatory: true,
            properties: &properties,
            body: &body,
        });
        if let Err(why) = published {
            return refused(invocation, (UNAVAILABLE, said(why)));
        }
        self.setting.runtime.spawn(async move {
            let answered = tokio::select! {
                answered = server.awaited(place, timeout) => answered,
                () = invocation.interrupted() => return,
            };
            match answered {
                Ok(Ok(result)) => server.answer(invocation, &Arguments::of_value(result)),
                Ok(Err(failure)) => {
                    server.setting.counts.count(Count::Passed);
                    let (uri, arguments) = server.joint.exceptions.to_wamp(&failure);
                    fail(invocation, &uri, &arguments);
                }
                Err(refusal) => server.refuse(invocation, &refusal),
            }
        });
    }

    fn answer(&self, invocation: Invocation, arguments: &Arguments) {
        self.setting.counts.count(Count::Passed);
        let (args, kwargs) = (arguments.args_json(), arguments.kwargs_json());
        invocation.answer(payload(&args, &kwargs));
    }

    fn refuse(&self, invocation: Invocation, (uri, arguments): &Refusal) {
        self.setting.counts.count(Count::Refused);
        fail(invocation, uri, arguments);
    }

    /// An entry for another call, unless the maximum is reached.
    fn place(&self) -> Result<Place, Refusal> {
        let (answer, answered) = oneshot::channel();
        let msg_id = identifier();
        let mut calls = self.waiting.calls.lock();
        if calls.len() >= self.joint.pending_max {
            let text = format!(
                "{} calls wait for their answer, which is all that may",
                calls.len()
            );
            return Err((PENDING_MAX, said(text)));
        }
        let called = Called {
            answer,
            ahead: Value::Null,
        };
        calls.insert(msg_id.clone(), called);
        Ok(Place {
            msg_id,
            waiting: Arc::clone(&self.waiting),
            answered,
        })
    }

    /// The request in oslo.messaging's form.
    fn body(&self, invocation: &Invocation, msg_id: &str) -> Result<Vec<u8>, Refusal> {
        let joint = &self.joint;
        if invocation.payload.serializer != SERIALIZER {
            return Err((INVALID_ARGUMENT, said("the payload is encoded")));
        }
        let arguments = Arguments::read(&invocation.payload.args, &invocation.payload.kwargs);
        let named = arguments.and_then(|arguments| arguments.into_named(&joint.arguments));
        let args = named.map_err(|e| (INVALID_ARGUMENT, said(e.to_string())))?;
        let procedure = invocation.procedure.as_deref();
        let procedure = procedure.unwrap_or(&joint.procedure);
        let method = joint.method.fill(|name| match name {
            "rest" => rest(procedure, &joint.procedure, joint.match_policy),
            "last" => Cow::Borrowed(procedure.rsplit('.').next().unwrap_or(procedure)),
            _ => Cow::Borrowed(procedure),
        });
        let mut context: Map<String, Value> = joint.context.iter().cloned().collect();
        if let Some(caller) = &invocation.caller {
            context.extend(disclosed(caller));
        }
        let call = Call {
            method,
            args,
            context,
            namespace: joint.target.namespace.clone(),
            version: joint.target.version.clone(),
        };
        let text = RequestText::new(&call);
        let mut body = Vec::new();
        match joint.is_cast {
            true => text.write_cast(&identifier(), &mut body),
            false => text.write_call(msg_id, &self.reply_queue, &identifier(), &mut body),
        }
        let bytes_max = self.setting.joint.body_bytes_max;
        if body.len() > bytes_max {
            let text = format!("a request of {} bytes, at most {bytes_max}", body.len());
            return Err((PAYLOAD_SIZE_EXCEEDED, said(text)));
        }
        Ok(body)
    }

    fn properties(
        &self,
        invocation: &Invocation,
        msg_id: &str,
        timeout: Duration,
    ) -> Result<Vec<u8>, Refusal> {
        let before = Course::of_options(invocation.passthru.as_deref());
        let Some(course) = self.setting.pass(before) else {
            let hops_max = self.setting.joint.hops_max;
            let text = format!("it has come through {hops_max} joints, which is all that may be");
            return Err((HOPS_MAX, said(text)));
        };
        let headers = course.headers();
        let expiration = timeout.as_millis().max(1).to_string();
        let user_id = invocation.caller.as_ref().map(|caller| &*caller.authid);
        let user_id =
            user_id.filter(|id| self.joint.is_impersonator && id.len() <= SHORT_BYTES_MAX);
        let said = BasicProperties {
            content_type: Some("application/json"),
            content_encoding: Some("utf-8"),
            headers: Some(headers.as_table()),
            delivery_mode: Some(2),
            priority: Some(0),
            // A request that is still in its queue after the timeout expires.
            expiration: (!self.joint.is_cast).then_some(&expiration),
            message_id: Some(msg_id),
            user_id,
            ..BasicProperties::default()
        };
        let mut properties = Vec::new();
        said.write(&mut properties);
        Ok(properties)
    }

    /// The timeout of the answer: the joint's, or the caller's if that is shorter.
    fn timeout(&self, invocation: &Invocation) -> Duration {
        match invocation.timeout_ms {
            0 => self.joint.timeout,
            timeout_ms => self.joint.timeout.min(Duration::from_millis(timeout_ms)),
        }
    }

    /// Exchange and routing key.
    fn route(&self) -> (Cow<'_, str>, Cow<'_, str>) {
        let target = &self.joint.target;
        match &target.server {
            _ if self.joint.is_fanout => (target.fanout_exchange().into(), "".into()),
            Some(server) => (
                target.exchange.as_str().into(),
                format!("{}.{server}", target.topic).into(),
            ),
            None => (
                target.exchange.as_str().into(),
                target.topic.as_str().into(),
            ),
        }
    }

    /// Waits for the reply to a call.
    async fn awaited(
        &self,
        mut place: Place,
        timeout: Duration,
    ) -> Result<Result<Value, Box<crosstie_joints::RemoteFailure>>, Refusal> {
        let answered = tokio::time::timeout(timeout, &mut place.answered).await;
        match answered {
            Ok(Ok(Answer::Reply(reply))) => Ok(reply.outcome),
            Ok(Ok(Answer::Returned)) => Err(self.no_such_target()),
            Ok(Err(_)) => Err((UNAVAILABLE, said("the joint restarts"))),
            Err(_) => {
                let text = format!("no reply within {} ms", timeout.as_millis());
                Err((TIMEOUT, said(text)))
            }
        }
    }

    /// Publishes a cast, and waits for the broker's confirm.
    async fn cast(
        &self,
        mut place: Place,
        properties: &[u8],
        body: &[u8],
        timeout: Duration,
    ) -> Result<(), Refusal> {
        let (exchange, routing_key) = self.route();
        let confirmed = self.bond.publish_confirmed(Publication {
            exchange: &exchange,
            routing_key: &routing_key,
            is_mandatory: true,
            properties,
            body,
        });
        match tokio::time::timeout(timeout, confirmed).await {
            // A returned message arrives before its confirm.
            Ok(Ok(true)) if place.answered.try_recv().is_ok() => Err(self.no_such_target()),
            Ok(Ok(true)) => Ok(()),
            Ok(Ok(false)) => Err((UNAVAILABLE, said("the broker has not taken the message"))),
            Ok(Err(why)) => Err((UNAVAILABLE, said(why))),
            Err(_) => Err((TIMEOUT, said("the broker has not confirmed in time"))),
        }
    }

    fn no_such_target(&self) -> Refusal {
        let (exchange, routing_key) = self.route();
        let text = format!("no queue takes '{routing_key}' from the exchange '{exchange}'");
        (NO_SUCH_TARGET, said(text))
    }
}

impl Waiting {
    /// Handles returned messages and replies.
    fn handle(&self, incoming: &Incoming, counts: &JointCounts) {
        let is_for_somebody = match incoming {
            Incoming::Returned { message_id } => self.answer(message_id, Answer::Returned),
            Incoming::Delivery(delivery) => {
                let reply = delivery.body.as_deref().map(read_reply);
                match reply {
                    Some(Ok(reply)) => self.reply(reply),
                    _ => false,
                }
            }
        };
        // Late, or not a reply at all.
        if !is_for_somebody {
            counts.count(Count::Dropped);
        }
    }

    fn reply(&self, mut reply: Reply) -> bool {
        let Some(msg_id) = reply.msg_id.clone() else {
            return false;
        };
        if let Ok(result) = &mut reply.outcome {
            let mut calls = self.calls.lock();
            let Some(called) = calls.get_mut(&msg_id) else {
                return false;
            };
            // A reply that is not final is a sign of life, or has the result.
            if !reply.is_ending {
                called.ahead = result.take();
                return true;
            }
            if result.is_null() {
                *result = called.ahead.take();
            }
        }
        self.answer(&msg_id, Answer::Reply(reply))
    }

    fn answer(&self, msg_id: &str, answer: Answer) -> bool {
        let called = self.calls.lock().remove(msg_id);
        called.is_some_and(|called| called.answer.send(answer).is_ok())
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.waiting.calls.lock().remove(&self.msg_id);
    }
}

/// The caller as fields of a request's context.
fn disclosed(caller: &Disclosed<'_>) -> [(String, Value); 3] {
    [
        ("wamp_caller", Value::from(caller.session.0)),
        ("wamp_caller_authid", Value::from(&*caller.authid)),
        ("wamp_caller_authrole", Value::from(&*caller.authrole)),
    ]
    .map(|(name, value)| (name.to_owned(), value))
}

fn fail(invocation: Invocation, uri: &str, arguments: &Arguments) {
    let (args, kwargs) = (arguments.args_json(), arguments.kwargs_json());
    invocation.fail(uri, payload(&args, &kwargs));
}
