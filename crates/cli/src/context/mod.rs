//! Contexts: names for an address and a login, so that a command needs neither. `crosstie context` keeps them.
//!
//! An option that names a place (`--url`, `--cbdir`, `--socket`) ignores the contexts, so that a secret is sent only to
//! the address that it was kept for.

mod file;
mod verb;

use std::ffi::OsString;
use std::io::IsTerminal as _;
use std::sync::Once;

use anyhow::bail;

pub(crate) use self::file::Chosen;
use self::file::Contexts;
pub(crate) use self::verb::{Arguments, run};

/// The environment variable that names one.
const VARIABLE: &str = "CROSSTIE_CONTEXT";

/// The names of all contexts.
pub(crate) fn names() -> anyhow::Result<Vec<String>> {
    let Some(path) = file::path() else {
        return Ok(Vec::new());
    };
    Ok(Contexts::read(&path)?.contexts.into_keys().collect())
}

/// Which context is meant.
#[derive(clap::Args)]
pub(crate) struct Choice {
    /// Context with the address and the login; by default $CROSSTIE_CONTEXT, or the selected one.
    #[arg(long, value_name = "NAME", global = true)]
    context: Option<String>,
}

impl Choice {
    /// The choice of a command without the option: no context.
    pub(crate) fn none() -> Self {
        Self {
            context: Some(String::new()),
        }
    }

    pub(crate) fn named(context: Option<String>) -> Self {
        Self { context }
    }

    /// The context that applies, if any.
    pub(crate) fn resolve(&self) -> anyhow::Result<Option<Chosen>> {
        self.choose(true)
    }

    /// The same without the selected one, for a command that another variable leads to a node.
    pub(crate) fn resolve_named(&self) -> anyhow::Result<Option<Chosen>> {
        self.choose(false)
    }

    fn choose(&self, may_be_selected: bool) -> anyhow::Result<Option<Chosen>> {
        let named = match named(self.context.as_deref(), std::env::var_os(VARIABLE))? {
            Named::Nothing => None,
            Named::None => return Ok(None),
            Named::Name(name) => Some(name),
        };
        if named.is_none() && !may_be_selected {
            return Ok(None);
        }
        let Some(path) = file::path() else {
            let Some(name) = named else { return Ok(None) };
            bail!(
                "context '{name}': neither XDG_CONFIG_HOME nor HOME names the directory of the contexts"
            );
        };
        let contexts = Contexts::read(&path)?;
        let is_selected = named.is_none();
        let chosen = contexts.chosen(named)?;
        if let Some(chosen) = &chosen
            && is_selected
            && std::io::stderr().is_terminal()
        {
            static ONCE: Once = Once::new();
            ONCE.call_once(|| complain!("context: {}", chosen.name));
        }
        Ok(chosen)
    }
}

/// The name of an option or of the environment.
#[derive(Debug, PartialEq, Eq)]
enum Named {
    /// Neither names one.
    Nothing,
    /// An empty name: no context, even if one is selected.
    None,
    Name(String),
}

fn named(option: Option<&str>, variable: Option<OsString>) -> anyhow::Result<Named> {
    let name = match (option, variable) {
        (Some(name), _) => name.to_owned(),
        (None, None) => return Ok(Named::Nothing),
        (None, Some(name)) => match name.into_string() {
            Ok(name) => name,
            Err(name) => bail!("{VARIABLE}: expected UTF-8, got {}", name.display()),
        },
    };
    Ok(match name.is_empty() {
        true => Named::None,
        false => Named::Name(name),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_option_comes_before_the_environment() {
        let check = |option: Option<&str>, variable: Option<&str>, expected: Named| {
            let found = named(option, variable.map(OsString::from)).unwrap();
            assert_eq!(found, expected, "{option:?} {variable:?}");
        };
        let name = |name: &str| Named::Name(name.to_owned());
        check(None, None, Named::Nothing);
        check(Some("a"), Some("b"), name("a"));
        check(None, Some("b"), name("b"));
        check(None, Some(""), Named::None);
        check(Some(""), Some("b"), Named::None);
    }
}
