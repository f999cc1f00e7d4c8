//! Topologies by script: each row of a script is a step, and what is indented below it is what
//! the step says. Faults are what RabbitMQ 3.10.8 said to the same steps.

mod cost;
mod declare;
mod hashing;
mod headers;
mod many;
mod permissions;
mod queue_arguments;
mod remains;
mod route;
mod script;
mod survive;

use script::check;
