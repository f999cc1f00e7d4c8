//! The arguments of messages, as values or as received bytes.

use std::sync::OnceLock;

use crosstie_wamp::codec::{self, DecodeError, Limits, TranscodeError};
use crosstie_wamp::{Dict, Payload, Serializer, Value};
use thiserror::Error;

use crate::convert::{FromValue, IntoValue};

/// The arguments and keyword arguments of a call, a result, an event or an error.
///
/// Received arguments are kept as bytes until they are read: passing them on costs only a copy.
///
/// A tuple becomes positional arguments, and so does a list of [`Value`]s; [`args!`](crate::args) also writes keyword
/// arguments. With the feature `serde`, any serializable type becomes arguments.
///
/// ```
/// use crosstie_client::args;
///
/// let arguments = args![23, "apples"; fresh = true];
/// assert_eq!(arguments.argument::<i64>(0)?, 23);
/// assert_eq!(arguments.argument::<String>(1)?, "apples");
/// assert!(arguments.keyword::<bool>("fresh")?);
/// # Ok::<(), crosstie_client::ArgumentError>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct Arguments {
    /// The bytes as received or as given; without them the values are set.
    bytes: Option<Bytes>,
    values: OnceLock<Result<Values, DecodeError>>,
}

#[derive(Clone, Debug)]
struct Bytes {
    serializer: Serializer,
    args: Vec<u8>,
    kwargs: Vec<u8>,
}

/// A list and a dictionary, kept as values so that they can be written without conversion.
#[derive(Clone, Debug)]
struct Values {
    args: Value,
    kwargs: Value,
}

impl Default for Values {
    fn default() -> Self {
        Self {
            args: Value::List(Vec::new()),
            kwargs: Value::Dict(Dict::new()),
        }
    }
}

impl Values {
    fn args(&self) -> &[Value] {
        match &self.args {
            Value::List(args) => args,
            _ => &[],
        }
    }

    fn kwargs(&self) -> &[(String, Value)] {
        match &self.kwargs {
            Value::Dict(kwargs) => kwargs,
            _ => &[],
        }
    }
}

/// The reason why an argument is not usable: its sender erred.
#[non_exhaustive]
#[derive(Clone, Debug, PartialEq, Error)]
pub enum ArgumentError {
    /// There are fewer positional arguments.
    #[error("expected at least {} arguments, got {count}", index + 1)]
    Missing {
        /// The place, from 0.
        index: usize,
        /// The number of positional arguments.
        count: usize,
    },
    /// There is no keyword argument of that name.
    #[error("expected a keyword argument {name:?}, got none")]
    KeywordMissing {
        /// The name.
        name: String,
    },
    /// The argument is of another type, or out of its range.
    #[error("argument {argument}: expected {expected}, got {found}")]
    Kind {
        /// The place or the quoted name.
        argument: String,
        /// The expected type.
        expected: &'static str,
        /// The type of the received value.
        found: &'static str,
    },
    /// Values that only one serializer has, for instance CBOR tags.
    #[error("malformed arguments: {0}")]
    Foreign(DecodeError),
}

