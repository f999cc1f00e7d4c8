//! Keys of guest workers.

use super::super::form::{
    Kind, ON, Rule, TYPE, integer, list, list_not_empty, object, one_of, tagged, text,
};
use super::super::table::tables;
use super::{CPU_AFFINITY, DISABLED, ENV, PATH, RESTART, worker_id};
use crate::model::{ChildEnvironment, GuestInput, Restart};
use crate::plain;

tables! {
    pub(super) static GUEST("workers[guest]", "a guest worker") {
        ..TYPE, worker_id(Rule::Name);
        "executable" = text(Rule::Path).required().at_once(),
            "Program: a name to look up on `PATH`, or a path. A relative path starts at `workdir`.";
        "arguments" = list(&text(Rule::NoNul)).optional().at_once(), "Arguments of the program.";
        "options" = object(&GUEST_OPTIONS).otherwise("the defaults").at_once(), "Options of the worker.";
    }

    /// A child process that runs any program.
    #[derive(Clone, Debug, PartialEq)]
    pub struct GuestWorker = static GUEST_OPTIONS("workers[guest].options", "a guest worker's options") {
        ..ENV => environment: ChildEnvironment as plain::section;
        workdir: Option<String> = text(Rule::Path).otherwise("the node's directory"),
            "Working directory; a relative path starts at the node's directory.";
        "stdin" = Kind::Either(&one_of(&GUEST_STDIN_WORDS), &tagged(&GUEST_STDIN)).or_text("close"),
            "Standard input: closed, or a value.";
        stdout: GuestOutput = one_of(&GUEST_OUTPUT).or_text("log"),
            "Destination of standard output: closed, the node's log, or discarded.";
        stderr: GuestOutput = one_of(&GUEST_OUTPUT).or_text("log"), "Destination of standard error, likewise.";
        watch: Option<GuestWatch> as plain::optional_section = object(&WATCH).optional(),
            "Directories whose changes restart the guest.";
        ..RESTART.own() => restart: Restart;
        ..CPU_AFFINITY.own() => cpu_affinity: Vec<usize>;
        ..DISABLED.own();
        let id: String = String::new();
        let executable: String = String::new();
        let arguments: Vec<String> = Vec::new();
        let stdin: GuestInput = GuestInput::Close;
    }

    words GUEST_STDIN_WORDS("workers[guest].options.stdin") { "close" }

    tagged GUEST_STDIN("workers[guest].options.stdin.type", "a guest's standard input") {
        "json" => GUEST_STDIN_JSON
    }

    static GUEST_STDIN_JSON("workers[guest].options.stdin", "a guest's standard input") {
        ..TYPE;
        "value" = Kind::Json.required(), "Value of any type, written to standard input as JSON.";
        "close" = ON, "Closes the input after the value.";
    }

    /// The destination of a guest's output.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    #[non_exhaustive]
    pub enum GuestOutput = words GUEST_OUTPUT("workers[guest].options.stdout") {
        /// Closed.
        "close" => Close,
        /// The node's log.
        "log" => Log,
        /// Discarded.
        "drop" => Drop,
    }

    /// Directories whose changes restart a guest.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct GuestWatch = static WATCH("workers[guest].options.watch", "a guest's watch") {
        directories: Vec<String> = list_not_empty(&PATH).required(),
            "Directories to watch; relative ones start at the node's directory.";
        "action" = one_of(&WATCH_ACTION).or_text("restart"), "Action when a file in the directories changes.";
        "timeout" = integer(0, 3_600).inert("the guest is started again as soon as it has ended");
    }

    words WATCH_ACTION("workers[guest].options.watch.action") { "restart" }
}
