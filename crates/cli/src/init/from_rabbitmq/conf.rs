//! The syntax of `rabbitmq.conf`: a key, `=`, a value; a comment begins with `#`.

/// A line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Setting<'c> {
    pub(super) key: &'c str,
    pub(super) value: &'c str,
}

/// Whether the text is in the form that came before, and that `advanced.config` still has.
pub(super) fn is_erlang(text: &str) -> bool {
    let lines = text.lines().map(str::trim);
    let mut lines = lines.filter(|line| !line.is_empty() && !line.starts_with('%'));
    lines.next().is_some_and(|line| line.starts_with('['))
}

/// The settings in order; an error names the line.
pub(super) fn parse(text: &str) -> Result<Vec<Setting<'_>>, String> {
    let mut settings = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let Some((key, value)) = line.split_once('=') else {
            return Err(format!(
                "line {}: expected KEY = VALUE, got {line:?}",
                index + 1
            ));
        };
        let value = value.trim();
        let value = match value
            .strip_prefix('\'')
            .and_then(|rest| rest.split_once('\''))
        {
            Some((quoted, _)) => quoted,
            None => value.split(" #").next().unwrap_or_default().trim_end(),
        };
        let key = key.trim();
        // A later line of the same key counts.
        settings.retain(|known: &Setting<'_>| known.key != key);
        settings.push(Setting { key, value });
    }
    Ok(settings)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_keys_and_values() {
        let text = "a = 1\n# x = y\n b.c=two words # said\nd = 'it # is' \na = 2\n\n";
        let found = parse(text).expect("settings");
        let found: Vec<_> = found.iter().map(|s| (s.key, s.value)).collect();
        assert_eq!(found, [("b.c", "two words"), ("d", "it # is"), ("a", "2")]);
        let refused = parse("a = 1\nlonely").expect_err("no value");
        assert_eq!(refused, "line 2: expected KEY = VALUE, got \"lonely\"");
    }

    #[test]
    fn erlang_is_known_by_its_list() {
        assert!(is_erlang("%% a comment\n[\n {rabbit, []}]."));
        assert!(!is_erlang("# [\na = 1"));
        assert!(!is_erlang(""));
    }
}
