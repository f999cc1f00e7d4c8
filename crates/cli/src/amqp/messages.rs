//! `crosstie amqp publish`, `get` and `consume`: messages of any AMQP 0-9-1 broker, by its URL.

use std::io::{IsTerminal as _, Read as _};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context as _, bail};
use clap::Args;
use crosstie_amqp::method::{
    BasicAck, BasicConsume, BasicGet, BasicPublish, BasicQos, ConfirmSelect,
};
use crosstie_amqp::{BasicProperties, DeliveryMode, Method, TableBuf, Value};
use crosstie_amqp_client::{Connection, ConnectionError, ConnectionOptions, Content, TransportUrl};
use crosstie_terminal::output::{NotPrinted, print, print_bytes};

use super::message_json;
use super::publisher::{BODY_BYTES_MAX, CHANNEL, Publisher};
use crate::context::Chosen;
use crate::list::{harmless, printable};
use crate::management::Place;

/// Maximum length of a name or of a property, in bytes (section 4.2.5.3).
const SHORT_BYTES_MAX: usize = 255;

/// The place of the broker.
#[derive(Args)]
pub(super) struct Broker {
    /// Broker, as amqp://USER:PASSWORD@HOST:PORT/VHOST; by default that of the context, or this machine's port 5672 as guest.
    #[arg(long, value_name = "URL")]
    url: Option<String>,
}

/// Publish a message, and wait for its confirm.
///
/// The exit code is 1 if the broker cannot route the message to a queue, or refuses it.
#[derive(Args)]
pub(super) struct PublishArguments {
    /// Routing key; for the default exchange the name of a queue.
    routing_key: String,
    /// Body; - reads it from standard input.
    #[arg(required_unless_present_any = ["file", "lines"])]
    body: Option<String>,
    /// File with the body.
    #[arg(long, conflicts_with = "body")]
    file: Option<PathBuf>,
    /// Publish each line of standard input as a message.
    #[arg(long, conflicts_with_all = ["body", "file"])]
    lines: bool,
    /// Exchange; by default the default exchange.
    #[arg(long, default_value = "", hide_default_value = true)]
    exchange: String,
    /// Header, as NAME=VALUE; may be repeated.
    #[arg(long, value_name = "NAME=VALUE", value_parser = pair)]
    header: Vec<(String, String)>,
    /// Lose the message if the broker restarts; by default it is persistent.
    #[arg(long)]
    transient: bool,
    /// Content type, such as application/json.
    #[arg(long, value_name = "TYPE", value_parser = short)]
    content_type: Option<String>,
    /// Correlation id.
    #[arg(long, value_name = "ID", value_parser = short)]
    correlation_id: Option<String>,
    /// Queue for the reply.
    #[arg(long, value_name = "QUEUE", value_parser = short)]
    reply_to: Option<String>,
    /// Milliseconds after which it expires.
    #[arg(long, value_name = "MS")]
    expiration: Option<u64>,
    /// Priority.
    #[arg(long, value_name = "N")]
    priority: Option<u8>,
    /// Message id.
    #[arg(long, value_name = "ID", value_parser = short)]
    message_id: Option<String>,
    #[command(flatten)]
    broker: Broker,
}

/// Print messages from the head of a queue as lines of JSON. They stay in the queue unless --ack removes them.
///
/// The keys are `exchange`, `routing_key`, `redelivered`, `properties`, and `body` (a text) or `body_base64`. A message that
/// stays is marked as redelivered. The exit code is 1 if the queue is empty.
#[derive(Args)]
pub(super) struct GetArguments {
    /// Name of the queue.
    queue: String,
    /// Maximum number of messages.
    #[arg(long, value_name = "N", default_value_t = 1)]
    count: u64,
    /// Remove each message once it is printed.
    #[arg(long)]
    ack: bool,
    /// Print only the bodies.
    #[arg(long)]
    raw: bool,
    #[command(flatten)]
    broker: Broker,
}

/// Consume a queue: print its messages as lines of JSON, as `crosstie amqp get` does, and remove each printed one.
///
/// Stops when interrupted (Ctrl-C). A message that was not printed stays in the queue.
#[derive(Args)]
pub(super) struct ConsumeArguments {
    /// Name of the queue.
    queue: String,
    /// Stop after this many messages.
    #[arg(long, value_name = "N")]
    count: Option<u64>,
    /// Messages that the broker sends ahead, at most those of --count.
    #[arg(long, value_name = "N", default_value_t = 64, value_parser = clap::value_parser!(u16).range(1..))]
    prefetch: u16,
    /// Print only the bodies.
    #[arg(long)]
    raw: bool,
    #[command(flatten)]
    broker: Broker,
}

