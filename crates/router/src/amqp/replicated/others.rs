//! What a node knows of a vhost's other nodes, by their beats.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use super::beat::Beat;
use super::suspicion::Suspicion;

/// What is known of other nodes.
pub(super) struct Others {
    owner: Option<(Beat, Instant)>,
    /// All that were heard of late, by their names.
    heard: BTreeMap<String, (Beat, Instant)>,
    /// Who has ever said that there is a log: it is one also when nobody says so any more.
    knowing: Option<Beat>,
    /// Since when an owner would have been heard, by who looks for one.
    listening: Instant,
    /// The same, whatever has come of that.
    hearing: Instant,
    has_left: bool,
    suspicion: Suspicion,
    /// What the server has told of its cluster.
    tidings: u64,
    /// Its owner has handed the vhost over, and to whom.
    handed: Option<(Handed, Instant)>,
    /// The same, as the log says: somebody else may have it since.
    logged: Option<(Handed, Instant)>,
    /// As the log says.
    epoch: u64,
    /// So that not all nodes claim at once.
    pub(super) delay: Duration,
    /// The node's own name.
    node: String,
    /// Another node has it too.
    has_namesake: bool,
}

/// Whom a vhost was handed to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Handed {
    This,
    Any,
    /// Others wait for so long.
    Another(Duration),
}

/// An owner that has been silent for so long is one no more, as far as others know.
pub(super) const SILENCE_MAX: Duration = Duration::from_secs(3);

/// Those who ask the owner follow each other by a part of their delays: they would claim together.
const ASK_DELAY_PART: u32 = 4;

/// Nodes that are known at once; who speaks when there are as many is not one that a vhost is moved to.
const NODES_MAX: usize = 64;

/// Where the log says that the vhost was handed to another node, and its beat was missed.
const HANDED_WAIT: Duration = Duration::from_secs(10);

impl Others {
    pub(super) fn new(node: &str, incarnation: u64) -> Self {
        Self {
            owner: None,
            heard: BTreeMap::new(),
            knowing: None,
            listening: Instant::now(),
            hearing: Instant::now(),
            has_left: false,
            suspicion: Suspicion::default(),
            tidings: 0,
            handed: None,
            logged: None,
            epoch: 0,
            delay: Duration::from_millis(incarnation % 500),
            node: node.to_owned(),
            has_namesake: false,
        }
    }

    /// A connection begins: what was not heard before it says nothing.
    pub(super) fn attached(&mut self) {
        self.listening = Instant::now();
        self.suspicion = Suspicion::default();
        self.expect();
    }

    /// There may be an owner which has not been heard, and would be soon.
    pub(super) fn expect(&mut self) {
        self.hearing = Instant::now();
    }

    /// It is listened for an owner anew, by the same connection.
    pub(super) fn begin_anew(&mut self) {
        self.listening = Instant::now();
        self.suspicion.begin_anew();
    }

    /// Another node has said how things are there, since the server has told so much of its cluster.
    pub(super) fn hear(&mut self, beat: Beat, tidings: u64) {
        let now = Instant::now();
        self.tidings = tidings;
        self.heard.retain(|_, (_, at)| at.elapsed() < SILENCE_MAX);
        if self.heard.len() < NODES_MAX || self.heard.contains_key(&beat.node) {
            self.heard.insert(beat.node.clone(), (beat.clone(), now));
        }
        if beat.log != 0 {
            self.knowing = Some(beat.clone());
        }
        // What one that is silent said of its epoch may not have been so.
        let epoch = self.owner().map_or(0, |owner| owner.epoch);
        if beat.is_owner && beat.epoch >= epoch {
            // The log may have somebody's claim behind what is said here.
            let is_late = beat.epoch < self.epoch;
            self.has_left = beat.is_leaving && !is_late;
            self.handed = match &beat.handed {
                _ if is_late => None,
                Some((to, _)) if *to == self.node => Some((Handed::This, now)),
                Some((to, within)) if !to.is_empty() => {
                    Some((Handed::Another(*within + SILENCE_MAX), now))
                }
                _ => None,
            };
            if !beat.is_leaving {
                self.logged = None;
            }
            // Who leaves is asked no more, and its connection goes.
            let answers = beat.answers && !beat.is_leaving;
            self.suspicion.hear(answers, tidings);
            self.owner = Some((beat, now));
        }
    }

