//! The machine that a figure belongs to.

pub(crate) mod accounting;
pub(crate) mod placement;

use std::fs;
use std::time::{SystemTime, UNIX_EPOCH};

use rustix::system::uname;
use serde::Serialize;

use crate::machine::accounting::kib_field;

pub(crate) use accounting::{
    CpuTime, Memory, Usage, Used, kernel_memory, process_tree, process_trees, tasks,
};
pub(crate) use placement::{
    Cores, Moved, Placement, allowed_cores, bind_processes, bind_this_thread,
};

/// The properties that a comparison depends on.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Machine {
    pub cpu: String,
    pub cores: usize,
    pub memory_bytes: u64,
    pub os: String,
    pub kernel: String,
    /// Over the last minute, when the bench began: other users of the machine spoil a figure.
    pub load_average: f64,
    pub unix_time_s: u64,
}

impl Machine {
    /// This machine, now. Unknown properties are empty.
    pub(crate) fn now() -> Self {
        let read = |path| fs::read_to_string(path).unwrap_or_default();
        let load_average = read("/proc/loadavg");
        Self {
            cpu: field(&read("/proc/cpuinfo"), "model name", ':'),
            cores: std::thread::available_parallelism().map_or(0, usize::from),
            memory_bytes: kib_field(&read("/proc/meminfo"), "MemTotal:").unwrap_or(0),
            os: field(&read("/etc/os-release"), "PRETTY_NAME", '='),
            kernel: uname().release().to_string_lossy().into_owned(),
            load_average: load_average
                .split_ascii_whitespace()
                .next()
                .and_then(|load| load.parse().ok())
                .unwrap_or(0.0),
            unix_time_s: SystemTime::now()
                .duration_since(UNIX_EPOCH)
                .map_or(0, |since| since.as_secs()),
        }
    }

    pub(crate) fn line(&self) -> String {
        format!(
            "{} cores of {}, {} GiB, {}, Linux {}, load {:.2}",
            self.cores,
            self.cpu,
            self.memory_bytes >> 30,
            self.os,
            self.kernel,
            self.load_average
        )
    }
}

/// The text after `name` and a separator, without quotes.
fn field(text: &str, name: &str, separator: char) -> String {
    text.lines()
        .find_map(|line| {
            line.strip_prefix(name)?
                .trim_start()
                .strip_prefix(separator)
        })
        .map(|value| value.trim().trim_matches('"').to_owned())
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields() {
        #[track_caller]
        fn check(text: &str, name: &str, separator: char, expected: &str) {
            assert_eq!(field(text, name, separator), expected);
        }
        check(
            "vendor_id\t: X\nmodel name\t: Some CPU @ 3 GHz\n",
            "model name",
            ':',
            "Some CPU @ 3 GHz",
        );
        check(
            "PRETTY_NAME=\"Debian 12\"\n",
            "PRETTY_NAME",
            '=',
            "Debian 12",
        );
        check("", "PRETTY_NAME", '=', "");
    }
}
