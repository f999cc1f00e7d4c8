//! The columns of a list.

/// A column of the table.
pub(crate) struct Column {
    pub(crate) title: &'static str,
    pub(crate) value: Show,
    pub(crate) when: When,
}

/// Whether a column is shown if the user selects none.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum When {
    Always,
    /// If one of its first cells has content.
    IfFilled,
    /// Only if it is selected.
    Selected,
}

/// The content of a cell.
pub(crate) enum Show {
    Text(&'static str),
    /// Aligned to the right.
    Number(&'static str),
    /// The names of those that are true.
    Flags(&'static [&'static str]),
    /// An object, in the shortest form.
    Arguments(&'static str),
    /// Any value but null, in the shortest form.
    Json(&'static str),
    /// A list of texts.
    Words(&'static str),
}

pub(crate) const fn column(title: &'static str, value: Show) -> Column {
    Column {
        title,
        value,
        when: When::Always,
    }
}

/// A column for a feature that few use.
pub(crate) const fn rare_column(title: &'static str, value: Show) -> Column {
    Column {
        when: When::IfFilled,
        ..column(title, value)
    }
}

/// A column that few read.
pub(crate) const fn extra_column(title: &'static str, value: Show) -> Column {
    Column {
        when: When::Selected,
        ..column(title, value)
    }
}

impl Column {
    /// The keys of the row that it shows.
    pub(super) fn keys(&self) -> &[&'static str] {
        match &self.value {
            Show::Flags(keys) => keys,
            Show::Text(key)
            | Show::Number(key)
            | Show::Arguments(key)
            | Show::Json(key)
            | Show::Words(key) => std::slice::from_ref(key),
        }
    }

    /// Its name as an argument, which is its title without blanks.
    pub(super) fn name(&self) -> String {
        self.title.replace(' ', "_")
    }

    pub(super) fn is_called(&self, name: &str) -> bool {
        self.name() == name || self.keys().contains(&name)
    }
}
