//! A change of a cluster's files: computed, shown, and written as a whole.
//!
//! The change is first written to one file beside the record. If the command is interrupted, the next one finishes it.

use std::fs::{self, OpenOptions, Permissions};
use std::io::{ErrorKind, Write as _};
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::Path;

use anyhow::{Context as _, bail, ensure};
use serde::{Deserialize, Serialize};

use super::files::{File, Files};
use super::lines;
use super::names::{PENDING, RECORD};
use super::record::Record;

/// Edits of files, and the record behind them.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Change {
    pub(super) record: Record,
    pub(super) edits: Vec<Edit>,
    /// Files that were edited since they were written.
    #[serde(skip)]
    pub(super) edited: Vec<String>,
}

/// A file's text before and after.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Edit {
    /// In the cluster's directory.
    pub(super) path: String,
    /// `None` for a new file.
    pub(super) before: Option<String>,
    pub(super) after: String,
    is_secret: bool,
}

impl Change {
    /// All files of a new cluster; refused if one of them exists.
    pub(super) fn first(path: &Path, mut record: Record, loose: Files) -> anyhow::Result<Self> {
        let following = record.plan.files()?;
        record.written = texts(&following);
        let files = following.into_iter().chain(loose);
        let edits: Vec<_> = files.map(|(path, file)| Edit::new(path, file)).collect();
        let names = edits.iter().map(|edit| &*edit.path);
        for name in names.chain([RECORD]) {
            refuse_existing(&path.join(name))?;
        }
        Ok(Self {
            record,
            edits,
            edited: Vec::new(),
        })
    }

    /// From a directory's present record to another one. `loose` files do not follow from the plan; they are put in place of
    /// what is there.
    pub(super) fn of(
        directory: &Path,
        present: &Record,
        mut record: Record,
        loose: Files,
    ) -> anyhow::Result<Self> {
        record.plan.check()?;
        let following = record.plan.files()?;
        let written = &present.written;
        let (mut edits, mut edited) = (Vec::new(), Vec::new());
        for (name, file) in &following {
            let path = directory.join(name);
            let Some(base) = written.get(name) else {
                refuse_existing(&path)?;
                edits.push(Edit::new(name.clone(), file.clone()));
                continue;
            };
            let before = text_if_any(&path)?.with_context(|| {
                format!(
                    "{} is not there: put it back as it was written",
                    path.display()
                )
            })?;
            if before != *base {
                edited.push(name.clone());
            }
            let merged = lines::merge(base, &before, &file.text).map_err(|conflict| {
                anyhow::anyhow!(
                    "{}:{}: this line was edited, and the change touches it: expected `{}`, found `{}`",
                    path.display(),
                    conflict.line,
                    conflict.expected,
                    conflict.found
                )
            })?;
            if merged != before {
                edits.push(Edit {
                    path: name.clone(),
                    before: Some(before),
                    after: merged,
                    is_secret: file.is_secret,
                });
            }
        }
        for (name, file) in loose {
            let before = text_if_any(&directory.join(&name))?;
            if before.as_ref() != Some(&file.text) {
                edits.push(Edit {
                    before,
                    ..Edit::new(name, file)
                });
            }
        }
        record.written = texts(&following);
        Ok(Self {
            record,
            edits,
            edited,
        })
    }

    /// The difference, file by file. Texts of keys are left out.
    pub(super) fn shown(&self) -> String {
        let mut text = String::new();
        for edit in &self.edits {
            let is_key = edit.path.ends_with(".nk") || edit.path.ends_with(".key");
            text += &match &edit.before {
                None => format!("new: {}\n", edit.path),
                Some(_) if is_key => format!("replaced: {}\n", edit.path),
                Some(before) => {
                    let difference = lines::shown(before, &edit.after);
                    format!("--- {0}\n+++ {0}\n{difference}", edit.path)
                }
            };
        }
        let password = &self.record.plan.routes_password;
        text.replace(password.as_str(), "…").trim_end().to_owned()
    }

    /// Writes all of it.
    pub(super) fn write(&self, directory: &Path) -> anyhow::Result<()> {
        fs::create_dir_all(directory).with_context(|| directory.display().to_string())?;
        put(
            &directory.join(PENDING),
            &serde_json::to_string(self)?,
            true,
        )?;
        self.finish(directory)
    }

    /// Writes what is not written yet.
    pub(super) fn finish(&self, directory: &Path) -> anyhow::Result<()> {
        for edit in &self.edits {
            let path = directory.join(&edit.path);
            let found = text_if_any(&path)?;
            if found.as_ref() == Some(&edit.after) {
                continue;
            }
            ensure!(
                found == edit.before,
                "{} was edited while it was changed: put it back, or remove {}",
                path.display(),
                directory.join(PENDING).display()
            );
            put(&path, &edit.after, edit.is_secret)?;
        }
        keep(&self.record, directory)?;
        let pending = directory.join(PENDING);
        fs::remove_file(&pending).with_context(|| pending.display().to_string())
    }

    /// The paths of new files (`true`) or of changed ones.
    pub(super) fn paths(&self, new: bool) -> impl Iterator<Item = &str> {
        let edits = self.edits.iter();
        let edits = edits.filter(move |edit| edit.before.is_none() == new);
        edits.map(|edit| &*edit.path)
    }
}

impl Edit {
    fn new(path: String, file: File) -> Self {
        Self {
            path,
            before: None,
            after: file.text,
            is_secret: file.is_secret,
        }
    }
}

/// Writes a record whose files are unchanged.
pub(super) fn keep(record: &Record, directory: &Path) -> anyhow::Result<()> {
    let text = serde_json::to_string_pretty(record)? + "\n";
    put(&directory.join(RECORD), &text, true)
}

fn texts(files: &Files) -> std::collections::BTreeMap<String, String> {
    let texts = files.iter();
    texts
        .map(|(path, file)| (path.clone(), file.text.clone()))
        .collect()
}

/// A file's text; `None` if the file does not exist.
pub(super) fn text_if_any(path: &Path) -> anyhow::Result<Option<String>> {
    match fs::read_to_string(path) {
        Ok(text) => Ok(Some(text)),
        Err(e) if e.kind() == ErrorKind::NotFound => Ok(None),
        Err(e) => Err(e).with_context(|| path.display().to_string()),
    }
}

fn refuse_existing(path: &Path) -> anyhow::Result<()> {
    if path.symlink_metadata().is_ok() {
        bail!("{} is there already; it is not overwritten", path.display());
    }
    Ok(())
}

/// Replaces a file as a whole: a reader sees the former text or the new one.
fn put(path: &Path, text: &str, is_secret: bool) -> anyhow::Result<()> {
    let put = || {
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent)?;
        }
        let present = fs::metadata(path).map(|found| found.permissions().mode() & 0o777);
        let mode = if is_secret { 0o600 } else { 0o644 };
        let path = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
        let mut beside = path.as_os_str().to_owned();
        beside.push(".new");
        let mut options = OpenOptions::new();
        let options = options.write(true).create(true).truncate(true).mode(0o600);
        let mut opened = options.open(&beside)?;
        opened.set_permissions(Permissions::from_mode(present.unwrap_or(mode)))?;
        opened.write_all(text.as_bytes())?;
        opened.sync_all()?;
        fs::rename(&beside, &path)
    };
    let put: std::io::Result<()> = put();
    put.with_context(|| format!("cannot write {}", path.display()))
}
