//! Reconnection, with all registrations and subscriptions.

use std::time::Duration;

use crosstie_client::{Backoff, CallError, Client, Config, Disconnected, State, args};

use crate::router::{Peer, Router, soon};

fn config(router: &Router, attempts_max: Option<u32>) -> Config {
    let mut backoff = Backoff::default();
    backoff.initial = Duration::from_millis(1);
    backoff.delay_max = Duration::from_millis(5);
    backoff.attempts_max = attempts_max;
    let mut config = router.config();
    config.reconnect = Some(backoff);
    config
}

async fn registered_and_subscribed(
    client: &Client,
    peer: &mut Peer,
) -> crosstie_client::Subscription {
    let answering = async {
        peer.expect(r#"[64,1,{},"a"]"#).await;
        peer.send("[65,1,50]").await;
        peer.expect(r#"[32,2,{},"b"]"#).await;
        peer.send("[33,2,60]").await;
    };
    let asking = async {
        let echo =
            |invocation: crosstie_client::Invocation| async move { Ok(invocation.arguments) };
        client.register("a", echo).await.unwrap();
        client.subscribe("b").await.unwrap()
    };
    let (subscription, ()) = soon(async { tokio::join!(asking, answering) }).await;
    subscription
}

#[tokio::test]
async fn everything_is_restored() {
    let router = Router::new();
    let (client, mut peer) = router.joined_with(config(&router, None)).await;
    let mut subscription = registered_and_subscribed(&client, &mut peer).await;

    let calling = tokio::spawn({
        let client = client.clone();
        async move { client.call("c", ()).await }
    });
    soon(peer.expect(r#"[48,3,{},"c"]"#)).await;
    drop(peer);
    let lost = soon(calling).await.unwrap().unwrap_err();
    assert!(matches!(lost, CallError::Disconnected(_)), "{lost}");

    let mut peer = soon(router.accept_joined()).await;
    soon(peer.expect(r#"[64,1,{},"a"]"#)).await;
    soon(peer.expect(r#"[32,2,{},"b"]"#)).await;
    peer.send_all(&["[65,1,51]", "[33,2,61]"]).await;
    peer.send("[68,1,51,{},[5]]").await;
    soon(peer.expect("[70,1,{},[5]]")).await;
    peer.send("[36,61,900,{}]").await;
    assert_eq!(soon(subscription.next()).await.unwrap().publication.0, 900);
    assert!(matches!(&*client.state().borrow(), State::Joined(_)));
}

#[tokio::test]
async fn a_refused_restoration_is_tried_again() {
    let router = Router::new();
    let (client, mut peer) = router.joined_with(config(&router, None)).await;
    let _subscription = registered_and_subscribed(&client, &mut peer).await;
    drop(peer);
    let mut peer = soon(router.accept_joined()).await;
    soon(peer.expect(r#"[64,1,{},"a"]"#)).await;
    soon(peer.expect(r#"[32,2,{},"b"]"#)).await;
    peer.send("[33,2,61]").await;
    // The router has not detected yet that the old session is dead.
    peer.send(r#"[8,64,1,{},"wamp.error.procedure_already_exists"]"#)
        .await;
    soon(peer.expect(r#"[64,3,{},"a"]"#)).await;
    peer.send(r#"[8,64,3,{},"wamp.error.procedure_already_exists"]"#)
        .await;
    soon(peer.expect(r#"[64,4,{},"a"]"#)).await;
    peer.send("[65,4,51]").await;
    peer.send("[68,1,51,{},[5]]").await;
    soon(peer.expect("[70,1,{},[5]]")).await;
}

#[tokio::test]
async fn cancelled_listeners_are_not_restored() {
    let router = Router::new();
    let (client, mut peer) = router.joined_with(config(&router, None)).await;
    let subscription = registered_and_subscribed(&client, &mut peer).await;
    let mut states = client.state();
    drop(peer);
    soon(states.wait_for(|state| !matches!(state, State::Joined(_))))
        .await
        .unwrap();
    drop(subscription);
    let mut peer = soon(router.accept_joined()).await;
    soon(peer.expect(r#"[64,1,{},"a"]"#)).await;
    client.publish("d", ()).await.unwrap();
    soon(peer.expect(r#"[16,2,{},"d"]"#)).await;
}

#[tokio::test]
async fn an_answer_for_a_lost_session_is_dropped() {
    let router = Router::new();
    let (client, mut peer) = router.joined_with(config(&router, None)).await;
    let _subscription = registered_and_subscribed(&client, &mut peer).await;
    // The echo's answer, unless it was sent before, must not be sent in the next session.
    peer.send("[68,1,50,{},[1]]").await;
    drop(peer);
    let mut peer = soon(router.accept_joined()).await;
    soon(peer.expect(r#"[64,1,{},"a"]"#)).await;
    soon(peer.expect(r#"[32,2,{},"b"]"#)).await;
    peer.send_all(&["[65,1,51]", "[33,2,61]", "[68,1,51,{},[2]]"])
        .await;
    soon(peer.expect("[70,1,{},[2]]")).await;
}

#[tokio::test]
async fn attempts_end() {
    let router = Router::new();
    let (client, peer) = router.joined_with(config(&router, Some(2))).await;
    drop(router);
    drop(peer);
    let cause = soon(client.ended()).await;
    match cause {
        Disconnected::GivenUp { attempts: 2, last } => {
            assert!(last.to_string().starts_with("cannot reach rs+unix:"));
        }
        cause => panic!("{cause}"),
    }
    let error = client.call("a", args![]).await.unwrap_err();
    assert!(error.to_string().starts_with("reconnecting failed 2 times"));
}

#[tokio::test]
async fn leaving_between_two_sessions() {
    let router = Router::new();
    let mut config = config(&router, None);
    if let Some(backoff) = &mut config.reconnect {
        backoff.initial = Duration::from_secs(3600);
        backoff.delay_max = Duration::from_secs(3600);
    }
    let (client, peer) = router.joined_with(config).await;
    let mut states = client.state();
    drop(peer);
    soon(states.wait_for(|state| matches!(state, State::Reconnecting { attempt: 1, .. })))
        .await
        .unwrap();
    soon(client.leave()).await;
}

#[tokio::test]
async fn the_first_connection_is_tried_again_if_wanted() {
    let router = Router::new();
    let mut config = config(&router, None);
    if let Some(backoff) = &mut config.reconnect {
        backoff.from_start = true;
    }
    let connecting = tokio::spawn(Client::connect(config));
    drop(soon(router.accept_raw()).await);
    let _peer = soon(router.accept_joined()).await;
    soon(connecting).await.unwrap().unwrap();
}

/// The names and fields of a client's events, in words.
async fn next_event(lifecycle: &mut crosstie_client::Lifecycle) -> String {
    use crosstie_client::LifecycleEvent::*;
    match soon(lifecycle.next()).await {
        Some(Lost { cause }) => format!("lost: {cause}"),
        Some(Waiting { attempt, .. }) => format!("waiting {attempt}"),
        Some(AttemptFailed { attempt, .. }) => format!("failed {attempt}"),
        Some(Rejoined { attempts, welcome }) => format!("rejoined {attempts} {}", welcome.session),
        Some(Restored(listener)) => format!("restored {listener:?}"),
        Some(RestoreRefused {
            listener,
            error,
            retry_in,
        }) => format!(
            "refused {listener:?}: {error}, again: {}",
            retry_in.is_some()
        ),
        Some(Revoked(listener)) => format!("revoked {listener:?}"),
        Some(Ended { cause }) => format!("ended: {cause}"),
        other => format!("{other:?}"),
    }
}

#[tokio::test]
async fn each_step_is_reported() {
    let router = Router::new();
    let (client, mut peer) = router.joined_with(config(&router, Some(2))).await;
    let _subscription = registered_and_subscribed(&client, &mut peer).await;
    let mut lifecycle = client.lifecycle();
    peer.send(r#"[6,{},"wamp.close.system_shutdown"]"#).await;
    soon(peer.expect(r#"[6,{},"wamp.close.goodbye_and_out"]"#)).await;
    drop(peer);
    let mut check = async |expected: &str| assert_eq!(next_event(&mut lifecycle).await, expected);
    check("lost: the router ended the session: wamp.close.system_shutdown").await;
    check("waiting 1").await;
    drop(soon(router.accept_raw()).await);
    check("failed 1").await;
    check("waiting 2").await;
    let mut peer = soon(router.accept_joined()).await;
    check("rejoined 2 7").await;
    soon(peer.expect(r#"[64,1,{},"a"]"#)).await;
    soon(peer.expect(r#"[32,2,{},"b"]"#)).await;
    peer.send(r#"[8,64,1,{},"wamp.error.procedure_already_exists"]"#)
        .await;
    check(r#"refused Procedure("a"): wamp.error.procedure_already_exists, again: true"#).await;
    peer.send("[33,2,61]").await;
    check(r#"restored Topic("b")"#).await;
    soon(peer.expect(r#"[64,3,{},"a"]"#)).await;
    peer.send("[65,3,51]").await;
    check(r#"restored Procedure("a")"#).await;
    peer.send(r#"[67,0,{"registration":51,"reason":"wamp.close.normal"}]"#)
        .await;
    check(r#"revoked Procedure("a")"#).await;
    drop(router);
    drop(peer);
    check("lost: the router closed the connection").await;
    check("waiting 1").await;
    check("failed 1").await;
    check("waiting 2").await;
    check("failed 2").await;
    let ended = next_event(&mut lifecycle).await;
    assert!(
        ended.starts_with("ended: reconnecting failed 2 times: "),
        "{ended}"
    );
    assert!(soon(lifecycle.next()).await.is_none());
    assert_eq!(lifecycle.missed(), 0);
}
