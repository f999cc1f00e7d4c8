//! The options that hold: those of the command line, then of a section of a file, then the defaults.

use std::path::PathBuf;
use std::time::Duration;

use percent_encoding::percent_decode_str;

use super::failure::Failure;
use super::file;
use super::known::Given;

/// How a command is carried out.
#[derive(Debug)]
pub(super) struct Options {
    pub(super) hostname: String,
    pub(super) port: u16,
    pub(super) path_prefix: String,
    pub(super) vhost: Option<String>,
    pub(super) declare_vhost: String,
    pub(super) username: String,
    pub(super) password: String,
    /// `None`: without TLS.
    pub(super) tls: Option<Tls>,
    pub(super) timeout: Duration,
    pub(super) format: String,
    pub(super) is_verbose: bool,
    pub(super) sort: Option<String>,
    pub(super) is_reversed: bool,
    /// `None`: nested objects have no columns, and lists have those of their kind.
    pub(super) depth: Option<usize>,
}

/// The files and checks of TLS.
#[derive(Debug)]
pub(super) struct Tls {
    pub(super) is_insecure: bool,
    pub(super) authorities: Option<PathBuf>,
    pub(super) certificate: Option<(PathBuf, PathBuf)>,
}

/// The file that is read if none is named.
const FILE: &str = ".rabbitmqadmin.conf";

/// The section that is read if none is named.
const SECTION: &str = "default";

/// The options as texts.
struct Texts<'g> {
    given: &'g Given,
    section: Vec<(String, String)>,
}

impl Texts<'_> {
    fn get(&self, key: &str) -> Option<&str> {
        let of_file = || {
            let mut found = self.section.iter().rev();
            let (_, value) = found.find(|(known, _)| known == key)?;
            Some(value.as_str())
        };
        self.given.get(key).or_else(of_file)
    }

    fn owned(&self, key: &str, otherwise: &str) -> String {
        self.get(key).unwrap_or(otherwise).to_owned()
    }

    fn has(&self, key: &str) -> bool {
        self.get(key) == Some("True")
    }

    fn number<N: std::str::FromStr>(&self, key: &str) -> Result<Option<N>, Failure> {
        let number = |text: &str| {
            let wrong = || Failure::usage(&format!("Expected a number for {key}, got '{text}'"));
            text.parse().map_err(|_| wrong())
        };
        self.get(key).map(number).transpose()
    }

    fn path(&self, key: &str) -> Option<PathBuf> {
        self.get(key).map(PathBuf::from)
    }

    fn tls(&self) -> Result<Tls, Failure> {
        let is_insecure = self.has("ssl_insecure");
        if self.has("ssl_disable_hostname_verification") && !is_insecure {
            return Err(Failure::usage(
                "--ssl-disable-hostname-verification is not supported: --ssl-ca-cert-file may name the server's \
                 certificate itself, and --ssl-insecure checks nothing",
            ));
        }
        let certificate = match (self.path("ssl_cert_file"), self.path("ssl_key_file")) {
            (Some(certificate), Some(key)) => Some((certificate, key)),
            (_, None) => None,
            (None, Some(_)) => {
                return Err(Failure::usage("--ssl-key-file needs --ssl-cert-file"));
            }
        };
        Ok(Tls {
            is_insecure,
            authorities: self.path("ssl_ca_cert_file"),
            certificate,
        })
    }
}

impl Options {
    pub(super) fn resolve(given: &Given) -> Result<Self, Failure> {
        if given.has("bash_completion") {
            return Err(Failure::usage("--bash-completion is not supported"));
        }
        let texts = Texts {
            given,
            section: of_file(given)?,
        };
        let wrong_port = |port: &str| Failure::usage(&format!("Expected a port, got '{port}'"));
        let port = texts.get("port").unwrap_or("15672");
        let mut options = Self {
            hostname: texts.owned("hostname", "localhost"),
            port: port.parse().map_err(|_| wrong_port(port))?,
            path_prefix: texts.owned("path_prefix", ""),
            vhost: texts.get("vhost").map(str::to_owned),
            declare_vhost: texts.owned("declare_vhost", "/"),
            username: texts.owned("username", "guest"),
            password: texts.owned("password", "guest"),
            tls: None,
            timeout: Duration::from_secs(texts.number("request_timeout")?.unwrap_or(120)),
            format: texts.owned("format", "table"),
            is_verbose: texts.get("verbose") != Some("False"),
            sort: texts.get("sort").map(str::to_owned),
            is_reversed: texts.has("sort_reverse"),
            depth: texts.number("depth")?,
        };
        let mut has_tls = texts.has("ssl");
        if let Some(uri) = texts.get("base_uri") {
            has_tls |= options.take_uri(uri)?;
        }
        if has_tls {
            options.tls = Some(texts.tls()?);
        }
        Ok(options)
    }

