//! The one loop of all instruments, and its output: tables, goals, a results file.
//!
//! ```text
//! for each case and placement
//!     for each round      subject ▶ floor ▶ peer ▶ subject ▶ floor ▶ peer ▶ …
//! ```

use std::io::{self, Write};

use serde_json::{Value, json};

use super::busy::Busy;
use super::goals::{Verdict, judge};
use super::instrument::{Instrument, Subject, Wanted};
use super::section::{OWN, Section};
use super::site::{Site, Stage};
use crate::error::BenchError;
use crate::figures::{DRIVER_BOUND, Series};
use crate::machine::{CpuTime, Placement, bind_this_thread};
use crate::report::json::{Frame, Row, write};
use crate::report::table::{UNKNOWN, table};

/// An instrument's results, as in the results file.
#[derive(Clone, Debug, PartialEq)]
struct Report {
    rows: Vec<Row>,
    verdicts: Vec<Verdict>,
}

impl Report {
    fn is_valid(&self) -> bool {
        !self.rows.is_empty() && !self.rows.iter().any(Row::has_failed)
    }
}

/// Measures, prints to standard output, and writes the results file if requested. Results from before an error are
/// printed and written all the same. Returns true if there are results, no round of any subject failed, and every
/// requested peer is installed.
pub(crate) fn run<I: Instrument>(mut instrument: I) -> Result<bool, BenchError> {
    instrument.common().check()?;
    let site = Site::new(instrument.common(), !(I::IS_SINGLE && I::SPEAKS))?;
    let placements = instrument.common().placements(&site.allowed, I::PLACEMENTS);
    let placements = match I::IS_PLACED {
        true => placements,
        false => I::PLACEMENTS.to_vec(),
    };
    instrument.start(&site)?;
    let wanted = match placements.is_empty() {
        true => instrument.sections(&[None])?,
        false => {
            let placed: Vec<_> = placements.iter().copied().map(Some).collect();
            instrument.sections(&placed)?
        }
    };
    let mut run = Run {
        instrument,
        site,
        placements,
        sections: Vec::new(),
        printed: 0,
        has_warned: false,
    };
    run.print_notes()?;
    let outcome = run.measure_all(wanted);
    run.site.progress.finish_and_clear();
    bind_this_thread(&run.site.allowed)?;
    run.print_tables(true)?;
    let report = run.report();
    run.write(&report)?;
    outcome?;
    Ok(report.is_valid() && run.instrument.testbed().absent.is_empty())
}

struct Run<I: Instrument> {
    instrument: I,
    site: Site,
    placements: Vec<Placement>,
    sections: Vec<Section<I::Case>>,
    /// Sections whose table has been printed.
    printed: usize,
    /// About idle processes.
    has_warned: bool,
}

impl<I: Instrument> Run<I> {
    fn measure_all(&mut self, wanted: Vec<Wanted<I::Case>>) -> Result<(), BenchError> {
        let count = wanted.len();
        for (case, placement) in wanted {
            if self.site.stop.is_wished() {
                break;
            }
            self.measure(case, placement, count)?;
            if !I::SPEAKS {
                self.print_tables(false)?;
            }
        }
        Ok(())
    }

    /// All rounds of one case in one placement.
    fn measure(
        &mut self,
        case: I::Case,
        placement: Option<Placement>,
        of: usize,
    ) -> Result<(), BenchError> {
        if let Some(why) = self.instrument.left_out(&case) {
            let mut series = Series::new(OWN);
            series.suspect = Some(why);
            self.sections.push(Section {
                case,
                placement,
                server_cores: 0,
                series: vec![series],
                said: Vec::new(),
            });
            return Ok(());
        }
        let stage = self.site.stage(placement, self.instrument.threads())?;
        let mut subjects = self.instrument.subjects(&stage, &case)?;
        let mut section = Section {
            case,
            placement,
            server_cores: stage.cores.router.len(),
            series: subjects.iter().map(|one| Series::new(one.name())).collect(),
            said: Vec::new(),
        };
        if self.sections.is_empty() {
            self.estimate(of * subjects.len());
        }
        let before = CpuTime::of(&self.site.pids);
        let outcome = take_turns(&mut self.instrument, stage, &mut section, &mut subjects);
        self.warn_of_idle_processes(&before);
        let stage = self.site.stage(placement, self.instrument.threads())?;
        self.instrument.end(&stage, &mut section, subjects);
        // A subject without a turn has no results.
        section.series.retain(|series| !series.rounds.is_empty());
        if !section.series.is_empty() {
            let beside = self.instrument.beside(&section);
            self.sections.push(section);
            self.sections.extend(beside);
        }
        outcome
    }

