//! Stores from outside, and the process whose file descriptors are used up apart (`few_files`). One program has all of
//! these tests: each program more is linked for a second or two, and runs after the others.

mod backup;
mod check;
mod commit;
mod damage;
mod drafts;
mod events;
mod paging;
mod records;
mod refusal;
mod replace;
mod restore;
#[path = "../rig/mod.rs"]
mod rig;
mod second_start;
mod settings;
mod upgrade;
mod vhosts;
mod wrong_bits;
