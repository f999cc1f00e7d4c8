//! MQTT on listeners.

use super::Builder;
use super::transport::Place;
use crate::catalogue::mqtt::PAYLOAD_SERIALIZERS;
use crate::model::{Mqtt, MqttOptions, PayloadMapping, Serializer, Transport};
use crate::plain::Section;
use crate::problem::Problem;
use crate::tree::quoted;
use crate::view::View;

impl Builder<'_> {
    /// Checks that the listeners of a realm do not convert payloads differently: an event is converted once, for all their
    /// clients.
    pub(super) fn check_mappings(&mut self, worker: View<'_>, transports: &[Transport]) {
        let mut known: Vec<&MqttOptions> = Vec::new();
        for (view, transport) in worker.objects("transports").zip(transports) {
            for mqtt in transport.kind.mqtt() {
                let options = &mqtt.options;
                if options.vhost.is_some() && worker.given("amqp").is_none() {
                    let message =
                        "\"vhost\" of MQTT needs the worker's \"amqp\", which has the vhosts";
                    self.problems
                        .push(Problem::error(view.span, message.to_owned()));
                }
                if options.mapping.is_empty() {
                    continue;
                }
                let Some(other) = known.iter().find(|other| other.realm == options.realm) else {
                    known.push(options);
                    continue;
                };
                if other.mapping != options.mapping {
                    let realm = quoted(options.realm());
                    let message = format!(
                        "another transport with MQTT of realm {realm} has another \"payload_mapping\""
                    );
                    self.problems.push(Problem::error(view.span, message));
                }
            }
        }
    }

    /// Checks that the topics have one home, and that the other keys are those of that home.
    fn check_home(&mut self, options: View<'_>, read: &MqttOptions) {
        let (home, others): (_, &[&str]) = match (&read.realm, &read.vhost) {
            (Some(_), None) => (
                "realm",
                &[
                    "exchange",
                    "prefetch",
                    "anonymous_user",
                    "certificate_login",
                ],
            ),
            (None, Some(_)) => (
                "vhost",
                &["auth", "payload_mapping", "role", "topic_aliases_max"],
            ),
            (Some(_), Some(_)) => {
                let message = "expected \"realm\" or \"vhost\", got both";
                return self.error(options, "vhost", message);
            }
            (None, None) => {
                let message = "expected \"realm\" or \"vhost\", got neither";
                return self
                    .problems
                    .push(Problem::error(options.span, message.to_owned()));
            }
        };
        for other in others {
            if options.given(other).is_some() {
                let message = format!("{} has no effect with {}", quoted(other), quoted(home));
                self.error(options, other, message);
            }
        }
    }

    /// MQTT by an object with `options`.
    pub(super) fn mqtt(&mut self, object: View<'_>, place: Place<'_>) -> Mqtt {
        let options = object.section("options");
        let auth = options.section("auth");
        for method in ["cookie", "cryptosign", "wampcra"] {
            if auth.given(method).is_some() {
                let message = format!(
                    "{} has no effect: MQTT clients send a password, a certificate or SCRAM's proof",
                    quoted(method)
                );
                self.warn(auth, method, &message);
            }
        }
        let read = MqttOptions::read(options);
        self.check_home(options, &read);
        if read.certificate_login && !place.sees_certificates {
            let message = "\"certificate_login\" needs \"ca_certificates\" in the endpoint's \"tls\": \
                           without them no client shows a certificate";
            self.error(options, "certificate_login", message);
        }
        if let Some(realms) = place.realms()
            && let Some(name) = &read.realm
            && !realms.iter().any(|realm| realm.name == *name)
        {
            let message = format!("the worker has no realm {}", quoted(name));
            self.error(options, "realm", message);
        }
        let mapping = options
            .map("payload_mapping")
            .map(|(prefix, mapping)| (prefix.to_owned(), payload_mapping(mapping)));
        Mqtt {
            auth: self.auth_at(options, place),
            options: MqttOptions {
                mapping: mapping.collect(),
                ..read
            },
        }
    }
}

fn payload_mapping(mapping: View<'_>) -> PayloadMapping {
    let text = |key| mapping.text(key).unwrap_or_default().to_owned();
    match mapping.text("type") {
        Some("dynamic") => PayloadMapping::Dynamic {
            realm: mapping.text("realm").map(str::to_owned),
            encoder: text("encoder"),
            decoder: text("decoder"),
        },
        Some("native") => {
            let named = mapping
                .text("serializer")
                .filter(|name| PAYLOAD_SERIALIZERS.words.contains(name));
            let serializer = named.and_then(Serializer::from_name);
            PayloadMapping::Native(serializer.unwrap_or(Serializer::Json))
        }
        _ => PayloadMapping::Passthrough,
    }
}
