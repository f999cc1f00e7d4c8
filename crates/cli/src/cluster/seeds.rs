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
}
