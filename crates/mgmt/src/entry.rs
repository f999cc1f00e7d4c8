//! The way of a request to its endpoint: the path, the method, the login, the rights.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use crosstie_broker::http_logins::log_in;
use crosstie_transport::Connection;

use crate::answer::Answer;
use crate::call::{Api, Call};
use crate::caller::{Caller, Credentials, Right};
use crate::cors::Cors;
use crate::form;
use crate::login::FORM_BYTES_MAX;
use crate::request::{Head, Query, segments};
use crate::route::{Place, place};
use crate::{overview, table};

/// RabbitMQ's bound on a body.
const BODY_BYTES_MAX: usize = 20_000_000;

/// A request that may be answered.
pub struct Admitted {
    caller: Option<Caller>,
    head: Head,
    path: Vec<String>,
}

impl Admitted {
    /// Maximum size of the body, in bytes. RabbitMQ's bound is for users.
    pub fn body_bytes_max(&self) -> usize {
        match self.caller {
            Some(_) => BODY_BYTES_MAX,
            None => FORM_BYTES_MAX,
        }
    }
}

/// The beginning of an answer.
pub enum Begun {
    /// The request is not admitted, or needs nothing more.
    Answered(Answer),
    /// The body is read next, if the method has one.
    Admitted(Box<Admitted>),
}

impl Api {
    /// Finds the endpoint of a request, and checks who asks. A wrong password is answered late. Needs a runtime with
    /// timers.
    pub async fn begin(
        self: &Arc<Self>,
        head: Head,
        cors: &Cors,
        connection: &Connection,
    ) -> Begun {
        let Some(path) = segments(&head.path) else {
            return Begun::Answered(Answer::empty(400));
        };
        match self.admit(&head, &path, cors, connection).await {
            Ok(caller) => Begun::Admitted(Box::new(Admitted { caller, head, path })),
            Err(answer) => Begun::Answered(cors.shown(&head, answer)),
        }
    }

    async fn admit(
        &self,
        head: &Head,
        path: &[String],
        cors: &Cors,
        connection: &Connection,
    ) -> Result<Option<Caller>, Answer> {
        let names: Vec<&str> = path.iter().map(String::as_str).collect();
        let found = found(&names)?;
        let method = head.method.as_str();
        if !found.takes(method) {
            return Err(Answer::method_not_allowed(found.allowed()));
        }
        if method == "OPTIONS" {
            return Err(Answer::empty(200).header("allow", found.allowed()));
        }
        if cors.allowed(head).is_none() {
            check_origin(head)?;
        }
        let caller = match found.right(method) {
            Right::Nobody => None,
            right => {
                let mut caller = self.log_in(head, &found, connection).await?;
                caller.check(right)?;
                let vhosts = self.vhosts_of(&caller, &found);
                caller.ask_vhosts(&vhosts, connection).await;
                self.check_vhost(&caller, &found)?;
                Some(caller)
            }
        };
        let is_form = || {
            head.headers
                .content_type
                .as_deref()
                .and_then(form::boundary)
        };
        let is_right = match method {
            "PUT" => !found.takes_json_only() || is_json(head),
            "POST" => !found.takes_json_or_form() || is_json(head) || is_form().is_some(),
            _ => true,
        };
        if !is_right {
            return Err(Answer::empty(415));
        }
        match &head.headers.accept {
            Some(accept) if !accepts_json(accept) && found.right(method) != Right::Nobody => {
                Err(Answer::empty(406))
            }
            _ => Ok(caller),
        }
    }

    async fn log_in(
        &self,
        head: &Head,
        found: &Place<'_>,
        connection: &Connection,
    ) -> Result<Caller, Answer> {
        let query = Query::parse(&head.query);
        let in_query = query
            .get("auth")
            .filter(|_| matches!(found, Place::Definitions(_)));
        let credentials = match in_query {
            Some(text) => Credentials::decode(text)?,
            None => Credentials::parse(head.headers.authorization.as_deref())?,
        };
        self.log_in_as(&credentials, connection).await
    }

    pub(crate) async fn log_in_as(
        &self,
        credentials: &Credentials,
        connection: &Connection,
    ) -> Result<Caller, Answer> {
        let Credentials { name, password } = credentials;
        let users = self.operators.users();
        let logged_in = log_in(self.operators.broker(), connection, name, password).await;
        let logged_in = logged_in.map_err(|refused| {
            self.logins.failed.fetch_add(1, Ordering::Relaxed);
            let (peer, why) = (connection.peer(), refused.why);
            tracing::warn!("{peer}: management API login refused: {why}");
            match refused.is_loopback_only {
                true => Answer::not_authorised("User can only log in via localhost"),
                false => Answer::login_failed(),
            }
        })?;
        self.logins.succeeded.fetch_add(1, Ordering::Relaxed);
        Ok(Caller::of_login(logged_in, users))
    }

    /// The vhosts that matter to an answer: that of the path, or all for a list of those that the user sees.
    fn vhosts_of(&self, caller: &Caller, found: &Place<'_>) -> Vec<Arc<str>> {
        let broker = self.operators.broker();
        let listed = || {
            let listed = found.listed_vhost();
            listed.filter(|_| !caller.is_administrator())
        };
        match found.vhost().or_else(listed) {
            Some(vhost) if broker.has_vhost(vhost) => vec![vhost.into()],
            None if found.lists_vhosts_of(caller) => broker.vhost_names(),
            _ => Vec::new(),
        }
    }

