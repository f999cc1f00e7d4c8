//! The certificate of a connection, by the host that the client asks for (SNI, RFC 6066 section 3).

use std::sync::Arc;

use rustls::client::verify_server_name;
use rustls::server::{ClientHello, ParsedCertificate, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use rustls_pki_types::ServerName;

/// The certificates of a listener.
#[derive(Debug)]
pub(super) struct ByName {
    /// For hosts of which no other has the name, and for clients that ask for none.
    own: Arc<CertifiedKey>,
    named: Vec<Arc<CertifiedKey>>,
}

impl ByName {
    pub(super) fn new(own: CertifiedKey, named: Vec<CertifiedKey>) -> Self {
        Self {
            own: Arc::new(own),
            named: named.into_iter().map(Arc::new).collect(),
        }
    }
}

impl ResolvesServerCert for ByName {
    /// The first certificate with the name whose key makes signatures that the client can check; without such a one, the
    /// first with the name.
    fn resolve(&self, hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        let asked = hello.server_name();
        let asked = asked.and_then(|name| ServerName::try_from(name).ok());
        let named = self.named.iter().filter(|certified| {
            let asked = asked.as_ref();
            asked.is_some_and(|asked| is_for(certified, asked))
        });
        let mut all = named.chain([&self.own]);
        let offered = hello.signature_schemes();
        let usable = all
            .clone()
            .find(|certified| certified.key.choose_scheme(offered).is_some());
        usable.or_else(|| all.next()).cloned()
    }
}

fn is_for(certified: &CertifiedKey, host: &ServerName<'_>) -> bool {
    let own = certified.end_entity_cert().ok();
    let parsed = own.and_then(|own| ParsedCertificate::try_from(own).ok());
    parsed.is_some_and(|parsed| verify_server_name(&parsed, host).is_ok())
}
