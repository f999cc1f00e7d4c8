//! What the comparisons of WebSocket servers share: rounds in which the servers take turns, the
//! processor time that each spent, one table per placement, goals, and the JSON frame.

use std::io::{self, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};
use serde_json::{Value, json};

use super::servers::{Server, Servers, ServersOptions, Site};
use super::usage::{DRIVER_BUSY, FOREIGN_BUSY, SERVER_BUSY};
use crate::error::BenchError;
use crate::figures::{DRIVER_BOUND, Figures, Goal, Series, unfit, verdict};
use crate::load::histogram::Latencies;
use crate::machine::Machine;
use crate::machine::placement::{Cores, Placement, allowed_cores, bind_this_thread};
use crate::network::{Network, NetworkOptions};
use crate::process::directory;
use crate::process::place::Place;
use crate::process::stop::Stop;
use crate::report::json::{Build, Frame, Row, write};
use crate::report::table::{UNKNOWN, known, spread, table};

/// What can be asked of any comparison.
#[derive(Clone, Debug, Default)]
pub struct ComparisonOptions {
    pub build: Build,
    /// The `crosstie` to start as testee and workers; by default the one that runs.
    pub executable: Option<PathBuf>,
    pub servers: ServersOptions,
    /// By default `same-core`, and `split` where there are two cores.
    pub placements: Vec<Placement>,
    /// Rounds, in each of which the servers take turns.
    pub runs: usize,
    pub json: Option<PathBuf>,
    pub network: NetworkOptions,
    /// Ends the run after the round that it is in.
    pub stop: Stop,
}

/// A bench that compares servers.
pub(crate) trait Instrument {
    /// Its name, and that of its only case.
    const NAME: &'static str;
    const COLUMNS: &'static [Column];
    /// Over the floor's, round by round.
    const RATIOS: &'static [(&'static str, &'static str)];
    /// What to reach of those ratios.
    const GOALS: &'static [(&'static str, &'static str, Goal)];

    /// The load in words.
    fn load(&self) -> String;
    fn settings(&self) -> Value;
    fn seconds_per_round(&self) -> f64;
    fn round(&self, stage: &Stage<'_>, server: &Server) -> Result<Figures, String>;
}

/// One column of the table: its head, the figure, its form.
pub(crate) struct Column {
    pub(crate) head: &'static str,
    pub(crate) figure: &'static str,
    pub(crate) form: fn(f64) -> String,
    /// With the smallest and the largest below the median.
    pub(crate) with_spread: bool,
}

/// Where a round runs.
pub(crate) struct Stage<'a> {
    pub(crate) executable: &'a Path,
    pub(crate) clients: Place,
    pub(crate) client_cores: usize,
}

/// Servers in one placement, measured.
struct Section {
    placement: Placement,
    series: Vec<Series>,
}

/// Whether everything counts.
pub(crate) fn compare<I: Instrument>(
    instrument: &I,
    options: &ComparisonOptions,
) -> Result<bool, BenchError> {
    if options.runs == 0 {
        return Err(BenchError::Options("--runs is at least 1".to_owned()));
    }
    if options.servers.url.is_some() {
        options.network.check_foreign_server()?;
    } else if !options.servers.server_pids.is_empty() {
        let rule = "--server-pid goes with a URL";
        return Err(BenchError::Options(rule.to_owned()));
    }
    let bench = Bench::new(instrument, options)?;
    let site = Site {
        executable: &bench.executable,
        directory: bench.directory.path(),
        network: &bench.network,
        cores: &bench.allowed,
    };
    let servers = Servers::start(&site, &options.servers)?;
    let mut out = io::stdout();
    for note in &servers.notes {
        writeln!(out, "{note}")?;
    }
    let mut sections = Vec::new();
    // What was measured before something broke is printed and written all the same.
    let measured = bench.measure(&servers, &mut sections);
    bench.progress.finish_and_clear();
    bench.print(&mut out, &servers, &sections)?;
    bench.write(&servers, &sections)?;
    measured?;
    Ok(sections
        .iter()
        .flat_map(|section| &section.series)
        .all(Series::is_valid))
}

/// The options, made definite.
struct Bench<'a, I> {
    instrument: &'a I,
    options: &'a ComparisonOptions,
    machine: Machine,
    executable: PathBuf,
    directory: tempfile::TempDir,
    network: Network,
    allowed: Vec<usize>,
    placements: Vec<Placement>,
    progress: ProgressBar,
}

/// Below this share of its core a server was not what held the rate back.
const BUSY: f64 = 0.9;

