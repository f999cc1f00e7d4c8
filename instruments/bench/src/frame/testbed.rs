//! The servers that stay up for a whole run, as described to its reader.

use serde_json::{Value, json};

/// Servers of one kind, ours or foreign ones, and peers.
#[derive(Clone, Debug, Default)]
pub(crate) struct Testbed {
    /// Notes before the figures: versions, absences.
    pub(crate) notes: Vec<String>,
    /// Peers that were requested and are not installed.
    pub(crate) absent: Vec<String>,
    /// Their part of the results file's settings.
    pub(crate) settings: Option<(&'static str, Value)>,
}

/// A requested peer.
pub(crate) struct PeerState<'a> {
    pub(crate) name: &'static str,
    pub(crate) is_present: bool,
    pub(crate) version: Option<&'a str>,
    /// For a reader, if there is something to note.
    pub(crate) note: Option<String>,
}

impl Testbed {
    pub(crate) fn of_peers<'a>(peers: impl IntoIterator<Item = PeerState<'a>>) -> Self {
        let (mut notes, mut absent, mut settings) = (Vec::new(), Vec::new(), Vec::new());
        for PeerState {
            name,
            is_present,
            version,
            note,
        } in peers
        {
            notes.extend(note);
            if !is_present {
                absent.push(name.to_owned());
            }
            settings.push(json!({ "name": name, "version": version, "present": is_present }));
        }
        Self {
            notes,
            absent,
            settings: Some(("peers", settings.into())),
        }
    }

    /// For servers that the notes describe completely.
    pub(crate) fn of_notes(name: &'static str, notes: &[String], absent: &[String]) -> Self {
        Self {
            notes: notes.to_vec(),
            absent: absent.to_vec(),
            settings: Some((name, json!(notes))),
        }
    }
}
