//! A callee that reports its progress, and a caller that cancels it.
//!
//! Start a node with `crosstie start`, then `cargo run --example progress`. An argument is another router's URL.
#![expect(clippy::print_stdout, reason = "an example prints to its user")]

use std::error::Error;

use crosstie_client::{
    ApplicationError, Arguments, CallError, CallOptions, CallReply, CancelMode, Client, Invocation,
    OnInterrupt, RegisterOptions, args,
};

/// Counts to the caller's number, and returns the last one.
async fn count(invocation: Invocation) -> Result<Arguments, ApplicationError> {
    let failed = |uri: &str, error: &dyn Error| ApplicationError::new(uri, (error.to_string(),));
    let to: u32 = invocation
        .arguments
        .argument(0)
        .map_err(|error| failed("wamp.error.invalid_argument", &error))?;
    for number in 1..to {
        // It fails if the caller wants no progress, or the call is over: then nobody needs the rest.
        let sent = invocation.progress(args![number]).await;
        sent.map_err(|error| failed("com.example.error.stopped", &error))?;
    }
    Ok(args![to])
}

/// Reports its start, and waits until the caller cancels the call.
async fn wait(mut invocation: Invocation) -> Result<Arguments, ApplicationError> {
    // A caller that wants no progress waits as well.
    let _ = invocation.progress(args!["waiting"]).await;
    Err(invocation.interrupted().await.into())
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let url = std::env::args().nth(1);
    let url = url.as_deref().unwrap_or("ws://127.0.0.1:8080/ws");
    let callee = Client::connect(url).await?;
    callee.register("com.example.count", count).await?;
    let mut options = RegisterOptions::default();
    options.on_interrupt = OnInterrupt::Notify;
    callee
        .register_with("com.example.wait", options, wait)
        .await?;

    let caller = Client::connect(url).await?;
    let mut options = CallOptions::default();
    options.receive_progress = true;
    let mut call = caller
        .start_call("com.example.count", (3,), options.clone())
        .await?;
    while let Some(reply) = call.next().await? {
        match reply {
            CallReply::Progress(number) => println!("{} …", number.argument::<u32>(0)?),
            CallReply::Result(number) => println!("{} is the last", number.argument::<u32>(0)?),
        }
    }

    let mut call = caller.start_call("com.example.wait", (), options).await?;
    call.next().await?;
    call.cancel(CancelMode::Kill);
    match call.result().await {
        Err(CallError::Canceled(error)) => println!("cancelled: {}", error.uri),
        other => println!("expected a cancelled call, got {other:?}"),
    }
    caller.leave().await;
    callee.leave().await;
    Ok(())
}
