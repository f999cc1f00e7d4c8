//! The files of the page, and the left out ones with the reasons.

use maud::{Markup, html};

use super::words;
use crate::Damage;
use crate::run::{Run, Superseded};

pub(super) fn provenance(runs: &[Run], superseded: &[Superseded], damaged: &[Damage]) -> Markup {
    html! {
        section #files .part {
            h2 { "Files" }
            p {
                "Every round of every subject is in these files. Of runs that ask the same on the \
                 same machine the newest is shown."
            }
            div.wide {
                table.list {
                    thead { tr {
                        th scope="col" { "File" }
                        th scope="col" { "Bench" }
                        th scope="col" { "Measured" }
                        th scope="col" { "Build" }
                        th scope="col" { "" }
                    } }
                    tbody {
                        @for run in runs { (line(run, "")) }
                        @for old in superseded {
                            (line(&old.run, &format!("not shown: {} is newer", old.by)))
                        }
                        @for damage in damaged {
                            tr.invalid {
                                td { code { (damage.file) } }
                                td colspan="3" { "damaged" }
                                td { (damage.why) }
                            }
                        }
                    }
                }
            }
        }
    }
}

fn line(run: &Run, remark: &str) -> Markup {
    html! {
        tr {
            td { code { (run.file) } }
            td data-label="Bench" { (run.bench) }
            td data-label="Measured" { (words::time(run.machine.unix_time_s)) }
            td data-label="Build" { (words::build(run)) }
            td { (remark) }
        }
    }
}
