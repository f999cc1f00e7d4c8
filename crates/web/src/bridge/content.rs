//! The content headers of a request.

use http::HeaderMap;
use http::header::{CONTENT_LENGTH, CONTENT_TYPE};

use super::Refusal;

const JSON: &[u8] = b"application/json";

/// Checks the content type, if given: JSON if that is required, in UTF-8.
pub(super) fn check_type(headers: &HeaderMap, is_json: bool) -> Result<(), Refusal> {
    let Some(given) = headers.get(CONTENT_TYPE) else {
        return Ok(());
    };
    let mut parts = given.as_bytes().split(|byte| *byte == b';');
    let kind = parts.next().unwrap_or_default();
    let kind = kind.trim_ascii().to_ascii_lowercase();
    if is_json && kind != JSON {
        return Err(Refusal::ContentType(kind));
    }
    let mut keys: Vec<Vec<u8>> = Vec::new();
    for part in parts.filter(|part| part.contains(&b'=')) {
        let mut fields = part.split(|byte| *byte == b'=');
        let mut field = || {
            let field = fields.next().unwrap_or_default();
            field.trim_ascii().to_ascii_lowercase()
        };
        let (key, value) = (field(), field());
        // A quoted value is equal to the plain one (RFC 9110 section 5.6.6).
        let unquoted = value.strip_prefix(b"\"");
        let unquoted = unquoted.and_then(|value| value.strip_suffix(b"\""));
        let value = unquoted.unwrap_or(&value);
        if fields.next().is_some() || keys.contains(&key) || keys.len() == PARAMETERS_MAX {
            return Err(Refusal::Charset);
        }
        if key == b"charset" && value != b"utf-8" && value != b"utf8" {
            return Err(Refusal::Charset);
        }
        keys.push(key);
    }
    Ok(())
}

/// Maximum number of parameters in a content type; each is compared with the earlier ones.
const PARAMETERS_MAX: usize = 16;

/// The announced length of the body.
pub(super) fn said_length(headers: &HeaderMap) -> Result<Option<u64>, Refusal> {
    let mut lengths = headers.get_all(CONTENT_LENGTH).iter();
    let length = lengths.next();
    if lengths.next().is_some() {
        return Err(Refusal::SeveralLengths);
    }
    // hyper rejects other values, as they would blur the request's end.
    Ok(length.and_then(|length| length.to_str().ok()?.parse().ok()))
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    type Checked = Result<(), Refusal>;

    #[test]
    fn types() {
        let other = |kind: &[u8]| Err(Refusal::ContentType(kind.to_vec()));
        #[rustfmt::skip]
        let rows: &[(&[u8], Checked, Checked)] = &[
            (b"application/json", Ok(()), Ok(())),
            (b" Application/JSON ;Charset = UTF-8", Ok(()), Ok(())),
            (b"application/json; charset=utf8", Ok(()), Ok(())),
            (b"application/json; version=1; charset=utf-8", Ok(()), Ok(())),
            (b"application/json; plain", Ok(()), Ok(())),
            (b"", other(b""), Ok(())),
            (b"text/plain; charset=utf-8", other(b"text/plain"), Ok(())),
            (b"application/json; charset=\"utf-8\"", Ok(()), Ok(())),
            (b"application/json;charset=\"UTF-8\"", Ok(()), Ok(())),
            (b"application/json; charset=\"utf-8", Err(Refusal::Charset), Err(Refusal::Charset)),
            (b"application/json; charset=\"latin1\"", Err(Refusal::Charset), Err(Refusal::Charset)),
            (b"application/json; charset=utf-8; charset=utf-8", Err(Refusal::Charset), Err(Refusal::Charset)),
            (b"application/json; a=b=c", Err(Refusal::Charset), Err(Refusal::Charset)),
            (b"text/plain; charset=utf-16", other(b"text/plain"), Err(Refusal::Charset)),
            (b"\xff", other(b"\xff"), Ok(())),
        ];
        for (given, as_json, as_any) in rows {
            let mut headers = HeaderMap::new();
            let value = HeaderValue::from_bytes(given).expect("a header");
            headers.insert(CONTENT_TYPE, value);
            assert_eq!(check_type(&headers, true), *as_json, "{given:?}");
            assert_eq!(check_type(&headers, false), *as_any, "{given:?}");
        }
        assert_eq!(check_type(&HeaderMap::new(), true), Ok(()));
        let many = "a/b".to_owned() + &(0..20).map(|n| format!(";k{n}=v")).collect::<String>();
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_TYPE, many.parse().expect("a header"));
        assert_eq!(check_type(&headers, false), Err(Refusal::Charset));
    }
}
