//! Which file of a crate uses which: paths in `use` declarations and in the code, followed to the
//! file that defines what they name, and the circles among them.
//!
//! It reads text and not the compiler's mind: a name that a glob brings counts for the module that
//! the glob is of, a macro's own paths count where they are written, and items for tests do not count.

use std::collections::{BTreeMap, BTreeSet};

use crate::Source;

/// A module's names from the crate's root on; the root has none.
type Module = Vec<String>;
type Path = Vec<String>;

/// How many re-exports one name may go through.
const REEXPORTS_MAX: usize = 8;

/// The files of the largest circle of imports among `sources`, all of the crate's folder `src`;
/// none where every file can be understood without those that use it.
pub fn largest_circle(folder: &str, sources: &[Source]) -> Vec<String> {
    let files = Files::read(folder, sources);
    let edges: Vec<BTreeSet<usize>> = (0..files.files.len()).map(|at| files.uses(at)).collect();
    let largest = circles(&edges).into_iter().max_by_key(Vec::len);
    let circle = largest.filter(|circle| circle.len() > 1);
    let mut paths: Vec<String> = circle
        .into_iter()
        .flatten()
        .map(|at| files.files[at].path.clone())
        .collect();
    paths.sort();
    paths
}

struct File {
    path: String,
    module: Module,
    /// Every path that it names, its imports among them.
    paths: Vec<Path>,
    /// What its imports call by which name.
    imports: BTreeMap<String, Path>,
}

struct Files {
    files: Vec<File>,
    modules: BTreeMap<Module, usize>,
}

impl Files {
    fn read(folder: &str, sources: &[Source]) -> Self {
        let mut files = Vec::new();
        for source in sources {
            let Some(path) = source.path.strip_prefix(folder) else {
                continue;
            };
            let tokens = without_tests(&tokens(&source.text));
            let (paths, imports) = named(&tokens);
            files.push(File {
                path: path.to_owned(),
                module: module_of(path),
                paths,
                imports,
            });
        }
        let modules = files.iter().enumerate();
        let modules = modules
            .map(|(at, file)| (file.module.clone(), at))
            .collect();
        Self { files, modules }
    }

    /// The files that one needs.
    fn uses(&self, at: usize) -> BTreeSet<usize> {
        let paths = self.files[at].paths.iter();
        paths
            .filter_map(|path| self.find(at, path, REEXPORTS_MAX))
            .filter(|used| *used != at)
            .collect()
    }

    /// The file that defines what `path` names in the file `at`.
    fn find(&self, at: usize, path: &[String], reexports_left: usize) -> Option<usize> {
        let own = &self.files[at];
        let (first, mut rest) = path.split_first()?;
        let mut module = match first.as_str() {
            "crate" => Module::new(),
            "self" => own.module.clone(),
            "super" => {
                let mut module = own.module.clone();
                module.pop();
                while let Some((next, after)) = rest.split_first()
                    && next == "super"
                {
                    module.pop();
                    rest = after;
                }
                module
            }
            name => {
                let child = [own.module.clone(), vec![name.to_owned()]].concat();
                if self.modules.contains_key(&child) {
                    child
                } else {
                    let import = own.imports.get(name)?;
                    let whole = [import.as_slice(), rest].concat();
                    return match reexports_left {
                        0 => None,
                        left if import[0] != *name => self.find(at, &whole, left - 1),
                        _ => None,
                    };
                }
            }
        };
        while let Some((next, after)) = rest.split_first() {
            module.push(next.clone());
            if !self.modules.contains_key(&module) {
                module.pop();
                break;
            }
            rest = after;
        }
        let found = *self.modules.get(&module)?;
        // What a module only passes on is another's.
        if let Some(name) = rest.first()
            && found != at
            && reexports_left > 0
            && self.files[found].imports.contains_key(name)
        {
            return self.find(found, rest, reexports_left - 1);
        }
        Some(found)
    }
}

fn module_of(path: &str) -> Module {
    let path = path.strip_suffix(".rs").unwrap_or(path);
    let mut module: Module = path.split('/').map(str::to_owned).collect();
    if module.last().is_some_and(|last| last == "mod") || module == ["lib"] {
        module.pop();
    }
    module
}

/// Words, `::`, and single characters; comments and texts are gone.
fn tokens(text: &str) -> Vec<String> {
    let characters: Vec<char> = text.chars().collect();
    let mut tokens = Vec::new();
    let mut at = 0;
    while let Some(&character) = characters.get(at) {
        let next = characters.get(at + 1).copied();
        match (character, next) {
            ('/', Some('/')) => at = end_of(&characters, at, &['\n']),
            ('/', Some('*')) => at = end_of(&characters, at + 2, &['*', '/']),
            ('r', Some('"' | '#')) if raw_text(&characters, at).is_some() => {
                at = raw_text(&characters, at).unwrap_or(at + 1);
            }
            ('"', _) => {
                at += 1;
                while characters.get(at).is_some_and(|c| *c != '"') {
                    at += 1 + usize::from(characters[at] == '\\');
                }
                at += 1;
            }
            // A character, and not a lifetime.
            ('\'', Some('\\')) => at = end_of(&characters, at + 3, &['\'']),
            ('\'', _) if characters.get(at + 2) == Some(&'\'') => at += 3,
            (':', Some(':')) => {
                tokens.push("::".to_owned());
                at += 2;
            }
            (c, _) if c.is_alphanumeric() || c == '_' => {
                let rest = characters[at..].iter();
                let word: String = rest
                    .take_while(|c| c.is_alphanumeric() || **c == '_')
                    .collect();
                at += word.chars().count();
                tokens.push(word);
            }
            (c, _) => {
                if !c.is_whitespace() {
                    tokens.push(c.to_string());
                }
                at += 1;
            }
        }
    }
    tokens
}

