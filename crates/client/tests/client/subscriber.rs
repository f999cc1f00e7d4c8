//! Subscriptions and their events.

use std::pin::Pin;

use crosstie_client::{
    Client, MatchPolicy, PublishOptions, SubscribeError, SubscribeOptions, Subscription, args,
};
use futures_core::Stream;

use crate::router::{Peer, Router, soon};

/// Subscribes to `a`, with this request id and the subscription id 60.
async fn subscribed(
    client: &Client,
    peer: &mut Peer,
    request: u64,
    options: SubscribeOptions,
) -> Subscription {
    let (subscription, ()) = soon(async {
        tokio::join!(client.subscribe_with("a", options), async {
            peer.expect(&format!(r#"[32,{request},{{}},"a"]"#)).await;
            peer.send(&format!("[33,{request},60]")).await;
        })
    })
    .await;
    subscription.unwrap()
}

#[tokio::test]
async fn events() {
    let router = Router::new();
    let (client, mut peer) = router.joined().await;
    let options = SubscribeOptions::default();
    let mut subscription = subscribed(&client, &mut peer, 1, options).await;
    peer.send_all(&[
        "[36,60,900,{},[1]]",
        r#"[36,60,901,{"topic":"a.b","publisher":3,"publisher_authid":"joe","publisher_authrole":"user"}]"#,
        "[36,61,902,{}]",
        "[36,60,903,{}]",
    ])
    .await;
    let first = soon(subscription.next()).await.unwrap();
    assert_eq!((first.publication.0, first.topic.as_str()), (900, "a"));
    assert_eq!(first.arguments.argument(0), Ok(1));
    assert_eq!(first.publisher, None);
    let second = soon(subscription.next()).await.unwrap();
    assert_eq!((second.publication.0, second.topic.as_str()), (901, "a.b"));
    assert_eq!(second.publisher.map(|peer| peer.session.0), Some(3));
    let next = std::future::poll_fn(|context| Pin::new(&mut subscription).poll_next(context));
    assert_eq!(soon(next).await.unwrap().publication.0, 903);
}

#[tokio::test]
async fn dropped_events_are_counted() {
    let router = Router::new();
    let (client, mut peer) = router.joined().await;
    let mut options = SubscribeOptions::default();
    options.waiting_max = 2;
    let mut subscription = subscribed(&client, &mut peer, 1, options).await;
    for publication in 900..905 {
        peer.send(&format!("[36,60,{publication},{{}}]")).await;
    }
    // The answer to a later request proves that they have arrived.
    let (published, ()) = soon(async {
        let options = PublishOptions {
            acknowledge: true,
            ..PublishOptions::default()
        };
        tokio::join!(client.publish_with("b", (), options), async {
            peer.expect(r#"[16,2,{"acknowledge":true},"b"]"#).await;
            peer.send("[17,2,1]").await;
        })
    })
    .await;
    published.unwrap();
    assert_eq!(subscription.missed(), 3);
    assert_eq!(soon(subscription.next()).await.unwrap().publication.0, 900);
    assert_eq!(soon(subscription.next()).await.unwrap().publication.0, 901);
    peer.send("[36,60,905,{}]").await;
    assert_eq!(soon(subscription.next()).await.unwrap().publication.0, 905);
}

#[tokio::test]
async fn subscribers_of_one_topic_share_its_subscription() {
    let router = Router::new();
    let (client, mut peer) = router.joined().await;
    let options = SubscribeOptions::default;
    let mut one = subscribed(&client, &mut peer, 1, options()).await;
    let mut two = subscribed(&client, &mut peer, 2, options()).await;
    peer.send("[36,60,900,{}]").await;
    assert_eq!(soon(one.next()).await.unwrap().publication.0, 900);
    assert_eq!(soon(two.next()).await.unwrap().publication.0, 900);
    // The router is not involved in the end of the first one.
    soon(one.unsubscribe()).await.unwrap();
    peer.send("[36,60,901,{}]").await;
    assert_eq!(soon(two.next()).await.unwrap().publication.0, 901);
    let (unsubscribed, ()) = soon(async {
        tokio::join!(two.unsubscribe(), async {
            peer.expect("[34,3,60]").await;
            peer.send("[35,3]").await;
        })
    })
    .await;
    unsubscribed.unwrap();
}

#[tokio::test]
async fn a_dropped_subscription_is_unsubscribed() {
    let router = Router::new();
    let (client, mut peer) = router.joined().await;
    let options = SubscribeOptions::default();
    drop(subscribed(&client, &mut peer, 1, options).await);
    soon(peer.expect("[34,2,60]")).await;
}

#[tokio::test]
async fn patterns() {
    let router = Router::new();
    let (client, mut peer) = router.joined().await;
    let mut options = SubscribeOptions::default();
    options.match_policy = MatchPolicy::Wildcard;
    let (subscription, ()) = soon(async {
        tokio::join!(client.subscribe_with("a..b", options), async {
            peer.expect(r#"[32,1,{"match":"wildcard"},"a..b"]"#).await;
            peer.send(r#"[8,32,1,{},"wamp.error.not_authorized",["no"]]"#)
                .await;
        })
    })
    .await;
    match subscription.unwrap_err() {
        SubscribeError::Refused(error) => {
            assert_eq!(error.to_string(), r#"wamp.error.not_authorized ["no"]"#);
        }
        error => panic!("{error}"),
    }
}

#[tokio::test]
async fn for_each_handles_events_in_sequence() {
    let router = Router::new();
    let (client, mut peer) = router.joined().await;
    let options = SubscribeOptions::default();
    let subscription = subscribed(&client, &mut peer, 1, options).await;
    let (sender, mut receiver) = tokio::sync::mpsc::unbounded_channel();
    let handling = tokio::spawn(subscription.for_each(move |event| {
        let sender = sender.clone();
        async move { sender.send(event.publication.0).unwrap() }
    }));
    peer.send_all(&["[36,60,900,{}]", "[36,60,901,{}]"]).await;
    assert_eq!(soon(receiver.recv()).await, Some(900));
    assert_eq!(soon(receiver.recv()).await, Some(901));
    // It ends with the client.
    drop(peer);
    soon(handling).await.unwrap();
    let _ = client.publish("a", args![]).await.unwrap_err();
}
