//! Methods by AMQP's names, said with amqprs.

use amqprs::channel::{
    BasicAckArguments, BasicCancelArguments, BasicConsumeArguments, BasicGetArguments,
    BasicNackArguments, BasicPublishArguments, BasicQosArguments, BasicRejectArguments, Channel,
    ConfirmSelectArguments, ExchangeBindArguments, ExchangeDeclareArguments,
    ExchangeDeleteArguments, ExchangeUnbindArguments, QueueBindArguments, QueueDeclareArguments,
    QueueDeleteArguments, QueuePurgeArguments, QueueUnbindArguments,
};
use amqprs::error::Error;
use serde_json::{Value, json};
use tokio::sync::mpsc::UnboundedSender;

use crate::values;

/// A method's arguments; what is not there is zero, empty or false.
struct Arguments<'a>(&'a Value);

impl Arguments<'_> {
    fn text(&self, name: &str) -> &str {
        self.0[name].as_str().unwrap_or_default()
    }

    fn bit(&self, name: &str) -> bool {
        self.0[name].as_bool().unwrap_or_default()
    }

    fn number(&self, name: &str) -> u64 {
        self.0[name].as_u64().unwrap_or_default()
    }
}

/// Say a method; return the answer.
pub async fn call(
    channel: &Channel,
    number: u16,
    method: &str,
    arguments: &Value,
    lines: &UnboundedSender<Value>,
) -> Result<Value, String> {
    let table = values::table(&arguments["arguments"])?;
    let given = Arguments(arguments);
    let done = match method.split_once('.').unwrap_or_default() {
        ("exchange", method) => exchange(channel, method, &given, table).await,
        ("queue", method) => queue(channel, method, &given, table).await,
        ("basic", "consume") => consume(channel, number, &given, table, lines).await,
        ("basic", "publish") => {
            let properties = values::properties(&arguments["properties"])?;
            let mut publish =
                BasicPublishArguments::new(given.text("exchange"), given.text("routing_key"));
            publish.mandatory = given.bit("mandatory");
            publish.immediate = given.bit("immediate");
            let body = values::bytes(given.text("body"));
            answered(channel.basic_publish(properties, body, publish).await)
        }
        ("basic", method) => basic(channel, method, &given).await,
        ("confirm", "select") => answered(
            channel
                .confirm_select(ConfirmSelectArguments::default())
                .await,
        ),
        ("tx", "select") => answered(channel.tx_select().await),
        ("tx", "commit") => answered(channel.tx_commit().await),
        ("tx", "rollback") => answered(channel.tx_rollback().await),
        _ => return Err(format!("there is no method {method}")),
    };
    done.map_err(|error| error.to_string())
}

fn answered(result: Result<(), Error>) -> Result<Value, Error> {
    result.map(|()| json!({}))
}

async fn exchange(
    channel: &Channel,
    method: &str,
    given: &Arguments<'_>,
    table: amqprs::FieldTable,
) -> Result<Value, Error> {
    let (target, source, key) = (
        given.text("destination"),
        given.text("source"),
        given.text("routing_key"),
    );
    answered(match method {
        "declare" => {
            let mut declare =
                ExchangeDeclareArguments::new(given.text("exchange"), given.text("type"));
            declare.passive = given.bit("passive");
            declare.durable = given.bit("durable");
            declare.auto_delete = given.bit("auto_delete");
            declare.internal = given.bit("internal");
            declare.arguments = table;
            channel.exchange_declare(declare).await
        }
        "delete" => {
            let mut delete = ExchangeDeleteArguments::new(given.text("exchange"));
            delete.if_unused = given.bit("if_unused");
            channel.exchange_delete(delete).await
        }
        "bind" => {
            let mut bind = ExchangeBindArguments::new(target, source, key);
            bind.arguments = table;
            channel.exchange_bind(bind).await
        }
        _ => {
            let mut unbind = ExchangeUnbindArguments::new(target, source, key);
            unbind.arguments = table;
            channel.exchange_unbind(unbind).await
        }
    })
}