/// The tokens outside items for tests.
fn without_tests(tokens: &[String]) -> Vec<String> {
    const FOR_TESTS: [&str; 7] = ["#", "[", "cfg", "(", "test", ")", "]"];
    let mut kept = Vec::with_capacity(tokens.len());
    let mut at = 0;
    while let Some(token) = tokens.get(at) {
        let next = tokens[at..].iter().take(FOR_TESTS.len());
        if next.eq(FOR_TESTS) {
            at = end_of_item(tokens, at + FOR_TESTS.len());
        } else {
            kept.push(token.clone());
            at += 1;
        }
    }
    kept
}

/// Behind the item, the field or the statement that begins at `at`, with its further attributes.
fn end_of_item(tokens: &[String], mut at: usize) -> usize {
    let (mut depth, mut generics) = (0_usize, 0_usize);
    while let Some(token) = tokens.get(at) {
        match token.as_str() {
            "<" => generics += 1,
            ">" if tokens[at - 1] != "-" => generics = generics.saturating_sub(1),
            "(" | "[" | "{" => depth += 1,
            // The end of the block around the last item.
            ")" | "]" | "}" if depth == 0 => return at,
            "}" if depth == 1 => return at + 1,
            ")" | "]" | "}" => depth -= 1,
            ";" if depth == 0 => return at + 1,
            "," if depth == 0 && generics == 0 => return at + 1,
            _ => {}
        }
        at += 1;
    }
    at
}

/// Behind the next `end`.
fn end_of(characters: &[char], from: usize, end: &[char]) -> usize {
    let rest = characters.get(from..).unwrap_or_default();
    let found = rest.windows(end.len()).position(|window| window == end);
    found.map_or(characters.len(), |position| from + position + end.len())
}

/// Behind a text like `r#"…"#` that begins here.
fn raw_text(characters: &[char], at: usize) -> Option<usize> {
    if at > 0 && (characters[at - 1].is_alphanumeric() && characters[at - 1] != 'b') {
        return None;
    }
    let signs = characters[at + 1..].iter().take_while(|c| **c == '#');
    let signs = signs.count();
    if characters.get(at + 1 + signs) != Some(&'"') {
        return None;
    }
    let mut end = vec!['"'];
    end.resize(1 + signs, '#');
    Some(end_of(characters, at + 2 + signs, &end))
}

/// All paths in `tokens`, and those of `use` declarations by the names that they give.
fn named(tokens: &[String]) -> (Vec<Path>, BTreeMap<String, Path>) {
    let mut paths = Vec::new();
    let mut imports = BTreeMap::new();
    let mut at = 0;
    while at < tokens.len() {
        match tokens[at].as_str() {
            "use" => {
                at = read_use(tokens, at + 1, &[], &mut |path, name| {
                    paths.push(path.clone());
                    imports.insert(name, path);
                });
            }
            // Who may see something is not what it uses.
            "pub" if tokens.get(at + 1).is_some_and(|token| token == "(") => {
                let end = tokens[at..].iter().position(|token| token == ")");
                at += end.map_or(1, |end| end + 1);
            }
            word if is_word(word) && (at == 0 || tokens[at - 1] != "::") => {
                let mut path = vec![word.to_owned()];
                at += 1;
                while at + 1 < tokens.len() && tokens[at] == "::" && is_word(&tokens[at + 1]) {
                    path.push(tokens[at + 1].clone());
                    at += 2;
                }
                if path.len() > 1 {
                    paths.push(path);
                }
            }
            _ => at += 1,
        }
    }
    (paths, imports)
}

/// One tree of a `use` declaration, from `at` on; returns where it ends.
fn read_use(
    tokens: &[String],
    mut at: usize,
    before: &[String],
    found: &mut impl FnMut(Path, String),
) -> usize {
    let mut path = before.to_vec();
    while let Some(token) = tokens.get(at) {
        match token.as_str() {
            "{" => {
                at += 1;
                while tokens.get(at).is_some_and(|token| token != "}") {
                    at = read_use(tokens, at, &path, &mut *found);
                    at += usize::from(tokens.get(at).is_some_and(|token| token == ","));
                }
                return at + 1;
            }
            "*" => {
                found(path, "*".to_owned());
                return at + 1;
            }
            "self" if !path.is_empty() => {}
            "as" => {
                let name = tokens.get(at + 1).cloned().unwrap_or_default();
                found(path, name);
                return at + 2;
            }
            word if is_word(word) => path.push(word.to_owned()),
            "::" => {}
            _ => break,
        }
        at += 1;
    }
    if let Some(name) = path.last().cloned() {
        found(path, name);
    }
    at
}

