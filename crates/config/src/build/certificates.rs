//! Principals identified by certificates.

use std::sync::Arc;

use crosstie_auth::wamp::{CertificateHolder, CertificateHolders, Tls, fingerprint};

use super::Builder;
use super::auth::shared;
use crate::problem::Problem;
use crate::tree::quoted;
use crate::view::View;

impl Builder<'_> {
    pub(super) fn certificates(&mut self, tls: View<'_>) -> Tls {
        if let Some(authenticator) = self.asked(tls) {
            return Tls::Dynamic(authenticator);
        }
        let default_role = shared(tls, "default-role");
        let mut principals = CertificateHolders::default();
        for (authid, principal) in tls.map("principals") {
            let holder = self.certificate(authid, principal);
            principals.insert(authid, holder);
            self.check_has_role(authid, principal, default_role.as_ref());
        }
        Tls::Static {
            principals: Arc::new(principals),
            default_role,
        }
    }

    fn certificate(&mut self, authid: &str, principal: View<'_>) -> CertificateHolder {
        let subject = principal.variables("subject");
        let subject = subject
            .into_iter()
            .map(|(name, value)| (name.to_ascii_lowercase(), value));
        let holder = CertificateHolder {
            sha1: self.fingerprint(principal, "certificate-sha1"),
            sha256: self.fingerprint(principal, "certificate-sha256"),
            subject: subject.collect(),
            alternative: principal.text("san").map(str::to_owned),
            role: shared(principal, "role"),
        };
        let keys = ["certificate-sha1", "certificate-sha256", "san"];
        let says = keys.iter().any(|key| principal.given(key).is_some());
        if !says && holder.subject.is_empty() {
            let message = format!(
                "nothing says which certificate is that of {}: expected \"certificate-sha256\", \
                 \"certificate-sha1\", \"subject\" or \"san\"",
                quoted(authid)
            );
            self.problems.push(Problem::error(principal.span, message));
        }
        holder
    }

    fn fingerprint<const BYTES: usize>(
        &mut self,
        principal: View<'_>,
        key: &str,
    ) -> Option<[u8; BYTES]> {
        let text = principal.text(key)?;
        let bytes = fingerprint(text);
        if bytes.is_none() {
            let message = format!(
                "{} must be {} hexadecimal digits, with or without colons, found {}",
                quoted(key),
                2 * BYTES,
                quoted(text)
            );
            self.error(principal, key, message);
        }
        bytes
    }
}
