//! Procedures as methods of a server of oslo.messaging: its clients call components that know nothing of AMQP.
//!
//! A request is acknowledged before the call, as by oslo.messaging's own servers: it is called at most once. While the
//! maximum number of calls is open, further requests are not acknowledged.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use crosstie_amqp::BasicProperties;
use crosstie_config::TargetToProcedure;
use crosstie_joints::{
    Arguments, RemoteFailure, Reply, Request, is_compatible, read_request, uri_part,
};
use crosstie_realms::resident::Failed;
use crosstie_wamp::CallOptions;
use serde_json::Value;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::bond::{Bond, Publication};
use super::course::Course;
use super::deliveries::Delivery;
use super::properties;
use super::setting::{Deliveries, SERIALIZER, Setting, expiring, identifier, payload, said};
use crate::joint_counts::Count;

/// The default version of requests and servers.
const VERSION: &str = "1.0";

const NO_SUCH_PROCEDURE: &str = "wamp.error.no_such_procedure";
const TIMEOUT: &str = "wamp.error.timeout";

/// Longest interval of heartbeats to a caller.
const DAY: Duration = Duration::from_secs(86_400);

/// The module of oslo.messaging's own exceptions.
const EXCEPTIONS: &str = "oslo_messaging.exceptions";

/// Takes requests until the bond ends.
pub(super) async fn run(
    setting: &Arc<Setting>,
    joint: &TargetToProcedure,
) -> Result<Infallible, String> {
    let (bond, deliveries) = setting.consuming_bond().await?;
    let queues = declare(joint, &bond).await?;
    bond.prefetch(joint.prefetch).await?;
    setting.place.awaited().await;
    for queue in &queues {
        bond.consume(queue, false).await?;
    }
    setting.say_ready();
    let client = Arc::new(Client {
        setting: Arc::clone(setting),
        joint: joint.clone(),
        bond: Arc::clone(&bond),
    });
    tokio::select! {
        why = bond.ended() => Err(why),
        why = client.take(deliveries) => Err(why),
    }
}

/// Declares exchanges, queues and bindings, in the order of oslo.messaging's servers. Returns the queues.
async fn declare(joint: &TargetToProcedure, bond: &Bond) -> Result<[String; 3], String> {
    let target = &joint.target;
    let server = target.server.as_deref().unwrap_or_default();
    let queues = [
        target.topic.clone(),
        format!("{}.{server}", target.topic),
        format!("{}_{}", target.fanout_exchange(), identifier()),
    ];
    let [shared, own, everybody] = &queues;
    for queue in [shared, own] {
        bond.declare_target(target, false).await?;
        let none = Default::default();
        bond.declare_queue(queue, target.is_durable, none).await?;
        bond.bind(queue, &target.exchange, queue).await?;
    }
    bond.declare_target(target, true).await?;
    let expiring = expiring();
    bond.declare_queue(everybody, false, expiring.as_table())
        .await?;
    bond.bind(everybody, &target.fanout_exchange(), &target.topic)
        .await?;
    Ok(queues)
}

struct Client {
    setting: Arc<Setting>,
    joint: TargetToProcedure,
    bond: Arc<Bond>,
}

/// The call for a request.
struct Asked {
    procedure: String,
    arguments: Arguments,
    course: Course,
}

impl Client {
    async fn take(self: &Arc<Self>, mut deliveries: Deliveries) -> String {
        let places = Arc::new(Semaphore::new(self.joint.pending_max));
        while let Some(delivery) = deliveries.recv().await {
            let body = delivery.body.as_deref();
            let request = body.and_then(|body| read_request(body).ok());
            let Some(mut request) = request else {
                self.setting.counts.count(Count::Refused);
                self.bond.reject(delivery.tag, false);
                continue;
            };
            // The semaphore is never closed.
            let Ok(place) = Arc::clone(&places).acquire_owned().await else {
                break;
            };
            self.bond.acknowledge(delivery.tag);
            match self.asked(&mut request, &delivery) {
                Ok(asked) => {
                    drop(delivery);
                    let serving = Arc::clone(self).serve(request, asked, place);
                    self.setting.runtime.spawn(serving);
                }
                Err(failure) => {
                    self.setting.counts.count(Count::Refused);
                    self.reply(&request, Err(failure));
                }
            }
        }
        "the connection to the broker has ended".to_owned()
    }

    /// The call for a request, or the error for its caller.
    fn asked(
        &self,
        request: &mut Request,
        delivery: &Delivery,
    ) -> Result<Asked, Box<RemoteFailure>> {
        let target = &self.joint.target;
        let call = &mut request.call;
        let version = call.version.as_deref().unwrap_or(VERSION);
        let offered = target.version.as_deref().unwrap_or(VERSION);
        if call.namespace != target.namespace || !is_compatible(offered, version) {
            return Err(RemoteFailure::unsupported_version(version, &call.method));
        }
        let namespace = call.namespace.as_deref().unwrap_or_default();
        if [&*call.method, namespace]
            .iter()
            .any(|name| !is_plain(name))
            || call.method.is_empty()
        {
            return Err(RemoteFailure::no_such_method(&call.method));
        }
        let procedure = self.joint.procedure.fill(|name| match name {
            "namespace" => uri_part(namespace).into(),
            _ => uri_part(&call.method).into(),
        });
        let headers = delivery.properties().parse_for_broker().headers;
        let Some(course) = self.setting.pass(Course::of_headers(headers)) else {
            return Err(undelivered("it has come through as many joints as may be"));
        };
        let mut arguments = Arguments::of_object(std::mem::take(&mut call.args));
        if let Some(name) = &self.joint.context_argument {
            let context = Value::Object(std::mem::take(&mut call.context));
            arguments.kwargs.insert(name.clone(), context);
        }
        if let Some(name) = &self.joint.properties_argument {
            let properties = properties::of(delivery);
            arguments.kwargs.insert(name.clone(), properties);
        }
        Ok(Asked {
            procedure,
            arguments,
            course,
        })
    }

