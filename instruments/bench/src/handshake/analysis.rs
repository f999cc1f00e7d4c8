//! The source document's table of a run, exactly as its script printed it.

use std::fmt;

use super::log::{Connection, Log};

/// One run, or the sum of several runs made at the same time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Analysis {
    pub duration_us: i64,
    pub total: usize,
    pub success: usize,
    /// Times of successful opening handshakes, in microseconds, ascending.
    pub open_us: Vec<i64>,
}

impl Analysis {
    /// Joins the logs. One run has its own duration; several last from the first start to the last end.
    pub fn of(logs: &[Log]) -> Self {
        let duration_us = match logs {
            [only] => only.total_duration,
            _ => {
                let started = logs.iter().map(|log| log.started).min().unwrap_or(0);
                let ended = logs.iter().map(|log| log.ended).max().unwrap_or(0);
                ended - started
            }
        };
        let connections = || logs.iter().flat_map(|log| &log.connection_stats);
        let mut open_us: Vec<i64> = connections()
            .filter(|connection| !connection.failed)
            .map(|connection: &Connection| connection.open)
            .collect();
        open_us.sort_unstable();
        Self {
            duration_us,
            total: connections().count(),
            success: open_us.len(),
            open_us,
        }
    }

    pub fn handshakes_per_s(&self) -> f64 {
        match self.duration_us {
            0 => 0.0,
            duration_us => self.success as f64 * 1e6 / duration_us as f64,
        }
    }

    pub fn median_ms(&self) -> Option<f64> {
        Some(*self.open_us.get(self.open_us.len() / 2)? as f64 / 1e3)
    }

    /// The smallest value among the longest `1 / parts` of all: the document's quantile.
    fn quantile_us(&self, parts: usize) -> f64 {
        let at = self.open_us.len() - self.open_us.len().div_ceil(parts);
        self.open_us[at] as f64
    }

    fn average_us(&self) -> f64 {
        let sum: i64 = self.open_us.iter().sum();
        sum as f64 / self.open_us.len() as f64
    }

    fn standard_deviation_us(&self) -> f64 {
        let average = self.average_us();
        let squares = self.open_us.iter().map(|us| (*us as f64 - average).powi(2));
        // Undefined for one value.
        let others = self.open_us.len().saturating_sub(1).max(1);
        (squares.sum::<f64>() / others as f64).sqrt()
    }
}

impl fmt::Display for Analysis {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let fail = self.total - self.success;
        let fail_percent = 100.0 * fail as f64 / self.total.max(1) as f64;
        writeln!(f, "\nwsperf results - WebSocket Opening Handshake\n")?;
        writeln!(f, "          Duration: {:9} ms", self.duration_us / 1000)?;
        writeln!(f, "             Total: {:9}", self.total)?;
        writeln!(f, "           Success: {:9}", self.success)?;
        writeln!(f, "              Fail: {fail:9}")?;
        writeln!(f, "            Fail %: {fail_percent:9.2}")?;
        writeln!(f, "    Handshakes/sec: {:9.0}\n", self.handshakes_per_s())?;
        let (Some(shortest), Some(longest)) = (self.open_us.first(), self.open_us.last()) else {
            return writeln!(f, "    no opening handshake succeeded\n\n");
        };
        let rows = [
            ("   Min:", *shortest as f64),
            ("    SD:", self.standard_deviation_us()),
            ("   Avg:", self.average_us()),
            ("Median:", self.median_ms().unwrap_or(0.0) * 1e3),
            ("q90   :", self.quantile_us(10)),
            ("q95   :", self.quantile_us(20)),
            ("q99   :", self.quantile_us(100)),
            ("q99.9 :", self.quantile_us(1_000)),
            ("q99.99:", self.quantile_us(10_000)),
            ("   Max:", *longest as f64),
        ];
        for (name, us) in rows {
            writeln!(f, "  {name} {:9.1} ms", us / 1e3)?;
        }
        f.write_str("\n\n")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn log(started: i64, total_duration: i64, open_us: impl Iterator<Item = i64>) -> Log {
        let connection_stats = open_us
            .map(|open| Connection {
                open,
                failed: open == 0,
                ..Connection::default()
            })
            .collect();
        Log {
            total_duration,
            started,
            ended: started + total_duration,
            connection_stats,
            ..Log::default()
        }
    }

    #[test]
    fn the_table_is_the_documents() {
        let logs = [log(1_000_000, 37_041_900, (1..=20_000).map(|us| us * 10))];
        let expected = "
wsperf results - WebSocket Opening Handshake

          Duration:     37041 ms
             Total:     20000
           Success:     20000
              Fail:         0
            Fail %:      0.00
    Handshakes/sec:       540

     Min:       0.0 ms
      SD:      57.7 ms
     Avg:     100.0 ms
  Median:     100.0 ms
  q90   :     180.0 ms
  q95   :     190.0 ms
  q99   :     198.0 ms
  q99.9 :     199.8 ms
  q99.99:     200.0 ms
     Max:     200.0 ms


";
        assert_eq!(Analysis::of(&logs).to_string(), expected);
    }

    #[test]
    fn runs_are_joined() {
        let logs = [
            log(1_000_000, 2_000_000, [3_000, 0, 1_000].into_iter()),
            log(2_000_000, 4_000_000, [2_000].into_iter()),
        ];
        let joined = Analysis::of(&logs);
        assert_eq!(joined.duration_us, 5_000_000);
        assert_eq!((joined.total, joined.success), (4, 3));
        assert_eq!(joined.open_us, [1_000, 2_000, 3_000]);
        assert_eq!(joined.median_ms(), Some(2.0));
        assert!(joined.to_string().contains("Fail %:     25.00\n"));
    }

    #[test]
    fn small_and_empty_runs_have_a_table_too() {
        let one = Analysis::of(&[log(0, 1_000, [1_500].into_iter())]).to_string();
        assert!(one.contains("      SD:       0.0 ms\n"), "{one}");
        assert!(one.contains("  q90   :       1.5 ms\n"), "{one}");
        let none = Analysis::of(&[log(0, 1_000, [0].into_iter())]).to_string();
        assert!(none.contains("no opening handshake succeeded"), "{none}");
    }
}
