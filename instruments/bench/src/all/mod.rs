//! `bench all`: every bench on a schedule, each as a process of its own with a results file of its own. A failure is
//! reported and the rest goes on; the report is made last.
//!
//! Each command is printed before it runs, so that a reader can repeat it alone.

mod schedule;

use schedule::{Length, PEERS, Step, steps};

use std::fs;
use std::io::{self, IsTerminal, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ExitStatus};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use crate::error::BenchError;
use crate::machine::allowed_cores;
use crate::process::{Place, Stop};
use crate::subject::guarded;

/// Run every bench as a process of its own, print each command so that it can be repeated, and make a report of the
/// results files. A bench that fails is reported at the end; the others run.
#[derive(Clone, Debug, clap::Args)]
pub struct AllOptions {
    /// About 9 minutes, longer with peers: checks that everything works, and gives approximate figures [default].
    #[arg(long, conflicts_with = "full")]
    short: bool,
    /// About an hour, longer with peers: figures that are worth publishing.
    #[arg(long)]
    full: bool,
    /// Directory of the results files and report.html; existing files of these names are overwritten.
    #[arg(long = "out", default_value = "results", value_name = "DIRECTORY")]
    directory: PathBuf,
    /// crossbar, autobahn, netserver, nginx, mosquitto, mochi or rabbitmq: measured by each bench that can start it; may be repeated.
    #[arg(long = "peer", value_name = "PEER")]
    peers: Vec<String>,
    /// Only these steps, by the names of their results files.
    #[arg(long, value_delimiter = ',', value_name = "STEP,…")]
    only: Vec<String>,
    /// Print the commands and their approximate durations, and run none.
    #[arg(long = "list")]
    is_list: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Outcome {
    Counted,
    /// It ran, and some of its figures do not count.
    NotCounted,
    Failed(String),
}

/// Runs the schedule, then the report. Returns true if everything ran and counts. A stop request ends the running step;
/// the report then covers the results so far.
pub fn all(options: &AllOptions, stop: &Stop) -> Result<bool, BenchError> {
    let steps = chosen(options)?;
    if options.is_list {
        for step in &steps {
            writeln!(io::stdout(), "{}", step.command(&options.directory))?;
        }
        writeln!(io::stderr(), "about {} min", minutes(&steps))?;
        return Ok(true);
    }
    let executable = std::env::current_exe()?;
    fs::create_dir_all(&options.directory)?;
    let place = Place::on(&allowed_cores()?);
    let mut out = io::stdout();
    let mut outcomes = Vec::new();
    for (at, step) in steps.iter().enumerate() {
        if stop.is_wished() {
            break;
        }
        announce(at + 1, steps.len(), minutes(&steps[at..]));
        let file = options.directory.join(step.file());
        writeln!(out, "\n$ {}", step.command(&options.directory))?;
        out.flush()?;
        // An earlier schedule's results must not pass for this one's.
        let _ = fs::remove_file(&file);
        let arguments = step.arguments(&options.directory);
        let began = Instant::now();
        let outcome = run(&executable, &place, &arguments, step.patience(), stop);
        outcomes.push((step, outcome, began.elapsed(), file));
    }
    let files = outcomes.iter().map(|(.., file)| file);
    let files: Vec<&Path> = files
        .filter(|file| file.is_file())
        .map(PathBuf::as_path)
        .collect();
    let page = options.directory.join("report.html");
    let reported = report(&mut out, &executable, &place, &files, &page)?;
    sum_up(&mut out, &outcomes)?;
    writeln!(out, "report: {}", describe(&reported, &page))?;
    let counted = outcomes
        .iter()
        .all(|(_, outcome, ..)| *outcome == Outcome::Counted);
    Ok(counted && reported == Outcome::Counted && !stop.is_wished())
}

fn chosen(options: &AllOptions) -> Result<Vec<Step>, BenchError> {
    if let Some(unknown) = options
        .peers
        .iter()
        .find(|peer| !PEERS.contains(&peer.as_str()))
    {
        let known = PEERS.join(", ");
        let why = format!("--peer {unknown}: no bench knows it; expected one of {known}");
        return Err(BenchError::Options(why));
    }
    let length = match options.full {
        true => Length::Full,
        false => Length::Short,
    };
    let mut steps = steps(length, &options.peers);
    let names: Vec<&str> = steps.iter().map(|step| step.name).collect();
    if let Some(unknown) = options
        .only
        .iter()
        .find(|only| !names.contains(&only.as_str()))
    {
        let known = names.join(", ");
        let why = format!("--only {unknown}: no such step; expected some of {known}");
        return Err(BenchError::Options(why));
    }
    if !options.only.is_empty() {
        steps.retain(|step| options.only.iter().any(|only| only == step.name));
    }
    Ok(steps)
}

fn minutes(steps: &[Step]) -> u64 {
    let seconds: u64 = steps.iter().map(|step| step.seconds).sum();
    seconds.div_ceil(60)
}

/// A progress line, for terminals.
fn announce(step: usize, steps: usize, minutes: u64) {
    if io::stderr().is_terminal() {
        let _ = writeln!(
            io::stderr(),
            "\nstep {step} of {steps}, about {minutes} min left"
        );
    }
}

/// Runs one command to its end; its output goes to this process's own.
fn run(
    executable: &Path,
    place: &Place,
    arguments: &[String],
    patience: Duration,
    stop: &Stop,
) -> Outcome {
    let mut command = guarded(executable, place, executable);
    // A terminal's Ctrl-C reaches this process alone, which forwards it once: a second one would end the step before
    // its file is written.
    let spawned = command.args(arguments).process_group(0).spawn();
    match spawned.and_then(|child| wait(child, patience, stop)) {
        Err(error) => Outcome::Failed(error.to_string()),
        Ok(End::Late) => Outcome::Failed(format!("interrupted after {} s", patience.as_secs())),
        Ok(End::Stopped) => Outcome::Failed("interrupted".to_owned()),
        Ok(End::Killed) => Outcome::Failed("killed: SIGINT did not end it".to_owned()),
        Ok(End::Own(status)) => match status.code() {
            Some(0) => Outcome::Counted,
            Some(1) => Outcome::NotCounted,
            _ => Outcome::Failed(status.to_string()),
        },
    }
}

/// The end of a step.
enum End {
    Own(ExitStatus),
    /// Ended by SIGINT, because it took too long or a stop was requested.
    Late,
    Stopped,
    /// Killed, because SIGINT did not end it.
    Killed,
}

/// After SIGINT, a step finishes its round, stops its servers and writes its results.
const LEAVE_TAKING_MAX: Duration = Duration::from_secs(60);

fn wait(mut child: Child, patience: Duration, stop: &Stop) -> io::Result<End> {
    let deadline = Instant::now() + patience;
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(End::Own(status));
        }
        let is_stopped = stop.is_wished();
        if is_stopped || Instant::now() > deadline {
            return interrupt(child, if is_stopped { End::Stopped } else { End::Late });
        }
        thread::sleep(Duration::from_millis(20));
    }
}

