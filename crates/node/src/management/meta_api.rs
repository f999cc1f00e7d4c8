//! Meta APIs of other realms, offered in the management realm as well (`bridge_meta_api`), under Crossbar.io's names.
//!
//! ```text
//!   crossbar.worker.<worker>.realm.<realm>.root.wamp.session.list        a procedure, called there
//!   crossbar.worker.<worker>.realm.<realm>.root.wamp-session-on_join     an event, repeated here
//! ```

use std::collections::BTreeMap;
use std::sync::Arc;

use crosstie_client::{
    ApplicationError, Arguments, Client, Invocation, MatchPolicy, RegisterOptions, Serializer,
};
use crosstie_router::{MetaEvents, MetaFailure, MetaPayload, MetaSession};
use parking_lot::Mutex;

use super::errors;

/// The sessions in those realms, by the prefix of their names here.
pub(super) type Bridged = Arc<Mutex<BTreeMap<String, Arc<MetaSession>>>>;

/// Maximum number of concurrent calls of one procedure; further ones wait.
const RUNNING_MAX: u32 = 16;

/// Registers every procedure for all realms: a call fails if its realm is not bridged.
pub(super) async fn register(client: &Client, bridged: &Bridged) -> Result<(), String> {
    for procedure in crosstie_router::meta_procedures() {
        let bridged = Arc::clone(bridged);
        let mut options = RegisterOptions::default();
        options.running_max = RUNNING_MAX;
        options.match_policy = MatchPolicy::Wildcard;
        let uri = format!("crossbar.worker..realm..root.{procedure}");
        let handler = move |invocation| call(procedure, invocation, Arc::clone(&bridged));
        let registered = client.register_with(&uri, options, handler).await;
        registered.map_err(|error| error.to_string())?;
    }
    Ok(())
}

async fn call(
    procedure: &'static str,
    invocation: Invocation,
    bridged: Bridged,
) -> Result<Arguments, ApplicationError> {
    let begin = invocation.procedure().strip_suffix(procedure);
    let begin = begin.unwrap_or_default();
    let session = bridged.lock().get(begin).cloned();
    let session = session.ok_or_else(|| {
        let text = format!("no realm with \"bridge_meta_api\": true has its meta API at {begin}*");
        errors::no_such_object(&text)
    })?;
    let arguments = &invocation.arguments;
    let arguments = arguments.with_payload(Serializer::MsgPack, MetaPayload::of);
    let arguments = arguments.map_err(|error| errors::invalid_argument(&error.to_string()))?;
    match session.call(procedure, &arguments).await {
        Ok(result) => Ok(Arguments::from_payload(&result.as_payload())),
        Err(MetaFailure::Error { uri, payload }) => {
            let arguments = Arguments::from_payload(&payload.as_payload());
            Err(ApplicationError::new(uri, arguments))
        }
        Err(MetaFailure::Lost(why)) => Err(errors::no_such_object(&why).into()),
    }
}

/// Republishes a realm's meta events, until it is stopped.
async fn repeat(client: Client, begin: &str, mut events: MetaEvents) {
    while let Some(event) = events.next().await {
        // As in Crossbar.io, where such a topic is one component of a longer one.
        let topic = format!("{begin}{}", event.topic().replace('.', "-"));
        let arguments = Arguments::from_payload(&event.payload());
        // Between two sessions no subscriber exists.
        let _ = client.publish(&topic, arguments).await;
    }
}

/// Bridges a realm's meta API under that prefix, unless it is bridged already.
pub(super) fn bridge(
    bridged: &Bridged,
    client: &Client,
    begin: String,
    join: impl FnOnce() -> Result<MetaSession, String>,
) -> Result<(), String> {
    if bridged.lock().contains_key(&begin) {
        return Ok(());
    }
    let session = Arc::new(join()?);
    bridged.lock().insert(begin.clone(), Arc::clone(&session));
    let (bridged, client) = (Arc::clone(bridged), client.clone());
    tokio::spawn(async move {
        if let Ok(events) = session.events().await {
            repeat(client, &begin, events).await;
        }
        bridged.lock().remove(&begin);
    });
    Ok(())
}