    /// Takes the parts of a URI. Returns whether it is for TLS.
    fn take_uri(&mut self, uri: &str) -> Result<bool, Failure> {
        let wrong = || Failure::usage("Expected http://USER:PASSWORD@HOST:PORT for --base-uri");
        let (scheme, rest) = uri.split_once("://").ok_or_else(wrong)?;
        let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
        if !path.is_empty() {
            complain!(
                "WARNING: path in --base-uri is ignored. Please specify --vhost and/or --path-prefix separately.\n"
            );
        }
        let (login, place) = match authority.rsplit_once('@') {
            Some((login, place)) => (Some(login), place),
            None => (None, authority),
        };
        if let Some(login) = login {
            let decoded = |text: &str| percent_decode_str(text).decode_utf8_lossy().into_owned();
            let (name, password) = login.split_once(':').unwrap_or((login, ""));
            self.username = decoded(name);
            if login.contains(':') {
                self.password = decoded(password);
            }
        }
        let (host, port) = match place.rsplit_once(':') {
            Some((host, port)) if !port.ends_with(']') => (host, Some(port)),
            _ => (place, None),
        };
        if let Some(port) = port {
            self.port = port.parse().map_err(|_| wrong())?;
        }
        if !host.is_empty() {
            self.hostname = host.trim_matches(['[', ']']).to_lowercase();
        }
        Ok(scheme == "https")
    }
}

/// The keys of the section that is meant. A named file and a named section must exist.
fn of_file(given: &Given) -> Result<Vec<(String, String)>, Failure> {
    let named = given.get("config").map(PathBuf::from);
    let home = || {
        let path = PathBuf::from(std::env::var_os("HOME")?).join(FILE);
        path.is_file().then_some(path)
    };
    let Some(path) = named.or_else(home) else {
        return Ok(Vec::new());
    };
    let path = path.to_string_lossy();
    let node = given.get("node").unwrap_or(SECTION);
    match file::section(&path, node)? {
        Some(section) => Ok(section),
        None if node == SECTION => Ok(Vec::new()),
        None => Err(Failure::usage(&format!(
            "Could not read section '{node}' in config file '{path}':\n   No section: '{node}'"
        ))),
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    fn resolved(words: &[&str]) -> Options {
        let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
        let given = Given::parse(&words).expect("options");
        Options::resolve(&given).expect("they hold")
    }

    #[test]
    fn the_command_line_overrides_the_file() {
        let mut file = tempfile::NamedTempFile::new().expect("a file");
        let text =
            "[one]\nhostname = h\nport = 1\nssl = True\nssl_insecure = True\ndeclare_vhost = v\n";
        file.write_all(text.as_bytes()).expect("written");
        let path = file.path().to_str().expect("text");
        let options = resolved(&["-c", path, "-N", "one", "-P", "2", "list"]);
        assert_eq!((options.hostname.as_str(), options.port), ("h", 2));
        assert_eq!(options.declare_vhost, "v");
        assert!(options.tls.is_some_and(|tls| tls.is_insecure));
        let options = resolved(&["-c", path]);
        assert_eq!(
            (options.hostname.as_str(), options.port),
            ("localhost", 15_672)
        );
    }

    #[test]
    fn a_uri_has_the_place_and_the_login() {
        let options = resolved(&["-U", "http://u:p%40@Host:1234/x", "-u", "other"]);
        assert_eq!((options.hostname.as_str(), options.port), ("host", 1234));
        assert_eq!(
            (options.username.as_str(), options.password.as_str()),
            ("u", "p@")
        );
        assert!(options.tls.is_none());
        let options = resolved(&["-U", "https://[::1]", "-k"]);
        assert_eq!(options.hostname, "::1");
        assert!(options.tls.is_some());
    }
}