/// The error of a text that is not JSON arguments.
#[non_exhaustive]
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum JsonError {
    /// The text is not JSON.
    #[error("not JSON: {0}")]
    Syntax(#[from] DecodeError),
    /// The text is another JSON value.
    #[error("expected a JSON {expected}")]
    Kind {
        /// The expected kind: a list or a dictionary.
        expected: &'static str,
    },
}

impl Arguments {
    /// Arguments from values.
    pub fn new(args: Vec<Value>, kwargs: Dict) -> Self {
        Self {
            bytes: None,
            values: OnceLock::from(Ok(Values {
                args: Value::List(args),
                kwargs: Value::Dict(kwargs),
            })),
        }
    }

    /// Arguments from a JSON list and a JSON dictionary; either may be empty text.
    ///
    /// ```
    /// let arguments = crosstie_client::Arguments::from_json("[1, 2]", r#"{"unit": "kg"}"#)?;
    /// # Ok::<(), crosstie_client::JsonError>(())
    /// ```
    pub fn from_json(args: &str, kwargs: &str) -> Result<Self, JsonError> {
        let read =
            |text: &str| codec::decode_value(Serializer::Json, text.as_bytes(), &Limits::default());
        let mut values = Values::default();
        if !args.trim().is_empty() {
            values.args = read(args)?;
        }
        if !kwargs.trim().is_empty() {
            values.kwargs = read(kwargs)?;
        }
        let expected = match &values {
            Values {
                args: Value::List(_),
                kwargs: Value::Dict(_),
            } => {
                return Ok(Self {
                    bytes: None,
                    values: OnceLock::from(Ok(values)),
                });
            }
            Values {
                args: Value::List(_),
                ..
            } => "dictionary",
            _ => "list",
        };
        Err(JsonError::Kind { expected })
    }

    /// Arguments from a message's bytes, undecoded.
    pub fn from_payload(payload: &Payload<'_>) -> Self {
        if payload.is_empty() {
            return Self::default();
        }
        Self {
            bytes: Some(Bytes {
                serializer: payload.serializer,
                args: payload.args.to_vec(),
                kwargs: payload.kwargs.to_vec(),
            }),
            values: OnceLock::new(),
        }
    }

    /// The arguments.
    pub fn args(&self) -> Result<&[Value], ArgumentError> {
        Ok(self.values()?.args())
    }

    /// The keyword arguments.
    pub fn kwargs(&self) -> Result<&[(String, Value)], ArgumentError> {
        Ok(self.values()?.kwargs())
    }

    /// The argument at `index`, counted from 0.
    pub fn argument<T: FromValue>(&self, index: usize) -> Result<T, ArgumentError> {
        let args = self.args()?;
        let value = args.get(index).ok_or(ArgumentError::Missing {
            index,
            count: args.len(),
        })?;
        converted(value, || index.to_string())
    }

    /// The keyword argument of that name.
    pub fn keyword<T: FromValue>(&self, name: &str) -> Result<T, ArgumentError> {
        let missing = || ArgumentError::KeywordMissing {
            name: name.to_owned(),
        };
        let mut kwargs = self.kwargs()?.iter();
        let (_, value) = kwargs.find(|(key, _)| key == name).ok_or_else(missing)?;
        converted(value, || format!("{name:?}"))
    }

    /// The text or bytes in place of arguments, if the sender encoded them in its own way (see `enc_algo` of its
    /// message). Such a message has no arguments.
    pub fn encoded(&self) -> Result<Option<&Value>, ArgumentError> {
        let args = &self.values()?.args;
        Ok((!matches!(args, Value::List(_))).then_some(args))
    }

    /// Whether there are neither arguments nor keyword arguments.
    pub fn is_empty(&self) -> bool {
        match (&self.bytes, self.values.get()) {
            (Some(_), _) | (None, Some(Err(_))) => false,
            (None, Some(Ok(values))) => values.args().is_empty() && values.kwargs().is_empty(),
            (None, None) => true,
        }
    }

    /// The arguments as a JSON list and the keyword arguments as a JSON dictionary.
    pub fn to_json(&self) -> Result<(String, String), TranscodeError> {
        let (mut args, mut kwargs) = (Vec::new(), Vec::new());
        let json = Serializer::Json;
        self.with_payload(json, |payload| {
            if !payload.args.is_empty() {
                codec::transcode(payload.serializer, payload.args, json, &mut args)?;
            }
            if !payload.kwargs.is_empty() {
                codec::transcode(payload.serializer, payload.kwargs, json, &mut kwargs)?;
            }
            Ok::<(), TranscodeError>(())
        })??;
        let text = |bytes: Vec<u8>, empty: &str| match bytes.is_empty() {
            true => empty.to_owned(),
            false => String::from_utf8_lossy(&bytes).into_owned(),
        };
        Ok((text(args, "[]"), text(kwargs, "{}")))
    }

    /// Calls `lend` with these as a message's payload; values are written in `serializer`.
    pub fn with_payload<R>(
        &self,
        serializer: Serializer,
        lend: impl FnOnce(&Payload<'_>) -> R,
    ) -> Result<R, TranscodeError> {
        if let Some(bytes) = &self.bytes {
            return Ok(lend(&Payload::new(
                bytes.serializer,
                &bytes.args,
                &bytes.kwargs,
            )));
        }
        let (mut args, mut kwargs) = (Vec::new(), Vec::new());
        // Only bytes can fail to decode, and there are none.
        if let Some(Ok(values)) = self.values.get() {
            if !values.args().is_empty() {
                codec::encode_value(&values.args, serializer, &mut args)?;
            }
            if !values.kwargs().is_empty() {
                codec::encode_value(&values.kwargs, serializer, &mut kwargs)?;
            }
        }
        Ok(lend(&Payload::new(serializer, &args, &kwargs)))
    }

    fn values(&self) -> Result<&Values, ArgumentError> {
        let values = self.values.get_or_init(|| match &self.bytes {
            Some(bytes) => bytes.decode(),
            None => Ok(Values::default()),
        });
        values
            .as_ref()
            .map_err(|error| ArgumentError::Foreign(error.clone()))
    }
}

impl Bytes {
    fn decode(&self) -> Result<Values, DecodeError> {
        let decode = |bytes| codec::decode_value(self.serializer, bytes, &Limits::default());
        let mut values = Values::default();
        // The message's decoder has verified that these are a list, or encoded bytes in its place, and a dictionary.
        if !self.args.is_empty() {
            values.args = decode(&self.args)?;
        }
        if !self.kwargs.is_empty() {
            values.kwargs = decode(&self.kwargs)?;
        }
        Ok(values)
    }
}

fn converted<T: FromValue>(
    value: &Value,
    argument: impl FnOnce() -> String,
) -> Result<T, ArgumentError> {
    T::from_value(value).ok_or_else(|| ArgumentError::Kind {
        argument: argument(),
        expected: T::EXPECTED,
        found: kind_of(value),
    })
}

fn kind_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Integer(_) => "an integer",
        Value::Float(_) => "a float",
        Value::String(_) => "text",
        Value::Binary(_) => "bytes",
        Value::List(_) => "a list",
        Value::Dict(_) => "a dictionary",
    }
}

