//! Unique names, and generated ids.

use std::collections::{HashMap, HashSet};

use crate::problem::Problem;
use crate::tree::{Span, quoted};
use crate::view::View;

/// A set of unique ids or names.
pub(super) struct Names {
    what: &'static str,
    /// The prefix of generated ids.
    prefix: &'static str,
    taken: HashMap<String, Span>,
    /// All ids in the file; generated ids avoid them.
    given: HashSet<String>,
    count: usize,
}

impl Names {
    pub(super) fn new(what: &'static str, prefix: &'static str) -> Self {
        Self {
            what,
            prefix,
            taken: HashMap::new(),
            given: HashSet::new(),
            count: 0,
        }
    }

    /// A set for these objects; generated ids avoid the ids of all of them.
    pub(super) fn of<'v>(mut self, objects: impl Iterator<Item = View<'v>>) -> Self {
        let ids = objects.filter_map(|object| object.text("id").map(str::to_owned));
        self.given = ids.collect();
        self
    }

    /// The object's own id, or else one made from its position in the file.
    pub(super) fn id(&mut self, object: View<'_>, problems: &mut Vec<Problem>) -> String {
        self.count += 1;
        if let Some(id) = object.text("id") {
            self.take(id, object.span_of("id"), problems);
            return id.to_owned();
        }
        self.free(object.span)
    }

    /// An id for an object that is not in the file.
    pub(super) fn made(&mut self) -> String {
        self.count += 1;
        self.free(Span::default())
    }

    fn free(&mut self, at: Span) -> String {
        let numbered = |number| format!("{}{number}", self.prefix);
        let mut numbers = self.count..;
        let id = loop {
            // The range of all numbers does not end before a free one is found.
            let id = numbered(numbers.next().unwrap_or(usize::MAX));
            if !self.taken.contains_key(&id) && !self.given.contains(&id) {
                break id;
            }
        };
        self.taken.insert(id.clone(), at);
        id
    }

    pub(super) fn take(&mut self, name: &str, at: Span, problems: &mut Vec<Problem>) {
        match self.taken.get(name) {
            Some(first) => {
                let message = format!("{} {} is given twice", self.what, quoted(name));
                let problem = Problem::error(at, message);
                problems.push(problem.note_at(*first, "it is given first here"));
            }
            None => {
                self.taken.insert(name.to_owned(), at);
            }
        }
    }
}
