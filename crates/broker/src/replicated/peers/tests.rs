//! Heartbeats of other nodes in turn, and what follows from them.

use super::*;

fn beat(node: &str) -> Beat {
    Beat {
        node: node.to_owned(),
        incarnation: 1,
        is_owner: false,
        is_leaving: false,
        is_ready: true,
        is_warm: true,
        is_holding: false,
        handed: None,
        epoch: 0,
        log: 0,
        sequence: 0,
        answers: false,
        passes_over: true,
        knows_clearances: true,
        address: String::new(),
        preparing: None,
        prepared: 0,
        prepares: true,
        reads_settings: true,
    }
}

#[test]
fn an_own_heartbeat_is_told_from_one_of_a_namesake() {
    let others = Others::new("own/worker1", 7);
    let own = Beat {
        incarnation: 7,
        ..beat("own/worker1")
    };
    assert!(others.is_own(&own));
    assert!(!others.is_own(&beat("own/worker1")));
    assert!(!others.is_own(&Beat {
        node: "a/worker1".to_owned(),
        ..own
    }));
}

#[test]
fn a_namesake_is_reported_once() {
    let mut others = Others::new("own/worker1", 0);
    let met = ["a/worker1", "own/worker1", "own/worker1"];
    let met = met.map(|name| others.meets_namesake(&beat(name)));
    assert_eq!(met, [false, true, false]);
}

#[test]
fn a_node_is_found_by_name_or_the_error_says_why_not() {
    let mut others = Others::new("own/worker1", 0);
    let found = |others: &Others, wanted: Option<&str>| {
        let found = others.standing_by(wanted);
        found
            .map(|beat| beat.node.clone())
            .unwrap_or_else(|why| why)
    };
    assert_eq!(found(&others, None), "no node is standing by");
    let nobody = "node a is not heard, and no node is standing by";
    assert_eq!(found(&others, Some("a")), nobody);
    let cold = Beat {
        is_warm: false,
        ..beat("a/worker1")
    };
    others.hear(cold, Some(0));
    assert_eq!(found(&others, None), "a/worker1");
    others.hear(beat("b/worker1"), Some(0));
    others.hear(beat("b/worker2"), Some(0));
    let broken = Beat {
        is_ready: false,
        ..beat("c/worker1")
    };
    others.hear(broken, Some(0));
    for (wanted, expected) in [
        (None, "b/worker1"),
        (Some("a"), "a/worker1"),
        (Some("b/worker2"), "b/worker2"),
        (Some("b"), "node b has several workers: name one of them"),
        (
            Some("c"),
            "node c/worker1 does not stand by: its own /health says why",
        ),
        (
            Some("d"),
            "node d is not heard; standing by: a/worker1, b/worker1, b/worker2",
        ),
    ] {
        assert_eq!(found(&others, wanted), expected);
    }
    for number in 0..2 * NODES_MAX {
        others.hear(beat(&format!("n{number}")), Some(0));
    }
    assert_eq!(others.there().count(), NODES_MAX);
}

#[test]
fn a_node_of_an_earlier_version_is_noticed() {
    let mut others = Others::new("own", 0);
    assert!(others.pass_over() && others.know_clearances());
    others.hear(beat("a"), Some(0));
    assert!(others.pass_over() && others.know_clearances());
    assert_eq!(others.elders().next(), None);
    let older = Beat {
        passes_over: false,
        knows_clearances: false,
        reads_settings: false,
        ..beat("b")
    };
    others.hear(older, Some(0));
    assert!(!others.pass_over() && !others.know_clearances());
    assert_eq!(others.elders().next(), Some("b"));
    others.hear(beat("b"), Some(0));
    assert!(others.pass_over() && others.know_clearances());
    assert_eq!(others.elders().next(), None);
}

#[test]
fn a_log_stays_known_after_its_reporter_has_gone() {
    let mut others = Others::new("own", 0);
    others.hear(beat("a"), Some(0));
    assert!(others.knowing().is_none());
    let told = Beat {
        log: 7,
        ..beat("a")
    };
    others.hear(told, Some(0));
    others.heard.clear();
    others.begin_anew();
    others.attached(Instant::now());
    assert_eq!(others.knowing().map(|beat| beat.log), Some(7));
    assert_eq!(others.logs().collect::<Vec<_>>(), [7]);
}

#[test]
fn only_the_target_of_a_move_prepares_and_only_while_the_owner_wants_it() {
    let mut others = Others::new("own", 0);
    let wants = |to: Option<&str>, is_leaving: bool| Beat {
        is_owner: true,
        is_leaving,
        epoch: 3,
        preparing: to.map(str::to_owned),
        ..beat("a")
    };
    for (heard, expected) in [
        (wants(None, false), None),
        (wants(Some("b"), false), None),
        (wants(Some("own"), false), Some(3)),
        (wants(Some("own"), true), None),
    ] {
        others.hear(heard, Some(0));
        assert_eq!(others.wanted(), expected);
    }
}

#[test]
fn others_have_fallen_silent_if_they_were_heard_before() {
    let mut others = Others::new("own", 0);
    assert!(!others.have_fallen_silent(), "none was heard");
    others.hear(beat("a"), None);
    assert!(!others.have_fallen_silent(), "one was just heard");
    others.met = Instant::now().checked_sub(SILENCE_MAX);
    assert!(others.have_fallen_silent());
}

#[test]
fn a_handover_is_for_its_successor_only() {
    let within = Duration::from_secs(5);
    let handed = |to: &str| Beat {
        is_owner: true,
        is_leaving: true,
        handed: Some((to.to_owned(), within)),
        epoch: 3,
        ..beat("a")
    };
    let heard = |to: &str| {
        let mut others = Others::new("own", 0);
        others.hear(handed(to), Some(0));
        (others.is_for_this(), others.is_held_for_another())
    };
    assert_eq!(heard("own"), (true, false));
    assert_eq!(heard("b"), (false, true));
    assert_eq!(heard(""), (false, false));
    let mut others = Others::new("own", 0);
    others.note_handed("b");
    assert!(others.is_held_for_another());
    others.note_taken(1);
    assert!(!others.is_held_for_another());
    others.note_handed("");
    assert!(others.has_left());
    others.note_handed("own");
    assert!(others.is_for_this());
    let owner = Beat {
        is_owner: true,
        epoch: 4,
        ..beat("b")
    };
    others.hear(owner, Some(0));
    assert!(!others.is_for_this() && !others.has_left());
    others.hear(handed("own"), Some(0));
    others.hear(
        Beat {
            epoch: 5,
            ..handed("own")
        },
        Some(0),
    );
    others.note_taken(5);
    assert!(others.is_for_this(), "it was read late");
    others.note_taken(6);
    assert!(!others.is_for_this());
    others.hear(
        Beat {
            epoch: 5,
            ..handed("own")
        },
        Some(0),
    );
    assert!(!others.is_for_this());
}
