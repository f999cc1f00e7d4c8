//! oslo.messaging itself: an interpreter with it, and the script that makes it a client or a server of this bench.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::case::Operation;
use super::names::Names;
use super::worker::{PythonArgument, PythonOrder, Role};
use crate::broker::Broker;
use crate::error::BenchError;

/// An interpreter that was found.
pub(super) struct Python {
    program: PathBuf,
    script: PathBuf,
    /// Of oslo.messaging and of Python.
    pub(super) version: String,
}

const VERSION: &str = "import importlib.metadata, oslo_messaging, platform; \
                       print(importlib.metadata.version('oslo.messaging') + ', Python', \
                       platform.python_version())";

impl Python {
    /// Checks its imports, and writes the script to `directory`.
    pub(super) fn find(program: &Path, directory: &Path) -> Result<Self, BenchError> {
        let refuse = |why: String| {
            let at = program.display();
            Err(BenchError::Options(format!("--python {at}: {why}")))
        };
        let output = Command::new(program)
            .args(["-c", VERSION])
            .stdin(Stdio::null())
            .output();
        let output = match output {
            Ok(output) => output,
            Err(error) => return refuse(format!("it does not run: {error}")),
        };
        if !output.status.success() {
            let said = String::from_utf8_lossy(&output.stderr);
            let last = said.lines().rfind(|line| !line.trim().is_empty());
            let last = last.unwrap_or("it does not say why");
            return refuse(format!(
                "it has no oslo.messaging ({last}); `pip install oslo.messaging` into a virtual \
                 environment and name its interpreter"
            ));
        }
        let script = directory.join("oslo_ends.py");
        fs::write(&script, include_str!("oslo_ends.py"))?;
        Ok(Self {
            program: program.to_owned(),
            script,
            version: String::from_utf8_lossy(&output.stdout).trim().to_owned(),
        })
    }

    pub(super) fn role(
        &self,
        is_server: bool,
        broker: &Broker,
        names: &Names,
        operation: Operation,
    ) -> Role {
        Role::Python(PythonOrder {
            program: self.program.clone(),
            script: self.script.clone(),
            argument: PythonArgument {
                is_server,
                url: broker.url(),
                names: names.clone(),
                operation,
            },
        })
    }
}
