//! A drawing in CSS pixels. plotters uses whole numbers only, so it gets several of them for each pixel, and the SVG's
//! view box divides them again.

use plotters::backend::SVGBackend;
use plotters::coord::Shift;
use plotters::element::{Circle, DashedPathElement, PathElement, Polygon, Text};
use plotters::prelude::{DrawingArea, IntoDrawingArea};
use plotters::style::text_anchor::{HPos, Pos, VPos};
use plotters::style::{Color, IntoFont, RGBColor, ShapeStyle, TextStyle};

use super::role::{Role, Shape};

/// Positions per pixel.
const FINE: f64 = 10.0;

/// plotters writes a font's size divided by this.
const FONT_SIZE_OF_PLOTTERS: f64 = 1.24;

/// A pixel position from the upper left.
pub(super) type Point = (f64, f64);

/// The side of its point on which a text is.
#[derive(Clone, Copy, Debug)]
pub(super) enum Beside {
    Left,
    Right,
    Below,
}

/// The screen of a chart: each chart is drawn twice, and the page shows one of the two. In a wide chart that was shrunk
/// to fit, letters would be too small to read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    Wide,
    Narrow,
}

impl Form {
    /// Both, one behind the other.
    pub(super) fn both(draw: impl Fn(Self) -> String) -> String {
        draw(Self::Wide) + &draw(Self::Narrow)
    }

    /// In pixels; a narrow one fits on the narrowest screen in use.
    pub(super) fn width(self, wide: u32) -> u32 {
        match self {
            Self::Wide => wide,
            Self::Narrow => 340,
        }
    }
}

/// Drawn elements are stored and put onto plotters' area at the end, at once.
pub(super) struct Canvas {
    size: (u32, u32),
    items: Vec<Item>,
}

enum Item {
    Line(Vec<(i32, i32)>, ShapeStyle),
    Dashes(Vec<(i32, i32)>, (i32, i32), ShapeStyle),
    Polygon(Vec<(i32, i32)>, ShapeStyle),
    Circle((i32, i32), i32, ShapeStyle),
    Text(String, (i32, i32), f64, RGBColor, Pos),
}

impl Canvas {
    pub(super) fn new(width: u32, height: u32) -> Self {
        Self {
            size: (width, height),
            items: Vec::new(),
        }
    }

    /// A thin line of the frame or the grid.
    pub(super) fn rule(&mut self, from: Point, to: Point, colour: RGBColor, width: f64) {
        self.items.push(Item::Line(
            vec![fine(from), fine(to)],
            stroke(colour, width),
        ));
    }

    /// A subject's line through these points, in its dash.
    pub(super) fn line(&mut self, points: &[Point], role: Role, width: f64) {
        let style = stroke(role.colour, width);
        let points = points.iter().copied().map(fine).collect();
        self.items.push(match role.dash {
            None => Item::Line(points, style),
            Some((on, off)) => Item::Dashes(points, (on * FINE as i32, off * FINE as i32), style),
        });
    }

    /// A subject's mark.
    pub(super) fn mark(&mut self, (x, y): Point, role: Role, radius: f64) {
        let filled = role.colour.filled();
        let at = |corners: &[Point]| -> Vec<(i32, i32)> {
            let corners = corners.iter();
            corners
                .map(|(dx, dy)| fine((x + dx * radius, y + dy * radius)))
                .collect()
        };
        let diamond = [(0.0, -1.25), (1.1, 0.0), (0.0, 1.25), (-1.1, 0.0)];
        let item = match role.shape {
            Shape::Disc => Item::Circle(fine((x, y)), whole(radius * FINE), filled),
            Shape::Square => {
                let corners = [(-0.9, -0.9), (0.9, -0.9), (0.9, 0.9), (-0.9, 0.9)];
                Item::Polygon(at(&corners), filled)
            }
            Shape::Triangle => Item::Polygon(at(&[(0.0, -1.2), (1.1, 0.85), (-1.1, 0.85)]), filled),
            Shape::Diamond => Item::Polygon(at(&diamond), filled),
            Shape::Cross => {
                let style = stroke(role.colour, 2.0);
                self.items
                    .push(Item::Line(at(&[(-0.9, -0.9), (0.9, 0.9)]), style));
                Item::Line(at(&[(-0.9, 0.9), (0.9, -0.9)]), style)
            }
            Shape::HollowDiamond => {
                let mut outline = at(&diamond);
                outline.push(outline[0]);
                Item::Line(outline, stroke(role.colour, 1.6))
            }
        };
        self.items.push(item);
    }

