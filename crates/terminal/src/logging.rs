//! The log: one line per event, for people or for machines, on standard error and in a file.

use std::fmt;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use anyhow::Context;
use chrono::Local;
use tracing::field::{Field, Visit};
use tracing::level_filters::LevelFilter;
use tracing::{Event, Level, Metadata, Subscriber, warn};
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields, MakeWriter};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::registry::LookupSpan;
use tracing_subscriber::reload;
use tracing_subscriber::util::SubscriberInitExt;

use crate::log_recent::{Numbered, Recent};
use crate::log_sink::{self, Input, Sink};

/// How much is logged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum LogLevel {
    None,
    Error,
    /// Also `warning`, as in log lines.
    #[value(alias = "warning")]
    Warn,
    Info,
    Debug,
    Trace,
}

/// In which form.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum LogFormat {
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
    /// Its name on a command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Error => "error",
            Self::Warn => "warn",
            Self::Info => "info",
            Self::Debug => "debug",
            Self::Trace => "trace",
        }
    }

    fn filter(self) -> LevelFilter {
        match self {
            Self::None => LevelFilter::OFF,
            Self::Error => LevelFilter::ERROR,
            Self::Warn => LevelFilter::WARN,
            Self::Info => LevelFilter::INFO,
            Self::Debug => LevelFilter::DEBUG,
            Self::Trace => LevelFilter::TRACE,
        }
    }
}

/// The file in a log directory.
const FILE_NAME: &str = "node.log";

/// Time limit for writing the rest of the log when the process ends.
const END_WITHIN: Duration = Duration::from_secs(1);

static SINKS: OnceLock<Sinks> = OnceLock::new();

/// Changes the level of the log. Returns whether that is done.
type SetFilter = Box<dyn Fn(LevelFilter) -> bool + Send + Sync>;

static SET_FILTER: OnceLock<SetFilter> = OnceLock::new();

/// Sets up the log of the process; call it once. With a directory, the log is also written to a file there. Events of
/// the target `child_lines` are lines of child processes.
pub fn set_up(
    level: LogLevel,
    format: LogFormat,
    directory: Option<&Path>,
    child_lines: Option<&'static str>,
) -> anyhow::Result<()> {
    let path = directory.map(|directory| directory.join(FILE_NAME));
    let file = path.map(LogFile::open).transpose()?;
    let started = Sinks::start(file).context("cannot start the log's thread")?;
    let sinks = SINKS.get_or_init(|| started);
    let (filter, handle) = reload::Layer::new(level.filter());
    let registry = tracing_subscriber::registry().with(filter);
    let layer = tracing_subscriber::fmt::layer().with_writer(sinks);
    match format {
        LogFormat::Json => {
            let layer = layer.json().with_current_span(false).with_span_list(false);
            registry.with(layer).init();
        }
        _ => registry
            .with(layer.event_format(Lines::new(child_lines)))
            .init(),
    }
    let set_filter: SetFilter = Box::new(move |filter| handle.reload(filter).is_ok());
    // This function is called once.
    let _ = SET_FILTER.set(set_filter);
    Ok(())
}

/// Changes the level of the running log. Returns whether there is a log.
pub fn set_level(level: LogLevel) -> bool {
    let set_filter = SET_FILTER.get();
    set_filter.is_some_and(|set_filter| set_filter(level.filter()))
}

/// At most `limit` of the last lines of the log: the first ones after that of number `after`.
pub fn recent(after: Option<u64>, limit: usize) -> Vec<Numbered> {
    let sinks = SINKS.get();
    sinks.map_or_else(Vec::new, |sinks| sinks.recent.lines_after(after, limit))
}

/// Waits a moment for the rest of the log. Returns whether standard error has taken all of it: if not, a thread that
/// writes there would block.
pub fn finish() -> bool {
    SINKS.get().is_none_or(|sinks| {
        let until = Instant::now() + END_WITHIN;
        if let Some((file, _)) = &sinks.file {
            file.drain(until);
        }
        sinks.standard_error.drain(until)
    })
}

