//! The body of a request: its call or publication. Arguments pass as received.

use crosstie_wamp::codec::{self, Limits};
use crosstie_wamp::{CallOptions, Message, Payload, PublishOptions, Serializer, Value};

use super::Refusal;

/// A call.
#[derive(Clone, Debug, PartialEq)]
pub struct Call<'b> {
    pub procedure: String,
    pub options: CallOptions,
    pub payload: Payload<'b>,
}

/// A publication, which always requests an acknowledgement.
#[derive(Clone, Debug, PartialEq)]
pub struct Publication<'b> {
    pub topic: String,
    pub options: PublishOptions,
    pub payload: Payload<'b>,
}

const JSON: Serializer = Serializer::Json;

/// Reads `{procedure, args, kwargs, options}`. Other keys are ignored; the last of duplicate keys counts.
pub fn call<'b>(body: &'b [u8], limits: &Limits) -> Result<Call<'b>, Refusal> {
    let parts = Parts::read("procedure", body, limits)?;
    let options = match parts.options_in("48")? {
        None => CallOptions::default(),
        Some(message) => match codec::decode(JSON, &message, limits) {
            Ok(Message::Call { options, .. }) => options,
            Ok(_) => CallOptions::default(),
            Err(_) => return Err(BAD_OPTIONS),
        },
    };
    Ok(Call {
        procedure: parts.name()?,
        options,
        payload: parts.payload()?,
    })
}

/// Reads `{topic, args, kwargs, options}` likewise.
pub fn publication<'b>(body: &'b [u8], limits: &Limits) -> Result<Publication<'b>, Refusal> {
    let parts = Parts::read("topic", body, limits)?;
    let options = match parts.options_in("16")? {
        None => PublishOptions::default(),
        Some(message) => match codec::decode(JSON, &message, limits) {
            Ok(Message::Publish { options, .. }) => options,
            Ok(_) => PublishOptions::default(),
            Err(_) => return Err(BAD_OPTIONS),
        },
    };
    Ok(Publication {
        topic: parts.name()?,
        options: PublishOptions {
            acknowledge: true,
            ..options
        },
        payload: parts.payload()?,
    })
}

const BAD_OPTIONS: Refusal = Refusal::BadKey {
    key: "options",
    expected: "a dict of WAMP options",
};

/// The values of a body, as bytes; empty if absent.
struct Parts<'b> {
    key: &'static str,
    name: &'b [u8],
    args: &'b [u8],
    kwargs: &'b [u8],
    options: &'b [u8],
}

impl<'b> Parts<'b> {
    fn read(key: &'static str, body: &'b [u8], limits: &Limits) -> Result<Self, Refusal> {
        if !body.trim_ascii_start().starts_with(b"{") {
            let is_json = codec::check_value(JSON, body, limits).is_ok();
            return Err(if is_json {
                Refusal::NotDict
            } else {
                Refusal::NotJson
            });
        }
        let mut parts = Self {
            key,
            name: &[],
            args: &[],
            kwargs: &[],
            options: &[],
        };
        let read = codec::read_entries(JSON, body, limits, |name, value| match name {
            "args" => parts.args = value,
            "kwargs" => parts.kwargs = value,
            "options" => parts.options = value,
            name if name == key => parts.name = value,
            _ => {}
        });
        match read {
            Err(_) => Err(Refusal::NotJson),
            Ok(()) if parts.name.is_empty() => Err(Refusal::NoKey(key)),
            Ok(()) => Ok(parts),
        }
    }

    fn name(&self) -> Result<String, Refusal> {
        match codec::decode_value(JSON, self.name, &Limits::default()) {
            Ok(Value::String(name)) => Ok(name),
            _ => Err(Refusal::BadKey {
                key: self.key,
                expected: "text",
            }),
        }
    }

