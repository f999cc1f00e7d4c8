//! `bench handshake URL …`: one run against any WebSocket server, like wsperf. The log goes to the requested file, and
//! everything for people to standard error.

use std::fs::{self, OpenOptions};
use std::io::{self, BufWriter, IsTerminal, Write};

use indicatif::{ProgressBar, ProgressStyle};
use rustix::time::{ClockId, clock_gettime};

use super::analysis::Analysis;
use super::opening::Target;
use super::options::HandshakeOptions;
use super::probe::probe;
use super::run::{Run, RunOptions, run};
use crate::error::BenchError;
use crate::report::table::{number, thousands};
use crate::subject::Url;

/// Makes the run and writes its log. Returns whether every connection succeeded.
pub fn handshake_log(
    options: &HandshakeOptions,
    url: &Url,
    load: RunOptions,
) -> Result<bool, BenchError> {
    let target = Target::new(url).map_err(|error| BenchError::Options(error.to_string()))?;
    load.check()?;
    // An unwritable file is reported before the run; its old content is kept until the new one is complete.
    let file = match &options.output {
        None => None,
        Some(path) => {
            let opened = OpenOptions::new()
                .create(true)
                .truncate(false)
                .write(true)
                .open(path);
            let file = opened.map_err(|source| BenchError::Report {
                path: path.clone(),
                source,
            });
            Some(file?)
        }
    };
    let patience = std::time::Duration::from_secs_f64(load.timeout_s);
    probe(&target, patience).map_err(|error| BenchError::Options(error.to_string()))?;
    let progress = progress(load.connections);
    let before = Cpu::now();
    let run = run(&target, &load, &mut |done| {
        progress.set_position(done);
    })?;
    let cpu = Cpu::now().since(before);
    progress.finish_and_clear();
    match file {
        Some(file) => {
            file.set_len(0)?;
            run.log.write(&mut BufWriter::new(file))?;
        }
        None => run.log.write(&mut BufWriter::new(io::stdout().lock()))?,
    }
    say(&mut io::stderr(), &target, &load, &run, cpu)?;
    Ok(run.fault().is_none())
}

fn progress(connections: u64) -> ProgressBar {
    if !io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let style = ProgressStyle::with_template("{bar:30} {human_pos}/{human_len} {per_sec}, {eta}");
    ProgressBar::new(connections).with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()))
}

fn say(
    out: &mut impl Write,
    target: &Target,
    load: &RunOptions,
    run: &Run,
    cpu: Cpu,
) -> io::Result<()> {
    let analysis = Analysis::of(std::slice::from_ref(&run.log));
    writeln!(
        out,
        "{}: {} of {} connections succeeded in {:.3} s, {} handshakes/s; opening handshake {} ms \
         at the median",
        target.url(),
        thousands(analysis.success as f64),
        thousands(load.connections as f64),
        analysis.duration_us as f64 / 1e6,
        thousands(analysis.handshakes_per_s()),
        analysis
            .median_ms()
            .map_or_else(|| "–".to_owned(), |ms| format!("{ms:.1}")),
    )?;
    writeln!(
        out,
        "driver: {:.3} s user, {:.3} s system, {} µs per connection",
        cpu.user_s,
        cpu.system_s,
        number((cpu.user_s + cpu.system_s) * 1e6 / analysis.total.max(1) as f64),
    )?;
    for (why, count) in &run.failures {
        writeln!(out, "failed: {} × {why}", thousands(*count as f64))?;
    }
    if run.left_open > 0 {
        writeln!(
            out,
            "{} connections were closed by us, {} s after both close frames: RFC 6455 section 7.1.1 \
             leaves that to the server",
            thousands(run.left_open as f64),
            load.timeout_s,
        )?;
    }
    if let Some(why) = &run.gave_up {
        let missing = load.connections - analysis.total as u64;
        writeln!(
            out,
            "gave up with {} connections not begun: {why}",
            thousands(missing as f64)
        )?;
    }
    Ok(())
}

/// Processor time of this process, ended threads included.
#[derive(Clone, Copy, Debug, Default)]
struct Cpu {
    user_s: f64,
    system_s: f64,
}

impl Cpu {
    /// The sum is exact; the kernel divides it by ticks.
    fn now() -> Self {
        let clock = clock_gettime(ClockId::ProcessCPUTime);
        let sum_s = clock.tv_sec as f64 + clock.tv_nsec as f64 / 1e9;
        let stat = fs::read_to_string("/proc/self/stat").unwrap_or_default();
        let (user, system) = parse_ticks(&stat).unwrap_or((0, 1));
        let user_s = sum_s * user as f64 / (user + system).max(1) as f64;
        Self {
            user_s,
            system_s: sum_s - user_s,
        }
    }

    fn since(self, earlier: Self) -> Self {
        Self {
            user_s: (self.user_s - earlier.user_s).max(0.0),
            system_s: (self.system_s - earlier.system_s).max(0.0),
        }
    }
}

/// User and system time of `/proc/PID/stat`, in ticks.
fn parse_ticks(stat: &str) -> Option<(u64, u64)> {
    let mut fields = stat.rsplit_once(')')?.1.split_ascii_whitespace().skip(11);
    Some((fields.next()?.parse().ok()?, fields.next()?.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_read() {
        let stat = "7 (a (b) c) S 1 7 7 0 -1 4194304 5 0 0 0 123 45 0 0 20 0 1 0";
        assert_eq!(parse_ticks(stat), Some((123, 45)));
        assert_eq!(parse_ticks("7 (a)"), None);
    }

    #[test]
    fn processor_time_grows() {
        let before = Cpu::now();
        let mut sum = 0_u64;
        while Cpu::now().since(before).user_s + Cpu::now().since(before).system_s == 0.0 {
            sum = sum.wrapping_add(1);
        }
        assert!(sum < u64::MAX);
    }
}
