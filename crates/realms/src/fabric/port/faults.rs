//! Faults of a realm on several nodes, for operators.

use crosstie_fabric::State;

use super::Seen;

impl Seen {
    /// Whether the realm admits sessions, and its faults.
    pub fn judge(&self, is_refused_detached: bool) -> (bool, Vec<String>) {
        let mut wrong = self.wrong();
        if self.state != State::Detached {
            return (true, wrong);
        }
        let what = match is_refused_detached {
            true => "no session is admitted",
            false => "it is alone",
        };
        wrong.push(format!("no NATS server is reached, {what} ({})", self.why));
        (!is_refused_detached, wrong)
    }

    /// Permissions that NATS denies, missing grants, and nodes without a common version.
    pub fn wrong(&self) -> Vec<String> {
        let strangers = self.strangers.iter().map(|(node, theirs)| {
            let own = self.versions;
            format!(
                "node '{node}' is refused: it speaks {theirs} of the nodes' protocol, this one {own}"
            )
        });
        let ungranted = self.ungranted.iter();
        let ungranted = ungranted
            .map(|why| format!("no procedure is granted for one callee: JetStream: {why}"));
        let denied = self.denied().into_iter();
        denied.chain(ungranted).chain(strangers).collect()
    }

    fn denied(&self) -> Option<String> {
        match (self.is_denied, self.interests_denied) {
            (true, _) => Some("NATS denies what every node of the realm needs".to_owned()),
            (false, 0) => None,
            (false, count) => Some(format!(
                "NATS denies {count} of the subjects that are subscribed to"
            )),
        }
    }
}
