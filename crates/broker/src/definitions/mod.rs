//! RabbitMQ's definitions: read at the start, imported and exported at run time.
//!
//! ```text
//! Definitions::load ─▶ entries::add (a layer of the configuration), declarations::define (empty vhosts)
//! Definitions::parse_for ─▶ entries::changes ─▶ one change, in one commit ─▶ declarations in turns of each vhost
//! ```

mod declarations;
mod entries;
pub(crate) mod export;
mod import;

use std::path::Path;
use std::sync::Arc;

use crosstie_config::{Amqp, Definitions, Skipped};
use crosstie_metadata::Layers;
use crosstie_queues::{Time, Vhost};

pub(crate) use declarations::define;
pub(crate) use entries::add;

use super::limits::vhost_config;

/// A configuration with the users, vhosts and permissions of its definitions, the rest of these, and the parts that are
/// skipped.
pub(super) fn with_definitions(
    own: &Amqp,
    directory: &Path,
) -> Result<(Amqp, Definitions, Vec<Skipped>), String> {
    let mut amqp = own.clone();
    let Some(path) = &own.definitions else {
        return Ok((amqp, Definitions::default(), Vec::new()));
    };
    let loaded = Definitions::load(&directory.join(path));
    let definitions = loaded.map_err(|e| e.to_string())?;
    let mut skipped = definitions.skipped.clone();
    skipped.extend(amqp.import(&definitions));
    Ok((amqp, definitions, skipped))
}

/// Returns the definitions that an empty broker would reject, beside those that the parser skipped. `amqp` already
/// contains the vhosts of the definitions.
pub fn try_import(amqp: &Amqp, definitions: &Definitions) -> Vec<Skipped> {
    let vhosts = amqp.vhosts.iter().map(|vhost| {
        let name: Arc<str> = vhost.name.as_str().into();
        let mut config = vhost_config(&name, &amqp.limits);
        config.has_streams = vhost.replicated.is_none();
        (name, Vhost::<()>::new(config, 0))
    });
    let mut skipped = add(&mut Layers::default(), definitions);
    skipped.extend(define(definitions, Time(0), &mut vhosts.collect()));
    skipped
}
