//! Every attack: its name, its load at full size, its requirements, and its function.

use std::fmt;
use std::str::FromStr;

use super::attacks::{
    batch, bodies, calls, consumers, dead_letters, deaf, flood, partial, patterns, timed, topology,
    transcoded, unacked, web,
};
use super::strike::Strike;
use super::ways::Ways;
use crate::process::WorkerError;
use crate::subject::ParseError;

pub(super) struct Attack {
    pub(super) name: &'static str,
    /// At full size, in a line.
    pub(super) what: &'static str,
    pub(super) needs: Needs,
    /// The configuration of our own node for it.
    pub(super) setting: Setting,
    pub(super) strike: fn(&mut Strike) -> Result<(), WorkerError>,
}

/// Required knowledge of a subject.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Needs {
    Wamp,
    Amqp,
    Pages,
    Web,
}

/// Our own node's configuration besides its defaults.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Setting {
    Default,
    /// permessage-deflate.
    Compression,
    /// 256 MiB for AMQP messages.
    LittleMemory,
    /// 1,024 of them for the process.
    FewDescriptors,
    /// Files, and sessions by HTTP requests.
    WebServices,
}

use Needs::{Amqp, Pages, Wamp, Web};
use Setting::Default as Usual;

#[rustfmt::skip]
pub(super) const ATTACKS: &[Attack] = &[
    Attack { name: "consumers", needs: Amqp, setting: Usual, strike: consumers::strike,
        what: "200,000 consumers of one queue on 20 channels of a connection, which ends" },
    Attack { name: "deadletters", needs: Amqp, setting: Usual, strike: dead_letters::strike,
        what: "one write of 400 publications into 10 queues without room, each other's dead letters" },
    Attack { name: "qos", needs: Amqp, setting: Usual, strike: unacked::qos,
        what: "3,000 basic.qos, global and not in turn, with 500,000 unacknowledged" },
    Attack { name: "cc", needs: Amqp, setting: Usual, strike: topology::cc,
        what: "one publication with 450 CC keys to 2,000 topic patterns" },
    Attack { name: "topic", needs: Amqp, setting: Usual, strike: topology::topic,
        what: "223 publications to 20,000 topic patterns that nearly match" },
    Attack { name: "headers", needs: Amqp, setting: Usual, strike: topology::headers,
        what: "800 publications to 300,000 bindings of a headers exchange" },
    Attack { name: "unacked", needs: Amqp, setting: Usual, strike: unacked::end,
        what: "1,000,000 messages unacknowledged on a connection, which ends" },
    Attack { name: "nacks", needs: Amqp, setting: Usual, strike: unacked::nacks,
        what: "150,000 messages given back one by one in a random order" },
    Attack { name: "wildcards", needs: Wamp, setting: Usual, strike: patterns::wildcards,
        what: "4 sessions of 10,000 wildcard patterns that nearly match, 20 publications; they leave" },
    Attack { name: "batch", needs: Wamp, setting: Usual, strike: batch::strike,
        what: "one batched WebSocket message of 800,000 publications to 150 subscribers that read" },
    Attack { name: "partial", needs: Wamp, setting: Usual, strike: partial::messages,
        what: "150 sessions with a message of 16 MiB that lacks its last byte" },
    Attack { name: "options", needs: Wamp, setting: Usual, strike: calls::options,
        what: "200 progressive calls with an option of 8 MiB" },
    Attack { name: "deaf", needs: Wamp, setting: Usual, strike: deaf::deaf,
        what: "90 subscribers that do not read 18 MiB, beside 5 callers with results of 3 MB" },
    Attack { name: "slow", needs: Wamp, setting: Usual, strike: deaf::slow,
        what: "80 subscribers that read 256 KiB every 10 s, beside the same callers" },
    Attack { name: "transcoded", needs: Wamp, setting: Usual, strike: transcoded::strike,
        what: "60 JSON callees that do not read, each called with 16 MiB of control characters in MessagePack" },
    Attack { name: "deflate", needs: Wamp, setting: Setting::Compression, strike: partial::compressed,
        what: "100 connections before HELLO with 12 MiB of a compressed frame of 16 MiB" },
    Attack { name: "subscriptions", needs: Wamp, setting: Usual, strike: patterns::plain,
        what: "100 sessions of 10,000 subscriptions; they leave" },
    Attack { name: "calls", needs: Wamp, setting: Usual, strike: calls::pending,
        what: "1,000,000 calls that wait for one callee, which leaves" },
    Attack { name: "timed", needs: Wamp, setting: Usual, strike: timed::strike,
        what: "100,000 publications, one each 75 µs, so that a thread keeps looking for the next one" },
    Attack { name: "metrics", needs: Pages, setting: Usual, strike: flood::metrics,
        what: "16 connections that ask for /metrics of 100,000 queues for 8 s" },
    Attack { name: "incomplete", needs: Amqp, setting: Setting::LittleMemory, strike: bodies::strike,
        what: "40 channels with 8 MiB of an announced body of 100 MiB, beside messages of 200 kB; 256 MiB of memory" },
    Attack { name: "descriptors", needs: Wamp, setting: Setting::FewDescriptors, strike: flood::descriptors,
        what: "sessions until no more are let in, of a node with 1,024 descriptors" },
    Attack { name: "passwords", needs: Amqp, setting: Usual, strike: flood::passwords,
        what: "wrong passwords over 8 connections at a time for 5 s" },
    Attack { name: "slowheads", needs: Web, setting: Setting::WebServices, strike: web::slow::heads,
        what: "2,000 HTTP requests whose head does not end, a byte each 500 ms" },
    Attack { name: "slowbodies", needs: Web, setting: Setting::WebServices, strike: web::slow::bodies,
        what: "2,000 HTTP requests whose body does not end, a byte each 500 ms" },
    Attack { name: "unread", needs: Web, setting: Setting::WebServices, strike: web::unread::strike,
        what: "500 connections with 500 requests for a file of 1 MiB, whose answers are not read" },
    Attack { name: "resets", needs: Web, setting: Setting::WebServices, strike: web::resets::strike,
        what: "8 connections of HTTP/2 streams that are given up at once, for 8 s" },
    Attack { name: "ranges", needs: Web, setting: Setting::WebServices, strike: web::ranges::strike,
        what: "16 connections with requests for 2,000 parts of a file, and for one byte, for 8 s" },
    Attack { name: "silent", needs: Web, setting: Setting::WebServices, strike: web::silent::strike,
        what: "2,000 long-poll sessions that subscribe and never poll, 64 events of 16 KiB" },
];

