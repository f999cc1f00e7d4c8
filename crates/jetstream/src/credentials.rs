//! The file with a node's credentials for NATS: an nkey seed, or a JWT and its seed as written by `nsc`.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use crosstie_nats::nkey;
use ring::signature::{Ed25519KeyPair, KeyPair as _};

/// A node's credentials.
pub struct Credentials {
    pub jwt: Option<String>,
    key: Ed25519KeyPair,
}

impl Credentials {
    /// Reads the file. An error names it.
    pub fn read(path: &Path) -> Result<Self, String> {
        let named = |why: &str| format!("{}: {why}", path.display());
        let text = fs::read_to_string(path).map_err(|e| named(&e.to_string()))?;
        let mut jwt = None;
        let mut seed = None;
        for line in text.lines().map(str::trim) {
            match line {
                line if line.starts_with("SU") => seed = Some(line),
                line if line.starts_with("eyJ") => jwt = Some(line.to_owned()),
                _ => {}
            }
        }
        let seed = seed.ok_or_else(|| named("expected the seed of a user's nkey (SU…)"))?;
        let seed = nkey::read_user_seed(seed);
        let seed = seed.map_err(|e| named(&format!("invalid nkey seed: {e}")))?;
        let key = Ed25519KeyPair::from_seed_unchecked(&seed);
        let key = key.map_err(|e| named(&e.to_string()))?;
        Ok(Self { jwt, key })
    }

    /// Reads the file; returns a warning if other users of the machine can read it too.
    pub fn check(path: &Path) -> Result<Option<String>, String> {
        Self::read(path)?;
        let mode = fs::metadata(path).map_or(0, |found| found.mode() & 0o777);
        let warning = || {
            let path = path.display();
            format!("{path} has mode {mode:04o}: other users can read the key; expected 0600")
        };
        Ok((mode & 0o077 != 0).then(warning))
    }

    /// The signature of a server's nonce, in CONNECT's form.
    pub fn sign(&self, nonce: &str) -> String {
        URL_SAFE_NO_PAD.encode(self.key.sign(nonce.as_bytes()))
    }

    pub fn public_key(&self) -> String {
        let public = self.key.public_key().as_ref().try_into();
        // Such keys have 32 bytes.
        nkey::write_user(&public.unwrap_or([0; 32]))
    }
}
