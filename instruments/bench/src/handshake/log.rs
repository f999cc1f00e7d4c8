//! The log of a run, in wsperf's form: one object, with one entry per connection. All times are microseconds.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

/// A run and all its connections.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Log {
    /// From the first connect to the last close.
    pub total_duration: i64,
    /// Since 1970.
    pub started: i64,
    pub ended: i64,
    /// How often the maximum number of handshakes was in flight.
    #[serde(default)]
    pub handshake_throttle_count: u64,
    /// How often so few were left that more were launched; the first launch counts.
    #[serde(default)]
    pub handshake_resume_count: u64,
    pub connection_stats: Vec<Connection>,
}

/// One connection's times, each from the end of the one before.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Connection {
    pub tcp_pre_init: i64,
    /// The set-up after the connect: none without TLS.
    pub tcp_post_init: i64,
    /// The opening handshake, from the request to the answer's check; of a failed one, until it failed.
    pub open: i64,
    /// The closing handshake, until TCP is closed too.
    pub close: i64,
    pub failed: bool,
}

#[derive(Debug, thiserror::Error)]
pub enum LogError {
    #[error("{path}: {source}", path = path.display())]
    Read { path: PathBuf, source: io::Error },
    /// The text names line and column.
    #[error("{path} is damaged, or no handshake log: {source}", path = path.display())]
    Damaged {
        path: PathBuf,
        source: serde_json::Error,
    },
    #[error("{path}: {why}", path = path.display())]
    Senseless { path: PathBuf, why: &'static str },
}

impl Log {
    /// Reads our own or wsperf's, whose `started` and `ended` may be nanoseconds: it writes its C++ library's clock
    /// ticks.
    pub fn read(path: &Path) -> Result<Self, LogError> {
        let text = fs::read(path).map_err(|source| LogError::Read {
            path: path.to_owned(),
            source,
        })?;
        let mut log: Self = serde_json::from_slice(&text).map_err(|source| LogError::Damaged {
            path: path.to_owned(),
            source,
        })?;
        let senseless = |why| LogError::Senseless {
            path: path.to_owned(),
            why,
        };
        if log.connection_stats.is_empty() {
            return Err(senseless("it holds no connection (connection_stats)"));
        }
        if log.total_duration <= 0 || log.ended < log.started {
            return Err(senseless(
                "it ends before it begins (total_duration, started, ended)",
            ));
        }
        // Nanoseconds are a thousand times the duration; a clock that was set meanwhile is not.
        if (log.ended - log.started) / log.total_duration >= 100 {
            log.started /= 1000;
            log.ended /= 1000;
        }
        Ok(log)
    }

    /// In wsperf's order of fields, one connection per line.
    pub fn write(&self, out: &mut impl Write) -> io::Result<()> {
        write!(
            out,
            "{{\"total_duration\":{},\"started\":{},\"ended\":{},\"handshake_throttle_count\":{},\
             \"handshake_resume_count\":{},\"connection_stats\":[",
            self.total_duration,
            self.started,
            self.ended,
            self.handshake_throttle_count,
            self.handshake_resume_count,
        )?;
        for (at, connection) in self.connection_stats.iter().enumerate() {
            write!(
                out,
                "{}{{\"tcp_pre_init\":{},\"tcp_post_init\":{},\"open\":{},\"close\":{},\
                 \"failed\":{}}}",
                if at == 0 { "\n" } else { ",\n" },
                connection.tcp_pre_init,
                connection.tcp_post_init,
                connection.open,
                connection.close,
                connection.failed,
            )?;
        }
        out.write_all(b"\n]}\n")?;
        out.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Log, LogError> {
        let file = tempfile::NamedTempFile::new().unwrap();
        fs::write(file.path(), text).unwrap();
        Log::read(file.path())
    }

    #[test]
    fn written_logs_are_read_back() {
        let log = Log {
            total_duration: 1_500,
            started: 1_700_000_000_000_000,
            ended: 1_700_000_000_001_500,
            handshake_throttle_count: 1,
            handshake_resume_count: 2,
            connection_stats: vec![
                Connection {
                    tcp_pre_init: 20,
                    tcp_post_init: 0,
                    open: 300,
                    close: 100,
                    failed: false,
                },
                Connection {
                    failed: true,
                    ..Connection::default()
                },
            ],
        };
        let mut text = Vec::new();
        log.write(&mut text).unwrap();
        assert_eq!(read(std::str::from_utf8(&text).unwrap()).unwrap(), log);
    }

    #[test]
    fn a_clock_in_nanoseconds_is_noticed() {
        #[track_caller]
        fn check(started: i64, ended: i64, expected: i64) {
            let text = format!(
                r#"{{"total_duration":400000,"started":{started},"ended":{ended},
                "connection_stats":[{{"tcp_pre_init":-1,"tcp_post_init":0,"open":1,"close":1,
                "failed":false}}]}}"#
            );
            let log = read(&text).unwrap();
            assert_eq!(log.ended - log.started, expected);
        }
        check(1_700_000_000_000_000, 1_700_000_000_400_100, 400_100);
        check(
            1_700_000_000_000_000_000,
            1_700_000_000_400_100_000,
            400_100,
        );
    }

    #[test]
    fn damage_has_a_place() {
        #[track_caller]
        fn check(text: &str, expected: &[&str]) {
            let error = read(text).unwrap_err().to_string();
            for part in expected {
                assert!(error.contains(part), "{error}");
            }
        }
        check("", &["damaged", "EOF", "line 1 column 0"]);
        check(
            "{\"total_duration\":1,\n\"started\":",
            &["line 2 column 10"],
        );
        check("[]\n", &["damaged", "line 1"]);
        check("{\"total_duration\":1}", &["missing field `started`"]);
        check(
            r#"{"total_duration":1,"started":1,"ended":2,"connection_stats":[]}"#,
            &["holds no connection"],
        );
        check(
            r#"{"total_duration":1,"started":3,"ended":2,"connection_stats":[{"tcp_pre_init":1,
            "tcp_post_init":0,"open":1,"close":1,"failed":false}]}"#,
            &["ends before it begins"],
        );
        let missing = Log::read(Path::new("/nonexistent/log")).unwrap_err();
        assert!(missing.to_string().starts_with("/nonexistent/log: "));
    }
}
