//! No code: `Cargo.toml` has the features of other packages that programs and tests share, so that each package is
//! compiled once for both.
