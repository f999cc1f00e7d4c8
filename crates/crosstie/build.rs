//! Packs the relocations of the program, if its C library can read them: 5 % less to install.

use std::env;
use std::process::Command;

/// The first glibc that reads packed relocations (DT_RELR).
const GLIBC_MIN: (u32, u32) = (2, 36);

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-env-changed=CROSSTIE_PLAIN_RELOCATIONS");
    let is_native = env::var_os("HOST") == env::var_os("TARGET");
    let is_glibc = env::var("CARGO_CFG_TARGET_OS").is_ok_and(|os| os == "linux")
        && env::var("CARGO_CFG_TARGET_ENV").is_ok_and(|env| env == "gnu");
    // A program for machines with an older glibc than this one is built with the variable.
    let is_plain = env::var_os("CROSSTIE_PLAIN_RELOCATIONS").is_some();
    if is_native && is_glibc && !is_plain && glibc().is_some_and(|found| found >= GLIBC_MIN) {
        // A linker without the option warns, and leaves them plain.
        println!("cargo:rustc-link-arg-bins=-Wl,-z,pack-relative-relocs");
    }
}

/// The version of this machine's glibc: `getconf` is a part of it.
fn glibc() -> Option<(u32, u32)> {
    let told = Command::new("getconf").arg("GNU_LIBC_VERSION").output();
    let told = String::from_utf8(told.ok()?.stdout).ok()?;
    let (major, minor) = told.trim().strip_prefix("glibc ")?.split_once('.')?;
    let minor = minor.split('.').next()?;
    Some((major.parse().ok()?, minor.parse().ok()?))
}
