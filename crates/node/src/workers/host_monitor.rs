//! Host monitors: publish the machine's load, read from `/proc`.

use std::fs;
use std::sync::Arc;
use std::time::Duration;

use crosstie_client::{Client, args};
use crosstie_config::Json;
use parking_lot::Mutex;
use serde_json::{Map, json};
use tokio::time::MissedTickBehavior;

use crate::task::Task;

/// A host monitor, active or paused.
pub(crate) struct HostMonitor {
    pub(crate) interval: Duration,
    /// The last values.
    pub(crate) last: Arc<Mutex<Json>>,
    monitoring: Option<Task>,
}

impl HostMonitor {
    pub(crate) fn start(worker: &str, interval: Duration, client: Option<Client>) -> Self {
        let mut monitor = Self {
            interval,
            last: Arc::new(Mutex::new(Json::Null)),
            monitoring: None,
        };
        monitor.resume(worker, client);
        monitor
    }

    /// Starts to read; `false` if it is active already.
    pub(crate) fn resume(&mut self, worker: &str, client: Option<Client>) -> bool {
        if self.monitoring.is_some() {
            return false;
        }
        let topic = format!("crossbar.worker.{worker}.on_stats");
        let (interval, last) = (self.interval, Arc::clone(&self.last));
        self.monitoring = Some(Task::spawn(async move {
            let mut ticks = tokio::time::interval(interval);
            ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
            loop {
                ticks.tick().await;
                let stats = host_stats();
                last.lock().clone_from(&stats);
                if let Some(client) = &client {
                    // Between two sessions no subscriber exists.
                    let _ = client.publish(&topic, args![stats]).await;
                }
            }
        }));
        true
    }

    /// Stops reading; `false` if it is paused already.
    pub(crate) fn pause(&mut self) -> bool {
        self.monitoring.take().is_some()
    }

    pub(crate) fn is_monitoring(&self) -> bool {
        self.monitoring.is_some()
    }
}

/// The machine's present values.
pub(crate) fn host_stats() -> Json {
    let read = |name: &str| fs::read_to_string(format!("/proc/{name}")).unwrap_or_default();
    let now = timestamp();
    json!({
        "timestamp": now,
        "cpu": cpu(&read("stat")),
        "memory": memory(&read("meminfo")),
        "load": load(&read("loadavg")),
        "network": network(&read("net/dev")),
    })
}

/// The machine's memory.
pub(crate) fn total_memory_bytes() -> Option<u64> {
    let meminfo = fs::read_to_string("/proc/meminfo").ok()?;
    memory(&meminfo)["total"].as_u64()
}

/// Seconds since 1970.
fn timestamp() -> f64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    since.map_or(0.0, |since| since.as_secs_f64())
}

/// Ticks of all cores since the machine started, by kind.
fn cpu(stat: &str) -> Json {
    const NAMES: [&str; 8] = [
        "user", "nice", "system", "idle", "iowait", "irq", "softirq", "steal",
    ];
    let mut stats = Map::new();
    let all = stat.lines().find_map(|line| line.strip_prefix("cpu "));
    let ticks = all.unwrap_or_default().split_whitespace();
    for (name, ticks) in NAMES.iter().zip(ticks) {
        if let Ok(ticks) = ticks.parse::<u64>() {
            stats.insert((*name).to_owned(), ticks.into());
        }
    }
    let cores = stat
        .lines()
        .filter(|line| line.starts_with("cpu") && !line.starts_with("cpu "));
    stats.insert("cores".to_owned(), cores.count().into());
    Json::Object(stats)
}

/// In bytes.
fn memory(meminfo: &str) -> Json {
    const NAMES: [(&str, &str); 6] = [
        ("MemTotal", "total"),
        ("MemFree", "free"),
        ("MemAvailable", "available"),
        ("Cached", "cached"),
        ("SwapTotal", "swap_total"),
        ("SwapFree", "swap_free"),
    ];
    let mut stats = Map::new();
    for line in meminfo.lines() {
        let Some((key, rest)) = line.split_once(':') else {
            continue;
        };
        let name = NAMES.iter().find(|(wanted, _)| *wanted == key);
        let kibibytes = rest.split_whitespace().next().map(str::parse::<u64>);
        if let (Some((_, name)), Some(Ok(kibibytes))) = (name, kibibytes) {
            stats.insert((*name).to_owned(), (kibibytes * 1024).into());
        }
    }
    Json::Object(stats)
}

/// Averages over 1, 5 and 15 minutes, and the numbers of running and of all processes.
fn load(loadavg: &str) -> Json {
    let mut words = loadavg.split_whitespace();
    let mut mean = || words.next().and_then(|word| word.parse::<f64>().ok());
    let (one, five, fifteen) = (mean(), mean(), mean());
    let (running, all) = words.next().and_then(|word| word.split_once('/')).unzip();
    let count = |word: Option<&str>| word.and_then(|word| word.parse::<u64>().ok());
    json!({
        "mean_1m": one,
        "mean_5m": five,
        "mean_15m": fifteen,
        "running": count(running),
        "tasks": count(all),
    })
}

/// Bytes and packets of each interface since the machine started.
fn network(dev: &str) -> Json {
    let mut stats = Map::new();
    for line in dev.lines() {
        let Some((name, counters)) = line.split_once(':') else {
            continue;
        };
        let counters: Vec<u64> = counters
            .split_whitespace()
            .map_while(|word| word.parse().ok())
            .collect();
        if let [
            bytes_in,
            packets_in,
            _,
            _,
            _,
            _,
            _,
            _,
            bytes_out,
            packets_out,
            ..,
        ] = counters[..]
        {
            let interface = json!({
                "bytes_in": bytes_in,
                "packets_in": packets_in,
                "bytes_out": bytes_out,
                "packets_out": packets_out,
            });
            stats.insert(name.trim().to_owned(), interface);
        }
    }
    Json::Object(stats)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernels_files_are_read() {
        let stat = "cpu  1 2 3 4 5 6 7 8 0 0\ncpu0 1 2 3 4 5 6 7 8 0 0\ncpu1 0 0\nintr 5\n";
        let expected = json!({
            "user": 1, "nice": 2, "system": 3, "idle": 4, "iowait": 5, "irq": 6, "softirq": 7,
            "steal": 8, "cores": 2,
        });
        assert_eq!(cpu(stat), expected);
        let meminfo = "MemTotal:       16 kB\nMemFree: 2 kB\nHugePages_Total:  0\nCached: x kB\n";
        assert_eq!(memory(meminfo), json!({"total": 16384, "free": 2048}));
        let expected = json!({
            "mean_1m": 0.5, "mean_5m": 1.25, "mean_15m": 2.0, "running": 3, "tasks": 400,
        });
        assert_eq!(load("0.50 1.25 2.00 3/400 12345\n"), expected);
        let dev =
            "Inter-| Receive | Transmit\n face |bytes\n  lo: 10 2 0 0 0 0 0 0 30 4 0 0 0 0 0 0\n";
        let expected = json!({
            "lo": {"bytes_in": 10, "packets_in": 2, "bytes_out": 30, "packets_out": 4},
        });
        assert_eq!(network(dev), expected);
    }

    #[test]
    fn unreadable_files_yield_no_values() {
        for text in ["", "\n", "cpu", "cpu \n", ":", "a:b\n", "1/2"] {
            cpu(text);
            memory(text);
            load(text);
            network(text);
        }
    }
}