    /// Calls, and replies; meanwhile sends heartbeats to a caller that wants them.
    async fn serve(self: Arc<Self>, request: Request, asked: Asked, _place: OwnedSemaphorePermit) {
        let interval = monitor_interval(&request);
        let mut heartbeat = tokio::time::interval(interval.unwrap_or(DAY));
        // The first tick is immediate.
        heartbeat.tick().await;
        let mut calling = Box::pin(self.call(&request.call.method, &asked));
        let outcome = loop {
            tokio::select! {
                outcome = &mut calling => break outcome,
                _ = heartbeat.tick(), if interval.is_some() => {
                    self.send(&request, Ok(Value::Null), false);
                }
            }
        };
        self.setting.counts.count(match outcome {
            Ok(_) => Count::Passed,
            Err(_) => Count::Refused,
        });
        self.reply(&request, outcome);
    }

    async fn call(&self, method: &str, asked: &Asked) -> Result<Value, Box<RemoteFailure>> {
        let exceptions = &self.joint.exceptions;
        let Ok(session) = self.setting.place.resident() else {
            return Err(undelivered("its realm is not there"));
        };
        let options = CallOptions {
            passthru: asked.course.options(),
            ..CallOptions::default()
        };
        let (args, kwargs) = (asked.arguments.args_json(), asked.arguments.kwargs_json());
        let calling = session.call(&asked.procedure, options, payload(&args, &kwargs));
        let called = tokio::time::timeout(self.joint.timeout, calling).await;
        match called {
            Ok(Ok(result)) if result.serializer == SERIALIZER => {
                let arguments = Arguments::read(&result.args, &result.kwargs);
                let arguments = arguments.map_err(|e| undelivered(&e.to_string()))?;
                Ok(arguments.into_value())
            }
            Ok(Ok(_)) => Err(undelivered("the result is encoded")),
            Ok(Err(Failed::Error { uri, .. })) if uri == NO_SUCH_PROCEDURE => {
                Err(RemoteFailure::no_such_method(method))
            }
            Ok(Err(Failed::Error { uri, payload })) => {
                let arguments = Arguments::read(&payload.args, &payload.kwargs);
                Err(exceptions.to_oslo(&uri, arguments.unwrap_or_default()))
            }
            Ok(Err(e)) => Err(undelivered(&e.to_string())),
            Err(_) => {
                let text = format!("no result within {} ms", self.joint.timeout.as_millis());
                Err(exceptions.to_oslo(TIMEOUT, said(text)))
            }
        }
    }

    /// Sends the outcome to a caller that wants a reply.
    fn reply(&self, request: &Request, outcome: Result<Value, Box<RemoteFailure>>) {
        self.send(request, outcome, true);
    }

    fn send(&self, request: &Request, outcome: Result<Value, Box<RemoteFailure>>, is_ending: bool) {
        let (Some(msg_id), Some(queue)) = (&request.msg_id, &request.reply_queue) else {
            return;
        };
        let mut reply = Reply {
            msg_id: Some(msg_id.clone()),
            outcome,
            is_ending,
        };
        let mut body = Vec::new();
        reply.write(&identifier(), &mut body);
        let bytes_max = self.setting.joint.body_bytes_max;
        if body.len() > bytes_max {
            let text = format!("a reply of {} bytes, at most {bytes_max}", body.len());
            reply.outcome = Err(undelivered(&text));
            body.clear();
            reply.write(&identifier(), &mut body);
        }
        let headers = Course::default().headers();
        let said = BasicProperties {
            content_type: Some("application/json"),
            content_encoding: Some("utf-8"),
            headers: Some(headers.as_table()),
            delivery_mode: Some(2),
            priority: Some(0),
            ..BasicProperties::default()
        };
        let mut properties = Vec::new();
        said.write(&mut properties);
        if queue.len() > super::topic::SHORT_BYTES_MAX {
            return self.setting.counts.count(Count::Dropped);
        }
        let published = self.bond.publish(Publication {
            exchange: "",
            routing_key: queue,
            // A returned reply is counted.
            is_mandatory: true,
            properties: &properties,
            body: &body,
        });
        if published.is_err() {
            self.setting.counts.count(Count::Dropped);
        }
    }
}

/// Whether a name is a valid part of a URI.
fn is_plain(name: &str) -> bool {
    name.is_empty() || uri_part(name) == name
}

/// A failure of the joint itself.
fn undelivered(text: &str) -> Box<RemoteFailure> {
    Box::new(RemoteFailure {
        class: "MessageDeliveryFailure".to_owned(),
        module: EXCEPTIONS.to_owned(),
        message: text.to_owned(),
        args: vec![Value::from(text)],
        ..RemoteFailure::default()
    })
}

/// The interval of heartbeats: two within the caller's timeout.
fn monitor_interval(request: &Request) -> Option<Duration> {
    let seconds = request.monitor_timeout_s? / 2.0;
    let interval = Duration::try_from_secs_f64(seconds).ok()?;
    (Duration::from_secs(1)..DAY)
        .contains(&interval)
        .then_some(interval)
}
