//! Scenarios of any text: they are parsed or refused with a line, and what is parsed is played to an end.

use crosstie_scenario::{Action, Happened, Labels, Outcome, Play, parse};
use crosstie_wamp::Value;

/// Actions of one play: a scenario has so many lines at most, and each is a few.
const ACTIONS_MAX: usize = 100_000;

/// Parses the text, and plays every scenario with a router that says whatever the input's bytes choose.
pub fn scenario(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else {
        return;
    };
    let feature = match parse("fuzz.txt", text) {
        Ok(feature) => feature,
        Err(error) => {
            assert!((1..=text.lines().count() + 1).contains(&error.line));
            assert!(!error.reason.is_empty());
            return;
        }
    };
    for scenario in &feature.scenarios {
        let mut labels = Labels::default();
        labels.set("u", Value::from("com.u"));
        labels.set("realm", Value::from("realm1"));
        let mut play = Play::new(scenario, labels);
        let mut choices = data.iter().cycle();
        let mut actions = 0;
        loop {
            let action = play.next_action();
            if action == Action::Done {
                break;
            }
            let choice = choices.next().copied().unwrap_or(0);
            play.handle(answer(&action, choice));
            actions += 1;
            assert!(actions < ACTIONS_MAX, "a play has an end");
        }
        if let Outcome::Fails(failure) = play.outcome() {
            assert!(failure.line >= 1 && !failure.came.is_empty());
        }
    }
}

fn answer(action: &Action<'_>, choice: u8) -> Happened {
    let list =
        |kind: u64| Value::List(vec![Value::from(kind), Value::from(1), Value::Dict(vec![])]);
    match (action, choice % 5) {
        (Action::Join { .. }, 0..4) => Happened::Joined {
            session: Value::from(u64::from(choice)),
            details: Value::Dict(Vec::new()),
        },
        (Action::Receive { .. }, 0..2) => Happened::Message(list(u64::from(choice))),
        (Action::Receive { .. }, 2) => Happened::Message(list(6)),
        (Action::Receive { .. }, 3) => Happened::Closed,
        (Action::Receive { .. } | Action::Join { .. }, _) => Happened::Else("silence".to_owned()),
        _ => Happened::Done,
    }
}
