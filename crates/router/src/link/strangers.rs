//! Nodes that a realm has no version in common with.

use crosstie_fabric::{Member, Versions};

/// What this node says that it speaks. For tests of nodes that differ the environment may say something else.
pub(super) fn versions() -> Versions {
    let said = std::env::var("CROSSTIE_TEST_FABRIC_VERSIONS").ok();
    let said = said.as_deref().and_then(|said| said.split_once('-'));
    let read = |text: &str| text.parse().ok();
    let versions = said.and_then(|(first, last)| {
        Some(Versions {
            first: read(first)?,
            last: read(last)?,
        })
    });
    versions.unwrap_or(Versions::OWN)
}

/// Their names, and what they speak.
pub(super) fn all(member: &Member) -> Vec<(String, Versions)> {
    let strangers = member.strangers();
    strangers
        .map(|(node, versions)| (node.to_owned(), versions))
        .collect()
}

/// Says in the log who is refused from now on.
pub(super) fn tell(realm: &str, member: &Member, told: &mut Vec<(String, Versions)>) {
    let strangers = all(member);
    let own = member.versions();
    for stranger in strangers.iter().filter(|stranger| !told.contains(stranger)) {
        let (node, theirs) = stranger;
        tracing::warn!(
            "Realm '{realm}': node '{node}' is refused: it speaks {theirs} of what nodes say to each other, this one {own}"
        );
    }
    *told = strangers;
}
