//! The steps of an upgrade at the former process, as a state machine without the node.

use super::message::{Order, Said};

/// An upgrade, from the start of the successor to its takeover or back.
#[derive(Debug)]
pub(crate) struct Steps {
    phase: Phase,
    /// Some routers need no store, and move first.
    has_early: bool,
    /// Why the upgrade fails. Set once.
    failure: Option<String>,
    /// The successor has ended.
    is_alone: bool,
}

/// The part of an upgrade that is in progress.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Phase {
    /// The successor reads its configuration.
    Preparing,
    /// It starts the routers without a store.
    Accepting,
    /// Their clients leave.
    Leaving,
    /// The other routers stop.
    Stopping,
    /// The successor starts these.
    Serving,
    /// It takes over the node's files.
    Keeping,
    Over,
}

/// An event of the upgrade.
#[derive(Clone, Debug)]
pub(crate) enum Input {
    Said(Said),
    /// Something that is no message.
    Nonsense,
    /// The successor's process has ended, in this way.
    Ended(String),
    /// The successor has not answered in this phase.
    Overdue(Phase),
    /// All clients have left the routers that moved first.
    Left,
    /// All routers have stopped.
    Stopped,
    /// The node is to end.
    Shutdown,
}

/// The reaction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Action {
    /// Send it, and wait a limited time for the answer.
    Ask(Order),
    /// Have the clients leave the routers that moved first, after their listeners are closed here.
    Leave,
    /// Stop all routers.
    Stop,
    /// The files of the node are the successor's.
    GiveFiles,
    /// Kill the successor.
    Kill,
    /// Undo what was done.
    Return(Undo, String),
    /// The node is the successor's.
    Finish,
}

/// What a failed upgrade has to undo.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Undo {
    Nothing,
    /// Listeners were closed.
    Reopen,
    /// Routers were stopped.
    Restart,
}

impl Steps {
    pub(crate) fn new(has_early: bool) -> Self {
        Self {
            phase: Phase::Preparing,
            has_early,
            failure: None,
            is_alone: false,
        }
    }

    pub(crate) fn phase(&self) -> Phase {
        self.phase
    }

    pub(crate) fn handle(&mut self, input: Input) -> Vec<Action> {
        if self.phase == Phase::Over {
            return Vec::new();
        }
        let failed = self.failure.is_some();
        match input {
            Input::Ended(how) => {
                self.is_alone = true;
                self.fail(format!("the new program ended {}: {how}", self.when()))
            }
            Input::Stopped if failed => {
                self.phase = Phase::Serving;
                self.back()
            }
            _ if failed => Vec::new(),
            Input::Said(Said::Failed { why }) => self.fail(why),
            Input::Said(said) => match (self.phase, said) {
                (Phase::Preparing, Said::Prepared { .. }) => {
                    self.ask(Phase::Accepting, Order::Accept)
                }
                (Phase::Accepting, Said::Accepting) if self.has_early => {
                    self.phase = Phase::Leaving;
                    vec![Action::Leave]
                }
                (Phase::Accepting, Said::Accepting) => self.stop(),
                (Phase::Serving, Said::Serving) => {
                    let mut actions = vec![Action::GiveFiles];
                    actions.append(&mut self.ask(Phase::Keeping, Order::Keep));
                    actions
                }
                (Phase::Keeping, Said::Kept) => {
                    self.phase = Phase::Over;
                    vec![Action::Finish]
                }
                (_, said) => self.fail(format!(
                    "the new program sent {} {}, which was not expected",
                    said.text(),
                    self.when()
                )),
            },
            Input::Nonsense => self.fail(format!(
                "the new program sent no message of a hand-over {}",
                self.when()
            )),
            Input::Overdue(phase) if phase == self.phase => self.fail(format!(
                "the new program did not answer in time {}",
                self.when()
            )),
            Input::Left if self.phase == Phase::Leaving => self.stop(),
            Input::Stopped if self.phase == Phase::Stopping => {
                self.ask(Phase::Serving, Order::Serve)
            }
            Input::Shutdown => self.fail("the node is shutting down".to_owned()),
            Input::Overdue(_) | Input::Left | Input::Stopped => Vec::new(),
        }
    }

    fn ask(&mut self, phase: Phase, order: Order) -> Vec<Action> {
        self.phase = phase;
        vec![Action::Ask(order)]
    }

    fn stop(&mut self) -> Vec<Action> {
        self.phase = Phase::Stopping;
        vec![Action::Stop]
    }

    /// The first reason counts. The way back begins when the successor has ended.
    fn fail(&mut self, why: String) -> Vec<Action> {
        let is_first = self.failure.is_none();
        self.failure.get_or_insert(why);
        match self.is_alone {
            true => self.back(),
            false if is_first => vec![Action::Kill],
            false => Vec::new(),
        }
    }

    /// Goes back, once the successor has ended and no router is stopping.
    fn back(&mut self) -> Vec<Action> {
        let undo = match self.phase {
            _ if !self.is_alone => return Vec::new(),
            Phase::Stopping | Phase::Over => return Vec::new(),
            Phase::Preparing | Phase::Accepting => Undo::Nothing,
            Phase::Leaving => Undo::Reopen,
            Phase::Serving | Phase::Keeping => Undo::Restart,
        };
        self.phase = Phase::Over;
        let why = self.failure.take().unwrap_or_default();
        vec![Action::Return(undo, why)]
    }

