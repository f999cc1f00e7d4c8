//! The instructions of a message in a realm, which do not depend on the machine's other work.
//!
//! `cargo build --profile profiling -p crosstie-routing --example route_speed` makes the build that is judged.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crosstie_tidy::root;

/// The most instructions of each case, in a file.
const BUDGET: &str = "scripts/instruction_budget.tsv";

/// The counted rounds lie between these: what precedes them is in both.
const ROUNDS: [u64; 2] = [10_000, 20_000];

fn program() -> PathBuf {
    let own = env::current_exe().expect("this program");
    let target = own.ancestors().nth(3).expect("target/debug/deps/rules");
    target.join("profiling/examples/route_speed")
}

/// A case, and the most instructions of one round.
fn budgets() -> Vec<(String, u64)> {
    let text = fs::read_to_string(root().join(BUDGET)).expect(BUDGET);
    let rows = text.lines().filter(|line| !line.starts_with('#'));
    let row = |line: &str| {
        let (case, most) = line.split_once('\t').expect("a case and a number");
        let most = most.parse().expect("a number of instructions");
        (case.to_owned(), most)
    };
    rows.map(row).collect()
}

/// The instructions of a whole run; `None` without valgrind.
fn of_run(program: &Path, case: &str, rounds: u64) -> Option<u64> {
    let run = Command::new("valgrind")
        .args(["--tool=callgrind", "--callgrind-out-file=/dev/null"])
        .arg(program)
        .args([case, &rounds.to_string()])
        .output()
        .ok()?;
    let said = String::from_utf8_lossy(&run.stderr);
    let (_, count) = said
        .rsplit_once("refs:")
        .unwrap_or_else(|| panic!("expected a count of valgrind, got: {said}"));
    let digits = count.trim().replace(',', "");
    Some(
        digits
            .parse()
            .unwrap_or_else(|e| panic!("{e}: valgrind said {count}")),
    )
}

/// Judges the build if there is one, and valgrind. A build of an older state is judged, too.
#[test]
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
fn messages_are_within_their_budget() {
    let budgets = budgets();
    assert!(!budgets.is_empty());
    let program = program();
    if !program.exists() {
        eprintln!("{}: not built, not judged", program.display());
        return;
    }
    let mut too_many = Vec::new();
    for (case, most) in budgets {
        let [few, many] = ROUNDS.map(|rounds| of_run(&program, &case, rounds));
        let (Some(few), Some(many)) = (few, many) else {
            eprintln!("valgrind is not installed: not judged");
            return;
        };
        let each = (many - few) / (ROUNDS[1] - ROUNDS[0]);
        eprintln!("{case}: {each} of {most}");
        if each > most {
            too_many.push(format!(
                "{case}: {each} instructions, and {BUDGET} has {most}"
            ));
        }
    }
    assert!(too_many.is_empty(), "{}", too_many.join("\n"));
}
