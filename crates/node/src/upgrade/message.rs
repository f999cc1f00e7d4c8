//! The messages between a node's process and its successor, as JSON.
//!
//! ```text
//!  former process                     successor
//!   hello, sockets, lock, all ──────▶  reads and checks its configuration
//!                             ◀──────  prepared
//!   accept ─────────────────────────▶  starts the routers without a store
//!   its clients leave these   ◀──────  accepting
//!   closes the other routers
//!   serve ──────────────────────────▶  starts them, and opens their stores
//!                             ◀──────  serving
//!   keep ───────────────────────────▶  owns the node's files
//!                             ◀──────  kept
//!   tells the service manager
//!   announced, ends ────────────────▶  starts containers and guests
//! ```
//!
//! `failed` may come in the place of each answer. A successor whose former process is gone goes on by itself. Fields and
//! messages may be added; a message that the successor does not know is an error there.

use serde_json::{Value, json};

/// The version of this protocol. A successor that does not speak it fails.
pub(crate) const PROTOCOL: u64 = 1;

/// Maximum length of a reason.
const REASON_CHARACTERS_MAX: usize = 4_000;

/// A message of the former process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Order {
    Hello {
        protocol: u64,
        version: String,
        pid: u64,
        /// The limit of descriptors for the node's children.
        children_descriptors: Option<u64>,
    },
    /// With a listening socket.
    Socket {
        name: String,
    },
    /// With a listening socket of the service manager.
    Handed {
        name: String,
    },
    /// With the locked process id file.
    Lock,
    /// All descriptors have been sent.
    All,
    Accept,
    Serve,
    Keep,
    Announced,
}

/// A message of the successor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Said {
    Prepared { version: String },
    Accepting,
    Serving,
    Kept,
    Failed { why: String },
}

impl Order {
    pub(crate) fn text(&self) -> String {
        let value = match self {
            Self::Hello {
                protocol,
                version,
                pid,
                children_descriptors,
            } => json!({
                "is": "hello",
                "protocol": protocol,
                "version": version,
                "pid": pid,
                "children_descriptors": children_descriptors,
            }),
            Self::Socket { name } => json!({"is": "socket", "name": name}),
            Self::Handed { name } => json!({"is": "handed", "name": name}),
            Self::Lock => json!({"is": "lock"}),
            Self::All => json!({"is": "all"}),
            Self::Accept => json!({"is": "accept"}),
            Self::Serve => json!({"is": "serve"}),
            Self::Keep => json!({"is": "keep"}),
            Self::Announced => json!({"is": "announced"}),
        };
        value.to_string()
    }

    pub(crate) fn parse(text: &str) -> Option<Self> {
        let value: Value = serde_json::from_str(text).ok()?;
        let name = || word(&value, "name");
        Some(match value.get("is")?.as_str()? {
            "hello" => Self::Hello {
                protocol: value.get("protocol")?.as_u64()?,
                version: word(&value, "version")?,
                pid: value.get("pid")?.as_u64()?,
                children_descriptors: value.get("children_descriptors").and_then(Value::as_u64),
            },
            "socket" => Self::Socket { name: name()? },
            "handed" => Self::Handed { name: name()? },
            "lock" => Self::Lock,
            "all" => Self::All,
            "accept" => Self::Accept,
            "serve" => Self::Serve,
            "keep" => Self::Keep,
            "announced" => Self::Announced,
            _ => return None,
        })
    }
}

impl Said {
    pub(crate) fn text(&self) -> String {
        let value = match self {
            Self::Prepared { version } => json!({"is": "prepared", "version": version}),
            Self::Accepting => json!({"is": "accepting"}),
            Self::Serving => json!({"is": "serving"}),
            Self::Kept => json!({"is": "kept"}),
            Self::Failed { why } => {
                let why: String = why.chars().take(REASON_CHARACTERS_MAX).collect();
                json!({"is": "failed", "why": why})
            }
        };
        value.to_string()
    }

    pub(crate) fn parse(text: &str) -> Option<Self> {
        let value: Value = serde_json::from_str(text).ok()?;
        Some(match value.get("is")?.as_str()? {
            "prepared" => Self::Prepared {
                version: word(&value, "version")?,
            },
            "accepting" => Self::Accepting,
            "serving" => Self::Serving,
            "kept" => Self::Kept,
            "failed" => Self::Failed {
                why: word(&value, "why")?,
            },
            _ => return None,
        })
    }
}

fn word(value: &Value, key: &str) -> Option<String> {
    value.get(key)?.as_str().map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_read_as_they_were_written() {
        let name = || "worker1/tcp".to_owned();
        let hello = |children_descriptors| Order::Hello {
            protocol: PROTOCOL,
            version: "0.2.0".to_owned(),
            pid: 4711,
            children_descriptors,
        };
        for order in [
            hello(None),
            hello(Some(1024)),
            Order::Socket { name: name() },
            Order::Handed { name: name() },
            Order::Lock,
            Order::All,
            Order::Accept,
            Order::Serve,
            Order::Keep,
            Order::Announced,
        ] {
            assert_eq!(Order::parse(&order.text()), Some(order));
        }
        for said in [
            Said::Prepared {
                version: "0.2.0".to_owned(),
            },
            Said::Accepting,
            Said::Serving,
            Said::Kept,
            Said::Failed {
                why: "port\n\"taken\"".to_owned(),
            },
        ] {
            assert_eq!(Said::parse(&said.text()), Some(said));
        }
    }

    #[test]
    fn other_messages_are_none() {
        for text in [
            "",
            "hello",
            "{}",
            "[]",
            r#"{"is": 1}"#,
            r#"{"is": "socket"}"#,
            r#"{"is": "failed"}"#,
            r#"{"is": "prepared", "version": 2}"#,
            r#"{"is": "hello", "protocol": -1, "version": "1"}"#,
            "\u{fffd}",
        ] {
            assert_eq!(
                (Order::parse(text), Said::parse(text)),
                (None, None),
                "{text}"
            );
        }
        let more = r#"{"is": "serving", "later": true}"#;
        assert_eq!(Said::parse(more), Some(Said::Serving));
    }

    #[test]
    fn a_long_reason_is_cut() {
        let why = "é".repeat(100_000);
        let text = Said::Failed { why }.text();
        assert!(text.len() < 64 << 10, "{}", text.len());
    }
}
