//! Arguments and results as the application's own types, by serde.
//!
//! Needs the feature `serde`. The shape of the type decides the arguments of the message, as in other WAMP libraries:
//!
//! | type | positional arguments | keyword arguments |
//! |---|---|---|
//! | `()` | none; a single null is accepted, which Python's `None` becomes | |
//! | a tuple, a tuple struct, an array | its fields | |
//! | [`Keywords<K>`] | | the fields of `K`, a struct or a map |
//! | [`WithKeywords<A, K>`] | those of `A` | the fields of `K` |
//! | any other type | itself, as the only one | |
//!
//! So a list is one argument that is a list, and a struct is one argument that is a dictionary. A type without keyword
//! arguments ignores received ones, as serde ignores unknown fields.
//!
//! ```
//! use crosstie_client::Arguments;
//! use crosstie_client::serde::{Keywords, WithKeywords};
//!
//! let json = |arguments: Arguments| arguments.to_json().unwrap();
//! let check = |arguments: Arguments, args: &str, kwargs: &str| {
//!     assert_eq!(json(arguments), (args.to_owned(), kwargs.to_owned()));
//! };
//! #[derive(serde::Serialize)]
//! struct Point {
//!     x: i32,
//!     y: i32,
//! }
//! check(Arguments::serialize(&())?, "[]", "{}");
//! check(Arguments::serialize(&(2, "three"))?, r#"[2,"three"]"#, "{}");
//! check(Arguments::serialize(&vec![2, 3])?, "[[2,3]]", "{}");
//! check(Arguments::serialize(&Point { x: 1, y: 2 })?, r#"[{"x":1,"y":2}]"#, "{}");
//! check(Arguments::serialize(&Keywords(Point { x: 1, y: 2 }))?, "[]", r#"{"x":1,"y":2}"#);
//! check(Arguments::serialize(&WithKeywords(("a", 1), Point { x: 1, y: 2 }))?, r#"["a",1]"#, r#"{"x":1,"y":2}"#);
//! # Ok::<(), crosstie_client::serde::SerdeError>(())
//! ```

mod arguments;
mod error;
mod from_value;
mod key;
mod to_value;
mod typed;

