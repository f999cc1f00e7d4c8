//! The end of a session, by either side.

use std::time::Duration;

use crosstie_client::{CallError, Disconnected, State, args};

use crate::router::{Router, soon};

#[tokio::test]
async fn leave() {
    let router = Router::new();
    let (client, mut peer) = router.joined().await;
    client.publish("a", ()).await.unwrap();
    soon(async {
        tokio::join!(client.clone().leave(), async {
            peer.expect(r#"[16,1,{},"a"]"#).await;
            peer.expect(r#"[6,{},"wamp.close.close_realm"]"#).await;
            peer.send(r#"[6,{},"wamp.close.goodbye_and_out"]"#).await;
            peer.expect_end().await;
            drop(peer);
        })
    })
    .await;
    let error = client.call("a", ()).await.unwrap_err();
    assert!(matches!(error, CallError::Disconnected(Disconnected::Left)));
    assert!(matches!(
        &*client.state().borrow(),
        State::Ended(Disconnected::Left)
    ));
}

#[tokio::test]
async fn the_last_handle_leaves() {
    let router = Router::new();
    let (client, mut peer) = router.joined().await;
    let other = client.clone();
    drop(client);
    other.publish("a", ()).await.unwrap();
    soon(peer.expect(r#"[16,1,{},"a"]"#)).await;
    drop(other);
    soon(peer.expect(r#"[6,{},"wamp.close.close_realm"]"#)).await;
    peer.send(r#"[6,{},"wamp.close.goodbye_and_out"]"#).await;
    soon(peer.expect_end()).await;
}

#[tokio::test]
async fn a_router_without_manners_is_left_anyway() {
    let router = Router::new();
    let mut config = router.config();
    config.leave_timeout = Duration::from_millis(20);
    let (client, _peer) = router.joined_with(config).await;
    soon(client.leave()).await;
}

/// The end that the client reports if the router sends these messages.
async fn check(messages: &[&str], answer: Option<&str>, cause: &str) {
    let router = Router::new();
    let (client, mut peer) = router.joined().await;
    let calling = client.call("a", args![]);
    let ending = async {
        peer.expect(r#"[48,1,{},"a"]"#).await;
        peer.send_all(messages).await;
        if let Some(answer) = answer {
            peer.expect(answer).await;
        }
        if messages.is_empty() {
            drop(peer);
        } else {
            peer.expect_end().await;
        }
    };
    let (called, ()) = soon(async { tokio::join!(calling, ending) }).await;
    assert_eq!(called.unwrap_err().to_string(), cause);
    assert_eq!(soon(client.ended()).await.to_string(), cause);
}

#[tokio::test]
async fn the_router_ends_the_session() {
    check(
        &[r#"[6,{"message":"for the night"},"wamp.close.system_shutdown"]"#],
        Some(r#"[6,{},"wamp.close.goodbye_and_out"]"#),
        r#"the router ended the session: wamp.close.system_shutdown ["for the night"]"#,
    )
    .await;
    check(
        &[r#"[3,{"message":"no"},"wamp.error.protocol_violation"]"#],
        None,
        r#"the router aborted the session: wamp.error.protocol_violation ["no"]"#,
    )
    .await;
    check(&[], None, "the router closed the connection").await;
}

#[tokio::test]
async fn a_silent_router_is_given_up() {
    let router = Router::new();
    let mut config = router.config();
    config.ping_interval = Some(Duration::from_millis(10));
    let (client, mut peer) = router.joined_with(config).await;
    let (kind, _) = soon(peer.receive_frame()).await.unwrap();
    assert_eq!(kind, 1, "a ping");
    peer.stream.try_write(&[2, 0, 0, 0]).unwrap();
    // From here on the router is silent.
    let cause = soon(client.ended()).await;
    assert!(matches!(cause, Disconnected::Silent(_)), "{cause}");
}

#[tokio::test]
async fn pings_are_answered() {
    let router = Router::new();
    let (_client, mut peer) = router.joined().await;
    peer.stream.try_write(&[1, 0, 0, 2, b'h', b'i']).unwrap();
    let pong = soon(peer.receive_frame()).await;
    assert_eq!(pong, Some((2, b"hi".to_vec())));
}
