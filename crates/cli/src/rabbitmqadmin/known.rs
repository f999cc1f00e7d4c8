//! The words of a command line: options anywhere between the arguments, in short and long forms.

use super::failure::Failure;

/// The words, sorted.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Given {
    /// By the keys that a section of a file has for them, too.
    options: Vec<(&'static str, String)>,
    pub(super) arguments: Vec<String>,
}

/// What an option takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Takes {
    /// None; given, it has this value.
    Nothing(&'static str),
    Text,
    Integer,
}

use Takes::{Integer, Nothing, Text};

struct Known {
    key: &'static str,
    letter: Option<char>,
    long: &'static str,
    takes: Takes,
}

const fn known(key: &'static str, letter: Option<char>, long: &'static str, takes: Takes) -> Known {
    Known {
        key,
        letter,
        long,
        takes,
    }
}

const ALL: [Known; 24] = [
    known("help", Some('h'), "help", Nothing("True")),
    known("config", Some('c'), "config", Text),
    known("node", Some('N'), "node", Text),
    known("hostname", Some('H'), "host", Text),
    known("port", Some('P'), "port", Text),
    known("path_prefix", None, "path-prefix", Text),
    known("vhost", Some('V'), "vhost", Text),
    known("username", Some('u'), "username", Text),
    known("password", Some('p'), "password", Text),
    known("base_uri", Some('U'), "base-uri", Text),
    known("verbose", Some('q'), "quiet", Nothing("False")),
    known("ssl", Some('s'), "ssl", Nothing("True")),
    known("ssl_key_file", None, "ssl-key-file", Text),
    known("ssl_cert_file", None, "ssl-cert-file", Text),
    known("ssl_ca_cert_file", None, "ssl-ca-cert-file", Text),
    known(
        "ssl_disable_hostname_verification",
        None,
        "ssl-disable-hostname-verification",
        Nothing("True"),
    ),
    known("ssl_insecure", Some('k'), "ssl-insecure", Nothing("True")),
    known("request_timeout", Some('t'), "request-timeout", Integer),
    known("format", Some('f'), "format", Text),
    known("sort", Some('S'), "sort", Text),
    known("sort_reverse", Some('R'), "sort-reverse", Nothing("True")),
    known("depth", Some('d'), "depth", Text),
    known("bash_completion", None, "bash-completion", Nothing("True")),
    known("version", None, "version", Nothing("True")),
];

/// Whether a section of a file may have a key.
pub(super) fn is_key(key: &str) -> bool {
    key == "declare_vhost" || ALL.iter().any(|known| known.key == key)
}

impl Given {
    pub(super) fn parse(words: &[String]) -> Result<Self, Failure> {
        let mut given = Self::default();
        let mut rest = words.iter();
        while let Some(word) = rest.next() {
            if word == "--" {
                given.arguments.extend(rest.cloned());
                break;
            }
            if let Some(long) = word.strip_prefix("--") {
                given.take_long(long, &mut rest)?;
            } else if let Some(letters) = word.strip_prefix('-').filter(|word| !word.is_empty()) {
                given.take_letters(letters, &mut rest)?;
            } else {
                given.arguments.push(word.clone());
            }
        }
        Ok(given)
    }

