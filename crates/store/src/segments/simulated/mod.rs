//! A simulation of a store on a disk that tears, fills up, fails and lies, from a seed.
//!
//! Properties, after each crash and start: every confirmed message is there, or is reported as missing; none is there
//! that was acknowledged, and none that was refused, unless power was lost before a later commit; each body is the one
//! that was published.

mod damage;
mod run;
mod scenarios;