pub(super) fn publish(asked: &PublishArguments, place: &Place) -> anyhow::Result<ExitCode> {
    let properties = asked.properties();
    let (exchange, routing_key) = (asked.exchange.as_str(), asked.routing_key.as_str());
    for (what, name) in [("exchange", exchange), ("routing key", routing_key)] {
        if name.len() > SHORT_BYTES_MAX {
            bail!(
                "the {what} has {} bytes, expected at most {SHORT_BYTES_MAX}",
                name.len()
            );
        }
    }
    let mut connection = asked.broker.open(place, "publish")?;
    connection.call(CHANNEL, &ConfirmSelect::default())?;
    let method = BasicPublish {
        mandatory: true,
        ..BasicPublish::to(exchange, routing_key)
    };
    let mut publisher = Publisher::new(connection, method, properties);
    if asked.lines {
        publisher.publish_lines()?;
    } else {
        publisher.publish(&asked.body()?)?;
    }
    publisher.finish()
}

impl PublishArguments {
    fn properties(&self) -> Vec<u8> {
        let mut headers = TableBuf::new();
        for (name, value) in &self.header {
            headers = headers.with(name, Value::LongString(value.as_bytes()));
        }
        let expiration = self.expiration.map(|ms| ms.to_string());
        let mode = match self.transient {
            true => DeliveryMode::Transient,
            false => DeliveryMode::Persistent,
        };
        let properties = BasicProperties {
            content_type: self.content_type.as_deref(),
            headers: (!self.header.is_empty()).then(|| headers.as_table()),
            delivery_mode: Some(mode as u8),
            priority: self.priority,
            correlation_id: self.correlation_id.as_deref(),
            reply_to: self.reply_to.as_deref(),
            expiration: expiration.as_deref(),
            message_id: self.message_id.as_deref(),
            ..BasicProperties::default()
        };
        let mut bytes = Vec::new();
        properties.write(&mut bytes);
        bytes
    }

    fn body(&self) -> anyhow::Result<Vec<u8>> {
        let mut body = Vec::new();
        let (mut source, shown): (Box<dyn std::io::Read>, _) = match (&self.file, &self.body) {
            (Some(path), _) => {
                let file = std::fs::File::open(path);
                let shown = format!("'{}'", path.display());
                (Box::new(file.with_context(|| shown.clone())?), shown)
            }
            (None, Some(text)) if text != "-" => return Ok(text.clone().into_bytes()),
            (None, _) => (Box::new(std::io::stdin()), "standard input".to_owned()),
        };
        let limited = source
            .by_ref()
            .take(BODY_BYTES_MAX + 1)
            .read_to_end(&mut body);
        limited.with_context(|| format!("cannot read {shown}"))?;
        Ok(body)
    }
}

pub(super) fn get(asked: &GetArguments, place: &Place) -> anyhow::Result<ExitCode> {
    let queue = queue(&asked.queue)?;
    let mut connection = asked.broker.open(place, "get")?;
    let get = BasicGet {
        queue,
        ..BasicGet::default()
    };
    let (mut printed, mut is_empty) = (0, false);
    while printed < asked.count {
        connection.send(CHANNEL, &get);
        match got_one(&mut connection, asked.raw)? {
            Got::Printed(tag) if asked.ack => connection.send(CHANNEL, &ack(tag)),
            Got::Printed(_) => {}
            Got::Empty => {
                is_empty = true;
                break;
            }
            Got::ReaderClosed => break,
        }
        printed += 1;
    }
    // Messages without an acknowledgement return to the queue.
    let _ = connection.close();
    Ok(match printed {
        0 if is_empty => {
            complain!(
                "crosstie: queue '{}' has no ready message",
                printable(queue)
            );
            ExitCode::FAILURE
        }
        _ => ExitCode::SUCCESS,
    })
}

/// The answer of a basic.get.
enum Got {
    /// With the message's tag.
    Printed(u64),
    /// A message that the reader of the output did not wait for.
    ReaderClosed,
    Empty,
}

/// Prints the answer of a basic.get.
fn got_one(connection: &mut Connection, raw: bool) -> anyhow::Result<Got> {
    loop {
        let event = connection.next_event(Some(Duration::from_secs(30)))?;
        let Some(event) = event else {
            bail!("the broker did not answer within 30 s");
        };
        match (event.method, event.content) {
            (Method::BasicGetOk(ok), Some(content)) => {
                let about = [ok.exchange, ok.routing_key];
                let tag = ok.delivery_tag;
                return Ok(match show(about, ok.redelivered, &content, raw)? {
                    true => Got::Printed(tag),
                    false => Got::ReaderClosed,
                });
            }
            (Method::BasicGetEmpty(_), _) => return Ok(Got::Empty),
            _ => {}
        }
    }
}

