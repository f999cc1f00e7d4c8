//! Metrics of the process, with the names that all Prometheus exporters use.

use std::fs;

use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::registry::Registry;
use rustix::param::{clock_ticks_per_second, page_size};

/// Registers the values that the system provides; others are absent.
pub(super) fn register(registry: &mut Registry) {
    if let Some(stat) = Stat::read() {
        registry.register(
            "process_cpu_seconds",
            "Processor time of the process, in user and system mode",
            ConstCounter::new(stat.cpu_s),
        );
        gauge(
            registry,
            "process_resident_memory_bytes",
            "Resident memory of the process",
            stat.resident_bytes,
        );
        gauge(
            registry,
            "process_virtual_memory_bytes",
            "Address space of the process",
            stat.virtual_bytes,
        );
        gauge(
            registry,
            "process_threads",
            "Threads of the process",
            stat.threads,
        );
        if let Some(started_s) = boot_time_s().map(|boot_s| boot_s + stat.started_after_boot_s) {
            gauge(
                registry,
                "process_start_time_seconds",
                "Start time of the process, in seconds since 1970",
                started_s,
            );
        }
    }
    if let Some(open) = open_descriptors() {
        gauge(
            registry,
            "process_open_fds",
            "Open file descriptors of the process",
            open,
        );
    }
    if let Some(max) = rustix::process::getrlimit(rustix::process::Resource::Nofile).current {
        gauge(
            registry,
            "process_max_fds",
            "Maximum number of open file descriptors",
            max as f64,
        );
    }
}

fn gauge(registry: &mut Registry, name: &str, help: &str, value: f64) {
    registry.register(name, help, ConstGauge::new(value));
}

/// proc_pid_stat(5).
struct Stat {
    cpu_s: f64,
    threads: f64,
    started_after_boot_s: f64,
    virtual_bytes: f64,
    resident_bytes: f64,
}

impl Stat {
    fn read() -> Option<Self> {
        Self::parse(&fs::read_to_string("/proc/self/stat").ok()?)
    }

    fn parse(text: &str) -> Option<Self> {
        // The name, in brackets, may contain anything.
        let (_, after_name) = text.rsplit_once(')')?;
        let fields: Vec<f64> = after_name
            .split_whitespace()
            .skip(1)
            .map(|field| field.parse().unwrap_or_default())
            .collect();
        // The fourth field of proc_pid_stat(5) is the first here.
        let field = |number: usize| fields.get(number - 4).copied();
        let ticks = clock_ticks_per_second() as f64;
        Some(Self {
            cpu_s: (field(14)? + field(15)?) / ticks,
            threads: field(20)?,
            started_after_boot_s: field(22)? / ticks,
            virtual_bytes: field(23)?,
            resident_bytes: field(24)? * page_size() as f64,
        })
    }
}

/// The boot time of the machine, as `ps` computes it.
fn boot_time_s() -> Option<f64> {
    let stat = fs::read_to_string("/proc/stat").ok()?;
    let line = stat.lines().find_map(|line| line.strip_prefix("btime "))?;
    line.trim().parse().ok()
}

/// Newer kernels report the number as the size of the directory; on older ones the entries are counted.
fn open_descriptors() -> Option<f64> {
    let directory = "/proc/self/fd";
    let told = fs::metadata(directory).ok()?.len();
    if told > 0 {
        return Some(told as f64);
    }
    // The descriptor opened for this is not counted.
    let counted = fs::read_dir(directory).ok()?.count();
    Some(counted.saturating_sub(1) as f64)
}

#[cfg(test)]
mod tests {
    use std::time::{SystemTime, UNIX_EPOCH};

    use super::*;

    #[test]
    fn the_own_process_is_measured() {
        let stat = Stat::read().expect("Linux tells it");
        assert!(stat.threads >= 1.0);
        assert!(stat.resident_bytes > 0.0 && stat.virtual_bytes >= stat.resident_bytes);
        let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("later");
        let started_s = boot_time_s().expect("Linux tells it") + stat.started_after_boot_s;
        assert!(started_s <= now.as_secs_f64() + 1.0);
        assert!(open_descriptors().is_some_and(|open| open >= 3.0));
        assert!(Stat::parse("1 (a) b) S 1").is_none());
    }
}
