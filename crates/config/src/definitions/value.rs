//! JSON values with their paths, so that errors can name the place.

use crate::model::Json;

/// A value of the file.
#[derive(Clone)]
pub(super) struct Value<'a> {
    /// The path as a JSON pointer (RFC 6901); no key has a slash.
    way: String,
    json: &'a Json,
}

impl<'a> Value<'a> {
    pub(super) fn whole(json: &'a Json) -> Self {
        Self {
            way: String::new(),
            json,
        }
    }

    /// The items of a list of objects; none if the key is missing.
    pub(super) fn objects(&self, key: &str) -> Result<Vec<Self>, String> {
        let items = match self.json.get(key) {
            None => return Ok(Vec::new()),
            Some(Json::Array(items)) => items,
            Some(other) => return Err(self.unexpected(key, "a list", other)),
        };
        let items = items.iter().enumerate().map(|(index, json)| {
            let way = format!("{}/{key}/{index}", self.way);
            match json {
                Json::Object(_) => Ok(Self { way, json }),
                other => Err(format!(
                    "{way}: an object is expected, found {}",
                    kind(other)
                )),
            }
        });
        items.collect()
    }

    /// An object that must be there.
    pub(super) fn object(&self, key: &str) -> Result<Self, String> {
        match self.json.get(key) {
            Some(json @ Json::Object(_)) => Ok(Self {
                way: format!("{}/{key}", self.way),
                json,
            }),
            Some(other) => Err(self.unexpected(key, "an object", other)),
            None => Err(format!("{}: \"{key}\" is missing", self.way)),
        }
    }

    pub(super) fn keys(&self) -> impl Iterator<Item = &'a str> + use<'a> {
        let object = self.json.as_object();
        object
            .into_iter()
            .flat_map(|object| object.keys())
            .map(String::as_str)
    }

    pub(super) fn json(&self) -> &'a Json {
        self.json
    }

    pub(super) fn get(&self, key: &str) -> Option<&'a Json> {
        self.json.get(key)
    }

    /// A text that must be there.
    pub(super) fn text(&self, key: &str) -> Result<&'a str, String> {
        self.optional_text(key)?
            .ok_or_else(|| format!("{}: \"{key}\" is missing", self.way))
    }

    pub(super) fn optional_text(&self, key: &str) -> Result<Option<&'a str>, String> {
        match self.json.get(key) {
            None | Some(Json::Null) => Ok(None),
            Some(Json::String(text)) => Ok(Some(text)),
            Some(other) => Err(self.unexpected(key, "text", other)),
        }
    }

    /// A name that fits AMQP's short strings.
    pub(super) fn name(&self, key: &str) -> Result<&'a str, String> {
        let name = self.text(key)?;
        if name.len() > 255 {
            return Err(format!(
                "{}/{key}: a name of at most 255 bytes is expected, found one of {}",
                self.way,
                name.len()
            ));
        }
        Ok(name)
    }

    pub(super) fn boolean(&self, key: &str, otherwise: bool) -> Result<bool, String> {
        match self.json.get(key) {
            None | Some(Json::Null) => Ok(otherwise),
            Some(Json::Bool(value)) => Ok(*value),
            Some(other) => Err(self.unexpected(key, "true or false", other)),
        }
    }

    /// An object, empty if missing. RabbitMQ sometimes writes an empty one as a list.
    pub(super) fn arguments(&self, key: &str) -> Result<Vec<(String, Json)>, String> {
        match self.json.get(key) {
            None | Some(Json::Null) => Ok(Vec::new()),
            Some(Json::Array(items)) if items.is_empty() => Ok(Vec::new()),
            Some(Json::Object(object)) => {
                let entries = object.iter();
                Ok(entries.map(|(k, v)| (k.clone(), v.clone())).collect())
            }
            Some(other) => Err(self.unexpected(key, "an object", other)),
        }
    }

    fn unexpected(&self, key: &str, expected: &str, found: &Json) -> String {
        let (way, found) = (&self.way, kind(found));
        format!("{way}/{key}: {expected} is expected, found {found}")
    }
}

fn kind(json: &Json) -> &'static str {
    match json {
        Json::Null => "null",
        Json::Bool(_) => "a boolean",
        Json::Number(_) => "a number",
        Json::String(_) => "a text",
        Json::Array(_) => "a list",
        Json::Object(_) => "an object",
    }
}
