//! JetStream's state by the answers of its servers: the group of all servers, and each stream's copies.
//!
//! A leader's list of its group says which servers have a copy. It does not say how much of the stream a copy has:
//! a new copy counts as current before it has the earlier messages. Only that copy's own server tells its last message.

use std::collections::BTreeMap;

use ring::digest::{SHA256, digest};
use serde_json::Value as Json;

/// The answers, by the servers' names.
#[derive(Clone, Debug, Default)]
pub(super) struct Survey {
    pub(super) servers: BTreeMap<String, Report>,
}

/// A server's answer.
#[derive(Clone, Debug, Default)]
pub(super) struct Report {
    /// The group of all servers; `None` if the server's JetStream is disabled.
    pub(super) group: Option<Group>,
    pub(super) copies: BTreeMap<StreamName, Copy>,
}

/// A group of servers, from the view of one of them.
#[derive(Clone, Debug, Default)]
pub(super) struct Group {
    pub(super) leader: Option<String>,
    /// Ids of the others.
    pub(super) others: Vec<String>,
}

/// An account and a stream in it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct StreamName {
    account: String,
    stream: String,
}

impl std::fmt::Display for StreamName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "stream {} of account {}", self.stream, self.account)
    }
}

/// A copy of a stream.
#[derive(Clone, Debug, Default)]
pub(super) struct Copy {
    pub(super) group: Group,
    /// The configured number of copies.
    pub(super) replicas: usize,
    /// Its last message.
    pub(super) last: u64,
}

impl Survey {
    /// Adds a server's answer.
    pub(super) fn add(&mut self, answer: &Json) {
        if let Some(name) = answer["server"]["name"].as_str() {
            let report = Report::read(&answer["data"]);
            self.servers.insert(name.to_owned(), report);
        }
    }

    /// The group of all servers, from its leader's view; `None` also if two servers claim to lead, around an election.
    pub(super) fn meta(&self) -> Option<(&str, &Group)> {
        let groups = self.servers.iter().filter_map(|(name, report)| {
            let group = report.group.as_ref()?;
            let is_leader = group.leader.as_ref() == Some(name);
            is_leader.then_some((name.as_str(), group))
        });
        only(groups)
    }

    /// A stream's copy at its leader, in the same way.
    pub(super) fn led(&self, stream: &StreamName) -> Option<(&str, &Copy)> {
        let copies = self.servers.iter().filter_map(|(name, report)| {
            let copy = report.copies.get(stream)?;
            let is_leader = copy.group.leader.as_ref() == Some(name);
            is_leader.then_some((name.as_str(), copy))
        });
        only(copies)
    }

    /// All streams of which a server has a copy.
    pub(super) fn streams(&self) -> std::collections::BTreeSet<&StreamName> {
        let reports = self.servers.values();
        reports.flat_map(|report| report.copies.keys()).collect()
    }

    /// The last message of a stream's copy on the server with that id; `None` if it has none, or has not answered.
    pub(super) fn last_on(&self, id: &str, stream: &StreamName) -> Option<u64> {
        let mut servers = self.servers.iter();
        let (_, report) = servers.find(|(name, _)| peer_id(name) == id)?;
        report.copies.get(stream).map(|copy| copy.last)
    }
}

impl Report {
    fn read(data: &Json) -> Self {
        let mut copies = BTreeMap::new();
        for account in each(&data["account_details"]) {
            for detail in each(&account["stream_detail"]) {
                let name = StreamName {
                    account: word(&account["name"]),
                    stream: word(&detail["name"]),
                };
                let copy = Copy {
                    group: Group::read(&detail["cluster"]),
                    replicas: detail["config"]["num_replicas"].as_u64().unwrap_or(1) as usize,
                    last: detail["state"]["last_seq"].as_u64().unwrap_or_default(),
                };
                copies.insert(name, copy);
            }
        }
        let meta = &data["meta_cluster"];
        Self {
            group: meta.is_object().then(|| Group::read(meta)),
            copies,
        }
    }
}

impl Group {
    fn read(json: &Json) -> Self {
        let leader = json["leader"].as_str();
        let others = each(&json["replicas"]).map(|peer| word(&peer["peer"]));
        Self {
            leader: leader.filter(|name| !name.is_empty()).map(str::to_owned),
            others: others.collect(),
        }
    }
}

fn only<T>(mut found: impl Iterator<Item = T>) -> Option<T> {
    let first = found.next();
    first.filter(|_| found.next().is_none())
}

fn each(list: &Json) -> impl Iterator<Item = &Json> {
    list.as_array().into_iter().flatten()
}

fn word(value: &Json) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

const DIGITS: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

/// The id by which JetStream knows a server, which follows from its name. Servers that have started since another one
/// was lost do not know that one's name, but its id.
pub(super) fn peer_id(name: &str) -> String {
    let hash = digest(&SHA256, name.as_bytes());
    let digits = hash.as_ref().iter().take(8);
    digits
        .map(|octet| char::from(DIGITS[usize::from(*octet) % DIGITS.len()]))
        .collect()
}
