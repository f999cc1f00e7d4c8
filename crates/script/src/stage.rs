//! Outputs and faults of a case that no line has named yet.

use std::collections::{BTreeMap, VecDeque};

use crate::Labels;

#[derive(Debug, Default)]
pub struct Stage {
    outputs: BTreeMap<String, VecDeque<String>>,
    faults: VecDeque<(String, String)>,
    pub labels: Labels,
}

impl Stage {
    /// An output to a receiver.
    pub fn push(&mut self, to: impl ToString, text: String) {
        self.outputs
            .entry(to.to_string())
            .or_default()
            .push_back(text);
    }

    /// A fault of a sender.
    pub fn push_fault(&mut self, of: impl ToString, text: impl ToString) {
        self.faults.push_back((of.to_string(), text.to_string()));
    }

    /// Takes the next output to a receiver.
    pub fn next(&mut self, who: &str) -> Result<String, String> {
        let next = self.outputs.get_mut(who).and_then(VecDeque::pop_front);
        next.ok_or_else(|| format!("{who} was sent nothing"))
    }

    /// Drops the outputs that no line has named.
    pub fn clear(&mut self) {
        self.outputs.clear();
    }

    pub(crate) fn expect(&mut self, who: &str, expected: &str) -> Result<(), String> {
        let came = self.next(who)?;
        self.labels.compare(expected, &came)
    }

    pub(crate) fn expect_fault(&mut self, who: &str, expected: &str) -> Result<(), String> {
        match self.faults.pop_front() {
            Some((of, came)) if of == who => self.labels.compare(expected, &came),
            other => Err(format!("expected a fault of {who}, not {other:?}")),
        }
    }

    pub(crate) fn expect_nothing_more(&mut self) -> Result<(), String> {
        let outputs = std::mem::take(&mut self.outputs).into_iter();
        let outputs =
            outputs.flat_map(|(who, texts)| texts.into_iter().map(move |t| format!("{who}< {t}")));
        let faults = self
            .faults
            .drain(..)
            .map(|(who, text)| format!("{who}! {text}"));
        let unnamed: Vec<_> = outputs.chain(faults).collect();
        match unnamed.is_empty() {
            true => Ok(()),
            false => Err(format!(
                "before this line, no line named\n    {}",
                unnamed.join("\n    ")
            )),
        }
    }
}