    /// A process that used no processor did not serve the URL: its figures would be those of another process.
    fn warn_of_idle_processes(&mut self, before: &CpuTime) {
        let named = &self.instrument.common().pids;
        let is_idle = CpuTime::of(&self.site.pids).since(before) == 0;
        if named.is_empty() || !is_idle || self.has_warned {
            return;
        }
        let named: Vec<String> = named.iter().map(|pid| format!("--pid {pid}")).collect();
        self.has_warned = true;
        self.site.say(&format!(
            "warning: {}: no processor time in these processes and their descendants during the \
             measurement, so their figures are unknown; name the process that serves the URL",
            named.join(" ")
        ));
    }

    fn estimate(&self, subjects: usize) {
        let common = self.instrument.common();
        let rounds = subjects * common.runs;
        let seconds = common.seconds + common.warm_up_seconds + self.instrument.seconds_beside();
        let progress = &self.site.progress;
        progress.set_length(rounds as u64);
        progress.set_message(format!("about {:.0} s in all", rounds as f64 * seconds));
    }

    fn print_notes(&self) -> io::Result<()> {
        for note in self.instrument.testbed().notes {
            writeln!(io::stdout(), "{note}")?;
        }
        Ok(())
    }

    fn print_header(&self) -> io::Result<()> {
        let mut out = io::stdout();
        let apart = if I::SPEAKS { "\n" } else { "" };
        writeln!(out, "{apart}Machine: {}", self.site.machine.line())?;
        for line in self.instrument.header(&self.site) {
            writeln!(out, "{line}")?;
        }
        if let Some(network) = self.site.network.description() {
            writeln!(out, "Network: {network}")?;
        }
        Ok(())
    }

    /// Prints the tables that are complete; with `with_last` also the last one, to which nothing will be added.
    fn print_tables(&mut self, with_last: bool) -> io::Result<()> {
        while self.printed < self.sections.len() {
            let rest = &self.sections[self.printed..];
            let title = self.instrument.title(&rest[0]);
            let same = |section: &&Section<I::Case>| self.instrument.title(section) == title;
            let count = rest.iter().take_while(same).count();
            if count == rest.len() && !with_last {
                break;
            }
            let sections: Vec<&Section<I::Case>> = rest[..count].iter().collect();
            let text = self.table(&title, &sections);
            self.site.progress.suspend(|| {
                if self.printed == 0 {
                    self.print_header()?;
                }
                writeln!(io::stdout(), "{text}")
            })?;
            self.printed += count;
        }
        Ok(())
    }

    fn table(&self, title: &str, sections: &[&Section<I::Case>]) -> String {
        let mut lines = vec![format!("\n{title}")];
        lines.extend(self.instrument.above(&self.site, sections));
        let own = self.instrument.table(sections);
        let rows = own.unwrap_or_else(|| self.rows_of_subjects(sections));
        if let Some((heads, rows)) = rows.split_first() {
            let heads: Vec<&str> = heads.iter().map(String::as_str).collect();
            let mut table = table(&heads);
            table.add_rows(rows);
            lines.push(table.trim_fmt());
        }
        lines.extend(self.instrument.below(&self.site, sections));
        for section in sections {
            for series in &section.series {
                let why = series.why();
                if !why.is_empty() {
                    let of = match sections.len() {
                        1 => String::new(),
                        _ => format!("{}: ", section.case),
                    };
                    lines.push(format!("  not counted: {of}{}: {why}", series.subject));
                }
            }
        }
        let verdicts = sections.iter().flat_map(|section| self.verdicts(section));
        lines.extend(verdicts.map(|verdict| format!("  goal: {verdict}")));
        lines.join("\n")
    }

    /// The heads, then a row for each subject, and for each absent peer.
    fn rows_of_subjects(&self, sections: &[&Section<I::Case>]) -> Vec<Vec<String>> {
        let Some(first) = sections.first() else {
            return Vec::new();
        };
        let columns = self.instrument.columns(&first.case);
        let heads = columns.iter().map(|column| column.head.clone());
        let heads: Vec<String> = ["subject".to_owned()].into_iter().chain(heads).collect();
        let width = heads.len();
        let mut rows = vec![heads];
        for section in sections.iter().filter(|one| self.instrument.has_rows(one)) {
            for series in &section.series {
                let is_bound = self.is_bound(section, series) == Some(true);
                let bound = is_bound.then_some(self.limiter());
                let cells = columns
                    .iter()
                    .map(|column| column.cell(section, series, bound));
                rows.push([series.subject.clone()].into_iter().chain(cells).collect());
            }
        }
        for absent in self.instrument.testbed().absent {
            let mut cells = vec![absent, "absent".to_owned()];
            cells.resize(width, UNKNOWN.to_owned());
            rows.push(cells);
        }
        rows
    }

