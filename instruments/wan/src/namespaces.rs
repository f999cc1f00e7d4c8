//! Two network namespaces with a veth pair between them: the second machine of a bench that has only one. Made by `ip`
//! of iproute2, as by an administrator.

use std::fs::{self, File};
use std::io;
use std::net::Ipv4Addr;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

/// These belong to the two namespaces alone; the machine's own network has no route to them.
pub const SERVER_IP: Ipv4Addr = Ipv4Addr::new(10, 213, 0, 1);
/// The first is a client's default.
pub const CLIENT_IPS: [Ipv4Addr; 8] = {
    let mut ips = [Ipv4Addr::new(10, 213, 1, 1); 8];
    let mut at = 0;
    while at < ips.len() {
        ips[at] = Ipv4Addr::new(10, 213, 1, 1 + at as u8);
        at += 1;
    }
    ips
};

const PREFIX: &str = "crosstie-bench-";
/// The directory of `ip`'s files for namespaces.
const DIRECTORY: &str = "/run/netns";
const DEVICE: &str = "veth0";

/// Both of them; removed when this is dropped.
pub struct Namespaces {
    client: String,
    server: String,
    /// The namespace that the bench came from.
    origin: File,
}

impl Namespaces {
    /// Makes both, and moves the calling thread into the clients'. Those that a killed bench has left are removed
    /// first.
    pub fn create() -> io::Result<Self> {
        if !rustix::process::geteuid().is_root() {
            let why = "--netns makes network namespaces, which takes root (CAP_SYS_ADMIN and \
                       CAP_NET_ADMIN): run it with sudo, or without --netns";
            return Err(io::Error::other(why));
        }
        sweep(Path::new(DIRECTORY));
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = |side| format!("{PREFIX}{}-{count}-{side}", std::process::id());
        let namespaces = Self {
            client: name("client"),
            server: name("server"),
            origin: File::open("/proc/thread-self/ns/net")?,
        };
        // From here on a failure drops it, and removes what exists.
        namespaces.make()?;
        Ok(namespaces)
    }

    fn make(&self) -> io::Result<()> {
        let Self { client, server, .. } = self;
        ip(&["netns", "add", client])?;
        ip(&["netns", "add", server])?;
        let pair = ["type", "veth", "peer", "name", DEVICE, "netns", server];
        ip(&[&["-n", client, "link", "add", DEVICE], &pair[..]].concat())?;
        for (side, addresses) in [(client, &CLIENT_IPS[..]), (server, &[SERVER_IP])] {
            for address in addresses {
                let address = format!("{address}/16");
                ip(&["-n", side, "address", "add", &address, "dev", DEVICE])?;
            }
            for device in ["lo", DEVICE] {
                ip(&["-n", side, "link", "set", device, "up"])?;
            }
        }
        enter(&File::open(self.client())?)?;
        // As on the loopback, where it is the kernel's default: a bench that opens connection after connection has
        // otherwise no ports left after 28,000.
        fs::write("/proc/sys/net/ipv4/tcp_tw_reuse", "1")?;
        fs::write("/proc/sys/net/ipv4/ip_local_port_range", "10000 65535")?;
        Ok(())
    }

    pub fn client(&self) -> PathBuf {
        Path::new(DIRECTORY).join(&self.client)
    }

    pub fn server(&self) -> PathBuf {
        Path::new(DIRECTORY).join(&self.server)
    }
}

impl Drop for Namespaces {
    fn drop(&mut self) {
        // If the thread cannot return, it can only stay.
        let _ = enter(&self.origin);
        for name in [&self.client, &self.server] {
            remove(name);
        }
    }
}

fn enter(namespace: &File) -> io::Result<()> {
    let kind = Some(LinkNameSpaceType::Network);
    Ok(move_into_link_name_space(namespace.as_fd(), kind)?)
}

/// Runs `ip`; an error has its output.
fn ip(arguments: &[&str]) -> io::Result<()> {
    let fail = |why: &str| {
        let line = arguments.join(" ");
        Err(io::Error::other(format!("--netns: `ip {line}`: {why}")))
    };
    match Command::new("ip")
        .args(arguments)
        .stdin(Stdio::null())
        .output()
    {
        Ok(output) if output.status.success() => Ok(()),
        Ok(output) => {
            let said = String::from_utf8_lossy(&output.stderr);
            fail(match said.trim() {
                "" => "it failed without a word",
                said => said,
            })
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            fail("there is no `ip` on PATH; it is in the package iproute2")
        }
        Err(error) => fail(&error.to_string()),
    }
}

fn remove(name: &str) {
    // One that was not made yet cannot be removed, and need not be.
    let _ = Command::new("ip")
        .args(["netns", "delete", name])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
}

/// Removes the namespaces of ended benches.
fn sweep(within: &Path) {
    for entry in fs::read_dir(within).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let name = name.to_string_lossy();
        if owner(&name).is_some_and(|process| !Path::new(&format!("/proc/{process}")).exists()) {
            remove(&name);
        }
    }
}

fn owner(name: &str) -> Option<u32> {
    name.strip_prefix(PREFIX)?.split_once('-')?.0.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_benchs_own_are_swept() {
        #[track_caller]
        fn check(name: &str, expected: Option<u32>) {
            assert_eq!(owner(name), expected);
        }
        check("crosstie-bench-123-0-client", Some(123));
        check("crosstie-bench-123-0-server", Some(123));
        check("crosstie-bench-x-0-client", None);
        check("crosstie-bench-123", None);
        check("blue", None);
    }

    #[test]
    fn clients_have_addresses_of_their_own() {
        let mut ips = CLIENT_IPS.to_vec();
        ips.push(SERVER_IP);
        ips.sort();
        ips.dedup();
        assert_eq!(ips.len(), CLIENT_IPS.len() + 1);
    }
}
