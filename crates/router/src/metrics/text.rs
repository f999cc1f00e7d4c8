//! Converts OpenMetrics to Prometheus' text format 0.0.4.
//!
//! Three differences matter here: the description of a counter has the name of its samples, an info is a gauge, and no
//! line marks the end.

/// Rewrites lines of OpenMetrics; those of samples stay as they are.
pub(super) fn from_open_metrics(metrics: &str) -> String {
    let mut out = String::with_capacity(metrics.len());
    // A metric's help precedes its type, and is written with it.
    let mut help = None;
    for line in metrics.lines() {
        if let Some(described) = line.strip_prefix("# HELP ") {
            help = described.split_once(' ');
        } else if let Some((name, kind)) = line
            .strip_prefix("# TYPE ")
            .and_then(|described| described.split_once(' '))
        {
            let (suffix, kind) = match kind {
                "counter" => ("_total", "counter"),
                "info" => ("_info", "gauge"),
                other => ("", other),
            };
            if let Some((_, text)) = help.take().filter(|(of, _)| *of == name) {
                out += &format!("# HELP {name}{suffix} {text}\n");
            }
            out += &format!("# TYPE {name}{suffix} {kind}\n");
        } else if !line.starts_with('#') {
            out += line;
            out.push('\n');
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_description_has_the_name_of_the_samples() {
        let open = "# HELP a_reads Reads.\n# TYPE a_reads counter\na_reads_total{x=\"# TYPE\"} 3\n\
                    # HELP a_build What answers.\n# TYPE a_build info\na_build_info{version=\"1\"} 1\n\
                    # HELP a_open Open.\n# TYPE a_open gauge\n# UNIT a_open b\na_open 2\n# EOF\n";
        let text = "# HELP a_reads_total Reads.\n# TYPE a_reads_total counter\n\
                    a_reads_total{x=\"# TYPE\"} 3\n\
                    # HELP a_build_info What answers.\n# TYPE a_build_info gauge\n\
                    a_build_info{version=\"1\"} 1\n\
                    # HELP a_open Open.\n# TYPE a_open gauge\na_open 2\n";
        assert_eq!(from_open_metrics(open), text);
    }
}
