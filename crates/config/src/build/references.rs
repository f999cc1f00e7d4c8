//! References of a component: those of its worker that must be ready before it starts.

use super::Builder;
use crate::model::Component;
use crate::problem::Problem;
use crate::tree::{Node, Value, quoted};
use crate::view::View;

const COMPONENT: &str = "component";
/// Crossbar.io resolves connections, but passes them to no component.
const CONNECTION: &str = "connection";

impl Builder<'_> {
    /// The references that have an effect, as written.
    pub(super) fn references(&mut self, object: View<'_>) -> Vec<String> {
        let mut counting = Vec::new();
        for (item, text) in texts(object) {
            match text.split_once(':') {
                Some((COMPONENT, id)) if !id.is_empty() => counting.push(text.to_owned()),
                Some((CONNECTION, _)) => {
                    let text = quoted(text);
                    let message = format!(
                        "{text} in \"references\" is left out: components connect to databases themselves"
                    );
                    self.problems.push(Problem::warning(item.span, message));
                }
                _ => {
                    let text = quoted(text);
                    let message = format!(
                        "an item of \"references\" is `component:ID`, found the text {text}"
                    );
                    self.problems.push(Problem::error(item.span, message));
                }
            }
        }
        counting
    }

    /// Checks that referenced components precede the component, which excludes cycles.
    pub(super) fn check_order(&mut self, object: View<'_>, own: &str, before: &[Component]) {
        for (item, text) in texts(object) {
            let id = match text.split_once(':') {
                Some((COMPONENT, id)) if !id.is_empty() => id,
                _ => continue,
            };
            let found = before.iter().find(|component| component.id == id);
            let message = match found {
                Some(component) if component.is_outgoing() => format!(
                    "the component {} is the router itself, which is there before all others",
                    quoted(id)
                ),
                Some(_) => continue,
                None if id == own => format!("the component {} refers to itself", quoted(own)),
                None => format!(
                    "no component {} stands before this one in the worker's components",
                    quoted(id)
                ),
            };
            self.problems.push(Problem::error(item.span, message));
        }
    }
}

fn texts(object: View<'_>) -> impl Iterator<Item = (&Node, &str)> {
    let items = object.items("references").iter();
    items.filter_map(|item| match &item.value {
        Value::Text(text) => Some((item, text.as_str())),
        _ => None,
    })
}
