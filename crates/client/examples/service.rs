//! A service that outlives its connections: the client reconnects with growing delays, and registers the procedure again.
//!
//! Start a node with `crosstie start`, then `cargo run --example service`; stop and start the node meanwhile. An argument
//! is another router's URL.
#![expect(clippy::print_stdout, reason = "an example prints to its user")]

use std::error::Error;
use std::time::{Duration, SystemTime};

use crosstie_client::{Backoff, Client, Config, LifecycleEvent, args};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let url = std::env::args().nth(1);
    let mut config = Config::new(url.as_deref().unwrap_or("ws://127.0.0.1:8080/ws"))?;
    let mut backoff = Backoff::default();
    backoff.delay_max = Duration::from_secs(10);
    // The router may start after this service.
    backoff.from_start = true;
    config.reconnect = Some(backoff);

    let client = Client::connect(config).await?;
    let mut lifecycle = client.lifecycle();
    client
        .register("com.example.time", async |_| {
            let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
            Ok(args![since.unwrap_or_default().as_secs()])
        })
        .await?;
    println!("serving");
    while let Some(event) = lifecycle.next().await {
        match event {
            LifecycleEvent::Lost { cause } => println!("lost: {cause}"),
            LifecycleEvent::Waiting { attempt, delay } => {
                println!("attempt {attempt} in {delay:?}")
            }
            LifecycleEvent::AttemptFailed { error, .. } => println!("failed: {error}"),
            LifecycleEvent::Rejoined { attempts, .. } => println!("back after {attempts}"),
            LifecycleEvent::Restored(listener) => println!("restored {listener:?}"),
            LifecycleEvent::RestoreRefused {
                listener, error, ..
            } => {
                println!("refused {listener:?}: {error}");
            }
            other => println!("{other:?}"),
        }
    }
    Ok(())
}
