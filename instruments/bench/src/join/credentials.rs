//! An account for each method: the node's configuration, and the client's credentials.

use std::sync::Arc;

use crosstie_client::{Anonymous, Authenticator, Cryptosign, Scram, SigningKey, Ticket, WampCra};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::subject::REALM;

const AUTHID: &str = "joe";
/// The account whose ticket the router stores as a slow hash.
const HASHED_AUTHID: &str = "ann";
const SECRET: &str = "a secret of the bench";
pub(super) const ROLE: &str = "user";

/// The output of `crosstie passwd` for the secret at the lowest cost: the client pays it.
const SALT: &str = "3bc3ca01dd1d501ca1c22e1c5d7d16fe";
const STORED_KEY: &str = "bba5f12f771db9400858414d222b788d89c91132b44c600fb352dd7925d80cde";
const SERVER_KEY: &str = "fd11d421009894880181ac9622042b415ac94be37f9bd6e1d200d50dd5b25cfc";

/// The output of `crosstie passwd` for it as a ticket, at the default cost: 19 MiB, twice.
const TICKET_HASH: &str = "$argon2id$v=19$m=19456,t=2,p=1$5GiX6oZYbTHnlSOPf3DctA$fCyEr2K05WV3KOffaZNlUHCDdFv5zZkl7TUlckXyu88";

/// A pair of the specification's test vectors.
const PRIVATE_KEY: &str = "4d57d97a68f555696620a6d849c0ce582568518d729eb753dc7c732de2804510";
const PUBLIC_KEY: &str = "1adfc8bfe1d35616e64dffbd900096f23b066f914c8c2ffbb66f6075b96e116d";

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Method {
    Anonymous,
    Ticket,
    WampCra,
    Scram,
    Cryptosign,
}

impl Method {
    const ALL: [Self; 5] = [
        Self::Anonymous,
        Self::Ticket,
        Self::WampCra,
        Self::Scram,
        Self::Cryptosign,
    ];

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Anonymous => "anonymous",
            Self::Ticket => "ticket",
            Self::WampCra => "wampcra",
            Self::Scram => "scram",
            Self::Cryptosign => "cryptosign",
        }
    }

    /// The `auth` of a transport that accepts all of them; one of ours accepts ticket hashes too.
    pub(super) fn configuration(is_own: bool) -> Value {
        let all = Self::ALL.into_iter();
        let all = all.map(|method| (method.name().to_owned(), method.section()));
        let mut all: Value = all.collect();
        if is_own {
            let hashed = json!({ "ticket_hash": TICKET_HASH, "role": ROLE });
            all["ticket"]["principals"][HASHED_AUTHID] = hashed;
        }
        all
    }

    fn section(self) -> Value {
        match self {
            Self::Anonymous => json!({ "type": "static", "realm": REALM, "role": ROLE }),
            Self::Ticket => json!({
                "type": "static",
                "principals": { AUTHID: { "ticket": SECRET, "role": ROLE } }
            }),
            Self::WampCra => json!({
                "type": "static",
                "users": { AUTHID: { "secret": SECRET, "role": ROLE } }
            }),
            Self::Scram => json!({
                "type": "static",
                "principals": { AUTHID: {
                    "kdf": "argon2id-13", "iterations": 1, "memory": 8, "salt": SALT,
                    "stored-key": STORED_KEY, "server-key": SERVER_KEY, "role": ROLE
                } }
            }),
            Self::Cryptosign => json!({
                "type": "static",
                "principals": { AUTHID: { "authorized_keys": [PUBLIC_KEY], "role": ROLE } }
            }),
        }
    }

    pub(super) fn authenticator(self) -> Box<dyn Authenticator> {
        let authid = AUTHID.to_owned();
        match self {
            Self::Anonymous => Box::new(Anonymous::default()),
            Self::Ticket => Box::new(Ticket {
                authid,
                ticket: SECRET.to_owned(),
            }),
            Self::WampCra => Box::new(WampCra {
                authid,
                secret: SECRET.to_owned(),
            }),
            Self::Scram => Box::new(Scram {
                authid,
                password: SECRET.to_owned(),
            }),
            Self::Cryptosign => {
                let key = SigningKey::parse(PRIVATE_KEY);
                Box::new(Cryptosign {
                    authid: Some(authid),
                    key: Arc::new(key.expect("the private key above is one")),
                })
            }
        }
    }

    /// Of the account with a ticket hash.
    pub(super) fn hashed() -> Box<dyn Authenticator> {
        Box::new(Ticket {
            authid: HASHED_AUTHID.to_owned(),
            ticket: SECRET.to_owned(),
        })
    }

    /// With a wrong ticket.
    pub(super) fn guess() -> Box<dyn Authenticator> {
        Box::new(Ticket {
            authid: AUTHID.to_owned(),
            ticket: "not the secret".to_owned(),
        })
    }
}
