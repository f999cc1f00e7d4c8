//! The figures of the source document, "Call Roundtrip Time" (WAMP over Crossbar.io, 2016), and the form of its output.

use crate::subject::Case;

/// The hardware of the document's figures.
pub(crate) const HARDWARE: &str = "48-core machine with 2.95 TB, PyPy, Crossbar.io 0.12";

/// Median of the document's batch averages after its warm-up, in microseconds, for its two combinations.
///
/// 105 batches of 0.36–0.75 ms over the Unix socket, 36 batches of 0.95–1.30 ms over WebSocket.
pub(crate) fn rtt_us(case: &Case) -> Option<f64> {
    let [unix, tcp] = Case::OF_THE_DOCUMENT;
    if *case == unix {
        Some(483.0)
    } else if *case == tcp {
        Some(1105.0)
    } else {
        None
    }
}

/// In the document's picture of the system's load: its router's 62.5 and its controller's 30.5 % of a core, ...
pub(crate) const NODE_CPU_PERCENT: f64 = 93.0;
/// ... and 220 and 214 MiB, resident.
pub(crate) const NODE_RSS_BYTES: f64 = 434.0 * 1_048_576.0;

/// The line that the document's caller prints after each batch.
pub fn line(prefix: &str, average_ms: f64) -> String {
    format!(
        "[{prefix}] - average round-trip time (ms): {}",
        significant_12(average_ms)
    )
}

/// A number with twelve significant digits and no trailing zeros, as the document's Python prints it.
fn significant_12(value: f64) -> String {
    if value == 0.0 || !value.is_finite() {
        return value.to_string();
    }
    let magnitude = value.abs().log10().floor() as i32;
    let decimals = usize::try_from(11 - magnitude).unwrap_or(0);
    let text = format!("{value:.decimals$}");
    if !text.contains('.') {
        return text;
    }
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_look_like_the_documents() {
        #[track_caller]
        fn check(average_ms: f64, number: &str) {
            let expected = format!(
                "[WAMP-UDS-RawSocket-MessagePack] - average round-trip time (ms): {number}"
            );
            assert_eq!(line("WAMP-UDS-RawSocket-MessagePack", average_ms), expected);
        }
        check(0.546_066_045_761, "0.546066045761");
        check(5.581_653_118_13, "5.58165311813");
        check(2.304_059_982_3, "2.3040599823");
        check(0.013_25, "0.01325");
        check(12.0, "12");
        check(0.0, "0");
        check(1.0 / 3.0, "0.333333333333");
    }
}