impl<'a, I: Instrument> Bench<'a, I> {
    fn new(instrument: &'a I, options: &'a ComparisonOptions) -> Result<Self, BenchError> {
        let executable = match &options.executable {
            Some(path) => path.clone(),
            None => std::env::current_exe()?,
        };
        let directory = directory::create()?;
        let network = Network::set_up(&options.network, &executable, directory.path())?;
        let allowed = allowed_cores()?;
        let placements = match (options.placements.is_empty(), allowed.len()) {
            (false, _) => options.placements.clone(),
            (true, 0 | 1) => vec![Placement::SameCore],
            (true, _) => vec![Placement::SameCore, Placement::Split],
        };
        let rounds = placements.len() * options.runs * (2 + options.servers.peers.len());
        let progress = ProgressBar::new(rounds as u64).with_message(format!(
            "about {:.0} s in all",
            rounds as f64 * instrument.seconds_per_round()
        ));
        progress.set_style(
            ProgressStyle::with_template("{bar:30} {pos}/{len} {msg}")
                .unwrap_or_else(|_| ProgressStyle::default_bar()),
        );
        Ok(Self {
            instrument,
            options,
            machine: Machine::now(),
            executable,
            directory,
            network,
            allowed,
            placements,
            progress,
        })
    }

    fn measure(&self, servers: &Servers, sections: &mut Vec<Section>) -> Result<(), BenchError> {
        for placement in &self.placements {
            if self.options.stop.is_wished() {
                break;
            }
            let cores = placement
                .cores(&self.allowed, 1, 2)
                .ok_or_else(|| BenchError::Options(format!("{placement} needs two cores")))?;
            self.step_aside(&cores)?;
            servers.move_to(&cores.router)?;
            let stage = Stage {
                executable: &self.executable,
                clients: self.network.client_place(&cores.clients),
                client_cores: cores.clients.len(),
            };
            let mut series: Vec<Series> = servers
                .servers
                .iter()
                .map(|server| Series::new(server.name.clone()))
                .collect();
            for at in 0..self.options.runs {
                if self.options.stop.is_wished() {
                    break;
                }
                for (server, series) in servers.servers.iter().zip(&mut series) {
                    self.announce(*placement, &server.name, at);
                    let round = self.instrument.round(&stage, server);
                    series.push(round.map(|figures| bound(figures, *placement)));
                    self.progress.inc(1);
                }
            }
            sections.push(Section {
                placement: *placement,
                series,
            });
            bind_this_thread(&self.allowed)?;
        }
        Ok(())
    }

    /// The bench itself keeps off the one core that everybody else shares.
    fn step_aside(&self, cores: &Cores) -> Result<(), BenchError> {
        if let (true, Some(last)) = (cores.router == cores.clients, self.allowed.last())
            && !cores.router.contains(last)
        {
            bind_this_thread(&[*last])?;
        }
        Ok(())
    }

    fn announce(&self, placement: Placement, server: &str, at: usize) {
        if io::stderr().is_terminal() {
            let runs = self.options.runs;
            let message = format!("{placement}: {server}, round {}/{runs}", at + 1);
            self.progress.set_message(message);
        }
    }

    fn print(
        &self,
        out: &mut impl Write,
        servers: &Servers,
        sections: &[Section],
    ) -> io::Result<()> {
        writeln!(out, "\nMachine: {}", self.machine.line())?;
        writeln!(
            out,
            "Load: {}; {} rounds, median over rounds, below it smallest–largest",
            self.instrument.load(),
            self.options.runs
        )?;
        if let Some(network) = self.network.description() {
            writeln!(out, "Network: {network}")?;
        }
        for section in sections {
            section.print::<I>(out, servers)?;
            // Goals are for the plain loopback.
            if self.network.description().is_none() {
                section.print_goals::<I>(out)?;
            }
        }
        Ok(())
    }

    fn write(&self, servers: &Servers, sections: &[Section]) -> Result<(), BenchError> {
        let Some(path) = &self.options.json else {
            return Ok(());
        };
        let mut settings = self.instrument.settings();
        if let Some(settings) = settings.as_object_mut() {
            settings.insert("runs".to_owned(), json!(self.options.runs));
            settings.insert("servers".to_owned(), json!(servers.notes));
            settings.insert("network".to_owned(), json!(self.network.description()));
        }
        let frame = Frame {
            bench: I::NAME,
            version: &self.options.build.version,
            commit: &self.options.build.commit,
            machine: &self.machine,
            settings,
            results: sections.iter().flat_map(Section::rows::<I>).collect(),
        };
        write(path, &frame)
    }
}

impl Section {
    fn floor(&self) -> Option<&Series> {
        self.series.get(1)
    }

