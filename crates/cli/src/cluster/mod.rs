//! `crosstie cluster`: several nodes of the same realms.

mod accounts;
mod demo;
mod init;
mod merge;
mod nats_server;
mod pages;
mod plan;
mod status;

use std::process::ExitCode;

use clap::Subcommand;

#[derive(Subcommand)]
pub(crate) enum Cluster {
    Init(Box<init::Arguments>),
    Status(status::Arguments),
    Demo(demo::Arguments),
}

pub(crate) fn run(command: Cluster) -> anyhow::Result<ExitCode> {
    match command {
        Cluster::Init(arguments) => init::run(*arguments),
        Cluster::Status(arguments) => status::run(&arguments),
        Cluster::Demo(arguments) => demo::run(&arguments),
    }
}
