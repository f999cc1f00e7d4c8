//! A command-line client's identity, and its proof.

use std::fs;
use std::io::{self, BufRead};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, bail};
use clap::ValueEnum;
use crosstie_client::{Anonymous, Authenticator, Cryptosign, Scram, SigningKey, Ticket, WampCra};

/// No option holds a secret: every user of the machine could read it there.
#[derive(clap::Args)]
pub struct Credentials {
    /// Authid to request.
    #[arg(long)]
    authid: Option<String>,
    /// Method of authentication.
    #[arg(long, value_enum, default_value_t)]
    authmethod: Method,
    /// File whose first line is the ticket, secret, password or private key (64 hexadecimal digits); - is
    /// standard input.
    #[arg(long, value_name = "FILE", conflicts_with = "secret_env")]
    secret_file: Option<PathBuf>,
    /// Environment variable with that secret.
    #[arg(long, value_name = "VARIABLE")]
    secret_env: Option<String>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum Method {
    #[default]
    Anonymous,
    Ticket,
    Wampcra,
    Scram,
    Cryptosign,
}

impl Credentials {
    pub fn authenticator(&self) -> anyhow::Result<Arc<dyn Authenticator>> {
        if self.authmethod == Method::Anonymous {
            if self.secret_file.is_some() || self.secret_env.is_some() {
                bail!("a secret requires an --authmethod that uses one, such as ticket");
            }
            let authid = self.authid.clone();
            return Ok(Arc::new(Anonymous { authid }));
        }
        let method = self.authmethod.to_possible_value();
        let method = method.as_ref().map_or("", |value| value.get_name());
        let Some(secret) = self.secret()? else {
            bail!("--authmethod {method} needs --secret-file or --secret-env");
        };
        if self.authmethod == Method::Cryptosign {
            let Some(key) = SigningKey::parse(&secret) else {
                bail!("the private key: expected 64 hexadecimal digits");
            };
            let (authid, key) = (self.authid.clone(), Arc::new(key));
            return Ok(Arc::new(Cryptosign { authid, key }));
        }
        let Some(authid) = self.authid.clone() else {
            bail!("--authmethod {method} needs --authid");
        };
        Ok(match self.authmethod {
            Method::Wampcra => Arc::new(WampCra { authid, secret }),
            Method::Scram => Arc::new(Scram {
                authid,
                password: secret,
            }),
            _ => Arc::new(Ticket {
                authid,
                ticket: secret,
            }),
        })
    }

    fn secret(&self) -> anyhow::Result<Option<String>> {
        if let Some(name) = &self.secret_env {
            let secret = std::env::var(name);
            return Ok(Some(
                secret.with_context(|| format!("--secret-env {name}"))?,
            ));
        }
        let Some(path) = &self.secret_file else {
            return Ok(None);
        };
        let secret = first_line(path);
        let of_file = || format!("--secret-file {}", path.display());
        match secret.with_context(of_file)? {
            line if line.is_empty() => bail!("{}: its first line is empty", of_file()),
            line => Ok(Some(line)),
        }
    }
}

/// Without its end.
fn first_line(path: &Path) -> io::Result<String> {
    let mut line = String::new();
    match path.to_str() {
        Some("-") => io::stdin().lock().read_line(&mut line)?,
        _ => io::BufReader::new(fs::File::open(path)?).read_line(&mut line)?,
    };
    let end = line.trim_end_matches(['\r', '\n']).len();
    line.truncate(end);
    Ok(line)
}
