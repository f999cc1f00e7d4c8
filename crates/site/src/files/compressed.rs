//! A cache of compressed files: each is compressed once, however often it is requested.

use std::collections::HashMap;
use std::io::{self, Read};

use bytes::Bytes;
use flate2::Compression;
use flate2::read::GzEncoder;
use parking_lot::Mutex;

/// A shorter file fits into a packet anyway.
const FILE_BYTES_MIN: u64 = 1024;
/// A longer file would occupy its thread for more than about 20 ms.
const FILE_BYTES_MAX: u64 = 1024 * 1024;
/// Maximum size of the cache for all files of a service.
const KEPT_BYTES_MAX: usize = 16 * 1024 * 1024;

/// Files in their form for clients that accept gzip.
#[derive(Default)]
pub(super) struct Compressed {
    kept: Mutex<Kept>,
}

#[derive(Default)]
struct Kept {
    /// By path, with the tag of the compressed version.
    files: HashMap<String, (String, Option<Bytes>)>,
    bytes: usize,
}

/// Whether a file of that length is compressed.
pub(super) fn is_worth_it(length: u64) -> bool {
    (FILE_BYTES_MIN..=FILE_BYTES_MAX).contains(&length)
}

impl Compressed {
    /// A file's compressed bytes; `None` if these would be longer.
    pub(super) fn of(
        &self,
        path: &str,
        tag: &str,
        file: impl Read,
        length: u64,
    ) -> io::Result<Option<Bytes>> {
        if let Some((of, bytes)) = self.kept.lock().files.get(path)
            && of == tag
        {
            return Ok(bytes.clone());
        }
        let mut bytes = Vec::new();
        GzEncoder::new(file.take(length), Compression::default()).read_to_end(&mut bytes)?;
        let bytes = (bytes.len() as u64 <= length).then(|| Bytes::from(bytes));
        self.keep(path, tag, bytes.clone());
        Ok(bytes)
    }

    /// A full cache is emptied: the files in demand return soon.
    fn keep(&self, path: &str, tag: &str, bytes: Option<Bytes>) {
        let mut kept = self.kept.lock();
        let cost = |bytes: &Option<Bytes>| bytes.as_ref().map_or(0, Bytes::len) + path.len();
        let new = cost(&bytes);
        if kept.bytes + new > KEPT_BYTES_MAX {
            *kept = Kept::default();
        }
        let before = kept.files.insert(path.to_owned(), (tag.to_owned(), bytes));
        let before = before.map_or(0, |(_, bytes)| cost(&bytes));
        kept.bytes = (kept.bytes + new).saturating_sub(before);
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    #[test]
    fn the_cache_is_bounded_and_follows_the_file() {
        let mut file = tempfile::tempfile().expect("a file");
        file.write_all(&[b'a'; 4096]).expect("written");
        let compressed = Compressed::default();
        let of = |tag: &str| {
            use std::io::Seek;
            (&file).rewind().expect("a file");
            let bytes = compressed.of("a.txt", tag, &file, 4096);
            bytes.expect("read").expect("shorter")
        };
        let first = of("1");
        assert!(first.len() < 100);
        assert_eq!(first.as_ptr(), of("1").as_ptr());
        assert_ne!(first.as_ptr(), of("2").as_ptr());
        assert_eq!(compressed.kept.lock().files.len(), 1);
        for n in 0..40 {
            let mebibyte = Bytes::from(vec![0; 1024 * 1024]);
            compressed.keep(&n.to_string(), "x", Some(mebibyte));
            assert!(compressed.kept.lock().bytes <= KEPT_BYTES_MAX);
        }
    }
}
