//! A part of the cluster, put into the section of a configuration that it belongs to.

use anyhow::{bail, ensure};
use serde_json::{Map, Value as Json};

/// Where realms are in a worker, and vhosts.
pub(super) const REALMS: &[&str] = &["realms"];
pub(super) const VHOSTS: &[&str] = &["amqp", "vhosts"];

/// Puts a part into the one section of that name, which has none yet.
pub(super) fn put_into(
    config: &mut Json,
    (what, path): (&str, &[&str]),
    name: &str,
    (key, part): (&str, Json),
) -> anyhow::Result<()> {
    let mut found = 0;
    for section in sections(config, path, name) {
        ensure!(
            !section.contains_key(key),
            "--config: {what} '{name}' has a \"{key}\" already"
        );
        section.insert(key.to_owned(), part.clone());
        found += 1;
    }
    match found {
        1 => Ok(()),
        0 => bail!("--config: there is no {what} '{name}' in it"),
        _ => bail!("--config: {what} '{name}' is in several workers"),
    }
}

/// The sections of that name in a configuration's workers.
fn sections<'c>(
    config: &'c mut Json,
    path: &'c [&str],
    name: &'c str,
) -> impl Iterator<Item = &'c mut Map<String, Json>> {
    let workers = config.get_mut("workers").and_then(Json::as_array_mut);
    let lists = workers.into_iter().flatten().filter_map(|worker| {
        let list = path
            .iter()
            .try_fold(worker, |section, key| section.get_mut(key))?;
        list.as_array_mut()
    });
    lists
        .flatten()
        .filter_map(Json::as_object_mut)
        .filter(move |section| section.get("name").is_some_and(|known| known == name))
}
