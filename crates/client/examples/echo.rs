//! A callee and its caller: start a node with `crosstie start`, then `cargo run --example echo`.
//!
//! The only argument, if given, is another router's URL.
#![expect(clippy::print_stdout, reason = "an example prints to its user")]

use std::error::Error;

use crosstie_client::{ApplicationError, CallError, CallOptions, CallReply, Client, args};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let url = std::env::args().nth(1);
    let url = url.as_deref().unwrap_or("ws://127.0.0.1:8080/ws");

    let callee = Client::connect(url).await?;
    callee
        .register("com.example.echo", |invocation| async move {
            Ok(invocation.arguments)
        })
        .await?;
    callee
        .register("com.example.count", |invocation| async move {
            let wrong = |error| ApplicationError::new("com.example.error.no_number", args![error]);
            let to = invocation.arguments.argument::<u32>(0);
            let to = to.map_err(|error| wrong(error.to_string()))?;
            for number in 1..to {
                let sent = invocation.progress(args![number]).await;
                sent.map_err(|error| wrong(error.to_string()))?;
            }
            Ok(args![to])
        })
        .await?;

    let caller = Client::connect(url).await?;
    let echo = caller
        .call("com.example.echo", args!["hello"; n = 1])
        .await?;
    println!("echo: {:?} {:?}", echo.args()?, echo.kwargs()?);

    let mut options = CallOptions::default();
    options.receive_progress = true;
    let mut call = caller
        .start_call("com.example.count", args![3], options)
        .await?;
    while let Some(reply) = call.next().await? {
        match reply {
            CallReply::Progress(number) => println!("count: {:?} …", number.args()?),
            CallReply::Result(number) => println!("count: {:?}", number.args()?),
        }
    }

    match caller.call("com.example.count", args!["three"]).await {
        Err(CallError::Application(error)) => println!("count failed: {error}"),
        other => println!("count should have failed: {other:?}"),
    }

    caller.leave().await;
    callee.leave().await;
    Ok(())
}
