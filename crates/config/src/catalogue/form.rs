//! The types of tables, keys and values.

pub(super) use super::effect::Effect;
pub(super) use super::rule::Rule;
use super::table::tables;

/// The keys of one kind of object.
#[derive(Debug)]
pub struct Table {
    /// Its path, as the documentation and [`refused`](super::refused) name it: `endpoint[tcp].tls`.
    pub path: &'static str,
    /// Its name in messages: `a TLS endpoint`.
    pub name: &'static str,
    pub keys: &'static [Key],
}

/// One key of an object.
#[derive(Clone, Copy, Debug)]
pub struct Key {
    pub name: &'static str,
    pub kind: Kind,
    pub fallback: Fallback,
    /// Its description: quantity, unit and scope, the effect at the bound, and the reason for the default.
    pub about: &'static str,
    /// Crosstie's addition to Crossbar.io's keys.
    pub own: bool,
    /// The reason why the key has no effect, if it has none. The key causes a warning.
    pub inert: Option<&'static str>,
    /// Whether `$VARIABLE` and `${VARIABLE}` are replaced from the environment.
    pub environment: bool,
    /// The effect of another value, or of another item of a list or map, on a running node; by default that of the key
    /// above.
    pub effect: Option<Effect>,
    /// The effect of keys within its value that state none; by default its own.
    pub within: Option<Effect>,
}

