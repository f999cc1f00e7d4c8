//! The text of one level of a filter. Most are short, and need no memory of their own.

/// The longest text that is kept in place.
const SHORT_BYTES_MAX: usize = 15;

#[derive(Debug)]
pub(crate) enum Level {
    Short([u8; SHORT_BYTES_MAX], u8),
    Long(Box<[u8]>),
}

impl Level {
    pub(crate) fn new(text: &str) -> Self {
        let mut bytes = [0; SHORT_BYTES_MAX];
        match bytes.get_mut(..text.len()) {
            Some(place) => {
                place.copy_from_slice(text.as_bytes());
                Self::Short(bytes, text.len() as u8)
            }
            None => Self::Long(text.as_bytes().into()),
        }
    }

    #[inline]
    pub(crate) fn as_bytes(&self) -> &[u8] {
        match self {
            Self::Short(bytes, length) => bytes.get(..usize::from(*length)).unwrap_or_default(),
            Self::Long(bytes) => bytes,
        }
    }

    pub(crate) fn as_str(&self) -> &str {
        std::str::from_utf8(self.as_bytes()).unwrap_or_default()
    }
}

impl Default for Level {
    fn default() -> Self {
        Self::new("")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_kept_whatever_its_length() {
        for length in 0..40 {
            let text = "ü".repeat(length);
            let level = Level::new(&text);
            assert_eq!(level.as_str(), text);
            assert_eq!(matches!(level, Level::Short(..)), 2 * length <= 15);
        }
        assert!(size_of::<Level>() <= 24);
    }
}
