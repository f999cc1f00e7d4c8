//! A cluster's directory, as `cluster init` has written it.

use std::fs::File;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail, ensure};

use super::change::{Change, text_if_any};
use super::names::{PENDING, RECORD};
use super::record::{Record, VERSION};

/// A cluster's directory, in which no other command works at the same time.
pub(super) struct Directory {
    pub(super) path: PathBuf,
    pub(super) record: Record,
    _lock: File,
}

impl Directory {
    /// Opens a directory that `cluster init` has written, and finishes an interrupted change.
    pub(super) fn open(path: &Path) -> anyhow::Result<Self> {
        let lock = File::open(path).with_context(|| path.display().to_string())?;
        if lock.try_lock().is_err() {
            bail!("{}: another command works in it", path.display());
        }
        let pending = path.join(PENDING);
        if let Some(text) = text_if_any(&pending)? {
            let change: Change = read(&pending, &text)?;
            change.finish(path)?;
            complain!(
                "Finished a change of {} that was interrupted",
                path.display()
            );
        }
        let file = path.join(RECORD);
        let text = text_if_any(&file)?.with_context(|| {
            format!(
                "{} is not there: expected a directory that `crosstie cluster init` has written",
                file.display()
            )
        })?;
        let record: Record = read(&file, &text)?;
        ensure!(
            record.version == VERSION,
            "{}: version {} is another release's; expected {VERSION}",
            file.display(),
            record.version
        );
        Ok(Self {
            path: path.to_owned(),
            record,
            _lock: lock,
        })
    }
}

fn read<T: serde::de::DeserializeOwned>(path: &Path, text: &str) -> anyhow::Result<T> {
    let read = serde_json::from_str(text);
    read.with_context(|| {
        format!(
            "{}: expected a record of `crosstie cluster`",
            path.display()
        )
    })
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::super::plan::Node;
    use super::super::plan::tests::plan;
    use super::super::seeds;
    use super::*;

    /// A directory as `init` leaves it.
    fn made() -> tempfile::TempDir {
        let directory = tempfile::tempdir().expect("a directory");
        let mut plan = plan(None);
        let loose = seeds::complete(&mut plan).expect("keys");
        let change = Change::first(directory.path(), Record::new(plan), loose);
        change
            .and_then(|change| change.write(directory.path()))
            .expect("it is written");
        directory
    }

    fn adding(directory: &Directory, node: &str) -> anyhow::Result<Change> {
        let mut record = directory.record.clone();
        record.plan.nodes.push(Node::new(node));
        let loose = seeds::complete(&mut record.plan)?;
        Change::of(&directory.path, &directory.record, record, loose)
    }

    fn edit(place: &Path, name: &str, from: &str, to: &str) {
        let path = place.join(name);
        let text = fs::read_to_string(&path).expect("it is there");
        assert!(text.contains(from), "{text}");
        fs::write(path, text.replacen(from, to, 1)).expect("it is written");
    }

    fn change_one(place: &Path, edit: &super::super::change::Edit) {
        let path = place.join(&edit.path);
        fs::create_dir_all(path.parent().expect("it has one")).expect("it is made");
        fs::write(path, &edit.after).expect("it is written");
    }

    #[test]
    fn an_interrupted_change_is_finished_by_the_next_command() {
        let place = made();
        let path = place.path();
        let directory = Directory::open(path).expect("it is one");
        let change = adding(&directory, "node3").expect("it can be added");
        drop(directory);
        // As if the program had ended behind the second file.
        let pending = serde_json::to_string(&change).expect("it is JSON");
        fs::write(path.join(PENDING), &pending).expect("it is written");
        for edit in &change.edits[..2] {
            change_one(path, edit);
        }
        let directory = Directory::open(path).expect("it is one");
        assert_eq!(directory.record, change.record);
        for edit in &change.edits {
            let text = fs::read_to_string(path.join(&edit.path)).expect("it is there");
            assert_eq!(text, edit.after);
        }
        assert!(!path.join(PENDING).exists());
        assert!(adding(&directory, "node3").is_err(), "the name is in use");
        // An edit between both commands is not overwritten.
        let change = adding(&directory, "node4").expect("it can be added");
        drop(directory);
        let pending = serde_json::to_string(&change).expect("it is JSON");
        fs::write(path.join(PENDING), &pending).expect("it is written");
        edit(path, "nats2/nats.conf", "8MB", "4MB");
        let error = Directory::open(path)
            .err()
            .expect("it is refused")
            .to_string();
        assert!(
            error.contains("nats2/nats.conf was edited while"),
            "{error}"
        );
    }

    #[test]
    fn edits_of_others_stay_and_touched_ones_are_named() {
        let place = made();
        let path = place.path();
        edit(
            path,
            "nats1/nats.conf",
            "max_payload: 8MB",
            "max_payload: 16MB",
        );
        let directory = Directory::open(path).expect("it is one");
        let change = adding(&directory, "node3").expect("it can be added");
        assert_eq!(change.edited, ["nats1/nats.conf"]);
        let text = |change: &Change| {
            let edit = change
                .edits
                .iter()
                .find(|edit| edit.path == "nats1/nats.conf");
            edit.expect("it is changed").after.clone()
        };
        assert!(text(&change).contains("16MB") && text(&change).contains("# node3"));
        let shown = change.shown();
        assert!(shown.contains("+      # node3") && shown.contains("new: node3/fabric.json"));
        // A seed begins with these letters; a public key may have them inside.
        let mut words = shown.split(|c: char| !c.is_ascii_alphanumeric());
        let has_seed = words.any(|word| word.starts_with("SU"));
        assert!(!shown.contains("routing") && !has_seed, "{shown}");
        edit(
            path,
            "nats1/nats.conf",
            "      # node2\n",
            "      # the second\n",
        );
        edit(path, "nats1/nats.conf", "    ]\n", "    # mine\n    ]\n");
        let error = adding(&directory, "node3")
            .expect_err("it is refused")
            .to_string();
        assert!(
            error.contains("nats1/nats.conf:") && error.contains("found `# mine`"),
            "{error}"
        );
        fs::remove_file(path.join("nats1/nats.conf")).expect("it is there");
        let error = adding(&directory, "node3")
            .expect_err("it is refused")
            .to_string();
        assert!(error.contains("is not there"), "{error}");
    }

    #[test]
    fn a_directory_of_another_kind_or_in_use_is_refused() {
        let place = tempfile::tempdir().expect("a directory");
        let refused = |path: &Path| Directory::open(path).err().expect("refused").to_string();
        assert!(refused(place.path()).contains("expected a directory that"));
        fs::write(place.path().join(RECORD), "{}").expect("it is written");
        assert!(refused(place.path()).contains("expected a record"));
        let place = made();
        let directory = Directory::open(place.path()).expect("it is one");
        assert!(refused(place.path()).contains("another command"));
        drop(directory);
        edit(place.path(), RECORD, "\"version\": 1", "\"version\": 2");
        assert!(refused(place.path()).contains("version 2"));
    }
}
