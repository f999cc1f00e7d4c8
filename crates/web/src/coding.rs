//! Content codings that a client accepts (RFC 9110 section 12.5.3).

/// Whether `Accept-Encoding` includes gzip: by its name or by `*`, with a weight above zero. A client without the
/// header gets the plain content.
pub fn takes_gzip(accepted: &str) -> bool {
    let mut any = false;
    for item in accepted.split(',') {
        let mut parts = item.split(';').map(str::trim);
        let coding = parts.next().unwrap_or_default();
        let is_refused = parts.any(|parameter| {
            let weight = parameter
                .strip_prefix("q=")
                .or_else(|| parameter.strip_prefix("Q="));
            weight.is_some_and(|weight| weight.bytes().all(|byte| matches!(byte, b'0' | b'.')))
        });
        match coding {
            "*" => any = !is_refused,
            _ if coding.eq_ignore_ascii_case("gzip") || coding.eq_ignore_ascii_case("x-gzip") => {
                return !is_refused;
            }
            _ => {}
        }
    }
    any
}

/// Whether content of that media type compresses well.
pub fn is_compressible(media_type: &str) -> bool {
    let kind = media_type.split(';').next().unwrap_or_default().trim();
    kind.starts_with("text/")
        || kind.ends_with("+json")
        || kind.ends_with("+xml")
        || matches!(
            kind,
            "application/javascript"
                | "application/json"
                | "application/manifest+json"
                | "application/wasm"
                | "application/xml"
        )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn acceptance_of_gzip() {
        for (accepted, expected) in [
            ("gzip", true),
            ("gzip, deflate, br, zstd", true),
            ("br;q=1.0, GZIP;q=0.8", true),
            ("x-gzip", true),
            ("*", true),
            ("gzip;q=0", false),
            ("gzip; q=0.000, *", false),
            ("*;q=0", false),
            ("identity", false),
            ("br", false),
            ("", false),
        ] {
            assert_eq!(takes_gzip(accepted), expected, "{accepted}");
        }
    }

    #[test]
    fn compressible_media_types() {
        for (kind, expected) in [
            ("text/html", true),
            ("text/html; charset=utf-8", true),
            ("application/json", true),
            ("image/svg+xml", true),
            ("image/png", false),
            ("application/octet-stream", false),
        ] {
            assert_eq!(is_compressible(kind), expected, "{kind}");
        }
    }
}