/// Interrupts a bench, so that it reports its results and ends; kills it if it does not.
fn interrupt(mut child: Child, end: End) -> io::Result<End> {
    kill_process(Pid::from_child(&child), Signal::INT)?;
    let deadline = Instant::now() + LEAVE_TAKING_MAX;
    while Instant::now() < deadline {
        if child.try_wait()?.is_some() {
            return Ok(end);
        }
        thread::sleep(Duration::from_millis(20));
    }
    child.kill()?;
    child.wait()?;
    Ok(End::Killed)
}

fn report(
    out: &mut impl Write,
    executable: &Path,
    place: &Place,
    files: &[&Path],
    page: &Path,
) -> io::Result<Outcome> {
    if files.is_empty() {
        return Ok(Outcome::Failed("no bench left any results".to_owned()));
    }
    let mut arguments = vec!["report".to_owned()];
    arguments.extend(files.iter().map(|file| file.display().to_string()));
    arguments.extend(["--output".to_owned(), page.display().to_string()]);
    writeln!(out, "\n$ crosstie {}", arguments.join(" "))?;
    out.flush()?;
    let unstoppable = Stop::default();
    let patience = Duration::from_secs(60);
    Ok(run(executable, place, &arguments, patience, &unstoppable))
}

fn sum_up(
    out: &mut impl Write,
    outcomes: &[(&Step, Outcome, Duration, PathBuf)],
) -> io::Result<()> {
    writeln!(out)?;
    for (step, outcome, took, file) in outcomes {
        let seconds = took.as_secs();
        let told = describe(outcome, file);
        writeln!(out, "{:<18} {seconds:>4} s  {told}", step.name)?;
    }
    Ok(())
}

