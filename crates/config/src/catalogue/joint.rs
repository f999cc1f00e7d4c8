//! Keys of joints between WAMP and AMQP.

use std::time::Duration;

use crosstie_joints::{Body, Exceptions, Template};

use super::form::{Kind, OFF, ON, Rule, TYPE, integer, list, list_not_empty, map, one_of, text};
use super::table::tables;
use crate::model::{JointExchange, JointTarget, Json, MatchPolicy};

tables! {
    pub(crate) tagged JOINT("joints[].type", "a joint") {
        "exchange-to-topic" => EXCHANGE_TO_TOPIC,
        "procedure-to-target" => PROCEDURE_TO_TARGET,
        "target-to-procedure" => TARGET_TO_PROCEDURE,
        "topic-to-exchange" => TOPIC_TO_EXCHANGE,
    }

    const JOINT_ID = "id": text(Rule::Id).otherwise("`joint1`, `joint2`, … by position"),
        "Id of the joint, unique within the worker.";
    const REALM = "realm": text(Rule::RealmName).required(), "Realm of the joint.";
    const ROLE = "role": text(Rule::NotEmpty).required(),
        "Role of the joint in the realm; its permissions apply to the joint.";
    const VHOST = "vhost": text(Rule::ShortText).or_text("/").environment(), "Vhost of the joint.";
    const USER = "user": text(Rule::ShortText).required().environment(), "AMQP user whose permissions apply to the joint.";
    const BODY_BYTES_MAX = "body_bytes_max": integer(1_024, 64 << 20).or(1 << 20),
        "Maximum size of a message body, in bytes. A longer call fails; a longer AMQP message is rejected \
         without requeueing.";
    const HOPS_MAX = "hops_max": integer(1, 64).or(8),
        "Maximum number of joints that a message may pass, this one included. A message beyond it is not \
         forwarded, which stops loops.";
    const TARGET_EXCHANGE = "exchange": text(Rule::ShortText).or_text("openstack"),
        "Exchange of the target (oslo.messaging's `control_exchange`).";
    const TARGET_TOPIC = "topic": text(Rule::ShortText).required(), "Topic of the target.";
    const NAMESPACE = "namespace": text(Rule::NotEmpty).optional(), "Namespace of the target.";
    const VERSION = "version": text(Rule::NotEmpty).otherwise("none, which means 1.0"), "Version of the target.";
    const TARGET_DURABLE = "durable": OFF,
        "Declares the exchange and queues as durable, as oslo.messaging's `amqp_durable_queues` does.";
    const TIMEOUT = "timeout_ms": integer(1, 86_400_000).or(60_000),
        "Maximum time to wait for an answer, in milliseconds.";
    const PENDING_MAX = "pending_max": integer(1, 1_000_000).or(1_000), "Maximum number of pending calls.";
    const PREFETCH = "prefetch": integer(1, 65_535).or(100), "Maximum number of unacknowledged deliveries.";
    const ERRORS = "errors": list(&ONE_ERROR).otherwise("the built-in pairs"),
        "Pairs of WAMP error URIs and Python exceptions.";
    const IMPERSONATE = "impersonate": OFF,
        "Sends the authid of a disclosed sender as the message's `user-id`. The AMQP user needs the tag \
         `impersonator`.";
    const PROPERTIES_ARGUMENT = "properties_argument": text(Rule::NotEmpty).optional(),
        "Name of a keyword argument that carries the message's properties, with the `user_id` that the broker \
         has checked.";
    const MATCH = "match": one_of(&MATCHES).or_text("exact"), "Matching policy of the URI.";
    const EXCHANGE = "exchange": text(Rule::ShortText).required(), "Name of the exchange.";
    const EXCHANGE_TYPE = "exchange_type": one_of(&EXCHANGE_TYPES).or_text("topic"), "Type of the exchange.";
    const DURABLE = "durable": ON, "Declares the exchange as durable.";
    const DECLARE = "declare": ON, "Declares the exchange. With `false` it must exist.";
    const BODY = "body": one_of(&BODIES).or_text("json"), "Encoding of an event's arguments in a message body.";
}

static ONE_ERROR: Kind = Kind::Object(&ERROR);