    /// Whether the node that was heard is called as this one, and is the first that is.
    pub(super) fn meets_namesake(&mut self, beat: &Beat) -> bool {
        let is_one = beat.node == self.node;
        is_one && !std::mem::replace(&mut self.has_namesake, true)
    }

    /// The owner, if it has been heard of late.
    pub(super) fn owner(&self) -> Option<&Beat> {
        let (beat, at) = self.owner.as_ref()?;
        let is_there = !beat.is_leaving && !self.has_ended() && at.elapsed() < SILENCE_MAX;
        is_there.then_some(beat)
    }

    /// Of the owner that was heard of last.
    pub(super) fn epoch(&self) -> u64 {
        let heard = self.owner.as_ref().map_or(0, |(owner, _)| owner.epoch);
        heard.max(self.epoch)
    }

    /// The log names an owner that has not been heard.
    pub(super) fn note_epoch(&mut self, epoch: u64) {
        self.epoch = epoch;
    }

    /// The log says that the vhost was handed over.
    pub(super) fn note_handed(&mut self, to: &str) {
        let handed = match to {
            "" => Handed::Any,
            to if to == self.node => Handed::This,
            _ => Handed::Another(HANDED_WAIT + SILENCE_MAX),
        };
        self.logged = Some((handed, Instant::now()));
    }

    /// The log says that somebody has it from that epoch on.
    pub(super) fn note_taken(&mut self, epoch: u64) {
        self.logged = None;
        self.epoch = self.epoch.max(epoch);
        let heard = self.owner.as_ref().map_or(0, |(owner, _)| owner.epoch);
        // Who has left since is another one; he is waited for as any.
        if epoch > heard {
            (self.handed, self.has_left) = (None, false);
        }
    }

    /// This node has it.
    pub(super) fn settle(&mut self) {
        (self.handed, self.logged, self.has_left) = (None, None, false);
    }

    /// The node that the vhost was handed to has not taken it: this one may have it back at once.
    pub(super) fn take_back(&mut self) {
        self.handed = Some((Handed::This, Instant::now()));
    }

    pub(super) fn has_owner(&self) -> bool {
        self.owner().is_some()
    }

    /// Whether any owner was ever heard of.
    pub(super) fn has_heard_owner(&self) -> bool {
        self.owner.is_some()
    }

    pub(super) fn has_heard_owner_since(&self, begun: Instant) -> bool {
        let owner = self.owner.as_ref();
        owner.is_some_and(|(beat, at)| !beat.is_leaving && *at >= begun)
    }

    /// It owned the vhost, and has ended.
    pub(super) fn has_left(&self) -> bool {
        self.has_left || matches!(self.handed(), Some((Handed::Any, _)))
    }

    /// The vhost was handed to this node, by an owner that is gone.
    pub(super) fn is_for_this(&self) -> bool {
        matches!(self.handed(), Some((Handed::This, _))) && !self.has_owner()
    }

    /// The vhost was handed to another node, which has not had its time.
    pub(super) fn is_held_for_another(&self) -> bool {
        match self.handed() {
            Some((Handed::Another(wait), at)) => at.elapsed() < wait,
            _ => false,
        }
    }

    /// The logs that others know.
    pub(super) fn logs(&self) -> impl Iterator<Item = u64> {
        self.there().chain(&self.knowing).map(|beat| beat.log)
    }

    /// Who was the owner, and is silent.
    pub(super) fn silent(&self) -> Option<&Beat> {
        self.owner.as_ref().map(|(beat, _)| beat)
    }

