//! A subscriber of a pattern, and a publisher that awaits the router's acknowledgement.
//!
//! Start a node with `crosstie start`, then `cargo run --example pubsub`. An argument is another router's URL.
#![expect(clippy::print_stdout, reason = "an example prints to its user")]

use std::error::Error;

use crosstie_client::{Client, MatchPolicy, PublishOptions, SubscribeOptions, args};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let url = std::env::args().nth(1);
    let url = url.as_deref().unwrap_or("ws://127.0.0.1:8080/ws");
    let subscriber = Client::connect(url).await?;
    let mut options = SubscribeOptions::default();
    options.match_policy = MatchPolicy::Prefix;
    let mut readings = subscriber
        .subscribe_with("com.example.reading.", options)
        .await?;

    let publisher = Client::connect(url).await?;
    for (place, degrees) in [("kitchen", 21.5), ("cellar", 12.0)] {
        let options = PublishOptions {
            acknowledge: true,
            ..PublishOptions::default()
        };
        let topic = format!("com.example.reading.{place}");
        // The acknowledgement reports a refusal; without it, the router drops the event silently.
        let reading = args![degrees; unit = "°C"];
        let publication = publisher.publish_with(&topic, reading, options).await?;

        let event = readings
            .next()
            .await
            .ok_or("the subscriber's session has ended")?;
        let degrees: f64 = event.arguments.argument(0)?;
        let unit: String = event.arguments.keyword("unit")?;
        println!("{}: {degrees} {unit}", event.topic);
        if publication != Some(event.publication) {
            println!("of another publisher");
        }
    }
    publisher.leave().await;
    subscriber.leave().await;
    Ok(())
}