    fn print<I: Instrument>(&self, out: &mut impl Write, servers: &Servers) -> io::Result<()> {
        writeln!(out, "\n{} · {}", I::NAME, self.placement)?;
        let heads = I::COLUMNS.iter().map(|column| column.head);
        let ratios = I::RATIOS.iter().map(|(head, _)| *head);
        let heads: Vec<&str> = ["server"].into_iter().chain(heads).chain(ratios).collect();
        let mut rows = table(&heads);
        for series in &self.series {
            rows.add_row(self.cells::<I>(series));
        }
        for absent in &servers.absent {
            let mut cells = vec![(*absent).to_owned(), "absent".to_owned()];
            cells.resize(heads.len(), UNKNOWN.to_owned());
            rows.add_row(cells);
        }
        writeln!(out, "{}", rows.trim_fmt())?;
        for series in &self.series {
            let cores = |figure| known(series.median(figure), |cores| format!("{cores:.2}"));
            writeln!(
                out,
                "  {}: {} cores busy, the driver {}, the rest of the machine {}",
                series.subject,
                cores(SERVER_BUSY),
                cores(DRIVER_BUSY),
                cores(FOREIGN_BUSY),
            )?;
            let why = series.why();
            if !why.is_empty() {
                writeln!(out, "  not counted: {}: {why}", series.subject)?;
            }
        }
        Ok(())
    }

    fn cells<I: Instrument>(&self, series: &Series) -> Vec<String> {
        let mut cells = vec![series.subject.clone()];
        for (at, column) in I::COLUMNS.iter().enumerate() {
            let mut cell = match column.with_spread {
                true => spread(series.spread(column.figure), column.form),
                false => known(series.median(column.figure), column.form),
            };
            // The first column is the rate.
            if at == 0
                && series
                    .median(DRIVER_IS_BOUND)
                    .is_some_and(|bound| bound > 0.5)
            {
                cell += "\ndriver-bound";
            }
            cells.push(cell);
        }
        for (_, figure) in I::RATIOS {
            let floor = self.floor().filter(|floor| floor.subject != series.subject);
            let ratio = floor.and_then(|floor| series.over(floor, figure));
            cells.push(spread(ratio, |ratio| format!("{ratio:.2}")));
        }
        cells
    }

    /// Only our own testee has goals, and only on a machine that had nothing else to do.
    fn print_goals<I: Instrument>(&self, out: &mut impl Write) -> io::Result<()> {
        let (Some(subject), Some(floor)) = (self.series.first(), self.floor()) else {
            return Ok(());
        };
        if subject.subject != "crosstie" || self.placement == Placement::Free {
            return Ok(());
        }
        let unfit = unfit([subject, floor]);
        let is_bound = [subject, floor].iter().any(|series| {
            series
                .median(DRIVER_IS_BOUND)
                .is_some_and(|bound| bound > 0.5)
        });
        for (what, figure, goal) in I::GOALS {
            let reached = subject.over(floor, figure).map(|ratio| ratio.median);
            let is_rate = figure.ends_with("_per_s");
            let unfit = unfit.or_else(|| (is_rate && is_bound).then_some(DRIVER_BOUND));
            if let Some(verdict) = verdict(what, *goal, reached, unfit) {
                writeln!(out, "  goal: {verdict}")?;
            }
        }
        Ok(())
    }

    fn rows<I: Instrument>(&self) -> Vec<Row> {
        let mut rows = Vec::new();
        for series in &self.series {
            let mut own = series.rows(I::NAME, Some(&self.placement.to_string()));
            let floor = self.floor().filter(|floor| floor.subject != series.subject);
            if let (Some(floor), Some(summary)) = (floor, own.first_mut())
                && let Some(metrics) = summary.metrics.as_object_mut()
            {
                for (_, figure) in I::RATIOS {
                    if let Some(ratio) = series.over(floor, figure) {
                        metrics.insert(format!("{figure}_over_floor"), json!(ratio.median));
                    }
                }
            }
            rows.append(&mut own);
        }
        rows
    }
}

const DRIVER_IS_BOUND: &str = "driver_bound";

/// With whether something else than the server limited the rate. On one core for both it is that
/// core which must be busy.
fn bound(figures: Figures, placement: Placement) -> Figures {
    let Some(mut busy) = figures.value(SERVER_BUSY) else {
        return figures;
    };
    if placement == Placement::SameCore {
        busy += figures.value(DRIVER_BUSY).unwrap_or(0.0);
    }
    figures.with(DRIVER_IS_BOUND, f64::from(u8::from(busy < BUSY)))
}

/// The times of one kind, under names that begin with theirs.
pub(crate) fn with_times(mut figures: Figures, name: &str, times: &Latencies) -> Figures {
    let summary = times.summary();
    for (quantile, us) in [
        ("avg", summary.avg),
        ("p50", summary.p50),
        ("p99", summary.p99),
        ("p99_9", summary.p99_9),
        ("max", summary.max),
    ] {
        figures.set(&format!("{name}_{quantile}_us"), us);
    }
    figures
}

/// How long workers may take to start, and to finish.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);
