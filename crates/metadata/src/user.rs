//! A user, and the body of a request that makes one.

use crosstie_auth::PasswordHash;
use serde_json::{Value as Json, json};

use crate::Refusal;
use crate::body::Body;
use crate::limits::{Limits, UserLimit};

/// A user. Its name is the entry's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct User {
    /// `None`: the user cannot log in with a password.
    pub password: Option<PasswordHash>,
    pub tags: Vec<String>,
    /// Whether the user may log in from other machines.
    pub is_remote_allowed: bool,
}

/// The password of a user that is put.
#[derive(Clone, PartialEq, Eq)]
pub enum NewPassword {
    Hash(PasswordHash),
    /// A new user gets the hash of the empty password, an existing one loses its password, as in RabbitMQ. Neither logs
    /// in with one.
    None,
    /// The empty hash: the user has no password, a new one too.
    EmptyHash,
    Text(String),
}

impl NewPassword {
    /// Whether none is given.
    pub fn is_absent(&self) -> bool {
        matches!(self, Self::None | Self::EmptyHash)
    }
}

/// A user that is to be put.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewUser {
    pub password: NewPassword,
    pub tags: Vec<String>,
    /// `None`: its limits stay.
    pub limits: Option<Limits<UserLimit>>,
}

/// Algorithms of the hashes that a user may be given.
const ALGORITHMS: [&str; 2] = [
    "rabbit_password_hashing_sha256",
    "rabbit_password_hashing_sha512",
];

impl NewUser {
    pub(crate) fn parse(json: &Json) -> Result<Self, Refusal> {
        let body = Body::of(json)?;
        let Some(tags) = body.words("tags")? else {
            return Err(Refusal::invalid("tags_not_present"));
        };
        let password = match (body.text("password")?, body.text("password_hash")?) {
            (Some(_), Some(_)) => {
                let reason = "both_password_and_password_hash_are_provided";
                return Err(Refusal::invalid(reason));
            }
            (Some(text), None) => NewPassword::Text(text.to_owned()),
            (None, Some("")) => NewPassword::EmptyHash,
            (None, None) => NewPassword::None,
            (None, Some(hash)) => {
                NewPassword::Hash(parse_hash(hash, body.text("hashing_algorithm")?)?)
            }
        };
        let limits = body.get("limits").filter(|limits| !limits.is_null());
        let limits = limits.map(Limits::parse).transpose()?;
        Ok(Self {
            password,
            tags,
            limits,
        })
    }
}

fn parse_hash(text: &str, algorithm: Option<&str>) -> Result<PasswordHash, Refusal> {
    if let Some(algorithm) = algorithm
        && !ALGORITHMS.contains(&algorithm)
    {
        return Err(Refusal::invalid(format!(
            "hashing_algorithm: expected {}, got {algorithm:?}",
            ALGORITHMS.join(" or ")
        )));
    }
    let parsed = PasswordHash::parse(text, algorithm);
    parsed.map_err(|error| Refusal::invalid(error.to_string()))
}

impl User {
    /// As a store keeps it.
    pub(crate) fn stored(&self) -> Json {
        json!({
            "password_hash": self.password.as_ref().map(PasswordHash::to_text),
            "hashing_algorithm": self.password.as_ref().map(PasswordHash::algorithm),
            "tags": self.tags,
            "loopback_only": !self.is_remote_allowed,
        })
    }

    pub(crate) fn restored(json: &Json) -> Option<Self> {
        let password = match json.get("password_hash")? {
            Json::Null => None,
            hash => {
                let algorithm = json.get("hashing_algorithm")?.as_str();
                Some(PasswordHash::parse(hash.as_str()?, algorithm).ok()?)
            }
        };
        let tags = json.get("tags")?.as_array()?.iter();
        let tags: Option<Vec<_>> = tags.map(|tag| tag.as_str().map(str::to_owned)).collect();
        Some(Self {
            password,
            tags: tags?,
            is_remote_allowed: !json.get("loopback_only")?.as_bool()?,
        })
    }
}

/// Omits the password.
impl std::fmt::Debug for NewPassword {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Hash(_) => "Hash(…)",
            Self::None => "None",
            Self::EmptyHash => "EmptyHash",
            Self::Text(_) => "Text(…)",
        })
    }
}