    /// For how long no owner has been heard, since one was looked for.
    pub(super) fn silence(&self) -> Duration {
        self.unheard_since(self.listening)
    }

    /// For how long there has been none, as far as the node can have heard.
    pub(super) fn vacancy(&self) -> Duration {
        self.unheard_since(self.hearing)
    }

    /// NATS knows that the owner which was heard last is not there.
    pub(super) fn has_ended(&self) -> bool {
        self.suspicion.has_ended(self.tidings)
    }

    /// The epoch of an owner that is to be asked whether it is there.
    pub(super) fn next_question(&mut self, tidings: u64) -> Option<u64> {
        self.tidings = tidings;
        let (silence, delay) = (self.silence(), self.delay / ASK_DELAY_PART);
        let silence = silence.saturating_sub(delay);
        let (owner, _) = self.owner.as_ref()?;
        let is_asked = self.suspicion.ask(Instant::now(), silence, tidings);
        is_asked.then_some(owner.epoch)
    }

    /// NATS has answered that it is not.
    pub(super) fn handle_nobody(&mut self) {
        self.suspicion.handle_nobody();
    }

    /// Another node that knows of a log, or did when it was heard last.
    pub(super) fn knowing(&self) -> Option<&Beat> {
        self.knowing.as_ref()
    }

    /// Another node that has what the vhost held before it was replicated.
    pub(super) fn holding(&self) -> Option<&Beat> {
        self.there().find(|beat| beat.is_holding)
    }

    /// A node that stands by: by its name, or by that of its node where it has one such worker; or any, which are those that
    /// have read the log along, and if there is none one that has not. The error says who there is.
    pub(super) fn standing_by(&self, wanted: Option<&str>) -> Result<&Beat, String> {
        let ready = || self.there().filter(|beat| beat.is_ready);
        let Some(wanted) = wanted else {
            let warm = ready().find(|beat| beat.is_warm);
            let found = warm.or_else(|| ready().next());
            return found.ok_or_else(|| "nobody is standing by".to_owned());
        };
        let is_named = |beat: &&Beat| {
            let node = beat.node.split('/').next();
            beat.node == wanted || node == Some(wanted)
        };
        let found: Vec<_> = self.there().filter(is_named).collect();
        match found[..] {
            [beat] if beat.is_ready => Ok(beat),
            [beat] => Err(format!(
                "node {} does not stand by: its own /health says why",
                beat.node
            )),
            [] => {
                let names: Vec<_> = ready().map(|beat| beat.node.as_str()).collect();
                Err(match names.is_empty() {
                    true => format!("node {wanted} is not heard, and nobody is standing by"),
                    false => format!(
                        "node {wanted} is not heard; standing by: {}",
                        names.join(", ")
                    ),
                })
            }
            _ => Err(format!(
                "node {wanted} has several workers: name one of them"
            )),
        }
    }

    fn unheard_since(&self, begun: Instant) -> Duration {
        let heard = self.owner.as_ref().map_or(begun, |(_, at)| *at);
        heard.max(begun).elapsed()
    }

    fn handed(&self) -> Option<(Handed, Instant)> {
        self.handed.or(self.logged)
    }

