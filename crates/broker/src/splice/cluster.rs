//! The owner's side of a greeting: a peer on a cluster listener proves that it is a node of a vhost, or is closed.

use std::sync::Arc;

use crosstie_transport::Connection;

use super::Splices;
use super::greeting::{ACCOUNT_BYTES_MAX, Account, HEAD, HELLO, MAGIC, REASON_BYTES_MAX, Refusal};
use super::key::{Claim, Key, LENGTH, random};

/// The vhosts that a cluster listener serves, each with the key shared by its nodes.
#[derive(Clone, Debug, Default)]
pub struct Cluster {
    pub vhosts: Vec<(Arc<str>, Key)>,
}

/// The state of a greeting.
#[derive(Default)]
pub(crate) enum Greeting {
    #[default]
    Hello,
    /// The peer has named the vhost and received this challenge; its proof must match.
    Challenged {
        vhost: Arc<str>,
        key: Key,
        nonce: [u8; LENGTH],
    },
}

/// The outcome of an input.
pub(crate) enum Greeted {
    /// `consumed` bytes are handled.
    Done { consumed: usize },
    /// At least `wanted` bytes are needed.
    Wait { wanted: usize },
    /// The peer is a node and brings this client; that many bytes are handled.
    Client(Box<Account>, usize),
    /// The connection ends, with the reason for the log, and whether the peer failed to prove that it is a node.
    Ended { why: String, is_stranger: bool },
}

impl Greeting {
    /// Handles the front of `input`.
    pub(crate) fn handle(
        &mut self,
        input: &[u8],
        cluster: &Cluster,
        splices: &Splices,
        connection: &Arc<Connection>,
    ) -> Greeted {
        match self {
            Self::Hello => self.challenge(input, cluster, splices, connection),
            Self::Challenged { vhost, key, nonce } => {
                let asked = (&**vhost, &*key, &*nonce);
                account(asked, input, splices, connection)
            }
        }
    }

    fn challenge(
        &mut self,
        input: &[u8],
        cluster: &Cluster,
        splices: &Splices,
        connection: &Arc<Connection>,
    ) -> Greeted {
        let known = input.len().min(MAGIC.len());
        if input[..known] != MAGIC[..known] {
            return stranger(splices, "its first bytes are not a node's greeting");
        }
        let Some(length) = input.get(HELLO - 1) else {
            return Greeted::Wait { wanted: HELLO };
        };
        let whole = HELLO + usize::from(*length);
        let Some(name) = input.get(HELLO..whole) else {
            return Greeted::Wait { wanted: whole };
        };
        let mut vhosts = cluster.vhosts.iter();
        let Some((vhost, key)) = vhosts.find(|(vhost, _)| vhost.as_bytes() == name) else {
            return stranger(
                splices,
                "it asks for a vhost that this listener does not serve",
            );
        };
        let ours = match random() {
            Ok(ours) => ours,
            Err(why) => return refuse(connection, Refusal::Full, &why),
        };
        let theirs = &input[MAGIC.len()..HELLO - 1];
        let proof = key.prove(Claim::Owner, theirs, &ours);
        append(connection, &[&ours, &proof]);
        *self = Self::Challenged {
            vhost: Arc::clone(vhost),
            key: key.clone(),
            nonce: ours,
        };
        Greeted::Done { consumed: whole }
    }
}

fn account(
    (vhost, key, nonce): (&str, &Key, &[u8; LENGTH]),
    input: &[u8],
    splices: &Splices,
    connection: &Arc<Connection>,
) -> Greeted {
    let Some((length, rest)) = input.split_first_chunk() else {
        return Greeted::Wait { wanted: HEAD };
    };
    let length = u32::from_be_bytes(*length) as usize;
    if length > ACCOUNT_BYTES_MAX {
        return stranger(splices, "its client's account is longer than the maximum");
    }
    let Some((proof, rest)) = rest.split_at_checked(LENGTH) else {
        return Greeted::Wait { wanted: HEAD };
    };
    let whole = HEAD + length;
    let Some(said) = rest.get(..length) else {
        return Greeted::Wait { wanted: whole };
    };
    if !key.is_proven(Claim::Node, nonce, said, proof) {
        return stranger(splices, "it does not know the key of the vhost's owner");
    }
    match Account::decode(said).filter(|account| *account.vhost == *vhost) {
        Some(account) => Greeted::Client(Box::new(account), whole),
        None => {
            let why = "its client's account cannot be decoded";
            refuse(connection, Refusal::Malformed, why)
        }
    }
}

/// Accepts a client: AMQP follows.
pub fn accept(connection: &Arc<Connection>) {
    append(connection, &[&[0]]);
}

/// Refuses a client with the reason.
pub(crate) fn refuse(connection: &Arc<Connection>, refusal: Refusal, why: &str) -> Greeted {
    let reason = &why.as_bytes()[..why.len().min(REASON_BYTES_MAX)];
    append(connection, &[&[refusal as u8, reason.len() as u8], reason]);
    Greeted::Ended {
        why: why.to_owned(),
        is_stranger: false,
    }
}

fn stranger(splices: &Splices, why: &str) -> Greeted {
    Splices::count(&splices.strangers);
    Greeted::Ended {
        why: why.to_owned(),
        is_stranger: true,
    }
}

fn append(connection: &Arc<Connection>, parts: &[&[u8]]) {
    // A new connection has room; if it is gone already, its reader sees that.
    let _ = connection.append(|out| {
        parts.iter().for_each(|part| out.extend_from_slice(part));
        Ok::<(), ()>(())
    });
}
