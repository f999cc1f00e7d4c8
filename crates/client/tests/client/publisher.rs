//! Publications, and a router that does not read them.

use crosstie_client::{Disconnected, PublishError, PublishOptions, Receivers, SessionId, args};

use tokio::io::AsyncWriteExt;

use crate::router::{Router, soon};

#[tokio::test]
async fn acknowledged_or_not() {
    let router = Router::new();
    let (client, mut peer) = router.joined().await;
    client.publish("a", args![1]).await.unwrap();
    soon(peer.expect(r#"[16,1,{},"a",[1]]"#)).await;
    let options = || PublishOptions {
        acknowledge: true,
        ..PublishOptions::default()
    };
    let (published, ()) = soon(async {
        tokio::join!(client.publish_with("a", (), options()), async {
            peer.expect(r#"[16,2,{"acknowledge":true},"a"]"#).await;
            peer.send("[17,2,99]").await;
        })
    })
    .await;
    assert_eq!(
        published.unwrap().map(|publication| publication.0),
        Some(99)
    );
    let (published, ()) = soon(async {
        tokio::join!(client.publish_with("a", (), options()), async {
            peer.expect(r#"[16,3,{"acknowledge":true},"a"]"#).await;
            peer.send(r#"[8,16,3,{},"wamp.error.not_authorized"]"#)
                .await;
        })
    })
    .await;
    assert!(matches!(published, Err(PublishError::Refused(_))));
}

#[tokio::test]
async fn receivers() {
    let router = Router::new();
    let (client, mut peer) = router.joined().await;
    let options = PublishOptions {
        exclude_me: false,
        disclose_me: Some(true),
        receivers: Some(Box::new(Receivers {
            exclude: Some(vec![SessionId(1)]),
            eligible_authrole: Some(vec!["user".to_owned()]),
            ..Receivers::default()
        })),
        ..PublishOptions::default()
    };
    client.publish_with("a", (), options).await.unwrap();
    let message = soon(peer.receive()).await.unwrap();
    for part in [
        r#""exclude_me":false"#,
        r#""disclose_me":true"#,
        r#""exclude":[1]"#,
        r#""eligible_authrole":["user"]"#,
    ] {
        assert!(message.contains(part), "{message}");
    }
}

/// A waiting message gets room, whatever its size.
#[tokio::test]
async fn one_message_may_exceed_the_queue() {
    let router = Router::new();
    let mut config = router.config();
    config.outgoing_bytes_max = 10_000;
    let (client, mut peer) = router.joined_with(config).await;
    let padding = "x".repeat(2_000_000);
    let publishing = client.publish("a", args![padding.as_str()]);
    let expected = format!(r#"[16,1,{{}},"a",["{padding}"]]"#);
    let (published, ()) = soon(async { tokio::join!(publishing, peer.expect(&expected)) }).await;
    published.unwrap();
}

/// Messages that cannot wait are bounded all the same.
#[tokio::test]
async fn a_router_that_only_pings_is_dropped() {
    let router = Router::new();
    let mut config = router.config();
    config.outgoing_bytes_max = 10_000;
    let (client, mut peer) = router.joined_with(config).await;
    let mut ping = vec![1, 0, 0, 200];
    ping.resize(204, b'x');
    let flood = async { while peer.stream.write_all(&ping).await.is_ok() {} };
    let (cause, ()) = soon(async { tokio::join!(client.ended(), flood) }).await;
    assert!(matches!(cause, Disconnected::Stalled(_)), "{cause}");
}

/// Publications beyond the out-queue's bound wait until the router reads, and keep their order.
#[tokio::test]
async fn a_router_that_does_not_read_is_waited_for() {
    let router = Router::new();
    let mut config = router.config();
    config.outgoing_bytes_max = 10_000;
    let (client, mut peer) = router.joined_with(config).await;
    // More than sockets buffer.
    const PUBLICATIONS: u64 = 4_000;
    let padding = "x".repeat(1_000);
    let publishing = async {
        for number in 1..=PUBLICATIONS {
            client
                .publish("a", args![number, padding.as_str()])
                .await
                .unwrap();
        }
    };
    let reading = async {
        for number in 1..=PUBLICATIONS {
            let expected = format!(r#"[16,{number},{{}},"a",[{number},"{padding}"]]"#);
            peer.expect(&expected).await;
        }
    };
    soon(async { tokio::join!(publishing, reading) }).await;
}
