//! The end of a process, as numbers and as text.

use std::fmt;
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;

use rustix::process::Signal;

/// The end of a child: by itself with a code, or by a signal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ended {
    pub code: Option<i32>,
    pub signal: Option<i32>,
}

impl Ended {
    pub(super) const UNKNOWN: Self = Self {
        code: None,
        signal: None,
    };

    pub fn is_success(&self) -> bool {
        self.code == Some(0)
    }
}

impl From<ExitStatus> for Ended {
    fn from(status: ExitStatus) -> Self {
        Self {
            code: status.code(),
            signal: status.signal(),
        }
    }
}

impl fmt::Display for Ended {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.code, self.signal) {
            (Some(code), _) => write!(f, "exit code {code}"),
            (None, Some(signal)) => match signal_name(signal) {
                Some(name) => write!(f, "signal {signal} ({name})"),
                None => write!(f, "signal {signal}"),
            },
            (None, None) => f.write_str("no exit code"),
        }
    }
}

/// A signal's name, with `SIG`.
pub fn signal_name(number: i32) -> Option<&'static str> {
    // From the platform's own numbers, which differ.
    let names = [
        (Signal::HUP, "SIGHUP"),
        (Signal::INT, "SIGINT"),
        (Signal::QUIT, "SIGQUIT"),
        (Signal::ILL, "SIGILL"),
        (Signal::TRAP, "SIGTRAP"),
        (Signal::ABORT, "SIGABRT"),
        (Signal::BUS, "SIGBUS"),
        (Signal::FPE, "SIGFPE"),
        (Signal::KILL, "SIGKILL"),
        (Signal::USR1, "SIGUSR1"),
        (Signal::SEGV, "SIGSEGV"),
        (Signal::USR2, "SIGUSR2"),
        (Signal::PIPE, "SIGPIPE"),
        (Signal::ALARM, "SIGALRM"),
        (Signal::TERM, "SIGTERM"),
        (Signal::STOP, "SIGSTOP"),
        (Signal::XCPU, "SIGXCPU"),
        (Signal::XFSZ, "SIGXFSZ"),
        (Signal::VTALARM, "SIGVTALRM"),
        (Signal::PROF, "SIGPROF"),
        (Signal::IO, "SIGIO"),
        (Signal::SYS, "SIGSYS"),
    ];
    names
        .into_iter()
        .find_map(|(signal, name)| (signal.as_raw() == number).then_some(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn in_words() {
        // The kernel's wait statuses.
        let rows = [
            (0, true, "exit code 0"),
            (1 << 8, false, "exit code 1"),
            (9, false, "signal 9 (SIGKILL)"),
            (15, false, "signal 15 (SIGTERM)"),
            (40, false, "signal 40"),
        ];
        for (status, is_success, words) in rows {
            let ended = Ended::from(ExitStatus::from_raw(status));
            assert_eq!(ended.is_success(), is_success, "{status}");
            assert_eq!(ended.to_string(), words);
        }
    }
}
