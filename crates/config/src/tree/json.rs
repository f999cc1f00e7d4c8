//! JSON (RFC 8259) into the tree.

use jsonc_parser::ast;
use jsonc_parser::common::Ranged;
use jsonc_parser::{CollectOptions, ParseOptions, parse_to_ast};

use super::{DEPTH_MAX, Entry, NODES_MAX, Node, Span, Value, refuse_repeated, too_deep, too_many};
use crate::problem::Problem;

/// All leniencies of the library, such as comments, are off.
const STRICT: ParseOptions = ParseOptions {
    allow_comments: false,
    allow_loose_object_property_names: false,
    allow_trailing_commas: false,
    allow_missing_commas: false,
    allow_single_quoted_strings: false,
    allow_hexadecimal_numbers: false,
    allow_unary_plus_numbers: false,
    allow_bare_decimal_point_numbers: false,
    allow_non_finite_numbers: false,
    allow_extended_string_escapes: false,
};

pub(super) fn parse(text: &str, problems: &mut Vec<Problem>) -> Result<Node, Problem> {
    check_characters(text)?;
    let parsed = parse_to_ast(text, &CollectOptions::default(), &STRICT).map_err(|error| {
        Problem::error(span(&error.range()), format!("not JSON: {}", error.kind()))
    })?;
    let Some(value) = parsed.value else {
        let message = "the file is empty; an object is expected";
        return Err(Problem::error(Span::default(), message.into()));
    };
    let mut reader = Reader { problems, nodes: 0 };
    reader.node(value, 0)
}

struct Reader<'a> {
    problems: &'a mut Vec<Problem>,
    nodes: usize,
}

impl Reader<'_> {
    fn node(&mut self, value: ast::Value<'_>, depth: usize) -> Result<Node, Problem> {
        let whole = span(&value);
        self.nodes += 1;
        if depth > DEPTH_MAX {
            return Err(too_deep(opening(whole)));
        }
        if self.nodes > NODES_MAX {
            return Err(too_many(opening(whole)));
        }
        Ok(match value {
            ast::Value::NullKeyword(_) => Node::new(whole, Value::Null),
            ast::Value::BooleanLit(literal) => Node::new(whole, Value::Boolean(literal.value)),
            ast::Value::NumberLit(literal) => Node::new(whole, number(literal.value)),
            ast::Value::StringLit(literal) => {
                Node::new(whole, Value::Text(literal.value.into_owned()))
            }
            ast::Value::Array(array) => {
                let elements = array.elements.into_iter();
                let list: Result<_, _> = elements.map(|item| self.node(item, depth + 1)).collect();
                Node::new(opening(whole), Value::List(list?))
            }
            ast::Value::Object(object) => {
                let mut entries = Vec::new();
                for property in object.properties {
                    let entry = Entry {
                        key_span: span(&property.name),
                        key: property.name.into_string(),
                        node: self.node(property.value, depth + 1)?,
                    };
                    entries.push(entry);
                }
                refuse_repeated(&mut entries, self.problems);
                Node::new(opening(whole), Value::Object(entries))
            }
        })
    }
}

/// Checks whitespace and escaped control characters in texts (RFC 8259 sections 2 and 7). The library is more lenient
/// and has no option for that.
fn check_characters(text: &str) -> Result<(), Problem> {
    let mut inside = false;
    let mut escaped = false;
    for (start, character) in text.char_indices() {
        let refused = match character {
            '"' if !escaped => {
                inside = !inside;
                false
            }
            '\t' | '\n' | '\r' => inside,
            ' ' => false,
            _ => character < ' ' || (!inside && character.is_whitespace()),
        };
        if refused {
            let message = if inside {
                "not JSON: a control character in a text must be escaped"
            } else {
                "not JSON: this character is no whitespace"
            };
            let end = start + character.len_utf8();
            return Err(Problem::error(Span { start, end }, message.into()));
        }
        escaped = inside && character == '\\' && !escaped;
    }
    Ok(())
}

fn number(text: &str) -> Value {
    text.parse()
        .map_or_else(|_| Value::Number(text.to_owned()), Value::Integer)
}

fn span(at: &impl Ranged) -> Span {
    Span {
        start: at.start(),
        end: at.end(),
    }
}

fn opening(whole: Span) -> Span {
    Span {
        end: whole.start + 1,
        ..whole
    }
}
