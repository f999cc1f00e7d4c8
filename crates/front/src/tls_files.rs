//! The files of TLS listeners: reads and checks them, and reports oddities for clients.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::{fs, io};

use crosstie_auth::{private_key, x509};
use crosstie_config as model;
pub use crosstie_transport::tls::check_peer;
use crosstie_transport::tls::{self, KeyFiles, TlsFiles};
use rustls_pki_types::pem::PemObject as _;
use rustls_pki_types::{CertificateDer, CertificateRevocationListDer};

use crate::ends::{Ends, File};

/// Checks whether a listener could be opened with these files. Returns a property that clients may reject; an error
/// names the faulty file.
pub fn check_tls(files: &model::Tls, directory: &Path) -> io::Result<Option<String>> {
    let files = tls_files(files, directory, &[]);
    server_config(&files).map(|_| oddity(&files))
}

/// The TLS of an endpoint, if it has any; an error names the faulty file.
pub fn tls_of(
    endpoint: &model::Endpoint,
    directory: &Path,
    protocols: &'static [&'static [u8]],
) -> io::Result<Option<Arc<tls::ServerConfig>>> {
    let files = endpoint.tls();
    files
        .map(|files| read(files, directory, protocols))
        .transpose()
}

/// Reads the files of a listener; an error names the faulty one.
pub(crate) fn read(
    files: &model::Tls,
    directory: &Path,
    protocols: &'static [&'static [u8]],
) -> io::Result<Arc<tls::ServerConfig>> {
    let files = tls_files(files, directory, protocols);
    let config = server_config(&files)?;
    if let Some(oddity) = oddity(&files) {
        tracing::warn!("{oddity}");
    }
    Ok(config)
}

fn server_config(files: &TlsFiles) -> io::Result<Arc<tls::ServerConfig>> {
    let config = tls::server_config(files).map_err(|e| {
        let mut pairs = [&files.own].into_iter().chain(&files.named);
        let faulty = pairs.find(|pair| why_unusable(&pair.key).is_some());
        match faulty {
            Some(pair) => explained(&pair.key, e),
            None => e,
        }
    })?;
    for named in &files.named {
        check_names_a_host(&named.certificate)?;
    }
    check_revocations(&files.revocation_lists)?;
    Ok(config)
}

/// Without a host in it, no client would be given the certificate.
fn check_names_a_host(path: &Path) -> io::Result<()> {
    let names = |der: &CertificateDer<'_>| {
        let fields = x509::read(der)?;
        let mut names = fields.alternatives().iter();
        names.find_map(|name| matches!(name, x509::Alternative::Dns(_)).then_some(()))
    };
    first_certificate(path)
        .and_then(|own| names(&own))
        .ok_or_else(|| {
            let why = "expected the name of a host (DNS) among the subject's alternative names, found none";
            let text = format!("{}: {why}", path.display());
            io::Error::new(io::ErrorKind::InvalidData, text)
        })
}

/// Of two lists of one authority the library would use one.
fn check_revocations(paths: &[PathBuf]) -> io::Result<()> {
    let mut authorities = BTreeMap::new();
    for path in paths {
        for list in revocation_lists(path) {
            let issuer = x509::revocations(&list).map(|list| list.issuer.to_vec());
            if let Some(first) = authorities.insert(issuer, path) {
                let text = format!(
                    "{}: expected one revocation list of each authority, found a second one in {}",
                    first.display(),
                    path.display()
                );
                return Err(io::Error::new(io::ErrorKind::InvalidData, text));
            }
        }
    }
    Ok(())
}

/// The paths of all files.
pub(crate) fn paths(files: &model::Tls) -> impl Iterator<Item = &String> {
    let own = [&files.certificate, &files.key].into_iter();
    let named = files.named.iter().flat_map(|named| {
        let own = [&named.certificate, &named.key].into_iter();
        own.chain(&named.chain_certificates)
    });
    own.chain(&files.chain_certificates)
        .chain(&files.client_authorities)
        .chain(named)
        .chain(&files.revocation_lists)
}