fn is_word(token: &str) -> bool {
    token.starts_with(|c: char| c.is_alphabetic() || c == '_')
}

/// The sets of nodes that reach each other (Tarjan's algorithm).
fn circles(edges: &[BTreeSet<usize>]) -> Vec<Vec<usize>> {
    let mut search = Search {
        edges,
        order: vec![None; edges.len()],
        lowest: vec![0; edges.len()],
        open: Vec::new(),
        found: Vec::new(),
        count: 0,
    };
    for node in 0..edges.len() {
        if search.order[node].is_none() {
            search.visit(node);
        }
    }
    search.found
}

struct Search<'a> {
    edges: &'a [BTreeSet<usize>],
    order: Vec<Option<usize>>,
    lowest: Vec<usize>,
    open: Vec<usize>,
    found: Vec<Vec<usize>>,
    count: usize,
}

impl Search<'_> {
    fn visit(&mut self, node: usize) {
        let order = self.count;
        self.count += 1;
        self.order[node] = Some(order);
        self.lowest[node] = order;
        self.open.push(node);
        for &next in &self.edges[node] {
            match self.order[next] {
                None => {
                    self.visit(next);
                    self.lowest[node] = self.lowest[node].min(self.lowest[next]);
                }
                Some(seen) if self.open.contains(&next) => {
                    self.lowest[node] = self.lowest[node].min(seen);
                }
                Some(_) => {}
            }
        }
        if self.lowest[node] == order {
            let from = self.open.iter().position(|open| *open == node);
            let circle = self.open.split_off(from.unwrap_or_default());
            self.found.push(circle);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(files: &[(&str, &str)], expected: &[&str]) {
        let sources: Vec<Source> = files
            .iter()
            .map(|(path, text)| Source {
                path: (*path).to_owned(),
                text: (*text).to_owned(),
            })
            .collect();
        assert_eq!(largest_circle("", &sources), expected);
    }

    #[test]
    fn circles_are_found() {
        check(&[("a.rs", "use crate::b::B;"), ("b.rs", "")], &[]);
        check(
            &[("a.rs", "use crate::b::B;"), ("b.rs", "use super::a::A;")],
            &["a.rs", "b.rs"],
        );
        check(
            &[
                ("a.rs", "use crate::{b, c::{self, C}};"),
                ("b.rs", "use crate::c;"),
                ("c.rs", "fn f() { crate::a::g() }"),
                ("d.rs", "use crate::a;"),
            ],
            &["a.rs", "b.rs", "c.rs"],
        );
    }

    #[test]
    fn a_name_counts_for_the_file_that_defines_it() {
        // A child uses what its parent passes on from another child.
        check(
            &[
                ("x/mod.rs", "mod a; mod b; pub use a::A;"),
                ("x/a.rs", ""),
                ("x/b.rs", "use super::A; use crate::x::A as B;"),
            ],
            &[],
        );
        check(
            &[
                ("x/mod.rs", "mod a; use a::A; struct X;"),
                ("x/a.rs", "use super::X;"),
            ],
            &["x/a.rs", "x/mod.rs"],
        );
        // By the name of a module that was imported.
        check(
            &[
                ("a.rs", "use crate::x::b; fn f() { b::f() }"),
                ("x/mod.rs", "mod b;"),
                ("x/b.rs", "use crate::a::f;"),
            ],
            &["a.rs", "x/b.rs"],
        );
    }

    #[test]
    fn code_behind_an_item_for_tests_counts() {
        check(
            &[
                ("a.rs", "#[cfg(test)] mod tests; use crate::b;"),
                (
                    "b.rs",
                    "#[cfg(test)] #[path = \"x.rs\"] mod tests { fn f() { g() } } use crate::a;",
                ),
            ],
            &["a.rs", "b.rs"],
        );
        check(
            &[
                ("a.rs", "use crate::b;"),
                (
                    "b.rs",
                    "fn f() { #[cfg(test)] crate::a::g(h(), [1]); } #[cfg(test)] use crate::a;
                    #[cfg(test)] fn g<A, B>() -> A { crate::a::h() }",
                ),
            ],
            &[],
        );
    }

    #[test]
    fn what_is_not_code_does_not_count() {
        check(
            &[
                ("a.rs", "use crate::b;"),
                (
                    "b.rs",
                    r##"// use crate::a;
                    /* use crate::a; */
                    const T: &str = "use crate::a;"; const R: &str = r#" " use crate::a; "#;
                    fn f<'a>(c: char) -> bool { c == '"' || c == '\'' }
                    pub(in crate::a) fn g() {}
                    #[cfg(test)]
                    mod tests { use crate::a; }"##,
                ),
            ],
            &[],
        );
    }
}
