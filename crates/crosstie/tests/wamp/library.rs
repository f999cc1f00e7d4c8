//! The client library against a real node: every transport with every serializer, and restarts.

use std::time::Duration;

use crosstie_client::{
    ApplicationError, Backoff, Binary, CallError, CallOptions, CallReply, CancelMode, Client,
    Config, MatchPolicy, PublishOptions, RegisterOptions, Serializer, State, SubscribeOptions,
    args,
};
use tokio::sync::mpsc;

use crate::node::Node;

async fn soon<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(60), future)
        .await
        .expect("what must happen has not happened for a minute")
}

/// All interactions of two clients.
async fn converse(callee: Client, caller: Client) {
    exchange_values(&callee, &caller).await;
    exchange_errors(&callee, &caller).await;
    progress_both_ways(&callee, &caller).await;
    cancel_and_time_out(&callee, &caller).await;
    call_by_pattern(&callee, &caller).await;
    exchange_events(&callee, &caller).await;

    callee.leave().await;
    let error = caller.call("com.echo", ()).await.unwrap_err();
    assert!(
        error
            .to_string()
            .starts_with("wamp.error.no_such_procedure"),
        "{error}"
    );
    caller.leave().await;
}

async fn exchange_values(callee: &Client, caller: &Client) {
    callee
        .register(
            "com.echo",
            |invocation| async move { Ok(invocation.arguments) },
        )
        .await
        .unwrap();
    let sent = args![
        7, -1, 1u64 << 53, 2.5, "text", Binary(vec![0, 1, 255]), None::<i64>, vec![true];
        key = "value"
    ];
    let echo = caller.call("com.echo", sent.clone()).await.unwrap();
    assert_eq!(echo.args().unwrap(), sent.args().unwrap());
    assert_eq!(echo.kwargs().unwrap(), sent.kwargs().unwrap());
    let long = "x".repeat(200_000);
    let echo = caller.call("com.echo", args![long.as_str()]).await.unwrap();
    assert_eq!(echo.argument(0), Ok(long));
}

