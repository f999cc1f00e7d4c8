//! The paths of the API: what is at each, which methods it takes, and who may ask.

use crosstie_metadata::PolicyKind;

use crate::caller::{Caller, Right};

/// The object or the list at a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place<'p> {
    Index,
    CommandLineTool,
    Overview,
    ClusterName,
    Extensions,
    Whoami,
    Auth,
    Nodes,
    Node(&'p str),
    /// The memory of a node, in octets or as shares.
    Memory(&'p str, Unit),
    /// The memory of a node's tables of Erlang, all or some, in octets or as shares.
    Tables(&'p str, Unit),
    Attempts(&'p str),
    /// The attempts to log in by address.
    AttemptsBySource(&'p str),
    Login,
    Reset(Option<&'p str>),
    Rebalance,
    FeatureFlags,
    FeatureFlag(&'p str),
    Definitions(Option<&'p str>),
    Connections,
    ConnectionsOfUser(&'p str),
    Connection(&'p str),
    ChannelsOf(&'p str),
    VhostConnections(&'p str),
    Channels,
    Channel(&'p str),
    VhostChannels(&'p str),
    Consumers(Option<&'p str>),
    Exchanges(Option<&'p str>),
    Exchange(&'p str, &'p str),
    Publish(&'p str, &'p str),
    /// The bindings from an exchange, or to it.
    ExchangeBindings(&'p str, &'p str, bool),
    Queues(Option<&'p str>),
    Queue(&'p str, &'p str),
    QueueBindings(&'p str, &'p str),
    Contents(&'p str, &'p str),
    Get(&'p str, &'p str),
    Actions(&'p str, &'p str),
    Bindings(Option<&'p str>),
    /// The bindings between an exchange and a destination.
    Between(Pair<'p>),
    Binding(Pair<'p>, &'p str),
    Vhosts,
    Vhost(&'p str),
    /// The start of a vhost on a node.
    VhostStart(&'p str, &'p str),
    VhostPermissions(&'p str),
    Users,
    UsersBulkDelete,
    UsersWithoutPermissions,
    User(&'p str),
    UserPermissions(&'p str),
    Permissions,
    Permission(&'p str, &'p str),
    /// Of all, of a vhost, or of a user.
    TopicPermissions(Option<&'p str>, Option<&'p str>),
    /// Of a user in a vhost, or on one of its exchanges.
    TopicPermission(&'p str, &'p str, Option<&'p str>),
    Policies(PolicyKind, Option<&'p str>),
    Policy(PolicyKind, &'p str, &'p str),
    VhostLimits(Option<&'p str>),
    VhostLimit(&'p str, &'p str),
    UserLimits(Option<&'p str>),
    UserLimit(&'p str, &'p str),
    GlobalParameters,
    GlobalParameter(&'p str),
    Parameters(Option<&'p str>, Option<&'p str>),
    Parameter(&'p str, &'p str, &'p str),
    Health(Check<'p>),
    Aliveness(&'p str),
}

/// How figures of memory are counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unit {
    Octets,
    Percent,
}

/// The two ends of bindings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Pair<'p> {
    pub(crate) vhost: &'p str,
    pub(crate) source: &'p str,
    pub(crate) is_to_exchange: bool,
    pub(crate) destination: &'p str,
}

/// A health check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Check<'p> {
    Alarms {
        is_local: bool,
    },
    Vhosts,
    Port(&'p str),
    Protocol(&'p str),
    Certificates(&'p str, &'p str),
    /// Whether the node is needed for a majority: RabbitMQ's clusters only.
    Critical,
    Node(Option<&'p str>),
}

/// The place at a path below `/api`.
pub(crate) fn place<'p>(path: &[&'p str]) -> Option<Place<'p>> {
    Some(match *path {
        ["connections"] => Place::Connections,
        ["connections", "username", user] => Place::ConnectionsOfUser(user),
        ["connections", name] => Place::Connection(name),
        ["connections", name, "channels"] => Place::ChannelsOf(name),
        ["vhosts", vhost, "connections"] => Place::VhostConnections(vhost),
        ["channels"] => Place::Channels,
        ["channels", name] => Place::Channel(name),
        ["vhosts", vhost, "channels"] => Place::VhostChannels(vhost),
        ["consumers"] => Place::Consumers(None),
        ["consumers", vhost] => Place::Consumers(Some(vhost)),
        ["exchanges"] => Place::Exchanges(None),
        ["exchanges", vhost] => Place::Exchanges(Some(vhost)),
        ["exchanges", vhost, exchange] => Place::Exchange(vhost, named(exchange)),
        ["exchanges", vhost, exchange, "bindings", "source"] => {
            Place::ExchangeBindings(vhost, named(exchange), true)
        }
        ["exchanges", vhost, exchange, "bindings", "destination"] => {
            Place::ExchangeBindings(vhost, named(exchange), false)
        }
        ["exchanges", vhost, exchange, "publish"] => Place::Publish(vhost, named(exchange)),
        ["queues"] => Place::Queues(None),
        ["queues", vhost] => Place::Queues(Some(vhost)),
        ["queues", vhost, queue] => Place::Queue(vhost, queue),
        ["queues", vhost, queue, "bindings"] => Place::QueueBindings(vhost, queue),
        ["queues", vhost, queue, "contents"] => Place::Contents(vhost, queue),
        ["queues", vhost, queue, "get"] => Place::Get(vhost, queue),
        ["queues", vhost, queue, "actions"] => Place::Actions(vhost, queue),
        ["bindings"] => Place::Bindings(None),
        ["bindings", vhost] => Place::Bindings(Some(vhost)),
        [
            "bindings",
            vhost,
            "e",
            source,
            kind @ ("q" | "e"),
            destination,
        ] => Place::Between(pair(vhost, source, kind, destination)),
        [
            "bindings",
            vhost,
            "e",
            source,
            kind @ ("q" | "e"),
            destination,
            key,
        ] => Place::Binding(pair(vhost, source, kind, destination), key),
        _ => return place_of_node(path),
    })
}

/// The places of the node and of the API itself.
fn place_of_node<'p>(path: &[&'p str]) -> Option<Place<'p>> {
    Some(match *path {
        ["overview"] => Place::Overview,
        ["cluster-name"] => Place::ClusterName,
        ["extensions"] => Place::Extensions,
        ["whoami"] => Place::Whoami,
        ["auth"] => Place::Auth,
        ["nodes"] => Place::Nodes,
        ["nodes", node] => Place::Node(node),
        ["nodes", node, "memory", ref rest @ ..] => return memory_at(node, rest),
        ["auth", "attempts", node] => Place::Attempts(node),
        ["auth", "attempts", node, "source"] => Place::AttemptsBySource(node),
        ["login"] => Place::Login,
        ["reset"] => Place::Reset(None),
        ["reset", node] => Place::Reset(Some(node)),
        ["rebalance", "queues"] => Place::Rebalance,
        ["feature-flags"] => Place::FeatureFlags,
        ["feature-flags", flag, "enable"] => Place::FeatureFlag(flag),
        // The second is its former name.
        ["definitions" | "all-configuration"] => Place::Definitions(None),
        ["definitions", vhost] => Place::Definitions(Some(vhost)),
        ["health", "checks", ref check @ ..] => Place::Health(check_at(check)?),
        ["healthchecks", "node"] => Place::Health(Check::Node(None)),
        ["healthchecks", "node", node] => Place::Health(Check::Node(Some(node))),
        ["aliveness-test", vhost] => Place::Aliveness(vhost),
        _ => return place_of_people(path),
    })
}

/// The places of vhosts, users and permissions.
fn place_of_people<'p>(path: &[&'p str]) -> Option<Place<'p>> {
    Some(match *path {
        ["vhosts"] => Place::Vhosts,
        ["vhosts", vhost] => Place::Vhost(vhost),
        ["vhosts", vhost, "permissions"] => Place::VhostPermissions(vhost),
        ["vhosts", vhost, "start", node] => Place::VhostStart(vhost, node),
        ["users"] => Place::Users,
        ["users", "bulk-delete"] => Place::UsersBulkDelete,
        ["users", "without-permissions"] => Place::UsersWithoutPermissions,
        ["users", user] => Place::User(user),
        ["users", user, "permissions"] => Place::UserPermissions(user),
        ["permissions"] => Place::Permissions,
        ["permissions", vhost, user] => Place::Permission(vhost, user),
        ["topic-permissions"] => Place::TopicPermissions(None, None),
        ["vhosts", vhost, "topic-permissions"] => Place::TopicPermissions(Some(vhost), None),
        ["users", user, "topic-permissions"] => Place::TopicPermissions(None, Some(user)),
        ["topic-permissions", vhost, user] => Place::TopicPermission(vhost, user, None),
        ["topic-permissions", vhost, user, exchange] => {
            Place::TopicPermission(vhost, user, Some(exchange))
        }
        _ => return place_of_rules(path),
    })
}

/// The places of policies, limits and parameters.
fn place_of_rules<'p>(path: &[&'p str]) -> Option<Place<'p>> {
    let kind = match *path.first()? {
        "operator-policies" => PolicyKind::Operator,
        _ => PolicyKind::User,
    };
    Some(match *path {
        ["policies" | "operator-policies"] => Place::Policies(kind, None),
        ["policies" | "operator-policies", vhost] => Place::Policies(kind, Some(vhost)),
        ["policies" | "operator-policies", vhost, name] => Place::Policy(kind, vhost, name),
        ["vhost-limits"] => Place::VhostLimits(None),
        ["vhost-limits", vhost] => Place::VhostLimits(Some(vhost)),
        ["vhost-limits", vhost, name] => Place::VhostLimit(vhost, name),
        ["user-limits"] => Place::UserLimits(None),
        ["user-limits", user] => Place::UserLimits(Some(user)),
        ["user-limits", user, name] => Place::UserLimit(user, name),
        ["global-parameters"] => Place::GlobalParameters,
        ["global-parameters", name] => Place::GlobalParameter(name),
        ["parameters"] => Place::Parameters(None, None),
        ["parameters", component] => Place::Parameters(Some(component), None),
        ["parameters", component, vhost] => Place::Parameters(Some(component), Some(vhost)),
        ["parameters", component, vhost, name] => Place::Parameter(component, vhost, name),
        _ => return None,
    })
}

fn memory_at<'p>(node: &'p str, path: &[&'p str]) -> Option<Place<'p>> {
    Some(match *path {
        [] => Place::Memory(node, Unit::Octets),
        ["relative"] => Place::Memory(node, Unit::Percent),
        ["ets", _, "relative"] | ["ets", "relative"] => Place::Tables(node, Unit::Percent),
        ["ets"] | ["ets", _] => Place::Tables(node, Unit::Octets),
        _ => return None,
    })
}

fn check_at<'p>(path: &[&'p str]) -> Option<Check<'p>> {
    Some(match *path {
        ["alarms"] => Check::Alarms { is_local: false },
        ["local-alarms"] => Check::Alarms { is_local: true },
        ["virtual-hosts"] => Check::Vhosts,
        ["port-listener", port] => Check::Port(port),
        ["protocol-listener", protocol] => Check::Protocol(protocol),
        ["certificate-expiration", within, unit] => Check::Certificates(within, unit),
        ["node-is-quorum-critical" | "node-is-mirror-sync-critical"] => Check::Critical,
        _ => return None,
    })
}

/// The default exchange has a name in paths.
fn named(exchange: &str) -> &str {
    match exchange {
        "amq.default" => "",
        name => name,
    }
}

fn pair<'p>(vhost: &'p str, source: &'p str, kind: &str, destination: &'p str) -> Pair<'p> {
    Pair {
        vhost,
        source: named(source),
        is_to_exchange: kind == "e",
        destination,
    }
}

impl Place<'_> {
    /// The header `Allow`.
    pub(crate) fn allowed(&self) -> &'static str {
        match self {
            Self::Queue(..)
            | Self::Exchange(..)
            | Self::User(_)
            | Self::Vhost(_)
            | Self::Permission(..)
            | Self::TopicPermission(..)
            | Self::Policy(..)
            | Self::GlobalParameter(_)
            | Self::Parameter(..) => "HEAD, GET, PUT, DELETE, OPTIONS",
            Self::VhostLimit(..) | Self::UserLimit(..) => "PUT, DELETE, OPTIONS",
            Self::ClusterName => "HEAD, GET, PUT, OPTIONS",
            Self::Between(_) | Self::Definitions(_) => "HEAD, GET, POST, OPTIONS",
            Self::Binding(..)
            | Self::Connection(_)
            | Self::ConnectionsOfUser(_)
            | Self::Attempts(_)
            | Self::AttemptsBySource(_) => "HEAD, GET, DELETE, OPTIONS",
            Self::Publish(..)
            | Self::Get(..)
            | Self::Actions(..)
            | Self::UsersBulkDelete
            | Self::Login
            | Self::Rebalance
            | Self::VhostStart(..) => "POST, OPTIONS",
            Self::Contents(..) | Self::Reset(_) => "DELETE, OPTIONS",
            Self::FeatureFlag(_) => "PUT, OPTIONS",
            _ => "HEAD, GET, OPTIONS",
        }
    }

    pub(crate) fn takes(&self, method: &str) -> bool {
        self.allowed().split(", ").any(|allowed| allowed == method)
    }

    /// Whether a body must be declared as JSON.
    pub(crate) fn takes_json_only(&self) -> bool {
        matches!(
            self,
            Self::Policy(PolicyKind::Operator, ..)
                | Self::VhostLimit(..)
                | Self::UserLimit(..)
                | Self::FeatureFlag(_)
        )
    }

    /// Whether a body must be declared as JSON, or as a form with a file.
    pub(crate) fn takes_json_or_form(&self) -> bool {
        matches!(self, Self::Definitions(_))
    }

    /// The right that a method requires.
    pub(crate) fn right(&self, method: &str) -> Right {
        let is_change = matches!(method, "PUT" | "DELETE");
        match self {
            Self::Policy(PolicyKind::User, ..) if is_change => Right::Policymaker,
            Self::ClusterName | Self::Policy(PolicyKind::Operator, ..) if is_change => {
                Right::Administrator
            }
            Self::GlobalParameters
            | Self::GlobalParameter(_)
            | Self::Parameters(..)
            | Self::Parameter(..) => Right::Policymaker,
            Self::VhostLimit(..)
            | Self::UserLimit(..)
            | Self::UsersBulkDelete
            | Self::TopicPermissions(..)
            | Self::TopicPermission(..) => Right::Administrator,
            Self::Index | Self::CommandLineTool | Self::Auth | Self::Login => Right::Nobody,
            Self::Nodes
            | Self::Node(_)
            | Self::Memory(..)
            | Self::Tables(..)
            | Self::Attempts(_)
            | Self::AttemptsBySource(_) => Right::Monitoring,
            Self::FeatureFlags
            | Self::FeatureFlag(_)
            | Self::Reset(_)
            | Self::Rebalance
            | Self::VhostStart(..)
            | Self::Actions(..)
            | Self::Definitions(_)
            | Self::Vhost(_)
            | Self::VhostPermissions(_)
            | Self::Users
            | Self::UsersWithoutPermissions
            | Self::User(_)
            | Self::UserPermissions(_)
            | Self::Permissions
            | Self::Permission(..) => Right::Administrator,
            _ => Right::Management,
        }
    }

    /// The vhost that the user must see.
    pub(crate) fn vhost(&self) -> Option<&str> {
        match *self {
            Self::Definitions(vhost)
            | Self::Exchanges(vhost)
            | Self::Queues(vhost)
            | Self::Bindings(vhost)
            | Self::Policies(_, vhost)
            | Self::VhostLimits(vhost)
            | Self::Parameters(_, vhost) => vhost,
            Self::VhostConnections(vhost)
            | Self::VhostChannels(vhost)
            | Self::Exchange(vhost, _)
            | Self::ExchangeBindings(vhost, ..)
            | Self::Queue(vhost, _)
            | Self::QueueBindings(vhost, _)
            | Self::Contents(vhost, _)
            | Self::Actions(vhost, _)
            | Self::Get(vhost, _)
            | Self::Publish(vhost, _)
            | Self::Policy(_, vhost, _)
            | Self::Parameter(_, vhost, _)
            | Self::Aliveness(vhost) => Some(vhost),
            Self::Between(pair) | Self::Binding(pair, _) => Some(pair.vhost),
            _ => None,
        }
    }

    /// The vhost of a list that is empty, not refused, for a user that does not see it.
    pub(crate) fn listed_vhost(&self) -> Option<&str> {
        match *self {
            Self::Consumers(vhost) => vhost,
            _ => None,
        }
    }

    /// Whether the answer has those vhosts alone, or objects in them, that the caller sees.
    pub(crate) fn lists_vhosts_of(&self, caller: &Caller) -> bool {
        match *self {
            // Those who watch get all of them.
            Self::Overview | Self::Vhosts => !caller.is_monitoring(),
            Self::Consumers(None)
            | Self::Exchanges(None)
            | Self::Queues(None)
            | Self::Bindings(None)
            | Self::Policies(_, None)
            | Self::VhostLimits(None)
            | Self::Parameters(_, None) => !caller.is_administrator(),
            _ => false,
        }
    }
}
