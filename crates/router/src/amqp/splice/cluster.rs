//! The owner's side of a greeting: who comes to a cluster listener shows that it is a node of a vhost, or gets nothing.

use std::sync::Arc;

use crosstie_transport::Connection;

use super::Splices;
use super::greeting::{ACCOUNT_BYTES_MAX, Account, HEAD, HELLO, MAGIC, REASON_BYTES_MAX, Refusal};
use super::key::{Claim, Key, LENGTH, random};

/// What a cluster listener leads to: the vhosts that name its address, each with the key that its nodes know.
#[derive(Clone, Debug, Default)]
pub(crate) struct Cluster {
    pub(crate) vhosts: Vec<(Arc<str>, Key)>,
}

/// What is known of who has come.
#[derive(Default)]
pub(in crate::amqp) enum Greeting {
    #[default]
    Hello,
    /// It asks for that vhost, was told this, and proves what it proves to that.
    Challenged {
        vhost: Arc<str>,
        key: Key,
        nonce: [u8; LENGTH],
    },
}

/// What became of what has come.
pub(in crate::amqp) enum Greeted {
    /// So many octets are done with.
    Done { consumed: usize },
    /// There have to be so many.
    Wait { wanted: usize },
    /// It is a node, and comes for this client; so many octets are done with.
    Client(Box<Account>, usize),
    /// It gets nothing more; why, for the log, and whether it is no node of ours.
    Ended { why: String, is_stranger: bool },
}

impl Greeting {
    /// Handles what is at the front of `input`.
    pub(in crate::amqp) fn handle(
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
            return stranger(splices, "what it says is no greeting of a node");
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
            return stranger(splices, "it asks for a vhost that is not to be had here");
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
        return stranger(splices, "it announces a greeting without end");
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
            let why = "what it says of a client is not understood";
            refuse(connection, Refusal::Malformed, why)
        }
    }
}

/// Says that a client is taken: AMQP follows.
pub(in crate::amqp) fn accept(connection: &Arc<Connection>) {
    append(connection, &[&[0]]);
}

/// Says that a client is one too many, or not taken for another reason.
pub(in crate::amqp) fn refuse(
    connection: &Arc<Connection>,
    refusal: Refusal,
    why: &str,
) -> Greeted {
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
    // A new connection has room; one that is gone already shows so to its reader.
    let _ = connection.append(|out| {
        parts.iter().for_each(|part| out.extend_from_slice(part));
        Ok::<(), ()>(())
    });
}
