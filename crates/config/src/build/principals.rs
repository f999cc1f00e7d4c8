//! Files of principals, and the principals that replace those of a method.

use crosstie_auth::wamp::{Method, Methods, PrincipalsFile};

use super::Builder;
use crate::principals::KEYS;
use crate::problem::Problem;
use crate::tree::quoted;
use crate::view::View;

impl Builder<'_> {
    /// The principals files of a transport's methods. A method has either principals or a file.
    pub(super) fn principals_files(&mut self, auth: View<'_>) -> Vec<PrincipalsFile> {
        let mut files = Vec::new();
        for (method, here, there) in KEYS {
            let view = auth.object(method.name());
            let Some(view) = view.filter(|view| view.text("type") == Some("static")) else {
                continue;
            };
            match (view.given(here), view.text(there)) {
                (Some(_), None) => {}
                (None, Some(path)) => files.push(PrincipalsFile {
                    method,
                    path: path.to_owned(),
                }),
                _ => {
                    let (name, here, there) = (method.name(), quoted(here), quoted(there));
                    let message = format!("{name} needs {here} or {there}, and not both");
                    self.problems.push(Problem::error(view.span, message));
                }
            }
        }
        // JWT keys are public, and come from the issuer.
        if let Some(path) = auth.object("jwt").and_then(|jwt| jwt.text("jwks_file")) {
            files.push(PrincipalsFile {
                method: Method::Jwt,
                path: path.to_owned(),
            });
        }
        files
    }

    /// Replaces the principals of a method by those of `view`, the method's object.
    pub(crate) fn replace_principals(
        &mut self,
        methods: &mut Methods,
        method: Method,
        view: View<'_>,
    ) {
        match method {
            Method::Ticket => methods.ticket = Some(self.ticket(view)),
            Method::WampCra => methods.wampcra = Some(self.wampcra(view)),
            Method::Scram | Method::WampScram => methods.scram = Some(self.scram(view)),
            Method::Cryptosign => methods.cryptosign = Some(self.cryptosign(view)),
            _ => {}
        }
    }
}
