//! Standard output.

use super::failure::Failure;

pub(super) fn print(text: &str) -> Result<(), Failure> {
    let printed = say!("{text}");
    // Nobody reads the rest of a closed pipe.
    printed
        .map(drop)
        .map_err(|error| Failure::died(&error.to_string()))
}
