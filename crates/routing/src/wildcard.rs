//! Wildcard patterns by their shapes.
//!
//! ```text
//! com.app..created     named, named, any, named     a lookup of com.app..created
//! com.app..deleted     named, named, any, named     (the same shape: no other lookup)
//! com..users.created   named, any, named, named     a lookup of com..users.created
//! ```
//!
//! A component of a pattern that is empty matches any one component of a URI. Which components are empty is the
//! pattern's *shape*; a URI with some components left out is the only pattern of that shape that matches it. Matching
//! is thus one lookup for each shape in use that has as many components as the URI, however many patterns there are. A
//! tree of components would visit every node of hostile patterns (40,000 of them cost 0.4 s a publication), and hold a
//! map in each; here a pattern is an entry of one map.
//!
//! The shapes of one length are bounded by `shapes_max`. Patterns of up to ten components have no more than 1,024
//! shapes, so that with this bound they are never refused.

use std::sync::Arc;

use ahash::RandomState;
use crosstie_collections::GrowingMap;

/// Maximum components of a wildcard pattern: a shape is a number of that many bits.
pub const WILDCARD_COMPONENTS_MAX: usize = 128;

/// A map from wildcard patterns to `V`.
#[derive(Debug)]
pub(crate) struct WildcardMap<V> {
    patterns: GrowingMap<Arc<str>, V, RandomState>,
    /// By the number of components, up to that of the longest pattern so far.
    shapes: Vec<Shapes>,
}

/// The shapes in use of one length, the best match first.
type Shapes = Vec<Shape>;

#[derive(Debug)]
struct Shape {
    /// A bit for each component, the first one's the highest: set if any component matches there.
    any: u128,
    patterns: u32,
}

impl<V: Copy> WildcardMap<V> {
    pub(crate) fn new(keys: RandomState) -> Self {
        Self {
            patterns: GrowingMap::with_hasher(keys),
            shapes: Vec::new(),
        }
    }

    /// Whether the shape of a pattern is in use, or another shape of its length is allowed.
    pub(crate) fn has_room(&self, pattern: &str, shapes_max: usize) -> bool {
        let (components, any) = shape(pattern);
        let Some(shapes) = self.shapes.get(components) else {
            return shapes_max > 0;
        };
        shapes.len() < shapes_max || place(shapes, any).is_ok()
    }

    /// Sets the value of a pattern of at most [`WILDCARD_COMPONENTS_MAX`] components.
    pub(crate) fn insert(&mut self, pattern: Arc<str>, value: V) {
        let (components, any) = shape(&pattern);
        if self.patterns.insert(pattern, value).is_some() {
            return;
        }
        if self.shapes.len() <= components {
            self.shapes.resize_with(components + 1, Shapes::new);
        }
        let shapes = &mut self.shapes[components];
        match place(shapes, any) {
            Ok(place) => shapes[place].patterns += 1,
            Err(place) => shapes.insert(place, Shape { any, patterns: 1 }),
        }
    }

    pub(crate) fn remove(&mut self, pattern: &str) {
        if self.patterns.remove(pattern).is_none() {
            return;
        }
        let (components, any) = shape(pattern);
        let shapes = &mut self.shapes[components];
        if let Ok(place) = place(shapes, any) {
            shapes[place].patterns -= 1;
            if shapes[place].patterns == 0 {
                shapes.remove(place);
            }
        }
    }

    /// The value of that very pattern.
    pub(crate) fn value(&self, pattern: &str) -> Option<V> {
        self.patterns.get(pattern).copied()
    }

    /// The best match for a call (WAMP advanced profile, "Calls matching multiple registrations"): the pattern with the
    /// longest run of named components before its first wildcard, then before its second, and so on.
    pub(crate) fn best(&self, uri: &str, steps: &mut u32) -> Option<V> {
        let mut best = None;
        self.visit(uri, steps, |value| {
            best = Some(value);
            false
        });
        best
    }

    pub(crate) fn for_each(&self, uri: &str, steps: &mut u32, found: &mut impl FnMut(V)) {
        self.visit(uri, steps, |value| {
            found(value);
            true
        });
    }

    pub(crate) fn len(&self) -> usize {
        self.patterns.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.patterns.is_empty()
    }

    /// Shows `visit` the values of the patterns that match, the best one first, until it returns
    /// `false`.
    #[inline]
    fn visit(&self, uri: &str, steps: &mut u32, visit: impl FnMut(V) -> bool) {
        if !self.is_empty() {
            self.look_up(uri, steps, visit);
        }
    }

    fn look_up(&self, uri: &str, steps: &mut u32, mut visit: impl FnMut(V) -> bool) {
        let Some(components) = Components::of(uri) else {
            return;
        };
        let Some(shapes) = self.shapes.get(components.count) else {
            return;
        };
        let mut pattern = String::with_capacity(uri.len());
        for shape in shapes {
            *steps = steps.saturating_add(1 + shape.any.count_ones() / 8);
            // An empty component of the URI matches no name, and the written text would be a pattern of another shape.
            if components.empty & !shape.any != 0 {
                continue;
            }
            pattern.clear();
            components.write(&mut pattern, shape.any);
            if let Some(value) = self.patterns.get(pattern.as_str())
                && !visit(*value)
            {
                return;
            }
        }
    }
}

