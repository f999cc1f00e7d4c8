//! The operators' listener.

use std::io::{Read, Write};
use std::net::TcpStream;

use crosstie_config::{Admin, Allowed, Page};
use crosstie_router::{Router, start_admin};

use crate::rig::{Rig, limits, options, realm, tcp, worker};

#[test]
fn the_pages_show_the_given_routers() {
    let rig = Rig::start();
    let options = options(rig.directory.path());
    let second = Router::start(&worker("worker2"), &limits(), &options).expect("threads");
    second.start_realm(&realm("com.second")).expect("is new");
    let admin = |port| Admin {
        endpoint: tcp("admin", port).endpoint,
        pages: vec![Page::Metrics],
        allowed_hosts: Allowed::Loopback,
    };
    let none = start_admin(&admin(0), &[], &options).err();
    assert_eq!(
        none.expect("tells of nothing").to_string(),
        "cannot start the admin listener: there is no router to tell of"
    );
    let in_use = start_admin(&admin(rig.address.port()), &[&rig.router], &options).err();
    let in_use = in_use.expect("a port in use").to_string();
    let beginning = format!("cannot start the admin listener: {}: ", rig.address);
    assert!(in_use.starts_with(&beginning), "{in_use}");

    let started = start_admin(&admin(0), &[&rig.router, &second], &options);
    let (running, urls) = started.expect("a free port");
    assert!(metrics(&urls[0]).contains("com.second"));
    running.show(&[&rig.router]);
    second.stop();
    // An answer that took long to make is given again for a while.
    while metrics(&urls[0]).contains("com.second") {
        std::thread::yield_now();
    }

    let place = place(&urls[0]);
    let mut idle = TcpStream::connect(place).expect("listens");
    running.stop();
    // It was idle, and is not waited for.
    let _ = idle.read_to_end(&mut Vec::new());
    let port = place.rsplit(':').next().and_then(|port| port.parse().ok());
    let again = start_admin(&admin(port.expect("a port")), &[&rig.router], &options);
    let (running, _) = again.expect("the port is free");
    drop(running);
    rig.router.stop();
}

fn place(url: &str) -> &str {
    let place = url.strip_prefix("http://").expect("plain HTTP");
    place.trim_end_matches('/')
}

fn metrics(url: &str) -> String {
    let mut stream = TcpStream::connect(place(url)).expect("listens");
    let request = b"GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
    stream.write_all(request).expect("is open");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("is answered");
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    answer
}
