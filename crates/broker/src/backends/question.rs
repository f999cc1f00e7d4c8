//! Questions to an HTTP backend, with the parameters of RabbitMQ's plugin, in its order.

use std::net::IpAddr;
use std::sync::Arc;

use crosstie_auth::{Access, ResourceKind};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_encode};

/// Characters beside letters and digits that need no escape.
const UNRESERVED: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~');

/// A question. The answer to equal questions is the same for a while.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Question {
    Vhost {
        of: Asker,
        /// `None` for a client of a Unix socket.
        address: Option<IpAddr>,
    },
    Resource {
        of: Asker,
        kind: ResourceKind,
        name: String,
        access: Access,
    },
    Topic {
        of: Asker,
        exchange: String,
        access: Access,
        routing_key: String,
        /// The identifier of a client of MQTT.
        client_id: Option<Arc<str>>,
    },
}

/// A user in a vhost.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Asker {
    pub(super) user: Arc<str>,
    pub(super) vhost: Arc<str>,
    /// Separated by spaces.
    pub(super) tags: Arc<str>,
}

impl Asker {
    pub(super) fn bytes(&self) -> usize {
        self.user.len() + self.vhost.len() + self.tags.len()
    }
}

impl Question {
    /// Its size, with that of its asker, which other questions may share.
    pub(super) fn bytes(&self) -> usize {
        let (of, own) = match self {
            Self::Vhost { of, .. } => (of, 0),
            Self::Resource { of, name, .. } => (of, name.len()),
            Self::Topic {
                of,
                exchange,
                routing_key,
                client_id,
                ..
            } => {
                let client_id = client_id.as_ref().map_or(0, |id| id.len());
                (of, exchange.len() + routing_key.len() + client_id)
            }
        };
        size_of::<Self>() + of.bytes() + own
    }

    /// The parameters as a query, or as the body of a form.
    pub(super) fn parameters(&self) -> String {
        let mut out = Parameters::default();
        match self {
            Self::Vhost { of, address } => {
                let address = address.map(|address| address.to_canonical().to_string());
                out.add("username", &of.user);
                out.add("vhost", &of.vhost);
                out.add("ip", address.as_deref().unwrap_or("unknown"));
                out.add("tags", &of.tags);
            }
            Self::Resource {
                of,
                kind,
                name,
                access,
            } => out.add_access(of, kind.name(), name, *access),
            Self::Topic {
                of,
                exchange,
                access,
                routing_key,
                client_id,
            } => {
                out.add_access(of, "topic", exchange, *access);
                out.add("routing_key", routing_key);
                if let Some(client_id) = client_id {
                    out.add("variable_map.client_id", client_id);
                }
                out.add("variable_map.username", &of.user);
                out.add("variable_map.vhost", &of.vhost);
            }
        }
        out.0
    }
}

/// The parameters of the question whether a user has this password, or exists.
pub(super) fn login(name: &str, password: Option<&[u8]>) -> String {
    let mut out = Parameters::default();
    out.add("username", name);
    if let Some(password) = password {
        out.add_bytes("password", password);
    }
    out.0
}

#[derive(Default)]
struct Parameters(String);

impl Parameters {
    fn add_access(&mut self, of: &Asker, kind: &str, name: &str, access: Access) {
        self.add("username", &of.user);
        self.add("vhost", &of.vhost);
        self.add("resource", kind);
        self.add("name", name);
        self.add("permission", &access.to_string());
        self.add("tags", &of.tags);
    }

    fn add(&mut self, name: &str, value: &str) {
        self.add_bytes(name, value.as_bytes());
    }

    fn add_bytes(&mut self, name: &str, value: &[u8]) {
        if !self.0.is_empty() {
            self.0.push('&');
        }
        self.0.push_str(name);
        self.0.push('=');
        // Only a space becomes %20.
        let encoded = percent_encode(value, UNRESERVED).to_string();
        self.0.push_str(&encoded.replace("%20", "+"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asker() -> Asker {
        Asker {
            user: "joe & co".into(),
            vhost: "/".into(),
            tags: "management policymaker".into(),
        }
    }

    #[test]
    fn parameters_are_those_of_the_plugin() {
        for (question, expected) in [
            (
                Question::Vhost {
                    of: asker(),
                    address: Some([127, 0, 0, 1].into()),
                },
                "username=joe+%26+co&vhost=%2F&ip=127.0.0.1&tags=management+policymaker",
            ),
            (
                Question::Resource {
                    of: asker(),
                    kind: ResourceKind::Exchange,
                    name: "amq.default".into(),
                    access: Access::Write,
                },
                "username=joe+%26+co&vhost=%2F&resource=exchange&name=amq.default&permission=write\
                 &tags=management+policymaker",
            ),
            (
                Question::Topic {
                    of: asker(),
                    exchange: "amq.topic".into(),
                    access: Access::Read,
                    routing_key: "a.*.ä".into(),
                    client_id: None,
                },
                "username=joe+%26+co&vhost=%2F&resource=topic&name=amq.topic&permission=read\
                 &tags=management+policymaker&routing_key=a.%2A.%C3%A4&variable_map.username=joe+%26+co\
                 &variable_map.vhost=%2F",
            ),
            (
                Question::Topic {
                    of: asker(),
                    exchange: "t".into(),
                    access: Access::Write,
                    routing_key: "a".into(),
                    client_id: Some("c 1".into()),
                },
                "username=joe+%26+co&vhost=%2F&resource=topic&name=t&permission=write\
                 &tags=management+policymaker&routing_key=a&variable_map.client_id=c+1\
                 &variable_map.username=joe+%26+co&variable_map.vhost=%2F",
            ),
        ] {
            assert_eq!(question.parameters(), expected);
        }
        assert_eq!(
            login("joe", Some(b"a b~\xff")),
            "username=joe&password=a+b~%FF"
        );
        assert_eq!(login("joe", None), "username=joe");
    }
}
