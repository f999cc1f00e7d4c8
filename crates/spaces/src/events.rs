//! Events from the realm into a space, and calls of the procedures that convert payloads.

use std::sync::Arc;
use std::time::Duration;

use crosstie_front::report::FAULTS;
use crosstie_realms::mqtt::MqttEndpoint;
use crosstie_realms::resident::{Kept, Rooms};
use crosstie_wamp::{CallOptions, Payload, Serializer};
use tokio::sync::mpsc;

use crate::client::Client;
use crate::crossing::{Decoding, Dynamic, Mapped, Used, mapped};
use crate::event::{Event, content};
use crate::figures::{Dropped, Figures};
use crate::payloads::{self, Arguments};
use crate::space::SharedSpace;

/// Events that wait for an encoder.
const ENCODING_MAX: usize = 1_024;

/// Time for an encoder's or a decoder's answer.
const CALL_MAX: Duration = Duration::from_secs(10);

impl SharedSpace {
    /// Applies the conversions of an endpoint to events. With one that has none, the built-in rules apply to URIs without a
    /// prefix.
    pub(crate) fn use_mapping(&self, endpoint: &Arc<MqttEndpoint>) {
        let address = Arc::as_ptr(endpoint) as usize;
        let mapping = &endpoint.options.mapping;
        let used = |used: &Used| match mapping.is_empty() {
            true => used.without == address,
            false => used.with == address,
        };
        if used(&self.crossing.used.read()) {
            return;
        }
        let mut used = self.crossing.used.write();
        match mapping.is_empty() {
            true => used.without = address,
            false => {
                used.with = address;
                used.mapping = Arc::new(mapping.clone());
            }
        }
    }

    /// Receives the events of the realm, whenever it is there. Exactly one task runs this.
    pub(crate) async fn receive(self: Arc<Self>) {
        let mut comings = self.bridge.realms().comings();
        while !self.is_over() {
            comings.mark_unchanged();
            let Some(mailbox) = self.bridge.join() else {
                if comings.changed().await.is_err() {
                    return;
                }
                continue;
            };
            while let Some(is_more) = self.take_events() {
                crosstie_transport::uncork();
                match is_more {
                    true => tokio::task::yield_now().await,
                    false => mailbox.offered(|| false).await,
                }
            }
            crosstie_transport::uncork();
            tokio::task::yield_now().await;
        }
    }

    /// Delivers the events that have come. Returns whether more may wait, or nothing without a session in the realm.
    pub(crate) fn take_events(self: &Arc<Self>) -> Option<bool> {
        self.bridge.read(|event| self.take_event(event))
    }

    fn take_event(self: &Arc<Self>, event: Event) {
        let Some(topic) = event.topic() else {
            return;
        };
        let used = self.crossing.used.read().clone();
        let mapping = match mapped(&used.mapping, &event.uri) {
            Mapped::Natural => None,
            Mapped::By(mapping) => Some(mapping),
            Mapped::Not if used.without != 0 => None,
            Mapped::Not => return Figures::get().count_dropped(Dropped::Unmapped),
        };
        let dynamic = mapping.and_then(|mapping| Dynamic::of(mapping, self.bridge.realm()));
        match dynamic.filter(|_| !event.is_encoded()) {
            Some(dynamic) => self.encode_later(event, topic, dynamic),
            None => {
                if let Some(octets) = event.octets(mapping) {
                    self.deliver_octets(&topic, &octets, event.is_retained);
                }
            }
        }
    }

    fn deliver_octets(&self, topic: &str, octets: &[u8], is_retained: bool) {
        let content = content(topic, octets, is_retained);
        match is_retained {
            true => self.retain(&content),
            false => self.deliver(&content),
        }
    }

    fn encode_later(self: &Arc<Self>, event: Event, topic: String, dynamic: Dynamic) {
        let mut encoding = self.crossing.encoding.lock();
        let sender = encoding.get_or_insert_with(|| {
            let (sender, events) = mpsc::channel(ENCODING_MAX);
            let encoding = Arc::clone(self).encode(events);
            self.bridge.realms().door.keeper().spawn(encoding);
            sender
        });
        if sender.try_send((event, topic, dynamic)).is_err() {
            Figures::get().count_dropped(Dropped::Payload);
        }
    }

    /// Converts one event after another, so that they keep their order.
    async fn encode(self: Arc<Self>, mut events: mpsc::Receiver<(Event, String, Dynamic)>) {
        while let Some((event, topic, dynamic)) = events.recv().await {
            let arguments = payloads::for_encoder(&topic, &event.uri, &event.payload());
            let answer = match arguments {
                Some(arguments) => {
                    self.call(&dynamic.realm, &dynamic.encoder, &arguments)
                        .await
                }
                None => None,
            };
            let octets = answer.and_then(|answer| payloads::of_encoder(&payload(&answer)));
            match octets {
                Some(octets) => self.deliver_octets(&topic, &octets, event.is_retained),
                None => Figures::get().count_dropped(Dropped::Payload),
            }
            crosstie_transport::uncork();
        }
    }

    /// Has a payload converted. The client is not read until that is done.
    pub(crate) fn decode(
        self: &Arc<Self>,
        client: &Arc<Client>,
        dynamic: Dynamic,
        (uri, topic): (&str, &str),
        octets: &[u8],
    ) -> Decoding {
        let decoding = Decoding::default();
        client.connection.pause_reading();
        let arguments = payloads::for_decoder(uri, topic, octets);
        let (space, connection) = (Arc::clone(self), Arc::clone(&client.connection));
        let slot = decoding.clone();
        self.bridge.realms().door.keeper().spawn(async move {
            let answer = match arguments {
                Some(arguments) => {
                    space
                        .call(&dynamic.realm, &dynamic.decoder, &arguments)
                        .await
                }
                None => None,
            };
            let decoded = answer.and_then(|answer| Arguments::of_decoder(&payload(&answer)));
            *slot.0.lock() = Some(decoded);
            connection.resume_reading();
        });
        decoding
    }

    async fn call(&self, realm: &str, procedure: &str, arguments: &[u8]) -> Option<Kept> {
        let place = self.crossing.place(self.bridge.realms(), realm);
        let resident = place.resident().ok()?;
        let options = CallOptions {
            timeout_ms: CALL_MAX.as_millis() as u64,
            ..CallOptions::default()
        };
        let arguments = Payload {
            serializer: Serializer::Cbor,
            args: arguments,
            kwargs: &[],
        };
        let call = resident.call(procedure, options, arguments);
        let answered = tokio::time::timeout(CALL_MAX, call).await.ok()?;
        answered
            .inspect_err(|failed| {
                if FAULTS.may_log() {
                    tracing::warn!("{procedure}, which converts payloads of MQTT: {failed}");
                }
            })
            .ok()
    }
}

fn payload(kept: &Kept) -> Payload<'_> {
    Payload {
        serializer: kept.serializer,
        args: &kept.args,
        kwargs: &kept.kwargs,
    }
}
