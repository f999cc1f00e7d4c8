//! Figures for people: aligned, with only the significant digits.

use comfy_table::{Cell, CellAlignment, ContentArrangement, LineStyle, Table, TableStyle};

use crate::load::Spread;

/// One line below the header and no others: rows with a second line are separated by it.
const STYLE: TableStyle =
    TableStyle::new().header_separator(LineStyle::none().fill('─').junction('─'));

/// A table with these columns, the first aligned to the left and the numbers to the right.
pub(crate) fn table(columns: &[&str]) -> Table {
    let mut table = Table::new();
    table
        .load_style(STYLE)
        .set_content_arrangement(ContentArrangement::Disabled)
        .set_header(columns.iter().map(Cell::new));
    for column in table.column_iter_mut().skip(1) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    table
}

/// A number with three or four significant digits: `9.47`, `12.6`, `483`, `76,412`.
pub(crate) fn number(value: f64) -> String {
    match value.abs() {
        size if size < 9.995 => format!("{value:.2}"),
        size if size < 99.95 => format!("{value:.1}"),
        _ => thousands(value),
    }
}

/// A whole number, its digits in groups.
pub(crate) fn thousands(value: f64) -> String {
    let digits = format!("{:.0}", value.abs());
    let mut text = String::with_capacity(digits.len() + digits.len() / 3 + 1);
    if value < 0.0 {
        text.push('-');
    }
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at) % 3 == 0 {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// One figure, or a dash if it is unknown.
pub(crate) fn known(value: Option<f64>, form: fn(f64) -> String) -> String {
    value.map_or_else(|| UNKNOWN.to_owned(), form)
}

/// The placeholder of an unknown figure.
pub(crate) const UNKNOWN: &str = "–";

/// The median, and below it the smallest and the largest.
pub(crate) fn spread(spread: Option<Spread>, form: fn(f64) -> String) -> String {
    match spread {
        None => UNKNOWN.to_owned(),
        Some(Spread { median, min, max }) if min == max => form(median),
        Some(Spread { median, min, max }) => {
            format!("{}\n{}–{}", form(median), form(min), form(max))
        }
    }
}

/// Bytes in KiB or MiB.
pub(crate) fn bytes(value: f64) -> String {
    match value {
        size if size < 10_240.0 => format!("{} B", thousands(size)),
        size if size < 1_048_576.0 => format!("{:.1} KiB", size / 1024.0),
        size => format!("{:.1} MiB", size / 1_048_576.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers() {
        #[track_caller]
        fn check(form: fn(f64) -> String, value: f64, expected: &str) {
            assert_eq!(form(value), expected);
        }
        check(number, 0.0, "0.00");
        check(number, 9.474, "9.47");
        check(number, 9.999, "10.0");
        check(number, 12.64, "12.6");
        check(number, 483.0, "483");
        check(number, 76_412.4, "76,412");
        check(thousands, 0.4, "0");
        check(thousands, 999.0, "999");
        check(thousands, 1_000.0, "1,000");
        check(thousands, -1_234_567.0, "-1,234,567");
        check(bytes, 901.0, "901 B");
        check(bytes, 10_240.0, "10.0 KiB");
        check(bytes, 8.0 * 1_048_576.0, "8.0 MiB");
    }

    #[test]
    fn a_table_is_aligned() {
        let mut table = table(&["subject", "p50 µs"]);
        table.add_row(["crosstie", "13.1"]);
        table.add_row(["floor", "9.47"]);
        assert_eq!(
            table.trim_fmt().lines().collect::<Vec<_>>(),
            [
                " subject    p50 µs",
                "───────────────────",
                " crosstie     13.1",
                " floor        9.47",
            ]
        );
    }

    #[test]
    fn spreads() {
        #[track_caller]
        fn check(values: &[f64], expected: &str) {
            assert_eq!(spread(Spread::of(values.iter().copied()), number), expected);
        }
        check(&[], "–");
        check(&[12.0], "12.0");
        check(&[12.0, 13.0, 11.0], "12.0\n11.0–13.0");
    }
}
