//! The text of the unit, from its parts.

use std::fmt::Write;
use std::path::{Component, Path, PathBuf};

use anyhow::bail;

/// The default configuration and node directory.
pub(super) const CONFIG: &str = "/etc/crosstie/config.json";
pub(crate) const CBDIR: &str = "/var/lib/crosstie";

const TEMPLATE: &str = include_str!("crosstie.service");

/// The parts of a unit that an operator chooses.
pub(super) struct Parts {
    pub(super) program: PathBuf,
    pub(super) config: Option<PathBuf>,
    pub(super) cbdir: PathBuf,
    pub(super) user: String,
}

/// Directories that the unit hides from the service.
const HIDDEN: [(&str, &str); 5] = [
    ("/home", "ProtectHome="),
    ("/root", "ProtectHome="),
    ("/run/user", "ProtectHome="),
    ("/tmp", "PrivateTmp="),
    ("/var/tmp", "PrivateTmp="),
];

impl Parts {
    /// The unit; an error names the option that systemd would not accept or find.
    pub(super) fn unit(&self) -> anyhow::Result<String> {
        let program = checked("--program", &self.program)?;
        let cbdir = checked("--cbdir", &self.cbdir)?;
        let config = self.config.as_deref();
        let config = config
            .map(|config| checked("--config", config))
            .transpose()?;
        check_user(&self.user)?;
        let mut command = format!("{program} start --cbdir {cbdir}");
        let mut directories = directory_of_state(cbdir);
        if let Some(config) = config {
            command += &format!(" --config {config}");
            directories += &directory_of_configuration(config);
        }
        Ok(TEMPLATE
            .replace("@COMMAND@", &command)
            .replace("@RELOAD@", &format!("{program} reload --cbdir {cbdir}"))
            .replace("@USER@", &self.user)
            .replace("@DIRECTORIES@", directories.trim_end()))
    }

    /// The user, in the form of `systemd-sysusers`.
    pub(super) fn sysuser(&self) -> String {
        let (user, home) = (&self.user, self.cbdir.display());
        format!("u {user} - \"Crosstie\" {home}\n")
    }
}

/// systemd makes a directory below /var/lib, with the user as its owner; another one has to exist.
fn directory_of_state(cbdir: &str) -> String {
    match cbdir.strip_prefix("/var/lib/") {
        Some(name) => format!("StateDirectory={name}\nStateDirectoryMode=0750\n"),
        None => format!("ReadWritePaths={cbdir}\n"),
    }
}

fn directory_of_configuration(config: &str) -> String {
    let below_etc = config.strip_prefix("/etc/");
    let directory = below_etc.and_then(|path| path.rsplit_once('/'));
    let mut line = String::new();
    if let Some((directory, _)) = directory {
        // A `String` takes everything.
        let _ = writeln!(line, "ConfigurationDirectory={directory}");
    }
    line
}

/// A path that needs no quotes in a unit, and that the service can reach.
fn checked<'p>(option: &str, path: &'p Path) -> anyhow::Result<&'p str> {
    let shown = path.display();
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "/._+-:@,=".contains(c);
    let Some(text) = path.to_str().filter(|text| text.chars().all(is_plain)) else {
        bail!("{option} '{shown}': expected a path of letters, digits and / . _ + - : @ , =");
    };
    let is_climbing = path.components().any(|part| part == Component::ParentDir);
    if !path.is_absolute() || is_climbing {
        bail!("{option} '{shown}': expected an absolute path without '..'");
    }
    if let Some((hidden, key)) = HIDDEN.iter().find(|(hidden, _)| path.starts_with(hidden)) {
        bail!(
            "{option} '{shown}': the unit hides {hidden} from the service ({key}); expected another place"
        );
    }
    Ok(text)
}

/// systemd's own rule for names of users, without those that consist of digits.
fn check_user(name: &str) -> anyhow::Result<()> {
    let mut letters = name.chars();
    let first = letters.next();
    let is_valid = first.is_some_and(|c| c.is_ascii_alphabetic() || c == '_')
        && letters.all(|c| c.is_ascii_alphanumeric() || "_-".contains(c))
        && name.len() <= 31;
    if !is_valid {
        bail!(
            "--user '{name}': expected 1 to 31 letters, digits, - and _, with a letter or _ first"
        );
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(program: &str, config: Option<&str>, cbdir: &str, user: &str) -> Parts {
        Parts {
            program: program.into(),
            config: config.map(PathBuf::from),
            cbdir: cbdir.into(),
            user: user.to_owned(),
        }
    }

    #[test]
    fn a_unit_has_its_parts() {
        for (config, cbdir, expected) in [
            (
                Some(CONFIG),
                CBDIR,
                "ExecStart=/usr/bin/crosstie start --cbdir /var/lib/crosstie --config /etc/crosstie/config.json\n\
                 User=crosstie\nGroup=crosstie\nStateDirectory=crosstie\nStateDirectoryMode=0750\n\
                 ConfigurationDirectory=crosstie\n#",
            ),
            (
                None,
                "/srv/node/.crossbar",
                "ExecStart=/usr/bin/crosstie start --cbdir /srv/node/.crossbar\n\
                 User=crosstie\nGroup=crosstie\nReadWritePaths=/srv/node/.crossbar\n#",
            ),
            (
                Some("/etc/node.json"),
                "/var/lib/nodes/one",
                "ExecStart=/usr/bin/crosstie start --cbdir /var/lib/nodes/one --config /etc/node.json\n\
                 User=crosstie\nGroup=crosstie\nStateDirectory=nodes/one\nStateDirectoryMode=0750\n#",
            ),
        ] {
            let unit = parts("/usr/bin/crosstie", config, cbdir, "crosstie").unit();
            let unit = unit.expect("every part is valid");
            assert!(unit.contains(expected), "{unit}");
            let reload = format!("\nExecReload=/usr/bin/crosstie reload --cbdir {cbdir}\n");
            assert!(unit.contains(&reload), "{unit}");
            for placeholder in ["@COMMAND@", "@RELOAD@", "@USER@", "@DIRECTORIES@"] {
                assert!(!unit.contains(placeholder), "{unit}");
            }
        }
    }

    #[test]
    fn parts_that_the_service_could_not_use_are_refused() {
        let fine = ("/usr/bin/crosstie", CBDIR, "crosstie");
        for ((program, cbdir, user), expected) in [
            (
                ("crosstie", fine.1, fine.2),
                "--program 'crosstie': expected an absolute path",
            ),
            (
                ("/opt/a b", fine.1, fine.2),
                "--program '/opt/a b': expected a path of letters",
            ),
            (
                ("/opt/a%b", fine.1, fine.2),
                "--program '/opt/a%b': expected a path of letters",
            ),
            (("/opt/../home/x", fine.1, fine.2), "without '..'"),
            (
                ("/home/me/crosstie", fine.1, fine.2),
                "--program '/home/me/crosstie': the unit hides /home from the service (ProtectHome=)",
            ),
            (
                (fine.0, "/tmp/node", fine.2),
                "--cbdir '/tmp/node': the unit hides /tmp",
            ),
            (
                (fine.0, fine.1, "0"),
                "--user '0': expected 1 to 31 letters",
            ),
            ((fine.0, fine.1, "a\nb"), "expected 1 to 31 letters"),
        ] {
            let error = parts(program, None, cbdir, user).unit();
            let error = error.expect_err(expected).to_string();
            assert!(error.contains(expected), "{error}");
        }
    }
}
