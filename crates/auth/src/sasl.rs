//! SASL as `connection.start-ok` carries it: a mechanism's name and its only response.

use std::fmt;

use crosstie_amqp::{ReadError, Table, Value};

/// The mechanism by which a client authenticates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Mechanism {
    /// RFC 4616.
    Plain,
    /// The protocol's older form: a table without its length.
    AmqPlain,
    /// The certificate that the transport has verified.
    External,
}

/// The content of a response.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Response<'a> {
    Password { name: &'a str, password: &'a [u8] },
    External,
}

/// The reason why a response is malformed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ResponseError {
    NotPlain,
    NameNotUtf8,
    Table(ReadError),
    NoField { name: &'static str },
}

impl Mechanism {
    const ALL: [Self; 3] = [Self::Plain, Self::AmqPlain, Self::External];

    /// Finds a mechanism by its name on the wire.
    pub fn find(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|found| found.name() == name)
    }

    pub fn name(self) -> &'static str {
        match self {
            Self::Plain => "PLAIN",
            Self::AmqPlain => "AMQPLAIN",
            Self::External => "EXTERNAL",
        }
    }

    /// Reads a response. The content of an `EXTERNAL` response is ignored: the certificate decides.
    pub fn read(self, response: &[u8]) -> Result<Response<'_>, ResponseError> {
        match self {
            Self::Plain => plain(response),
            Self::AmqPlain => amqplain(response),
            Self::External => Ok(Response::External),
        }
    }
}

/// `[identity] NUL name NUL password`. The identity is ignored, as in RabbitMQ: no user can act for another one.
fn plain(response: &[u8]) -> Result<Response<'_>, ResponseError> {
    let mut parts = response.splitn(3, |byte| *byte == 0);
    let (Some(_), Some(name), Some(password)) = (parts.next(), parts.next(), parts.next()) else {
        return Err(ResponseError::NotPlain);
    };
    if password.contains(&0) {
        return Err(ResponseError::NotPlain);
    }
    Ok(Response::Password {
        name: utf8(name)?,
        password,
    })
}

fn amqplain(response: &[u8]) -> Result<Response<'_>, ResponseError> {
    let table = Table::from_bytes(response).map_err(ResponseError::Table)?;
    let field = |name| match table.find(name) {
        Some(Value::LongString(bytes)) => Ok(bytes),
        _ => Err(ResponseError::NoField { name }),
    };
    Ok(Response::Password {
        name: utf8(field("LOGIN")?)?,
        password: field("PASSWORD")?,
    })
}

fn utf8(name: &[u8]) -> Result<&str, ResponseError> {
    str::from_utf8(name).map_err(|_| ResponseError::NameNotUtf8)
}

/// Omits the password.
impl fmt::Debug for Response<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Password { name, .. } => write!(f, "Password {{ name: {name:?}, … }}"),
            Self::External => f.write_str("External"),
        }
    }
}

impl fmt::Display for ResponseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotPlain => f.write_str(
                "a malformed PLAIN response, expected an identity, a name and a password separated by NUL",
            ),
            Self::NameNotUtf8 => f.write_str("a user's name that is not UTF-8"),
            Self::Table(error) => write!(f, "a malformed table in an AMQPLAIN response: {error}"),
            Self::NoField { name } => {
                write!(f, "an AMQPLAIN response without a long string {name}")
            }
        }
    }
}

impl std::error::Error for ResponseError {}
