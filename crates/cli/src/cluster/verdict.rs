//! Whether a server may be removed from JetStream for good, and whether its streams are whole on the others.

use std::collections::BTreeMap;

use super::survey::{StreamName, Survey, peer_id};

/// How the streams of a server leave it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way {
    /// The server is lost: it is removed first, and others get its copies then.
    Remove,
    /// The server runs: others get its copies first, and it is removed then.
    Evacuate,
}

/// Decides by two surveys, the later one behind the earlier: a copy is whole if it has in the later one what the
/// leader had in the earlier one. An error is the reason of a refusal.
pub(super) fn way(
    leaving: &str,
    (earlier, later): (&Survey, &Survey),
    may_run: bool,
) -> Result<Way, String> {
    let id = peer_id(leaving);
    let runs = |survey: &Survey| {
        let report = survey.servers.get(leaving);
        report.is_some_and(|report| report.group.is_some())
    };
    let is_alive = runs(earlier) || runs(later);
    if is_alive && !may_run {
        return Err(format!(
            "{leaving} runs: stop it if its machine is to be replaced, or move its streams with --while-alive"
        ));
    }
    let answered: Vec<_> = later.servers.keys().map(String::as_str).collect();
    let answered = answered.join(", ");
    let Some((leader, group)) = later.meta() else {
        return Err(format!(
            "the servers have no leader: an election is under way, or most of them do not answer (these do: {answered})"
        ));
    };
    let follows = |name: &String| {
        let report = later.servers.get(name);
        let group = report.and_then(|report| report.group.as_ref());
        group.is_some_and(|group| group.leader.as_deref() == Some(leader))
    };
    let members: Vec<_> = later.servers.keys().filter(|name| follows(name)).collect();
    let staying = members.iter().filter(|name| **name != leaving).count();
    let size = group.others.len() + 1;
    let majority = size / 2 + 1;
    if staying < majority {
        return Err(format!(
            "only {staying} of {size} servers answer beside {leaving} ({answered}), and a removal needs {majority}"
        ));
    }
    for stream in earlier.streams().union(&later.streams()) {
        let missing = uncopied(stream, (leaving, &id), (earlier, later), &members);
        if let Some(why) = missing {
            return Err(format!("{stream}{why}"));
        }
    }
    Ok(match is_alive {
        true => Way::Evacuate,
        false => Way::Remove,
    })
}

/// Why a stream's copy on a server is needed; `members` answer, and follow the leader of all servers.
fn uncopied(
    stream: &StreamName,
    (leaving, id): (&str, &String),
    (earlier, later): (&Survey, &Survey),
    members: &[&String],
) -> Option<String> {
    let (Some((_, before)), Some((leader, copy))) = (earlier.led(stream), later.led(stream)) else {
        return Some(" has no leader: try again after an election".to_owned());
    };
    let leader = peer_id(leader);
    if leader != *id && !copy.group.others.contains(id) {
        return None;
    }
    let holders: Vec<_> = copy.group.others.iter().chain([&leader]).collect();
    let is_whole =
        |holder: &&&String| **holder != id && later.last_on(holder, stream) >= Some(before.last);
    let whole = holders.iter().filter(is_whole).count();
    let needed = copy.replicas / 2 + 1;
    if whole < needed {
        return Some(format!(
            ": {whole} of {} servers have all of it beside {leaving}, and a removal needs {needed}",
            copy.replicas
        ));
    }
    let is_free = |name: &&&String| **name != leaving && !holders.contains(&&peer_id(name));
    if members.iter().any(|name| is_free(&name)) {
        return None;
    }
    let names = members.iter().map(|name| name.as_str());
    let names = names.collect::<Vec<_>>().join(", ");
    Some(format!(
        ": every server that answers ({names}) has a copy already: start the new server first"
    ))
}

/// Whether the group of all servers lists a server.
pub(super) fn is_member(survey: &Survey, name: &str) -> bool {
    let id = peer_id(name);
    let meta = survey.meta();
    meta.is_some_and(|(leader, group)| leader == name || group.others.contains(&id))
}

/// Streams on the way from a server to others.
#[derive(Debug, Default)]
pub(super) struct Moving {
    /// The leader's last message when the group was first complete: a copy with it is whole.
    marks: BTreeMap<StreamName, u64>,
}

impl Moving {
    /// What is missing, a line for each stream.
    pub(super) fn missing(&mut self, survey: &Survey, leaving: &str) -> Vec<String> {
        let id = peer_id(leaving);
        let streams = survey.streams();
        let missing = streams
            .iter()
            .filter_map(|stream| self.of_stream(survey, stream, (leaving, &id)));
        missing.collect()
    }

    fn of_stream(
        &mut self,
        survey: &Survey,
        stream: &StreamName,
        (leaving, id): (&str, &String),
    ) -> Option<String> {
        let Some((leader, copy)) = survey.led(stream) else {
            return Some(format!("{stream} has no leader"));
        };
        if leader == leaving || copy.group.others.contains(id) {
            return Some(format!("{stream} still lists {leaving}"));
        }
        let others = &copy.group.others;
        if others.len() + 1 < copy.replicas {
            let count = others.len() + 1;
            return Some(format!("{stream} has {count} of {} copies", copy.replicas));
        }
        let mark = *self.marks.entry(stream.clone()).or_insert(copy.last);
        let lasts = others.iter().map(|other| survey.last_on(other, stream));
        let behind = lasts.min().flatten().unwrap_or_default();
        // A server that has not answered is not known to have the message 0, either.
        let is_silent = others
            .iter()
            .any(|other| survey.last_on(other, stream).is_none());
        (is_silent || behind < mark)
            .then(|| format!("{stream}: the last copy is at message {behind}, of {mark}"))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value as Json, json};

