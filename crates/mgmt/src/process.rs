//! Figures of the process and its machine.

use std::fs;
use std::path::Path;

use rustix::process::{Resource, getrlimit};

/// Open descriptors, and their maximum.
pub(crate) fn descriptors() -> (u64, u64) {
    let open = fs::read_dir("/proc/self/fd").map_or(0, |entries| entries.count() as u64);
    let max = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
    (open.saturating_sub(1), max)
}

/// Octets of the process in memory.
pub(crate) fn resident_bytes() -> u64 {
    let statm = fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let pages: Option<u64> = field(&statm, 1);
    pages.unwrap_or(0) * rustix::param::page_size() as u64
}

/// Threads of the process, and the most that the machine runs.
pub(crate) fn threads() -> (u64, u64) {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("Threads:"));
    let used = line.and_then(|count| count.trim().parse().ok());
    let max = fs::read_to_string("/proc/sys/kernel/threads-max").unwrap_or_default();
    (used.unwrap_or(1), max.trim().parse().unwrap_or(1 << 20))
}

/// Threads of the machine that are ready to run.
pub(crate) fn ready_threads() -> u64 {
    let text = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let running: Option<String> = field(&text, 3);
    let running = running.and_then(|field| field.split('/').next()?.parse().ok());
    running.unwrap_or(0)
}

pub(crate) fn processors() -> u64 {
    std::thread::available_parallelism().map_or(1, |count| count.get() as u64)
}

/// Free and all bytes of the file system that has this path, or will have it.
pub(crate) fn disk_bytes(path: &Path) -> Option<(u64, u64)> {
    let found = path.ancestors().find_map(|path| {
        let path = match path.as_os_str().is_empty() {
            true => Path::new("."),
            false => path,
        };
        rustix::fs::statvfs(path).ok()
    })?;
    let bytes = |blocks: u64| blocks.saturating_mul(found.f_frsize);
    Some((bytes(found.f_bavail), bytes(found.f_blocks)))
}

fn field<T: std::str::FromStr>(text: &str, number: usize) -> Option<T> {
    text.split_whitespace().nth(number)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_own_process_is_measured() {
        let (open, max) = descriptors();
        assert!(open >= 3 && max >= open);
        let (used, max) = threads();
        assert!(used >= 1 && max >= used);
        assert!(resident_bytes() > 1 << 20);
        assert!(processors() >= 1);
        let missing = Path::new("/nowhere/at/all");
        let (free, total) = disk_bytes(missing).expect("the root is there");
        assert!(free <= total);
    }
}
