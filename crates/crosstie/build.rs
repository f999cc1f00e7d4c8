//! Has the linker make the programs smaller: packed relocations, and one copy of functions that are the same.

use std::env;
use std::path::Path;
use std::process::{Command, Stdio};

/// The first glibc that reads packed relocations (DT_RELR).
const GLIBC_MIN: (u32, u32) = (2, 36);

const PACKED: &str = "-Wl,-z,pack-relative-relocs";
const FOLDED: &str = "-Wl,--icf=all";

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-env-changed=CROSSTIE_PLAIN_RELOCATIONS");
    // A program for machines with an older glibc than this one is built with the variable.
    let is_plain = env::var_os("CROSSTIE_PLAIN_RELOCATIONS").is_some();
    if !is_plain && reads_packed_relocations() {
        // A linker that does not know the word warns, and leaves them plain.
        println!("cargo:rustc-link-arg-bins={PACKED}");
    }
    // A function that is two has two names in a debugger's and a profiler's view.
    let is_for_users = env::var("PROFILE").is_ok_and(|profile| profile == "release")
        && env::var("DEBUG").is_ok_and(|debug| debug == "false");
    if is_for_users && links_with(FOLDED).unwrap_or(false) {
        println!("cargo:rustc-link-arg-bins={FOLDED}");
    }
}

/// Whether the C library of this machine, on which the program is to run, reads them. Others are not asked.
fn reads_packed_relocations() -> bool {
    let is_native = env::var_os("HOST") == env::var_os("TARGET");
    let is = |key: &str, expected: &str| env::var(key).is_ok_and(|value| value == expected);
    let is_glibc = is("CARGO_CFG_TARGET_OS", "linux") && is("CARGO_CFG_TARGET_ENV", "gnu");
    is_native && is_glibc && glibc().is_some_and(|found| found >= GLIBC_MIN)
}

/// The version of this machine's glibc: `getconf` is a part of it.
fn glibc() -> Option<(u32, u32)> {
    let told = Command::new("getconf").arg("GNU_LIBC_VERSION").output();
    let told = String::from_utf8(told.ok()?.stdout).ok()?;
    let (major, minor) = told.trim().strip_prefix("glibc ")?.split_once('.')?;
    let minor = minor.split('.').next()?;
    Some((major.parse().ok()?, minor.parse().ok()?))
}

/// Whether the linker that rustc takes here knows an argument: GNU's does not know each that LLVM's does. It is tried
/// on an empty program.
fn links_with(argument: &str) -> Option<bool> {
    let folder = env::var_os("OUT_DIR")?;
    let source = Path::new(&folder).join("empty.rs");
    std::fs::write(&source, "fn main() {}\n").ok()?;
    let mut rustc = Command::new(env::var_os("RUSTC")?);
    if let Some(linker) = env::var_os("RUSTC_LINKER") {
        rustc.arg("-C").arg(format!("linker={}", linker.display()));
    }
    let flags = env::var("CARGO_ENCODED_RUSTFLAGS").unwrap_or_default();
    let flags = flags.split('\x1f').filter(|flag| !flag.is_empty());
    let tried = rustc
        .args(flags)
        .args(["--target", &env::var("TARGET").ok()?])
        .args(["-C", &format!("link-arg={argument}"), "-o"])
        .arg(Path::new(&folder).join("empty"))
        .arg(source)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    Some(tried.ok()?.success())
}
