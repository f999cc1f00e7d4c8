//! `crosstie report`.

use std::fs;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, bail};
use crosstie_report::Report;

/// Write one page of the benches' results files.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Results files of `crosstie bench … --json FILE`.
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// File of the page.
    #[arg(short, long, default_value = "report.html", value_name = "FILE")]
    output: PathBuf,
}

pub(crate) fn run(arguments: Arguments) -> anyhow::Result<ExitCode> {
    let mut report = Report::default();
    let mut damaged = 0;
    for path in &arguments.files {
        let file = path.display().to_string();
        let taken = match fs::read(path) {
            Ok(bytes) => report.add(&file, &String::from_utf8_lossy(&bytes)),
            Err(error) => Err(report.add_damaged(&file, error.to_string())),
        };
        if let Err(damage) = taken {
            complain!("crosstie: {}: {}", damage.file, damage.why);
            damaged += 1;
        }
    }
    if report.is_empty() {
        bail!("none of these files holds results; there is no report");
    }
    let output = arguments.output.display();
    fs::write(&arguments.output, report.page()).with_context(|| format!("{output}"))?;
    say!("{output}")?;
    if damaged > 0 {
        let (all, what) = (arguments.files.len(), "damaged; the report says which");
        complain!("crosstie: {damaged} of {all} files {what}");
        return Ok(ExitCode::FAILURE);
    }
    Ok(ExitCode::SUCCESS)
}
