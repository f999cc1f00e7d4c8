//! Stress: sessions join, call and leave while their realms and transports are stopped.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use crosstie_config::Role;

use crate::rig::{Rig, limits, realm, tcp};

const PEERS: usize = 6;
const ROUNDS: usize = 60;

#[test]
fn stops_under_load_leave_nothing() {
    let mut limits = limits();
    limits.shutdown_timeout = Duration::from_millis(20);
    let rig = Rig::start_with(&limits);
    let router = &rig.router;
    let role = Role::everything("anonymous");
    let over = AtomicBool::new(false);
    let (joined, joins) = mpsc::channel();
    thread::scope(|scope| {
        for _ in 0..PEERS {
            let (over, joined) = (&over, joined.clone());
            scope.spawn(move || {
                while !over.load(Ordering::Relaxed) {
                    // However it ends, another one begins.
                    let _ = talk(rig.address, &joined);
                }
            });
        }
        for _ in 0..ROUNDS {
            // Each stop has sessions to end: all come back, and stay until then.
            while router.realms()[0].sessions < PEERS {
                joins.recv().expect("the peers live as long");
            }
            router.stop_role("realm1", "anonymous").expect("runs");
            router.start_role("realm1", &role).expect("is new");
            router.stop_realm("realm1").expect("runs");
            router.start_realm(&realm("realm1")).expect("is new");
            router.stop_transport("tcp").expect("runs");
            let again = router.start_transport(&tcp("tcp", rig.address.port()));
            again.expect("the port is free");
        }
        over.store(true, Ordering::Relaxed);
        // No session leaves by itself.
        router.stop_transport("tcp").expect("runs");
    });
    while router.connections() > 0 {
        thread::sleep(Duration::from_millis(1));
    }
    let patience = Instant::now() + Duration::from_secs(60);
    loop {
        let left = &router.realms()[0];
        let left = (
            left.sessions,
            left.subscriptions,
            left.registrations,
            left.calls,
        );
        if left == (0, 0, 0, 0) {
            break;
        }
        assert!(Instant::now() < patience, "{left:?}");
        thread::sleep(Duration::from_millis(1));
    }
}

/// A session that calls itself until the router ends it.
fn talk(address: SocketAddr, joined: &mpsc::Sender<()>) -> io::Result<()> {
    let mut stream = TcpStream::connect(address)?;
    // The router's last message may be lost with its connection.
    stream.set_read_timeout(Some(Duration::from_secs(1)))?;
    stream.write_all(&[0x7f, 0xf1, 0, 0])?;
    stream.read_exact(&mut [0; 4])?;
    let roles = r#"{"roles":{"caller":{},"callee":{},"publisher":{},"subscriber":{}}}"#;
    send(&mut stream, &format!(r#"[1,"realm1",{roles}]"#))?;
    if !receive(&mut stream)?.starts_with("[2,") {
        return Ok(());
    }
    let _ = joined.send(());
    send(&mut stream, r#"[32,1,{},"com.topic"]"#)?;
    send(
        &mut stream,
        r#"[64,2,{"invoke":"roundrobin"},"com.procedure"]"#,
    )?;
    for request in 3.. {
        send(&mut stream, &format!(r#"[16,{request},{{}},"com.topic"]"#))?;
        send(
            &mut stream,
            &format!(r#"[48,{request},{{}},"com.procedure"]"#),
        )?;
        loop {
            let message = receive(&mut stream)?;
            if let Some(invocation) = message.strip_prefix("[68,") {
                let id = invocation.split(',').next().unwrap_or_default();
                send(&mut stream, &format!("[70,{id},{{}}]"))?;
            }
            if message.starts_with("[6,") {
                return send(&mut stream, r#"[6,{},"wamp.close.goodbye_and_out"]"#);
            }
            let is_answer = message.starts_with("[50,") || message.starts_with("[8,48,");
            if is_answer || message.starts_with("[3,") {
                break;
            }
        }
    }
    Ok(())
}

fn send(stream: &mut TcpStream, message: &str) -> io::Result<()> {
    let length = u32::try_from(message.len()).map_err(io::Error::other)?;
    let mut bytes = length.to_be_bytes().to_vec();
    bytes.extend_from_slice(message.as_bytes());
    stream.write_all(&bytes)
}

fn receive(stream: &mut TcpStream) -> io::Result<String> {
    let mut head = [0; 4];
    stream.read_exact(&mut head)?;
    let mut message = vec![0; u32::from_be_bytes(head) as usize];
    stream.read_exact(&mut message)?;
    String::from_utf8(message).map_err(io::Error::other)
}
