//! Media types by file name.

/// The media type, by the longest configured suffix of the name, or by common defaults.
pub(super) fn media_type(configured: &[(String, String)], name: &str) -> String {
    let ends = |(end, _): &&(String, String)| name.ends_with(end.as_str());
    let configured = configured.iter().filter(ends);
    if let Some((_, kind)) = configured.max_by_key(|(end, _)| end.len()) {
        return kind.clone();
    }
    let guess = mime_guess::from_path(name).first_raw();
    guess.unwrap_or("application/octet-stream").to_owned()
}