    fn take_long<'w>(
        &mut self,
        word: &str,
        rest: &mut impl Iterator<Item = &'w String>,
    ) -> Result<(), Failure> {
        let (name, value) = match word.split_once('=') {
            Some((name, value)) => (name, Some(value.to_owned())),
            None => (word, None),
        };
        let known = long(name)?;
        let shown = format!("--{}", known.long);
        match known.takes {
            Nothing(_) if value.is_some() => {
                let text = format!("{shown} option does not take a value");
                Err(Failure::option(&text))
            }
            Nothing(value) => {
                self.options.push((known.key, value.to_owned()));
                Ok(())
            }
            _ => {
                let value = value.or_else(|| rest.next().cloned());
                self.take_value(known, &shown, value)
            }
        }
    }

    /// Takes letters behind one dash; the rest of the word, or else the next word, is the value of one that has a value.
    fn take_letters<'w>(
        &mut self,
        letters: &str,
        rest: &mut impl Iterator<Item = &'w String>,
    ) -> Result<(), Failure> {
        for (at, letter) in letters.char_indices() {
            let shown = format!("-{letter}");
            let known = ALL.iter().find(|known| known.letter == Some(letter));
            let known =
                known.ok_or_else(|| Failure::option(&format!("no such option: {shown}")))?;
            match known.takes {
                Nothing(value) => self.options.push((known.key, value.to_owned())),
                _ => {
                    let behind = &letters[at + letter.len_utf8()..];
                    let value = match behind.is_empty() {
                        true => rest.next().cloned(),
                        false => Some(behind.to_owned()),
                    };
                    return self.take_value(known, &shown, value);
                }
            }
        }
        Ok(())
    }

    fn take_value(
        &mut self,
        known: &Known,
        shown: &str,
        value: Option<String>,
    ) -> Result<(), Failure> {
        let value =
            value.ok_or_else(|| Failure::option(&format!("{shown} option requires 1 argument")))?;
        if known.takes == Integer && value.parse::<i64>().is_err() {
            let text = format!("option {shown}: invalid integer value: '{value}'");
            return Err(Failure::option(&text));
        }
        self.options.push((known.key, value));
        Ok(())
    }

    pub(super) fn get(&self, key: &str) -> Option<&str> {
        let mut found = self.options.iter().rev();
        let (_, value) = found.find(|(known, _)| *known == key)?;
        Some(value)
    }

    pub(super) fn has(&self, key: &str) -> bool {
        self.get(key) == Some("True")
    }
}

/// The option of a long form, or of a beginning that only one has.
fn long(name: &str) -> Result<&'static Known, Failure> {
    if let Some(known) = ALL.iter().find(|known| known.long == name) {
        return Ok(known);
    }
    let mut begun: Vec<_> = ALL
        .iter()
        .filter(|known| known.long.starts_with(name))
        .collect();
    begun.sort_by_key(|known| known.long);
    match begun.as_slice() {
        [] => Err(Failure::option(&format!("no such option: --{name}"))),
        [known] => Ok(known),
        several => {
            let several: Vec<_> = several
                .iter()
                .map(|known| format!("--{}", known.long))
                .collect();
            let several = several.join(", ");
            let text = format!("ambiguous option: --{name} ({several}?)");
            Err(Failure::option(&text))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(line: &str) -> Result<(String, Vec<String>), String> {
        let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        let given = Given::parse(&words);
        let given = given.map_err(|failure| {
            let (_, error) = failure.text.split_once("error: ").expect("an error");
            error.to_owned()
        })?;
        let options = given.options.iter();
        let options = options.map(|(key, value)| format!("{key}={value}"));
        Ok((options.collect::<Vec<_>>().join(" "), given.arguments))
    }

    #[test]
    fn options_are_anywhere() {
        for (line, options, arguments) in [
            ("list queues", "", "list queues"),
            ("-H h list -P 1 queues", "hostname=h port=1", "list queues"),
            ("-Hh --port=1 list", "hostname=h port=1", "list"),
            ("-qftsv list", "verbose=False format=tsv", "list"),
            (
                "-qsk list",
                "verbose=False ssl=True ssl_insecure=True",
                "list",
            ),
            ("--pass x --user y list", "password=x username=y", "list"),
            (
                "-t 5 --request-t=6 list",
                "request_timeout=5 request_timeout=6",
                "list",
            ),
            ("list -- -q", "", "list -q"),
            ("get -", "", "get -"),
        ] {
            let arguments = arguments.split(' ').map(str::to_owned).collect();
            assert_eq!(parsed(line), Ok((options.to_owned(), arguments)), "{line}");
        }
    }

    #[test]
    fn wrong_options_are_named() {
        for (line, expected) in [
            ("--nope", "no such option: --nope"),
            ("-x", "no such option: -x"),
            ("-H", "-H option requires 1 argument"),
            ("--host", "--host option requires 1 argument"),
            ("--quiet=1", "--quiet option does not take a value"),
            ("-t x", "option -t: invalid integer value: 'x'"),
            ("--so", "ambiguous option: --so (--sort, --sort-reverse?)"),
        ] {
            assert_eq!(parsed(line), Err(expected.to_owned()), "{line}");
        }
    }
}
