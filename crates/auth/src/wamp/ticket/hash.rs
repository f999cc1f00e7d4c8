//! Ticket hashes, which keep tickets out of configurations.

use std::fmt;

use argon2::{Algorithm, Argon2, Params, Version};
use phc::{Output, PasswordHash, Salt};
use sha2::{Digest as _, Sha256};
use subtle::ConstantTimeEq as _;

use crate::wamp::Key;
use crate::wamp::hexadecimal;

/// A hash in one of three forms.
///
/// ```text
/// sha256:64 hexadecimal digits                     of an unguessable ticket, such as 32 random bytes
/// $argon2id$v=19$m=19456,t=2,p=1$SALT$HASH         of a password; the PHC string format
/// $pbkdf2-sha256$i=600000$SALT$HASH                the same
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct TicketHash {
    function: Function,
    salt: Vec<u8>,
    hash: Vec<u8>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Function {
    Sha256,
    Argon2id {
        memory_kib: u32,
        iterations: u32,
        lanes: u32,
    },
    Pbkdf2 {
        iterations: u32,
    },
}

/// The reason why a text is not a ticket hash.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TicketHashError {
    Form,
    Function { found: String },
    Cost { expected: &'static str },
}

/// A ticket to be hashed with a principal's parameters.
pub struct TicketWork {
    hash: TicketHash,
    ticket: String,
}

/// Bound on memory: the router does this work at each login.
const MEMORY_KIB_MAX: u32 = 1 << 20;
const ARGON2_ITERATIONS_MAX: u32 = 64;
const LANES_MAX: u32 = 16;
const PBKDF2_ITERATIONS_MAX: u32 = 10_000_000;
const HASH_BYTES_MIN: usize = 16;

impl TicketHash {
    pub fn parse(text: &str) -> Result<Self, TicketHashError> {
        if let Some(digits) = text.strip_prefix("sha256:") {
            let hash = hexadecimal::decode::<32>(digits).ok_or(TicketHashError::Form)?;
            return Ok(Self {
                function: Function::Sha256,
                salt: Vec::new(),
                hash: hash.to_vec(),
            });
        }
        let phc = PasswordHash::new(text).map_err(|_| TicketHashError::Form)?;
        let (Some(salt), Some(hash)) = (&phc.salt, &phc.hash) else {
            return Err(TicketHashError::Form);
        };
        if hash.len() < HASH_BYTES_MIN {
            return Err(TicketHashError::Form);
        }
        Ok(Self {
            function: Function::read(&phc)?,
            salt: salt.to_vec(),
            hash: hash.as_bytes().to_vec(),
        })
    }

    pub(super) fn sha256(ticket: &str) -> Self {
        Self {
            function: Function::Sha256,
            salt: Vec::new(),
            hash: Sha256::digest(ticket).to_vec(),
        }
    }

    /// Hashes a ticket by Argon2id, with the minimum costs that OWASP recommends.
    pub fn of(ticket: &str, salt: [u8; 16]) -> Self {
        let mut made = Self {
            function: Function::Argon2id {
                memory_kib: 19_456,
                iterations: 2,
                lanes: 1,
            },
            salt: salt.to_vec(),
            hash: vec![0; 32],
        };
        made.hash = made.derive(ticket);
        made
    }

    /// The salt and the hash.
    pub(super) fn parts(&self) -> [&[u8]; 2] {
        [&self.salt, &self.hash]
    }

    /// Whether hashing takes so long that it needs a thread of its own.
    pub(super) fn is_slow(&self) -> bool {
        self.function != Function::Sha256
    }

    /// Whether this is the hash of `ticket`. The comparison takes the same time wherever the two differ.
    pub(super) fn verify(&self, ticket: &str) -> bool {
        self.is(&Key::new(self.derive(ticket)))
    }

    pub(super) fn is(&self, found: &Key) -> bool {
        found.bytes().ct_eq(&self.hash).into()
    }

    pub(super) fn work(&self, ticket: &str) -> TicketWork {
        TicketWork {
            hash: self.clone(),
            ticket: ticket.to_owned(),
        }
    }

    fn derive(&self, ticket: &str) -> Vec<u8> {
        let mut hash = vec![0; self.hash.len()];
        match self.function {
            Function::Sha256 => return Sha256::digest(ticket).to_vec(),
            Function::Pbkdf2 { iterations } => {
                let ticket = ticket.as_bytes();
                pbkdf2::pbkdf2_hmac::<Sha256>(ticket, &self.salt, iterations, &mut hash);
            }
            Function::Argon2id {
                memory_kib,
                iterations,
                lanes,
            } => {
                let params = Params::new(memory_kib, iterations, lanes, Some(hash.len()));
                let argon2 = params.map(|p| Argon2::new(Algorithm::Argon2id, Version::V0x13, p));
                let done = argon2.and_then(|argon2| {
                    argon2.hash_password_into(ticket.as_bytes(), &self.salt, &mut hash)
                });
                if done.is_err() {
                    // Unreachable: the costs were validated before. An empty hash matches no ticket.
                    return Vec::new();
                }
            }
        }
        hash
    }
}

impl TicketWork {
    pub(in crate::wamp) fn derive(&self) -> Key {
        Key::new(self.hash.derive(&self.ticket))
    }
}

impl Function {
    fn read(phc: &PasswordHash) -> Result<Self, TicketHashError> {
        let number = |name: &str| phc.params.get_decimal(name);
        match phc.algorithm.as_str() {
            "argon2id" if phc.version == Some(Version::V0x13.into()) => {
                let lanes = number("p").filter(|lanes| (1..=LANES_MAX).contains(lanes));
                let iterations = number("t").filter(|t| (1..=ARGON2_ITERATIONS_MAX).contains(t));
                let memory_kib =
                    number("m").filter(|m| (8 * lanes.unwrap_or(1)..=MEMORY_KIB_MAX).contains(m));
                let expected = "m=8 to 1048576 (for each of p), t=1 to 64, p=1 to 16";
                let (Some(memory_kib), Some(iterations), Some(lanes)) =
                    (memory_kib, iterations, lanes)
                else {
                    return Err(TicketHashError::Cost { expected });
                };
                Ok(Self::Argon2id {
                    memory_kib,
                    iterations,
                    lanes,
                })
            }
            "pbkdf2-sha256" => {
                let iterations = number("i").filter(|i| (1..=PBKDF2_ITERATIONS_MAX).contains(i));
                let expected = "i=1 to 10000000";
                let iterations = iterations.ok_or(TicketHashError::Cost { expected })?;
                Ok(Self::Pbkdf2 { iterations })
            }
            other => Err(TicketHashError::Function {
                found: other.to_owned(),
            }),
        }
    }
}

/// As in a configuration.
impl fmt::Display for TicketHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Function::Sha256 = self.function else {
            let salt = Salt::new(&self.salt).map_err(|_| fmt::Error)?;
            let hash = Output::new(&self.hash).map_err(|_| fmt::Error)?;
            return match self.function {
                Function::Argon2id {
                    memory_kib,
                    iterations,
                    lanes,
                } => write!(
                    f,
                    "$argon2id$v=19$m={memory_kib},t={iterations},p={lanes}${salt}${hash}"
                ),
                Function::Pbkdf2 { iterations } => {
                    write!(f, "$pbkdf2-sha256$i={iterations}${salt}${hash}")
                }
                Function::Sha256 => Ok(()),
            };
        };
        f.write_str("sha256:")?;
        self.hash
            .iter()
            .try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

/// Omits the bytes.
impl fmt::Debug for TicketHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "TicketHash({:?}, …)", self.function)
    }
}

impl fmt::Debug for TicketWork {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "TicketWork({:?})", self.hash)
    }
}

impl fmt::Display for TicketHashError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Form => f.write_str(
                "ticket_hash: expected sha256: and 64 hexadecimal digits, $argon2id$v=19$m=…,t=…,p=…$SALT$HASH, \
                 or $pbkdf2-sha256$i=…$SALT$HASH",
            ),
            Self::Function { found } => write!(
                f,
                "ticket_hash: expected argon2id in version 19, or pbkdf2-sha256, found {found}"
            ),
            Self::Cost { expected } => write!(f, "ticket_hash: expected {expected}"),
        }
    }
}

impl std::error::Error for TicketHashError {}
