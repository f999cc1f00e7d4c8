//! Forms with files: `multipart/form-data` (RFC 7578), whole in memory.

/// The parts of a form, by name.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Form<'b>(Vec<(&'b str, &'b [u8])>);

/// Maximum number of parts.
const PARTS_MAX: usize = 16;

/// The boundary of a content type, if it is that of a form with files.
pub(crate) fn boundary(content_type: &str) -> Option<&str> {
    let (kind, parameters) = content_type.split_once(';')?;
    if !kind.trim().eq_ignore_ascii_case("multipart/form-data") {
        return None;
    }
    let boundary = parameter(parameters, "boundary")?;
    (1..=70).contains(&boundary.len()).then_some(boundary)
}

impl<'b> Form<'b> {
    /// `None`: it is malformed, or has too many parts.
    pub(crate) fn parse(body: &'b [u8], boundary: &str) -> Option<Self> {
        let delimiter = format!("--{boundary}");
        let mut rest = body.strip_prefix(delimiter.as_bytes())?;
        let between = format!("\r\n{delimiter}");
        let mut parts = Vec::new();
        while !rest.starts_with(b"--") {
            if parts.len() == PARTS_MAX {
                return None;
            }
            let part = rest.strip_prefix(b"\r\n")?;
            let end = find(part, between.as_bytes())?;
            let (head, content) = split(&part[..end])?;
            parts.push((name(head)?, content));
            rest = &part[end + between.len()..];
        }
        Some(Self(parts))
    }

    pub(crate) fn get(&self, name: &str) -> Option<&'b [u8]> {
        let mut parts = self.0.iter();
        let found = parts.find(|(known, _)| *known == name);
        found.map(|(_, content)| *content)
    }
}

/// The headers and the content of a part.
fn split(part: &[u8]) -> Option<(&str, &[u8])> {
    let end = find(part, b"\r\n\r\n")?;
    let head = std::str::from_utf8(&part[..end]).ok()?;
    Some((head, &part[end + 4..]))
}

/// The name of a part.
fn name(head: &str) -> Option<&str> {
    let mut lines = head.split("\r\n").filter_map(|line| line.split_once(':'));
    let found = lines.find(|(name, _)| name.eq_ignore_ascii_case("content-disposition"));
    parameter(found?.1, "name")
}

fn parameter<'h>(parameters: &'h str, wanted: &str) -> Option<&'h str> {
    let mut parameters = parameters.split(';').filter_map(|one| one.split_once('='));
    let found = parameters.find(|(name, _)| name.trim().eq_ignore_ascii_case(wanted));
    Some(found?.1.trim().trim_matches('"'))
}

fn find(bytes: &[u8], wanted: &[u8]) -> Option<usize> {
    bytes
        .windows(wanted.len())
        .position(|found| found == wanted)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn boundaries_are_those_of_forms() {
        for (kind, expected) in [
            ("multipart/form-data; boundary=x", Some("x")),
            (
                "Multipart/Form-Data; charset=utf-8; boundary=\"a b\"",
                Some("a b"),
            ),
            ("multipart/form-data", None),
            ("multipart/form-data; boundary=", None),
            ("application/json; boundary=x", None),
        ] {
            assert_eq!(boundary(kind), expected, "{kind}");
        }
    }

    #[test]
    fn parts_are_found_by_name() {
        let head = |name: &str| format!("Content-Disposition: form-data; name=\"{name}\"");
        let body = format!(
            "--b\r\n{}; filename=\"d.json\"\r\nContent-Type: application/json\r\n\r\n{{\r\n--}}\r\n\
             --b\r\n{}\r\n\r\n\r\n--b--\r\n",
            head("file"),
            head("redirect")
        );
        let form = Form::parse(body.as_bytes(), "b").expect("a form");
        assert_eq!(form.get("file"), Some(&b"{\r\n--}"[..]));
        assert_eq!(form.get("redirect"), Some(&b""[..]));
        assert_eq!(form.get("other"), None);
        for cut in 0..body.len() - 4 {
            assert_eq!(Form::parse(&body.as_bytes()[..cut], "b"), None, "{cut}");
        }
        let many = format!("--b\r\n{}\r\n\r\n\r\n", head("x")).repeat(PARTS_MAX + 1) + "--b--";
        assert_eq!(Form::parse(many.as_bytes(), "b"), None);
    }
}
