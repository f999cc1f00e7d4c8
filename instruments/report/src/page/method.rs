//! The rules of measuring in short, and the machines.

use maud::{Markup, html};

use crate::frame::Machine;
use crate::run::Run;

pub(super) fn method(runs: &[Run]) -> Markup {
    html! {
        section #method .part {
            h2 { "Method" }
            ol.rules {
                @for (rule, why) in RULES { li { strong { (rule) } " " (why) } }
            }
            h3 { "Machines" }
            div.wide {
                table.list {
                    thead { tr {
                        th scope="col" { "Processor" }
                        th scope="col" .number { "Cores" }
                        th scope="col" .number { "Memory" }
                        th scope="col" { "System" }
                        th scope="col" { "Kernel" }
                        th scope="col" { "Runs" }
                    } }
                    tbody {
                        @for machine in machines(runs) {
                            @let here = runs.iter().filter(|run| run.machine.is_same(machine));
                            @let here: Vec<&str> = here.map(|run| run.bench.as_str()).collect();
                            tr {
                                th scope="row" { (machine.cpu) }
                                td.number data-label="Cores" { (machine.cores) }
                                td.number data-label="Memory" {
                                    (machine.memory_bytes >> 30) " GiB"
                                }
                                td data-label="System" { (machine.os) }
                                td data-label="Kernel" { (machine.kernel) }
                                td data-label="Runs" { (here.join(", ")) }
                            }
                        }
                    }
                }
            }
        }
    }
}

/// Each machine once.
pub(super) fn machines(runs: &[Run]) -> Vec<&Machine> {
    let mut machines: Vec<&Machine> = Vec::new();
    for run in runs {
        if !machines.iter().any(|known| known.is_same(&run.machine)) {
            machines.push(&run.machine);
        }
    }
    machines
}

const RULES: &[(&str, &str)] = &[
    (
        "In one run.",
        "Subject, floor and peers take turns, round after round, with the same payload, socket \
         and placement. The figure is the median of the rounds; the smallest and the largest \
         stand below it.",
    ),
    (
        "Placement is stated.",
        "same-core: everybody on one core. split: the server on one core, its clients on another. \
         free: where the scheduler likes, which flips by several times with the machine's load, \
         so that no goal is judged on it.",
    ),
    (
        "The floor is honest.",
        "The smallest program that makes the same system calls with the same bytes. One that is \
         slower than it should be is called suspect, and the run does not count.",
    ),
    (
        "The driver is not the bottleneck.",
        "A throughput counts while the subject is busy; otherwise it is called driver-bound, and \
         the figure is the processor time for each operation.",
    ),
    (
        "Processor time",
        "is user and system time of all processes of the subject, by the scheduler's own \
         accounting in nanoseconds.",
    ),
    (
        "Latency",
        "is kept in histograms with three digits. At a given rate it runs from when an operation \
         was due, not from when it could be begun.",
    ),
    (
        "Every operation is checked:",
        "content, order, number. What failed is counted apart and is in no rate. One that is \
         lost, doubled or out of order fails the run.",
    ),
    (
        "Set-up apart.",
        "Rates exclude connecting, except where connecting itself is measured.",
    ),
    (
        "Memory",
        "is the proportional share (PSS) of all processes of the subject; for each connection, \
         the difference between two numbers of them.",
    ),
    (
        "A document's figure",
        "stands with its hardware. The page says so if a document gives none.",
    ),
];
