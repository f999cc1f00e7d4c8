//! Certificates of servers: checked, and as files in the servers' directories.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, ensure};
use crosstie_config as config;
use crosstie_node::{certificates, check_peer, check_tls};

use super::files::{File, Files};
use super::names::{CERTIFICATE, KEY, in_folder};
use super::server::Server;

/// The files of servers, from one certificate with all their names or from one for each.
pub(super) fn files(
    servers: &[Server],
    certificates: &[PathBuf],
    keys: &[PathBuf],
    authorities: &Path,
) -> anyhow::Result<Files> {
    let count = certificates.len();
    ensure!(
        count == keys.len() && (count == 1 || count == servers.len()),
        "--certificate and --key: expected one of each, or one of each for every --server"
    );
    let mut files = Files::new();
    let pairs = certificates.iter().zip(keys).cycle();
    for ((certificate, key), server) in pairs.zip(servers) {
        check((certificate, key), authorities, server)?;
        let at = |name: &str| in_folder(&server.name, name);
        files.insert(at(CERTIFICATE), File::plain(text(certificate)?));
        files.insert(at(KEY), File::secret(text(key)?));
    }
    Ok(files)
}

/// Checks that the files work for a server, and among servers: otherwise only a log would show the fault.
fn check(
    (certificate, key): (&Path, &Path),
    authorities: &Path,
    server: &Server,
) -> anyhow::Result<()> {
    let named = |path: &Path| {
        let path = path.to_str().context("expected a path in UTF-8");
        path.map(str::to_owned)
    };
    let files = config::Tls {
        key: named(key)?,
        certificate: named(certificate)?,
        chain_certificates: Vec::new(),
        client_authorities: vec![named(authorities)?],
        named: Vec::new(),
        revocation_lists: Vec::new(),
        is_certificate_optional: false,
    };
    check_tls(&files, Path::new(""))?;
    check_peer(certificate, authorities, &server.host)
        .with_context(|| format!("--server {}:{}", server.host, server.port))
}

/// An authority's certificates, which may be put in one file with others.
pub(super) fn authority(path: &Path) -> anyhow::Result<String> {
    let found = certificates(path)?;
    ensure!(
        !found.is_empty(),
        "--authority: {}: expected a certificate in PEM, found none",
        path.display()
    );
    let mut text = text(path)?;
    if !text.ends_with('\n') {
        text.push('\n');
    }
    Ok(text)
}

fn text(path: &Path) -> anyhow::Result<String> {
    fs::read_to_string(path).with_context(|| path.display().to_string())
}
