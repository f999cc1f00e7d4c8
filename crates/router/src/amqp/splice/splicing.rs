//! How clients of a vhost come to the node that owns it.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crosstie_config as model;
use crosstie_transport::tls::{self, ClientFiles};
use rustls::ClientConfig;

use super::key::Key;
use crate::amqp::replicated::Whose;
use crate::tls_files::explained;

/// How long a client waits for its vhost to have an owner that takes it.
pub(in crate::amqp) const WAIT_MAX: Duration = Duration::from_secs(4);

/// What a node does with clients of a vhost that others own, and what others are told of it.
pub(crate) struct Splicing {
    /// Clients are passed on; else they are told to go elsewhere themselves.
    splices: bool,
    /// Where other nodes reach this one.
    address: Option<String>,
    /// Of this vhost, for as long as the node runs.
    key: Key,
    /// How nodes are spoken to; plainly where there is none.
    pub(super) tls: Option<Arc<ClientConfig>>,
}

/// As it is configured; the error says what is wrong with which file.
pub(crate) fn splicing(settings: &model::Replicated, directory: &Path) -> Result<Splicing, String> {
    let tls = settings.tls.as_ref().map(|files| {
        let at = |path: &String| directory.join(path);
        let files = ClientFiles {
            certificate: at(&files.certificate),
            chain: files.chain_certificates.iter().map(at).collect(),
            key: at(&files.key),
            authorities: files.client_authorities.iter().map(at).collect(),
        };
        tls::client_config(&files).map_err(|e| explained(&files.key, e))
    });
    let splices = settings.elsewhere == model::Elsewhere::Splice;
    let tls = tls.transpose().map_err(|e| e.to_string())?;
    let address = settings.address.clone();
    Ok(Splicing::new(splices, address, tls, Key::new()?))
}

/// What is to be done with a client that has opened a vhost that is not here.
#[derive(Debug, PartialEq, Eq)]
pub(in crate::amqp) enum Way {
    PassOn,
    /// To be asked again.
    Wait,
    Refuse,
}

impl Splicing {
    pub(super) fn new(
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

    /// What other nodes are told when this one owns the vhost: its address, and its key where it takes their clients; no
    /// log and no page shows that.
    pub(crate) fn announced(&self) -> Option<String> {
        let address = self.address.as_ref()?;
        Some(match self.splices {
            true => format!("{address}#{}", self.key.text()),
            false => address.clone(),
        })
    }

    pub(crate) fn splices(&self) -> bool {
        self.splices
    }

    pub(crate) fn key(&self) -> &Key {
        &self.key
    }
}

impl Way {
    /// For a client that has waited since then.
    pub(in crate::amqp) fn of(
        whose: &Whose,
        splicing: Option<&Splicing>,
        since: Option<Instant>,
    ) -> Self {
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

/// Host and port, and the key, of what an owner has said of itself.
pub(super) fn parse(announced: &str) -> Option<(&str, Key)> {
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
    fn clients_wait_for_an_owner_and_go_to_it() {
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
        // A client is told where to go, and not the key.
        let refusal = there.refusal("/");
        assert!(
            refusal.ends_with("is on node node2 at 10.0.0.2:25672"),
            "{refusal}"
        );
    }

    #[test]
    fn an_owner_that_cannot_be_reached_takes_nobody() {
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
    fn a_key_comes_as_it_was() {
        let other = splicing(true, Some("[::1]:25672"));
        let announced = other.announced().unwrap();
        let (address, key) = parse(&announced).unwrap();
        assert_eq!(address, "[::1]:25672");
        assert_eq!(key.text(), other.key.text());
    }
}
