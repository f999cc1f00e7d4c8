//! The members of a zip file, by name.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, Read};
use std::sync::Arc;

use zip::read::ZipFile;
use zip::{CompressionMethod, ZipArchive};

use crate::content::Part;

/// Maximum number of members, which bounds the cost of the directory.
const MEMBERS_MAX: usize = 100_000;

/// Members that can be served.
pub(super) struct Members(HashMap<String, Member>);

/// A member: its position and its properties.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Member {
    pub(super) index: usize,
    pub(super) offset: u64,
    pub(super) stored_bytes: u64,
    pub(super) bytes: u64,
    pub(super) checksum: u32,
    pub(super) is_deflated: bool,
}

impl Members {
    /// Reads the file's directory; members longer than `bytes_max` are not served.
    pub(super) fn read(file: &Arc<File>, bytes_max: u64) -> io::Result<Self> {
        let reader = io::BufReader::new(Part::whole(Arc::clone(file))?);
        let mut archive = ZipArchive::new(reader).map_err(io::Error::other)?;
        if archive.len() > MEMBERS_MAX {
            let text = format!("more than {MEMBERS_MAX} members");
            return Err(io::Error::other(text));
        }
        let mut members = HashMap::new();
        let mut left_out = Vec::new();
        for index in 0..archive.len() {
            let found = archive.by_index_raw(index).map_err(io::Error::other)?;
            if found.is_dir() {
                continue;
            }
            let name = found.name().map(std::borrow::Cow::into_owned);
            let name = name.unwrap_or_default();
            match servable(&found, &name, bytes_max) {
                Ok((offset, is_deflated)) => {
                    let member = Member {
                        index,
                        offset,
                        stored_bytes: found.compressed_size(),
                        bytes: found.size(),
                        checksum: found.crc32(),
                        is_deflated,
                    };
                    members.insert(name, member);
                }
                Err(why) => left_out.push((name, why)),
            }
        }
        if let Some((name, why)) = left_out.first() {
            let count = left_out.len();
            tracing::warn!("{count} members of an archive are not served; {name:?} is {why}");
        }
        Ok(Self(members))
    }

    pub(super) fn find(&self, name: &str) -> Option<&Member> {
        self.0.get(name)
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }
}

/// The offset of a member's bytes and its compression, or why it is not served.
fn servable<R: Read>(
    found: &ZipFile<'_, R>,
    name: &str,
    bytes_max: u64,
) -> Result<(u64, bool), String> {
    if !is_servable(name) {
        return Err("a name that leaves the archive".to_owned());
    }
    if found.encrypted() {
        return Err("encrypted".to_owned());
    }
    if found.size() > bytes_max {
        return Err(format!("longer than {bytes_max} bytes"));
    }
    let is_deflated = match found.compression() {
        CompressionMethod::Stored => false,
        CompressionMethod::Deflated => true,
        other => return Err(format!("compressed by {other}")),
    };
    let offset = found.data_start().ok_or("without a position in the file")?;
    Ok((offset, is_deflated))
}

/// Whether a URL path can contain the name.
fn is_servable(name: &str) -> bool {
    let is_plain = |part: &str| !matches!(part, "" | "." | "..");
    name.split('/').all(is_plain) && !name.contains(|c: char| c == '\\' || c.is_control())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names() {
        for name in ["a", "a/b.html", "é", "a b", "..a"] {
            assert!(is_servable(name), "{name:?}");
        }
        for name in [
            "", "/a", "../a", "a/../b", "a//b", "a\\b", "a\n", "./a", "a/",
        ] {
            assert!(!is_servable(name), "{name:?}");
        }
    }
}