tables! {
    words MATCHES("joints[].match") { "exact", "prefix", "wildcard" }
    words EXCHANGE_TYPES("joints[].exchange_type") { "direct", "fanout", "headers", "topic" }
    words BODIES("joints[].body") => Body {
        "json" => Json,
        "wamp" => Wamp,
        "oslo-notification" => Notification,
        "bytes" => Bytes,
    }
    words MODES("joints[].mode") { "call", "cast" }

    /// A procedure that oslo.messaging servers serve.
    #[derive(Clone, Debug, PartialEq)]
    pub struct ProcedureToTarget = static PROCEDURE_TO_TARGET(
        "workers[router].joints[procedure-to-target]", "a joint of a procedure to a target"
    ) {
        ..TYPE, JOINT_ID, REALM, ROLE;
        procedure: String = text(Rule::Uri).required(), "Procedure that the joint registers.";
        ..MATCH => match_policy: MatchPolicy;
        ..VHOST, USER, TARGET_EXCHANGE, TARGET_TOPIC;
        "server" = text(Rule::NotEmpty).otherwise("any of them"), "Name of one server of the topic.";
        ..NAMESPACE, VERSION, TARGET_DURABLE;
        "method" = text(Rule::NotEmpty).otherwise("`{rest}` if `match` is `prefix`, else `{last}`"),
            "Method to call. `{procedure}` stands for the URI, `{rest}` for the part behind the prefix, `{last}` \
             for the last component.";
        "mode" = one_of(&MODES).or_text("call"),
            "Kind of request: a call awaits the method's result, a cast only the broker's confirm.";
        fanout => is_fanout: bool = OFF, "Sends a cast to every server of the topic.";
        arguments: Vec<String> = list_not_empty(&text(Rule::NotEmpty))
            .otherwise("none: a call with positional arguments fails"),
            "Names for positional arguments, which oslo.messaging's methods do not have.";
        "context" = map(Rule::NotEmpty, &Kind::Json).otherwise("only the caller's, if disclosed"),
            "Fields added to the context of each call.";
        ..TIMEOUT => timeout: Duration;
        ..PENDING_MAX.about("Maximum number of pending calls. Another one fails.") => pending_max: usize;
        ..BODY_BYTES_MAX, HOPS_MAX, ERRORS;
        "tracebacks" = OFF, "Includes the server's traceback in errors.";
        ..IMPERSONATE => is_impersonator: bool;
        flat target: JointTarget;
        let method: Template = Template::default();
        let is_cast: bool = false;
        let context: Vec<(String, Json)> = Vec::new();
        let exceptions: Exceptions = Exceptions::default();
    }

    /// An oslo.messaging server whose methods are procedures.
    #[derive(Clone, Debug, PartialEq)]
    pub struct TargetToProcedure = static TARGET_TO_PROCEDURE(
        "workers[router].joints[target-to-procedure]", "a joint of a target to a procedure"
    ) {
        ..TYPE, JOINT_ID, REALM, ROLE;
        "procedure" = text(Rule::ExactUri).required(),
            "Procedure to call. `{method}` and `{namespace}` stand for those of the request.";
        ..VHOST, USER, TARGET_EXCHANGE, TARGET_TOPIC;
        "server" = text(Rule::NotEmpty).required(), "Name of the joint among the topic's servers.";
        ..NAMESPACE, VERSION, TARGET_DURABLE;
        ..TIMEOUT => timeout: Duration;
        ..PENDING_MAX.about(
            "Maximum number of pending calls. Further requests wait in their queues."
        ) => pending_max: usize;
        ..PREFETCH => prefetch: u16;
        ..BODY_BYTES_MAX, HOPS_MAX;
        context_argument: Option<String> = text(Rule::NotEmpty).optional(),
            "Name of a keyword argument that carries the caller's context.";
        ..PROPERTIES_ARGUMENT => properties_argument: Option<String>;
        ..ERRORS;
        flat target: JointTarget;
        let procedure: Template = Template::default();
        let exceptions: Exceptions = Exceptions::default();
    }

    /// A topic whose events are published to an exchange.
    #[derive(Clone, Debug, PartialEq)]
    pub struct TopicToExchange = static TOPIC_TO_EXCHANGE(
        "workers[router].joints[topic-to-exchange]", "a joint of a topic to an exchange"
    ) {
        ..TYPE, JOINT_ID, REALM, ROLE;
        topic: String = text(Rule::Uri).required(), "Topic that the joint subscribes to.";
        ..MATCH => match_policy: MatchPolicy;
        ..VHOST, USER, EXCHANGE, EXCHANGE_TYPE, DURABLE, DECLARE;
        "routing_key" = text(Rule::Any).or_text("{topic}"),
            "Routing key of the messages. `{topic}` stands for the event's topic, `{rest}` for the part behind the \
             prefix.";
        ..BODY => body: Body;
        persistent => is_persistent: bool = ON,
            "Publishes persistent messages, which survive a restart in durable queues.";
        ..BODY_BYTES_MAX, HOPS_MAX;
        ..IMPERSONATE => is_impersonator: bool;
        flat exchange: JointExchange;
        let routing_key: Template = Template::default();
    }

    /// An exchange whose messages become events of a topic.
    #[derive(Clone, Debug, PartialEq)]
    pub struct ExchangeToTopic = static EXCHANGE_TO_TOPIC(
        "workers[router].joints[exchange-to-topic]", "a joint of an exchange to a topic"
    ) {
        ..TYPE, JOINT_ID, REALM, ROLE;
        "topic" = text(Rule::ExactUri).required(),
            "Topic of the events. `{routing_key}` and `{exchange}` stand for those of the message.";
        ..VHOST, USER, EXCHANGE, EXCHANGE_TYPE, DURABLE, DECLARE;
        queue: Option<String> = text(Rule::ShortText).otherwise("a queue that is deleted with the joint"),
            "Name of a durable queue that keeps messages while the joint is not connected.";
        binding_keys: Vec<String> = list_not_empty(&text(Rule::Any)).otherwise("`#`"), "Binding keys of the queue.";
        ..BODY => body: Body;
        ..PREFETCH => prefetch: u16;
        ..BODY_BYTES_MAX, HOPS_MAX;
        ..PROPERTIES_ARGUMENT => properties_argument: Option<String>;
        flat exchange: JointExchange;
        let topic: Template = Template::default();
    }

    static ERROR("joints[].errors[]", "an error of a joint") {
        "uri" = text(Rule::ExactUri).required(), "WAMP URI of the error.";
        "exception" = text(Rule::PythonName).required(), "Python exception, as `package.module.Class`.";
    }
}
