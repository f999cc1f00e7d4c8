//! Keys of nodes and of the operator: their public halves in the plan, their seeds in files.

use crosstie_nats::nkey;
use crosstie_node::directory::NodeKey;

use super::files::{File, Files};
use super::names::{SYSTEM, in_folder};
use super::plan::Plan;

/// Gives each node the keys that it lacks, and the operator one if the servers have streams.
pub(super) fn complete(plan: &mut Plan) -> anyhow::Result<Files> {
    add(plan, |keys| keys.is_empty())
}

/// Gives each node and the operator new keys beside the present ones.
pub(super) fn renew(plan: &mut Plan) -> anyhow::Result<Files> {
    add(plan, |_| true)
}

/// Drops the keys that newer ones have replaced.
pub(super) fn drop_former(plan: &mut Plan) {
    for keys in all(plan) {
        keys.truncate(1);
    }
}

/// Whether newer keys have been made, and the former ones are still valid.
pub(super) fn has_former(plan: &mut Plan) -> bool {
    all(plan).any(|keys| keys.len() > 1)
}

fn all(plan: &mut Plan) -> impl Iterator<Item = &mut Vec<String>> {
    let nodes = plan.nodes.iter_mut();
    let keys = nodes.flat_map(|node| node.keys.values_mut());
    keys.chain([&mut plan.system_keys])
}

fn add(plan: &mut Plan, needs: impl Fn(&[String]) -> bool) -> anyhow::Result<Files> {
    let mut files = Files::new();
    let names = plan.key_files();
    let has_streams = plan.has_streams();
    for node in &mut plan.nodes {
        for name in &names {
            let keys = node.keys.entry(name.clone()).or_default();
            if needs(keys) {
                let (public, seed) = generate()?;
                keys.insert(0, public);
                files.insert(in_folder(&node.name, name), seed);
            }
        }
    }
    if has_streams && needs(&plan.system_keys) {
        let (public, seed) = generate()?;
        plan.system_keys.insert(0, public);
        files.insert(SYSTEM.to_owned(), seed);
    }
    Ok(files)
}

/// A new key: its public half, and the file of its seed.
fn generate() -> anyhow::Result<(String, File)> {
    let key = NodeKey::generate()?;
    let (public, seed) = key.octets();
    let file = File::secret(nkey::write_user_seed(seed) + "\n");
    Ok((nkey::write_user(public), file))
}

#[cfg(test)]
mod tests {
    use super::super::plan::tests::plan;
    use super::*;

    #[test]
    fn every_node_has_a_key_of_its_own_that_the_servers_know() {
        let mut plan = plan(None);
        let seeds = complete(&mut plan).expect("they can be made");
        let seed = |name: &str| seeds.get(name).expect("it is made");
        let own = ["node1", "node2"].map(|node| seed(&in_folder(node, "com.example.nk")));
        assert!(own.iter().all(|seed| seed.is_secret));
        assert_ne!(own[0].text, own[1].text);
        let files = plan.files().expect("they can be made");
        let text = |name: &str| &*files.get(name).expect("it is made").text;
        let users = |text: &str| text.lines().filter(|line| line.contains("nkey: U")).count();
        // For the realm and for the vhost, and the operator's.
        for server in ["nats1", "nats2", "nats3"] {
            assert_eq!(users(text(&in_folder(server, "nats.conf"))), 5);
        }
        assert_eq!(seeds.len(), 5);
        let second = text("nats2/nats.conf");
        assert!(second.contains("$JS.API.STREAM.INFO.A1_=2F"));
        assert!(second.contains("http: \"127.0.0.1:8223\""));
        assert!(second.contains("W1.com=2Eexample.>"));
        assert!(!second.contains("W1_com=2Eexample"));
        assert!(
            complete(&mut plan)
                .expect("nothing is to be made")
                .is_empty()
        );
    }

    #[test]
    fn renewed_keys_are_known_beside_the_former_ones_until_these_are_dropped() {
        let mut plan = plan(None);
        complete(&mut plan).expect("they can be made");
        let before = plan.clone();
        assert!(!has_former(&mut plan));
        assert_eq!(renew(&mut plan).expect("they can be made").len(), 5);
        assert!(has_former(&mut plan));
        let keys = |plan: &Plan| plan.nodes[0].keys["com.example.nk"].clone();
        assert_eq!(keys(&plan)[1..], keys(&before));
        let both = plan.files().expect("they can be made");
        let both = &both["nats1/nats.conf"].text;
        assert!(keys(&plan).iter().all(|key| both.contains(key)));
        drop_former(&mut plan);
        let last = &plan.files().expect("they can be made")["nats1/nats.conf"].text;
        assert!(last.contains(&keys(&plan)[0]) && !last.contains(&keys(&before)[0]));
    }
}
