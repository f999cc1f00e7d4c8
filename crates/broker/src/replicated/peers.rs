//! A node's view of a vhost's other nodes, from their heartbeats.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use super::beat::Beat;
use super::suspicion::Suspicion;

/// The known state of other nodes.
pub(super) struct Others {
    owner: Option<(Beat, Instant)>,
    /// The time of the last heartbeat of another node.
    met: Option<Instant>,
    /// The recent heartbeats of other nodes, by name.
    heard: BTreeMap<String, (Beat, Instant)>,
    /// The last node that reported a log. Kept after its heartbeats stop, so that the log is not taken for absent.
    knowing: Option<Beat>,
    /// The time since which an owner would have been heard by a node that looks for one.
    listening: Instant,
    /// The time since which an owner would have been heard, in any role.
    hearing: Instant,
    has_left: bool,
    suspicion: Suspicion,
    /// Number of cluster changes that the server has announced.
    tidings: u64,
    /// A handover announced by the owner.
    handed: Option<(Handed, Instant)>,
    /// A handover recorded in the log; another node may own the vhost since.
    logged: Option<(Handed, Instant)>,
    /// The epoch in the log.
    epoch: u64,
    /// A random delay, so that nodes do not claim at the same time.
    pub(super) delay: Duration,
    /// This node's name.
    node: String,
    /// Another node has the same name.
    incarnation: u64,
    has_namesake: bool,
}

/// The successor in a handover.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Handed {
    This,
    Any,
    /// Other nodes wait for this time.
    Another(Duration),
}

/// Silence after which a node counts as gone.
pub(super) const SILENCE_MAX: Duration = Duration::from_secs(3);

/// Silence of an owner, over both connections, after which another node claims the vhost: the time of four heartbeats.
pub(super) const OWNER_SILENCE_MAX: Duration = Duration::from_secs(2);

/// Probes are spread by a fraction of the nodes' delays, because nodes that probe together would claim together.
const ASK_DELAY_PART: u32 = 4;

/// Maximum number of known nodes; further ones are no targets of a handover.
const NODES_MAX: usize = 64;

/// Used if the log records a handover to another node whose heartbeat was missed.
const HANDED_WAIT: Duration = Duration::from_secs(10);

impl Others {
    pub(crate) fn new(node: &str, incarnation: u64) -> Self {
        Self {
            owner: None,
            met: None,
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
            incarnation,
            has_namesake: false,
        }
    }

    /// A connection begins, on which owners would have been heard since then: silence before that is meaningless.
    pub(super) fn attached(&mut self, since: Instant) {
        self.listening = since;
        self.suspicion = Suspicion::default();
        self.expect();
    }

    /// Restarts the wait for an owner that has not been heard yet.
    pub(crate) fn expect(&mut self) {
        self.hearing = Instant::now();
    }

    /// Restarts the search for an owner on the same connection.
    pub(super) fn begin_anew(&mut self) {
        self.listening = Instant::now();
        self.suspicion.begin_anew();
    }

    /// Handles another node's heartbeat. `tidings` counts the announced cluster changes of the server that has sent it;
    /// `None` if it came over the second connection.
    pub(super) fn hear(&mut self, beat: Beat, tidings: Option<u64>) {
        let now = Instant::now();
        self.met = Some(now);
        self.tidings = tidings.unwrap_or(self.tidings);
        self.heard.retain(|_, (_, at)| at.elapsed() < SILENCE_MAX);
        if self.heard.len() < NODES_MAX || self.heard.contains_key(&beat.node) {
            self.heard.insert(beat.node.clone(), (beat.clone(), now));
        }
        if beat.log != 0 {
            self.knowing = Some(beat.clone());
        }
        // A silent node's last epoch may be outdated.
        let epoch = self.owner().map_or(0, |owner| owner.epoch);
        if beat.is_owner && beat.epoch >= epoch {
            // The log may contain a later claim.
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
            // A node that is leaving is not probed, as its connection closes.
            let answers = beat.answers && !beat.is_leaving;
            let is_known = self.owner.as_ref();
            let is_known = is_known.is_some_and(|(owner, _)| owner.epoch == beat.epoch);
            match tidings {
                Some(tidings) => self.suspicion.hear(answers, tidings),
                None => self.suspicion.hear_elsewhere(answers && is_known),
            }
            self.owner = Some((beat, now));
        }
    }

