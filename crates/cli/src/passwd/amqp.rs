//! `crosstie passwd amqp`: an AMQP user with RabbitMQ's hash of a password.

use std::process::ExitCode;

use crosstie_auth::PasswordHash;
use serde_json::json;

use super::password;
use super::salt::salt;

/// Create an AMQP user's entry, with RabbitMQ's salted SHA-256 hash of the password
///
/// Paste the entry into the `users` of a router worker's `amqp`, or into the `users` of RabbitMQ's definitions.
#[derive(clap::Args)]
pub(super) struct Amqp {
    /// Name of the user.
    name: String,
    /// Tag of the user, such as `administrator` or `impersonator`; may be repeated.
    #[arg(long = "tag", value_name = "TAG")]
    tags: Vec<String>,
    /// Environment variable with the password.
    #[arg(long, value_name = "VARIABLE")]
    password_env: Option<String>,
}

impl Amqp {
    pub(super) fn run(&self) -> anyhow::Result<ExitCode> {
        let password = password::twice(self.password_env.as_deref())?;
        let hash = PasswordHash::of(password.as_bytes(), salt()?);
        let user = json!({
            "name": self.name,
            "password_hash": hash.to_text(),
            "hashing_algorithm": hash.algorithm(),
            "tags": self.tags,
        });
        say!("{user}")?;
        Ok(ExitCode::SUCCESS)
    }
}
