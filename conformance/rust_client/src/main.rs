//! A puppet: reads one command of JSON a line, does it with amqprs, writes one answer a line, and
//! events as they come. Its connection is opened by the first command.

mod callbacks;
mod methods;
mod values;

use std::collections::HashMap;
use std::time::Duration;

use amqprs::channel::Channel;
use amqprs::connection::{Connection, OpenConnectionArguments};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, stdin, stdout};
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};

use crate::callbacks::{ChannelEvents, ConnectionEvents};

/// How long amqprs may take for an answer, which never comes when the broker closes instead.
const PATIENCE: Duration = Duration::from_secs(5);

/// Beyond the numbers of the scenarios.
const OPENED_AGAIN_FROM: u16 = 1000;

/// The state of the commands.
struct Puppet {
    connection: Option<Connection>,
    channels: HashMap<u16, Channel>,
    opened_again: u16,
    lines: UnboundedSender<Value>,
}

// One thread: a channel that the broker closes has said so to us before anything else is done.
#[tokio::main(flavor = "current_thread")]
async fn main() -> std::io::Result<()> {
    let (lines, mut written) = unbounded_channel::<Value>();
    let writer = tokio::spawn(async move {
        let mut out = stdout();
        while let Some(line) = written.recv().await {
            out.write_all(format!("{line}\n").as_bytes()).await?;
            out.flush().await?;
        }
        Ok::<(), std::io::Error>(())
    });
    let mut puppet = Puppet {
        connection: None,
        channels: HashMap::new(),
        opened_again: 0,
        lines,
    };
    let mut commands = BufReader::new(stdin()).lines();
    while let Some(line) = commands.next_line().await? {
        let command: Value = serde_json::from_str(&line)?;
        let answer = match tokio::time::timeout(PATIENCE, puppet.handle(&command)).await {
            Ok(Ok(value)) => json!({ "answer": value }),
            Ok(Err(error)) => json!({ "error": error }),
            Err(_) => json!({ "error": "no answer in time" }),
        };
        if puppet.lines.send(answer).is_err() {
            break;
        }
    }
    // It holds a sender too; the writer ends without senders.
    std::mem::forget(puppet);
    writer.abort();
    Ok(())
}

impl Puppet {
    /// Do one command.
    async fn handle(&mut self, command: &Value) -> Result<Value, String> {
        let number = u16::try_from(command["channel"].as_u64().unwrap_or(0)).unwrap_or(0);
        let arguments = &command["arguments"];
        match command["do"].as_str().unwrap_or_default() {
            "connect" => self.connect(arguments).await,
            "open" => self.open(number).await,
            "close" => self.close().await,
            "channel.close" => {
                let channel = self.channels.remove(&number).ok_or("there is no channel")?;
                channel.close().await.map_err(|error| error.to_string())?;
                Ok(json!({}))
            }
            method => {
                let channel = self.channels.get(&number).ok_or("there is no channel")?;
                methods::call(channel, number, method, arguments, &self.lines).await
            }
        }
    }

    async fn connect(&mut self, arguments: &Value) -> Result<Value, String> {
        let text = |name: &str| arguments[name].as_str().unwrap_or_default().to_owned();
        let port = u16::try_from(arguments["port"].as_u64().unwrap_or(0)).unwrap_or(0);
        let options =
            OpenConnectionArguments::new(&text("host"), port, &text("user"), &text("password"))
                .virtual_host(&text("vhost"))
                .finish();
        let connection = Connection::open(&options)
            .await
            .map_err(|error| error.to_string())?;
        let events = ConnectionEvents {
            lines: self.lines.clone(),
        };
        connection
            .register_callback(events)
            .await
            .map_err(|error| error.to_string())?;
        self.connection = Some(connection);
        Ok(json!({}))
    }

    /// Open a channel. One that takes the place of a closed one gets another number: amqprs gives
    /// the old one free only some time after its channel has ended.
    async fn open(&mut self, number: u16) -> Result<Value, String> {
        let connection = self.connection.as_ref().ok_or("there is no connection")?;
        let wanted = match self.channels.contains_key(&number) {
            true => {
                self.opened_again += 1;
                OPENED_AGAIN_FROM + self.opened_again
            }
            false => number,
        };
        let channel = connection
            .open_channel(Some(wanted))
            .await
            .map_err(|error| error.to_string())?;
        let events = ChannelEvents {
            number,
            lines: self.lines.clone(),
        };
        channel
            .register_callback(events)
            .await
            .map_err(|error| error.to_string())?;
        self.channels.insert(number, channel);
        Ok(json!({}))
    }

    async fn close(&mut self) -> Result<Value, String> {
        let connection = self.connection.take().ok_or("there is no connection")?;
        connection
            .close()
            .await
            .map_err(|error| error.to_string())?;
        Ok(json!({}))
    }
}
