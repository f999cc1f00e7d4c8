//! Figures as SVG: static, inline, drawn by plotters in pixel positions that this module's parts compute with its
//! coordinates.
//!
//! Every subject has a mark, a dash and a colour of its own, so that a print without colours distinguishes them; the
//! description of each figure lists its values.

mod axis;
mod canvas;
mod curves;
mod percentiles;
mod ranges;
mod role;

pub(crate) use axis::Scale;
pub(crate) use curves::{Curve, Side, curves};
pub(crate) use percentiles::{Line, percentiles};
pub(crate) use ranges::{Mark, Rank, ranges};
pub(crate) use role::{Role, Roles, legend_mark};