pub use self::arguments::{DeserializeArguments, Keywords, SerializeArguments, WithKeywords};
pub use self::error::SerdeError;
pub use self::typed::TypedCallError;

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::fmt;

    use serde::{Deserialize, Serialize};

    use super::*;
    use crate::arguments::Arguments;
    use crate::convert::Binary;

    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    enum Shape {
        Dot,
        Circle(f64),
        Line(i8, i8),
        Box { width: u16 },
    }

    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    struct Id(u64);

    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    struct Pair(u8, String);

    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    struct Part {
        id: Id,
        shape: Shape,
        note: Option<String>,
        tags: Vec<String>,
    }

    /// A type's arguments in JSON, and back.
    #[track_caller]
    fn check<T>(value: &T, args: &str, kwargs: &str)
    where
        T: SerializeArguments + DeserializeArguments + PartialEq + fmt::Debug,
    {
        let arguments = Arguments::serialize(value).unwrap();
        let json = arguments.to_json().unwrap();
        assert_eq!((json.0.as_str(), json.1.as_str()), (args, kwargs));
        assert_eq!(arguments.deserialize::<T>().as_ref(), Ok(value));
        // As another client sends them.
        let received = Arguments::from_json(args, kwargs).unwrap();
        assert_eq!(received.deserialize::<T>().as_ref(), Ok(value));
    }

    #[test]
    fn types_become_arguments_and_back() {
        check(&(), "[]", "{}");
        check(&7, "[7]", "{}");
        check(&-7_i8, "[-7]", "{}");
        check(&u64::MAX, "[18446744073709551615]", "{}");
        check(&1.5, "[1.5]", "{}");
        check(&true, "[true]", "{}");
        check(&'x', r#"["x"]"#, "{}");
        check(&"x".to_owned(), r#"["x"]"#, "{}");
        check(&Some(1), "[1]", "{}");
        check(&None::<u8>, "[null]", "{}");
        check(&(1,), "[1]", "{}");
        check(
            &(1, "two".to_owned(), None::<bool>),
            r#"[1,"two",null]"#,
            "{}",
        );
        check(&[1, 2, 3], "[1,2,3]", "{}");
        check(&vec![1, 2, 3], "[[1,2,3]]", "{}");
        check(&vec![(1, 2)], "[[[1,2]]]", "{}");
        check(&Id(5), "[5]", "{}");
        check(&Pair(5, "x".to_owned()), r#"[5,"x"]"#, "{}");
        check(&Shape::Dot, r#"["Dot"]"#, "{}");
        check(&Shape::Circle(0.5), r#"[{"Circle":0.5}]"#, "{}");
        check(&Shape::Line(1, -1), r#"[{"Line":[1,-1]}]"#, "{}");
        check(&Shape::Box { width: 9 }, r#"[{"Box":{"width":9}}]"#, "{}");
        check(
            &BTreeMap::from([(1, true), (2, false)]),
            r#"[{"1":true,"2":false}]"#,
            "{}",
        );
        check(&BTreeMap::from([(true, 1)]), r#"[{"true":1}]"#, "{}");
        check(&Binary(vec![1, 2]), r#"["\u0000AQI="]"#, "{}");
        let part = || Part {
            id: Id(1),
            shape: Shape::Dot,
            note: None,
            tags: vec!["a".to_owned()],
        };
        let json = r#"{"id":1,"shape":"Dot","note":null,"tags":["a"]}"#;
        check(&part(), &format!("[{json}]"), "{}");
        check(&Keywords(part()), "[]", json);
        check(&WithKeywords((1, 2), part()), "[1,2]", json);
        check(
            &WithKeywords((), BTreeMap::from([("k".to_owned(), 1)])),
            "[]",
            r#"{"k":1}"#,
        );
    }

    #[test]
    fn received_forms_that_other_clients_send() {
        let read = |args, kwargs| Arguments::from_json(args, kwargs).unwrap();
        // Python's `return None`.
        assert_eq!(read("[null]", "").deserialize(), Ok(()));
        assert_eq!(read("", "").deserialize(), Ok(None::<u8>));
        // JavaScript has one kind of number.
        assert_eq!(read("[2]", "").deserialize(), Ok(2.0));
        // Unknown keywords are ignored, as unknown fields are.
        assert_eq!(read("[1]", r#"{"unit":"kg"}"#).deserialize(), Ok(1));
        assert_eq!(
            read(r#"["\u0000AQI="]"#, "").deserialize(),
            Ok(vec![1_u8, 2])
        );
        let any: serde_json::Value = read(r#"[{"a":[1,null]}]"#, "").deserialize().unwrap();
        assert_eq!(any, serde_json::json!({"a": [1, null]}));
    }

    #[test]
    fn errors_name_the_place() {
        #[track_caller]
        fn check<T: DeserializeArguments + fmt::Debug>(args: &str, kwargs: &str, expected: &str) {
            let arguments = Arguments::from_json(args, kwargs).unwrap();
            let error = arguments.deserialize::<T>().unwrap_err();
            assert_eq!(error.to_string(), expected);
        }
        check::<(u8, u8)>("[1]", "", "expected 2 arguments, got 1");
        check::<u8>("[]", "", "expected 1 argument, got 0");
        check::<()>("[1]", "", "expected 0 arguments, got 1");
        check::<Keywords<Part>>(
            "[1]",
            "",
            "expected only keyword arguments, got 1 positional",
        );
        check::<Keywords<Part>>("", "", "keyword arguments: missing field `id`");
        check::<u8>(
            "[256]",
            "",
            "argument 0: invalid value: integer `256`, expected u8",
        );
        check::<(u8, bool)>(
            r#"[1, "x"]"#,
            "",
            r#"argument 1: invalid type: string "x", expected a boolean"#,
        );
        check::<Shape>(
            r#"["Oval"]"#,
            "",
            "argument 0: unknown variant `Oval`, expected one of `Dot`, `Circle`, `Line`, `Box`",
        );
        check::<Shape>(
            r#"[{"Dot":1,"Line":2}]"#,
            "",
            "argument 0: invalid length 2, expected a dictionary with the variant as its only key",
        );
    }

    #[test]
    fn what_no_message_can_hold() {
        #[track_caller]
        fn check(value: &impl SerializeArguments, expected: &str) {
            let error = Arguments::serialize(value).unwrap_err();
            assert_eq!(error.to_string(), expected);
        }
        check(&u128::MAX, "an integer of more than 64 bits");
        check(
            &Keywords(5),
            "keyword arguments: expected a struct or a map",
        );
        check(
            &BTreeMap::from([((1, 2), 3)]),
            "expected text as the key of a map, got a list",
        );
        check(
            &BTreeMap::from([("a", u128::MAX)]),
            "\"a\": an integer of more than 64 bits",
        );
    }
}