    fn payload(&self) -> Result<Payload<'b>, Refusal> {
        let payload = Payload::new(
            JSON,
            part("args", self.args, b'[', "a list")?,
            part("kwargs", self.kwargs, b'{', "a dict")?,
        );
        codec::check_readable(&payload).map_err(Refusal::Unreadable)?;
        Ok(payload)
    }

    /// Puts the options into a message of that type, in which they are decoded like those of any session.
    fn options_in(&self, kind: &str) -> Result<Option<Vec<u8>>, Refusal> {
        let options = part("options", self.options, b'{', "a dict")?;
        if options.is_empty() {
            return Ok(None);
        }
        let mut message = format!("[{kind},1,{{").into_bytes();
        let mut is_first = true;
        let depth = Limits { depth_max: 512 };
        let read = codec::read_entries(JSON, options, &depth, |name, value| {
            // As in Autobahn: null stands for no option, and a single value for a list of one.
            if value == b"null" {
                return;
            }
            if !std::mem::take(&mut is_first) {
                message.push(b',');
            }
            // A text can always be encoded.
            let _ = codec::encode_value(&Value::from(name), JSON, &mut message);
            message.push(b':');
            let is_single = LISTS.contains(&name) && !value.starts_with(b"[");
            message.extend_from_slice(if is_single { b"[" } else { b"" });
            message.extend_from_slice(value);
            message.extend_from_slice(if is_single { b"]" } else { b"" });
        });
        read.map_err(|_| BAD_OPTIONS)?;
        message.extend_from_slice(b"},\"a\"]");
        Ok(Some(message))
    }
}

const LISTS: [&str; 6] = [
    "exclude",
    "exclude_authid",
    "exclude_authrole",
    "eligible",
    "eligible_authid",
    "eligible_authrole",
];

/// A value with the expected first byte, or empty: values that are false in Python count as absent.
fn part<'b>(
    key: &'static str,
    value: &'b [u8],
    opening: u8,
    expected: &'static str,
) -> Result<&'b [u8], Refusal> {
    match value.first() {
        Some(first) if *first == opening => Ok(value),
        _ if is_nothing(value) => Ok(&[]),
        _ => Err(Refusal::BadKey { key, expected }),
    }
}

