//! The log: one line per event, for people or for machines, on standard error.

use std::fmt;

use chrono::Local;
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
#[derive(Clone, Copy, Debug, clap::ValueEnum)]
pub(crate) enum LogFormat {
    /// `2026-01-31T12:00:00+0100 [Controller  4711] text`
    Standard,
    /// One JSON object per line.
    Json,
}

/// Sets the process's log up; to be called once.
pub(crate) fn set_up(level: LogLevel, format: LogFormat) {
    let level = match level {
        LogLevel::None => LevelFilter::OFF,
        LogLevel::Error => LevelFilter::ERROR,
        LogLevel::Warn => LevelFilter::WARN,
        LogLevel::Info => LevelFilter::INFO,
        LogLevel::Debug => LevelFilter::DEBUG,
        LogLevel::Trace => LevelFilter::TRACE,
    };
    let builder = tracing_subscriber::fmt()
        .with_max_level(level)
        .with_writer(std::io::stderr);
    match format {
        LogFormat::Standard => builder.event_format(Lines::new()).init(),
        LogFormat::Json => builder
            .json()
            .with_current_span(false)
            .with_span_list(false)
            .init(),
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
        let role = role(event.metadata().target());
        let now = Local::now().format("%Y-%m-%dT%H:%M:%S%z");
        write!(writer, "{now} [{role:<10} {:>6}] ", self.process)?;
        match *event.metadata().level() {
            Level::ERROR => writer.write_str("ERROR: ")?,
            Level::WARN => writer.write_str("WARNING: ")?,
            _ => {}
        }
        context
            .field_format()
            .format_fields(writer.by_ref(), event)?;
        writeln!(writer)
    }
}

/// Which part of the node speaks.
fn role(target: &str) -> &'static str {
    if target.starts_with("crosstie::") {
        "Controller"
    } else {
        "Router"
    }
}