fn describe(outcome: &Outcome, file: &Path) -> String {
    let kept = match file.is_file() {
        true => file.display().to_string(),
        false => "nothing written".to_owned(),
    };
    match outcome {
        Outcome::Counted => kept,
        Outcome::NotCounted => format!("{kept} (some of it does not count; the report says why)"),
        Outcome::Failed(why) => format!("failed: {why}; {kept}"),
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;
    use std::process::{Command, Stdio};

    use super::*;
    use crate::frame::usual;

    fn options(only: &[&str], peers: &[&str]) -> AllOptions {
        let owned = |names: &[&str]| names.iter().map(ToString::to_string).collect();
        AllOptions {
            directory: PathBuf::from("out"),
            peers: owned(peers),
            only: owned(only),
            ..usual()
        }
    }

    fn list(only: &[&str], peers: &[&str]) -> Result<Vec<String>, BenchError> {
        let options = options(only, peers);
        let commands = chosen(&options)?.into_iter();
        Ok(commands
            .map(|step| step.command(&options.directory))
            .collect())
    }

    #[test]
    fn commands_can_be_repeated() {
        let commands = list(&["footprint"], &[]).unwrap();
        assert_eq!(commands.len(), 1);
        assert!(
            commands[0].starts_with("crosstie bench footprint "),
            "{commands:?}"
        );
        assert!(
            commands[0].ends_with(" --json out/footprint.json"),
            "{commands:?}"
        );
    }

    #[test]
    fn peers_go_to_the_benches_that_know_them() {
        let commands = list(&[], &["netserver"]).unwrap();
        let with_peer = commands.iter().filter(|c| c.contains("--peer netserver"));
        let benches: Vec<&str> = with_peer.filter_map(|c| c.split(' ').nth(2)).collect();
        assert_eq!(benches, ["stream", "stream"]);
    }

    #[test]
    fn unknown_names_are_refused() {
        #[track_caller]
        fn check(only: &[&str], peers: &[&str], expected: &str) {
            let error = list(only, peers).unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        }
        check(
            &["rcp"],
            &[],
            "--only rcp: no such step; expected some of rpc",
        );
        check(&[], &["rabbit"], "--peer rabbit");
    }

    #[test]
    fn a_slow_step_is_interrupted_before_it_is_killed() {
        let stop = Stop::default();
        // A shell makes its background processes ignore SIGINT, which their children inherit.
        let sleeper = || {
            let mut command = Command::new("env");
            command.args(["--default-signal=INT", "sh", "-c", "echo; exec sleep 60"]);
            let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
            let said = child.stdout.as_mut().unwrap();
            said.read_exact(&mut [0]).unwrap();
            child
        };
        let end = wait(sleeper(), Duration::ZERO, &stop).unwrap();
        assert!(matches!(end, End::Late));
        stop.wish();
        let end = wait(sleeper(), Duration::from_secs(60), &stop).unwrap();
        assert!(matches!(end, End::Stopped));
    }

    #[test]
    fn outcomes_are_printed() {
        let place = Place::on(&allowed_cores().unwrap());
        let nowhere = Path::new("/nonexistent/crosstie");
        let stop = Stop::default();
        let outcome = run(nowhere, &place, &[], Duration::from_secs(1), &stop);
        assert!(matches!(outcome, Outcome::Failed(_)));
        let told = describe(&outcome, nowhere);
        assert!(told.ends_with("; nothing written"), "{told}");
    }
}
