//! What a script sends: a line of words into a method with its content.

use crosstie_amqp::method::*;
use crosstie_amqp::{BasicProperties, Method, Table, TableBuf, Value};

/// A method's words, and the table among them.
pub(super) struct Request<'t> {
    name: &'t str,
    /// Those without `=`, up to where flags may stand; `-` is empty.
    words: Vec<&'t str>,
    arguments: TableBuf,
    headers: Option<TableBuf>,
    pub(super) body: &'t str,
}

pub(super) fn read(text: &str) -> Result<Request<'_>, String> {
    let (name, rest) = text.split_once(' ').unwrap_or((text, ""));
    let mut request = Request {
        name,
        words: Vec::new(),
        arguments: TableBuf::new(),
        headers: None,
        body: "",
    };
    for word in rest.split(' ').filter(|word| !word.is_empty()) {
        if let Some(fields) = word.strip_prefix("headers=") {
            request.headers = Some(table(fields)?);
        } else if word.starts_with('{') {
            request.arguments = table(word)?;
        } else if word == "-" {
            request.words.push("");
        } else {
            request.words.push(word);
        }
    }
    if name == "publish" {
        request.body = request.words.get(2).copied().unwrap_or_default();
    }
    if request.try_method().is_none() {
        return Err(format!("no such method: {name}"));
    }
    Ok(request)
}

impl<'t> Request<'t> {
    pub(super) fn method(&self) -> Method<'_> {
        self.try_method().expect("was looked at when it was read")
    }

    pub(super) fn properties(&self) -> Vec<u8> {
        let named = BasicProperties {
            headers: self.headers.as_ref().map(TableBuf::as_table),
            delivery_mode: match self.value("mode") {
                Some(mode) => mode.parse().ok(),
                None => self.has("persistent").then_some(2),
            },
            expiration: self.value("expiration"),
            priority: self.value("priority").and_then(|text| text.parse().ok()),
            reply_to: self.value("reply-to"),
            user_id: self.value("user-id"),
            ..BasicProperties::default()
        };
        let mut bytes = Vec::new();
        named.write(&mut bytes);
        bytes
    }

    pub(super) fn has(&self, flag: &str) -> bool {
        self.words.contains(&flag)
    }

    fn value(&self, key: &str) -> Option<&'t str> {
        let mut words = self.words.iter();
        words.find_map(|word| word.strip_prefix(key)?.strip_prefix('='))
    }

    fn word(&self, at: usize) -> &'t str {
        self.words.get(at).copied().unwrap_or_default()
    }

    fn tag(&self) -> u64 {
        self.word(0).parse().unwrap_or_default()
    }

    fn table(&self) -> Table<'_> {
        self.arguments.as_table()
    }

    fn try_method(&self) -> Option<Method<'_>> {
        self.exchange_method()
            .or_else(|| self.queue_method())
            .or_else(|| self.basic_method())
            .or_else(|| self.acknowledgement())
            .or_else(|| self.channel_method())
    }

    /// Of the class `exchange`.
    fn exchange_method(&self) -> Option<Method<'_>> {
        let no_wait = self.has("no-wait");
        Some(match self.name {
            "exchange.declare" => Method::ExchangeDeclare(ExchangeDeclare {
                exchange: self.word(0),
                kind: self.word(1),
                passive: self.has("passive"),
                durable: self.has("durable"),
                auto_delete: self.has("auto-delete"),
                internal: self.has("internal"),
                no_wait,
                arguments: self.table(),
            }),
            "exchange.delete" => Method::ExchangeDelete(ExchangeDelete {
                exchange: self.word(0),
                if_unused: self.has("if-unused"),
                no_wait,
            }),
            "exchange.bind" => Method::ExchangeBind(ExchangeBind {
                destination: self.word(0),
                source: self.word(1),
                routing_key: self.word(2),
                no_wait,
                arguments: self.table(),
            }),
            "exchange.unbind" => Method::ExchangeUnbind(ExchangeUnbind {
                destination: self.word(0),
                source: self.word(1),
                routing_key: self.word(2),
                no_wait,
                arguments: self.table(),
            }),
            _ => return None,
        })
    }

    /// Of the class `queue`.
    fn queue_method(&self) -> Option<Method<'_>> {
        let no_wait = self.has("no-wait");
        Some(match self.name {
            "queue.declare" => Method::QueueDeclare(QueueDeclare {
                queue: self.word(0),
                passive: self.has("passive"),
                durable: self.has("durable"),
                exclusive: self.has("exclusive"),
                auto_delete: self.has("auto-delete"),
                no_wait,
                arguments: self.table(),
            }),
            "queue.bind" => Method::QueueBind(QueueBind {
                queue: self.word(0),
                exchange: self.word(1),
                routing_key: self.word(2),
                no_wait,
                arguments: self.table(),
            }),
            "queue.unbind" => Method::QueueUnbind(QueueUnbind {
                queue: self.word(0),
                exchange: self.word(1),
                routing_key: self.word(2),
                arguments: self.table(),
            }),
            "queue.purge" => Method::QueuePurge(QueuePurge {
                queue: self.word(0),
                no_wait,
            }),
            "queue.delete" => Method::QueueDelete(QueueDelete {
                queue: self.word(0),
                if_unused: self.has("if-unused"),
                if_empty: self.has("if-empty"),
                no_wait,
            }),
            _ => return None,
        })
    }

    /// Messages and consumers.
    fn basic_method(&self) -> Option<Method<'_>> {
        let no_wait = self.has("no-wait");
        Some(match self.name {
            "publish" => Method::BasicPublish(BasicPublish {
                exchange: self.word(0),
                routing_key: self.word(1),
                mandatory: self.has("mandatory"),
                immediate: self.has("immediate"),
            }),
            "basic.qos" => Method::BasicQos(BasicQos {
                prefetch_size: self.value("size").map_or(0, |s| s.parse().unwrap_or(0)),
                prefetch_count: self.tag() as u16,
                global: self.has("global"),
            }),
            "basic.consume" => Method::BasicConsume(BasicConsume {
                queue: self.word(0),
                consumer_tag: self.word(1),
                no_local: false,
                no_ack: self.has("no-ack"),
                exclusive: self.has("exclusive"),
                no_wait,
                arguments: self.table(),
            }),
            "basic.cancel" => Method::BasicCancel(BasicCancel {
                consumer_tag: self.word(0),
                no_wait,
            }),
            "basic.get" => Method::BasicGet(BasicGet {
                queue: self.word(0),
                no_ack: self.has("no-ack"),
            }),
            "basic.qos-ok" => Method::BasicQosOk(BasicQosOk {}),
            _ => return None,
        })
    }

    /// What is said about deliveries.
    fn acknowledgement(&self) -> Option<Method<'_>> {
        Some(match self.name {
            "basic.ack" => Method::BasicAck(BasicAck {
                delivery_tag: self.tag(),
                multiple: self.has("multiple"),
            }),
            "basic.nack" => Method::BasicNack(BasicNack {
                delivery_tag: self.tag(),
                multiple: self.has("multiple"),
                requeue: self.has("requeue"),
            }),
            "basic.reject" => Method::BasicReject(BasicReject {
                delivery_tag: self.tag(),
                requeue: self.has("requeue"),
            }),
            "basic.recover" => Method::BasicRecover(BasicRecover {
                requeue: self.has("requeue"),
            }),
            "basic.recover-async" => Method::BasicRecoverAsync(BasicRecoverAsync {
                requeue: self.has("requeue"),
            }),
            _ => return None,
        })
    }

    /// What is said about a whole channel.
    fn channel_method(&self) -> Option<Method<'_>> {
        let no_wait = self.has("no-wait");
        Some(match self.name {
            "confirm.select" => Method::ConfirmSelect(ConfirmSelect { no_wait }),
            "tx.select" => Method::TxSelect(TxSelect {}),
            "tx.commit" => Method::TxCommit(TxCommit {}),
            "tx.rollback" => Method::TxRollback(TxRollback {}),
            "channel.flow" => Method::ChannelFlow(ChannelFlow {
                active: self.has("on"),
            }),
            _ => return None,
        })
    }
}

