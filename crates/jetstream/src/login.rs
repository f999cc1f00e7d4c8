//! The files that a node logs in with: its key, and the authorities that it trusts.
//!
//! They are read again for each connection, so that a renewed key or authority needs no restart of the node.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::Mutex;
use rustls_pki_types::CertificateDer;
use rustls_pki_types::pem::PemObject as _;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

use crate::credentials::Credentials;

/// The contents of the files.
pub struct Login {
    pub credentials: Option<Credentials>,
    pub tls: Arc<ClientConfig>,
}

/// The files, and their last readable contents.
pub struct LoginFiles {
    credentials: Option<PathBuf>,
    authorities: Vec<PathBuf>,
    last: Mutex<Last>,
}

struct Last {
    login: Arc<Login>,
    /// The fault of the files, which was logged.
    fault: Option<String>,
}

impl LoginFiles {
    /// Reads the named files; a relative path starts at `directory`. Without CA certificates, those of the system are
    /// trusted.
    pub fn read(
        credentials: Option<&str>,
        ca_certificates: &[String],
        directory: &Path,
    ) -> io::Result<Self> {
        let credentials = credentials.map(|file| directory.join(file));
        let authorities = ca_certificates.iter().map(|file| directory.join(file));
        let authorities: Vec<_> = authorities.collect();
        let login = Arc::new(Login {
            credentials: key(credentials.as_deref())?,
            tls: client_config(&authorities)?,
        });
        Ok(Self {
            credentials,
            authorities,
            last: Mutex::new(Last { login, fault: None }),
        })
    }

    /// The present contents. If the files cannot be read, a warning is logged once, and the last contents are used.
    pub fn now(&self) -> Arc<Login> {
        let mut last = self.last.lock();
        match self.read_again(&last.login) {
            Ok(login) => {
                last.login = Arc::new(login);
                last.fault = None;
            }
            Err(e) => {
                let fault = e.to_string();
                if last.fault.as_ref() != Some(&fault) {
                    tracing::warn!("NATS: {fault}; the key and authorities read before are used");
                    last.fault = Some(fault);
                }
            }
        }
        Arc::clone(&last.login)
    }

    /// The system's authorities are hundreds, and are read once.
    fn read_again(&self, last: &Login) -> io::Result<Login> {
        Ok(Login {
            credentials: key(self.credentials.as_deref())?,
            tls: match self.authorities.is_empty() {
                true => Arc::clone(&last.tls),
                false => client_config(&self.authorities)?,
            },
        })
    }
}

fn key(file: Option<&Path>) -> io::Result<Option<Credentials>> {
    let read = file.map(Credentials::read).transpose();
    read.map_err(io::Error::other)
}

/// The TLS configuration with the trusted certificates.
fn client_config(files: &[PathBuf]) -> io::Result<Arc<ClientConfig>> {
    let mut roots = RootCertStore::empty();
    if files.is_empty() {
        roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    }
    for path in files {
        let named =
            |e: &dyn std::fmt::Display| io::Error::other(format!("{}: {e}", path.display()));
        let certificates = CertificateDer::pem_file_iter(path).map_err(|e| named(&e))?;
        for certificate in certificates {
            let certificate = certificate.map_err(|e| named(&e))?;
            roots.add(certificate).map_err(|e| named(&e))?;
        }
    }
    let provider = Arc::new(ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(io::Error::other)?
        .with_root_certificates(roots)
        .with_no_client_auth();
    Ok(Arc::new(config))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    const SEED: &str = "SUACSSL3UAHUDXKFSNVUZRF5UHPMWZ6BFDTJ7M6USDXIEDNPPQYYYCU3VY";

    #[test]
    fn a_renewed_key_is_used_and_an_unreadable_one_is_not() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("user.nk");
        let public = |files: &LoginFiles| {
            let login = files.now();
            let credentials = login.credentials.as_ref();
            credentials.expect("they are named").public_key()
        };
        fs::write(&path, SEED).expect("it is written");
        let files = LoginFiles::read(Some("user.nk"), &[], directory.path()).expect("a seed");
        let first = public(&files);
        fs::write(&path, "SU").expect("it is written");
        assert_eq!(public(&files), first);
        let renewed = crosstie_nats::nkey::write_user_seed(&[7; 32]);
        fs::write(&path, renewed).expect("it is written");
        assert_ne!(public(&files), first);
        fs::remove_file(&path).expect("it is there");
        assert_ne!(public(&files), first);
        assert!(LoginFiles::read(Some("user.nk"), &[], directory.path()).is_err());
    }
}
