//! Listening: ownership of paths and ports, and the options of accepted sockets.

use std::cell::Cell;
use std::fs;
use std::io;
use std::net::{SocketAddr, TcpStream};
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::os::unix::net::{UnixDatagram, UnixListener, UnixStream};
use std::path::Path;
use std::rc::Rc;
use std::time::Duration;

use crosstie_transport::{Endpoint, Listener, PeerAddress, TcpOptions, bind_group};
use rustix::net::sockopt;
use tempfile::TempDir;
use tokio::task::LocalSet;

use crate::rig::{run, until};

fn unix(path: &Path) -> Endpoint {
    Endpoint::Unix {
        path: path.to_owned(),
        backlog: 16,
        mode: None,
    }
}

fn tcp(address: SocketAddr, options: TcpOptions) -> Endpoint {
    Endpoint::Tcp { address, options }
}

fn loopback() -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], 0))
}

#[test]
fn a_path_may_be_free_or_stale() {
    type Before = fn(&Path);
    let cases: [(&str, Before); 2] = [
        ("nothing is there", |_| {}),
        ("a killed process left it", |path| {
            drop(UnixListener::bind(path).expect("bound"));
        }),
    ];
    for (what, before) in cases {
        run(async {
            let directory = TempDir::new().expect("a directory");
            let path = directory.path().join("socket");
            before(&path);
            let listener = Listener::bind(unix(&path)).expect(what);
            assert_eq!(listener.local_address().expect(what), None);
            let _client = UnixStream::connect(&path).expect(what);
            let socket = listener.accept().await.expect(what);
            let us = std::process::id() as i32;
            assert_eq!(socket.peer(), PeerAddress::Unix(Some(us)));
            drop(listener);
            assert!(!path.exists(), "{what}: is left behind");
        });
    }
}

#[test]
fn a_path_in_use_is_refused() {
    /// Creates a file at the path and keeps it.
    type Before = fn(&Path) -> Box<dyn std::any::Any>;
    let cases: [(&str, Before, io::ErrorKind); 5] = [
        (
            "serves this socket",
            |path| Box::new(UnixListener::bind(path).expect("bound")),
            io::ErrorKind::AddrInUse,
        ),
        // Too busy to accept.
        (
            "serves this socket",
            |path| {
                let listener = UnixListener::bind(path).expect("bound");
                rustix::net::listen(&listener, 0).expect("listening");
                let client = UnixStream::connect(path).expect("waits");
                Box::new((listener, client))
            },
            io::ErrorKind::AddrInUse,
        ),
        (
            "serves this socket",
            |path| Box::new(UnixDatagram::bind(path).expect("bound")),
            io::ErrorKind::AddrInUse,
        ),
        (
            "is not a socket",
            |path| {
                fs::write(path, "precious").expect("written");
                Box::new(())
            },
            io::ErrorKind::AlreadyExists,
        ),
        (
            "is not a socket",
            |path| {
                fs::create_dir(path).expect("made");
                Box::new(())
            },
            io::ErrorKind::AlreadyExists,
        ),
    ];
    for (what, before, kind) in cases {
        run(async {
            let directory = TempDir::new().expect("a directory");
            let path = directory.path().join("socket");
            let kept = before(&path);
            let e = Listener::bind(unix(&path)).expect_err(what);
            assert_eq!(e.kind(), kind, "{e}");
            let e = e.to_string();
            let place = path.display().to_string();
            assert!(e.contains(what) && e.contains(&place), "{e}");
            assert!(path.exists(), "{what}: was removed");
            drop(kept);
        });
    }
}

#[test]
fn a_replaced_path_is_not_removed() {
    run(async {
        let directory = TempDir::new().expect("a directory");
        let path = directory.path().join("socket");
        let listener = Listener::bind(unix(&path)).expect("bound");
        // Renamed, so that the new file cannot have the same number.
        fs::rename(&path, directory.path().join("old")).expect("renamed");
        let other = UnixListener::bind(&path).expect("bound");
        drop(listener);
        let kind = fs::metadata(&path).expect("is still there").file_type();
        assert!(kind.is_socket());
        drop(other);
    });
}

#[test]
fn a_port_in_use_is_named() {
    run(async {
        let options = TcpOptions::default();
        let first = Listener::bind(tcp(loopback(), options)).expect("bound");
        let address = first.local_address().expect("has one").expect("has one");
        assert_ne!(address.port(), 0);
        let e = Listener::bind(tcp(address, options)).expect_err("is in use");
        assert_eq!(e.kind(), io::ErrorKind::AddrInUse);
        assert!(e.to_string().contains(&address.to_string()), "{e}");
        drop(first);
        Listener::bind(tcp(address, options)).expect("is free again");
    });
}

#[test]
fn a_shared_port_has_several_listeners() {
    run(async {
        let options = TcpOptions {
            shared: true,
            ..TcpOptions::default()
        };
        let first = Listener::bind(tcp(loopback(), options)).expect("bound");
        let address = first.local_address().expect("has one").expect("has one");
        Listener::bind(tcp(address, options)).expect("is shared");
    });
}

