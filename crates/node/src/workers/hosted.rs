//! A component that runs in a host: its state, as the controller knows it.

use crosstie_config::Component;
use crosstie_router::ComponentOverview;
use serde_json::json;

use crate::management::{Reply, errors};

/// A component that the controller starts through a host.
pub(crate) struct Hosted {
    pub(crate) component: Component,
    pub(crate) state: HostedState,
    /// Why it has no session, while its host retries.
    pub(super) waiting: Option<String>,
    /// The node ends if it does not join its realm.
    pub(super) is_needed: bool,
    /// It has been ready, or has failed.
    pub(super) is_tried: bool,
    /// Number of failures to get a session after all other components were tried: one of these may be its
    /// authenticator.
    pub(super) failures_alone: u8,
    /// Callers that wait for its start.
    pub(crate) starting: Vec<Reply>,
}

/// The state of a component, as known to the controller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum HostedState {
    /// Its host is not ready yet.
    Waiting,
    /// Its host was asked to start it.
    Starting,
    Started,
    /// It left by itself.
    Stopped,
    Failed(String),
    /// It ended with its host: the next host starts it again.
    Lost(String),
}

/// Why a component does not run.
#[derive(Clone, Debug)]
pub(crate) struct NotStarted {
    pub(super) text: String,
    /// The component itself may be sound.
    pub(super) is_lost: bool,
}

impl Hosted {
    pub(crate) fn new(component: Component) -> Self {
        Self {
            component,
            state: HostedState::Waiting,
            waiting: None,
            is_needed: false,
            is_tried: false,
            failures_alone: 0,
            starting: Vec::new(),
        }
    }

    pub(crate) fn all(components: &[Component]) -> Vec<Self> {
        components.iter().cloned().map(Self::new).collect()
    }

    pub(crate) fn is_under_way(&self) -> bool {
        matches!(self.state, HostedState::Waiting | HostedState::Starting)
    }

    /// Whether it runs, or is about to.
    pub(crate) fn is_there(&self) -> bool {
        self.is_under_way() || self.state == HostedState::Started
    }

    /// Whether a new host shall start it.
    pub(crate) fn is_wanted(&self) -> bool {
        self.is_there() || matches!(self.state, HostedState::Lost(_))
    }

    /// A new host exists, which does not know it.
    pub(crate) fn await_host(&mut self) {
        self.state = HostedState::Waiting;
        self.waiting = None;
    }

    /// Its state as one word, and its fault.
    pub(crate) fn condition(&self) -> (&'static str, Option<&str>) {
        match (&self.state, &self.waiting) {
            (HostedState::Failed(why) | HostedState::Lost(why), _) => ("failed", Some(why)),
            (HostedState::Stopped, _) => ("stopped", None),
            (_, Some(why)) => ("waiting", Some(why)),
            (HostedState::Started, None) => ("started", None),
            (HostedState::Waiting | HostedState::Starting, None) => ("starting", None),
        }
    }

    /// The component's part of pages and metrics.
    pub(crate) fn overview(&self) -> ComponentOverview {
        let (state, reason) = self.condition();
        ComponentOverview {
            id: self.component.id.clone(),
            state,
            reason: reason.map(str::to_owned),
        }
    }

    pub(super) fn lose(&mut self) {
        (self.waiting, self.is_needed, self.is_tried) = (None, false, true);
    }

    /// Whether others need not wait for its first attempt: also if it has `references`, and itself waits for others.
    pub(super) fn is_out_of_the_way(&self) -> bool {
        self.is_tried || self.component.definition.get("references").is_some()
    }

    pub(crate) fn handle_started(&mut self, worker: &str, outcome: Result<(), NotStarted>) {
        let id = &self.component.id;
        let answer = match &outcome {
            Ok(()) => Ok(json!({"id": id, "worker": worker})),
            Err(why) => Err(errors::cannot_start(&why.text)),
        };
        for reply in self.starting.drain(..) {
            // The caller may have gone.
            let _ = reply.send(answer.clone());
        }
        self.state = match outcome {
            Ok(()) => HostedState::Started,
            Err(why) => {
                self.lose();
                match why.is_lost {
                    true => HostedState::Lost(why.text),
                    false => HostedState::Failed(why.text),
                }
            }
        };
    }
}

impl NotStarted {
    pub(crate) fn new(text: String) -> Self {
        Self {
            text,
            is_lost: false,
        }
    }

    pub(super) fn lost(text: String) -> Self {
        Self {
            text,
            is_lost: true,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_new_host_starts_the_components_of_the_last() {
        let definition = json!({"type": "class", "classname": "a.B", "realm": "r", "role": "x"});
        let component = crosstie_config::component_from_json(&definition, true).expect("one");
        let check = |state: HostedState, expected| {
            let mut hosted = Hosted::new(component.clone());
            hosted.state = state.clone();
            if hosted.is_there() {
                let why = NotStarted::lost("its host ended".to_owned());
                hosted.handle_started("worker1", Err(why));
                assert!(!hosted.is_there(), "{state:?}");
            }
            assert_eq!(hosted.is_wanted(), expected, "{state:?}");
        };
        check(HostedState::Waiting, true);
        check(HostedState::Starting, true);
        check(HostedState::Started, true);
        check(HostedState::Stopped, false);
        check(HostedState::Failed("import".to_owned()), false);
    }
}
