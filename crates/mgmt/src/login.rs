//! The login of a page: a form with a name and a password.

use crosstie_transport::Connection;
use serde_json::json;

use crate::answer::Answer;
use crate::call::Api;
use crate::caller::{Credentials, Right};
use crate::request::Query;

/// Maximum size of a form, in bytes: strangers send it.
pub(crate) const FORM_BYTES_MAX: usize = 4_096;

impl Api {
    /// Checks the login in a form.
    pub(crate) async fn log_in_by_form(&self, form: &[u8], connection: &Connection) -> Answer {
        let form = Query::parse(&String::from_utf8_lossy(form));
        let (Some(name), Some(password)) = (form.get("username"), form.get("password")) else {
            return Answer::login_failed();
        };
        let credentials = Credentials {
            name: name.to_owned(),
            password: password.as_bytes().to_vec(),
        };
        let caller = self.log_in_as(&credentials, connection).await;
        match caller.and_then(|caller| caller.check(Right::Management)) {
            // RabbitMQ's cookie has the password. Nothing here would read it.
            Ok(()) => Answer::json(&json!("ok")),
            Err(refused) => refused,
        }
    }
}