async fn queue(
    channel: &Channel,
    method: &str,
    given: &Arguments<'_>,
    table: amqprs::FieldTable,
) -> Result<Value, Error> {
    let (name, source, key) = (
        given.text("queue"),
        given.text("exchange"),
        given.text("routing_key"),
    );
    Ok(match method {
        "declare" => {
            let declare = QueueDeclareArguments::new(name)
                .passive(given.bit("passive"))
                .durable(given.bit("durable"))
                .exclusive(given.bit("exclusive"))
                .auto_delete(given.bit("auto_delete"))
                .arguments(table)
                .finish();
            match channel.queue_declare(declare).await? {
                Some((queue, messages, consumers)) => {
                    json!({ "queue": queue, "messages": messages, "consumers": consumers })
                }
                None => json!({}),
            }
        }
        "bind" => {
            let mut bind = QueueBindArguments::new(name, source, key);
            bind.arguments = table;
            answered(channel.queue_bind(bind).await)?
        }
        "unbind" => {
            let mut unbind = QueueUnbindArguments::new(name, source, key);
            unbind.arguments = table;
            answered(channel.queue_unbind(unbind).await)?
        }
        "purge" => {
            json!({ "messages": channel.queue_purge(QueuePurgeArguments::new(name)).await? })
        }
        _ => {
            let mut delete = QueueDeleteArguments::new(name);
            delete.if_unused = given.bit("if_unused");
            delete.if_empty = given.bit("if_empty");
            json!({ "messages": channel.queue_delete(delete).await? })
        }
    })
}

async fn basic(channel: &Channel, method: &str, given: &Arguments<'_>) -> Result<Value, Error> {
    let delivery = given.number("delivery");
    let (multiple, requeue) = (given.bit("multiple"), given.bit("requeue"));
    answered(match method {
        "qos" => {
            let size = u32::try_from(given.number("size")).unwrap_or(u32::MAX);
            let count = u16::try_from(given.number("count")).unwrap_or(u16::MAX);
            let qos = BasicQosArguments::new(size, count, given.bit("is_global"));
            channel.basic_qos(qos).await
        }
        "cancel" => {
            let tag = channel
                .basic_cancel(BasicCancelArguments::new(given.text("tag")))
                .await?;
            return Ok(json!({ "tag": tag }));
        }
        "get" => return get(channel, given).await,
        "ack" => {
            channel
                .basic_ack(BasicAckArguments::new(delivery, multiple))
                .await
        }
        "nack" => {
            channel
                .basic_nack(BasicNackArguments::new(delivery, multiple, requeue))
                .await
        }
        "reject" => {
            channel
                .basic_reject(BasicRejectArguments::new(delivery, requeue))
                .await
        }
        _ => channel.basic_recover(requeue).await,
    })
}

async fn get(channel: &Channel, given: &Arguments<'_>) -> Result<Value, Error> {
    let mut get = BasicGetArguments::new(given.text("queue"));
    get.no_ack = given.bit("no_ack");
    let Some((got, properties, body)) = channel.basic_get(get).await? else {
        return Ok(json!({}));
    };
    Ok(json!({
        "message": {
            "delivery": got.delivery_tag(),
            "redelivered": got.redelivered(),
            "exchange": got.exchange(),
            "routing_key": got.routing_key(),
            "messages": got.message_count(),
        },
        "properties": values::properties_told(&properties),
        "body": values::hex(&body),
    }))
}

async fn consume(
    channel: &Channel,
    number: u16,
    given: &Arguments<'_>,
    table: amqprs::FieldTable,
    lines: &UnboundedSender<Value>,
) -> Result<Value, Error> {
    let mut consume = BasicConsumeArguments::new(given.text("queue"), given.text("tag"));
    consume.no_local = given.bit("no_local");
    consume.no_ack = given.bit("no_ack");
    consume.exclusive = given.bit("exclusive");
    consume.arguments = table;
    let (tag, mut deliveries) = channel.basic_consume_rx(consume).await?;
    let lines = lines.clone();
    tokio::spawn(async move {
        while let Some(delivery) = deliveries.recv().await {
            let (Some(deliver), Some(properties)) = (delivery.deliver, delivery.basic_properties)
            else {
                continue;
            };
            let _ = lines.send(json!({
                "event": "deliver",
                "channel": number,
                "arguments": {
                    "tag": deliver.consumer_tag(),
                    "delivery": deliver.delivery_tag(),
                    "redelivered": deliver.redelivered(),
                    "exchange": deliver.exchange(),
                    "routing_key": deliver.routing_key(),
                },
                "properties": values::properties_told(&properties),
                "body": values::hex(&delivery.content.unwrap_or_default()),
            }));
        }
    });
    Ok(json!({ "tag": tag }))
}
