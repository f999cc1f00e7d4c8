//! Bounds at which publishers are blocked, alarms raised by hand, and the bound of channels.

use crosstie_client::args;

use super::command::{Command, Run, ctl};
use super::failure::Failure;
use super::output::Output;

#[rustfmt::skip]
pub(super) static COMMANDS: [Command; 3] = [
    ctl("set_vm_memory_high_watermark", (1, 2), "<fraction> | absolute <value>", &[], set_memory),
    ctl("set_disk_free_limit", (1, 2), "<disk_limit> | mem_relative <fraction>", &[], set_disk),
    ctl("eval", (1, 1), "<expression>", &[], eval),
];

/// An amount, in a unit of the management realm.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Amount(f64, &'static str);

/// Why an amount is none.
#[derive(Debug, PartialEq, Eq)]
enum Wrong {
    TooFew,
    TooMany,
    /// With RabbitMQ's remark, if it has one.
    Bad(&'static str),
}

fn set_memory(run: &Run) -> Result<Output, Failure> {
    let given = given(run);
    let amount = memory(&given).map_err(|wrong| failure(run, wrong))?;
    let node = run.session.name()?;
    run.announce(&match given[..] {
        [_, value] => format!("Setting memory threshold on {node} to {value} bytes ..."),
        _ => format!("Setting memory threshold on {node} to {} ...", given[0]),
    })?;
    set(run, "memory", amount)
}

fn set_disk(run: &Run) -> Result<Output, Failure> {
    let given = given(run);
    let amount = disk(&given).map_err(|wrong| failure(run, wrong))?;
    let node = run.session.name()?;
    run.announce(&match given[..] {
        [_, value] => {
            format!("Setting disk free limit on {node} to {value} times the total RAM ...")
        }
        _ => format!(
            "Setting disk free limit on {node} to {} bytes ...",
            given[0]
        ),
    })?;
    set(run, "disk", amount)
}

fn given(run: &Run) -> Vec<&str> {
    run.words.arguments.iter().map(String::as_str).collect()
}

fn set(run: &Run, resource: &str, Amount(amount, unit): Amount) -> Result<Output, Failure> {
    let arguments = || args![resource, amount, unit];
    run.session.call("set_amqp_bound", None, arguments)?;
    Ok(Output::Nothing)
}

fn failure(run: &Run, wrong: Wrong) -> Failure {
    match wrong {
        Wrong::TooFew => run.bad_words("not enough arguments."),
        Wrong::TooMany => run.bad_words("too many arguments."),
        Wrong::Bad("") => Failure {
            exit_code: Failure::DATA,
            ..run.bad_words("Bad argument.")
        },
        Wrong::Bad(remark) => run.bad_argument(remark),
    }
}

fn memory(given: &[&str]) -> Result<Amount, Wrong> {
    match given {
        ["absolute"] => Err(Wrong::TooFew),
        ["absolute", value] => {
            let (number, rest) = whole(value).ok_or(Wrong::Bad(""))?;
            let unit = unit(rest).ok_or_else(|| match rest.starts_with('.') {
                true => Wrong::Bad("The threshold should be an integer."),
                false => Wrong::Bad("Invalid units."),
            })?;
            match number > 0.0 {
                true => Ok(Amount(number * unit, "bytes")),
                false => Err(Wrong::Bad("The threshold should be more than 0.")),
            }
        }
        [value] => match fraction(value).ok_or(Wrong::Bad(""))? {
            part if (0.0..=1.0).contains(&part) => Ok(Amount(part, "ram")),
            _ => Err(Wrong::Bad(
                "The threshold should be a fraction between 0.0 and 1.0",
            )),
        },
        _ => Err(Wrong::TooMany),
    }
}

fn disk(given: &[&str]) -> Result<Amount, Wrong> {
    match given {
        ["mem_relative"] => Err(Wrong::TooFew),
        ["mem_relative", value] => {
            let part = fraction(value).filter(|part| *part >= 0.0);
            Ok(Amount(part.ok_or(Wrong::Bad(""))?, "ram"))
        }
        [value] => {
            let found = whole(value).and_then(|(number, rest)| Some(number * unit(rest)?));
            let bytes = found.filter(|bytes| *bytes >= 0.0);
            Ok(Amount(bytes.ok_or(Wrong::Bad(""))?, "bytes"))
        }
        _ => Err(Wrong::TooMany),
    }
}

/// A whole number at the beginning of a text, and the rest.
fn whole(text: &str) -> Option<(f64, &str)> {
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    let rest = unsigned.trim_start_matches(|c: char| c.is_ascii_digit());
    let number = text[..text.len() - rest.len()].parse().ok()?;
    Some((number, rest))
}

/// A text that is a number as Elixir writes it: with digits before and behind the point.
fn fraction(text: &str) -> Option<f64> {
    let (_, rest) = whole(text)?;
    let is_plain = match rest.strip_prefix('.') {
        Some(digits) => digits.starts_with(|c: char| c.is_ascii_digit()),
        None => true,
    };
    text.parse().ok().filter(|_| is_plain)
}

/// RabbitMQ's units, in bytes.
fn unit(name: &str) -> Option<f64> {
    let bytes: u32 = match name {
        "" => 1,
        "k" | "kiB" => 1 << 10,
        "M" | "MiB" => 1 << 20,
        "G" | "GiB" => 1 << 30,
        "kB" => 1_000,
        "MB" => 1_000_000,
        "GB" => 1_000_000_000,
        _ => return None,
    };
    Some(bytes.into())
}

/// An expression that is understood: those by which RabbitMQ's own suites raise an alarm and clear it, and change the
/// maximum number of channels. Any other one is refused.
#[derive(Debug, PartialEq, Eq)]
enum Expression {
    Alarm(&'static str, bool),
    /// Sets `channel_max`; 0 is no bound.
    SetChannels(u16),
    /// Reads it: `{ok,2047}`, or the number alone.
    Channels {
        is_bare: bool,
    },
}

fn eval(run: &Run) -> Result<Output, Failure> {
    let Some(expression) = expression(run.argument(0)) else {
        return Err(Failure::not_here("eval"));
    };
    let said = match expression {
        Expression::Alarm(resource, is_raised) => {
            let arguments = || args![resource, is_raised];
            run.session.call("set_amqp_alarm", None, arguments)?;
            "ok".to_owned()
        }
        Expression::SetChannels(channels_max) => {
            let arguments = || args![channels_max];
            let procedure = "set_amqp_channels_max";
            run.session.call(procedure, None, arguments)?;
            "ok".to_owned()
        }
        Expression::Channels { is_bare } => {
            let answer = run
                .session
                .call("get_amqp_channels_max", None, || args![])?;
            let number = &answer["channels_max"];
            match is_bare {
                true => number.to_string(),
                false => format!("{{ok,{number}}}"),
            }
        }
    };
    Ok(Output::Text(said))
}

fn expression(text: &str) -> Option<Expression> {
    let text: String = text.split_whitespace().collect();
    let alarm = |(resource, is_raised)| Expression::Alarm(resource, is_raised);
    alarm_of(&text).map(alarm).or_else(|| channels_of(&text))
}

fn channels_of(text: &str) -> Option<Expression> {
    const READ: &str = "application:get_env(rabbit,channel_max)";
    if let Some(rest) = text.strip_prefix("application:set_env(rabbit,channel_max,") {
        let number = rest.strip_suffix(").")?.parse();
        return number.ok().map(Expression::SetChannels);
    }
    if let Some(rest) = text.strip_prefix(READ) {
        return (rest == ".").then_some(Expression::Channels { is_bare: false });
    }
    // `{ok, V} = …, V.`, with any variable.
    let (variable, rest) = text.strip_prefix("{ok,")?.split_once("}=")?;
    let is_variable = variable.starts_with(|c: char| c.is_ascii_uppercase())
        && variable
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || c == '_');
    let end = rest.strip_prefix(READ)?.strip_prefix(',')?;
    let is_bare = is_variable && end.strip_suffix('.') == Some(variable);
    is_bare.then_some(Expression::Channels { is_bare })
}

fn alarm_of(text: &str) -> Option<(&'static str, bool)> {
    let set = "rabbit_alarm:set_alarm({{resource_limit,";
    let clear = "rabbit_alarm:clear_alarm({resource_limit,";
    let (rest, is_raised) = match (text.strip_prefix(set), text.strip_prefix(clear)) {
        (Some(rest), _) => (rest.strip_suffix(",node()},[]}).")?, true),
        (None, Some(rest)) => (rest.strip_suffix(",node()}).")?, false),
        (None, None) => return None,
    };
    let mut resources = ["memory", "disk"].into_iter();
    let resource = resources.find(|name| *name == rest)?;
    Some((resource, is_raised))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_are_read() {
        for (given, expected) in [
            ("0.4", Ok(Amount(0.4, "ram"))),
            ("1", Ok(Amount(1.0, "ram"))),
            ("1e-9", Ok(Amount(1e-9, "ram"))),
            ("absolute 2GB", Ok(Amount(2e9, "bytes"))),
            ("absolute 2GiB", Ok(Amount(2_147_483_648.0, "bytes"))),
            ("absolute 5", Ok(Amount(5.0, "bytes"))),
            ("absolute", Err(Wrong::TooFew)),
            ("absolute 1 2", Err(Wrong::TooMany)),
            ("absolute x", Err(Wrong::Bad(""))),
            ("absolute 2XB", Err(Wrong::Bad("Invalid units."))),
            (
                "absolute 2.5GB",
                Err(Wrong::Bad("The threshold should be an integer.")),
            ),
            (".4", Err(Wrong::Bad(""))),
            ("0.", Err(Wrong::Bad(""))),
            ("nan", Err(Wrong::Bad(""))),
            ("0.4 0.5", Err(Wrong::TooMany)),
        ] {
            let words: Vec<&str> = given.split(' ').collect();
            assert_eq!(memory(&words), expected, "{given}");
        }
        for (given, expected) in [
            ("50MB", Ok(Amount(5e7, "bytes"))),
            ("0", Ok(Amount(0.0, "bytes"))),
            ("-1", Err(Wrong::Bad(""))),
            ("1.5GB", Err(Wrong::Bad(""))),
            ("mem_relative 1.5", Ok(Amount(1.5, "ram"))),
            ("mem_relative 2", Ok(Amount(2.0, "ram"))),
            ("mem_relative -1", Err(Wrong::Bad(""))),
            ("mem_relative", Err(Wrong::TooFew)),
            ("1 2", Err(Wrong::TooMany)),
        ] {
            let words: Vec<&str> = given.split(' ').collect();
            assert_eq!(disk(&words), expected, "{given}");
        }
    }

    #[test]
    fn expressions_are_read() {
        let channels = |is_bare| Some(Expression::Channels { is_bare });
        for (text, expected) in [
            (
                "rabbit_alarm:set_alarm({{resource_limit, disk, node()}, []}).",
                Some(Expression::Alarm("disk", true)),
            ),
            (
                "rabbit_alarm:clear_alarm({resource_limit, memory, node()}).",
                Some(Expression::Alarm("memory", false)),
            ),
            (
                "application:set_env(rabbit, channel_max, 48).",
                Some(Expression::SetChannels(48)),
            ),
            ("application:get_env(rabbit, channel_max).", channels(false)),
            (
                "{ok, V} = application:get_env(rabbit, channel_max), V.",
                channels(true),
            ),
            ("application:set_env(rabbit, channel_max, 65536).", None),
            (
                "application:set_env(rabbit, channel_max, 1), init:stop().",
                None,
            ),
            ("application:set_env(rabbit, frame_max, 4096).", None),
            (
                "{ok, V} = application:get_env(rabbit, channel_max), W.",
                None,
            ),
            (
                "{ok, v} = application:get_env(rabbit, channel_max), v.",
                None,
            ),
            (
                "rabbit_alarm:set_alarm({{resource_limit, disk, 'a@b'}, []}).",
                None,
            ),
            ("1 + 1.", None),
        ] {
            assert_eq!(expression(text), expected, "{text}");
        }
    }
}