async fn exchange_errors(callee: &Client, caller: &Client) {
    callee
        .register("com.fail", |_| async {
            Err(ApplicationError::new("com.error", args!["why"; n = 1]))
        })
        .await
        .unwrap();
    match caller.call("com.fail", ()).await {
        Err(CallError::Application(error)) => {
            assert_eq!(error.to_string(), r#"com.error ["why"] {"n":1}"#);
        }
        other => panic!("{other:?}"),
    }
}

async fn progress_both_ways(callee: &Client, caller: &Client) {
    let mut options = CallOptions::default();
    options.receive_progress = true;
    options.progress = true;
    callee
        .register("com.sum", |mut invocation| async move {
            let mut sum: i64 = invocation.arguments.argument(0).unwrap();
            while let Some(chunk) = invocation.next_chunk().await {
                let sent = invocation.progress(args![sum]).await;
                sent.unwrap();
                sum += chunk.argument::<i64>(0).unwrap();
            }
            Ok(args![sum])
        })
        .await
        .unwrap();
    let mut call = caller
        .start_call("com.sum", args![1], options)
        .await
        .unwrap();
    call.send(args![2]).await.unwrap();
    call.finish(args![3]).await.unwrap();
    let mut sums = Vec::new();
    while let Some(reply) = call.next().await.unwrap() {
        let (CallReply::Progress(sum) | CallReply::Result(sum)) = reply;
        sums.push(sum.argument::<i64>(0).unwrap());
    }
    assert_eq!(sums, [1, 3, 6]);
}

/// The handler is dropped with its state.
async fn cancel_and_time_out(callee: &Client, caller: &Client) {
    let (dropped, mut drops) = mpsc::unbounded_channel::<()>();
    let (started, mut starts) = mpsc::unbounded_channel();
    callee
        .register("com.sleep", move |_| {
            let (dropped, started) = (dropped.clone(), started.clone());
            async move {
                struct Guard(mpsc::UnboundedSender<()>);
                impl Drop for Guard {
                    fn drop(&mut self) {
                        let _ = self.0.send(());
                    }
                }
                let _guard = Guard(dropped);
                started.send(()).unwrap();
                std::future::pending().await
            }
        })
        .await
        .unwrap();
    let options = CallOptions::default;
    for mode in [CancelMode::Kill, CancelMode::KillNoWait] {
        let mut call = caller.start_call("com.sleep", (), options()).await.unwrap();
        starts.recv().await.unwrap();
        call.cancel(mode);
        let error = call.result().await.unwrap_err();
        assert!(matches!(error, CallError::Canceled(_)), "{error}");
        drops.recv().await.unwrap();
    }
    let mut in_time = options();
    in_time.timeout = Some(Duration::from_secs(1));
    let error = caller
        .call_with("com.sleep", (), in_time)
        .await
        .unwrap_err();
    assert!(matches!(error, CallError::TimedOut), "{error}");
    // On a slow machine the call may be over before its handler begins.
    if starts.try_recv().is_ok() {
        drops.recv().await.unwrap();
    }
}

async fn call_by_pattern(callee: &Client, caller: &Client) {
    let mut pattern = RegisterOptions::default();
    pattern.match_policy = MatchPolicy::Wildcard;
    callee
        .register_with("com..get", pattern, |invocation| async move {
            Ok(args![invocation.procedure()])
        })
        .await
        .unwrap();
    let called = caller.call("com.user.get", ()).await.unwrap();
    assert_eq!(called.argument(0), Ok("com.user.get".to_owned()));
}

async fn exchange_events(callee: &Client, caller: &Client) {
    let mut exact = callee.subscribe("com.news").await.unwrap();
    let mut prefix = SubscribeOptions::default();
    prefix.match_policy = MatchPolicy::Prefix;
    let mut prefix = callee.subscribe_with("com", prefix).await.unwrap();
    let acknowledged = PublishOptions::acknowledged();
    let publication = caller
        .publish_with("com.news", args![1], acknowledged)
        .await
        .unwrap();
    for subscription in [&mut exact, &mut prefix] {
        let event = subscription.next().await.unwrap();
        assert_eq!(Some(event.publication), publication);
        assert_eq!(event.topic, "com.news");
        assert_eq!(event.arguments.argument(0), Ok(1));
    }
    exact.unsubscribe().await.unwrap();
    caller.publish("com.news", args![2]).await.unwrap();
    let event = prefix.next().await.unwrap();
    assert_eq!(event.arguments.argument(0), Ok(2));
}

#[tokio::test]
async fn every_transport_with_every_serializer() {
    let node = Node::start();
    let config = |scheme: &str, serializer, batched| {
        let mut config = Config::new(&node.url(scheme)).unwrap();
        config.serializers = vec![serializer];
        config.batched = batched;
        config.reconnect = None;
        config
    };
    for serializer in Serializer::ALL {
        for (scheme, batched) in [
            ("ws", false),
            ("ws", true),
            ("rs", false),
            ("ws+unix", false),
            ("rs+unix", false),
        ] {
            let callee = Client::connect(config(scheme, serializer, batched)).await;
            // The caller always uses another serializer.
            let other = match serializer {
                Serializer::Json => Serializer::Cbor,
                Serializer::MsgPack => Serializer::Json,
                Serializer::Cbor => Serializer::MsgPack,
            };
            let caller = Client::connect(config("ws", other, false)).await;
            soon(converse(callee.unwrap(), caller.unwrap())).await;
        }
    }
}

#[tokio::test]
async fn a_restarted_node_is_joined_again() {
    let node = Node::start();
    let mut backoff = Backoff::default();
    backoff.initial = Duration::from_millis(5);
    backoff.delay_max = Duration::from_millis(50);
    let config = |scheme: &str| {
        let mut config = Config::new(&node.url(scheme)).unwrap();
        config.reconnect = Some(backoff.clone());
        config
    };
    let callee = Client::connect(config("rs+unix")).await.unwrap();
    let caller = Client::connect(config("ws")).await.unwrap();
    callee
        .register(
            "com.echo",
            |invocation| async move { Ok(invocation.arguments) },
        )
        .await
        .unwrap();
    let mut news = caller.subscribe("com.news").await.unwrap();
    let sessions = [session(&callee), session(&caller)];

    let _node = node.restart();
    for (client, old) in [(&callee, sessions[0]), (&caller, sessions[1])] {
        let mut states = client.state();
        let again =
            |state: &State| matches!(state, State::Joined(welcome) if welcome.session.0 != old);
        soon(states.wait_for(again)).await.unwrap();
    }
    // The registration is on its way; a call may be faster.
    let echo = soon(async {
        loop {
            match caller.call("com.echo", args![5]).await {
                Ok(echo) => return echo,
                Err(CallError::Application(error)) => {
                    assert_eq!(error.uri, "wamp.error.no_such_procedure");
                }
                Err(error) => panic!("{error}"),
            }
        }
    })
    .await;
    assert_eq!(echo.argument(0), Ok(5));
    // The subscription was requested before that call, on the same connection.
    callee.publish("com.news", args![6]).await.unwrap();
    let event = soon(news.next()).await.unwrap();
    assert_eq!(event.arguments.argument(0), Ok(6));
}

fn session(client: &Client) -> u64 {
    match &*client.state().borrow() {
        State::Joined(welcome) => welcome.session.0,
        state => panic!("{state:?}"),
    }
}

#[tokio::test]
async fn many_calls_at_once_keep_apart() {
    let node = Node::start();
    let url = node.url("ws");
    let callee = Client::connect(url.as_str()).await.unwrap();
    callee
        .register("com.double", |invocation| async move {
            let number: u64 = invocation.arguments.argument(0).unwrap();
            tokio::task::yield_now().await;
            Ok(args![2 * number])
        })
        .await
        .unwrap();
    let caller = Client::connect(url.as_str()).await.unwrap();
    // From two threads, each with a runtime of its own.
    let mut threads = tokio::task::JoinSet::new();
    for numbers in [0..500_u64, 500..1_000] {
        let caller = caller.clone();
        threads.spawn_blocking(move || {
            let mut builder = tokio::runtime::Builder::new_current_thread();
            let runtime = builder.enable_time().build().unwrap();
            runtime.block_on(async {
                let mut calls = tokio::task::JoinSet::new();
                for number in numbers {
                    let caller = caller.clone();
                    calls.spawn(async move {
                        let double = caller.call("com.double", args![number]).await.unwrap();
                        assert_eq!(double.argument(0), Ok(2 * number));
                    });
                }
                calls.join_all().await;
            });
        });
    }
    soon(threads.join_all()).await;
}