/// The places of a URI's components.
struct Components<'u> {
    uri: &'u str,
    count: usize,
    /// The ends of the components.
    ends: [u32; WILDCARD_COMPONENTS_MAX],
    /// The empty ones, as in a shape.
    empty: u128,
}

impl<'u> Components<'u> {
    /// `None` if there are more than any pattern has.
    fn of(uri: &'u str) -> Option<Self> {
        let mut ends = [0; WILDCARD_COMPONENTS_MAX];
        let (mut count, mut start, mut empty) = (0, 0, 0);
        let dots = uri.bytes().enumerate().filter(|(_, byte)| *byte == b'.');
        for end in dots.map(|(end, _)| end).chain([uri.len()]) {
            *ends.get_mut(count)? = u32::try_from(end).ok()?;
            empty = empty << 1 | u128::from(start == end);
            start = end + 1;
            count += 1;
        }
        Some(Self {
            uri,
            count,
            ends,
            empty,
        })
    }

    /// Appends the URI without the components that the shape `any` leaves out. Run by run, because a hostile URI has
    /// many components and its patterns few names, or the other way round.
    fn write(&self, pattern: &mut String, any: u128) {
        let mut any = any << (WILDCARD_COMPONENTS_MAX - self.count);
        let mut copied = 0;
        while any != 0 {
            let component = any.leading_zeros() as usize;
            any &= !(1 << (WILDCARD_COMPONENTS_MAX - 1 - component));
            let start = match component {
                0 => 0,
                _ => self.ends[component - 1] as usize + 1,
            };
            pattern.push_str(&self.uri[copied..start]);
            copied = self.ends[component] as usize;
        }
        pattern.push_str(&self.uri[copied..]);
    }
}

/// Number of components of a pattern, and which of them are empty.
fn shape(pattern: &str) -> (usize, u128) {
    let mut components = 0;
    let mut any: u128 = 0;
    for component in pattern.split('.') {
        components += 1;
        any = any << 1 | u128::from(component.is_empty());
    }
    (components, any)
}

/// The place of a shape in the order. Fewer wildcards at the front are better, which makes the number smaller.
fn place(shapes: &Shapes, any: u128) -> Result<usize, usize> {
    shapes.binary_search_by_key(&any, |shape| shape.any)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map(patterns: &[&str]) -> WildcardMap<usize> {
        let mut map = WildcardMap::new(RandomState::with_seeds(1, 2, 3, 4));
        for (value, pattern) in patterns.iter().enumerate() {
            map.insert((*pattern).into(), value);
        }
        map
    }

    fn matches(map: &WildcardMap<usize>, uri: &str) -> Vec<usize> {
        let mut found = Vec::new();
        map.for_each(uri, &mut 0, &mut |value| found.push(value));
        assert_eq!(map.best(uri, &mut 0), found.first().copied(), "{uri}");
        found
    }

    #[test]
    fn the_best_match_is_found_first() {
        let patterns = ["..", "a..", "a.b.", ".b.c", "a..c", "", ".", "a.b.c", "b.."];
        let mut map = map(&patterns);
        for (uri, expected) in [
            ("a.b.c", &[7, 2, 4, 1, 3, 0][..]),
            ("a.x.c", &[4, 1, 0]),
            ("b.b.c", &[8, 3, 0]),
            ("x", &[5]),
            ("x.y", &[6]),
            ("a.b.c.d", &[]),
            // As permissions are asked for patterns: an empty component is no name.
            ("a..c", &[4, 1, 0]),
            ("..", &[0]),
        ] {
            assert_eq!(matches(&map, uri), expected, "{uri}");
        }
        for (value, pattern) in patterns.iter().enumerate() {
            assert_eq!(map.value(pattern), Some(value));
            map.remove(pattern);
            map.remove(pattern);
            assert_eq!(map.value(pattern), None);
        }
        assert_eq!(map.len(), 0);
        assert!(map.shapes.iter().all(Vec::is_empty));
    }

    /// Components that are all alike, each pattern with others of them empty.
    #[test]
    fn patterns_made_to_match_cost_no_more_than_their_shapes() {
        let mut map = map(&[]);
        let uri = ["a"; WILDCARD_COMPONENTS_MAX].join(".");
        let mut refused = 0;
        for number in 0..4_000_u32 {
            let component = |place: usize| match place {
                0..32 if number >> place & 1 == 1 => "",
                _ => "a",
            };
            let pattern: Vec<_> = (0..WILDCARD_COMPONENTS_MAX).map(component).collect();
            let pattern: Arc<str> = pattern.join(".").into();
            match map.has_room(&pattern, 1_024) {
                true => map.insert(pattern, number as usize),
                false => refused += 1,
            }
        }
        assert_eq!((refused, map.len()), (4_000 - 1_024, 1_024));
        let (mut steps, mut found) = (0, 0);
        map.for_each(&uri, &mut steps, &mut |_| found += 1);
        assert_eq!(found, 1_024);
        assert!(steps <= 1_024 * 17, "{steps}");
    }

    #[test]
    fn a_long_uri_matches_nothing() {
        let map = map(&["."]);
        assert_eq!(matches(&map, &"a.".repeat(1_000)), []);
    }
}
