//! Responses as clients send them.

use crosstie_amqp::{ReadError, TableBuf, Value};
use crosstie_auth::sasl::{Mechanism, Response, ResponseError};

#[test]
fn mechanisms_by_name() {
    for name in ["PLAIN", "AMQPLAIN", "EXTERNAL"] {
        assert_eq!(Mechanism::find(name).map(Mechanism::name), Some(name));
    }
    for name in ["", "plain", "GSSAPI", "PLAIN "] {
        assert_eq!(Mechanism::find(name), None);
    }
}

#[test]
fn plain() {
    let password = |name, password| Ok(Response::Password { name, password });
    let rows: [(&[u8], _); 10] = [
        (b"\0guest\0guest", password("guest", b"guest")),
        (b"somebody\0guest\0guest", password("guest", b"guest")),
        (b"\0guest\0", password("guest", b"")),
        (b"\0\0", password("", b"")),
        ("\0ü\0ß".as_bytes(), password("ü", "ß".as_bytes())),
        (b"\0guest\0\xff", password("guest", b"\xff")),
        (b"\0\xff\0x", Err(ResponseError::NameNotUtf8)),
        (b"", Err(ResponseError::NotPlain)),
        (b"\0guest", Err(ResponseError::NotPlain)),
        (b"\0guest\0pass\0word", Err(ResponseError::NotPlain)),
    ];
    for (response, expected) in rows {
        assert_eq!(Mechanism::Plain.read(response), expected, "{response:?}");
    }
}

#[test]
fn amqplain() {
    let table = TableBuf::new()
        .with("LOGIN", Value::LongString(b"guest"))
        .with("PASSWORD", Value::LongString(b"secret"));
    assert_eq!(
        Mechanism::AmqPlain.read(table.as_table().bytes()),
        Ok(Response::Password {
            name: "guest",
            password: b"secret"
        })
    );
    let rows = [
        (TableBuf::new(), "LOGIN"),
        (
            TableBuf::new().with("LOGIN", Value::LongString(b"guest")),
            "PASSWORD",
        ),
        (
            TableBuf::new()
                .with("LOGIN", Value::I32(1))
                .with("PASSWORD", Value::LongString(b"secret")),
            "LOGIN",
        ),
    ];
    for (table, name) in rows {
        assert_eq!(
            Mechanism::AmqPlain.read(table.as_table().bytes()),
            Err(ResponseError::NoField { name })
        );
    }
    assert_eq!(
        Mechanism::AmqPlain.read(b"\x05LOG"),
        Err(ResponseError::Table(ReadError::Short))
    );
}

#[test]
fn external_says_nothing() {
    assert_eq!(Mechanism::External.read(b""), Ok(Response::External));
    assert_eq!(Mechanism::External.read(b"x"), Ok(Response::External));
}

#[test]
fn passwords_are_not_printed() {
    let response = Mechanism::Plain.read(b"\0guest\0secret").expect("PLAIN");
    assert_eq!(format!("{response:?}"), "Password { name: \"guest\", … }");
}
