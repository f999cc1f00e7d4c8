//! The appearance of each subject, the same on the whole page.

use plotters::style::RGBColor;

use super::canvas::Canvas;
use crate::run::{FLOOR, OWN};

/// The shape of a subject's points.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shape {
    Disc,
    Square,
    Triangle,
    Diamond,
    Cross,
    /// A hollow diamond: a figure from elsewhere, not from this run.
    HollowDiamond,
}

/// A subject's shape, colour and dash.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Role {
    pub(crate) shape: Shape,
    pub(crate) colour: RGBColor,
    /// Pixels drawn and pixels left out; `None` for a solid line.
    pub(crate) dash: Option<(i32, i32)>,
}

// The style sheet knows these colours by value, and has others for dark screens.
pub(super) const BLUE: RGBColor = RGBColor(0x0B, 0x5F, 0xA5);
pub(super) const GREY: RGBColor = RGBColor(0x6B, 0x72, 0x80);
pub(super) const INK: RGBColor = RGBColor(0x1F, 0x29, 0x37);
pub(super) const GRID: RGBColor = RGBColor(0xE5, 0xE7, 0xEB);
pub(super) const AXIS: RGBColor = RGBColor(0x9C, 0xA3, 0xAF);
const PEERS: [(RGBColor, Shape, (i32, i32)); 4] = [
    (RGBColor(0xC2, 0x41, 0x0C), Shape::Triangle, (9, 3)),
    (RGBColor(0x04, 0x78, 0x57), Shape::Diamond, (2, 3)),
    (RGBColor(0x7C, 0x3A, 0xED), Shape::Cross, (12, 4)),
    (RGBColor(0xA1, 0x62, 0x07), Shape::Triangle, (4, 2)),
];

impl Role {
    /// Of a document's figure.
    pub(crate) const DOCUMENT: Self = Self {
        shape: Shape::HollowDiamond,
        colour: INK,
        dash: Some((2, 4)),
    };
}

/// The roles of all subjects of a page; a peer keeps its first one.
#[derive(Debug, Default)]
pub(crate) struct Roles {
    peers: Vec<String>,
}

impl Roles {
    pub(crate) fn of<'a>(subjects: impl IntoIterator<Item = &'a str>) -> Self {
        let mut peers: Vec<String> = Vec::new();
        for subject in subjects {
            let known =
                subject == OWN || subject.starts_with(FLOOR) || peers.iter().any(|p| p == subject);
            if !known {
                peers.push(subject.to_owned());
            }
        }
        Self { peers }
    }

    pub(crate) fn role(&self, subject: &str) -> Role {
        match subject {
            OWN => Role {
                shape: Shape::Disc,
                colour: BLUE,
                dash: None,
            },
            FLOOR => Role {
                shape: Shape::Square,
                colour: GREY,
                dash: Some((5, 3)),
            },
            // Another kind of the same floor.
            other if other.starts_with(FLOOR) => Role {
                shape: Shape::Cross,
                colour: GREY,
                dash: Some((2, 2)),
            },
            peer => {
                let at = self.peers.iter().position(|known| known == peer);
                match at {
                    Some(at) => {
                        let (colour, shape, dash) = PEERS[at % PEERS.len()];
                        Role {
                            shape,
                            colour,
                            dash: Some(dash),
                        }
                    }
                    None => Role::DOCUMENT,
                }
            }
        }
    }
}

/// A small picture of a subject's line and mark, for legends and tables.
pub(crate) fn legend_mark(role: Role) -> String {
    let mut canvas = Canvas::new(30, 12);
    canvas.line(&[(1.0, 6.0), (29.0, 6.0)], role, 1.6);
    canvas.mark((15.0, 6.0), role, 4.0);
    canvas.decoration()
}
