//! YAML into the tree.
//!
//! Plain scalars are read as Crossbar.io reads them: `yes`, `on` and the like are booleans, and `<<` merges. A number
//! with a leading zero is text, since the two versions of YAML disagree on its value.

use std::collections::HashMap;

use saphyr_parser::{Event, Parser, ScalarStyle, Tag};

use super::{
    DEPTH_MAX, Entry, NODES_MAX, Node, Span, Value, quoted, refuse_repeated, too_deep, too_many,
};
use crate::problem::Problem;

pub(super) fn parse(text: &str, problems: &mut Vec<Problem>) -> Result<Node, Problem> {
    let mut builder = Builder {
        offsets: Offsets::of(text),
        problems,
        open: Vec::new(),
        root: None,
        anchors: HashMap::new(),
        nodes: 0,
    };
    for event in Parser::new_from_str(text) {
        let (event, span) = event.map_err(|error| {
            let at = builder.offsets.byte(error.marker().index());
            let span = Span { start: at, end: at };
            Problem::error(span, format!("not YAML: {}", error.info()))
        })?;
        let span = Span {
            start: builder.offsets.byte(span.start.index()),
            end: builder.offsets.byte(span.end.index()),
        };
        builder.handle(event, span)?;
    }
    builder.root.ok_or_else(|| {
        let message = "the file is empty; an object is expected";
        Problem::error(Span::default(), message.into())
    })
}

/// Builds nodes from the parser's events with a stack of its own.
struct Builder<'a> {
    offsets: Offsets,
    problems: &'a mut Vec<Problem>,
    open: Vec<Open>,
    root: Option<Node>,
    /// Finished nodes that carry an anchor, with how many nodes they hold.
    anchors: HashMap<usize, (Node, usize)>,
    nodes: usize,
}

/// An unfinished list or object.
struct Open {
    span: Span,
    anchor: usize,
    /// The number of nodes before it.
    nodes_before: usize,
    content: Content,
}

enum Content {
    List(Vec<Node>),
    Object {
        entries: Vec<Entry>,
        merges: Vec<Node>,
        /// The key whose value comes next, and whether it is a merge key.
        key: Option<(String, Span, bool)>,
    },
}

impl Builder<'_> {
    fn handle(&mut self, event: Event<'_>, span: Span) -> Result<(), Problem> {
        match event {
            Event::Scalar(text, style, anchor, tag) => {
                if let Some(Open {
                    content: Content::Object { key, .. },
                    ..
                }) = self.open.last_mut()
                    && key.is_none()
                {
                    let merge = style == ScalarStyle::Plain && text == "<<";
                    *key = Some((text.into_owned(), span, merge));
                    return Ok(());
                }
                let value = scalar(&text, style, tag.as_deref(), span)?;
                self.count(1, span)?;
                self.finish(Node { span, value }, anchor, 1)
            }
            Event::SequenceStart(anchor, tag) => {
                self.open(span, anchor, tag.as_deref(), Content::List(Vec::new()))
            }
            Event::MappingStart(anchor, tag) => {
                let content = Content::Object {
                    entries: Vec::new(),
                    merges: Vec::new(),
                    key: None,
                };
                self.open(span, anchor, tag.as_deref(), content)
            }
            Event::SequenceEnd | Event::MappingEnd => self.close(),
            Event::Alias(anchor) => {
                let Some((node, nodes)) = self.anchors.get(&anchor).cloned() else {
                    let message =
                        "the alias stands for a key, or inside the value that it stands for";
                    return Err(Problem::error(span, message.into()));
                };
                self.count(nodes, span)?;
                self.finish(node, 0, 0)
            }
            Event::DocumentStart(_) if self.root.is_some() => Err(Problem::error(
                span,
                "a second document begins here; one is expected".into(),
            )),
            _ => Ok(()),
        }
    }

    fn open(
        &mut self,
        span: Span,
        anchor: usize,
        tag: Option<&Tag>,
        content: Content,
    ) -> Result<(), Problem> {
        if let Some(tag) = tag
            && !(tag.is_yaml_core_schema() && matches!(&*tag.suffix, "map" | "seq"))
        {
            return Err(unknown_tag(tag, span));
        }
        if let Some(Open {
            content: Content::Object { key: None, .. },
            ..
        }) = self.open.last()
        {
            let message = "a key must be text; it is a list or an object here";
            return Err(Problem::error(span, message.into()));
        }
        if self.open.len() > DEPTH_MAX {
            return Err(too_deep(span));
        }
        let span = Span {
            end: span.start + 1,
            ..span
        };
        let nodes_before = self.nodes;
        self.count(1, span)?;
        self.open.push(Open {
            span,
            anchor,
            nodes_before,
            content,
        });
        Ok(())
    }

    fn close(&mut self) -> Result<(), Problem> {
        // Each end of the parser has its start; a failed start has ended the reading.
        let Some(open) = self.open.pop() else {
            return Ok(());
        };
        let value = match open.content {
            Content::List(items) => Value::List(items),
            Content::Object {
                mut entries,
                merges,
                ..
            } => {
                refuse_repeated(&mut entries, self.problems);
                for merge in merges {
                    merge_into(&mut entries, merge)?;
                }
                Value::Object(entries)
            }
        };
        let node = Node::new(open.span, value);
        self.finish(node, open.anchor, self.nodes - open.nodes_before)
    }

    /// Adds a finished node to its parent.
    fn finish(&mut self, node: Node, anchor: usize, nodes: usize) -> Result<(), Problem> {
        if anchor != 0 {
            self.anchors.insert(anchor, (node.clone(), nodes));
        }
        match self.open.last_mut().map(|open| &mut open.content) {
            None => self.root = Some(node),
            Some(Content::List(items)) => items.push(node),
            Some(Content::Object {
                entries,
                merges,
                key,
            }) => match key.take() {
                Some((_, _, true)) => merges.push(node),
                Some((key, key_span, false)) => {
                    let entry = Entry::new(key, key_span, node);
                    entries.push(entry);
                }
                // Only an alias gets here: other values in a key's place were rejected.
                None => {
                    let message = "a key must be text; it is an alias here";
                    return Err(Problem::error(node.span, message.into()));
                }
            },
        }
        Ok(())
    }

    /// An alias counts as its expansion: nine levels of nine aliases each are a billion nodes.
    fn count(&mut self, nodes: usize, at: Span) -> Result<(), Problem> {
        self.nodes += nodes;
        if self.nodes > NODES_MAX {
            return Err(too_many(at));
        }
        Ok(())
    }
}

