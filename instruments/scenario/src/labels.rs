//! The meaning of `#name`: values given to the player, or bound by an earlier message.

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
