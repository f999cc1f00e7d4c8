//! A file's significant lines, each with its number.

/// A line without the surrounding space.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Line<'t> {
    pub(crate) number: usize,
    pub(crate) text: &'t str,
}

/// All but empty lines and comments, which begin with `//`.
pub(crate) fn lines(text: &str) -> impl Iterator<Item = Line<'_>> {
    let numbered = text.lines().enumerate().map(|(index, text)| Line {
        number: index + 1,
        text: text.trim(),
    });
    numbered.filter(|line| !line.text.is_empty() && !line.text.starts_with("//"))
}
