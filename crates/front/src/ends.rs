//! When a file of a listener is no longer valid, and since when that is worth a warning.

use std::fmt;
use std::path::PathBuf;

/// The time at which a file ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ends {
    pub file: File,
    pub path: PathBuf,
    /// The first hosts and addresses that a certificate is for, or its subject's common name.
    pub names: Vec<String>,
    /// In seconds since 1970; `None` if it cannot be read here.
    pub at_s: Option<i64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum File {
    Certificate,
    /// With one that has ended, clients with certificates are refused.
    RevocationList,
}

const HOUR_S: i64 = 60 * 60;
pub(crate) const DAY_S: i64 = 24 * HOUR_S;

impl Ends {
    pub(crate) fn is_past(&self, now_s: i64) -> bool {
        self.at_s.is_some_and(|at_s| at_s < now_s)
    }

    /// That it ends soon or has ended, in words.
    pub(crate) fn warning(&self, now_s: i64) -> Option<String> {
        let left_s = self.at_s? - now_s;
        let when = match left_s {
            _ if left_s > self.file.warned_s() => return None,
            _ if left_s >= 2 * DAY_S => format!("expires in {} days", left_s / DAY_S),
            _ if left_s >= 0 => format!("expires in {} hours", left_s / HOUR_S),
            _ if left_s > -2 * DAY_S => format!("expired {} hours ago", -left_s / HOUR_S),
            _ => format!("expired {} days ago", -left_s / DAY_S),
        };
        Some(format!("its {} {} {when}", self.file, self.path.display()))
    }
}

impl File {
    /// Time before the end at which warnings begin, one a day.
    fn warned_s(self) -> i64 {
        match self {
            Self::Certificate => 21 * DAY_S,
            // Authorities write some of them daily.
            Self::RevocationList => 12 * HOUR_S,
        }
    }
}

impl fmt::Display for File {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Certificate => "certificate",
            Self::RevocationList => "revocation list",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_warning_says_when_the_file_ends() {
        let at_s = 1_800_000_000;
        #[rustfmt::skip]
        let cases = [
            (File::Certificate, -21 * DAY_S - 1, None),
            (File::Certificate, -21 * DAY_S, Some("its certificate a.pem expires in 21 days")),
            (File::Certificate, -2 * DAY_S, Some("its certificate a.pem expires in 2 days")),
            (File::Certificate, 1 - 2 * DAY_S, Some("its certificate a.pem expires in 47 hours")),
            (File::Certificate, -1, Some("its certificate a.pem expires in 0 hours")),
            (File::Certificate, 1, Some("its certificate a.pem expired 0 hours ago")),
            (File::Certificate, 3 * DAY_S, Some("its certificate a.pem expired 3 days ago")),
            (File::RevocationList, -12 * HOUR_S - 1, None),
            (File::RevocationList, -12 * HOUR_S, Some("its revocation list a.pem expires in 12 hours")),
        ];
        for (file, after_s, expected) in cases {
            let path = PathBuf::from("a.pem");
            let ends = Ends {
                file,
                path,
                names: Vec::new(),
                at_s: Some(at_s),
            };
            let got = ends.warning(at_s + after_s);
            assert_eq!(got.as_deref(), expected, "{file} {after_s}");
        }
    }
}
