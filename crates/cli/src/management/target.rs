//! The address of a node's management realm, and the login there.

use crosstie_client::{Client, Config, ConnectError};

use crate::wamp_arguments::not_joined;

/// A node's management realm: its address, and the login there.
pub(crate) struct Target {
    pub(crate) url: String,
    config: Config,
    /// The context that names it.
    context: Option<String>,
}

impl Target {
    /// On this machine, where the owner of the socket needs no login.
    pub(crate) fn local(url: String) -> anyhow::Result<Self> {
        Ok(Self::of(Config::new(&url)?, url, None))
    }

    pub(super) fn of(mut config: Config, url: String, context: Option<String>) -> Self {
        config.realm = "crossbar".into();
        Self {
            url,
            config,
            context,
        }
    }

    /// Enters the realm; a lost connection ends the session.
    pub(crate) async fn join_once(&self) -> anyhow::Result<Client> {
        let mut config = self.config.clone();
        config.reconnect = None;
        let once = Self {
            url: self.url.clone(),
            config,
            context: self.context.clone(),
        };
        once.join().await
    }

    /// Enters the realm.
    pub(crate) async fn join(&self) -> anyhow::Result<Client> {
        let connected = Client::connect(self.config.clone()).await;
        connected.map_err(|error| {
            let url = &self.url;
            let text = format!("cannot reach the node's management realm at {url}: {error}");
            let advice = self.context.as_ref().map(|name| match error {
                ConnectError::Aborted { .. } => format!(
                    "The node rejects the login of context '{name}': `crosstie context add {name} --replace` gives another."
                ),
                _ => format!("Context '{name}' leads there; --context names another one."),
            });
            not_joined(&error, text, advice.as_deref())
        })
    }
}