    pub(super) fn text(&mut self, text: &str, at: Point, beside: Beside, size: f64, ink: RGBColor) {
        let position = match beside {
            Beside::Left => Pos::new(HPos::Right, VPos::Center),
            Beside::Right => Pos::new(HPos::Left, VPos::Center),
            Beside::Below => Pos::new(HPos::Center, VPos::Top),
        };
        let size = size * FINE * FONT_SIZE_OF_PLOTTERS;
        self.items
            .push(Item::Text(text.to_owned(), fine(at), size, ink, position));
    }

    /// The SVG, with a description in words for readers who do not see it.
    pub(super) fn figure(self, form: Form, title: &str, description: &str) -> String {
        let words = format!(
            "role=\"img\"><title>{}</title><desc>{}</desc>",
            escape(title),
            escape(description)
        );
        let class = match form {
            Form::Wide => "chart",
            Form::Narrow => "chart narrow",
        };
        self.svg(class, &words)
    }

    /// The SVG of something that only repeats the text beside it.
    pub(super) fn decoration(self) -> String {
        self.svg("mark", "aria-hidden=\"true\">")
    }

    fn svg(self, class: &str, words: &str) -> String {
        let (width, height) = self.size;
        let mut text = String::new();
        {
            let size = (width * FINE as u32, height * FINE as u32);
            let area = SVGBackend::with_string(&mut text, size).into_drawing_area();
            for item in &self.items {
                item.draw(&area);
            }
            // Written into a string, which cannot fail.
            let _ = area.present();
        }
        // plotters' opening tag fixes the size; ours lets the page choose it and has the description.
        let body = text.split_once('>').map_or("", |(_, body)| body);
        let (fine_width, fine_height) = (width * FINE as u32, height * FINE as u32);
        format!(
            "<svg class=\"{class}\" viewBox=\"0 0 {fine_width} {fine_height}\" \
             style=\"width:{width}px\" {words}{body}"
        )
    }
}

impl Item {
    fn draw(&self, area: &DrawingArea<SVGBackend<'_>, Shift>) {
        // Written into a string, which cannot fail.
        let _ = match self {
            Self::Line(points, style) => area.draw(&PathElement::new(points.clone(), *style)),
            Self::Dashes(points, (on, off), style) => area.draw(&DashedPathElement::new(
                points.iter().copied(),
                *on,
                *off,
                *style,
            )),
            Self::Polygon(points, style) => area.draw(&Polygon::new(points.clone(), *style)),
            Self::Circle(at, radius, style) => area.draw(&Circle::new(*at, *radius, *style)),
            Self::Text(text, at, size, colour, position) => {
                let style = TextStyle::from(("sans-serif", *size).into_font())
                    .color(colour)
                    .pos(*position);
                area.draw(&Text::new(text.as_str(), *at, style))
            }
        };
    }
}

fn stroke(colour: RGBColor, width: f64) -> ShapeStyle {
    colour.stroke_width(whole(width * FINE).unsigned_abs())
}

fn whole(value: f64) -> i32 {
    // Saturates, which keeps points far outside of the picture outside.
    value.round() as i32
}

fn fine((x, y): Point) -> (i32, i32) {
    (whole(x * FINE), whole(y * FINE))
}

/// Text escaped for SVG and HTML.
fn escape(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_drawing_has_a_description() {
        let mut canvas = Canvas::new(20, 10);
        canvas.text(
            "a < b",
            (1.0, 2.0),
            Beside::Right,
            12.0,
            super::super::role::INK,
        );
        let svg = canvas.figure(Form::Wide, "x & y", "z");
        assert!(
            svg.starts_with("<svg class=\"chart\" viewBox=\"0 0 200 100\""),
            "{svg}"
        );
        assert!(
            svg.contains("<title>x &amp; y</title><desc>z</desc>"),
            "{svg}"
        );
        assert!(
            svg.contains("a &lt; b") && svg.trim_end().ends_with("</svg>"),
            "{svg}"
        );
        assert!(svg.contains("font-size=\"120"), "{svg}");
    }
}
