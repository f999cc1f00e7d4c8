//! The application's own types as arguments and results, over TLS, as a client with a key (WAMP-cryptosign).
//!
//! Arguments: the URL (`wss://…` or `rss://…`), the PEM file of the certificate authority, the client's private key as 64
//! hexadecimal digits.
#![expect(clippy::print_stdout, reason = "an example prints to its user")]

use std::collections::BTreeMap;
use std::error::Error;
use std::sync::Arc;

use crosstie_client::serde::{Keywords, WithKeywords};
use crosstie_client::{Arguments, Client, Config, Cryptosign, SigningKey};
use serde::{Deserialize, Serialize};

#[derive(Debug, Serialize, Deserialize)]
struct Order {
    article: String,
    count: u32,
}

#[derive(Debug, Serialize, Deserialize)]
struct Bill {
    cents: u64,
    #[serde(default)]
    discount: Option<f64>,
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<_> = std::env::args().skip(1).collect();
    let [url, authority, key] = &arguments[..] else {
        return Err("expected a URL, the file of an authority, and a private key".into());
    };
    let mut config = Config::new(url)?;
    config.tls.system_roots = false;
    config.tls.ca_files = vec![authority.into()];
    let key = SigningKey::parse(key).ok_or("expected a private key of 64 hexadecimal digits")?;
    config.authenticator = Arc::new(Cryptosign {
        authid: None,
        key: Arc::new(key),
    });
    let client = Client::connect(config).await?;
    let authid = client.welcome().and_then(|welcome| welcome.authid.clone());
    println!("joined as {authid:?}");

    // A struct is one argument; a tuple is several; keyword arguments have a type of their own.
    client
        .register_typed("com.example.order", async |order: Order| {
            let cents = u64::from(order.count) * 25;
            Ok(Bill {
                cents,
                discount: None,
            })
        })
        .await?;
    client
        .register_typed(
            "com.example.reorder",
            async |Keywords(order): Keywords<Order>| {
                let article = BTreeMap::from([("article", order.article)]);
                Ok(WithKeywords((order.count, "again"), article))
            },
        )
        .await?;
    let order = Order {
        article: "apples".to_owned(),
        count: 4,
    };
    let bill: Bill = client.call_typed("com.example.order", &order).await?;
    println!("{bill:?}");
    let WithKeywords(positional, keywords): WithKeywords<(u32, String), BTreeMap<String, String>> =
        client
            .call_typed("com.example.reorder", Keywords(order))
            .await?;
    println!("{positional:?} {keywords:?}");

    let wrong = client
        .call_typed::<Bill>("com.example.order", ("apples", 4))
        .await;
    match wrong {
        Err(error) => println!("{error}"),
        Ok(bill) => println!("expected an error, got {bill:?}"),
    }
    let arguments = Arguments::serialize(&("apples", 4))?;
    client.publish("com.example.ordered", arguments).await?;
    client.leave().await;
    Ok(())
}