/// `{name=1,other=text,list=[a;b],tables=[{name:a|other:1}],octets=~ab,long=3L,yes=true}`.
fn table(text: &str) -> Result<TableBuf, String> {
    let inner = text.strip_prefix('{').and_then(|t| t.strip_suffix('}'));
    let inner = inner.ok_or_else(|| format!("no table: {text}"))?;
    let mut table = TableBuf::new();
    for field in inner.split(',').filter(|field| !field.is_empty()) {
        let (name, value) = field.split_once('=').ok_or("a field is name=value")?;
        if let Some(list) = value.strip_prefix('[').and_then(|v| v.strip_suffix(']')) {
            let bytes = array(name, list)?;
            let one = Table::from_bytes(&bytes).map_err(|error| error.to_string())?;
            table = table.with(name, one.find(name).ok_or("an array")?);
            continue;
        }
        let long = value.strip_suffix('L').map(str::parse::<i64>);
        table = match (value, value.parse(), long) {
            ("true" | "false", ..) => table.with(name, Value::Bool(value == "true")),
            (_, Ok(number), _) => table.with(name, Value::I32(number)),
            (.., Some(Ok(number))) => table.with(name, Value::I64(number)),
            _ if value.starts_with('~') => {
                table.with(name, Value::ByteArray(&value.as_bytes()[1..]))
            }
            _ => table.with(name, Value::LongString(value.as_bytes())),
        };
    }
    Ok(table)
}

fn array(name: &str, list: &str) -> Result<Vec<u8>, String> {
    let mut values = Vec::new();
    for text in list.split(';').filter(|text| !text.is_empty()) {
        let inner = text
            .starts_with('{')
            .then(|| table(&text.replace('|', ",").replace(':', "=")))
            .transpose()?;
        let (tag, bytes) = match &inner {
            Some(inner) => (b'F', inner.as_table().bytes()),
            None => (b'S', text.as_bytes()),
        };
        values.push(tag);
        values.extend_from_slice(&(bytes.len() as u32).to_be_bytes());
        values.extend_from_slice(bytes);
    }
    let mut bytes = vec![name.len() as u8];
    bytes.extend_from_slice(name.as_bytes());
    bytes.push(b'A');
    bytes.extend_from_slice(&(values.len() as u32).to_be_bytes());
    bytes.extend_from_slice(&values);
    Ok(bytes)
}
