//! Definitions: exported and imported.

use std::path::Path;

use serde_json::Value as Json;

use super::command::{Command, Run, ctl};
use super::failure::Failure;
use super::output::Output;
use crate::amqp::definitions;

pub(super) static COMMANDS: [Command; 2] = [
    ctl("export_definitions", (1, 1), "<path> | \"-\"", &[], export),
    ctl("import_definitions", (0, 1), "<path> | \"-\"", &[], import),
];

fn export(run: &Run) -> Result<Output, Failure> {
    let path = run.argument(0);
    let is_standard = path == "-";
    if !is_standard {
        run.announce(&format!(
            "Exporting definitions in JSON to a file at \"{path}\" ..."
        ))?;
    }
    let exported = run.session.export()?;
    // Objects of programs: the file itself, or nothing.
    let text = exported.to_string();
    if is_standard {
        return Ok(Output::Value(text, exported));
    }
    definitions::write(Path::new(path), &text).map_err(wrong_file)?;
    Ok(Output::Nothing)
}

fn import(run: &Run) -> Result<Output, Failure> {
    let path = run.words.arguments.first().map_or("-", String::as_str);
    match path {
        "-" => run.announce("Importing definitions in JSON from standard input ...")?,
        path => run.announce(&format!(
            "Importing definitions in JSON from a file at \"{path}\" ..."
        ))?,
    }
    let read = definitions::read(Path::new(path)).map_err(wrong_file)?;
    let answer: Json = run.session.import(read)?;
    match answer["skipped"].as_array().is_none_or(Vec::is_empty) {
        true => Ok(Output::Nothing),
        false => Ok(Output::Value(definitions::told(&answer), answer)),
    }
}

/// RabbitMQ's exit code for a file that cannot be read or written.
fn wrong_file(error: anyhow::Error) -> Failure {
    Failure::data(&crate::chain(&error))
}
