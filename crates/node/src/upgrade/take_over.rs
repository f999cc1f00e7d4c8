//! The start of a node that takes over from its former process.

use crosstie_config::{Config, Worker as Definition};
use crosstie_router::passed;
use tracing::{error, info, warn};

use super::early::moves_early;
use super::message::{Order, Said};
use super::takeover::Takeover;
use crate::event::Event;
use crate::node::Node;
use crate::start::StartError;

impl Node {
    /// Starts everything when the former process lets go of it. The processes of workers start when that has ended.
    pub(crate) async fn take_over(
        &mut self,
        mut takeover: Takeover,
        config: &Config,
    ) -> Result<(), StartError> {
        let started = self.take_over_by(&mut takeover, config).await;
        if let Err(error) = &started {
            takeover.fail(&error.to_string());
            return started;
        }
        self.manager.ready().map_err(StartError::Watchdog)?;
        let events = self.events.clone();
        tokio::spawn(async move {
            takeover.until_alone().await;
            let _ = events.send(Event::FormerEnded);
        });
        Ok(())
    }

    async fn take_over_by(
        &mut self,
        takeover: &mut Takeover,
        config: &Config,
    ) -> Result<(), StartError> {
        self.awaits_former = true;
        if self.place.is_private() {
            self.start_management().await?;
        }
        let version = self.version.to_owned();
        takeover.say(&Said::Prepared { version });
        self.wait_for(takeover, Order::Accept).await?;

        let (routers, others): (Vec<_>, Vec<_>) = config.workers.iter().partition(|worker| {
            matches!(
                worker,
                Definition::Router(_) | Definition::WebSocketTestee(_)
            )
        });
        let (early, late): (Vec<_>, Vec<_>) =
            routers.into_iter().partition(|worker| moves_early(worker));
        self.start_each(&early)?;
        takeover.say(&Said::Accepting);
        self.wait_for(takeover, Order::Serve).await?;

        self.start_each(&late)?;
        self.start_admin(config)?;
        takeover.say(&Said::Serving);
        self.wait_for(takeover, Order::Keep).await?;

        passed::own_files(true);
        if !self.place.is_private() {
            self.start_management().await?;
        }
        // The routers have moved already.
        if let Err(error) = self.start_console(config) {
            error!("{error}");
        }
        self.announce();
        for name in passed::release() {
            warn!("No listener takes over the socket '{name}': the configuration has changed");
        }
        for definition in others {
            // The node serves already.
            if let Err(error) = self.start_each(&[definition]) {
                error!("{error}");
            }
        }
        takeover.say(&Said::Kept);
        self.wait_for(takeover, Order::Announced).await
    }

    async fn wait_for(&self, takeover: &mut Takeover, order: Order) -> Result<(), StartError> {
        let awaited = takeover.wait_for(&order).await;
        awaited.map_err(StartError::Takeover)
    }

    /// The former process has ended, and its children with it.
    pub(crate) fn handle_former_ended(&mut self) {
        info!("The former process has ended");
        self.awaits_former = false;
        self.start_queued();
    }
}
