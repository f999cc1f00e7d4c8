//! Registrations and their handlers.

use std::sync::Arc;

use crosstie_client::{
    ApplicationError, Arguments, Client, Invocation, OnInterrupt, RegisterError, RegisterOptions,
    Registration, args,
};
use tokio::sync::Semaphore;

use crate::router::{Peer, Router, soon};

/// Registers `handler` as `a`, with the registration id 50.
async fn registered<F>(
    router: &Router,
    options: RegisterOptions,
    handler: impl Fn(Invocation) -> F + Send + Sync + 'static,
) -> (Client, Peer, Registration)
where
    F: Future<Output = Result<Arguments, ApplicationError>> + Send + 'static,
{
    let (client, mut peer) = router.joined().await;
    let (registration, ()) = soon(async {
        tokio::join!(client.register_with("a", options, handler), async {
            peer.expect(r#"[64,1,{},"a"]"#).await;
            peer.send("[65,1,50]").await;
        })
    })
    .await;
    (client, peer, registration.unwrap())
}

/// An invocation and its only answer.
async fn check<F>(
    handler: impl Fn(Invocation) -> F + Send + Sync + 'static,
    invocation: &str,
    answer: &str,
) where
    F: Future<Output = Result<Arguments, ApplicationError>> + Send + 'static,
{
    let router = Router::new();
    let options = RegisterOptions::default();
    let (_client, mut peer, _registration) = registered(&router, options, handler).await;
    peer.send(invocation).await;
    soon(peer.expect(answer)).await;
}

#[tokio::test]
async fn answers() {
    check(
        async |invocation: Invocation| Ok(invocation.arguments),
        r#"[68,9,50,{},[1, 2],{"a": null}]"#,
        r#"[70,9,{},[1, 2],{"a": null}]"#,
    )
    .await;
    check(async |_| Ok(args![]), "[68,9,50,{}]", "[70,9,{}]").await;
    check(
        async |_| Err(ApplicationError::new("com.error", args!["why"])),
        "[68,9,50,{}]",
        r#"[8,68,9,{},"com.error",["why"]]"#,
    )
    .await;
    check(
        async |_| panic!("a handler's own fault"),
        "[68,9,50,{}]",
        r#"[8,68,9,{},"wamp.error.runtime_error"]"#,
    )
    .await;
}

#[tokio::test]
async fn an_answer_that_cannot_be_sent_is_an_error() {
    let check = async |handler: fn() -> Arguments, error: &str| {
        let router = Router::new();
        let options = RegisterOptions::default();
        let handler = move |_| async move { Ok(handler()) };
        let (_client, mut peer, _registration) = registered(&router, options, handler).await;
        peer.send("[68,9,50,{}]").await;
        let answer = soon(peer.receive()).await.unwrap();
        let expected = format!(r#"[8,68,9,{{}},"{error}",[""#);
        assert!(answer.starts_with(&expected), "{answer}");
    };
    check(|| args![f64::INFINITY], "wamp.error.invalid_payload").await;
    let huge = || args!["x".repeat(1 << 24)];
    check(huge, "wamp.error.payload_size_exceeded").await;
}

#[tokio::test]
async fn invocation_details() {
    let told = async |invocation: Invocation| {
        let caller = invocation.caller();
        Ok(args![
            invocation.procedure(),
            caller.map(|caller| caller.session.0),
            caller.map(|caller| caller.authid.clone()),
            invocation
                .timeout()
                .map(|timeout| timeout.as_millis() as u64),
            invocation.is_progress_wanted(),
        ])
    };
    check(
        told,
        "[68,9,50,{}]",
        r#"[70,9,{},["a",null,null,null,false]]"#,
    )
    .await;
    check(
        told,
        r#"[68,9,50,{"procedure":"b","caller":3,"caller_authid":"joe","caller_authrole":"user","timeout":20,"receive_progress":true}]"#,
        r#"[70,9,{},["b",3,"joe",20,true]]"#,
    )
    .await;
}

#[tokio::test]
async fn progressive_results() {
    let router = Router::new();
    let count = async |invocation: Invocation| {
        for number in [1, 2] {
            let sent = invocation.progress(args![number]).await;
            sent.map_err(|error| ApplicationError::new("no.progress", args![error.to_string()]))?;
        }
        Ok(args![3])
    };
    let options = RegisterOptions::default();
    let (_client, mut peer, _registration) = registered(&router, options, count).await;
    peer.send(r#"[68,1,50,{"receive_progress":true}]"#).await;
    soon(peer.expect(r#"[70,1,{"progress":true},[1]]"#)).await;
    soon(peer.expect(r#"[70,1,{"progress":true},[2]]"#)).await;
    soon(peer.expect(r#"[70,1,{},[3]]"#)).await;
    peer.send("[68,2,50,{}]").await;
    let refused = "the caller does not accept progressive results";
    soon(peer.expect(&format!(r#"[8,68,2,{{}},"no.progress",["{refused}"]]"#))).await;
}

#[tokio::test]
async fn arguments_bit_by_bit() {
    let sum = async |mut invocation: Invocation| {
        let mut sum: i64 = invocation.arguments.argument(0).unwrap();
        while let Some(chunk) = invocation.next_chunk().await {
            sum += chunk.argument::<i64>(0).unwrap();
        }
        Ok(args![sum])
    };
    let router = Router::new();
    let options = RegisterOptions::default();
    let (_client, mut peer, _registration) = registered(&router, options, sum).await;
    peer.send(r#"[68,1,50,{"progress":true},[1]]"#).await;
    peer.send(r#"[68,1,50,{"progress":true},[2]]"#).await;
    peer.send("[68,1,50,{},[3]]").await;
    soon(peer.expect("[70,1,{},[6]]")).await;
}

#[tokio::test]
async fn an_interrupt_drops_the_handler() {
    let router = Router::new();
    let started = Arc::new(Semaphore::new(0));
    let options = RegisterOptions::default();
    let signal = Arc::clone(&started);
    let (_client, mut peer, _registration) = registered(&router, options, move |_| {
        signal.add_permits(1);
        std::future::pending()
    })
    .await;
    peer.send("[68,1,50,{}]").await;
    let _ = soon(started.acquire()).await;
    peer.send(r#"[69,1,{"mode":"kill"}]"#).await;
    soon(peer.expect(r#"[8,68,1,{},"wamp.error.canceled"]"#)).await;
    peer.send("[68,2,50,{}]").await;
    peer.send(r#"[69,2,{"mode":"kill","reason":"wamp.error.timeout"}]"#)
        .await;
    soon(peer.expect(r#"[8,68,2,{},"wamp.error.timeout"]"#)).await;
}

#[tokio::test]
async fn interrupts_are_notified() {
    let router = Router::new();
    let mut options = RegisterOptions::default();
    options.on_interrupt = OnInterrupt::Notify;
    let told = async |mut invocation: Invocation| {
        let interrupt = invocation.interrupted().await;
        Ok(args!["partial", interrupt.reason])
    };
    let (_client, mut peer, _registration) = registered(&router, options, told).await;
    peer.send("[68,1,50,{}]").await;
    peer.send(r#"[69,1,{}]"#).await;
    soon(peer.expect(r#"[70,1,{},["partial","wamp.error.canceled"]]"#)).await;
}

#[tokio::test]
async fn more_invocations_than_there_is_room_for() {
    let router = Router::new();
    let mut options = RegisterOptions::default();
    options.running_max = 1;
    options.waiting_max = 1;
    let started = Arc::new(Semaphore::new(0));
    let go_on = Arc::new(Semaphore::new(0));
    let signals = (Arc::clone(&started), Arc::clone(&go_on));
    let (_client, mut peer, _registration) = registered(&router, options, move |invocation| {
        let (started, go_on) = (Arc::clone(&signals.0), Arc::clone(&signals.1));
        async move {
            started.add_permits(1);
            go_on.acquire().await.unwrap().forget();
            Ok(invocation.arguments)
        }
    })
    .await;
    peer.send("[68,1,50,{},[1]]").await;
    started.acquire().await.unwrap().forget();
    peer.send_all(&["[68,2,50,{},[2]]", "[68,3,50,{},[3]]"])
        .await;
    soon(peer.expect(r#"[8,68,3,{},"wamp.error.unavailable"]"#)).await;
    go_on.add_permits(2);
    soon(peer.expect("[70,1,{},[1]]")).await;
    soon(peer.expect("[70,2,{},[2]]")).await;
}

#[tokio::test]
async fn a_refused_registration() {
    let router = Router::new();
    let (client, mut peer) = router.joined().await;
    let handler = |_| async { Ok(args![]) };
    let (registration, ()) = soon(async {
        tokio::join!(client.register("a", handler), async {
            peer.expect(r#"[64,1,{},"a"]"#).await;
            peer.send(r#"[8,64,1,{},"wamp.error.procedure_already_exists"]"#)
                .await;
        })
    })
    .await;
    let error = registration.unwrap_err();
    assert!(matches!(&error, RegisterError::Refused(_)), "{error}");
    let text = "router refused: wamp.error.procedure_already_exists";
    assert_eq!(error.to_string(), text);
}

#[tokio::test]
async fn an_abandoned_registration_is_unregistered() {
    let router = Router::new();
    let (client, mut peer) = router.joined().await;
    let registering = tokio::spawn({
        let client = client.clone();
        async move { client.register("a", |_| async { Ok(args![]) }).await }
    });
    soon(peer.expect(r#"[64,1,{},"a"]"#)).await;
    registering.abort();
    let _ = registering.await;
    peer.send("[65,1,50]").await;
    soon(peer.expect("[66,2,50]")).await;
}

#[tokio::test]
async fn unregister_waits_for_running_handlers() {
    let router = Router::new();
    let started = Arc::new(Semaphore::new(0));
    let go_on = Arc::new(Semaphore::new(0));
    let signals = (Arc::clone(&started), Arc::clone(&go_on));
    let options = RegisterOptions::default();
    let (_client, mut peer, registration) = registered(&router, options, move |_| {
        let (started, go_on) = (Arc::clone(&signals.0), Arc::clone(&signals.1));
        async move {
            started.add_permits(1);
            go_on.acquire().await.unwrap().forget();
            Ok(args!["done"])
        }
    })
    .await;
    peer.send("[68,1,50,{}]").await;
    let _ = soon(started.acquire()).await;
    let (unregistered, ()) = soon(async {
        tokio::join!(registration.unregister(), async {
            peer.expect("[66,2,50]").await;
            peer.send("[67,2]").await;
            go_on.add_permits(1);
            peer.expect(r#"[70,1,{},["done"]]"#).await;
        })
    })
    .await;
    unregistered.unwrap();
}
