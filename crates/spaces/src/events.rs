//! Events from the realm into a space, and calls of the procedures that convert payloads.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};
use std::time::Duration;

use crosstie_front::report::FAULTS;
use crosstie_mqtt::PropertiesBuf;
use crosstie_realms::mqtt::MqttEndpoint;
use crosstie_realms::resident::{Kept, Rooms};
use crosstie_wamp::{CallOptions, Payload, Serializer};
use tokio::sync::mpsc;

use crate::client::Client;
use crate::crossing::{Decoding, Dynamic, Encoding, Mapped, Used, mapped};
use crate::event::{Event, content};
use crate::figures::{Dropped, Figures};
use crate::payloads::{self, Arguments};
use crate::space::SharedSpace;

/// The payload of an event for MQTT clients.
pub(crate) enum Translated {
    Octets(Vec<u8>, PropertiesBuf),
    /// A procedure converts it.
    Later(Event, Dynamic),
}

/// Events that wait for an encoder.
const ENCODING_MAX: usize = 1_024;

/// Their size.
const ENCODING_BYTES_MAX: usize = 16 << 20;

/// Time between two looks at a space without a realm.
const UNUSED_CHECK: Duration = Duration::from_secs(60);

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

    /// Receives the events of the realm while it is there. Ends once the realm has gone and `is_unused` says that nobody
    /// can connect. Exactly one task runs this.
    pub(crate) async fn receive(self: Arc<Self>, is_unused: impl Fn() -> bool) {
        let mut comings = self.bridge.realms().comings();
        let mut number_last = None;
        while !self.is_over() {
            comings.mark_unchanged();
            let Some(home) = self.bridge.join() else {
                // The session may have been refused in a realm that goes on.
                let is_gone = !self.bridge.has_realm();
                if is_gone && number_last.take().is_some() {
                    self.forget_all();
                }
                if is_gone && is_unused() {
                    return;
                }
                let changed = tokio::time::timeout(UNUSED_CHECK, comings.changed()).await;
                if matches!(changed, Ok(Err(_))) {
                    return;
                }
                continue;
            };
            // A realm that was stopped and started in between is another one.
            if number_last
                .replace(home.number)
                .is_some_and(|last| last != home.number)
            {
                self.forget_all();
            }
            while let Some(is_more) = self.take_events() {
                crosstie_transport::uncork();
                match is_more {
                    true => tokio::task::yield_now().await,
                    false => home.mailbox.offered(|| false).await,
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

    /// Returns the number of messages that were sent.
    fn take_event(self: &Arc<Self>, event: Event) -> u32 {
        let Some(topic) = event.topic() else {
            return 0;
        };
        match self.translate(event) {
            Some(Translated::Octets(octets, properties)) => {
                self.deliver(&content(&topic, &properties, &octets))
            }
            Some(Translated::Later(event, dynamic)) => {
                self.encode_later(Encoding {
                    event,
                    topic,
                    dynamic,
                });
                0
            }
            None => 0,
        }
    }

    /// Converts an event for MQTT clients, unless it stays in WAMP.
    pub(crate) fn translate(&self, event: Event) -> Option<Translated> {
        let used = self.crossing.used.read().clone();
        let mapping = match mapped(&used.mapping, &event.uri) {
            Mapped::Natural => None,
            Mapped::By(mapping) => Some(mapping),
            Mapped::Not if used.without != 0 => None,
            Mapped::Not => {
                Figures::get().count_dropped(Dropped::Unmapped);
                return None;
            }
        };
        let dynamic = mapping.and_then(|mapping| Dynamic::of(mapping, self.bridge.realm()));
        match dynamic.filter(|_| !event.is_encoded()) {
            Some(dynamic) => Some(Translated::Later(event, dynamic)),
            None => {
                let octets = event.octets(mapping)?;
                Some(Translated::Octets(octets, event.properties))
            }
        }
    }

    fn encode_later(self: &Arc<Self>, one: Encoding) {
        let mut encoding = self.crossing.encoding.lock();
        let sender = encoding.get_or_insert_with(|| {
            let (sender, events) = mpsc::channel(ENCODING_MAX);
            let encoding = Self::encode(Arc::downgrade(self), events);
            self.bridge.realms().door.keeper().spawn(encoding);
            sender
        });
        let bytes = one.event.bytes();
        let waiting = &self.crossing.encoding_bytes;
        let is_too_much = waiting.load(Ordering::Relaxed) + bytes > ENCODING_BYTES_MAX;
        if is_too_much || sender.try_send(one).is_err() {
            return Figures::get().count_dropped(Dropped::Payload);
        }
        self.note_encoding(bytes as isize);
    }

    /// Puts the events that wait for an encoder on the account.
    fn note_encoding(&self, delta: isize) {
        let waiting = &self.crossing.encoding_bytes;
        let before = waiting.fetch_add(delta as usize, Ordering::Relaxed);
        self.encoding_kept.set(before.wrapping_add(delta as usize));
    }

    /// Converts one event after another, so that they keep their order, as long as the space is there.
    async fn encode(space: Weak<Self>, mut events: mpsc::Receiver<Encoding>) {
        while let Some(one) = events.recv().await
            && let Some(space) = space.upgrade()
        {
            match space.encoded(&one.event, &one.topic, &one.dynamic).await {
                Some(octets) => {
                    space.deliver(&content(&one.topic, &one.event.properties, &octets));
                }
                None => Figures::get().count_dropped(Dropped::Payload),
            }
            space.note_encoding(-(one.event.bytes() as isize));
            crosstie_transport::uncork();
        }
    }

    /// The payload that an encoder makes of an event.
    pub(crate) async fn encoded(
        &self,
        event: &Event,
        topic: &str,
        dynamic: &Dynamic,
    ) -> Option<Vec<u8>> {
        let arguments = payloads::for_encoder(topic, &event.uri, &event.payload())?;
        let answer = self
            .call(&dynamic.realm, &dynamic.encoder, &arguments)
            .await?;
        payloads::of_encoder(&payload(&answer))
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
        let (space, connection) = (Arc::clone(self), Arc::clone(&client.connection));
        let (uri, topic, octets) = (uri.to_owned(), topic.to_owned(), octets.to_vec());
        let slot = decoding.clone();
        // The copy, its encoded form, and the answer.
        let held = 3 * octets.len() as isize;
        connection.hold(held);
        self.bridge.realms().door.keeper().spawn(async move {
            let decoded = space.decoded(&dynamic, (&uri, &topic), &octets).await;
            *slot.0.lock() = Some(decoded);
            connection.hold(-held);
            connection.resume_reading();
        });
        decoding
    }

    /// The arguments that a decoder makes of a payload.
    pub(crate) async fn decoded(
        &self,
        dynamic: &Dynamic,
        (uri, topic): (&str, &str),
        octets: &[u8],
    ) -> Option<Arguments> {
        let arguments = payloads::for_decoder(uri, topic, octets)?;
        let answer = self
            .call(&dynamic.realm, &dynamic.decoder, &arguments)
            .await?;
        Arguments::of_decoder(&payload(&answer))
    }

    async fn call(&self, realm: &str, procedure: &str, arguments: &[u8]) -> Option<Kept> {
        let place = self.crossing.place(self.bridge.realms(), realm);
        let resident = place.resident().ok()?;
        let options = CallOptions {
            timeout_ms: CALL_MAX.as_millis() as u64,
            ..CallOptions::default()
        };
        let arguments = Payload::new(Serializer::Cbor, arguments, &[]);
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
    Payload::new(kept.serializer, &kept.args, &kept.kwargs)
}
