//! The open questions to the realm's other nodes, and their answers so far.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use crosstie_wamp::{RequestId, Serializer, Value};

use super::arguments::Arguments;
use super::merge::{Merge, count};
use crate::Time;
use crate::across::NeighbourKey;
use crate::fault::{Fault, error};
use crate::identity::SessionKey;

/// A call of the meta API.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Asked {
    pub(super) by: Asker,
    pub(super) request: RequestId,
    pub(super) serializer: Serializer,
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Asker {
    Session(SessionKey),
    /// Another node, on behalf of one of its sessions.
    Node(NeighbourKey),
    /// This node, for its own part of a question to all.
    ClusterQuery(u64),
}

/// Maximum number of open questions, over all sessions and as a share of it per session. Questions whose answers may
/// have very many ids have a lower bound: every node reserves memory for them.
const QUESTIONS_MAX: usize = 1_024;
const LISTS_MAX: usize = 16;
const SHARES: usize = 4;

/// Approximate memory of a question, and of an id in its answer.
const QUESTION_BYTES: isize = 1_024;
pub(super) const ID_BYTES: isize = 32;

/// All open questions.
#[derive(Debug, Default)]
pub(crate) struct ClusterQueries {
    pub(super) open: BTreeMap<u64, ClusterQuery>,
    pub(super) ends: BTreeSet<(Time, u64)>,
    pub(super) last: u64,
}

pub(super) struct ClusterQuery {
    pub(super) asked: Asked,
    pub(super) merge: Merge,
    pub(super) is_list: bool,
    pub(super) end: Time,
    pub(super) awaited: BTreeSet<NeighbourKey>,
    /// This node's own part is not finished.
    pub(super) awaits_own: bool,
    /// A node has not answered.
    pub(super) is_partial: bool,
    pub(super) value: Option<Value>,
    /// The answer if no node has a value.
    pub(super) fault: Option<Fault>,
    pub(super) part: Option<Part>,
    /// Bytes on the account of the connection to other nodes.
    pub(super) bytes: isize,
}

/// A request for a part of a list.
pub(super) struct Part {
    pub(super) procedure: &'static str,
    pub(super) arguments: Arguments,
    pub(super) next: VecDeque<NeighbourKey>,
    pub(super) offset: usize,
    pub(super) limit: Option<usize>,
}

impl std::fmt::Debug for ClusterQuery {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "ClusterQuery {{ awaited: {:?} }}", self.awaited)
    }
}

impl ClusterQueries {
    pub(crate) fn is_empty(&self) -> bool {
        self.open.is_empty()
    }

    pub(crate) fn len(&self) -> usize {
        self.open.len()
    }

    pub(crate) fn next_end(&self) -> Option<Time> {
        self.ends.first().map(|(end, _)| *end)
    }

    /// Whether a session may open another question.
    pub(super) fn check_room(&self, asked: &Asked, is_list: bool) -> Result<(), Fault> {
        let most = if is_list { LISTS_MAX } else { QUESTIONS_MAX };
        let Asker::Session(key) = asked.by else {
            return Ok(());
        };
        let alike = self.open.values().filter(|open| open.is_list == is_list);
        let (mut all, mut own) = (0, 0);
        for open in alike {
            all += 1;
            own += usize::from(matches!(open.asked.by, Asker::Session(other) if other == key));
        }
        if all < most && own < most / SHARES {
            return Ok(());
        }
        let text = format!(
            "{own} questions of this session and {all} of all wait for the realm's other nodes; {} and {most} may",
            most / SHARES
        );
        Err(Fault::new(error::REALM_CALLS_MAX, text))
    }
}

impl ClusterQuery {
    pub(super) fn new(asked: Asked, merge: Merge, is_list: bool, end: Time) -> Self {
        Self {
            asked,
            merge,
            is_list,
            end,
            awaited: BTreeSet::new(),
            awaits_own: false,
            is_partial: false,
            value: None,
            fault: None,
            part: None,
            bytes: QUESTION_BYTES,
        }
    }

    /// Adds a node's answer; an error answers the whole question at once.
    pub(super) fn take(&mut self, answer: Result<(Value, usize), Fault>) -> Result<(), Fault> {
        match answer {
            Ok((value, skipped)) => {
                if let Some(part) = &mut self.part {
                    part.offset = part.offset.saturating_sub(skipped);
                    let limit = part.limit.as_mut();
                    limit.into_iter().for_each(|limit| {
                        *limit = limit.saturating_sub(count(&value));
                    });
                }
                self.merge.add(&mut self.value, value)
            }
            Err(fault) if is_absent(&fault) => {
                let says_more = |known: &Fault| known.uri == error::NO_SUCH_SESSION;
                if self.fault.as_ref().is_none_or(says_more) {
                    self.fault = Some(fault);
                }
                Ok(())
            }
            Err(fault) => Err(fault),
        }
    }

    pub(super) fn is_answered(&self) -> bool {
        matches!(self.merge, Merge::First | Merge::FirstFound) && self.value.is_some()
    }

    /// For a part of a list: the next node to be asked.
    pub(super) fn next(&mut self) -> Option<NeighbourKey> {
        let part = self.part.as_mut()?;
        match part.limit {
            Some(0) => None,
            _ => part.next.pop_front(),
        }
    }

    pub(super) fn into_answer(self) -> Result<Value, Fault> {
        let is_ones = matches!(
            self.merge,
            Merge::First | Merge::FirstFound | Merge::Earliest
        );
        match (self.value, self.fault) {
            (Some(value), _) => Ok(value),
            (None, _) if self.is_partial && is_ones => {
                let text = "another node has not answered";
                Err(Fault::new(error::NETWORK_FAILURE, text))
            }
            (None, Some(fault)) => Err(fault),
            (None, None) => Ok(Value::Null),
        }
    }
}

/// Whether the fault only says that the node does not have the entry.
fn is_absent(fault: &Fault) -> bool {
    [
        error::NO_SUCH_SESSION,
        error::NO_SUCH_REGISTRATION,
        error::NO_SUCH_SUBSCRIPTION,
    ]
    .contains(&fault.uri)
}
