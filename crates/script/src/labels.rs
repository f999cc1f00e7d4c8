//! The texts that scripts have bound to names.

use std::collections::HashMap;

#[derive(Debug, Default)]
pub struct Labels(HashMap<String, String>);

impl Labels {
    pub fn bind(&mut self, name: impl Into<String>, text: impl ToString) {
        self.0.insert(name.into(), text.to_string());
    }

    /// The line with texts in place of their labels.
    pub fn resolve(&self, line: &str) -> Result<String, String> {
        let mut resolved = String::new();
        let mut rest = line;
        while let Some((before, label, after)) = split(rest) {
            let text = self
                .0
                .get(label)
                .ok_or_else(|| format!("#{label} is not bound"))?;
            resolved += before;
            resolved += text;
            rest = after;
        }
        Ok(resolved + rest)
    }

    /// Compares an output word by word, and binds the labels that occur first.
    pub(crate) fn compare(&mut self, expected: &str, came: &str) -> Result<(), String> {
        let differs =
            |word: &str| Err(format!("expected {expected}, there came {came}: at {word}"));
        let mut words = came.split(' ');
        for word in expected.split(' ').filter(|word| !word.is_empty()) {
            if word == "…" {
                return Ok(());
            }
            let is_same = words
                .next()
                .is_some_and(|came| word == "*" || self.is_same(word, came));
            if !is_same {
                return differs(word);
            }
        }
        words.next().map_or(Ok(()), differs)
    }

    /// Compares one word. A label within it is a number; at its end, any text.
    fn is_same(&mut self, expected: &str, came: &str) -> bool {
        let Some((before, label, after)) = split(expected) else {
            return expected == came;
        };
        let Some(came) = came.strip_prefix(before) else {
            return false;
        };
        let end = match after {
            "" => came.len(),
            _ => came
                .find(|c: char| !c.is_ascii_digit())
                .unwrap_or(came.len()),
        };
        let (text, rest) = came.split_at(end);
        let bound = self.0.entry(label.to_owned());
        bound.or_insert_with(|| text.to_owned()) == text && self.is_same(after, rest)
    }
}

/// The text before the first label, the label, and the text after it. A `#` without a name is only itself.
fn split(text: &str) -> Option<(&str, &str, &str)> {
    let starts = text.match_indices('#').map(|(start, _)| start);
    let mut found = starts.map(|start| {
        let name = &text[start + 1..];
        let end = name.find(|c: char| !c.is_alphanumeric());
        let (label, after) = name.split_at(end.unwrap_or(name.len()));
        (&text[..start], label, after)
    });
    found.find(|(_, label, _)| !label.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_bound_once_and_compared_then() {
        let mut labels = Labels::default();
        for (expected, came, is_same) in [
            ("a #x b", "a 17 b", true),
            ("#x", "17", true),
            ("#x", "18", false),
            ("{n=#x,k=#y}", "{n=17,k=4}", true),
            ("a.# *", "a.# b", true),
            ("a *", "a", false),
            ("a …", "a", true),
            ("a", "a b", false),
            ("#name", "amq.gen-x", true),
        ] {
            assert_eq!(
                labels.compare(expected, came).is_ok(),
                is_same,
                "{expected} {came}"
            );
        }
        assert_eq!(
            labels.resolve("a.# #name {x=#y}"),
            Ok("a.# amq.gen-x {x=4}".to_owned())
        );
        assert!(labels.resolve("#unknown").is_err());
    }
}