    /// The phase, as an operator reads it.
    fn when(&self) -> &'static str {
        match self.phase {
            Phase::Preparing => "before it had read its configuration",
            Phase::Accepting => "while it took over the listeners",
            Phase::Leaving => "while clients left for it",
            Phase::Stopping => "before it had the stores",
            Phase::Serving => "while it opened the stores",
            Phase::Keeping | Phase::Over => "while it took over the node's files",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Inputs by word, of the test's own.
    fn input(word: &str) -> Input {
        match word {
            "prepared" => Input::Said(Said::Prepared {
                version: "2".to_owned(),
            }),
            "accepting" => Input::Said(Said::Accepting),
            "serving" => Input::Said(Said::Serving),
            "kept" => Input::Said(Said::Kept),
            "failed" => Input::Said(Said::Failed {
                why: "no port".to_owned(),
            }),
            "nonsense" => Input::Nonsense,
            "ended" => Input::Ended("exit code 1".to_owned()),
            "left" => Input::Left,
            "stopped" => Input::Stopped,
            "shutdown" => Input::Shutdown,
            "overdue-preparing" => Input::Overdue(Phase::Preparing),
            "overdue-serving" => Input::Overdue(Phase::Serving),
            other => panic!("{other}"),
        }
    }

    fn word(action: Action) -> String {
        match action {
            Action::Ask(order) => format!("{order:?}").to_lowercase(),
            Action::Return(undo, why) => format!("{undo:?}({why})"),
            other => format!("{other:?}").to_lowercase(),
        }
    }

    /// Each line: inputs, each with the actions that follow from it.
    fn play(has_early: bool, script: &str) {
        let mut steps = Steps::new(has_early);
        for line in script
            .lines()
            .map(str::trim)
            .filter(|line| !line.is_empty())
        {
            let (given, expected) = line.split_once("->").unwrap_or((line, ""));
            let actions = steps.handle(input(given.trim()));
            let actions: Vec<_> = actions.into_iter().map(word).collect();
            assert_eq!(actions.join(", "), expected.trim(), "{line} in {script}");
        }
    }

    #[test]
    fn a_successor_takes_over_step_by_step() {
        play(
            true,
            "prepared -> accept
             accepting -> leave
             left -> stop
             stopped -> serve
             serving -> givefiles, keep
             kept -> finish
             ended
             failed",
        );
        play(
            false,
            "prepared -> accept
             accepting -> stop
             left
             stopped -> serve
             overdue-preparing
             serving -> givefiles, keep
             kept -> finish",
        );
    }

    #[test]
    fn the_end_of_the_successor_leads_back_from_every_step() {
        let steps = [
            ("", "Nothing", "before it had read its configuration"),
            (
                "prepared -> accept",
                "Nothing",
                "while it took over the listeners",
            ),
            ("accepting -> leave", "Reopen", "while clients left for it"),
            ("left -> stop", "", ""),
            ("stopped -> serve", "Restart", "while it opened the stores"),
            (
                "serving -> givefiles, keep",
                "Restart",
                "while it took over the node's files",
            ),
        ];
        let mut so_far = String::new();
        for (step, undo, when) in steps {
            so_far += &format!("{step}\n");
            let back = match undo {
                // Its stores are not closed yet.
                "" => "ended\nstopped -> Restart(the new program ended before it had the stores: exit code 1)"
                    .to_owned(),
                _ => format!("ended -> {undo}(the new program ended {when}: exit code 1)"),
            };
            play(true, &format!("{so_far}\n{back}\nended\nshutdown"));
        }
    }

    #[test]
    fn a_failed_successor_is_killed_before_the_way_back() {
        play(
            true,
            "failed -> kill
             prepared
             overdue-preparing
             ended -> Nothing(no port)",
        );
        play(
            false,
            "prepared -> accept
             accepting -> stop
             failed -> kill
             ended
             stopped -> Restart(no port)",
        );
        play(
            false,
            "prepared -> accept
             accepting -> stop
             failed -> kill
             stopped
             ended -> Restart(no port)",
        );
        play(
            true,
            "overdue-preparing -> kill
             ended -> Nothing(the new program did not answer in time before it had read its configuration)",
        );
        play(
            true,
            "prepared -> accept
             accepting -> leave
             left -> stop
             stopped -> serve
             overdue-serving -> kill
             serving
             ended -> Restart(the new program did not answer in time while it opened the stores)",
        );
    }

    #[test]
    fn messages_out_of_turn_are_failures() {
        play(
            true,
            "serving -> kill
             ended -> Nothing(the new program sent {\"is\":\"serving\"} before it had read its configuration, \
             which was not expected)",
        );
        play(
            true,
            "prepared -> accept
             nonsense -> kill
             ended -> Nothing(the new program sent no message of a hand-over while it took over the listeners)",
        );
    }

    #[test]
    fn a_shutdown_ends_an_upgrade() {
        play(
            true,
            "prepared -> accept
             accepting -> leave
             shutdown -> kill
             shutdown
             ended -> Reopen(the node is shutting down)",
        );
    }
}