    use super::*;

    /// Servers as `name: last message of the copy`, `-` without a copy; the first one leads everything. `others` are
    /// in the groups too, and do not answer.
    fn survey(servers: &[(&str, &str)], others: &[&str]) -> Survey {
        let mut survey = Survey::default();
        let names = servers
            .iter()
            .map(|(name, _)| *name)
            .chain(others.iter().copied());
        let names: Vec<_> = names.collect();
        let holders = servers.iter().filter(|(_, last)| *last != "-");
        let holders = holders.map(|(name, _)| *name).chain(others.iter().copied());
        let holders: Vec<_> = holders.collect();
        let group = |of: &str, names: &[&str]| {
            let others = names.iter().filter(|name| **name != of);
            let others = others.map(|name| json!({"peer": peer_id(name)}));
            json!({"leader": servers[0].0, "replicas": others.collect::<Vec<Json>>()})
        };
        for (name, last) in servers {
            let detail = last.parse::<u64>().map(|last| {
                json!({
                    "name": "A1_=2F",
                    "cluster": group(name, &holders),
                    "config": {"num_replicas": 3},
                    "state": {"last_seq": last},
                })
            });
            let details: Vec<_> = detail.into_iter().collect();
            survey.add(&json!({
                "server": {"name": name},
                "data": {
                    "meta_cluster": group(name, &names),
                    "account_details": [{"name": "vhost", "stream_detail": details}],
                },
            }));
        }
        survey
    }

    #[track_caller]
    fn check(
        servers: &[(&str, &str)],
        others: &[&str],
        may_run: bool,
        expected: Result<Way, &str>,
    ) {
        let survey = survey(servers, others);
        match (way("nats1", (&survey, &survey), may_run), expected) {
            (Err(why), Err(part)) => assert!(why.contains(part), "{why}"),
            (found, expected) => assert_eq!(found.map_err(|_| ""), expected),
        }
    }

    #[test]
    fn a_lost_server_is_removed_if_the_others_have_everything() {
        let whole = [("nats2", "9"), ("nats3", "9"), ("nats4", "-")];
        check(&whole, &["nats1"], false, Ok(Way::Remove));
        let behind = [("nats2", "9"), ("nats3", "8"), ("nats4", "-")];
        check(
            &behind,
            &["nats1"],
            false,
            Err("1 of 3 servers have all of it"),
        );
        check(
            &whole[..2],
            &["nats1"],
            false,
            Err("start the new server first"),
        );
        let two_lost = [("nats2", "9"), ("nats4", "-")];
        check(
            &two_lost,
            &["nats1", "nats3"],
            false,
            Err("only 2 of 4 servers answer"),
        );
        check(
            &[("nats4", "-")],
            &["nats1", "nats3"],
            false,
            Err("only 1 of 3"),
        );
    }

    #[test]
    fn a_server_that_runs_is_removed_only_if_that_is_asked_for() {
        let all = [
            ("nats2", "9"),
            ("nats3", "9"),
            ("nats4", "-"),
            ("nats1", "9"),
        ];
        check(&all, &[], false, Err("nats1 runs"));
        check(&all, &[], true, Ok(Way::Evacuate));
    }

    #[test]
    fn without_a_leader_nothing_is_removed() {
        let mut survey = survey(&[("nats2", "9"), ("nats3", "9")], &["nats1"]);
        survey.servers.remove("nats2");
        let refused = way("nats1", (&survey, &survey), false).expect_err("it is refused");
        assert!(refused.contains("no leader"), "{refused}");
    }

    /// A leader counts a new copy as current before that has the earlier messages.
    #[test]
    fn a_copy_is_whole_when_it_has_what_the_leader_had() {
        let mut moving = Moving::default();
        let mut missing = |servers: &[(&str, &str)], others: &[&str]| {
            let missing = moving.missing(&survey(servers, others), "nats1");
            missing
                .join(";")
                .replace("stream A1_=2F of account vhost", "it")
        };
        let of = |last| [("nats2", "12"), ("nats3", "12"), ("nats4", last)];
        assert_eq!(missing(&of("-"), &["nats1"]), "it still lists nats1");
        assert_eq!(missing(&of("-"), &[]), "it has 2 of 3 copies");
        assert_eq!(
            missing(&of("3"), &[]),
            "it: the last copy is at message 3, of 12"
        );
        assert_eq!(
            missing(&[("nats2", "15"), ("nats3", "15"), ("nats4", "11")], &[]),
            "it: the last copy is at message 11, of 12"
        );
        assert_eq!(
            missing(&[("nats2", "19"), ("nats3", "19"), ("nats4", "12")], &[]),
            ""
        );
    }

    #[test]
    fn the_id_of_a_server_follows_from_its_name() {
        assert_eq!(
            ["nats1", "nats2", "nats3"].map(peer_id),
            ["RztkeQup", "SRLRpmYS", "fvTBnQC7"]
        );
    }
}
