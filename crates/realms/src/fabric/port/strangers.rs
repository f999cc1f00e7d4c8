//! Nodes without a common version, and nodes with this node's name.

use crosstie_fabric::{Member, Versions};

/// The versions that this node announces. The environment may override them, for tests with mixed versions.
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

/// Their names and versions.
pub(super) fn all(member: &Member) -> Vec<(String, Versions)> {
    let strangers = member.strangers();
    strangers
        .map(|(node, versions)| (node.to_owned(), versions))
        .collect()
}

/// The nodes that the log has named already.
#[derive(Default)]
pub(super) struct Told {
    strangers: Vec<(String, Versions)>,
    has_namesake: bool,
}

impl Told {
    /// Logs newly refused nodes, and nodes with equal names, which operators cannot tell apart.
    pub(super) fn tell(&mut self, realm: &str, member: &Member) {
        let strangers = all(member);
        let own = member.versions();
        for stranger in strangers
            .iter()
            .filter(|stranger| !self.strangers.contains(stranger))
        {
            let (node, theirs) = stranger;
            tracing::warn!(
                "Realm '{realm}': node '{node}' is refused: it speaks {theirs} of the nodes' protocol, this one {own}"
            );
        }
        self.strangers = strangers;
        let has_namesake = member.has_namesake();
        if has_namesake && !self.has_namesake {
            tracing::warn!(
                "Realm '{realm}': another node has this one's name too: give each its own by \"controller\": {{\"id\": …}}"
            );
        }
        self.has_namesake = has_namesake;
    }
}