/// Reopens the log's file, because the old one may have been moved away. Returns its path, if there is one.
pub fn reopen() -> Option<&'static Path> {
    let (file, path) = SINKS.get()?.file.as_ref()?;
    file.renew();
    Some(path)
}

/// The log's file, besides standard error.
struct LogFile {
    path: PathBuf,
    file: File,
    has_failed: bool,
}

impl LogFile {
    fn open(path: PathBuf) -> anyhow::Result<Self> {
        let file = append_to(&path).with_context(|| format!("cannot log to {}", path.display()))?;
        Ok(Self {
            path,
            file,
            has_failed: false,
        })
    }

    /// If it cannot be reopened the old one continues.
    fn renew(&mut self) {
        match append_to(&self.path) {
            Ok(file) => self.file = file,
            Err(error) => complain(&format!(
                "crosstie: cannot open {FILE_NAME} anew: {error}; going on with the old one\n"
            )),
        }
    }

    fn write(&mut self, lines: &[u8]) {
        match log_sink::write_all(&mut self.file, lines) {
            Ok(()) => self.has_failed = false,
            Err(_) if self.has_failed => {}
            Err(error) => {
                self.has_failed = true;
                complain(&format!(
                    "crosstie: {FILE_NAME} takes no more lines: {error}; continuing without it\n"
                ));
            }
        }
    }
}

fn append_to(path: &Path) -> io::Result<File> {
    if let Some(directory) = path.parent() {
        std::fs::create_dir_all(directory)?;
    }
    OpenOptions::new().create(true).append(true).open(path)
}

/// The outputs of lines.
struct Sinks {
    standard_error: Sink,
    file: Option<(Sink, PathBuf)>,
    recent: Recent,
}

impl Sinks {
    fn start(file: Option<LogFile>) -> io::Result<Self> {
        let standard_error = Sink::start(
            // A node whose standard error was closed goes on.
            |input| {
                if let Input::Lines(lines) = input {
                    drop(log_sink::write_all(io::stderr(), lines));
                }
            },
            |n| warn!("{n} lines of the log are missing here: standard error accepted none"),
        )?;
        let file = file.map(|mut file| {
            let path = file.path.clone();
            let sink = Sink::start(
                move |input| match input {
                    Input::Lines(lines) => file.write(lines),
                    Input::Renew => file.renew(),
                },
                |n| warn!("{n} lines of the log are missing here: {FILE_NAME} accepted none"),
            );
            Ok::<_, io::Error>((sink?, path))
        });
        Ok(Self {
            standard_error,
            file: file.transpose()?,
            recent: Recent::default(),
        })
    }
}

/// The last resort: if this fails, the complaint is lost.
fn complain(line: &str) {
    if let Some(sinks) = SINKS.get() {
        sinks.standard_error.push(line.as_bytes());
    }
}

impl<'a> MakeWriter<'a> for &'static Sinks {
    type Writer = LevelWriter;

    fn make_writer(&'a self) -> LevelWriter {
        LevelWriter(self, Level::INFO)
    }

    fn make_writer_for(&'a self, metadata: &Metadata<'_>) -> LevelWriter {
        LevelWriter(self, *metadata.level())
    }
}

/// Writes a line of a level to all outputs.
struct LevelWriter(&'static Sinks, Level);

impl Write for LevelWriter {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        let Self(sinks, level) = self;
        if let Some((file, _)) = &sinks.file {
            file.push(line);
        }
        sinks.recent.push(*level, line);
        sinks.standard_error.push(line);
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Crossbar.io's log format, so that its readers read both.
struct Lines {
    process: u32,
    child_lines: Option<&'static str>,
}

impl Lines {
    fn new(child_lines: Option<&'static str>) -> Self {
        Self {
            process: std::process::id(),
            child_lines,
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
        if self.child_lines == Some(target) {
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

/// A child process and its line.
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

/// The part of the node that logs.
fn role(target: &str) -> &'static str {
    if target.starts_with("crosstie_cli::") || target.starts_with("crosstie_node::") {
        "Controller"
    } else {
        "Router"
    }
}
