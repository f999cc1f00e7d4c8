//! Events on their way to the subscribers in the management realm.

use crosstie_client::{Client, args};
use crosstie_config::Json;
use tokio::sync::mpsc;

/// An event to be published.
pub(super) struct Publication {
    pub(super) topic: String,
    pub(super) details: Json,
}

/// Publishes events in their order, while the node lives.
pub(super) async fn publish(client: Client, mut publications: mpsc::Receiver<Publication>) {
    while let Some(Publication { topic, details }) = publications.recv().await {
        // Between two sessions no subscriber exists.
        let _ = client.publish(&topic, args![details]).await;
    }
}
