//! The log: one line per event, for people or for machines, on standard error and in a file.

use std::fmt;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::Context;
use chrono::Local;
use tracing::field::{Field, Visit};
use tracing::level_filters::LevelFilter;
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields};
use tracing_subscriber::registry::LookupSpan;

/// How much is logged.
#[derive(Clone, Copy, Debug, clap::ValueEnum)]
pub(crate) enum LogLevel {
    None,
    Error,
    Warn,
    Info,
    Debug,
    Trace,
}

/// In which form.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum LogFormat {
    /// `2026-01-31T12:00:00+0100 [Controller  4711] text`
    Standard,
    /// One JSON object per line.
    Json,
    /// The standard form, for those who ask for what Crossbar.io had once.
    #[value(hide = true)]
    Syslogd,
    #[value(hide = true)]
    None,
}

impl LogLevel {
    /// The word for it on a command line.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Error => "error",
            Self::Warn => "warn",
            Self::Info => "info",
            Self::Debug => "debug",
            Self::Trace => "trace",
        }
    }
}

/// The file in a log directory.
pub(crate) const FILE_NAME: &str = "node.log";

/// Sets the process's log up; to be called once.
pub(crate) fn set_up(level: LogLevel, format: LogFormat) {
    begin(level, format, None);
}

/// As [`set_up`]; all goes to a file in that directory too.
pub(crate) fn set_up_with_file(
    level: LogLevel,
    format: LogFormat,
    directory: &Path,
) -> anyhow::Result<()> {
    begin(level, format, Some(open(directory)?));
    Ok(())
}

fn begin(level: LogLevel, format: LogFormat, file: Option<File>) {
    let level = match level {
        LogLevel::None => LevelFilter::OFF,
        LogLevel::Error => LevelFilter::ERROR,
        LogLevel::Warn => LevelFilter::WARN,
        LogLevel::Info => LevelFilter::INFO,
        LogLevel::Debug => LevelFilter::DEBUG,
        LogLevel::Trace => LevelFilter::TRACE,
    };
    let sinks: &'static Sinks = Box::leak(Box::new(Sinks {
        file,
        has_failed: AtomicBool::new(false),
    }));
    let builder = tracing_subscriber::fmt()
        .with_max_level(level)
        .with_writer(move || sinks);
    match format {
        LogFormat::Json => builder
            .json()
            .with_current_span(false)
            .with_span_list(false)
            .init(),
        _ => builder.event_format(Lines::new()).init(),
    }
}

fn open(directory: &Path) -> anyhow::Result<File> {
    let path = directory.join(FILE_NAME);
    std::fs::create_dir_all(directory)
        .and_then(|()| OpenOptions::new().create(true).append(true).open(&path))
        .with_context(|| format!("cannot log to {}", path.display()))
}

/// Where lines go: one write for each.
struct Sinks {
    file: Option<File>,
    /// It was said that the file takes no more.
    has_failed: AtomicBool,
}

impl Write for &Sinks {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        if let Some(mut file) = self.file.as_ref() {
            let written = file.write_all(line);
            match written {
                Ok(()) => self.has_failed.store(false, Ordering::Relaxed),
                Err(error) if !self.has_failed.swap(true, Ordering::Relaxed) => {
                    // Nothing is left to say it to, where this fails as well.
                    let _ = writeln!(
                        io::stderr(),
                        "crosstie: {FILE_NAME} takes no more lines: {error}; going on without it"
                    );
                }
                Err(_) => {}
            }
        }
        // A node whose standard error was closed goes on.
        let _ = io::stderr().write_all(line);
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The form that Crossbar.io's log has, so that what reads one reads the other.
struct Lines {
    process: u32,
}

impl Lines {
    fn new() -> Self {
        Self {
            process: std::process::id(),
        }
    }
}

impl<S, N> FormatEvent<S, N> for Lines
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
{
    fn format_event(
        &self,
        context: &FmtContext<'_, S, N>,
        mut writer: Writer<'_>,
        event: &Event<'_>,
    ) -> fmt::Result {
        let target = event.metadata().target();
        let now = Local::now().format("%Y-%m-%dT%H:%M:%S%z");
        let mut child = ChildLine::default();
        if target == crosstie_controller::CHILD_LINES {
            event.record(&mut child);
        }
        let role = child.role.as_deref().unwrap_or_else(|| role(target));
        let process = child.process.unwrap_or(self.process);
        write!(writer, "{now} [{role:<10} {process:>6}] ")?;
        match *event.metadata().level() {
            Level::ERROR => writer.write_str("ERROR: ")?,
            Level::WARN => writer.write_str("WARNING: ")?,
            _ => {}
        }
        match child.text {
            Some(text) => writer.write_str(&text)?,
            None => context
                .field_format()
                .format_fields(writer.by_ref(), event)?,
        }
        writeln!(writer)
    }
}

/// What a child process said, and which.
#[derive(Default)]
struct ChildLine {
    role: Option<String>,
    process: Option<u32>,
    text: Option<String>,
}

impl Visit for ChildLine {
    fn record_u64(&mut self, field: &Field, value: u64) {
        if field.name() == "pid" {
            self.process = u32::try_from(value).ok();
        }
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        match field.name() {
            "role" => self.role = Some(value.to_owned()),
            "message" => self.text = Some(value.to_owned()),
            _ => {}
        }
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        if field.name() == "message" {
            self.text = Some(format!("{value:?}"));
        }
    }
}

/// Which part of the node speaks.
fn role(target: &str) -> &'static str {
    if target.starts_with("crosstie::") || target.starts_with("crosstie_controller::") {
        "Controller"
    } else {
        "Router"
    }
}
