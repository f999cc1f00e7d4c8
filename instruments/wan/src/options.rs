//! The options of a line: its delay, its rate, and its failures.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::cut::Cut;
use crate::endpoint::ParseError;
use crate::units;

/// Everything but its two addresses.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LinkOptions {
    pub delay: Duration,
    /// The delay of each read varies by up to this much in both directions of time, evenly.
    pub jitter: Duration,
    /// The delayed direction.
    pub direction: Direction,
    /// Bytes per second in each direction, shared by all connections.
    pub rate: Option<u64>,
    pub cuts: Vec<Cut>,
}

/// Up is from the client, which connects, to the server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Direction {
    /// The round trip grows by the delay, as if one machine of two delayed its output.
    #[default]
    Up,
    Down,
    Both,
}

impl FromStr for Direction {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        match text {
            "up" => Ok(Self::Up),
            "down" => Ok(Self::Down),
            "both" => Ok(Self::Both),
            _ => Err(ParseError::new(text, "a direction is up, down or both")),
        }
    }
}

impl fmt::Display for Direction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Up => "up",
            Self::Down => "down",
            Self::Both => "both ways",
        })
    }
}

impl LinkOptions {
    /// Refuses invalid options.
    pub fn check(&self) -> Result<(), String> {
        if self.delay > Duration::from_secs(60) {
            return Err("a delay is at most 60s".to_owned());
        }
        if self.jitter > self.delay {
            return Err("the jitter is at most the delay: nothing arrives early".to_owned());
        }
        Ok(())
    }
}

/// The form of `--link`: `50ms` or `50ms,jitter=5ms,rate=10mbit,direction=both`. A bench has no use for cuts.
impl FromStr for LinkOptions {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        let mut words = text.split(',');
        let mut options = Self {
            delay: units::duration(words.next().unwrap_or_default())?,
            ..Self::default()
        };
        for word in words {
            let (name, value) = word.split_once('=').unwrap_or((word, ""));
            match name {
                "jitter" => options.jitter = units::duration(value)?,
                "rate" => options.rate = Some(units::rate(value)?),
                "direction" => options.direction = value.parse()?,
                _ => {
                    return Err(ParseError::new(
                        text,
                        "a link is a delay, and then jitter=TIME, rate=RATE or \
                         direction=up|down|both, as in 50ms,rate=10mbit",
                    ));
                }
            }
        }
        match options.check() {
            Ok(()) => Ok(options),
            Err(_) => Err(ParseError::new(
                text,
                "a delay is at most 60s, and the jitter at most the delay",
            )),
        }
    }
}

impl fmt::Display for LinkOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", units::written(self.delay), self.direction)?;
        if !self.jitter.is_zero() {
            write!(f, ", jitter {}", units::written(self.jitter))?;
        }
        if let Some(rate) = self.rate {
            write!(f, ", {} Mbit/s each way", rate as f64 * 8.0 / 1e6)?;
        }
        for cut in &self.cuts {
            write!(f, ", {cut}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_are_written() {
        #[track_caller]
        fn check(text: &str, expected: Result<&str, &str>) {
            match (text.parse::<LinkOptions>(), expected) {
                (Ok(options), Ok(expected)) => assert_eq!(options.to_string(), expected),
                (Err(error), Err(expected)) => {
                    let error = error.to_string();
                    assert!(error.contains(expected), "{error}");
                }
                (found, expected) => panic!("{text}: {found:?} instead of {expected:?}"),
            }
        }
        check("50ms", Ok("50 ms up"));
        check("0", Ok("0 ms up"));
        check("50ms,direction=both", Ok("50 ms both ways"));
        check(
            "10ms,jitter=2ms,rate=10mbit,direction=down",
            Ok("10 ms down, jitter 2 ms, 10 Mbit/s each way"),
        );
        check("", Err("a time has a unit"));
        check("50", Err("a time has a unit"));
        check("61s", Err("at most 60s"));
        check("5ms,jitter=6ms", Err("at most the delay"));
        check("5ms,loss=1", Err("a link is a delay"));
        check("5ms,direction=left", Err("up, down or both"));
    }
}
