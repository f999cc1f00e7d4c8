//! The origin of scenarios: those of the specification, which the program contains, or a directory.

use std::fs;
use std::io;
use std::path::Path;

use crosstie_scenario::{BYTES_MAX, Feature, ParseError, parse};
use thiserror::Error;

macro_rules! files {
    ($($name:literal)*) => {
        [$(($name, include_str!(concat!("../scenarios/", $name, ".txt")))),*]
    };
}

/// The built-in scenarios, in the order of playing.
const EMBEDDED: &[(&str, &str)] = &files! {
    "sessions"
    "authentication"
    "publishing"
    "calling"
    "violations"
    "ids"
    "serializers"
    "publisher_exclusion"
    "publisher_identification"
    "subscriber_blackwhite_listing"
    "pattern_based_subscription"
    "sharded_subscription"
    "event_retention"
    "event_history"
    "acknowledged_event_delivery"
    "subscription_revocation"
    "subscription_meta_api"
    "publication_trustlevels"
    "caller_identification"
    "progressive_call_results"
    "progressive_call_invocations"
    "call_canceling"
    "call_timeout"
    "pattern_based_registration"
    "shared_registration"
    "least_busy"
    "sticky"
    "sharded_registration"
    "registration_revocation"
    "registration_meta_api"
    "call_rerouting"
    "trustlevels"
    "session_meta_api"
    "session_kill_all"
    "testaments"
    "payload_passthru_mode"
    "reflection"
    "forward_for"
};

/// The extension of the files.
const EXTENSION: &str = "txt";

/// Maximum number of files of one directory.
const FILES_MAX: usize = 1_000;

/// The reason why there are no scenarios to play.
#[derive(Debug, Error)]
pub enum SuiteError {
    #[error(transparent)]
    Parse(#[from] ParseError),
    #[error("{0}: {1}")]
    Io(String, io::Error),
    #[error("{0}: expected files *.{EXTENSION} in it, found none")]
    Empty(String),
    #[error("{0}: expected at most {FILES_MAX} files")]
    TooMany(String),
    #[error("{0}: expected at most {BYTES_MAX} bytes")]
    TooLong(String),
}

/// The specification's features.
pub fn embedded() -> Result<Vec<Feature>, SuiteError> {
    let parsed = EMBEDDED
        .iter()
        .map(|(name, text)| parse(&format!("{name}.{EXTENSION}"), text));
    Ok(parsed.collect::<Result<_, _>>()?)
}

/// Those of a directory, in the order of their names.
pub fn from_directory(directory: &Path) -> Result<Vec<Feature>, SuiteError> {
    let shown = directory.display().to_string();
    let failed = |error| SuiteError::Io(shown.clone(), error);
    let mut paths = Vec::new();
    for entry in fs::read_dir(directory).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        if path.extension().is_some_and(|found| found == EXTENSION) {
            paths.push(path);
        }
        if paths.len() > FILES_MAX {
            return Err(SuiteError::TooMany(shown));
        }
    }
    paths.sort();
    if paths.is_empty() {
        return Err(SuiteError::Empty(shown));
    }
    paths.iter().map(|path| from_file(path)).collect()
}

fn from_file(path: &Path) -> Result<Feature, SuiteError> {
    let shown = path.display().to_string();
    let failed = |error| SuiteError::Io(shown.clone(), error);
    let length = fs::metadata(path).map_err(failed)?.len();
    if length > BYTES_MAX as u64 {
        return Err(SuiteError::TooLong(shown));
    }
    let text = fs::read_to_string(path).map_err(failed)?;
    Ok(parse(&shown, &text)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_file_is_embedded() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("scenarios");
        let mut files: Vec<_> = from_directory(&folder)
            .unwrap()
            .into_iter()
            .map(|feature| feature.title)
            .collect();
        let mut embedded: Vec<_> = embedded()
            .unwrap()
            .into_iter()
            .map(|feature| feature.title)
            .collect();
        files.sort();
        embedded.sort();
        assert_eq!(files, embedded);
    }
}
