//! The console: a listener with pages for a browser, and a WebSocket to the management realm.

use std::collections::BTreeSet;

use crosstie_auth::wamp::{Anonymous, Methods};

use super::transport::{Place, allowed};
use super::{Builder, transport};
use crate::catalogue::{WEB_OPTIONS, WEBSOCKET_OPTIONS};
use crate::model::{
    Allowed, Cookie, Endpoint, ListenerLimits, Transport, TransportKind, Web, WebOptions,
    WebService, WebSocket,
};
use crate::plain::Section;
use crate::tree::quoted;
use crate::view::View;
use crate::{CONSOLE, CONSOLE_ROLES};

/// The only realm of its sessions.
const REALM: &str = "crossbar";
/// Maximum number of its connections. A browser has a handful, and the management realm one thread.
const CONNECTIONS_MAX: usize = 256;

/// The name of its cookie. Browsers send a cookie to every port of a host: under another transport's name, each login
/// would replace the other one's.
const COOKIE_NAME: &str = "crosstie_console";

/// The policy of its cookie for pages of other sites.
const STRICT: &str = "Strict";

impl Builder<'_> {
    pub(super) fn console(&mut self, console: View<'_>) -> Transport {
        let endpoint = self.endpoint(console);
        let place = Place::of(&endpoint, None);
        let auth = self.auth_at(console, place);
        self.check_console(console, &endpoint, &auth);
        let defaults = View::empty(&WEBSOCKET_OPTIONS);
        let mut options = self.websocket_options(defaults, place);
        options.allowed_origins = match console.given("allowed_origins").is_some() {
            true => allowed(console, "allowed_origins", false),
            false => Allowed::SameHost,
        };
        options.allow_null_origin = false;
        let websocket = WebSocket {
            url: None,
            serializers: transport::all_serializers(),
            auth,
            cookie: self.console_cookie(console, place.is_tls),
            mqtt: None,
            options,
        };
        let web = Web {
            paths: vec![("/".to_owned(), WebService::Console)],
            options: WebOptions {
                hsts_max_age: None,
                ..WebOptions::read(View::empty(&WEB_OPTIONS))
            },
        };
        let roles = CONSOLE_ROLES.map(str::to_owned);
        Transport {
            id: CONSOLE.to_owned(),
            allowed_hosts: allowed(console, "allowed_hosts", endpoint.is_loopback()),
            endpoint,
            kind: TransportKind::Universal {
                mqtt: None,
                rawsocket: None,
                websocket: vec![("/ws".to_owned(), websocket)],
                web: Some(web),
            },
            connections_max: Some(CONNECTIONS_MAX),
            limits: ListenerLimits::default(),
            pages: Vec::new(),
            admits: Some([(REALM.to_owned(), BTreeSet::from(roles))].into()),
        }
    }

    /// A cookie that no script reads, and that no other site's page sends.
    fn console_cookie(&mut self, console: View<'_>, is_tls: bool) -> Option<Box<Cookie>> {
        let given = console.section("cookie");
        let cookie = self.cookie(console)?;
        if cookie
            .same_site
            .as_deref()
            .is_some_and(|site| site != STRICT)
        {
            let message = "the console's cookie has \"same_site\": \"Strict\": leave the key out";
            self.error(given, "same_site", message);
        }
        if given.given("http_strict").is_some() && !cookie.http_only {
            let message = "the console's cookie is hidden from scripts: leave the key out";
            self.error(given, "http_strict", message);
        }
        let name = match given.given("name") {
            Some(_) => cookie.name.clone(),
            None => COOKIE_NAME.to_owned(),
        };
        Some(Box::new(Cookie {
            name,
            http_only: true,
            same_site: Some(STRICT.to_owned()),
            secure: cookie.secure || is_tls,
            ..*cookie
        }))
    }

    /// Every role must be one of the console's, and other machines must log in.
    fn check_console(&mut self, console: View<'_>, endpoint: &Endpoint, methods: &Methods) {
        let auth = console.section("auth");
        let [reads, changes] = CONSOLE_ROLES;
        let wrong = |role: &str| {
            let is_known = CONSOLE_ROLES.contains(&role);
            (!is_known).then(|| {
                format!(
                    "expected role \"{reads}\" or \"{changes}\" at the console, got {}",
                    quoted(role)
                )
            })
        };
        match &methods.anonymous {
            Some(Anonymous::Static { role, .. }) => {
                if let Some(message) = wrong(role) {
                    self.error(auth, "anonymous", message);
                }
                if !endpoint.is_loopback() && !matches!(endpoint, Endpoint::Unix { .. }) {
                    let message = "anonymous sessions would manage this node from any machine: expected another \
                                   method, or \"interface\": \"127.0.0.1\" in the endpoint";
                    self.error(auth, "anonymous", message);
                }
                let names = ["allowed_hosts", "allowed_origins"].into_iter();
                let given = names.filter(|key| console.given(key).is_some());
                let proxies = endpoint.proxy_protocol().map(|_| "endpoint");
                let elsewhere = given.chain(proxies);
                // The owner of a Unix socket's directory decides who reaches the socket.
                for key in elsewhere.filter(|_| endpoint.is_loopback()) {
                    let message = "anonymous sessions would manage this node through other names or a proxy: expected \
                                   another method in \"auth\"";
                    self.error(console, key, message);
                }
            }
            Some(Anonymous::Dynamic(_)) | None => {}
        }
        let named = methods.roles();
        let mut named: Vec<_> = named.map(|(method, role)| (method.name(), role)).collect();
        named.sort_unstable();
        named.dedup();
        for (method, role) in named {
            if let Some(message) = wrong(role) {
                self.error(auth, method, message);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::{Allowed, Config, Format, Source, parse, render};

    /// A configuration with a console, or its problems.
    fn read(console: &str) -> Result<Config, String> {
        let source = Source::new(
            "config".to_owned(),
            format!(r#"{{"version": 2, "workers": [], "console": {console}}}"#),
        );
        match parse(&source, Format::Json, &|_| None) {
            Ok((config, _)) => Ok(config),
            Err(problems) => Err(render(&problems, &source)),
        }
    }

    /// The problems of a console, or an empty text.
    fn problems(console: &str) -> String {
        match read(console) {
            Ok(config) => {
                assert!(config.console.is_some());
                String::new()
            }
            Err(problems) => problems,
        }
    }

    #[test]
    fn logins_have_a_role_of_the_console() {
        let here = r#"{"type": "tcp", "interface": "127.0.0.1", "port": 1}"#;
        let anywhere = r#"{"type": "tcp", "port": 1}"#;
        let socket = r#"{"type": "unix", "path": "c.sock"}"#;
        let anonymous =
            |role: &str| format!(r#"{{"anonymous": {{"type": "static", "role": "{role}"}}}}"#);
        let ticket = |role: &str| {
            format!(
                r#"{{"ticket": {{"type": "static", "principals": {{"a": {{"ticket": "b", "role": "{role}"}}}}}}}}"#
            )
        };
        for (endpoint, auth, expected) in [
            (here, anonymous("monitoring"), ""),
            (socket, anonymous("administrator"), ""),
            (anywhere, ticket("administrator"), ""),
            (here, anonymous("anonymous"), r#"got "anonymous""#),
            (here, "{}".to_owned(), r#"got "anonymous""#),
            (here, ticket("trusted"), r#"got "trusted""#),
            (anywhere, anonymous("monitoring"), "from any machine"),
        ] {
            let found = problems(&format!(r#"{{"endpoint": {endpoint}, "auth": {auth}}}"#));
            assert_eq!(found.is_empty(), expected.is_empty(), "{auth}: {found}");
            assert!(found.contains(expected), "{auth}: {found}");
        }
        for cookie in [r#"{"same_site": "Lax"}"#, r#"{"http_strict": false}"#] {
            let auth = anonymous("monitoring");
            let found = problems(&format!(
                r#"{{"endpoint": {here}, "auth": {auth}, "cookie": {cookie}}}"#
            ));
            assert!(found.contains("leave the key out"), "{cookie}: {found}");
        }
        let proxied = r#"{"type": "tcp", "interface": "127.0.0.1", "port": 1, "proxy_protocol": {"from": ["127.0.0.1"]}}"#;
        let hosts = r#", "allowed_hosts": ["node.example"]"#;
        let origins = r#", "allowed_origins": ["https://node.example"]"#;
        let cases = [
            (here, hosts, true),
            (here, origins, true),
            (proxied, "", true),
            (socket, hosts, false),
        ];
        for (endpoint, keys, is_open) in cases {
            for (auth, is_refused) in [
                (anonymous("administrator"), is_open),
                (ticket("administrator"), false),
            ] {
                let found = problems(&format!(
                    r#"{{"endpoint": {endpoint}, "auth": {auth}{keys}}}"#
                ));
                let text = "other names or a proxy";
                assert_eq!(found.contains(text), is_refused, "{auth}{keys}: {found}");
            }
        }
        let without = problems(&format!(r#"{{"endpoint": {here}}}"#));
        assert!(without.contains("auth"), "{without}");
    }

    #[test]
    fn its_cookie_has_a_name_of_its_own() {
        for (given, expected) in [("", "crosstie_console"), (r#""name": "mine""#, "mine")] {
            let console = format!(
                r#"{{"endpoint": {{"type": "tcp", "port": 1}}, "cookie": {{{given}}},
                    "auth": {{"cookie": {{}}, "ticket": {{"type": "static", "principals": {{
                        "a": {{"ticket": "b", "role": "administrator"}}}}}}}}}}"#
            );
            let config = read(&console).expect("no problem");
            let console = config.console.expect("a console");
            let websockets = console.kind.websockets();
            let cookie = websockets
                .first()
                .and_then(|websocket| websocket.cookie.as_ref());
            assert_eq!(cookie.map(|cookie| cookie.name.as_str()), Some(expected));
        }
    }

    #[test]
    fn only_its_own_pages_may_connect() {
        let config = Config::embedded_default();
        let console = config.console.expect("the embedded default has a console");
        assert_eq!(console.allowed_hosts, Allowed::Loopback);
        let websockets = console.kind.websockets();
        let options = &websockets.first().expect("a WebSocket").options;
        assert_eq!(options.allowed_origins, Allowed::SameHost);
        assert!(!options.allow_null_origin);
    }
}