    /// Whether this node has sent the heartbeat itself, over an earlier connection.
    pub(super) fn is_own(&self, beat: &Beat) -> bool {
        beat.node == self.node && beat.incarnation == self.incarnation
    }

    /// Whether the heartbeat comes from another node with this node's name, for the first time.
    pub(super) fn meets_namesake(&mut self, beat: &Beat) -> bool {
        let is_one = beat.node == self.node;
        is_one && !std::mem::replace(&mut self.has_namesake, true)
    }

    /// The owner, if it has been heard recently.
    pub(crate) fn owner(&self) -> Option<&Beat> {
        let (beat, at) = self.owner.as_ref()?;
        let is_heard = at.elapsed() < OWNER_SILENCE_MAX;
        let is_there = !beat.is_leaving && !self.has_ended() && is_heard;
        is_there.then_some(beat)
    }

    /// The epoch of the last known owner.
    pub(super) fn epoch(&self) -> u64 {
        let heard = self.owner.as_ref().map_or(0, |(owner, _)| owner.epoch);
        heard.max(self.epoch)
    }

    /// Notes an epoch in the log whose owner has not been heard.
    pub(super) fn note_epoch(&mut self, epoch: u64) {
        self.epoch = epoch;
    }

    /// Notes a handover recorded in the log.
    pub(super) fn note_handed(&mut self, to: &str) {
        let handed = match to {
            "" => Handed::Any,
            to if to == self.node => Handed::This,
            _ => Handed::Another(HANDED_WAIT + SILENCE_MAX),
        };
        self.logged = Some((handed, Instant::now()));
    }

    /// Notes that the log names an owner since that epoch.
    pub(super) fn note_taken(&mut self, epoch: u64) {
        self.logged = None;
        self.epoch = self.epoch.max(epoch);
        let heard = self.owner.as_ref().map_or(0, |(owner, _)| owner.epoch);
        // The node that left belongs to an earlier epoch; the new owner gets the usual time.
        if epoch > heard {
            (self.handed, self.has_left) = (None, false);
        }
    }

    /// This node owns the vhost.
    pub(super) fn settle(&mut self) {
        (self.handed, self.logged, self.has_left) = (None, None, false);
    }

    /// The successor did not take over: this node may resume ownership at once.
    pub(super) fn take_back(&mut self) {
        self.handed = Some((Handed::This, Instant::now()));
    }

    /// The owner's epoch, if the owner wants to move the vhost to this node.
    pub(super) fn wanted(&self) -> Option<u64> {
        let owner = self.owner()?;
        let is_this = owner.preparing.as_ref() == Some(&self.node);
        is_this.then_some(owner.epoch)
    }

    /// The last heartbeat of a node, if it has been heard recently.
    pub(super) fn beat_of(&self, node: &str) -> Option<&Beat> {
        self.there().find(|beat| beat.node == node)
    }

    pub(super) fn has_owner(&self) -> bool {
        self.owner().is_some()
    }

    /// Whether any owner has ever been heard.
    pub(super) fn has_heard_owner(&self) -> bool {
        self.owner.is_some()
    }

    pub(super) fn has_heard_owner_since(&self, begun: Instant) -> bool {
        let owner = self.owner.as_ref();
        owner.is_some_and(|(beat, at)| !beat.is_leaving && *at >= begun)
    }

    /// Whether other nodes were heard, and none of them is any more.
    pub(super) fn have_fallen_silent(&self) -> bool {
        self.met.is_some_and(|met| met.elapsed() >= SILENCE_MAX)
    }

