//! `crosstie passwd`: a configuration's entries for principals with passwords.

mod amqp;
mod check;
pub(crate) mod password;
pub(crate) mod salt;

use std::process::ExitCode;

use anyhow::Context as _;
use clap::{Subcommand, ValueEnum};
use crosstie_auth::wamp::scram::{Function, Kdf, Reading};
use crosstie_auth::wamp::{Key, Salted, Secret, TicketHash};
use serde_json::{Map, Value, json};

use amqp::Amqp;
use check::Check;
use salt::salt;

/// Create a principal's entry for a configuration from a password; check one
///
/// Prompts for the password, or reads the first line of standard input if that is not a terminal. Paste the printed
/// entry, in JSON or YAML, into the principals (or users) of a method's `type: static`, or into the users of `amqp`.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    method: Method,
}

#[derive(Subcommand)]
enum Method {
    Ticket(Ticket),
    Wampcra(WampCra),
    Scram(Scram),
    Amqp(Amqp),
    Check(Check),
}

#[derive(clap::Args)]
struct Principal {
    /// Authid of the principal.
    authid: String,
    /// Role of its sessions; by default the method's `default-role`.
    #[arg(long)]
    role: Option<String>,
    /// Environment variable with the password.
    #[arg(long, value_name = "VARIABLE")]
    password_env: Option<String>,
}

/// Create the hash of a ticket.
#[derive(clap::Args)]
struct Ticket {
    #[command(flatten)]
    principal: Principal,
    /// Print the ticket itself, for Crossbar.io, which does not support hashes.
    #[arg(long)]
    plain: bool,
}

/// Create a secret for WAMP-CRA.
#[derive(clap::Args)]
struct WampCra {
    #[command(flatten)]
    principal: Principal,
    /// Form of the secret in the configuration.
    #[arg(long, value_enum, default_value_t)]
    form: Form,
    /// Iterations of the client's key derivation at each login, with a salt. A browser's page freezes meanwhile: about
    /// 1 s for 100,000 with Autobahn|JS.
    #[arg(long, default_value_t = 100_000)]
    iterations: u32,
}

#[derive(Clone, Copy, Debug, Default, ValueEnum)]
enum Form {
    /// The key that clients derive from the password.
    #[default]
    Derived,
    /// The password, with a salt (Crossbar.io since 2025).
    Salted,
    /// The password itself, with which clients sign.
    Plain,
}

/// Create keys for SCRAM.
#[derive(clap::Args)]
struct Scram {
    #[command(flatten)]
    principal: Principal,
    #[arg(long, value_enum, default_value_t)]
    kdf: KdfName,
    /// Kind of clients; their Argon2id keys differ.
    #[arg(long, value_enum, default_value_t)]
    clients: Clients,
    /// Iterations of the client's key derivation; by default 2 for Argon2id, 600,000 for PBKDF2.
    #[arg(long)]
    iterations: Option<u32>,
    /// Memory of the client's key derivation in KiB, for Argon2id.
    #[arg(long, default_value_t = 19_456)]
    memory: u32,
}

#[derive(Clone, Copy, Debug, Default, ValueEnum)]
enum KdfName {
    #[default]
    #[value(name = "argon2id-13", alias = "argon2id13")]
    Argon2id,
    #[value(name = "pbkdf2")]
    Pbkdf2,
}

#[derive(Clone, Copy, Debug, Default, ValueEnum)]
enum Clients {
    /// Autobahn and Crossbar.io, with the method `scram`.
    #[default]
    Autobahn,
    /// Clients that follow the specification, with the method `wamp-scram`.
    Specification,
}

/// For WAMP's methods.
const SALT_BYTES: usize = 16;

pub(crate) fn run(arguments: Arguments) -> anyhow::Result<ExitCode> {
    let (principal, made) = match arguments.method {
        Method::Ticket(ticket) => {
            let password = ticket.principal.password()?;
            let made = match ticket.plain {
                true => json!({ "ticket": password }),
                false => json!({ "ticket_hash": TicketHash::of(&password, salt()?).to_string() }),
            };
            (ticket.principal, made)
        }
        Method::Wampcra(wampcra) => {
            let made = wampcra.make(&wampcra.principal.password()?)?;
            (wampcra.principal, made)
        }
        Method::Scram(scram) => {
            let made = scram.make(&scram.principal.password()?)?;
            (scram.principal, made)
        }
        Method::Amqp(amqp) => return amqp.run(),
        Method::Check(check) => return check.run(),
    };
    let mut entry = Map::new();
    if let Value::Object(made) = made {
        entry.extend(made);
    }
    if let Some(role) = principal.role {
        entry.insert("role".to_owned(), role.into());
    }
    say!("{}: {}", json!(principal.authid), Value::Object(entry))?;
    Ok(ExitCode::SUCCESS)
}

impl Principal {
    fn password(&self) -> anyhow::Result<String> {
        password::twice(self.password_env.as_deref())
    }
}

/// Autobahn|JS 26.3.1 in Chromium takes about a second for this many.
const ITERATIONS_PER_SECOND: f64 = 100_000.0;

impl WampCra {
    /// Prints the cost of a login to its client, and a better choice.
    fn tell_cost(&self) {
        complain!(
            "note: with Autobahn|JS each login stops a browser's page for about {:.1} s ({} iterations; --iterations sets \
             the number). Prefer SCRAM if the clients support it (crosstie passwd scram): its entry lets no reader of \
             the configuration log in.",
            f64::from(self.iterations) / ITERATIONS_PER_SECOND,
            self.iterations
        );
    }

    fn make(&self, password: &str) -> anyhow::Result<Value> {
        if let Form::Plain = self.form {
            return Ok(json!({ "secret": password }));
        }
        let salted = Salted {
            salt: digits(&salt::<SALT_BYTES>()?),
            iterations: self.iterations,
            key_bytes: Salted::KEY_BYTES,
        };
        Secret::underived(password, Some(salted.clone()))?;
        self.tell_cost();
        let secret = match self.form {
            Form::Derived => salted.derive(password),
            Form::Salted | Form::Plain => Key::new(password),
        };
        Ok(json!({
            "secret": secret.text().context("a key that is no text")?,
            "salt": salted.salt,
            "iterations": salted.iterations,
            "keylen": salted.key_bytes,
        }))
    }
}

impl Scram {
    fn make(&self, password: &str) -> anyhow::Result<Value> {
        let (function, usual, memory_kib) = match self.kdf {
            KdfName::Argon2id => (Function::Argon2id, 2, Some(self.memory)),
            KdfName::Pbkdf2 => (Function::Pbkdf2, 600_000, None),
        };
        let kdf = Kdf {
            function,
            iterations: self.iterations.unwrap_or(usual),
            memory_kib,
        };
        let reading = match self.clients {
            Clients::Autobahn => Reading::Autobahn,
            Clients::Specification => Reading::Specification,
        };
        let salt: [u8; SALT_BYTES] = salt()?;
        let keys = kdf.derive(password, &salt, reading)?.keys();
        Ok(json!({
            "kdf": kdf.function.name(),
            "iterations": kdf.iterations,
            // Crossbar.io requires a value for PBKDF2 too.
            "memory": kdf.memory_kib.unwrap_or_default(),
            "salt": digits(&salt),
            "stored-key": digits(&keys.stored),
            "server-key": digits(&keys.server),
        }))
    }
}

fn digits(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
