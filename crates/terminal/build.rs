//! Passes the commit of the build to the program, for its results files.

use std::path::Path;
use std::process::Command;

fn main() {
    // A file that is not there would count as changed each time: in a worktree, `.git` is no folder.
    for name in ["HEAD", "logs/HEAD"] {
        let path = git(&["rev-parse", "--git-path", name]);
        if let Some(path) = path.filter(|path| Path::new(path).exists()) {
            println!("cargo:rerun-if-changed={path}");
        }
    }
    println!("cargo:rerun-if-changed=build.rs");
    let commit = git(&["describe", "--always", "--dirty", "--abbrev=12"]);
    let commit = commit.unwrap_or_else(|| "unknown".to_owned());
    println!("cargo:rustc-env=CROSSTIE_COMMIT={commit}");
}

/// The answer of git, if there is a repository.
fn git(words: &[&str]) -> Option<String> {
    let output = Command::new("git").args(words).output().ok()?;
    let text = String::from_utf8_lossy(&output.stdout);
    output.status.success().then(|| text.trim().to_owned())
}
