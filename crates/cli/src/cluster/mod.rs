//! `crosstie cluster`: several nodes of the same realms.

mod accounts;
mod add;
mod certificates;
mod change;
mod demo;
mod directory;
mod files;
mod init;
mod joining;
mod lines;
mod merge;
mod names;
mod nats_server;
mod pages;
mod plan;
mod record;
mod removal;
mod replace;
mod rotate;
mod seeds;
mod server;
mod status;
mod steps;
mod survey;
mod verdict;

use std::process::ExitCode;

use clap::Subcommand;

#[derive(Subcommand)]
pub(crate) enum Cluster {
    Init(Box<init::Arguments>),
    Add(add::Arguments),
    Replace(replace::Arguments),
    Rotate(rotate::Arguments),
    Status(status::Arguments),
    Demo(demo::Arguments),
}

pub(crate) fn run(command: Cluster) -> anyhow::Result<ExitCode> {
    match command {
        Cluster::Init(arguments) => init::run(*arguments),
        Cluster::Add(arguments) => add::run(&arguments),
        Cluster::Replace(arguments) => replace::run(&arguments),
        Cluster::Rotate(arguments) => rotate::run(&arguments),
        Cluster::Status(arguments) => status::run(&arguments),
        Cluster::Demo(arguments) => demo::run(&arguments),
    }
}
