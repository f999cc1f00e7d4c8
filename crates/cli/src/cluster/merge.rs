//! A part of the cluster, put into its section of a configuration.

use anyhow::{Context as _, bail, ensure};
use serde_json::{Map, Value as Json, json};

/// The keys of realms in a worker, and of vhosts.
pub(super) const REALMS: &[&str] = &["realms"];
pub(super) const VHOSTS: &[&str] = &["amqp", "vhosts"];

/// Sets a node's name, unless its configuration has one: the default is the machine's, and a machine may have several
/// nodes.
pub(super) fn name_node(config: &mut Json, node: &str) -> anyhow::Result<()> {
    let config = config.as_object_mut();
    let config = config.context("--config: expected an object")?;
    let controller = config.entry("controller").or_insert_with(|| json!({}));
    let controller = controller.as_object_mut();
    let controller = controller.context("--config: expected an object at 'controller'")?;
    controller
        .entry("id")
        .or_insert_with(|| node_id(node).into());
    Ok(())
}

const ID_BYTES_MAX: usize = 64;

/// A name as a configuration's id: lower-case letters, digits and underscores, at least three, a letter first.
fn node_id(node: &str) -> String {
    let plain = |c: char| match c.to_ascii_lowercase() {
        c if c.is_ascii_alphanumeric() => c,
        _ => '_',
    };
    let mut id: String = node.chars().map(plain).collect();
    if id.len() < 3 || !id.starts_with(|first: char| first.is_ascii_lowercase()) {
        id.insert_str(0, "node_");
    }
    id.truncate(ID_BYTES_MAX);
    id
}

/// Puts a part into the only section of that name, which has none yet.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_that_has_no_name_gets_its_own() {
        let named = |mut config: Json, node: &str| {
            name_node(&mut config, node).map(|()| config["controller"]["id"].clone())
        };
        let of = |node: &str| named(json!({}), node).expect("an object");
        assert_eq!(
            ["node1", "North.n-1", "a", "1st"].map(of),
            ["node1", "north_n_1", "node_a", "node_1st"]
        );
        let has_one = json!({ "controller": { "id": "edge" } });
        assert_eq!(named(has_one, "node1").expect("an object"), "edge");
        assert!(named(json!({ "controller": 1 }), "node1").is_err());
        assert!(named(json!([]), "node1").is_err());
    }
}
