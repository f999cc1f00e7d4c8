//! The heartbeats that nodes exchange beside the log, as JSON objects.

use std::time::Duration;

use serde_json::{Value as Json, json};

/// A node's heartbeat: its state towards a vhost.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Beat {
    pub node: String,
    /// Changes at each start of the node.
    pub(super) incarnation: u64,
    pub(super) is_owner: bool,
    /// The owner is stopping: a ready node takes over at once.
    pub(super) is_leaving: bool,
    /// The node is ready to take over.
    pub(super) is_ready: bool,
    /// The node has followed the log.
    pub(super) is_warm: bool,
    /// The node's store holds the vhost's contents from before it was replicated.
    pub(super) is_holding: bool,
    /// With `is_leaving`: the node that shall take over and its deadline; any node if the name is empty.
    pub(super) handed: Option<(String, Duration)>,
    pub(super) epoch: u64,
    /// The id of the log that the node knows; 0 for none.
    pub(super) log: u64,
    /// The number of the last log entry that the node knows.
    pub(super) sequence: u64,
    /// The owner is subscribed to its term's probe subject.
    pub(super) answers: bool,
    /// The node reads a log in which a former owner's second append follows a claim.
    pub(super) passes_over: bool,
    /// The node reads a log with clearances: messages that are removed by the range of their places.
    pub(super) knows_clearances: bool,
    /// The address for connections from other nodes.
    pub address: String,
    /// The node that the owner wants to move the vhost to, and that shall catch up.
    pub(super) preparing: Option<String>,
    /// The epoch of the owner for whose move the node has built the vhost; 0 if it has not.
    pub(super) prepared: u64,
    /// The node prepares for moves; nodes of older versions do not.
    pub(super) prepares: bool,
    /// The node reads a log with settings.
    pub(super) reads_settings: bool,
}

impl Beat {
    pub(crate) fn encode(&self) -> Vec<u8> {
        // JSON numbers are exact up to 2^53 only.
        let number = |number: u64| format!("{number:016x}");
        let mut beat = json!({
            "node": self.node,
            "incarnation": number(self.incarnation),
            "owner": self.is_owner,
            "leaving": self.is_leaving,
            "ready": self.is_ready,
            "warm": self.is_warm,
            "holding": self.is_holding,
            "epoch": number(self.epoch),
            "log": number(self.log),
            "sequence": number(self.sequence),
            "address": self.address,
            "answers": self.answers,
            "passes_over": self.passes_over,
            "clearances": self.knows_clearances,
            "prepared": number(self.prepared),
            "prepares": self.prepares,
            "reads_settings": self.reads_settings,
        });
        if let Some(to) = &self.preparing {
            beat["preparing"] = to.as_str().into();
        }
        if let Some((to, within)) = &self.handed {
            beat["handed"] = json!({"to": to, "within_ms": within.as_millis() as u64});
        }
        beat.to_string().into_bytes()
    }

    /// `None` if the payload is not a heartbeat.
    pub(crate) fn decode(payload: &[u8]) -> Option<Self> {
        if payload.len() > BYTES_MAX {
            return None;
        }
        let json: Json = serde_json::from_slice(payload).ok()?;
        let number = |key: &str| u64::from_str_radix(json[key].as_str()?, 16).ok();
        let word = |key: &str| json[key].as_str().map(str::to_owned);
        let is_said = |key: &str| json[key].as_bool().unwrap_or_default();
        let handed = &json["handed"];
        let within = handed["within_ms"].as_u64().map(Duration::from_millis);
        Some(Self {
            node: word("node")?,
            incarnation: number("incarnation")?,
            is_owner: json["owner"].as_bool()?,
            is_leaving: json["leaving"].as_bool()?,
            is_ready: is_said("ready"),
            is_warm: is_said("warm"),
            is_holding: is_said("holding"),
            handed: handed["to"]
                .as_str()
                .map(str::to_owned)
                .zip(within.map(|within| within.min(HANDED_MAX))),
            epoch: number("epoch")?,
            log: number("log")?,
            sequence: number("sequence")?,
            address: word("address")?,
            // Nodes of older versions do not send these fields.
            answers: is_said("answers"),
            passes_over: is_said("passes_over"),
            knows_clearances: is_said("clearances"),
            preparing: word("preparing"),
            prepared: number("prepared").unwrap_or_default(),
            prepares: is_said("prepares"),
            reads_settings: is_said("reads_settings"),
        })
    }
}

/// Maximum deadline of a handover.
pub(super) const HANDED_MAX: Duration = Duration::from_secs(600);

/// Maximum size of a heartbeat: names and addresses are short.
const BYTES_MAX: usize = 4096;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_heartbeat_round_trips() {
        let beat = Beat {
            node: "n1/worker1".to_owned(),
            incarnation: u64::MAX,
            is_owner: true,
            is_leaving: false,
            is_ready: true,
            is_warm: false,
            is_holding: true,
            handed: Some(("n2".to_owned(), Duration::from_secs(3))),
            epoch: 3,
            log: 1 << 60,
            sequence: 7,
            answers: true,
            passes_over: true,
            knows_clearances: true,
            address: "10.0.0.1:25672".to_owned(),
            preparing: Some("n3".to_owned()),
            prepared: 2,
            prepares: true,
            reads_settings: true,
        };
        assert_eq!(Beat::decode(&beat.encode()), Some(beat.clone()));
        let mut encoded = String::from_utf8(beat.encode()).expect("it is JSON");
        for later in [
            "answers",
            "passes_over",
            "clearances",
            "preparing",
            "prepared",
            "prepares",
            "reads_settings",
        ] {
            encoded = encoded.replace(&format!("\"{later}\""), "\"unknown\"");
        }
        let older = Beat {
            answers: false,
            passes_over: false,
            knows_clearances: false,
            preparing: None,
            prepared: 0,
            prepares: false,
            reads_settings: false,
            ..beat
        };
        assert_eq!(Beat::decode(encoded.as_bytes()), Some(older));
        for wrong in [
            &b""[..],
            b"{}",
            b"[1]",
            b"{\"node\":\"n\",\"incarnation\":\"zz\"}",
        ] {
            assert_eq!(Beat::decode(wrong), None);
        }
        assert_eq!(Beat::decode(&[b' '; BYTES_MAX + 1]), None);
    }
}
