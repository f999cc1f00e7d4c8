//! Small files in memory, with their headers. A request for one of them takes a look at its state in place of opening,
//! reading and closing it.

use std::collections::HashMap;
use std::io;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use crosstie_transport::now_s;
use crosstie_web::condition::Validators;
use hyper::header::HeaderMap;
use parking_lot::Mutex;

use super::directory::{Directory, OpenFile, State};
use crate::content;

/// A longer file is sent in pieces.
const FILE_BYTES_MAX: u64 = 64 * 1024;
/// Maximum size of all files of a service.
const KEPT_BYTES_MAX: usize = 4 * 1024 * 1024;
/// What a file takes besides its bytes.
const ENTRY_BYTES: usize = 1024;
/// A file that changed within this time may change once more without a later time of change: file systems count it in
/// ticks.
const SETTLED: Duration = Duration::from_secs(2);

/// The files of a service that were requested last.
#[derive(Default)]
pub(super) struct Kept(Mutex<Files>);

#[derive(Default)]
struct Files {
    by_path: HashMap<String, (u32, Arc<KeptFile>)>,
    bytes: usize,
}

/// A file as it was in one state.
pub(super) struct KeptFile {
    state: State,
    pub(super) bytes: Bytes,
    pub(super) validators: Validators,
    /// Those that do not depend on the request or the time.
    pub(super) headers: HeaderMap,
}

impl Kept {
    /// The file with these names, if it was looked up in this second and has not changed since. A lookup alone checks
    /// that no name on the way leads out of the directory.
    pub(super) fn find(&self, directory: &Directory, path: &str) -> Option<Arc<KeptFile>> {
        let (seen_s, file) = self.0.lock().by_path.get(path).cloned()?;
        let is_same = seen_s == now_s() && directory.state(path) == Some(file.state);
        is_same.then_some(file)
    }

    /// The same for a file that was just looked up, which is read if it has changed. `None` if it is not kept.
    pub(super) fn renew(
        &self,
        path: &str,
        file: &OpenFile,
        now: SystemTime,
        describe: impl FnOnce(&Validators) -> HeaderMap,
    ) -> io::Result<Option<Arc<KeptFile>>> {
        if file.state.length > FILE_BYTES_MAX {
            return Ok(None);
        }
        if let Some((seen_s, kept)) = self.0.lock().by_path.get_mut(path)
            && kept.state == file.state
        {
            *seen_s = now_s();
            return Ok(Some(Arc::clone(kept)));
        }
        let changed = UNIX_EPOCH.checked_add(file.state.changed());
        let settled = changed.and_then(|changed| changed.checked_add(SETTLED));
        if settled.is_none_or(|settled| settled > now) {
            return Ok(None);
        }
        let validators = Validators::new(file.state.modified(), file.state.length);
        let kept = Arc::new(KeptFile {
            state: file.state,
            bytes: content::whole(&*file.file, file.state.length)?,
            headers: describe(&validators),
            validators,
        });
        self.0.lock().put(path, Arc::clone(&kept));
        Ok(Some(kept))
    }
}

impl Files {
    /// A full cache is emptied: the files in demand return soon.
    fn put(&mut self, path: &str, file: Arc<KeptFile>) {
        let cost = |file: &KeptFile| file.bytes.len() + path.len() + ENTRY_BYTES;
        let new = cost(&file);
        if self.bytes + new > KEPT_BYTES_MAX {
            *self = Self::default();
        }
        let before = self.by_path.insert(path.to_owned(), (now_s(), file));
        let before = before.map_or(0, |(_, file)| cost(&file));
        self.bytes = (self.bytes + new).saturating_sub(before);
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use super::super::directory::Found;
    use super::*;

    fn open(directory: &Directory, name: &str) -> OpenFile {
        match directory.find(name).expect("a lookup") {
            Found::File(file) => file,
            Found::Directory | Found::Nothing => panic!("expected a file {name}"),
        }
    }

    fn write(path: &Path, text: &str) {
        fs::write(path, text).expect("written");
    }

    /// Renews once the file has settled.
    fn keep(kept: &Kept, directory: &Directory, name: &str) -> Arc<KeptFile> {
        let later = SystemTime::now() + 2 * SETTLED;
        let renewed = kept.renew(name, &open(directory, name), later, |_| HeaderMap::new());
        renewed.expect("read").expect("kept")
    }

    #[test]
    fn a_kept_file_ends_with_its_state() {
        let place = tempfile::tempdir().expect("a directory");
        let path = place.path().join("a.txt");
        write(&path, "one");
        let directory = Directory::open(place.path().to_owned()).expect("opened");
        let kept = Kept::default();
        let file = open(&directory, "a.txt");
        let changed = UNIX_EPOCH + file.state.changed();
        let fresh = kept.renew("a.txt", &file, changed, |_| HeaderMap::new());
        assert!(fresh.expect("read").is_none(), "it may change once more");
        let first = keep(&kept, &directory, "a.txt");
        assert_eq!(first.bytes, "one");
        let again = keep(&kept, &directory, "a.txt");
        assert!(Arc::ptr_eq(&first, &again), "read once");
        let found = kept.find(&directory, "a.txt").expect("unchanged");
        assert!(Arc::ptr_eq(&first, &found), "not opened");

        // Of the same length, with the time of modification of the first.
        let modified = fs::metadata(&path).and_then(|data| data.modified());
        write(&path, "two");
        let file = fs::File::options().write(true).open(&path).expect("a file");
        file.set_modified(modified.expect("a time")).expect("set");
        assert!(kept.find(&directory, "a.txt").is_none());
        assert_eq!(keep(&kept, &directory, "a.txt").bytes, "two");

        fs::remove_file(&path).expect("removed");
        assert!(kept.find(&directory, "a.txt").is_none());
        std::os::unix::fs::symlink("/etc/hostname", &path).expect("a link");
        assert!(kept.find(&directory, "a.txt").is_none());
    }

    #[test]
    fn what_is_kept_is_bounded() {
        let mut files = Files::default();
        for n in 0..10_000 {
            let file = KeptFile {
                state: State::default(),
                bytes: Bytes::from(vec![0; n % 2000]),
                validators: Validators::new(Duration::ZERO, 0),
                headers: HeaderMap::new(),
            };
            files.put(&format!("{}", n % 9000), Arc::new(file));
            assert!(files.bytes <= KEPT_BYTES_MAX && !files.by_path.is_empty());
        }
    }
}
