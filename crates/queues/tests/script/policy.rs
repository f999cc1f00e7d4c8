//! Policies in scripts: `policy p ^q {max-length=2,expires=100} 3 queues`, `operator-policy …`, and `policy p gone`.

use std::collections::BTreeMap;

use crosstie_queues::policy::{Policies, Policy, PolicyKind, PolicyParts, PolicyValue};

#[derive(Default)]
pub(super) struct Written {
    of_kinds: [BTreeMap<String, Policy>; 2],
}

impl Written {
    /// Sets a policy, or removes it.
    pub(super) fn set(&mut self, kind: PolicyKind, text: &str) -> Result<(), String> {
        let policies = &mut self.of_kinds[usize::from(kind == PolicyKind::Operator)];
        let words: Vec<_> = text.split(' ').collect();
        let (name, pattern) = match words[..] {
            [name, "gone"] => {
                policies.remove(name);
                return Ok(());
            }
            [name, pattern, ..] => (name, PolicyValue::from(pattern)),
            _ => return Err("a policy has a name and a pattern".to_owned()),
        };
        let definition = words.get(2).copied().unwrap_or_default();
        let inner = definition
            .strip_prefix('{')
            .and_then(|d| d.strip_suffix('}'));
        let mut entries = Vec::new();
        for field in inner.ok_or("no definition")?.split(',') {
            let (key, value) = field.split_once('=').ok_or("a field is name=value")?;
            entries.push((key.to_owned(), value_of(value)));
        }
        let priority = words.get(3).map(|word| value_of(word));
        let apply_to = words.get(4).map(|word| PolicyValue::from(*word));
        let policy = Policy::parse(
            kind,
            PolicyParts {
                name,
                pattern: &pattern,
                definition: &PolicyValue::Map(entries),
                priority: priority.as_ref(),
                apply_to: apply_to.as_ref(),
            },
        )?;
        policies.insert(name.to_owned(), policy);
        Ok(())
    }

    pub(super) fn policies(&self) -> Policies {
        let [user, operator] = &self.of_kinds;
        Policies::new(user.values().cloned(), operator.values().cloned())
    }
}

fn value_of(word: &str) -> PolicyValue {
    match word.parse::<i64>() {
        Ok(number) => PolicyValue::from(number),
        Err(_) => PolicyValue::from(word),
    }
}
