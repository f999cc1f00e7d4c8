//! One key that differs between two configurations.

use std::fmt;

use crate::catalogue::Effect;
use crate::model::Json;
use crate::secrets::blanked;
use crate::tree::{Node, Value, quoted};

/// One key that differs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// The way to the key, such as `workers[worker1].realms[realm1].roles[frontend].limits.sessions_max`.
    pub path: String,
    pub kind: ChangeKind,
    pub effect: Effect,
    /// The former value, if it is short and no secret.
    pub from: Option<String>,
    /// The newer value, likewise.
    pub to: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChangeKind {
    Added,
    Changed,
    Removed,
}

impl ChangeKind {
    pub fn word(self) -> &'static str {
        match self {
            Self::Added => "added",
            Self::Changed => "changed",
            Self::Removed => "removed",
        }
    }
}

impl Change {
    /// The change as JSON, for programs.
    pub fn to_json(&self) -> Json {
        let effect = match self.effect {
            Effect::AtOnce => "at_once",
            Effect::NewSessions => "new_sessions",
            Effect::Restart => "restart",
        };
        serde_json::json!({
            "key": self.path,
            "change": self.kind.word(),
            "effect": effect,
            "from": self.from,
            "to": self.to,
        })
    }
}

/// `changed workers[worker1].options.threads from 2 to 4: needs a restart`.
impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.kind.word(), self.path)?;
        if let Some(from) = &self.from {
            write!(f, " from {from}")?;
        }
        if let Some(to) = &self.to {
            write!(f, " to {to}")?;
        }
        write!(f, ": {}", self.effect.words())
    }
}

/// A value as a change shows it; `None` if it is long, or a secret.
pub(super) fn shown(node: &Node, is_secret: bool) -> Option<String> {
    match &node.value {
        _ if is_secret => None,
        Value::List(_) | Value::Object(_) => None,
        Value::Text(text) => Some(quoted(&blanked(text))),
        _ => Some(node.to_json().to_string()),
    }
}
