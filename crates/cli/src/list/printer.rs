//! A list that is printed while it is read, so that its size needs no memory.

use std::fmt::Write as _;
use std::io::IsTerminal as _;

use crosstie_terminal::output::{NotPrinted, print};
use rustix::termios::tcgetwinsize;
use serde_json::{Map, Value as Json};
use unicode_width::UnicodeWidthChar as _;

use super::column::Column;
use super::table::{Table, harmless, shown};

/// Takes the parts of a list.
pub(crate) struct Printer<'a> {
    is_json: bool,
    all: &'a [Column],
    selected: Option<&'a [&'a Column]>,
    table: Option<Table<'a>>,
    /// The terminal to fill with a list that is watched.
    screen: Option<Screen>,
    styles: bool,
    rows: usize,
    /// Whether the output is read, or why it is not.
    is_open: Result<bool, NotPrinted>,
}

/// A terminal that shows the beginning of the list.
struct Screen {
    height: usize,
    width: usize,
    lines: Vec<String>,
    hidden: usize,
}

impl<'a> Printer<'a> {
    pub(super) fn new(
        is_json: bool,
        is_watched: bool,
        all: &'a [Column],
        selected: Option<&'a [&'a Column]>,
    ) -> Self {
        let is_terminal = std::io::stdout().is_terminal();
        let is_screen = is_terminal && is_watched && !is_json;
        Self {
            is_json,
            all,
            selected,
            table: None,
            screen: is_screen.then(Screen::new),
            styles: is_terminal && std::env::var_os("NO_COLOR").is_none_or(|set| set.is_empty()),
            rows: 0,
            is_open: Ok(true),
        }
    }

    /// Prints a part. Returns whether another one is wanted: the reader may have closed.
    pub(crate) fn add(&mut self, rows: Vec<Json>) -> bool {
        if self.is_json {
            self.add_json(rows);
        } else {
            self.add_lines(&rows);
        }
        matches!(self.is_open, Ok(true))
    }

    /// The end of the list. Returns whether the reader still reads.
    pub(super) fn finish(mut self) -> Result<bool, NotPrinted> {
        if self.is_json {
            let text = if self.rows == 0 { "[]\n" } else { "]\n" };
            self.print(text);
        } else if self.table.is_none() {
            self.add_lines(&[]);
        }
        if let Some(screen) = self.screen.take() {
            self.print(&screen.text());
        }
        self.is_open
    }

    fn add_json(&mut self, rows: Vec<Json>) {
        let mut text = String::new();
        for row in rows {
            let row = match self.selected {
                None => row,
                Some(columns) => part(row, columns),
            };
            let before = if self.rows == 0 { '[' } else { ',' };
            // Writing to a string cannot fail.
            let _ = write!(text, "{before}{}", harmless(row.to_string()));
            self.rows += 1;
        }
        self.print(&text);
    }

    fn add_lines(&mut self, rows: &[Json]) {
        let mut head = None;
        let table = self.table.get_or_insert_with(|| {
            head = Some(());
            Table::new(match self.selected {
                Some(columns) => columns.to_vec(),
                None => shown(self.all, rows),
            })
        });
        let mut lines = table.lines(rows);
        if head.is_some() {
            let [titles, rule] = table.head();
            let titles = match self.styles && self.screen.is_none() {
                true => format!("\u{1b}[1m{titles}\u{1b}[0m"),
                false => titles,
            };
            lines.splice(0..0, [titles, rule]);
        }
        self.rows += rows.len();
        match &mut self.screen {
            Some(screen) => screen.add(lines),
            None if lines.is_empty() => {}
            None => {
                let text = lines.join("\n") + "\n";
                self.print(&text);
            }
        }
    }

    fn print(&mut self, text: &str) {
        if matches!(self.is_open, Ok(true)) {
            self.is_open = print(text);
        }
    }
}

/// The keys of a row that the columns show.
fn part(mut row: Json, columns: &[&Column]) -> Json {
    let keys = columns.iter().flat_map(|column| column.keys());
    let pairs = keys.map(|&key| (key.to_owned(), row[key].take()));
    Json::Object(pairs.collect::<Map<_, _>>())
}

impl Screen {
    fn new() -> Self {
        let size = tcgetwinsize(std::io::stdout()).ok();
        let of = |cells: Option<u16>, default: usize| match cells {
            None | Some(0) => default,
            Some(cells) => cells.into(),
        };
        Self {
            height: of(size.map(|size| size.ws_row), 24).max(4),
            width: of(size.map(|size| size.ws_col), 80),
            lines: Vec::new(),
            hidden: 0,
        }
    }

    fn add(&mut self, lines: Vec<String>) {
        // The last line of the terminal counts the hidden rows.
        let room = (self.height - 1).saturating_sub(self.lines.len());
        self.hidden += lines.len().saturating_sub(room);
        self.lines.extend(lines.into_iter().take(room));
    }

    /// Overwrites the terminal from its first line on, which does not flicker as clearing does.
    fn text(self) -> String {
        let mut text = "\u{1b}[H".to_owned();
        for line in &self.lines {
            text += cut(line, self.width);
            text += "\u{1b}[K\n";
        }
        if self.hidden > 0 {
            let _ = write!(text, "… and {} more", self.hidden);
        }
        text + "\u{1b}[J"
    }
}

/// The beginning of a line that fits a terminal.
fn cut(line: &str, width: usize) -> &str {
    let mut used = 0;
    for (at, c) in line.char_indices() {
        used += c.width().unwrap_or_default();
        if used > width {
            return &line[..at];
        }
    }
    line
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::list::column::{Show, column};

    #[test]
    fn a_terminal_shows_the_beginning() {
        let mut screen = Screen {
            height: 4,
            width: 3,
            lines: Vec::new(),
            hidden: 0,
        };
        screen.add(vec!["title".to_owned(), "────".to_owned()]);
        screen.add(vec!["日本".to_owned(), "b".to_owned(), "c".to_owned()]);
        let text = screen.text();
        let expected = "\u{1b}[Htit\u{1b}[K\n───\u{1b}[K\n日\u{1b}[K\n… and 2 more\u{1b}[J";
        assert_eq!(text, expected);
    }

    #[test]
    fn selected_columns_limit_the_json() {
        let columns = [
            column("queue", Show::Text("name")),
            column("features", Show::Flags(&["durable", "internal"])),
        ];
        let columns: Vec<_> = columns.iter().collect();
        let row = json!({"name": "a", "bytes": 5, "durable": true});
        let expected = json!({"name": "a", "durable": true, "internal": null});
        assert_eq!(part(row, &columns), expected);
    }
}