/// When the listener's certificates expire, and its lists of revoked ones. The times of files that cannot be read here
/// are `None`.
pub(crate) fn ends(files: &model::Tls, directory: &Path) -> Vec<Ends> {
    let named = files.named.iter().map(|named| &named.certificate);
    let certificates = [&files.certificate].into_iter().chain(named);
    let certificates = certificates.map(|path| {
        let path = directory.join(path);
        let own = first_certificate(&path);
        let fields = own.as_ref().and_then(|own| x509::read(own));
        Ends {
            file: File::Certificate,
            path,
            names: fields.as_ref().map(names).unwrap_or_default(),
            at_s: fields.map(|fields| fields.not_after.unix_s()),
        }
    });
    let lists = files.revocation_lists.iter().map(|path| Ends {
        file: File::RevocationList,
        path: directory.join(path),
        names: Vec::new(),
        at_s: next_update_s(&directory.join(path)),
    });
    certificates.chain(lists).collect()
}

/// Maximum number of names that are shown of a certificate.
const NAMES_MAX: usize = 10;

/// The first hosts and addresses that a certificate is for, or its subject's common name.
fn names(fields: &x509::Fields<'_>) -> Vec<String> {
    let hosts = fields.alternatives().iter().filter_map(|name| match name {
        x509::Alternative::Dns(host) => Some((*host).to_owned()),
        x509::Alternative::Ip(address) => Some(address.to_string()),
        _ => None,
    });
    let hosts: Vec<String> = hosts.take(NAMES_MAX).collect();
    if !hosts.is_empty() {
        return hosts;
    }
    let common = fields.common_name().into_iter();
    common.map(str::to_owned).collect()
}

fn first_certificate(path: &Path) -> Option<CertificateDer<'static>> {
    CertificateDer::pem_file_iter(path).ok()?.next()?.ok()
}

/// When the first of the lists in a file has to be renewed.
fn next_update_s(path: &Path) -> Option<i64> {
    let lists = revocation_lists(path).into_iter();
    let times = lists.map(|list| x509::revocations(&list)?.next_update);
    times.flatten().map(x509::Time::unix_s).min()
}

fn revocation_lists(path: &Path) -> Vec<CertificateRevocationListDer<'static>> {
    let lists = CertificateRevocationListDer::pem_file_iter(path);
    lists.map_or_else(|_| Vec::new(), |lists| lists.flatten().collect())
}

/// An error with this key among the files, with the reason if the key is faulty.
pub fn explained(key: &Path, failed: io::Error) -> io::Error {
    match why_unusable(key) {
        Some(why) => io::Error::new(failed.kind(), format!("{}: {why}", key.display())),
        None => failed,
    }
}

fn why_unusable(key: &Path) -> Option<String> {
    let pem = fs::read(key).ok()?;
    private_key::why_unusable(&pem)
}

/// A property of the files that clients may reject, or the reason why clients with certificates would be refused.
fn oddity(files: &TlsFiles) -> Option<String> {
    tls::oddity(&files.own).or_else(|| {
        files.client_authorities.iter().find_map(|path| {
            let found = CertificateDer::pem_file_iter(path).ok()?;
            let curve = found.flatten().find_map(|der| private_key::unusable_curve(&der))?;
            Some(format!(
                "{}: the authority's key is for {curve}, by which no signature can be checked: clients \
                 whose certificates it signed are refused",
                path.display()
            ))
        })
    })
}

fn tls_files(
    files: &model::Tls,
    directory: &Path,
    protocols: &'static [&'static [u8]],
) -> TlsFiles {
    let at = |path: &String| directory.join(path);
    let pair = |certificate, key, chain: &[String]| KeyFiles {
        certificate: at(certificate),
        key: at(key),
        chain: chain.iter().map(at).collect(),
    };
    let named = files
        .named
        .iter()
        .map(|named| pair(&named.certificate, &named.key, &named.chain_certificates));
    TlsFiles {
        own: pair(&files.certificate, &files.key, &files.chain_certificates),
        named: named.collect(),
        client_authorities: files.client_authorities.iter().map(at).collect(),
        revocation_lists: files.revocation_lists.iter().map(at).collect(),
        is_certificate_optional: files.is_certificate_optional,
        protocols,
    }
}
