//! A node inside another program leaves no thread, no descriptor and no signal handler behind: one test, alone in its
//! process.

use std::collections::BTreeSet;
use std::fs;
use std::time::{Duration, Instant};

use crosstie_node::test_node;

/// The names of a folder of /proc/self.
fn names(folder: &str) -> BTreeSet<String> {
    let entries = fs::read_dir(format!("/proc/self/{folder}")).expect("Linux");
    let names = entries.filter_map(|entry| Some(entry.ok()?.file_name().to_str()?.to_owned()));
    names.collect()
}

/// The signals with handlers, as the kernel lists them.
fn caught_signals() -> String {
    let status = fs::read_to_string("/proc/self/status").expect("Linux");
    let line = status.lines().find(|line| line.starts_with("SigCgt:"));
    line.expect("Linux").to_owned()
}

#[test]
fn nothing_is_left() {
    // The first runtime of a process makes a pipe for signals that stays.
    drop(test_node().unwrap());
    let (signals, threads, descriptors) = (caught_signals(), names("task"), names("fd").len());
    let nodes = [test_node().unwrap(), test_node().unwrap()];
    assert_eq!(caught_signals(), signals);
    assert!(names("task").len() > threads.len());
    drop(nodes);
    assert_eq!(caught_signals(), signals);
    // A thread that was joined may be listed for a moment.
    let deadline = Instant::now() + Duration::from_secs(60);
    loop {
        let (now, open) = (names("task"), names("fd").len());
        if now.is_subset(&threads) && open <= descriptors {
            break;
        }
        assert!(
            Instant::now() < deadline,
            "threads {now:?}, before {threads:?}; {open} descriptors, before {descriptors}"
        );
        std::thread::yield_now();
    }
}