fn is_nothing(value: &[u8]) -> bool {
    if let [b'[', inner @ .., b']'] | [b'{', inner @ .., b'}'] = value {
        return inner.trim_ascii().is_empty();
    }
    if let b"" | b"null" | b"false" | b"\"\"" = value {
        return true;
    }
    let number = std::str::from_utf8(value)
        .ok()
        .and_then(|text| text.parse().ok());
    number.is_some_and(|number: f64| number == 0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limits() -> Limits {
        Limits::default()
    }

    /// A short description of a decoded call.
    fn read(body: &str) -> String {
        match call(body.as_bytes(), &limits()) {
            Err(refusal) => refusal.to_string(),
            Ok(call) => {
                let text = |bytes| std::str::from_utf8(bytes).expect("text");
                let Payload { args, kwargs, .. } = call.payload;
                format!("{} {} {}", call.procedure, text(args), text(kwargs))
            }
        }
    }

    macro_rules! form {
        ($reason:literal) => {
            concat!(
                "Request body was valid JSON, but not well formed (",
                $reason,
                ")."
            )
        };
    }
    const INVALID: &str = "Request body was invalid JSON.";

    #[rustfmt::skip]
    const CALLS: &[(&str, &str)] = &[
        (r#"{"procedure":"a"}"#, "a  "),
        (r#" {"procedure":"a", "args": [1, {"b":2}] ,"kwargs":{"c" : 3}} "#, r#"a [1, {"b":2}] {"c" : 3}"#),
        (r#"{"args":[1],"x":[{}],"procedure":"a\u0062"}"#, "ab [1] "),
        (r#"{"procedure":"a","args":[1],"args":[2]}"#, "a [2] "),
        (r#"{"procedure":"a","procedure":1}"#, form!("'procedure' must be text")),
        (r#"{"procedure":"a","args":null,"kwargs":0}"#, "a  "),
        (r#"{"procedure":"a","args":"","kwargs":[ ]}"#, "a  "),
        (r#"{"procedure":"a","args":{},"kwargs":false}"#, "a  "),
        (r#"{"procedure":"a","args":-0.0e5}"#, "a  "),
        (r#"{"procedure":"a","args":"b"}"#, form!("'args' must be a list")),
        (r#"{"procedure":"a","args":{"b":1}}"#, form!("'args' must be a list")),
        (r#"{"procedure":"a","args":1}"#, form!("'args' must be a list")),
        (r#"{"procedure":"a","kwargs":[1]}"#, form!("'kwargs' must be a dict")),
        (r#"{"procedure":null}"#, form!("'procedure' must be text")),
        (r#"{"procedure":"\u0000AAAA"}"#, form!("'procedure' must be text")),
        ("{}", form!("missing key 'procedure'")),
        (r#"{"topic":"a"}"#, form!("missing key 'procedure'")),
        ("[]", form!("must be a dict")),
        (" null ", form!("must be a dict")),
        ("\"{}\"", form!("must be a dict")),
        ("1", form!("must be a dict")),
        ("", INVALID),
        ("{", INVALID),
        ("[", INVALID),
        ("{}{}", INVALID),
        (r#"{"procedure":"a",}"#, INVALID),
        (r#"{"procedure":"a","args":[NaN]}"#, INVALID),
        (r#"{"procedure":"a","args":["\ud83d"]}"#, INVALID),
        (r#"{'procedure':'a'}"#, INVALID),
        ("{\"procedure\":\"a\u{1}\"}", INVALID),
        ("\u{feff}{}", INVALID),
        (r#"{"procedure":"a","options":[1]}"#, form!("'options' must be a dict")),
    ];

    #[test]
    fn calls() {
        for (body, expected) in CALLS {
            assert_eq!(read(body), *expected, "{body}");
        }
        for (depth, is_read) in [(62, true), (64, false)] {
            let (open, close) = ("[".repeat(depth), "]".repeat(depth));
            let body = format!(r#"{{"procedure":"a","args":{open}{close}}}"#);
            assert_eq!(read(&body) != INVALID, is_read, "{depth}");
        }
    }

    #[test]
    fn call_options() {
        let body = br#"{"procedure":"a","options":{"timeout":5,"disclose_me":true}}"#;
        let call = call(body, &limits()).expect("is one");
        assert_eq!(
            (call.options.timeout_ms, call.options.disclose_me),
            (5, Some(true))
        );
        let bad = br#"{"procedure":"a","options":{"timeout":"x"}}"#;
        assert!(self::call(bad, &limits()).is_err());
    }

    #[test]
    fn publish_options() {
        let options = |options: &str| {
            let body = format!(r#"{{"topic":"a","args":[1],"options":{options}}}"#);
            let publication = publication(body.as_bytes(), &limits());
            publication.map(|publication| publication.options)
        };
        let given = options(
            r#"{"exclude_me":false,"retain":true,"exclude":[1,2],"eligible":3,"eligible_authid":"ann",
                "exclude_authrole":null,"acknowledge":false,"unheard":{"of":[1]}}"#,
        );
        let given = given.expect("are some");
        assert!(given.acknowledge && given.retain && !given.exclude_me);
        let receivers = given.receivers.expect("are some");
        assert_eq!(receivers.exclude.map(|ids| ids.len()), Some(2));
        assert_eq!(receivers.eligible.map(|ids| ids.len()), Some(1));
        assert_eq!(receivers.eligible_authid, Some(vec!["ann".to_owned()]));
        assert_eq!(receivers.exclude_authrole, None);
        for nothing in ["{}", "null", "[]", "0", r#"{"retain":null}"#] {
            let given = options(nothing).expect(nothing);
            assert!(given.acknowledge && given.exclude_me, "{nothing}");
        }
        for bad in [
            r#"{"exclude_me":1}"#,
            r#"{"exclude":"x"}"#,
            r#"{"eligible":[[]]}"#,
            "[1]",
            "\"a\"",
        ] {
            assert!(options(bad).is_err(), "{bad}");
        }
        // An invalid name cannot escape from the JSON around it.
        assert!(options(r#"{"\"}],1":1,"retain":true}"#).is_ok_and(|given| given.retain));
    }
}
