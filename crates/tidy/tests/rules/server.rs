//! The weight of the server: the packages that it is made of, and the size of the program.

use std::collections::BTreeSet;
use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crosstie_tidy::root;

/// Packages of the laboratory, which `crosstie-lab` has.
const LABORATORY: [&str; 6] = [
    "crosstie-bench",
    "crosstie-report",
    "hdrhistogram",
    "indicatif",
    "maud",
    "plotters",
];

/// Packages of others that the server is made of. A change that adds one says in its commit what the package is worth.
const PACKAGES_MAX: usize = 170;

/// The largest size of each build, in a file: `scripts/size_budget.tsv`.
const BUDGET: &str = "scripts/size_budget.tsv";

/// The packages that Cargo compiles the server from on this machine, each once.
fn packages() -> BTreeSet<String> {
    let cargo = env::var("CARGO").expect("this runs under Cargo");
    let told = Command::new(cargo)
        .args(["tree", "--offline", "--package", "crosstie"])
        .args(["--edges", "normal", "--prefix", "none", "--format", "{p}"])
        .current_dir(root())
        .output()
        .expect("cargo tree runs");
    assert!(
        told.status.success(),
        "{}",
        String::from_utf8_lossy(&told.stderr)
    );
    let text = String::from_utf8(told.stdout).expect("names are UTF-8");
    let lines = text.lines().map(|line| line.trim_end_matches(" (*)"));
    lines.map(str::to_owned).collect()
}

#[test]
fn the_server_is_made_without_the_laboratory() {
    let packages = packages();
    let names: BTreeSet<_> = packages
        .iter()
        .filter_map(|p| p.split(' ').next())
        .collect();
    assert!(names.contains("crosstie-routing"), "{names:?}");
    for name in LABORATORY {
        assert!(!names.contains(name), "the server is made of {name}");
    }
    // Those of the workspace stand with their folder.
    let others: Vec<_> = packages.iter().filter(|p| !p.contains('/')).collect();
    assert!(
        others.len() <= PACKAGES_MAX,
        "the server is made of {} packages of others, and {PACKAGES_MAX} are the most that there may be: {others:#?}",
        others.len()
    );
}

/// The folder with Cargo's profiles, in which this test lies, too.
fn target() -> PathBuf {
    let own = env::current_exe().expect("this program");
    let folder = own.ancestors().nth(3).expect("target/debug/deps/rules");
    folder.to_owned()
}

/// A profile, and the most bytes of the stripped server.
fn budgets() -> Vec<(String, u64)> {
    let text = fs::read_to_string(root().join(BUDGET)).expect(BUDGET);
    let rows = text.lines().filter(|line| !line.starts_with('#'));
    let row = |line: &str| {
        let (profile, bytes) = line.split_once('\t').expect("a profile and a number");
        (
            profile.to_owned(),
            bytes.parse().expect("a number of bytes"),
        )
    };
    rows.map(row).collect()
}

/// Judges each build that there is: `make build` and `make run` leave one. A build of an older state is judged, too.
#[test]
#[cfg(all(target_arch = "x86_64", target_os = "linux", target_env = "gnu"))]
fn builds_are_within_their_budget() {
    let budgets = budgets();
    let profiles: Vec<_> = budgets
        .iter()
        .map(|(profile, _)| profile.as_str())
        .collect();
    assert_eq!(profiles, ["release", "quick"]);
    let mut too_large = Vec::new();
    for (profile, bytes_max) in &budgets {
        let path = target().join(profile).join("crosstie");
        match size(&path) {
            None => eprintln!("{profile}: not built, not judged"),
            Some(bytes) if bytes <= *bytes_max => eprintln!("{profile}: {bytes} of {bytes_max}"),
            Some(bytes) => too_large.push(format!(
                "{}: {bytes} bytes, and {BUDGET} has {bytes_max}",
                path.display()
            )),
        }
    }
    assert!(too_large.is_empty(), "{}", too_large.join("\n"));
}

fn size(path: &Path) -> Option<u64> {
    path.metadata().ok().map(|found| found.len())
}
