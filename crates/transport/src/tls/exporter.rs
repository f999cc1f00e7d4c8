//! Exported key material of TLS 1.3 (RFC 8446 section 7.5), for channel binding.
//!
//! The library exports it from its buffered sessions only. Of the others it shows the secret that exports derive from
//! to the configuration's key log, on the thread that drives the session.

use std::cell::Cell;

use rustls::crypto::tls13::OkmBlock;
use rustls::{KeyLog, Tls13CipherSuite};

thread_local! {
    static SHOWN: Cell<Option<ExporterSecret>> = const { Cell::new(None) };
}

/// The key log of a server: keeps one secret for the session that is being driven, and writes none.
#[derive(Debug)]
pub(super) struct ExporterSecrets;

const LABEL: &str = "EXPORTER_SECRET";

impl KeyLog for ExporterSecrets {
    fn log(&self, label: &str, _client_random: &[u8], secret: &[u8]) {
        if self.will_log(label) && secret.len() <= OkmBlock::MAX_LEN {
            SHOWN.set(Some(ExporterSecret(OkmBlock::new(secret))));
        }
    }

    fn will_log(&self, label: &str) -> bool {
        label == LABEL
    }
}

/// The secret of the session that this thread has just driven, if it was shown meanwhile.
pub(super) fn take() -> Option<ExporterSecret> {
    SHOWN.take()
}

/// A session's `exporter_secret`; zeroed when dropped.
pub(super) struct ExporterSecret(OkmBlock);

impl ExporterSecret {
    /// `tls-exporter` (RFC 9266): the export for its label with no context.
    pub(super) fn channel_binding(&self, suite: &Tls13CipherSuite) -> Option<[u8; 32]> {
        let hash = suite.common.hash_provider;
        let nothing = hash.hash(&[]);
        let nothing = nothing.as_ref();
        let mut derived = vec![0; hash.output_len()];
        expand_label(
            suite,
            &self.0,
            b"EXPORTER-Channel-Binding",
            nothing,
            &mut derived,
        )?;
        let mut exported = [0; 32];
        let derived = OkmBlock::new(&derived);
        expand_label(suite, &derived, b"exporter", nothing, &mut exported)?;
        Some(exported)
    }
}

/// `HKDF-Expand-Label` (RFC 8446 section 7.1).
fn expand_label(
    suite: &Tls13CipherSuite,
    secret: &OkmBlock,
    label: &[u8],
    context: &[u8],
    out: &mut [u8],
) -> Option<()> {
    const PREFIX: &[u8] = b"tls13 ";
    let length = u16::try_from(out.len()).ok()?.to_be_bytes();
    let label_length = [u8::try_from(PREFIX.len() + label.len()).ok()?];
    let context_length = [u8::try_from(context.len()).ok()?];
    let info: [&[u8]; 6] = [
        &length,
        &label_length,
        PREFIX,
        label,
        &context_length,
        context,
    ];
    let expander = suite.hkdf_provider.expander_for_okm(secret);
    expander.expand_slice(&info, out).ok()
}
