//! Dates and times in text (RFC 3339), as far as Python's `datetime` holds them.

/// Whether it is a date and a time with an offset.
pub(super) fn is_date_time(text: &str) -> bool {
    let Some((date, time)) = text.split_at_checked(10) else {
        return false;
    };
    let Some(time) = time.strip_prefix(['T', 't', ' ']) else {
        return false;
    };
    let Some((clock, rest)) = time.split_at_checked(8) else {
        return false;
    };
    let offset = match rest.strip_prefix('.') {
        Some(fraction) => {
            let offset = fraction.trim_start_matches(|c: char| c.is_ascii_digit());
            let digits = fraction.len() - offset.len();
            if !(1..=9).contains(&digits) {
                return false;
            }
            offset
        }
        None => rest,
    };
    is_date(date) && is_clock(clock) && is_offset(offset)
}

/// Whether it is a date in the years from 1 to 9999.
pub(super) fn is_date(text: &str) -> bool {
    let Some([year, month, day]) = numbers(text, "dddd-dd-dd") else {
        return false;
    };
    let is_leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let days = match month {
        2 if is_leap => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        1..=12 => 31,
        _ => 0,
    };
    year >= 1 && (1..=days).contains(&day)
}

fn is_clock(text: &str) -> bool {
    let clock: Option<[u32; 3]> = numbers(text, "dd:dd:dd");
    clock.is_some_and(|[hour, minute, second]| hour < 24 && minute < 60 && second < 60)
}

fn is_offset(text: &str) -> bool {
    let Some(text) = text.strip_prefix(['+', '-']) else {
        return text == "Z";
    };
    let offset: Option<[u32; 2]> = numbers(text, "dd:dd");
    offset.is_some_and(|[hour, minute]| hour < 24 && minute < 60)
}

/// The numbers in text of that form, in which `d` is a digit.
fn numbers<const COUNT: usize>(text: &str, form: &str) -> Option<[u32; COUNT]> {
    let is_form = text.len() == form.len()
        && text
            .bytes()
            .zip(form.bytes())
            .all(|(byte, form)| match form {
                b'd' => byte.is_ascii_digit(),
                _ => byte == form,
            });
    if !is_form {
        return None;
    }
    let mut parts = text.split(['-', ':']).map(str::parse);
    let mut numbers = [0; COUNT];
    for number in &mut numbers {
        *number = parts.next()?.ok()?;
    }
    Some(numbers)
}
