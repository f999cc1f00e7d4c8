//! Pages of other sites that may use the API (CORS).

use std::time::Duration;

use crate::answer::Answer;
use crate::request::Head;

/// The origins of such pages.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cors {
    allow_origins: Vec<String>,
    max_age: Duration,
}

impl Cors {
    pub fn new(allow_origins: Vec<String>, max_age: Duration) -> Self {
        Self {
            allow_origins,
            max_age,
        }
    }

    /// The origin of a request, if it is one of these.
    pub(crate) fn allowed<'h>(&self, head: &'h Head) -> Option<&'h str> {
        let origin = head.headers.origin.as_deref()?;
        let mut allowed = self.allow_origins.iter();
        allowed.any(|allowed| allowed == origin).then_some(origin)
    }

    /// Lets the page of an allowed origin read the answer.
    pub(crate) fn shown(&self, head: &Head, answer: Answer) -> Answer {
        let Some(origin) = self.allowed(head) else {
            return answer;
        };
        let methods = answer.headers.iter().find(|(name, _)| *name == "allow");
        let methods = methods.map(|(_, methods)| methods.clone());
        let answer = answer
            .header("access-control-allow-origin", origin)
            .header("access-control-allow-credentials", "true");
        match methods {
            Some(methods) if head.method == "OPTIONS" => {
                let answer = answer
                    .header(
                        "access-control-max-age",
                        &self.max_age.as_secs().to_string(),
                    )
                    .header("access-control-allow-methods", &methods);
                match &head.headers.requested_headers {
                    Some(headers) => answer.header("access-control-allow-headers", headers),
                    None => answer,
                }
            }
            _ => answer,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::request::Headers;

    #[test]
    fn allowed_origins_read_answers() {
        let cors = Cors::new(vec!["https://a".to_owned()], Duration::from_secs(60));
        let shown = |method: &str, origin: Option<&str>| {
            let head = Head {
                method: method.to_owned(),
                headers: Headers {
                    origin: origin.map(str::to_owned),
                    requested_headers: Some("authorization".to_owned()),
                    ..Headers::default()
                },
                ..Head::default()
            };
            let answer = cors.shown(&head, Answer::empty(200).header("allow", "GET, PUT"));
            let headers = answer.headers.into_iter();
            let of_cors = headers.filter_map(|(name, value)| {
                let name = name.strip_prefix("access-control-")?;
                Some(format!("{name}: {value}"))
            });
            of_cors.collect::<Vec<_>>().join("; ")
        };
        let readable = "allow-origin: https://a; allow-credentials: true";
        assert_eq!(shown("GET", Some("https://a")), readable);
        assert_eq!(
            shown("OPTIONS", Some("https://a")),
            format!(
                "{readable}; max-age: 60; allow-methods: GET, PUT; allow-headers: authorization"
            )
        );
        for origin in [None, Some("https://b"), Some("https://a.b"), Some("null")] {
            assert_eq!(shown("OPTIONS", origin), "", "{origin:?}");
        }
    }
}