    fn there(&self) -> impl Iterator<Item = &Beat> {
        let heard = self.heard.values();
        let there = heard.filter(|(_, at)| at.elapsed() < SILENCE_MAX);
        there.map(|(beat, _)| beat)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn beat(node: &str) -> Beat {
        Beat {
            node: node.to_owned(),
            incarnation: 1,
            is_owner: false,
            is_leaving: false,
            is_ready: true,
            is_warm: true,
            is_holding: false,
            handed: None,
            epoch: 0,
            log: 0,
            sequence: 0,
            answers: false,
            address: String::new(),
        }
    }

    #[test]
    fn a_namesake_is_met_once() {
        let mut others = Others::new("own/worker1", 0);
        let met = ["a/worker1", "own/worker1", "own/worker1"];
        let met = met.map(|name| others.meets_namesake(&beat(name)));
        assert_eq!(met, [false, true, false]);
    }

    #[test]
    fn a_node_is_found_by_its_name_or_said_why_not() {
        let mut others = Others::new("own/worker1", 0);
        let found = |others: &Others, wanted: Option<&str>| {
            let found = others.standing_by(wanted);
            found
                .map(|beat| beat.node.clone())
                .unwrap_or_else(|why| why)
        };
        assert_eq!(found(&others, None), "nobody is standing by");
        let nobody = "node a is not heard, and nobody is standing by";
        assert_eq!(found(&others, Some("a")), nobody);
        let cold = Beat {
            is_warm: false,
            ..beat("a/worker1")
        };
        others.hear(cold, 0);
        assert_eq!(found(&others, None), "a/worker1");
        others.hear(beat("b/worker1"), 0);
        others.hear(beat("b/worker2"), 0);
        let broken = Beat {
            is_ready: false,
            ..beat("c/worker1")
        };
        others.hear(broken, 0);
        for (wanted, expected) in [
            (None, "b/worker1"),
            (Some("a"), "a/worker1"),
            (Some("b/worker2"), "b/worker2"),
            (Some("b"), "node b has several workers: name one of them"),
            (
                Some("c"),
                "node c/worker1 does not stand by: its own /health says why",
            ),
            (
                Some("d"),
                "node d is not heard; standing by: a/worker1, b/worker1, b/worker2",
            ),
        ] {
            assert_eq!(found(&others, wanted), expected);
        }
        for number in 0..2 * NODES_MAX {
            others.hear(beat(&format!("n{number}")), 0);
        }
        assert_eq!(others.there().count(), NODES_MAX);
    }

    #[test]
    fn a_log_is_known_of_also_when_who_told_of_it_has_gone() {
        let mut others = Others::new("own", 0);
        others.hear(beat("a"), 0);
        assert!(others.knowing().is_none());
        let told = Beat {
            log: 7,
            ..beat("a")
        };
        others.hear(told, 0);
        others.heard.clear();
        others.begin_anew();
        others.attached();
        assert_eq!(others.knowing().map(|beat| beat.log), Some(7));
        assert_eq!(others.logs().collect::<Vec<_>>(), [7]);
    }

    #[test]
    fn what_is_handed_over_is_for_whom_it_is_handed_to() {
        let within = Duration::from_secs(5);
        let handed = |to: &str| Beat {
            is_owner: true,
            is_leaving: true,
            handed: Some((to.to_owned(), within)),
            epoch: 3,
            ..beat("a")
        };
        let heard = |to: &str| {
            let mut others = Others::new("own", 0);
            others.hear(handed(to), 0);
            (others.is_for_this(), others.is_held_for_another())
        };
        assert_eq!(heard("own"), (true, false));
        assert_eq!(heard("b"), (false, true));
        assert_eq!(heard(""), (false, false));
        let mut others = Others::new("own", 0);
        others.note_handed("b");
        assert!(others.is_held_for_another());
        others.note_taken(1);
        assert!(!others.is_held_for_another());
        others.note_handed("");
        assert!(others.has_left());
        others.note_handed("own");
        assert!(others.is_for_this());
        let owner = Beat {
            is_owner: true,
            epoch: 4,
            ..beat("b")
        };
        others.hear(owner, 0);
        assert!(!others.is_for_this() && !others.has_left());
        others.hear(handed("own"), 0);
        others.hear(
            Beat {
                epoch: 5,
                ..handed("own")
            },
            0,
        );
        others.note_taken(5);
        assert!(others.is_for_this(), "it was read late");
        others.note_taken(6);
        assert!(!others.is_for_this());
        others.hear(
            Beat {
                epoch: 5,
                ..handed("own")
            },
            0,
        );
        assert!(!others.is_for_this());
    }
}
