//! Families with a sample for each object: figures that were read once, and are written while they are sent.

use super::text::{Family, Kind, Text};

/// Rows of one part of the body: some 10 kB.
const ROWS_MAX: usize = 128;

/// A figure of each object.
pub(super) struct Column {
    pub(super) family: Family,
    /// Names of RabbitMQ's families of `/metrics/detailed` that have it.
    pub(super) of: &'static [&'static str],
    /// Objects whose figure is 0 have no sample.
    pub(super) is_sparse: bool,
}

/// Objects of one kind, with their labels and figures; or the sums of the figures alone.
pub(super) struct Table<const N: usize> {
    columns: &'static [Column; N],
    rows: Vec<Row<N>>,
    label_bytes: usize,
    sums: Option<[u64; N]>,
}

struct Row<const N: usize> {
    labels: Box<str>,
    figures: [u64; N],
}

/// A table of any width.
pub(super) trait Columns: Send {
    /// Bytes that it holds.
    fn bytes(&self) -> usize;

    /// The numbers of its columns that are wanted; `None`: all.
    fn wanted(&self, families: Option<&[String]>) -> Vec<usize>;

    /// Writes some samples of a family, from that row on; returns the next row, if there are more.
    fn write(&self, column: usize, row: usize, text: &mut Text<'_>) -> Option<usize>;
}

impl<const N: usize> Table<N> {
    /// An empty one.
    pub(super) fn new(columns: &'static [Column; N], is_summed: bool) -> Self {
        Self {
            columns,
            rows: Vec::new(),
            label_bytes: 0,
            sums: is_summed.then_some([0; N]),
        }
    }

    pub(super) fn push(&mut self, labels: impl FnOnce() -> String, figures: [u64; N]) {
        match &mut self.sums {
            Some(sums) => {
                for (sum, figure) in sums.iter_mut().zip(figures) {
                    *sum += figure;
                }
            }
            None => {
                let labels = labels().into_boxed_str();
                self.label_bytes += labels.len();
                self.rows.push(Row { labels, figures });
            }
        }
    }
}

impl<const N: usize> Columns for Table<N> {
    fn bytes(&self) -> usize {
        self.rows.capacity() * size_of::<Row<N>>() + self.label_bytes
    }

    fn wanted(&self, families: Option<&[String]>) -> Vec<usize> {
        let is_wanted = |column: &Column| match families {
            // Counters of objects fall when those are closed: the node's own are in the place of their sums.
            None => self.sums.is_none() || column.family.kind != Kind::Counter,
            Some(families) => families
                .iter()
                .any(|family| column.of.contains(&family.as_str())),
        };
        let columns = self.columns.iter().enumerate();
        let wanted = columns.filter(|(_, column)| is_wanted(column));
        wanted.map(|(number, _)| number).collect()
    }

    fn write(&self, column: usize, row: usize, text: &mut Text<'_>) -> Option<usize> {
        let Column {
            family, is_sparse, ..
        } = &self.columns[column];
        if row == 0 {
            text.begin(family);
        }
        if let Some(sums) = &self.sums {
            text.sample(family.name, "", sums[column]);
            return None;
        }
        for Row { labels, figures } in self.rows.iter().skip(row).take(ROWS_MAX) {
            if figures[column] > 0 || !is_sparse {
                text.sample(family.name, labels, figures[column]);
            }
        }
        let next = row + ROWS_MAX;
        (next < self.rows.len()).then_some(next)
    }
}

pub(super) const fn dense(family: Family, of: &'static [&'static str]) -> Column {
    let is_sparse = false;
    Column {
        family,
        of,
        is_sparse,
    }
}

pub(super) const fn sparse(family: Family, of: &'static [&'static str]) -> Column {
    let is_sparse = true;
    Column {
        family,
        of,
        is_sparse,
    }
}
