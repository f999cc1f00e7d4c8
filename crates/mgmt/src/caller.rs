//! The user behind a request: credentials, tags, vhosts.

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use crosstie_auth::{User, Users};
use crosstie_broker::http_logins::LoggedIn;
use crosstie_broker::resident::Whose;
use crosstie_transport::Connection;

use crate::answer::Answer;

/// A user that has logged in.
#[derive(Clone)]
pub(crate) struct Caller {
    pub(crate) user: Arc<User>,
    rights: Rights,
}

/// Where the user's permissions come from.
#[derive(Clone)]
enum Rights {
    /// The broker's own users.
    Own(Arc<Users>),
    /// The backend that has let the user in.
    Login(LoggedIn),
    /// Every right in every vhost.
    All,
}

/// The right that an endpoint requires.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Right {
    /// No login.
    Nobody,
    Management,
    Monitoring,
    Policymaker,
    Administrator,
}

/// Name and password of a request. A bearer's token is a password without a name.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Credentials {
    pub(crate) name: String,
    pub(crate) password: Vec<u8>,
}

impl Credentials {
    /// Reads `Authorization`, or the parameter `auth` with the same content.
    pub(crate) fn parse(header: Option<&str>) -> Result<Self, Answer> {
        let header = header.ok_or_else(Answer::login_wanted)?;
        let (scheme, rest) = header.split_once(' ').unwrap_or((header, ""));
        if scheme.eq_ignore_ascii_case("bearer") {
            return Ok(Self {
                name: String::new(),
                password: rest.trim().into(),
            });
        }
        if !scheme.eq_ignore_ascii_case("basic") {
            return Err(Answer::login_wanted());
        }
        Self::decode(rest.trim())
    }

    pub(crate) fn decode(text: &str) -> Result<Self, Answer> {
        let odd = || Answer::empty(400);
        let bytes = STANDARD.decode(text).map_err(|_| odd())?;
        let colon = bytes.iter().position(|byte| *byte == b':');
        let colon = colon.ok_or_else(odd)?;
        let name = String::from_utf8(bytes[..colon].to_vec()).map_err(|_| odd())?;
        Ok(Self {
            name,
            password: bytes[colon + 1..].to_vec(),
        })
    }
}

impl Caller {
    /// The operator at the node's own socket, with RabbitMQ's name for its command-line tools.
    pub(crate) fn operator() -> Self {
        Self::operator_with(&["administrator"])
    }

    /// The operator, who may publish messages with the `user-id` of others.
    pub(crate) fn impersonator() -> Self {
        Self::operator_with(&["administrator", "impersonator"])
    }

    fn operator_with(tags: &[&str]) -> Self {
        let tags = tags.iter().map(|tag| (*tag).to_owned());
        let user = User {
            name: "rmq-cli".into(),
            password: None,
            tags: tags.collect(),
            is_remote_allowed: false,
        };
        Self {
            user: Arc::new(user),
            rights: Rights::All,
        }
    }

    /// A user whom a backend has let in.
    pub(crate) fn of_login(logged_in: LoggedIn, users: Arc<Users>) -> Self {
        Self {
            user: Arc::clone(&logged_in.user),
            rights: match logged_in.is_internal() {
                true => Rights::Own(users),
                false => Rights::Login(logged_in),
            },
        }
    }

    pub(crate) fn name(&self) -> &str {
        &self.user.name
    }

    /// Checks the tags. Every right includes that of `management`.
    pub(crate) fn check(&self, right: Right) -> Result<(), Answer> {
        if !self.has_any(&["management", "policymaker", "monitoring", "administrator"]) {
            return Err(Answer::not_authorised("Not management user"));
        }
        let (tags, reason): (&[&str], _) = match right {
            Right::Nobody | Right::Management => return Ok(()),
            Right::Monitoring => (&["monitoring", "administrator"], "Not monitor user"),
            Right::Policymaker => (
                &["policymaker", "administrator"],
                "User not authorised to access object",
            ),
            Right::Administrator => (&["administrator"], "Not administrator user"),
        };
        match self.has_any(tags) {
            true => Ok(()),
            false => Err(Answer::not_authorised(reason)),
        }
    }

    pub(crate) fn is_administrator(&self) -> bool {
        self.has_any(&["administrator"])
    }

    pub(crate) fn is_monitoring(&self) -> bool {
        self.has_any(&["monitoring", "administrator"])
    }

    /// Whether the user may read a vhost: the administrator every one, others those they have permissions in.
    pub(crate) fn sees(&self, vhost: &str) -> bool {
        self.is_administrator()
            || match &self.rights {
                Rights::Own(users) => users.permissions(self.name(), vhost).is_some(),
                Rights::Login(logged_in) => logged_in.may_open(vhost),
                Rights::All => true,
            }
    }

    /// Asks the server that decides on the user's rights which of the vhosts it may open.
    pub(crate) async fn ask_vhosts(&mut self, vhosts: &[Arc<str>], connection: &Connection) {
        if let Rights::Login(logged_in) = &mut self.rights {
            logged_in.ask_vhosts(vhosts, connection).await;
        }
    }

    /// The user of a connection to a vhost.
    pub(crate) fn whose(&self, vhost: &str) -> Whose<'_> {
        match &self.rights {
            Rights::Own(_) => Whose::Own(self.name()),
            Rights::Login(logged_in) => {
                Whose::Other(Arc::clone(&self.user), logged_in.rights(vhost))
            }
            Rights::All => Whose::Operator(Arc::clone(&self.user)),
        }
    }

    fn has_any(&self, tags: &[&str]) -> bool {
        let mut own = self.user.tags.iter();
        own.any(|own| tags.contains(&own.as_str()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credentials_are_basic_or_a_bearers() {
        let status = |header: Option<&str>| Credentials::parse(header).map_err(|e| e.status);
        let right = Credentials {
            name: "guest".to_owned(),
            password: b"a:b".to_vec(),
        };
        assert_eq!(status(Some("Basic Z3Vlc3Q6YTpi")), Ok(right));
        let bearer = Credentials {
            name: String::new(),
            password: b"a.b.c".to_vec(),
        };
        assert_eq!(status(Some("bearer a.b.c")), Ok(bearer));
        for (header, expected) in [
            (None, 401),
            (Some("Digest Z3Vlc3Q6YTpi"), 401),
            (Some("Basic !!"), 400),
            (Some("Basic Z3Vlc3Q="), 400),
        ] {
            assert_eq!(status(header), Err(expected), "{header:?}");
        }
    }
}