#[test]
fn a_groups_port_is_not_shared_with_others() {
    run(async {
        let options = TcpOptions::default();
        let (address, group) = bind_group(loopback(), &options, 3).expect("bound");
        assert_ne!(address.port(), 0);
        let e = bind_group(address, &options, 1).expect_err("is in use");
        assert_eq!(e.kind(), io::ErrorKind::AddrInUse);
        assert!(e.to_string().contains(&address.to_string()), "{e}");
        let adopted = group.into_iter().map(Listener::adopt);
        let adopted: Vec<_> = adopted.collect::<io::Result<_>>().expect("adopted");
        let clients: Vec<_> = (0..60).map(|_| TcpStream::connect(address)).collect();
        let accepted = Rc::new(Cell::new(0));
        let local = LocalSet::new();
        for listener in adopted {
            let accepted = Rc::clone(&accepted);
            local.spawn_local(async move {
                while listener.accept().await.is_ok() {
                    accepted.set(accepted.get() + 1);
                }
            });
        }
        local
            .run_until(until(|| accepted.get() == clients.len()))
            .await;
    });
}

#[test]
fn a_group_refuses_a_port_with_another_listener() {
    run(async {
        let shared = TcpOptions {
            shared: true,
            ..TcpOptions::default()
        };
        let other = Listener::bind(tcp(loopback(), shared)).expect("bound");
        let address = other.local_address().expect("has one").expect("has one");
        let e = bind_group(address, &shared, 2).expect_err("is in use");
        assert_eq!(e.kind(), io::ErrorKind::AddrInUse);
    });
}

#[test]
fn an_adopted_path_is_its_binders() {
    run(async {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("socket");
        let binder = Listener::bind(unix(&path)).expect("bound");
        let adopted = Listener::adopt(binder.duplicate().expect("a second one"));
        let adopted = adopted.expect("adopted");
        let _client = UnixStream::connect(&path).expect("connected");
        let socket = adopted.accept().await.expect("accepted");
        assert!(matches!(socket.peer(), PeerAddress::Unix(Some(_))));
        drop(adopted);
        assert!(path.exists());
        drop(binder);
        assert!(!path.exists());
    });
}

#[test]
fn accepted_sockets_have_the_listeners_options() {
    let plain = TcpOptions {
        user_timeout: Duration::ZERO,
        keepalive: Duration::ZERO,
        nodelay: false,
        ..TcpOptions::default()
    };
    let forever = TcpOptions {
        user_timeout: Duration::MAX,
        keepalive: Duration::MAX,
        ..TcpOptions::default()
    };
    // With user timeout (ms) and keepalive (idle s, interval s, probes), if any.
    let cases = [
        (TcpOptions::default(), 30_000, Some((30, 10, 3))),
        (plain, 0, None),
        (forever, i32::MAX as u32, Some((32_767, 10_923, 3))),
    ];
    for (options, user_timeout_ms, keepalive) in cases {
        run(async {
            let listener = Listener::bind(tcp(loopback(), options)).expect("bound");
            let address = listener.local_address().expect("has one").expect("has one");
            let client = TcpStream::connect(address).expect("connected");
            let socket = listener.accept().await.expect("accepted");
            let from = client.local_addr().expect("has one");
            assert_eq!(socket.peer(), PeerAddress::Tcp(from));
            assert_eq!(sockopt::tcp_nodelay(&socket), Ok(options.nodelay));
            assert_eq!(sockopt::tcp_user_timeout(&socket), Ok(user_timeout_ms));
            assert_eq!(sockopt::socket_keepalive(&socket), Ok(keepalive.is_some()));
            if let Some((idle_s, interval_s, probes)) = keepalive {
                let seconds = Duration::from_secs;
                assert_eq!(sockopt::tcp_keepidle(&socket), Ok(seconds(idle_s)));
                assert_eq!(sockopt::tcp_keepintvl(&socket), Ok(seconds(interval_s)));
                assert_eq!(sockopt::tcp_keepcnt(&socket), Ok(probes));
            }
        });
    }
}

#[test]
fn a_path_has_the_requested_mode() {
    for mode in [0o600, 0o660, 0o777] {
        run(async {
            let directory = TempDir::new().expect("a directory");
            let path = directory.path().join("socket");
            let endpoint = Endpoint::Unix {
                path: path.clone(),
                backlog: 16,
                mode: Some(mode),
            };
            let _listener = Listener::bind(endpoint).expect("bound");
            let permissions = fs::metadata(&path).expect("a file").permissions();
            assert_eq!(permissions.mode() & 0o777, mode);
        });
    }
}

#[test]
fn a_path_that_is_too_long_is_refused() {
    run(async {
        let path = Path::new("/").join("x".repeat(107));
        let error = Listener::bind(unix(&path)).expect_err("too long");
        let text = "the path of a Unix socket may have 107 bytes, not 108";
        assert_eq!(error.to_string(), format!("{}: {text}", path.display()));
    });
}

#[test]
fn all_waiting_connections_are_accepted() {
    run(async {
        let listener = Listener::bind(tcp(loopback(), TcpOptions::default())).expect("bound");
        let address = listener.local_address().expect("has one").expect("has one");
        for _ in 0..3 {
            let clients: Vec<_> = (0..20).map(|_| TcpStream::connect(address)).collect();
            for client in &clients {
                assert!(client.is_ok());
                listener.accept().await.expect("accepted");
            }
        }
    });
}
