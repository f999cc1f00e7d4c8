//! Configurations and definitions, from their text: what is read, refused, converted and told.

mod cases;
mod convert;
mod definitions;
mod differences;
mod fragments;
mod load;
mod mutated;
mod part;
