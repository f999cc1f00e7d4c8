//! Calls a procedure, with a time limit, and tells errors apart.
//!
//! Start a node with `crosstie start`, then `cargo run --example call`. An argument is another router's URL.
#![expect(clippy::print_stdout, reason = "an example prints to its user")]

use std::error::Error;
use std::time::Duration;

use crosstie_client::{CallError, CallOptions, Client, args};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let url = std::env::args().nth(1);
    let client = Client::connect(url.as_deref().unwrap_or("ws://127.0.0.1:8080/ws")).await?;
    client
        .register("com.example.add", async |invocation| {
            let numbers = invocation.arguments.args().unwrap_or_default();
            let sum: u64 = numbers.iter().filter_map(|number| number.as_u64()).sum();
            Ok(args![sum])
        })
        .await?;

    let sum = client.call("com.example.add", (2, 3)).await?;
    println!("2 + 3 = {}", sum.argument::<u64>(0)?);

    let mut options = CallOptions::default();
    options.timeout = Some(Duration::from_secs(10));
    let sum = client
        .call_with("com.example.add", args![2, 3, 4], options)
        .await?;
    println!("2 + 3 + 4 = {}", sum.argument::<u64>(0)?);

    match client.call("com.example.subtract", (3, 2)).await {
        Err(CallError::Application(error)) => println!("refused: {}", error.uri),
        Err(error) => return Err(error.into()),
        Ok(result) => println!("another client has registered it: {:?}", result.args()?),
    }
    client.leave().await;
    Ok(())
}
