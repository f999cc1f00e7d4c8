//! The servers that stay up for a whole run, as its reader is told of them.

use serde_json::{Value, json};

/// Servers of one kind, ours or somebody else's, and peers.
#[derive(Clone, Debug, Default)]
pub(crate) struct Testbed {
    /// What a reader must know before the figures: versions, absences.
    pub(crate) notes: Vec<String>,
    /// Peers that were asked for and are not here.
    pub(crate) absent: Vec<String>,
    /// What the settings of the results file have about them.
    pub(crate) settings: Option<(&'static str, Value)>,
}

/// A peer that was asked for.
pub(crate) struct PeerState<'a> {
    pub(crate) name: &'static str,
    pub(crate) is_present: bool,
    pub(crate) version: Option<&'a str>,
    /// For a reader, where there is something to be said of it.
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

    /// Of servers whose notes say it all.
    pub(crate) fn of_notes(name: &'static str, notes: &[String], absent: &[String]) -> Self {
        Self {
            notes: notes.to_vec(),
            absent: absent.to_vec(),
            settings: Some((name, json!(notes))),
        }
    }
}
