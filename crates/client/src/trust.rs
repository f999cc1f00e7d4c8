//! The certificates that a client accepts from a router, and the reasons for rejection.

use std::io;
use std::sync::Arc;

use tokio_rustls::rustls::client::WebPkiServerVerifier;
use tokio_rustls::rustls::client::danger::{
    HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier,
};
use tokio_rustls::rustls::client::verify_server_name;
use tokio_rustls::rustls::crypto::{
    CryptoProvider, verify_tls12_signature, verify_tls13_signature,
};
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use tokio_rustls::rustls::server::ParsedCertificate;
use tokio_rustls::rustls::{
    CertificateError, DigitallySignedStruct, Error as TlsError, OtherError, RootCertStore,
    SignatureScheme,
};
use webpki::EndEntityCert;

/// The certificates that a client accepts. In any case the router must have the key of its certificate.
#[derive(Debug)]
pub(crate) struct Trust {
    rule: Rule,
    provider: Arc<CryptoProvider>,
}

#[derive(Debug)]
enum Rule {
    /// Any certificate.
    Any,
    Authorities(Authorities),
}

/// Accepts certificates that the authorities have signed, and a certificate that the user has named itself, byte for
/// byte.
///
/// `openssl req -x509` makes a certificate that is an authority's and a server's at once, which the rules of the web
/// forbid. Accepting it from a user who names this very certificate is no more risk than trusting the certificates that
/// it may sign.
#[derive(Debug)]
struct Authorities {
    web: Arc<WebPkiServerVerifier>,
    named: Vec<CertificateDer<'static>>,
}

impl Trust {
    pub(crate) fn new(
        roots: RootCertStore,
        named: Vec<CertificateDer<'static>>,
        provider: Arc<CryptoProvider>,
    ) -> io::Result<Self> {
        let web =
            WebPkiServerVerifier::builder_with_provider(Arc::new(roots), Arc::clone(&provider));
        let web = web.build();
        let web = web.map_err(|e| io::Error::new(io::ErrorKind::InvalidInput, e.to_string()))?;
        Ok(Self {
            rule: Rule::Authorities(Authorities { web, named }),
            provider,
        })
    }

    pub(crate) fn any(provider: Arc<CryptoProvider>) -> Self {
        Self {
            rule: Rule::Any,
            provider,
        }
    }
}

impl Authorities {
    fn is_named(&self, certificate: &CertificateDer<'_>) -> bool {
        self.named.iter().any(|named| named == certificate)
    }

    fn verify(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, TlsError> {
        let verdict =
            self.web
                .verify_server_cert(end_entity, intermediates, server_name, ocsp_response, now);
        match verdict {
            // Its validity period was checked before.
            Err(error) if is_authoritys_own(&error) && self.is_named(end_entity) => {}
            // The library checks everything else before the names.
            Err(error) if has_no_names(&error) && self.is_named(end_entity) => {}
            verdict => return verdict,
        }
        let parsed = ParsedCertificate::try_from(end_entity)?;
        match verify_server_name(&parsed, server_name) {
            // Old certificates have only the subject's name, and curl accepts them.
            Err(error) if has_no_names(&error) && is_common_name(end_entity, server_name) => {}
            checked => checked?,
        }
        Ok(ServerCertVerified::assertion())
    }
}

impl ServerCertVerifier for Trust {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, TlsError> {
        match &self.rule {
            Rule::Any => Ok(ServerCertVerified::assertion()),
            Rule::Authorities(authorities) => {
                authorities.verify(end_entity, intermediates, server_name, ocsp_response, now)
            }
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, TlsError> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls12_signature(message, cert, dss, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, TlsError> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls13_signature(message, cert, dss, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        let algorithms = &self.provider.signature_verification_algorithms;
        algorithms.supported_schemes()
    }
}

/// Whether a certificate was rejected only for being an authority's: the checks before that passed.
fn is_authoritys_own(error: &TlsError) -> bool {
    let TlsError::InvalidCertificate(CertificateError::Other(OtherError(why))) = error else {
        return false;
    };
    matches!(why.downcast_ref(), Some(webpki::Error::CaUsedAsEndEntity))
}

/// Whether a certificate was rejected for having no alternative names at all.
fn has_no_names(error: &TlsError) -> bool {
    use CertificateError::NotValidForNameContext;
    let TlsError::InvalidCertificate(NotValidForNameContext { presented, .. }) = error else {
        return false;
    };
    presented.is_empty()
}

/// Whether the subject's common name is the server's name.
fn is_common_name(certificate: &CertificateDer<'_>, server_name: &ServerName<'_>) -> bool {
    /// The object identifier 2.5.4.3, with its head.
    const COMMON_NAME: [u8; 5] = [0x06, 0x03, 0x55, 0x04, 0x03];
    /// UTF8String and PrintableString.
    const TEXTS: [u8; 2] = [0x0c, 0x13];
    let Ok(parsed) = EndEntityCert::try_from(certificate) else {
        return false;
    };
    let subject = parsed.subject();
    let mut places = subject.windows(COMMON_NAME.len()).enumerate();
    let Some((at, _)) = places.find(|(_, bytes)| *bytes == COMMON_NAME) else {
        return false;
    };
    // A name has at most 64 characters: its length is one byte.
    let [tag, length, rest @ ..] = &subject[at + COMMON_NAME.len()..] else {
        return false;
    };
    let name = rest
        .get(..usize::from(*length))
        .filter(|_| TEXTS.contains(tag) && *length < 0x80);
    name.is_some_and(|name| name.eq_ignore_ascii_case(server_name.to_str().as_bytes()))
}

/// The error of a handshake, as an explanation with the remedy.
pub(crate) fn explained(error: io::Error) -> io::Error {
    let why = error.get_ref().and_then(|inner| inner.downcast_ref());
    let Some(TlsError::InvalidCertificate(why)) = why else {
        return error;
    };
    let text = match why {
        CertificateError::UnknownIssuer => {
            "no trusted authority has signed the router's certificate; a CA file can add authorities to the system's, \
             or that certificate itself"
                .to_owned()
        }
        CertificateError::Other(OtherError(other))
            if matches!(other.downcast_ref(), Some(webpki::Error::CaUsedAsEndEntity)) =>
        {
            "the router's certificate is that of a certificate authority (CA:TRUE), which is accepted as a server's \
             only if a CA file has this very certificate"
                .to_owned()
        }
        other => format!("the router's certificate is refused: {other}"),
    };
    io::Error::new(error.kind(), text)
}
