//! The messages of a scenario, for the analysis of a failure.

use crosstie_scenario::show_value;
use crosstie_wamp::Value;

/// Number of lines that are kept of a scenario: its last ones.
const LINES_MAX: usize = 200;

#[derive(Default)]
pub(crate) struct Transcript(std::collections::VecDeque<String>);

impl Transcript {
    pub(crate) fn sent(&mut self, who: char, message: &Value) {
        self.say(format!("{who}> {}", show_value(message)));
    }

    pub(crate) fn came(&mut self, who: char, message: &Value) {
        self.say(format!("{who}< {}", show_value(message)));
    }

    pub(crate) fn note(&mut self, who: char, what: &str) {
        self.say(format!("{who}: {what}"));
    }

    pub(crate) fn lines(self) -> Vec<String> {
        self.0.into()
    }

    fn say(&mut self, line: String) {
        if self.0.len() == LINES_MAX {
            self.0.pop_front();
        }
        self.0.push_back(line);
    }
}