    /// A vhost that does not exist is found missing later.
    fn check_vhost(&self, caller: &Caller, found: &Place<'_>) -> Result<(), Answer> {
        let is_limit = matches!(found, Place::VhostLimits(_));
        match found.vhost() {
            // Limits are for those who watch, too.
            Some(_) if is_limit && caller.is_monitoring() => Ok(()),
            Some(vhost) if self.operators.broker().has_vhost(vhost) && !caller.sees(vhost) => {
                let reason = "User not authorised to access virtual host";
                Err(Answer::not_authorised(reason))
            }
            _ => Ok(()),
        }
    }

    /// Answers a request with its body.
    pub async fn finish(
        self: &Arc<Self>,
        admitted: Box<Admitted>,
        cors: &Cors,
        connection: &Connection,
        body: &[u8],
    ) -> Answer {
        let Admitted { caller, head, path } = *admitted;
        let names: Vec<&str> = path.iter().map(String::as_str).collect();
        let place = match found(&names) {
            Ok(place) => place,
            Err(answer) => return answer,
        };
        let answer = match caller {
            None if place == Place::Login => self.log_in_by_form(body, connection).await,
            None => overview::open_to_all(&place),
            Some(caller) => {
                let call = Call {
                    api: self,
                    caller: &caller,
                    query: Query::parse(&head.query),
                    head: &head,
                    answer_bytes_max: usize::MAX,
                };
                table::answer(&call, &place, body).await
            }
        };
        cors.shown(&head, finished(answer))
    }
}

/// The headers that every answer of an endpoint has.
fn finished(answer: Answer) -> Answer {
    let is_ok = answer.status == 200;
    let answer = answer.header("vary", "accept, accept-encoding, origin");
    match is_ok {
        true => answer.header("cache-control", "no-cache"),
        false => answer,
    }
}

pub(crate) fn found<'p>(path: &[&'p str]) -> Result<Place<'p>, Answer> {
    match path {
        ["api"] => Err(Answer::empty(301).header("location", "/api/index.html")),
        ["api", "index.html"] | [""] => Ok(Place::Index),
        ["cli", "rabbitmqadmin"] => Ok(Place::CommandLineTool),
        ["api", rest @ ..] => place(rest).ok_or_else(Answer::not_found),
        _ => Err(Answer::not_found()),
    }
}

/// A browser sends its credentials with requests of other sites' pages, too. Those are refused.
fn check_origin(head: &Head) -> Result<(), Answer> {
    let headers = &head.headers;
    let is_foreign_site = matches!(headers.sec_fetch_site.as_deref(), Some("cross-site"));
    let is_foreign_origin = headers.origin.as_deref().is_some_and(|origin| {
        let authority = origin.split_once("://").map(|(_, authority)| authority);
        authority.is_none() || authority != headers.host.as_deref()
    });
    // A page of another site cannot read the answer to a GET.
    let changes = !matches!(head.method.as_str(), "GET" | "HEAD" | "OPTIONS");
    match changes && (is_foreign_site || is_foreign_origin) {
        true => {
            let reason = "requests of other sites' pages are refused";
            Err(Answer::error(403, "forbidden", reason))
        }
        false => Ok(()),
    }
}

/// Whether the body is declared as JSON.
fn is_json(head: &Head) -> bool {
    let kind = head.headers.content_type.as_deref().unwrap_or_default();
    let kind = kind.split(';').next().unwrap_or_default();
    kind.trim().eq_ignore_ascii_case("application/json")
}

fn accepts_json(accept: &str) -> bool {
    accept.split(',').any(|range| {
        let mut parts = range.split(';').map(str::trim);
        let kind = parts.next().unwrap_or_default();
        let is_refused = parts.any(|parameter| matches!(parameter, "q=0" | "q=0.0"));
        let is_json = ["*/*", "application/*", "application/json"]
            .iter()
            .any(|json| kind.eq_ignore_ascii_case(json));
        is_json && !is_refused
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::request::Headers;

    #[test]
    fn requests_of_other_sites_change_nothing() {
        let head = |method: &str, origin: Option<&str>, site: Option<&str>| Head {
            method: method.to_owned(),
            headers: Headers {
                host: Some("broker:15672".to_owned()),
                origin: origin.map(str::to_owned),
                sec_fetch_site: site.map(str::to_owned),
                ..Headers::default()
            },
            ..Head::default()
        };
        for (method, origin, site, may) in [
            ("PUT", None, None, true),
            (
                "PUT",
                Some("http://broker:15672"),
                Some("same-origin"),
                true,
            ),
            ("PUT", Some("http://evil"), None, false),
            ("POST", Some("null"), None, false),
            ("DELETE", Some("http://broker"), None, false),
            ("POST", None, Some("cross-site"), false),
            ("GET", Some("http://evil"), Some("cross-site"), true),
        ] {
            let checked = check_origin(&head(method, origin, site));
            assert_eq!(checked.is_ok(), may, "{method} {origin:?} {site:?}");
        }
    }

    #[test]
    fn clients_accept_json() {
        for (accept, expected) in [
            ("*/*", true),
            ("text/html, application/json;q=0.9", true),
            ("text/html,*/*;q=0.8", true),
            ("text/html", false),
            ("application/json;q=0", false),
        ] {
            assert_eq!(accepts_json(accept), expected, "{accept}");
        }
    }
}