    /// The limiting factor of a rate, other than a subject.
    fn limiter(&self) -> &'static str {
        match self.instrument.common().network.link {
            Some(_) => "link-bound",
            None => DRIVER_BOUND,
        }
    }

    fn is_bound(&self, section: &Section<I::Case>, series: &Series) -> Option<bool> {
        self.instrument.limit(section, series)?.is_elsewhere(series)
    }

    /// Goals are for our own subject, on the plain loopback. Placements by the scheduler change a figure with the
    /// machine's load: they are no goal's basis, unless that is the intent.
    fn verdicts(&self, section: &Section<I::Case>) -> Vec<Verdict> {
        let is_ours = section.own().is_some_and(|own| own.subject == OWN);
        let is_free = I::IS_PLACED && section.placement == Some(Placement::Free);
        if !is_ours || is_free || self.site.network.description().is_some() {
            return Vec::new();
        }
        let goals = self.instrument.goals(section, &self.sections);
        let is_bound = |series: &Series| self.is_bound(section, series) == Some(true);
        let verdicts = goals
            .iter()
            .filter_map(|goal| judge(section, goal, is_bound));
        verdicts.collect()
    }

    fn report(&self) -> Report {
        let rows = self.sections.iter().flat_map(|section| {
            let more = |series: &Series| self.instrument.comparisons(&self.site, section, series);
            let is_bound = |series: &Series| self.is_bound(section, series);
            section.rows(I::IS_SINGLE, more, is_bound)
        });
        Report {
            rows: rows.collect(),
            verdicts: self
                .sections
                .iter()
                .flat_map(|one| self.verdicts(one))
                .collect(),
        }
    }

    fn write(&self, report: &Report) -> Result<(), BenchError> {
        let common = self.instrument.common();
        let Some(path) = &common.json else {
            return Ok(());
        };
        let mut settings = self.instrument.settings(&self.site);
        if let Value::Object(settings) = &mut settings {
            if let Some((name, servers)) = self.instrument.testbed().settings {
                settings.insert(name.to_owned(), servers);
            }
            if I::IS_PLACED {
                let placements = self.placements.iter().map(ToString::to_string);
                settings.insert("placements".to_owned(), placements.collect());
            }
            settings.insert("network".to_owned(), json!(self.site.network.description()));
            if !I::IS_SINGLE {
                settings.insert("runs".to_owned(), json!(common.runs));
            }
            if !I::IS_SINGLE && I::IS_TIMED {
                settings.insert("seconds".to_owned(), json!(common.seconds));
                let warm_up_seconds = json!(common.warm_up_seconds);
                settings.insert("warm_up_seconds".to_owned(), warm_up_seconds);
            }
        }
        let frame = Frame {
            bench: I::NAME,
            version: &common.build.version,
            commit: &common.build.commit,
            machine: &self.site.machine,
            settings,
            results: report.rows.clone(),
            verdicts: report.verdicts.clone(),
        };
        write(path, &frame)
    }
}

/// The rounds of one section. An end is the last fault's; the results until then stay.
fn take_turns<I: Instrument>(
    instrument: &mut I,
    mut stage: Stage<'_>,
    section: &mut Section<I::Case>,
    subjects: &mut [I::Subject],
) -> Result<(), BenchError> {
    let (runs, site) = (instrument.common().runs, stage.site);
    let title = section.title();
    for at in 0..runs {
        stage.at = at;
        for (subject, series) in subjects.iter_mut().zip(&mut section.series) {
            if site.stop.is_wished() {
                return Ok(());
            }
            let has_failed = series.rounds.iter().any(Result::is_err);
            if !(I::GIVES_UP && has_failed) {
                let name = subject.name();
                site.announce(format!("{title}: {name}, round {}/{runs}", at + 1));
                let busy = Busy::now(site);
                let mut round = instrument.round(&stage, &section.case, subject);
                busy.complete(site, &mut round);
                let end = round.as_mut().err().and_then(|fault| fault.end.take());
                if let Some(end) = end {
                    return Err(*end);
                }
                match round {
                    // The results of a single round are shown even if it does not count.
                    Err(fault) if I::IS_SINGLE && !fault.found.is_empty() => {
                        series.suspect = Some(fault.why);
                        series.take(Ok(*fault.found));
                    }
                    round => series.take(round),
                }
            }
            site.progress.inc(1);
        }
    }
    Ok(())
}