/// Adds the keys of a merge key. The object's own keys take precedence.
fn merge_into(entries: &mut Vec<Entry>, merge: Node) -> Result<(), Problem> {
    match merge.value {
        Value::Object(merged) => {
            for entry in merged {
                if entries.iter().all(|own| own.key != entry.key) {
                    entries.push(entry);
                }
            }
            Ok(())
        }
        Value::List(list) => list
            .into_iter()
            .try_for_each(|item| merge_into(entries, item)),
        _ => Err(Problem::error(
            merge.span,
            format!(
                "a merge key needs an object or a list of them, found {}",
                merge.describe()
            ),
        )),
    }
}

fn scalar(text: &str, style: ScalarStyle, tag: Option<&Tag>, at: Span) -> Result<Value, Problem> {
    let plain = match tag {
        None => style == ScalarStyle::Plain,
        Some(tag) if tag.is_yaml_core_schema() => match &*tag.suffix {
            "str" => false,
            "bool" | "int" | "float" | "null" => true,
            _ => return Err(unknown_tag(tag, at)),
        },
        Some(tag) => return Err(unknown_tag(tag, at)),
    };
    if !plain {
        return Ok(Value::Text(text.to_owned()));
    }
    Ok(match text {
        "" | "~" | "null" | "Null" | "NULL" => Value::Null,
        "true" | "True" | "TRUE" | "yes" | "Yes" | "YES" | "on" | "On" | "ON" => {
            Value::Boolean(true)
        }
        "false" | "False" | "FALSE" | "no" | "No" | "NO" | "off" | "Off" | "OFF" => {
            Value::Boolean(false)
        }
        _ => number(text).unwrap_or_else(|| Value::Text(text.to_owned())),
    })
}

fn number(text: &str) -> Option<Value> {
    let (negative, digits) = match text.as_bytes().first()? {
        b'-' => (true, &text[1..]),
        b'+' => (false, &text[1..]),
        _ => (false, text),
    };
    if !digits.starts_with(|first: char| first.is_ascii_digit()) {
        return None;
    }
    let based = |prefix, base| {
        let digits = digits.strip_prefix(prefix)?;
        i64::from_str_radix(&digits.replace('_', ""), base).ok()
    };
    if let Some(value) = based("0x", 16).or_else(|| based("0o", 8)) {
        return Some(Value::Integer(if negative { -value } else { value }));
    }
    let clean = text.replace('_', "");
    if digits.len() > 1 && digits.starts_with('0') && !digits.starts_with("0.") {
        return None;
    }
    if let Ok(value) = clean.parse() {
        return Some(Value::Integer(value));
    }
    clean.parse::<f64>().ok().map(|_| Value::Number(clean))
}

fn unknown_tag(tag: &Tag, at: Span) -> Problem {
    Problem::error(
        at,
        format!("the tag {} is not known here", quoted(&tag.to_string())),
    )
}

/// The parser counts characters, a [`Span`] bytes.
struct Offsets {
    /// The first byte of each character; empty if both counts are equal.
    bytes: Vec<usize>,
    end: usize,
}

impl Offsets {
    fn of(text: &str) -> Self {
        let bytes = if text.is_ascii() {
            Vec::new()
        } else {
            text.char_indices().map(|(byte, _)| byte).collect()
        };
        Self {
            bytes,
            end: text.len(),
        }
    }

    fn byte(&self, character: usize) -> usize {
        if self.bytes.is_empty() {
            return character.min(self.end);
        }
        self.bytes.get(character).copied().unwrap_or(self.end)
    }
}
