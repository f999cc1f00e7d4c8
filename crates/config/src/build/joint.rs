//! Joints between WAMP and AMQP, and checks of their realms, vhosts and cycles.

use crosstie_joints::{Exception, Exceptions, Template};
use crosstie_wamp::MatchPolicy;

use super::names::Names;
use super::{Builder, bound, text};
use crate::joint_circle::circle;
use crate::model::{
    Amqp, ExchangeToTopic, Joint, JointExchange, JointKind, JointTarget, ProcedureToTarget, Realm,
    TargetToProcedure, TopicToExchange,
};
use crate::plain::{Plain, Section};
use crate::problem::Problem;
use crate::tree::{Span, quoted};
use crate::view::View;

impl Builder<'_> {
    /// The joints of a router worker with these realms and this broker.
    pub(super) fn joints(
        &mut self,
        worker: View<'_>,
        realms: &[Realm],
        amqp: Option<&Amqp>,
    ) -> Vec<Joint> {
        let mut ids = Names::new("the joint id", "joint").of(worker.objects("joints"));
        let mut joints = Vec::new();
        let mut spans = Vec::new();
        for object in worker.objects("joints") {
            let id = ids.id(object, self.problems);
            let joint = self.joint(object, id);
            self.check_realm(object, &joint, realms);
            self.check_vhost(object, &joint, amqp);
            joints.push(joint);
            spans.push(object.span);
        }
        self.check_circles(&joints, &spans);
        joints
    }

    pub(crate) fn joint(&mut self, object: View<'_>, id: String) -> Joint {
        let kind = match object.text("type") {
            Some("procedure-to-target") => {
                JointKind::ProcedureToTarget(self.procedure_to_target(object))
            }
            Some("target-to-procedure") => {
                JointKind::TargetToProcedure(self.target_to_procedure(object))
            }
            Some("topic-to-exchange") => JointKind::TopicToExchange(self.topic_to_exchange(object)),
            _ => JointKind::ExchangeToTopic(self.exchange_to_topic(object)),
        };
        Joint {
            id,
            realm: text(object, "realm"),
            role: text(object, "role"),
            vhost: text(object, "vhost"),
            user: text(object, "user"),
            body_bytes_max: bound(object, "body_bytes_max"),
            hops_max: u32::read(object, "hops_max"),
            kind,
        }
    }

    fn procedure_to_target(&mut self, object: View<'_>) -> ProcedureToTarget {
        let match_policy = MatchPolicy::read(object, "match");
        let method = match (object.text("method"), match_policy) {
            (Some(_), _) => self.template(object, "method", &["procedure", "rest", "last"]),
            (None, MatchPolicy::Prefix) => standard("{rest}"),
            (None, _) => standard("{last}"),
        };
        let is_cast = object.text("mode") == Some("cast");
        let is_fanout = object.boolean("fanout");
        if is_fanout && !is_cast {
            let message = "\"fanout\" needs the \"mode\" \"cast\": nobody could say which server's answer is the \
                           one";
            self.error(object, "fanout", message);
        }
        if is_fanout && object.given("server").is_some() {
            let message = "\"server\" has no effect with \"fanout\"";
            self.warn(object, "server", message);
        }
        ProcedureToTarget {
            method,
            is_cast,
            context: context(object),
            exceptions: self.exceptions(object, object.boolean("tracebacks")),
            ..ProcedureToTarget::read(object)
        }
    }

    fn target_to_procedure(&mut self, object: View<'_>) -> TargetToProcedure {
        TargetToProcedure {
            procedure: self.template(object, "procedure", &["method", "namespace"]),
            exceptions: self.exceptions(object, false),
            ..TargetToProcedure::read(object)
        }
    }

    fn topic_to_exchange(&mut self, object: View<'_>) -> TopicToExchange {
        TopicToExchange {
            routing_key: self.template(object, "routing_key", &["topic", "rest"]),
            ..TopicToExchange::read(object)
        }
    }

    fn exchange_to_topic(&mut self, object: View<'_>) -> ExchangeToTopic {
        let mut joint = ExchangeToTopic::read(object);
        joint.topic = self.template(object, "topic", &["routing_key", "exchange"]);
        if joint.binding_keys.is_empty() {
            joint.binding_keys.push("#".to_owned());
        }
        joint
    }

    fn template(&mut self, object: View<'_>, name: &str, known: &[&str]) -> Template {
        let text = object.text(name).unwrap_or_default();
        match Template::parse(text, known) {
            Ok(template) => template,
            Err(e) => {
                self.error(object, name, format!("{} has {e}", quoted(name)));
                standard("")
            }
        }
    }

    fn exceptions(&mut self, object: View<'_>, passes_tracebacks: bool) -> Exceptions {
        let mut uris = Names::new("the error", "");
        let mut classes = Names::new("the exception", "");
        let mut named = Vec::new();
        for error in object.objects("errors") {
            let (uri, exception) = (text(error, "uri"), text(error, "exception"));
            uris.take(&uri, error.span_of("uri"), self.problems);
            classes.take(&exception, error.span_of("exception"), self.problems);
            let (module, class) = exception.rsplit_once('.').unwrap_or(("", &exception));
            named.push(Exception {
                uri,
                module: module.to_owned(),
                class: class.to_owned(),
            });
        }
        Exceptions {
            named,
            passes_tracebacks,
        }
    }

    /// Whether its worker has the realm and the role.
    fn check_realm(&mut self, object: View<'_>, joint: &Joint, realms: &[Realm]) {
        let Some(realm) = realms.iter().find(|realm| realm.name == joint.realm) else {
            let realm = quoted(&joint.realm);
            let message = format!("this router worker has no realm {realm}");
            return self.error(object, "realm", message);
        };
        if realm.roles.iter().all(|role| role.name != joint.role) {
            let (realm, role) = (quoted(&realm.name), quoted(&joint.role));
            let message = format!("the realm {realm} of this router worker has no role {role}");
            self.error(object, "role", message);
        }
    }

    /// Whether its worker has AMQP, the vhost and a user who may be there.
    fn check_vhost(&mut self, object: View<'_>, joint: &Joint, amqp: Option<&Amqp>) {
        let Some(amqp) = amqp else {
            let message = "this router worker has no AMQP: a joint needs a transport of the type \"amqp\", or the \
                           key \"amqp\"";
            return self.error(object, "type", message);
        };
        // The users and vhosts of definitions are known only at the start.
        if amqp.definitions.is_some() {
            return;
        }
        let (user, vhost) = (quoted(&joint.user), quoted(&joint.vhost));
        let Some(found) = amqp.vhosts.iter().find(|known| known.name == joint.vhost) else {
            let message = format!("this router worker has no vhost {vhost}");
            return self.error(object, "vhost", message);
        };
        let Some(known) = amqp.users.iter().find(|known| known.name == joint.user) else {
            let message = format!("there is no AMQP user {user} in this worker");
            return self.error(object, "user", message);
        };
        if found.permissions.iter().all(|one| one.user != joint.user) {
            let message = format!("the AMQP user {user} has no permissions in the vhost {vhost}");
            return self.error(object, "user", message);
        }
        let impersonates = match &joint.kind {
            JointKind::ProcedureToTarget(joint) => joint.is_impersonator,
            JointKind::TopicToExchange(joint) => joint.is_impersonator,
            _ => false,
        };
        if impersonates && known.tags.iter().all(|tag| tag != "impersonator") {
            let message =
                format!("\"impersonate\" needs the tag \"impersonator\" of the user {user}");
            self.error(object, "impersonate", message);
        }
    }

    /// Reports cycles of joints, in which a message would return to its origin.
    fn check_circles(&mut self, joints: &[Joint], spans: &[Span]) {
        if let Some((first, message)) = circle(joints) {
            self.problems.push(Problem::error(spans[first], message));
        }
    }
}

impl Section for JointTarget {
    fn read(object: View<'_>) -> Self {
        Self {
            exchange: text(object, "exchange"),
            topic: text(object, "topic"),
            server: Option::read(object, "server"),
            namespace: Option::read(object, "namespace"),
            version: Option::read(object, "version"),
            is_durable: object.boolean("durable"),
        }
    }
}

impl Section for JointExchange {
    fn read(object: View<'_>) -> Self {
        Self {
            name: text(object, "exchange"),
            kind: text(object, "exchange_type"),
            is_durable: object.boolean("durable"),
            is_declared: object.boolean("declare"),
        }
    }
}

fn context(object: View<'_>) -> Vec<(String, crate::model::Json)> {
    let fields = object.json("context").as_object().cloned();
    fields.into_iter().flatten().collect()
}

/// A built-in template.
fn standard(text: &str) -> Template {
    let known = ["procedure", "rest", "last", "topic"];
    Template::parse(text, &known).unwrap_or_default()
}
