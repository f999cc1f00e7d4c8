//! A file of nodes: sections of keys and values.

use super::failure::Failure;
use super::known::is_key;

/// Maximum size of a file, in bytes.
const FILE_BYTES_MAX: u64 = 1 << 20;

/// The section whose values all others have, too.
const SHARED: &str = "DEFAULT";

/// The keys of a node's section; `None` if the file has no such section.
pub(super) fn section(path: &str, node: &str) -> Result<Option<Vec<(String, String)>>, Failure> {
    let text = read(path)?;
    let Some(section) = parse(&text, node) else {
        return Ok(None);
    };
    match section.iter().find(|(key, _)| !is_key(key)) {
        None => Ok(Some(section)),
        Some((key, _)) => Err(Failure::usage(&format!(
            "Section '{node}' in config file '{path}' has the unknown key '{key}'"
        ))),
    }
}

fn read(path: &str) -> Result<String, Failure> {
    use std::io::Read as _;
    let unreadable = || Failure::usage(&format!("Could not read config file '{path}'"));
    let file = std::fs::File::open(path).map_err(|_| unreadable())?;
    let mut text = String::new();
    let read = file.take(FILE_BYTES_MAX).read_to_string(&mut text);
    read.map_err(|_| unreadable())?;
    Ok(text)
}

/// Later keys replace earlier ones.
fn parse(text: &str, node: &str) -> Option<Vec<(String, String)>> {
    let mut found = Vec::new();
    let mut shared = Vec::new();
    let mut section = "";
    let mut is_found = false;
    for line in text.lines() {
        let line = line.trim();
        if line.is_empty() || line.starts_with(['#', ';']) {
            continue;
        }
        if let Some(name) = line
            .strip_prefix('[')
            .and_then(|rest| rest.strip_suffix(']'))
        {
            section = name;
            is_found |= name == node;
            continue;
        }
        let Some((key, value)) = line.split_once(['=', ':']) else {
            continue;
        };
        // Python's files double a percent sign.
        let pair = (key.trim().to_lowercase(), value.trim().replace("%%", "%"));
        if section == node {
            found.push(pair);
        } else if section == SHARED {
            shared.push(pair);
        }
    }
    shared.extend(found);
    is_found.then_some(shared)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sections_have_keys() {
        let text = "\
# nodes
[DEFAULT]
username = all
[one]
Hostname: h
password = a=b%%c
; not this
# port = 2
port = 1
[two]
port=3
";
        let of = |node: &str| {
            let section = parse(text, node)?;
            let pairs = section.iter().map(|(key, value)| format!("{key}={value}"));
            Some(pairs.collect::<Vec<_>>().join(" "))
        };
        assert_eq!(
            of("one").as_deref(),
            Some("username=all hostname=h password=a=b%c port=1")
        );
        assert_eq!(of("two").as_deref(), Some("username=all port=3"));
        assert_eq!(of("three"), None);
    }
}
