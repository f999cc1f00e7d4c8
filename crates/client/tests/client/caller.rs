//! Calls: results, errors, cancellation, timeouts, progress both ways.

use std::time::Duration;

use crosstie_client::{
    Arguments, CallError, CallOptions, CallReply, CancelMode, Client, Disconnected, args,
};

use crate::router::{Router, soon};

/// A call of `a` with the argument 1, answered by `answer`.
async fn called(answer: &str) -> Result<Arguments, CallError> {
    let router = Router::new();
    let (client, mut peer) = router.joined().await;
    let answering = async {
        peer.expect(r#"[48,1,{},"a",[1]]"#).await;
        peer.send(answer).await;
        peer
    };
    let (result, _peer) = soon(async { tokio::join!(client.call("a", args![1]), answering) }).await;
    result
}

#[tokio::test]
async fn results() {
    let check = async |answer: &str, args: &str, kwargs: &str| {
        let json = called(answer).await.unwrap().to_json().unwrap();
        assert_eq!(json, (args.to_owned(), kwargs.to_owned()));
    };
    check("[50,1,{}]", "[]", "{}").await;
    check("[50,1,{},[]]", "[]", "{}").await;
    check(r#"[50,1,{},[1,"a",null]]"#, r#"[1,"a",null]"#, "{}").await;
    check(r#"[50,1,{},[],{"b":[2.5]}]"#, "[]", r#"{"b":[2.5]}"#).await;
}

#[tokio::test]
async fn errors() {
    let check = async |answer: &str, text: &str| {
        let error = called(answer).await.unwrap_err();
        assert_eq!(error.to_string(), text);
        error
    };
    let error = check(
        r#"[8,48,1,{},"com.error",["why"],{"n":1}]"#,
        r#"com.error ["why"] {"n":1}"#,
    )
    .await;
    assert!(matches!(error, CallError::Application(error) if error.uri == "com.error"));
    let canceled = r#"[8,48,1,{},"wamp.error.canceled"]"#;
    let error = check(canceled, "call cancelled: wamp.error.canceled").await;
    assert!(matches!(error, CallError::Canceled(_)));
    let timeout = r#"[8,48,1,{},"wamp.error.timeout"]"#;
    let error = check(timeout, "no result in time").await;
    assert!(matches!(error, CallError::TimedOut));
}

#[tokio::test]
async fn a_broken_protocol_is_reported_to_both_sides() {
    let check = async |message: &str, reason: &str| {
        let router = Router::new();
        let (client, mut peer) = router.joined().await;
        let answering = async {
            peer.expect(r#"[48,1,{},"a"]"#).await;
            peer.send(message).await;
            let abort = peer.receive().await.unwrap();
            let violation = r#""wamp.error.protocol_violation"]"#;
            assert!(
                abort.starts_with("[3,") && abort.ends_with(violation),
                "{abort}"
            );
            peer.expect_end().await;
        };
        let (result, ()) = soon(async { tokio::join!(client.call("a", ()), answering) }).await;
        match result.unwrap_err() {
            CallError::Disconnected(Disconnected::Protocol(text)) => {
                assert!(text.contains(reason), "{text}");
            }
            error => panic!("{message}: {error}"),
        }
    };
    check("[50,2,{}]", "got RESULT 2").await;
    check("[17,1,1]", "got PUBLISHED").await;
    check("{}", "expected").await;
    check("[50", "expected").await;
    check("[99,1]", "99").await;
    check(r#"[50,1,{},["\ud800"]]"#, "expected").await;
}

#[tokio::test]
async fn a_dropped_call_is_cancelled() {
    let router = Router::new();
    let (client, mut peer) = router.joined().await;
    let mut options = CallOptions::default();
    options.on_drop = CancelMode::Skip;
    {
        let call = client.start_call("a", (), options).await.unwrap();
        let waiting = tokio::spawn(call.result());
        soon(peer.expect(r#"[48,1,{},"a"]"#)).await;
        waiting.abort();
    }
    soon(peer.expect(r#"[49,1,{"mode":"skip"}]"#)).await;
    peer.send(r#"[8,48,1,{},"wamp.error.canceled"]"#).await;
    // A late answer has no waiter and no effect.
    let (result, ()) = soon(async {
        tokio::join!(client.call("b", ()), async {
            peer.expect(r#"[48,2,{},"b"]"#).await;
            peer.send("[50,2,{}]").await;
        })
    })
    .await;
    result.unwrap();
}

#[tokio::test]
async fn a_call_is_cancelled_by_hand() {
    let router = Router::new();
    let (client, mut peer) = router.joined().await;
    let options = CallOptions::default();
    let mut call = client.start_call("a", (), options).await.unwrap();
    call.cancel(CancelMode::Kill);
    soon(peer.expect(r#"[48,1,{},"a"]"#)).await;
    soon(peer.expect(r#"[49,1,{"mode":"kill"}]"#)).await;
    peer.send(r#"[8,48,1,{},"wamp.error.canceled",["by the callee"]]"#)
        .await;
    match soon(call.next()).await {
        Err(CallError::Canceled(error)) => {
            assert_eq!(error.arguments.argument(0), Ok("by the callee".to_owned()));
        }
        other => panic!("{other:?}"),
    }
    assert!(matches!(soon(call.next()).await, Ok(None)));
}

#[tokio::test]
async fn a_router_that_can_keeps_the_timeout() {
    let router = Router::new();
    let (client, mut peer) = router.joined().await;
    let mut options = CallOptions::default();
    options.timeout = Some(Duration::from_millis(1500));
    let (result, ()) = soon(async {
        tokio::join!(client.call_with("a", (), options), async {
            peer.expect(r#"[48,1,{"timeout":1500},"a"]"#).await;
            peer.send(r#"[8,48,1,{},"wamp.error.timeout"]"#).await;
        })
    })
    .await;
    assert!(matches!(result, Err(CallError::TimedOut)));
}

#[tokio::test]
async fn the_client_keeps_the_timeout_of_a_router_that_cannot() {
    let router = Router::new();
    let welcome = r#"[2,7,{"roles":{"dealer":{}}}]"#;
    let (client, mut peer) = router.joined_as(router.config(), welcome).await;
    let mut options = CallOptions::default();
    options.timeout = Some(Duration::from_millis(1));
    let result = soon(client.call_with("a", (), options)).await;
    assert!(matches!(result, Err(CallError::TimedOut)));
    soon(peer.expect(r#"[48,1,{},"a"]"#)).await;
    soon(peer.expect(r#"[49,1,{"mode":"killnowait"}]"#)).await;
}

fn progressive() -> CallOptions {
    let mut options = CallOptions::default();
    options.receive_progress = true;
    options
}

async fn numbers(client: &Client, options: CallOptions) -> Result<Vec<i64>, CallError> {
    let mut numbers = Vec::new();
    let mut call = client.start_call("a", (), options).await?;
    while let Some(reply) = call.next().await? {
        let (CallReply::Progress(number) | CallReply::Result(number)) = reply;
        numbers.push(number.argument(0).unwrap());
    }
    Ok(numbers)
}

#[tokio::test]
async fn progressive_results_come_in_order() {
    let router = Router::new();
    let (client, mut peer) = router.joined().await;
    let (result, ()) = soon(async {
        tokio::join!(numbers(&client, progressive()), async {
            peer.expect(r#"[48,1,{"receive_progress":true},"a"]"#).await;
            peer.send(r#"[50,1,{"progress":true},[1]]"#).await;
            peer.send_all(&[r#"[50,1,{"progress":true},[2]]"#, "[50,1,{},[3]]"])
                .await;
        })
    })
    .await;
    assert_eq!(result.unwrap(), [1, 2, 3]);
}

#[tokio::test]
async fn too_many_progressive_results_cancel_the_call() {
    let router = Router::new();
    let (client, mut peer) = router.joined().await;
    let mut options = progressive();
    options.results_max = 2;
    let mut call = client.start_call("a", (), options).await.unwrap();
    soon(peer.expect(r#"[48,1,{"receive_progress":true},"a"]"#)).await;
    let progress = r#"[50,1,{"progress":true},[0]]"#;
    peer.send_all(&[progress, progress, progress, progress])
        .await;
    soon(peer.expect(r#"[49,1,{"mode":"killnowait"}]"#)).await;
    peer.send(r#"[8,48,1,{},"wamp.error.canceled"]"#).await;
    for _ in 0..2 {
        let reply = soon(call.next()).await;
        assert!(
            matches!(reply, Ok(Some(CallReply::Progress(_)))),
            "{reply:?}"
        );
    }
    let error = soon(call.next()).await.unwrap_err();
    assert!(matches!(error, CallError::Overflow { results_max: 2 }));
}

#[tokio::test]
async fn arguments_bit_by_bit() {
    let router = Router::new();
    let (client, mut peer) = router.joined().await;
    let mut options = CallOptions::default();
    options.progress = true;
    let mut call = client.start_call("a", args![1], options).await.unwrap();
    call.send(args![2]).await.unwrap();
    call.finish(args![3]).await.unwrap();
    for message in [
        r#"[48,1,{"progress":true},"a",[1]]"#,
        r#"[48,1,{"progress":true},"a",[2]]"#,
        r#"[48,1,{},"a",[3]]"#,
    ] {
        soon(peer.expect(message)).await;
    }
    let more = call.send(args![4]).await;
    assert!(matches!(more, Err(CallError::Answered)));
    peer.send("[50,1,{},[6]]").await;
    let sum = soon(call.result()).await.unwrap();
    assert_eq!(sum.argument(0), Ok(6));
}

#[tokio::test]
async fn values_unknown_to_the_serializer_are_not_sent() {
    let router = Router::new();
    let (client, mut peer) = router.joined().await;
    let error = client.call("a", args![f64::NAN]).await.unwrap_err();
    assert!(matches!(error, CallError::Unsendable(_)), "{error}");
    let huge = args!["x".repeat(1 << 24)];
    let error = client.call("a", huge).await.unwrap_err();
    assert!(matches!(error, CallError::Unsendable(_)), "{error}");
    let (result, ()) = soon(async {
        tokio::join!(client.call("b", ()), async {
            peer.expect(r#"[48,1,{},"b"]"#).await;
            peer.send("[50,1,{}]").await;
        })
    })
    .await;
    result.unwrap();
}