/// The type of a value.
#[derive(Clone, Copy, Debug)]
pub enum Kind {
    Boolean,
    /// A boolean of which only one value is valid, and the reason.
    Always(bool, &'static str),
    /// A boolean of which the other value has no effect, and the reason. That value causes a warning.
    Only(bool, &'static str),
    Integer {
        min: i64,
        max: i64,
        /// 0 is valid too, and disables the feature.
        or_zero: bool,
    },
    /// One of these numbers; [`refused`](super::refused) names the place by `path`.
    Numbers {
        path: &'static str,
        numbers: &'static [i64],
    },
    Text(Rule),
    OneOf(&'static Words),
    List {
        of: &'static Self,
        least: usize,
    },
    /// One value of the kind, or a list of them.
    OneOrMore(&'static Self),
    /// A value of the kind, or null.
    OrNull(&'static Self),
    /// A value of the first kind, or else a list or object of the second.
    Either(&'static Self, &'static Self),
    /// An object with keys of the writer's choice.
    Map {
        keys: Rule,
        of: &'static Self,
        /// As in a [`Key`], for every value.
        environment: bool,
    },
    /// Anything.
    Json,
    Object(&'static Table),
    /// An object whose keys depend on its `type`.
    Tagged(&'static Tagged),
}

/// The words that a text must be one of.
#[derive(Debug)]
pub struct Words {
    /// As [`refused`](super::refused) names the place: `serializers[]`.
    pub path: &'static str,
    pub words: &'static [&'static str],
}

/// The tables of an object, by its `type`.
#[derive(Debug)]
pub struct Tagged {
    /// As [`refused`](super::refused) names the place: `workers[].type`.
    pub path: &'static str,
    /// Its name in messages, for any type: `a worker`.
    pub name: &'static str,
    pub variants: &'static [(&'static str, &'static Table)],
}

/// The default of a key.
#[derive(Clone, Copy, Debug)]
pub enum Fallback {
    /// The key must be given.
    Required,
    Boolean(bool),
    Integer(i64),
    Text(&'static str),
    /// A description for the documentation; the builder supplies the value.
    Words(&'static str),
}

impl Table {
    pub fn key(&self, name: &str) -> Option<&'static Key> {
        self.keys.iter().find(|key| key.name == name)
    }
}

/// A secret in the configuration, or the first line of a file.
pub(super) const SECRET: Kind = Kind::Either(&text(Rule::NotEmpty), &object(&SECRET_FILE));

tables! {
    static SECRET_FILE("{secret}", "a secret in a file") {
        "file" = text(Rule::Path).required().own(),
            "File whose first line is the secret. A relative path starts at the configuration's directory.";
    }
}

pub(super) const TYPE: Key = Key {
    name: "type",
    about: "Type of the object; decides which other keys it has.",
    ..text(Rule::Any).required()
};

/// A boolean that is true by default.
pub(super) const ON: Key = Kind::Boolean.or_yes();

/// A boolean that is false by default.
pub(super) const OFF: Key = Kind::Boolean.or_no();

pub(super) const fn integer(min: i64, max: i64) -> Kind {
    Kind::Integer {
        min,
        max,
        or_zero: false,
    }
}

pub(super) const fn integer_or_zero(min: i64, max: i64) -> Kind {
    Kind::Integer {
        min,
        max,
        or_zero: true,
    }
}

pub(super) const fn list(of: &'static Kind) -> Kind {
    Kind::List { of, least: 0 }
}

pub(super) const fn list_not_empty(of: &'static Kind) -> Kind {
    Kind::List { of, least: 1 }
}

pub(super) const fn text(rule: Rule) -> Kind {
    Kind::Text(rule)
}

pub(super) const fn object(table: &'static Table) -> Kind {
    Kind::Object(table)
}

pub(super) const fn tagged(tagged: &'static Tagged) -> Kind {
    Kind::Tagged(tagged)
}

pub(super) const fn one_of(words: &'static Words) -> Kind {
    Kind::OneOf(words)
}

pub(super) const fn map(keys: Rule, of: &'static Kind) -> Kind {
    Kind::Map {
        keys,
        of,
        environment: false,
    }
}

/// A kind becomes a key by its default; `tables!` adds name and description.
impl Kind {
    const fn fallback(self, fallback: Fallback) -> Key {
        Key {
            name: "",
            kind: self,
            fallback,
            about: "",
            own: false,
            inert: None,
            environment: false,
            effect: None,
            within: None,
        }
    }

    pub(super) const fn required(self) -> Key {
        self.fallback(Fallback::Required)
    }

    pub(super) const fn optional(self) -> Key {
        self.otherwise("none")
    }

    /// A default in words, which the builder supplies.
    pub(super) const fn otherwise(self, words: &'static str) -> Key {
        self.fallback(Fallback::Words(words))
    }

    pub(super) const fn or(self, number: i64) -> Key {
        self.fallback(Fallback::Integer(number))
    }

    pub(super) const fn or_text(self, text: &'static str) -> Key {
        self.fallback(Fallback::Text(text))
    }

    pub(super) const fn or_yes(self) -> Key {
        self.fallback(Fallback::Boolean(true))
    }

    pub(super) const fn or_no(self) -> Key {
        self.fallback(Fallback::Boolean(false))
    }

    pub(super) const fn inert(self, reason: &'static str) -> Key {
        self.optional().inert(reason)
    }
}

impl Key {
    pub(super) const fn required(mut self) -> Self {
        self.fallback = Fallback::Required;
        self
    }

    pub(super) const fn otherwise(mut self, words: &'static str) -> Self {
        self.fallback = Fallback::Words(words);
        self
    }

    pub(super) const fn or(mut self, number: i64) -> Self {
        self.fallback = Fallback::Integer(number);
        self
    }

    pub(super) const fn about(mut self, about: &'static str) -> Self {
        self.about = about;
        self
    }

    pub(super) const fn own(mut self) -> Self {
        self.own = true;
        self
    }

    pub(super) const fn inert(mut self, reason: &'static str) -> Self {
        self.inert = Some(reason);
        self
    }

    pub(super) const fn environment(mut self) -> Self {
        self.environment = true;
        self
    }

    /// A reload applies another value at once.
    pub(super) const fn at_once(mut self) -> Self {
        self.effect = Some(Effect::AtOnce);
        self
    }

    /// A reload applies another value to new connections and sessions.
    pub(super) const fn new_sessions(mut self) -> Self {
        self.effect = Some(Effect::NewSessions);
        self
    }

    /// Another value needs a restart of the node.
    pub(super) const fn restart(mut self) -> Self {
        self.effect = Some(Effect::Restart);
        self
    }

    /// The effect of keys within the value that state none.
    pub(super) const fn within(mut self, effect: Effect) -> Self {
        self.within = Some(effect);
        self
    }
}
