//! The memory of a watched connection.

use super::*;

#[test]
fn an_idle_connection_costs_little() {
    assert_eq!(size_of::<Watched>(), 32);
}
