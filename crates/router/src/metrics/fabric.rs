//! The metrics of realms on several nodes.

use std::sync::Arc;

use crosstie_fabric::{Cause, Counts, Kind, Refusal, State};
use crosstie_realms::fabric::port::FabricPort;
use crosstie_routing::RealmCounts;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

type Labels<const N: usize> = [(&'static str, String); N];
type Gauges<const N: usize> = Family<Labels<N>, Gauge>;
type Counters<const N: usize> = Family<Labels<N>, Counter>;

#[derive(Default)]
struct Families {
    attached: Gauges<2>,
    neighbours: Gauges<3>,
    interests: Gauges<2>,
    frames: Counters<4>,
    bytes: Counters<3>,
    refused: Counters<3>,
    overdelivered: Counters<2>,
    duplicates: Counters<2>,
    dropped: Counters<2>,
    barriers: Counters<2>,
    barrier_seconds: Family<Labels<2>, Counter<f64, std::sync::atomic::AtomicU64>>,
    attachments: Counters<2>,
    pairs: Gauges<2>,
    calls: Gauges<2>,
    registrations: Gauges<2>,
    resets: Counters<3>,
    offers_refused: Counters<2>,
    questions: Gauges<2>,
    answers_partial: Counters<2>,
    sessions_known: Gauges<2>,
    ends_unknown: Counters<2>,
    testaments: Gauges<2>,
    testaments_refused: Counters<2>,
    retained_refused: Counters<2>,
    claims: Counters<3>,
    denied: Gauges<2>,
    denials: Counters<3>,
}

/// Registers the metrics of realms on several nodes, by worker.
pub(crate) fn register<'w>(
    registry: &mut Registry,
    ports: impl Iterator<Item = (&'w str, Arc<FabricPort>, RealmCounts)>,
) {
    let families = Families::default();
    for (worker, port, counts) in ports {
        families.add(worker, &port, &counts);
    }
    families.register(registry);
}

impl Families {
    fn add(&self, worker: &str, port: &FabricPort, held: &RealmCounts) {
        let seen = port.seen();
        let counts = &seen.counts;
        let of_port = || [("worker", worker.to_owned()), ("realm", port.realm.clone())];
        let with = |name: &'static str, value: &str| {
            let [worker, realm] = of_port();
            [worker, realm, (name, value.to_owned())]
        };
        let is_attached = i64::from(seen.state == State::Attached);
        self.attached.get_or_create(&of_port()).set(is_attached);
        for (state, count) in [
            ("active", seen.nodes.len()),
            ("suspected", seen.suspected),
            ("refused", seen.strangers.len()),
        ] {
            let neighbours = self.neighbours.get_or_create(&with("state", state));
            neighbours.set(count as i64);
        }
        for (family, count) in [
            (&self.pairs, seen.pairs),
            (&self.calls, held.calls_across),
            (&self.registrations, held.registrations_elsewhere),
            (&self.questions, held.questions),
            (&self.sessions_known, held.sessions_known),
            (&self.testaments, held.testaments_entrusted),
        ] {
            family.get_or_create(&of_port()).set(count as i64);
        }
        for (cause, count) in Cause::ALL.into_iter().zip(counts.resets) {
            let labels = with("cause", cause.name());
            self.resets.get_or_create(&labels).inc_by(count);
        }
        let denied = i64::from(seen.is_denied) + seen.interests_denied as i64;
        self.denied.get_or_create(&of_port()).set(denied);
        for (operation, count) in ["publish", "subscribe"].into_iter().zip(counts.denied) {
            let labels = with("operation", operation);
            self.denials.get_or_create(&labels).inc_by(count);
        }
        let interests = self.interests.get_or_create(&of_port());
        interests.set(seen.interests as i64);
        self.add_frames(&of_port(), counts);
        for (cause, count) in Refusal::ALL.into_iter().zip(counts.refused) {
            let labels = with("cause", cause.name());
            self.refused.get_or_create(&labels).inc_by(count);
        }
        for (outcome, count) in ["refused", "granted"].into_iter().zip(seen.grants) {
            let labels = with("outcome", outcome);
            self.claims.get_or_create(&labels).inc_by(count);
        }
        for (family, count) in [
            (&self.overdelivered, seen.overdelivered),
            (&self.duplicates, counts.duplicates),
            (&self.dropped, counts.dropped),
            (&self.barriers, counts.barriers),
            (&self.attachments, counts.attachments),
            (&self.offers_refused, seen.offers_refused),
            (&self.answers_partial, seen.answers_partial),
            (&self.ends_unknown, seen.ends_unknown),
            (&self.testaments_refused, seen.testaments_refused),
            (&self.retained_refused, seen.retained_refused),
        ] {
            family.get_or_create(&of_port()).inc_by(count);
        }
        let seconds = counts.barrier_us as f64 / 1e6;
        let barrier_seconds = self.barrier_seconds.get_or_create(&of_port());
        barrier_seconds.inc_by(seconds);
    }

    fn add_frames(&self, of_port: &Labels<2>, counts: &Counts) {
        for (direction, frames, bytes) in [
            ("sent", &counts.sent, counts.sent_bytes),
            ("received", &counts.received, counts.received_bytes),
        ] {
            let [worker, realm] = of_port.clone();
            let direction = ("direction", direction.to_owned());
            for (kind, count) in Kind::ALL.into_iter().zip(frames) {
                let kind = ("kind", kind.name().to_owned());
                let labels = [worker.clone(), realm.clone(), direction.clone(), kind];
                self.frames.get_or_create(&labels).inc_by(*count);
            }
            let labels = [worker, realm, direction];
            self.bytes.get_or_create(&labels).inc_by(bytes);
        }
    }

    fn register(self, registry: &mut Registry) {
        let help = "1 while the realm's other nodes can be reached";
        registry.register("fabric_attached", help, self.attached);
        let help = "Other nodes of the realm, by state";
        registry.register("fabric_neighbours", help, self.neighbours);
        let help = "Subjects that the node needs and NATS denies; also 1 if it denies what every node needs";
        registry.register("fabric_denied", help, self.denied);
        let help = "Denials by NATS, by operation";
        registry.register("fabric_denials", help, self.denials);
        let help = "Subjects to which the node has subscribed for events";
        registry.register("fabric_interests", help, self.interests);
        let help = "Frames between nodes, by direction and kind";
        registry.register("fabric_frames", help, self.frames);
        let help = "Bytes of frames between nodes, by direction";
        registry.register("fabric_bytes", help, self.bytes);
        let help = "Messages from NATS that were rejected, by cause";
        registry.register("fabric_frames_refused", help, self.refused);
        let help = "Events from other nodes that no subscription matched";
        registry.register("fabric_events_overdelivered", help, self.overdelivered);
        let help = "Events from other nodes that had arrived already";
        registry.register("fabric_events_duplicate", help, self.duplicates);
        let help = "Events for other nodes dropped because too many bytes waited for NATS";
        registry.register("fabric_events_dropped", help, self.dropped);
        let help = "Times that all other nodes confirmed this node's subscriptions";
        registry.register("fabric_barriers", help, self.barriers);
        let help = "Total duration of these confirmations";
        registry.register("fabric_barrier_seconds", help, self.barrier_seconds);
        let help = "Connections to NATS servers";
        registry.register("fabric_attachments", help, self.attachments);
        let help = "Other nodes with which this node exchanges calls";
        registry.register("fabric_pairs", help, self.pairs);
        let help = "Open calls between this node and others";
        registry.register("fabric_calls", help, self.calls);
        let help = "Registrations announced by other nodes";
        registry.register("fabric_registrations", help, self.registrations);
        let help = "Times that all calls with another node ended, by cause";
        registry.register("fabric_pair_resets", help, self.resets);
        let help = "Meta API requests to other nodes without an answer";
        registry.register("fabric_questions", help, self.questions);
        let help = "Meta API answers without the part of a node";
        registry.register("fabric_answers_partial", help, self.answers_partial);
        let help = "Sessions of other nodes whose end a subscriber here receives";
        registry.register("fabric_sessions_known", help, self.sessions_known);
        let help = "Sessions, registrations and subscriptions of other nodes beyond the bound: their end is not announced";
        registry.register("fabric_ends_unknown", help, self.ends_unknown);
        let help = "Testaments of other nodes' sessions, to be published if their node dies";
        registry.register("fabric_testaments", help, self.testaments);
        let help = "Testaments of other nodes' sessions beyond the bound";
        registry.register("fabric_testaments_refused", help, self.testaments_refused);
        let help = "Retained events of other nodes that were rejected";
        registry.register("fabric_retained_refused", help, self.retained_refused);
        let help = "Grants of single-callee procedures requested from JetStream, by outcome";
        registry.register("fabric_claims", help, self.claims);
        let help = "Registrations of other nodes that were rejected";
        registry.register("fabric_registrations_refused", help, self.offers_refused);
    }
}
