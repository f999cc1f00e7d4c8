//! A command-line client's identity, and its proof.

use std::fs;
use std::io::{self, BufRead};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, bail};
use clap::ValueEnum;
use crosstie_client::{Anonymous, Authenticator, Cryptosign, Scram, SigningKey, Ticket, WampCra};
use serde::{Deserialize, Serialize};

/// No option holds a secret: every user of the machine could read it there.
#[derive(Clone, Default, PartialEq, Eq, clap::Args, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Credentials {
    /// Authid to request.
    #[arg(long)]
    #[serde(skip_serializing_if = "Option::is_none")]
    authid: Option<String>,
    /// Method of authentication.
    #[arg(long, value_enum, default_value_t)]
    authmethod: Method,
    /// File whose first line is the ticket, secret, password or private key (64 hexadecimal digits); - is
    /// standard input.
    #[arg(long, value_name = "FILE", conflicts_with = "secret_env")]
    #[serde(skip_serializing_if = "Option::is_none")]
    secret_file: Option<PathBuf>,
    /// Environment variable with that secret.
    #[arg(long, value_name = "VARIABLE")]
    #[serde(skip_serializing_if = "Option::is_none")]
    secret_env: Option<String>,
    /// The secret itself: kept by [`Credentials::kept`], and no option.
    #[arg(skip)]
    #[serde(skip_serializing_if = "Option::is_none")]
    secret: Option<String>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
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
            if self.has_secret() {
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

    /// Whether there is neither a name nor a secret.
    pub fn is_default(&self) -> bool {
        *self == Self::default()
    }

    pub fn authid(&self) -> Option<&str> {
        self.authid.as_deref()
    }

    /// Whether the secret is read from standard input.
    pub fn reads_standard_input(&self) -> bool {
        self.secret_file.as_deref() == Some(Path::new("-"))
    }

    /// The same login for later commands in other directories: a secret from standard input is read now and kept. A login
    /// that cannot work is refused.
    pub fn kept(mut self) -> anyhow::Result<Self> {
        if self.reads_standard_input() {
            self.secret = self.secret()?;
            self.secret_file = None;
        }
        if let Some(path) = &mut self.secret_file {
            *path = std::path::absolute(&*path)?;
        }
        match self.secret_env {
            // The variable may be set later.
            Some(_) if self.authmethod != Method::Anonymous => {}
            _ => drop(self.authenticator()?),
        }
        Ok(self)
    }

    fn has_secret(&self) -> bool {
        self.secret.is_some() || self.secret_file.is_some() || self.secret_env.is_some()
    }

    fn secret(&self) -> anyhow::Result<Option<String>> {
        if let Some(secret) = &self.secret {
            return Ok(Some(secret.clone()));
        }
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
