//! Listening sockets that the service manager opened before it started this process (`LISTEN_FDS`), by name.
//!
//! [`receive`] comes first in the process. [`lend`] then gives out second descriptors, one at a time for each socket: a
//! listener may stop and start again, while the socket stays open and its clients wait.
#![expect(
    unsafe_code,
    reason = "the environment, not a type, tells which descriptors are the process's own"
)]

use std::ffi::OsString;
use std::fs;
use std::io;
use std::os::fd::{FromRawFd, OwnedFd, RawFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use rustix::io::{FdFlags, fcntl_setfd};

use crate::passed::Passed;

/// The first descriptor after standard input, output and error.
const FIRST: RawFd = 3;

/// The name that systemd's library gives to sockets without names.
const NAMELESS: &str = "unknown";

static HANDED: OnceLock<Vec<Handed>> = OnceLock::new();

#[derive(Debug)]
struct Handed {
    name: String,
    fd: OwnedFd,
    is_used: AtomicBool,
    lent: Arc<()>,
}

/// Marks a socket as used until it is dropped.
#[derive(Debug)]
pub(crate) struct Lent(#[expect(dead_code, reason = "only its lifetime matters")] Arc<()>);

/// Takes over the sockets that the environment announces to this process. To be called once, before the process opens
/// any descriptor.
pub fn receive(variable: &dyn Fn(&str) -> Option<OsString>) -> io::Result<()> {
    let variable = |name: &str| variable(name).map(|value| value.to_string_lossy().into_owned());
    let names = announced(std::process::id(), &variable).map_err(io::Error::other)?;
    if names.is_empty() || HANDED.get().is_some() {
        return Ok(());
    }
    let handed = (FIRST..).zip(names).map(|(number, name)| {
        Ok(Handed {
            fd: own(number, &name)?,
            name,
            is_used: AtomicBool::new(false),
            lent: Arc::default(),
        })
    });
    let handed: Vec<_> = handed.collect::<io::Result<_>>()?;
    // A second caller has been turned away above.
    let _ = HANDED.set(handed);
    Ok(())
}

/// Takes over the sockets that the service manager passed to a former process of the node. To be called once, in the
/// place of [`receive`].
pub fn inherit(sockets: Vec<Passed>) {
    let handed = sockets.into_iter().map(|Passed { name, fd }| Handed {
        name,
        fd,
        is_used: AtomicBool::new(false),
        lent: Arc::default(),
    });
    let _ = HANDED.set(handed.collect());
}

/// Second descriptors of all sockets of the service manager, for another process of the node to [inherit](inherit).
pub fn duplicates() -> io::Result<Vec<Passed>> {
    let all = HANDED.get().map_or(&[][..], Vec::as_slice);
    let duplicate = |handed: &Handed| {
        Ok(Passed {
            name: handed.name.clone(),
            fd: handed.fd.try_clone()?,
        })
    };
    all.iter().map(duplicate).collect()
}

/// A second descriptor of the socket with this name, unless a listener uses the socket already.
pub(crate) fn lend(name: &str) -> io::Result<(OwnedFd, Lent)> {
    let all = HANDED.get().map_or(&[][..], Vec::as_slice);
    let mut found = all.iter().filter(|handed| handed.name == name);
    match (found.next(), found.count()) {
        (Some(handed), 0) => {
            let lent = Arc::clone(&handed.lent);
            // The table's, and this one.
            if Arc::strong_count(&lent) > 2 {
                let text = format!("another listener uses the service manager's socket '{name}'");
                return Err(io::Error::new(io::ErrorKind::AddrInUse, text));
            }
            handed.is_used.store(true, Ordering::Relaxed);
            Ok((handed.fd.try_clone()?, Lent(lent)))
        }
        (Some(_), more) => Err(io::Error::other(format!(
            "the service manager passed {} sockets named '{name}', and an endpoint takes one: give each its own \
             FileDescriptorName=",
            more + 1
        ))),
        (None, _) => Err(io::Error::new(io::ErrorKind::NotFound, absent(name, all))),
    }
}

/// The names of the sockets that no listener has used so far.
pub fn unused() -> Vec<String> {
    let all = HANDED.get().map_or(&[][..], Vec::as_slice);
    let unused = all
        .iter()
        .filter(|handed| !handed.is_used.load(Ordering::Relaxed));
    unused.map(|handed| handed.name.clone()).collect()
}

fn absent(name: &str, all: &[Handed]) -> String {
    let passed: Vec<_> = all
        .iter()
        .map(|handed| format!("'{}'", handed.name))
        .collect();
    let passed = match passed.is_empty() {
        true => "it passed none".to_owned(),
        false => format!("it passed {}", passed.join(", ")),
    };
    format!("the service manager passed no socket named '{name}' (LISTEN_FDNAMES): {passed}")
}

/// The names of the announced sockets, in order. Without any, or if they are for another process, none.
fn announced(pid: u32, variable: &dyn Fn(&str) -> Option<String>) -> Result<Vec<String>, String> {
    let is_for_this = |of: String| of.parse() == Ok(pid);
    let Some(count) = variable("LISTEN_FDS") else {
        return Ok(Vec::new());
    };
    if !variable("LISTEN_PID").is_some_and(is_for_this) {
        return Ok(Vec::new());
    }
    let announced = count.parse::<u16>().map_err(|_| {
        format!(
            "LISTEN_FDS='{count}': expected a number from 0 to {}",
            u16::MAX
        )
    })?;
    let announced = usize::from(announced);
    let Some(names) = variable("LISTEN_FDNAMES") else {
        return Ok(vec![NAMELESS.to_owned(); announced]);
    };
    let names: Vec<_> = match announced {
        0 => Vec::new(),
        _ => names.split(':').map(str::to_owned).collect(),
    };
    if names.len() != announced {
        return Err(format!(
            "LISTEN_FDNAMES has {} names, and LISTEN_FDS announces {announced} sockets",
            names.len()
        ));
    }
    Ok(names)
}

/// Makes an inherited socket the process's own; its children do not inherit it.
fn own(number: RawFd, name: &str) -> io::Result<OwnedFd> {
    let target = fs::read_link(format!("/proc/self/fd/{number}"));
    let is_socket = target.is_ok_and(|target| target.to_string_lossy().starts_with("socket:"));
    if !is_socket {
        return Err(io::Error::other(format!(
            "LISTEN_FDS announces a socket '{name}' as descriptor {number}, which is none"
        )));
    }
    // SAFETY: the descriptor is an open socket, and the caller has opened none yet, so that it was inherited. By the
    // manager's protocol it belongs to the process that LISTEN_PID names, which is this one. `HANDED` is filled once,
    // so that nothing else owns the descriptor.
    let fd = unsafe { OwnedFd::from_raw_fd(number) };
    fcntl_setfd(&fd, FdFlags::CLOEXEC)?;
    Ok(fd)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn announced_sockets_are_read_from_the_environment() {
        for (variables, expected) in [
            ("", Ok("")),
            ("LISTEN_FDS=1", Ok("")),
            ("LISTEN_FDS=1 LISTEN_PID=8", Ok("")),
            ("LISTEN_FDS=1 LISTEN_PID=x", Ok("")),
            ("LISTEN_FDS=x LISTEN_PID=8", Ok("")),
            ("LISTEN_FDS=0 LISTEN_PID=7", Ok("")),
            ("LISTEN_FDS=0 LISTEN_PID=7 LISTEN_FDNAMES=", Ok("")),
            ("LISTEN_FDS=2 LISTEN_PID=7", Ok("unknown unknown")),
            (
                "LISTEN_FDS=2 LISTEN_PID=7 LISTEN_FDNAMES=web:amqp",
                Ok("web amqp"),
            ),
            (
                "LISTEN_FDS=-1 LISTEN_PID=7",
                Err("LISTEN_FDS='-1': expected a number from 0 to 65535"),
            ),
            (
                "LISTEN_FDS=99999999999 LISTEN_PID=7",
                Err("LISTEN_FDS='99999999999': expected a number from 0 to 65535"),
            ),
            (
                "LISTEN_FDS=2 LISTEN_PID=7 LISTEN_FDNAMES=web",
                Err("LISTEN_FDNAMES has 1 names, and LISTEN_FDS announces 2 sockets"),
            ),
            (
                "LISTEN_FDS=1 LISTEN_PID=7 LISTEN_FDNAMES=a:b",
                Err("LISTEN_FDNAMES has 2 names, and LISTEN_FDS announces 1 sockets"),
            ),
        ] {
            let set = |name: &str| {
                let mut pairs = variables.split(' ').filter_map(|pair| pair.split_once('='));
                let found = pairs.find(|(key, _)| *key == name)?;
                Some(found.1.to_owned())
            };
            let names = announced(7, &set).map(|names| names.join(" "));
            let names = names.as_deref().map_err(String::as_str);
            assert_eq!(names, expected, "{variables}");
        }
    }

    #[test]
    fn a_name_without_a_socket_is_an_error() {
        let error = lend("web").expect_err("none was passed");
        assert_eq!(
            error.to_string(),
            "the service manager passed no socket named 'web' (LISTEN_FDNAMES): it passed none"
        );
    }

    #[test]
    fn a_descriptor_that_is_no_socket_is_an_error() {
        let error = own(9_999, "web").expect_err("not open");
        assert_eq!(
            error.to_string(),
            "LISTEN_FDS announces a socket 'web' as descriptor 9999, which is none"
        );
    }
}
