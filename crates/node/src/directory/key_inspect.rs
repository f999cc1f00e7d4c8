//! Reads key files in any form used by WAMP programs.

use std::fs;
use std::io::Read as _;
use std::path::Path;

use super::key::{KeyError, NodeKey};
use super::key_file::{BYTES_MAX, PRIVATE_KEY, PUBLIC_KEY, key_bytes, parse};
use super::regular;

/// The contents of a key file.
#[derive(Debug)]
pub enum KeyFile {
    Pair(NodeKey),
    /// 64 hexadecimal digits.
    Public(String),
}

impl KeyFile {
    /// Reads Crossbar.io's `key.priv` and `key.pub`, and the forms of a private key that Autobahn accepts: 64
    /// hexadecimal digits or 32 bytes.
    pub fn read(path: &Path) -> Result<Self, KeyError> {
        let unreadable = |error| KeyError::Unreadable {
            path: path.to_owned(),
            error,
        };
        let mut bytes = Vec::new();
        let file = regular::open(path).map_err(unreadable)?;
        file.take(BYTES_MAX + 1)
            .read_to_end(&mut bytes)
            .map_err(unreadable)?;
        Self::parse(&bytes).map_err(|what| KeyError::Corrupt {
            path: path.to_owned(),
            what,
        })
    }

    fn parse(bytes: &[u8]) -> Result<Self, String> {
        if let Ok(seed) = <[u8; 32]>::try_from(bytes) {
            return NodeKey::from_seed(seed).map(Self::Pair);
        }
        let expected = || {
            format!(
                "expected lines '{PUBLIC_KEY}: …' and '{PRIVATE_KEY}: …', 64 hexadecimal digits, or 32 bytes"
            )
        };
        if bytes.len() as u64 > BYTES_MAX {
            return Err(expected());
        }
        let text = std::str::from_utf8(bytes).map_err(|_| expected())?;
        let tags = match text.trim() {
            digits if digits.len() == 64 => [(PRIVATE_KEY.to_owned(), digits.to_owned())].into(),
            _ => parse(text)?,
        };
        let public = match tags.contains_key(PUBLIC_KEY) {
            true => Some(key_bytes(&tags, PUBLIC_KEY)?),
            false => None,
        };
        if !tags.contains_key(PRIVATE_KEY) {
            let tag = tags.get(PUBLIC_KEY).ok_or_else(expected)?;
            return Ok(Self::Public(tag.to_ascii_lowercase()));
        }
        let pair = NodeKey::from_seed(key_bytes(&tags, PRIVATE_KEY)?)?;
        match public.is_none_or(|public| pair.is_public(&public)) {
            true => Ok(Self::Pair(pair)),
            false => Err(format!(
                "its {PUBLIC_KEY} is another key's; expected {}",
                pair.public_hexadecimal()
            )),
        }
    }
}

impl NodeKey {
    /// A new key, in a directory that has none.
    pub fn make(directory: &Path) -> Result<Self, KeyError> {
        match Self::load(directory) {
            Err(KeyError::None { .. }) => {}
            Ok(_) => {
                return Err(KeyError::There {
                    directory: directory.to_owned(),
                });
            }
            Err(e) => return Err(e),
        }
        let key = Self::generate()?;
        let written = fs::create_dir_all(directory).and_then(|()| key.write(directory));
        written.map_err(|error| KeyError::Unwritable {
            path: directory.to_owned(),
            error,
        })?;
        Ok(key)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 8032, section 7.1, the second test.
    const PRIVATE: &str = "4ccd089b28ff96da9db6c346ec114e0f5b8a319f35aba624da8cf6ed4fb8a6fb";
    const PUBLIC: &str = "3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c";

    #[test]
    fn forms_of_a_key() {
        let seed: Vec<u8> = (0..32)
            .map(|at| u8::from_str_radix(&PRIVATE[2 * at..2 * at + 2], 16).expect("digits"))
            .collect();
        let both =
            format!("head\n\npublic-key-ed25519: {PUBLIC}\nprivate-key-ed25519: {PRIVATE}\n");
        let other = both.replace(PUBLIC, PRIVATE);
        let public = format!("head\n\npublic-key-ed25519: {}\n", PUBLIC.to_uppercase());
        let digits = format!("{PRIVATE}\n");
        for (bytes, expected) in [
            (&seed[..], "a pair"),
            (both.as_bytes(), "a pair"),
            (digits.as_bytes(), "a pair"),
            (public.as_bytes(), "public"),
            (b"", "expected lines"),
            (&seed[1..], "expected lines"),
            (other.as_bytes(), "its public-key-ed25519 is another key's"),
            (&[b'x'; 70_000], "expected lines"),
        ] {
            let found = match KeyFile::parse(bytes) {
                Ok(KeyFile::Pair(key)) if key.public_hexadecimal() == PUBLIC => "a pair".to_owned(),
                Ok(KeyFile::Public(key)) if key == PUBLIC => "public".to_owned(),
                other => other.err().unwrap_or_default(),
            };
            assert!(found.starts_with(expected), "{found}");
        }
    }

    #[test]
    fn a_new_key_does_not_replace_another() {
        let folder = tempfile::tempdir().expect("a folder");
        let directory = folder.path().join("joe");
        let made = NodeKey::make(&directory).expect("can be made");
        for name in ["key.priv", "key.pub"] {
            let found = match KeyFile::read(&directory.join(name)).expect("can be read") {
                KeyFile::Pair(key) => key.public_hexadecimal(),
                KeyFile::Public(key) => key,
            };
            assert_eq!(found, made.public_hexadecimal());
        }
        let again = NodeKey::make(&directory).expect_err("is there");
        assert!(again.to_string().contains("has a key already"), "{again}");
    }
}
