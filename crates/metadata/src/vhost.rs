//! What a vhost has beside its name.

use serde_json::{Value as Json, json};

use crate::Refusal;
use crate::body::Body;

/// Description and tags of a vhost, which have no effect on it, and the type of queues that are declared without one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct VhostAbout {
    pub description: String,
    pub tags: Vec<String>,
    /// `None`: classic.
    pub default_queue_type: Option<String>,
}

/// The type of queues that are declared without one.
const CLASSIC: &str = "classic";

impl VhostAbout {
    pub(crate) fn parse(json: &Json) -> Result<Self, Refusal> {
        let body = Body::of(json)?;
        let default_queue_type = match body.text("default_queue_type")? {
            None | Some("undefined" | "") => None,
            Some(CLASSIC) => Some(CLASSIC.to_owned()),
            Some(other) => {
                let reason = format!(
                    "default_queue_type: expected {CLASSIC:?}, got {other:?}: clients name other types by x-queue-type"
                );
                return Err(Refusal::new(crate::RefusalKind::Unsupported, reason));
            }
        };
        Ok(Self {
            description: body.text("description")?.unwrap_or_default().to_owned(),
            tags: body.words("tags")?.unwrap_or_default(),
            default_queue_type,
        })
    }

    /// As a store keeps it.
    pub(crate) fn stored(&self) -> Json {
        json!({
            "description": self.description,
            "tags": self.tags,
            "default_queue_type": self.default_queue_type,
        })
    }
}