    /// Whether the owner has announced its end.
    pub(super) fn has_left(&self) -> bool {
        self.has_left || matches!(self.handed(), Some((Handed::Any, _)))
    }

    /// Whether an owner that is gone has handed the vhost to this node.
    pub(super) fn is_for_this(&self) -> bool {
        matches!(self.handed(), Some((Handed::This, _))) && !self.has_owner()
    }

    /// Whether another node is the successor and still within its deadline.
    pub(super) fn is_held_for_another(&self) -> bool {
        match self.handed() {
            Some((Handed::Another(wait), at)) => at.elapsed() < wait,
            _ => false,
        }
    }

    /// The log ids that other nodes report.
    pub(super) fn logs(&self) -> impl Iterator<Item = u64> {
        self.there().chain(&self.knowing).map(|beat| beat.log)
    }

    /// The last owner, which is silent now.
    pub(super) fn silent(&self) -> Option<&Beat> {
        self.owner.as_ref().map(|(beat, _)| beat)
    }

    /// The time without an owner since the search began.
    pub(super) fn silence(&self) -> Duration {
        self.unheard_since(self.listening)
    }

    /// The time without an owner, as far as this node could hear one.
    pub(super) fn vacancy(&self) -> Duration {
        self.unheard_since(self.hearing)
    }

    /// Whether NATS reports that the last owner has no connection.
    pub(super) fn has_ended(&self) -> bool {
        self.suspicion.has_ended(self.tidings)
    }

    /// The epoch of an owner that shall be probed now.
    pub(super) fn next_question(&mut self, tidings: u64) -> Option<u64> {
        self.tidings = tidings;
        let (silence, delay) = (self.silence(), self.delay / ASK_DELAY_PART);
        let silence = silence.saturating_sub(delay);
        let (owner, _) = self.owner.as_ref()?;
        let is_asked = self.suspicion.ask(Instant::now(), silence, tidings);
        is_asked.then_some(owner.epoch)
    }

    /// NATS has answered a probe with "no responders".
    pub(super) fn handle_nobody(&mut self) {
        self.suspicion.handle_nobody();
    }

    /// Another node that reports a log, or did in its last heartbeat.
    pub(super) fn knowing(&self) -> Option<&Beat> {
        self.knowing.as_ref()
    }

    /// Another node whose store holds the vhost's contents from before it was replicated.
    pub(super) fn holding(&self) -> Option<&Beat> {
        self.there().find(|beat| beat.is_holding)
    }

    /// Whether all other nodes read a log in which a former owner's second append follows a claim. Nodes of earlier
    /// versions take such a log for broken.
    pub(super) fn pass_over(&self) -> bool {
        self.there().all(|beat| beat.passes_over)
    }

    /// Whether all other nodes read clearances. Nodes of earlier versions take a log with them for broken.
    pub(super) fn know_clearances(&self) -> bool {
        self.there().all(|beat| beat.knows_clearances)
    }

    /// The other nodes that cannot read a log with settings: those of earlier versions.
    pub(super) fn elders(&self) -> impl Iterator<Item = &str> {
        let elders = self.there().filter(|beat| !beat.reads_settings);
        elders.map(|beat| beat.node.as_str())
    }

    /// A standby node, by its own name or by that of its machine's node if that has one worker. Without a name, any
    /// node that has followed the log, or else one that has not. The error lists the standby nodes.
    pub(super) fn standing_by(&self, wanted: Option<&str>) -> Result<&Beat, String> {
        let ready = || self.there().filter(|beat| beat.is_ready);
        let Some(wanted) = wanted else {
            let warm = ready().find(|beat| beat.is_warm);
            let found = warm.or_else(|| ready().next());
            return found.ok_or_else(|| "no node is standing by".to_owned());
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
                    true => format!("node {wanted} is not heard, and no node is standing by"),
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
mod tests;
