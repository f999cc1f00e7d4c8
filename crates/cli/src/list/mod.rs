//! Lists: the columns of a kind of object, and the options that every list has.

mod column;
mod printer;
mod table;

use std::process::ExitCode;
use std::time::Duration;

use anyhow::bail;
use crosstie_terminal::duration::duration;
use serde_json::Value as Json;

pub(crate) use self::column::{Column, Show, column, extra_column, rare_column};
pub(crate) use self::printer::Printer;
pub(crate) use self::table::{harmless, printable, table};
use crate::refused::Refused;

/// The form of a list.
#[derive(clap::Args)]
pub(crate) struct Form {
    /// Print JSON: a list of objects.
    #[arg(long, global = true)]
    json: bool,
    /// Columns to show, by title (with _ for a blank) or by the key of the JSON, separated by commas.
    #[arg(long, value_name = "NAMES", value_delimiter = ',', global = true)]
    columns: Vec<String>,
    /// List again and again, with this interval.
    #[arg(long, value_name = "INTERVAL", num_args = 0..=1, require_equals = true, default_missing_value = "2s",
        value_parser = interval, global = true)]
    watch: Option<Duration>,
}

/// An interval between two readings of a list.
pub(crate) fn interval(text: &str) -> anyhow::Result<Duration> {
    match duration(text)? {
        interval if interval >= Duration::from_millis(100) => Ok(interval),
        _ => bail!("expected an interval of at least 100ms"),
    }
}

impl Form {
    pub(crate) fn new(json: bool, columns: Vec<String>, watch: Option<Duration>) -> Self {
        Self {
            json,
            columns,
            watch,
        }
    }

    /// Whether the answer is for a program.
    pub(crate) fn is_json(&self) -> bool {
        self.json
    }

    /// Refuses the options of lists for a command that changes something.
    pub(crate) fn check_unused(&self) -> anyhow::Result<()> {
        let option = match (self.columns.is_empty(), self.watch) {
            (true, None) => return Ok(()),
            (false, _) => "--columns",
            (true, Some(_)) => "--watch",
        };
        bail!("{option} is for lists");
    }

    /// Prints the rows that `read` passes on, part by part; again and again if that is requested.
    pub(crate) async fn run(
        &self,
        columns: &[Column],
        mut read: impl AsyncFnMut(&mut Printer<'_>) -> Result<(), Refused>,
    ) -> anyhow::Result<ExitCode> {
        let selected = self.selected(columns)?;
        loop {
            let mut printer = Printer::new(
                self.json,
                self.watch.is_some(),
                columns,
                selected.as_deref(),
            );
            if let Err(refused) = read(&mut printer).await {
                return refused.told();
            }
            let is_open = printer.finish()?;
            match self.watch {
                Some(interval) if is_open => tokio::time::sleep(interval).await,
                _ => return Ok(ExitCode::SUCCESS),
            }
        }
    }

    /// Prints rows that are here.
    pub(crate) fn print(
        &self,
        columns: &[Column],
        rows: impl Fn() -> anyhow::Result<Vec<Json>>,
    ) -> anyhow::Result<ExitCode> {
        crate::wait_for(self.run(columns, async |printer: &mut Printer<'_>| {
            printer.add(rows().map_err(Refused::Lost)?);
            Ok(())
        }))
    }

    /// The columns that the user selects, if any.
    fn selected<'a>(&self, columns: &'a [Column]) -> anyhow::Result<Option<Vec<&'a Column>>> {
        if self.columns.is_empty() {
            return Ok(None);
        }
        let mut selected = Vec::new();
        for name in &self.columns {
            let Some(found) = columns.iter().find(|column| column.is_called(name)) else {
                let names: Vec<_> = columns.iter().map(Column::name).collect();
                bail!(
                    "--columns: there is no column '{name}', expected some of {}",
                    names.join(", ")
                );
            };
            selected.push(found);
        }
        Ok(Some(selected))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    static COLUMNS: [Column; 2] = [
        column("routing key", Show::Text("routing_key")),
        extra_column("features", Show::Flags(&["durable", "internal"])),
    ];

    #[test]
    fn columns_are_found_by_title_and_key() {
        let check = |names: &[&str], expected: &str| {
            let form = Form {
                json: false,
                columns: names.iter().map(|&name| name.to_owned()).collect(),
                watch: None,
            };
            let found = match form.selected(&COLUMNS) {
                Ok(None) => "all".to_owned(),
                Ok(Some(found)) => {
                    let titles: Vec<_> = found.iter().map(|column| column.title).collect();
                    titles.join(",")
                }
                Err(error) => error.to_string(),
            };
            assert_eq!(found, expected, "{names:?}");
        };
        check(&[], "all");
        check(&["features", "routing_key"], "features,routing key");
        check(&["internal"], "features");
        check(
            &["key"],
            "--columns: there is no column 'key', expected some of routing_key, features",
        );
    }

    #[test]
    fn intervals_have_a_floor() {
        assert!(interval("0").is_err());
        assert_eq!(interval("2s").unwrap(), Duration::from_secs(2));
    }
}
