//! How clients of a replicated vhost reach its owner.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crosstie_config as model;
use crosstie_front::tls_files::explained;
use crosstie_transport::tls::{self, ClientFiles, KeyFiles};
use rustls::ClientConfig;

use super::key::Key;
use crate::replicated::Whose;

/// Maximum time that a client waits for its vhost's owner.
pub const WAIT_MAX: Duration = Duration::from_secs(4);

/// How a node treats clients of vhosts that other nodes own, and how it announces itself to those.
pub struct Splicing {
    /// Splice clients to the owner; otherwise refuse them with the owner's address.
    splices: bool,
    /// The address at which other nodes reach this one.
    address: Option<String>,
    /// The key of this vhost, for the life of the process.
    key: Key,
    /// TLS towards other nodes; plain TCP if absent.
    pub tls: Option<Arc<ClientConfig>>,
}

/// Creates it from the configuration. An error names the file and its fault.
pub fn splicing(settings: &model::Replicated, directory: &Path) -> Result<Splicing, String> {
    let tls = settings.tls.as_ref().map(|files| {
        let at = |path: &String| directory.join(path);
        let own = KeyFiles {
            certificate: at(&files.certificate),
            chain: files.chain_certificates.iter().map(at).collect(),
            key: at(&files.key),
        };
        let files = ClientFiles {
            own,
            authorities: files.authorities.iter().map(at).collect(),
        };
        tls::client_config(&files).map_err(|e| explained(&files.own.key, e))
    });
    let splices = settings.elsewhere == model::Elsewhere::Splice;
    let tls = tls.transpose().map_err(|e| e.to_string())?;
    let address = settings.address.clone();
    Ok(Splicing::new(splices, address, tls, Key::new()?))
}

/// The handling of a client whose vhost another node owns.
#[derive(Debug, PartialEq, Eq)]
pub enum Way {
    PassOn,
    /// Ask again after a while.
    Wait,
    Refuse,
}

impl Splicing {
    pub fn new(
        splices: bool,
        address: Option<String>,
        tls: Option<Arc<ClientConfig>>,
        key: Key,
    ) -> Self {
        Self {
            splices,
            address,
            key,
            tls,
        }
    }

    /// The address that this node announces as owner, with its key if it accepts spliced clients. The key appears in no
    /// log and on no page.
    pub fn announced(&self) -> Option<String> {
        let address = self.address.as_ref()?;
        Some(match self.splices {
            true => format!("{address}#{}", self.key.text()),
            false => address.clone(),
        })
    }

    pub fn splices(&self) -> bool {
        self.splices
    }

    pub fn key(&self) -> &Key {
        &self.key
    }
}

impl Way {
    /// Decides for a client that has waited since that time.
    pub fn of(whose: &Whose, splicing: Option<&Splicing>, since: Option<Instant>) -> Self {
        let splices = splicing.is_some_and(|splicing| splicing.splices);
        match whose {
            Whose::Elsewhere { address, .. } if splices && parse(address).is_some() => Self::PassOn,
            Whose::Elsewhere { .. } => Self::Refuse,
            Whose::Nobody { .. } => match since.is_none_or(|since| since.elapsed() < WAIT_MAX) {
                true => Self::Wait,
                false => Self::Refuse,
            },
        }
    }
}

/// Splits an announcement into address and key.
pub fn parse(announced: &str) -> Option<(&str, Key)> {
    let (address, key) = announced.split_once('#')?;
    Some((address, Key::parse(key)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn splicing(splices: bool, address: Option<&str>) -> Splicing {
        let address = address.map(str::to_owned);
        Splicing::new(splices, address, None, Key::new().unwrap())
    }

    #[test]
    fn clients_wait_for_an_owner_and_are_spliced_to_it() {
        let here = splicing(true, None);
        let other = splicing(true, Some("10.0.0.2:25672"));
        let long_ago = Instant::now().checked_sub(WAIT_MAX * 2);
        let nobody = Whose::Nobody { why: "".into() };
        assert_eq!(Way::of(&nobody, Some(&here), None), Way::Wait);
        assert_eq!(Way::of(&nobody, Some(&here), long_ago), Way::Refuse);
        let address = other.announced().unwrap().into();
        let node = "node2".into();
        let there = Whose::Elsewhere { node, address };
        assert_eq!(Way::of(&there, Some(&here), long_ago), Way::PassOn);
        assert_eq!(
            Way::of(&there, Some(&splicing(false, None)), None),
            Way::Refuse
        );
        assert_eq!(Way::of(&there, None, None), Way::Refuse);
        // A client gets the owner's address without the key.
        let refusal = there.refusal("/");
        assert!(
            refusal.ends_with("is on node node2 at 10.0.0.2:25672"),
            "{refusal}"
        );
    }

    #[test]
    fn clients_of_an_unreachable_owner_are_refused() {
        let here = splicing(true, None);
        assert_eq!(here.announced(), None);
        let plain = splicing(false, Some("10.0.0.2:25672")).announced().unwrap();
        for address in ["", &plain, "10.0.0.2:25672#xyz"] {
            let (node, address) = ("node2".into(), address.into());
            let there = Whose::Elsewhere { node, address };
            assert_eq!(Way::of(&there, Some(&here), None), Way::Refuse);
        }
    }

    #[test]
    fn a_key_round_trips() {
        let other = splicing(true, Some("[::1]:25672"));
        let announced = other.announced().unwrap();
        let (address, key) = parse(&announced).unwrap();
        assert_eq!(address, "[::1]:25672");
        assert_eq!(key.text(), other.key.text());
    }
}