pub(super) fn consume(asked: &ConsumeArguments, place: &Place) -> anyhow::Result<ExitCode> {
    let queue = queue(&asked.queue)?;
    let mut connection = asked.broker.open(place, "consume")?;
    // Messages that it will not print stay ready for others.
    let count = asked.count.and_then(|count| u16::try_from(count).ok());
    let qos =
        BasicQos::of_each(count.map_or(asked.prefetch, |count| asked.prefetch.min(count.max(1))));
    connection.call(CHANNEL, &qos)?;
    let consume = BasicConsume {
        queue,
        ..BasicConsume::default()
    };
    connection.call(CHANNEL, &consume)?;
    let mut consumed = 0;
    while asked.count.is_none_or(|count| consumed < count) {
        let Some(event) = connection.next_event(None)? else {
            continue;
        };
        match (event.method, event.content) {
            (Method::BasicDeliver(deliver), Some(content)) => {
                let about = [deliver.exchange, deliver.routing_key];
                let tag = deliver.delivery_tag;
                if !show(about, deliver.redelivered, &content, asked.raw)? {
                    break;
                }
                consumed += 1;
                connection.send(CHANNEL, &ack(tag));
                connection.flush()?;
            }
            (Method::BasicCancel(_), _) => {
                bail!("the queue '{}' was deleted", printable(queue))
            }
            _ => {}
        }
    }
    let _ = connection.close();
    Ok(ExitCode::SUCCESS)
}

fn ack(delivery_tag: u64) -> BasicAck {
    BasicAck::one(delivery_tag)
}

/// Prints a message. `false`: the reader has closed.
fn show(
    [exchange, routing_key]: [&str; 2],
    redelivered: bool,
    content: &Content<'_>,
    raw: bool,
) -> Result<bool, NotPrinted> {
    if !raw {
        let json = message_json::of(exchange, routing_key, redelivered, content);
        return print(&(harmless(json.to_string()) + "\n"));
    }
    if std::io::stdout().is_terminal() {
        return print(&(printable(&String::from_utf8_lossy(&content.body)) + "\n"));
    }
    print_bytes(&[&content.body, b"\n"])
}

impl Broker {
    /// A connection with an open channel.
    fn open(&self, place: &Place, verb: &str) -> anyhow::Result<Connection> {
        // The login of a context is for its own address.
        let chosen = match &self.url {
            Some(_) => None,
            None => place.chosen_for_broker()?,
        };
        let url = broker_url(self.url.as_deref(), chosen.as_ref())?;
        open(&url, &format!("crosstie amqp {verb}")).with_context(|| {
            let hosts: Vec<_> = url.hosts.iter().map(ToString::to_string).collect();
            format!("the broker at {}", hosts.join(", "))
        })
    }
}

/// The URL of the option, of the context, or of this machine.
pub(crate) fn broker_url(
    option: Option<&str>,
    chosen: Option<&Chosen>,
) -> anyhow::Result<TransportUrl> {
    let url = match (option, chosen) {
        (Some(url), _) => url,
        (None, Some(Chosen { name, context })) => context.amqp.as_deref().with_context(|| {
            format!("context '{name}' has no broker: `crosstie context add {name} --replace` with --amqp names one")
        })?,
        (None, None) => "amqp://",
    };
    Ok(url.parse::<TransportUrl>()?)
}

fn open(url: &TransportUrl, name: &str) -> Result<Connection, ConnectionError> {
    let options = ConnectionOptions {
        name: name.to_owned(),
        heartbeat_s: 60,
        reply_timeout: Duration::from_secs(30),
        ..ConnectionOptions::default()
    };
    let mut connection = Connection::open(url, &options)?;
    connection.open_channel(CHANNEL)?;
    Ok(connection)
}

fn queue(name: &str) -> anyhow::Result<&str> {
    short(name)?;
    Ok(name)
}

/// A text that a short string can hold.
fn short(text: &str) -> anyhow::Result<String> {
    match text.len() {
        0..=SHORT_BYTES_MAX => Ok(text.to_owned()),
        bytes => bail!("has {bytes} bytes, expected at most {SHORT_BYTES_MAX}"),
    }
}

fn pair(text: &str) -> anyhow::Result<(String, String)> {
    let (name, value) = text.split_once('=').context("expected NAME=VALUE")?;
    Ok((short(name)?, value.to_owned()))
}
