//! The wire format of a greeting: a node describes a client to the owner of its vhost, and the owner answers.
//!
//! ```text
//! node   magic, nonce, length, the vhost
//! owner  nonce, proof of the owner's key
//! node   length, proof of the same, the client's account
//! owner  0, and AMQP from `connection.open-ok` on; or a code and a reason
//! ```

use std::sync::Arc;

use crosstie_amqp::Version;

use super::key::LENGTH;

/// The first bytes, including the version of the format.
pub const MAGIC: &[u8; 8] = b"XTSPLIC\x01";

/// Length of the node's first message up to the vhost's name.
pub const HELLO: usize = MAGIC.len() + LENGTH + 1;

/// Length of the owner's challenge.
pub const CHALLENGE: usize = 2 * LENGTH;

/// Length of the header in front of a client's account.
pub(super) const HEAD: usize = 4 + LENGTH;

/// Maximum size of a client's account. Each of its texts is bounded by its source.
pub(super) const ACCOUNT_BYTES_MAX: usize = 64 << 10;

/// Maximum size of a reason.
pub(super) const REASON_BYTES_MAX: usize = 255;

/// A client, as described by the node that has authenticated it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Account {
    pub vhost: Arc<str>,
    pub user: Arc<str>,
    /// The property `connection_name`.
    pub name: String,
    /// The properties `product` and `version`.
    pub client: String,
    /// The client's address, and the node through which it came.
    pub from: String,
    /// Its permissions: configure, write and read.
    pub permissions: [String; 3],
    pub frame_bytes_max: u32,
    pub channels_max: u16,
    pub heartbeat_s: u16,
    pub is_impersonator: bool,
    /// The owner decides by its own permissions and limits if it knows the user, and may refuse the client by
    /// [`Refusal::NotAllowed`]. Nodes of earlier versions decide for the owner.
    pub is_owner_to_decide: bool,
    pub authentication_failure_close: bool,
    pub connection_blocked: bool,
    pub consumer_cancel_notify: bool,
    pub version: Version,
}

/// Why an owner refuses a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// This node does not own the vhost, or no longer does.
    NotOwner = 1,
    /// The connection limit is reached.
    Full = 2,
    /// The greeting could not be decoded.
    Malformed = 3,
    /// The client may not open the vhost; the reason is for the client.
    NotAllowed = 4,
}

impl Refusal {
    pub fn of(code: u8) -> Option<Self> {
        let known = [
            Self::NotOwner,
            Self::Full,
            Self::Malformed,
            Self::NotAllowed,
        ];
        known.into_iter().find(|refusal| *refusal as u8 == code)
    }
}

impl Account {
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        for text in self.texts() {
            let length = u16::try_from(text.len()).unwrap_or(u16::MAX);
            out.extend_from_slice(&length.to_be_bytes());
            out.extend_from_slice(&text.as_bytes()[..usize::from(length)]);
        }
        out.extend_from_slice(&self.frame_bytes_max.to_be_bytes());
        out.extend_from_slice(&self.channels_max.to_be_bytes());
        out.extend_from_slice(&self.heartbeat_s.to_be_bytes());
        let flags = [
            self.is_impersonator,
            self.authentication_failure_close,
            self.connection_blocked,
            self.consumer_cancel_notify,
            self.version == Version::V0_8,
            self.is_owner_to_decide,
        ];
        let flags = flags.iter().enumerate();
        out.push(flags.fold(0, |all, (bit, is_set)| all | u8::from(*is_set) << bit));
        out
    }

    /// Decodes an account. Bytes behind it belong to a later version and are ignored.
    pub fn decode(mut octets: &[u8]) -> Option<Self> {
        let mut texts = [""; 8];
        for text in &mut texts {
            let (length, rest) = octets.split_first_chunk()?;
            let (found, rest) = rest.split_at_checked(u16::from_be_bytes(*length).into())?;
            *text = std::str::from_utf8(found).ok()?;
            octets = rest;
        }
        let (frame_bytes_max, octets) = octets.split_first_chunk()?;
        let (channels_max, octets) = octets.split_first_chunk()?;
        let (heartbeat_s, octets) = octets.split_first_chunk()?;
        let flags = *octets.first()?;
        let [vhost, user, name, client, from, configure, write, read] = texts;
        let frame_bytes_max = u32::from_be_bytes(*frame_bytes_max);
        let channels_max = u16::from_be_bytes(*channels_max);
        if frame_bytes_max < crosstie_amqp::frame::FRAME_MIN_BYTES || channels_max == 0 {
            return None;
        }
        Some(Self {
            vhost: vhost.into(),
            user: user.into(),
            name: name.to_owned(),
            client: client.to_owned(),
            from: from.to_owned(),
            permissions: [configure, write, read].map(str::to_owned),
            frame_bytes_max,
            channels_max,
            heartbeat_s: u16::from_be_bytes(*heartbeat_s),
            is_impersonator: flags & 1 != 0,
            is_owner_to_decide: flags & 32 != 0,
            authentication_failure_close: flags & 2 != 0,
            connection_blocked: flags & 4 != 0,
            consumer_cancel_notify: flags & 8 != 0,
            version: match flags & 16 {
                0 => Version::V0_9_1,
                _ => Version::V0_8,
            },
        })
    }

    fn texts(&self) -> [&str; 8] {
        let [configure, write, read] = self.permissions.each_ref().map(String::as_str);
        [
            &self.vhost,
            &self.user,
            &self.name,
            &self.client,
            &self.from,
            configure,
            write,
            read,
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_account_round_trips_and_its_prefixes_are_rejected() {
        let account = Account {
            vhost: "/".into(),
            user: "joe".into(),
            name: "a name".to_owned(),
            client: "pika 1".to_owned(),
            from: "tcp:10.0.0.1:5 by node2".to_owned(),
            permissions: [".*", "^a", ""].map(str::to_owned),
            frame_bytes_max: 131_072,
            channels_max: 2_047,
            heartbeat_s: 60,
            is_impersonator: true,
            is_owner_to_decide: true,
            authentication_failure_close: true,
            connection_blocked: false,
            consumer_cancel_notify: true,
            version: Version::V0_8,
        };
        let octets = account.encode();
        assert_eq!(Account::decode(&octets), Some(account.clone()));
        let longer = [&octets[..], b"later"].concat();
        assert_eq!(Account::decode(&longer), Some(account));
        for length in 0..octets.len() {
            assert_eq!(Account::decode(&octets[..length]), None);
        }
    }

    #[test]
    fn an_account_with_invalid_parameters_is_rejected() {
        let none = Account {
            frame_bytes_max: 100,
            channels_max: 1,
            ..Account::default()
        };
        assert_eq!(Account::decode(&none.encode()), None);
        let none = Account {
            frame_bytes_max: 131_072,
            ..Account::default()
        };
        assert_eq!(Account::decode(&none.encode()), None);
    }
}
