//! What `#name` stands for: values that the player was given, or that came in a message before.

use std::collections::BTreeMap;

use crosstie_wamp::Value;

#[derive(Clone, Debug, Default)]
pub struct Labels(BTreeMap<String, Value>);

impl Labels {
    pub fn set(&mut self, name: impl Into<String>, value: Value) {
        self.0.insert(name.into(), value);
    }

    pub fn value(&self, name: &str) -> Option<&Value> {
        self.0.get(name)
    }
}
