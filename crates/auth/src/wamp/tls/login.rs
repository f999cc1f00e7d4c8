//! The method `tls`: HELLO decides, the TLS handshake has verified the certificate.

use super::{Certificate, CertificateHolder, CertificateHolders};
use crate::wamp::answer::Assigned;
use crate::wamp::client::Client;
use crate::wamp::next::{Next, Outcome};
use crate::wamp::refusal::NOT_AUTHORIZED;
use crate::wamp::{Cause, Channel, Provider, Refusal, Source};

/// The source of the certificates that clients authenticate with.
pub type Tls = Source<CertificateHolders>;

impl Tls {
    /// Handles HELLO.
    pub(in crate::wamp) fn begin(&self, client: &Client, channel: &Channel<'_>) -> Outcome {
        let Some(certificate) = channel.certificate else {
            let text = "client did not send a TLS client certificate".to_owned();
            return Err(Refusal::new(NOT_AUTHORIZED, text, Cause::NoCertificate));
        };
        match self {
            Self::Static {
                principals,
                default_role,
            } => {
                let (authid, holder) = find(client, principals, certificate)?;
                let assigned = Assigned {
                    authid: Some(authid.to_owned()),
                    role: holder.role.clone(),
                    extra: client.authextra.clone().unwrap_or_default(),
                    ..Assigned::default()
                };
                let default_role = default_role.as_ref();
                let principal = client.assign(assigned, default_role, Provider::Static)?;
                Ok(Next::accept(principal))
            }
            Self::Dynamic(authenticator) => Ok(Next::ask(client, authenticator, None)),
        }
    }
}

/// The principal whose certificate it is; of several, the one that the client names.
fn find<'p>(
    client: &Client,
    principals: &'p CertificateHolders,
    certificate: &'p Certificate,
) -> Result<(&'p str, &'p CertificateHolder), Refusal> {
    let named = client.authid.as_deref();
    let mut found = principals.of(certificate);
    let Some(first) = found.next() else {
        let bytes = certificate.sha1.iter().map(|byte| format!("{byte:02X}"));
        let sha1 = bytes.collect::<Vec<_>>().join(":");
        let crossbar = format!("no principal with authid \"{sha1}\" exists");
        return Err(client.refusal(Cause::UnknownCertificate, &crossbar));
    };
    let Some(second) = found.next() else {
        return Ok(first);
    };
    let mut all = [first, second].into_iter().chain(found);
    all.find(|(authid, _)| Some(*authid) == named).ok_or_else(|| {
        let text = "HELLO.Details.authid: expected one of several principals that have this certificate";
        Refusal::new(NOT_AUTHORIZED, text.to_owned(), Cause::AmbiguousKey)
    })
}
