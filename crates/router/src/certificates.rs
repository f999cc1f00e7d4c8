//! The certificates of a router's listeners, for operators.

use crosstie_front::ends::Ends;

use crate::router::Router;

/// A certificate or a revocation list of a listener.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListenerCertificate {
    /// The transport's id.
    pub transport: String,
    pub ends: Ends,
    /// Why changed files are not used, and the former ones are.
    pub refused: Option<String>,
}

impl Router {
    /// The certificates and revocation lists of running listeners.
    pub fn listener_certificates(&self) -> Vec<ListenerCertificate> {
        let certificates = self.state.certificates().into_iter();
        let files = certificates.flat_map(|certificate| {
            let refused = certificate.status().refused;
            let ends = certificate.ends().into_iter();
            ends.map(move |ends| ListenerCertificate {
                transport: certificate.id.clone(),
                ends,
                refused: refused.clone(),
            })
        });
        files.collect()
    }
}