impl From<()> for Arguments {
    fn from((): ()) -> Self {
        Self::default()
    }
}

impl From<Vec<Value>> for Arguments {
    fn from(args: Vec<Value>) -> Self {
        Self::new(args, Dict::new())
    }
}

macro_rules! tuples {
    ($($($kind:ident)+;)+) => {$(
        impl<$($kind: IntoValue),+> From<($($kind,)+)> for Arguments {
            #[expect(non_snake_case, reason = "one name for a field and its type")]
            fn from(($($kind,)+): ($($kind,)+)) -> Self {
                Self::new(vec![$($kind.into_value()),+], Dict::new())
            }
        }
    )+};
}

tuples! {
    A;
    A B;
    A B C;
    A B C D;
    A B C D E;
    A B C D E F;
    A B C D E F G;
    A B C D E F G H;
}

/// [`Arguments`] from expressions: `args![1, "two"; three = 3.0]`, with keyword arguments after
/// the semicolon.
#[macro_export]
macro_rules! args {
    ($($value:expr),* $(,)?) => {
        $crate::Arguments::new(
            ::std::vec![$($crate::IntoValue::into_value($value)),*],
            ::std::vec::Vec::new(),
        )
    };
    ($($value:expr),*; $($key:ident = $keyword:expr),+ $(,)?) => {
        $crate::Arguments::new(
            ::std::vec![$($crate::IntoValue::into_value($value)),*],
            ::std::vec![$((
                ::std::string::String::from(::std::stringify!($key)),
                $crate::IntoValue::into_value($keyword),
            )),+],
        )
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_way_in_and_out_is_the_same() {
        let json = (
            r#"[1,-2.5,"a",true,null,[1]]"#,
            r#"{"k":{"x":"\u0000AQI="}}"#,
        );
        let given = Arguments::from_json(json.0, json.1).unwrap();
        for serializer in Serializer::ALL {
            let received = given
                .with_payload(serializer, Arguments::from_payload)
                .unwrap();
            let (args, kwargs) = received.to_json().unwrap();
            assert_eq!((args.as_str(), kwargs.as_str()), json, "{serializer}");
            assert_eq!(received.args().unwrap(), given.args().unwrap());
            assert_eq!(received.kwargs().unwrap(), given.kwargs().unwrap());
        }
    }

    #[test]
    fn nothing_is_nothing() {
        let nothing = [
            Arguments::default(),
            args![],
            ().into(),
            Arguments::from_json(" ", "").unwrap(),
            Arguments::from_payload(&Payload::EMPTY),
        ];
        for arguments in nothing {
            assert!(arguments.is_empty());
            assert_eq!(arguments.args().unwrap(), []);
            let json = ("[]".to_owned(), "{}".to_owned());
            assert_eq!(arguments.to_json().unwrap(), json);
        }
    }

    #[test]
    fn errors_name_the_found_kind() {
        let arguments = args!["x"; n = 1.5];
        let check = |error: ArgumentError, text: &str| assert_eq!(error.to_string(), text);
        check(
            arguments.argument::<i64>(0).unwrap_err(),
            "argument 0: expected an integer, got text",
        );
        check(
            arguments.argument::<String>(1).unwrap_err(),
            "expected at least 2 arguments, got 1",
        );
        check(
            arguments.keyword::<u8>("n").unwrap_err(),
            "argument \"n\": expected an integer, got a float",
        );
        check(
            arguments.keyword::<u8>("m").unwrap_err(),
            "expected a keyword argument \"m\", got none",
        );
        assert!(Arguments::from_json("{}", "").is_err());
        assert!(Arguments::from_json("", "[]").is_err());
        assert!(Arguments::from_json("[1] 2", "").is_err());
    }
}