pub(super) fn find(name: &str) -> Option<&'static Attack> {
    ATTACKS.iter().find(|attack| attack.name == name)
}

impl Attack {
    /// The requirement that a subject does not meet.
    pub(super) fn lacks(&self, ways: &Ways) -> Option<&'static str> {
        match self.needs {
            Wamp if ways.targets.is_empty() => Some("WAMP"),
            Amqp if ways.broker.is_none() => Some("AMQP"),
            Pages if ways.pages.is_none() => Some("pages"),
            Web if ways.web.is_none() => Some("web services"),
            _ => None,
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct AttackName(pub(super) &'static str);

impl FromStr for AttackName {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        match find(text) {
            Some(attack) => Ok(Self(attack.name)),
            None => Err(ParseError::new(
                text,
                "no attack has this name; --list shows them",
            )),
        }
    }
}

impl fmt::Display for AttackName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

impl fmt::Debug for AttackName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn names_are_unique() {
        let names: BTreeSet<_> = ATTACKS.iter().map(|attack| attack.name).collect();
        assert_eq!(names.len(), ATTACKS.len());
        for name in names {
            assert_eq!(name.parse::<AttackName>().unwrap().to_string(), name);
        }
        assert!(
            "x".parse::<AttackName>()
                .unwrap_err()
                .to_string()
                .contains("--list")
        );
    }
}
