//! A password, from a source that other users of the machine cannot read: a prompt, standard input, the environment.

use std::io::{self, BufRead as _, IsTerminal as _};

use anyhow::{Context as _, bail};

/// A new one, which is prompted for twice.
pub(crate) fn twice(variable: Option<&str>) -> anyhow::Result<String> {
    read(variable, true)
}

/// An existing one.
pub(crate) fn once(variable: Option<&str>) -> anyhow::Result<String> {
    read(variable, false)
}

fn read(variable: Option<&str>, is_new: bool) -> anyhow::Result<String> {
    let password = match variable {
        Some(name) => {
            let password = std::env::var(name);
            password.with_context(|| format!("--password-env {name}"))?
        }
        None if io::stdin().is_terminal() => {
            let password = rpassword::prompt_password("Password: ")?;
            if is_new && password != rpassword::prompt_password("Again: ")? {
                bail!("the second password is not the first");
            }
            password
        }
        None => {
            let mut line = String::new();
            io::stdin().lock().read_line(&mut line)?;
            line.trim_end_matches(['\r', '\n']).to_owned()
        }
    };
    match password.is_empty() {
        true => bail!("expected a password, and it is empty"),
        false => Ok(password),
    }
}
