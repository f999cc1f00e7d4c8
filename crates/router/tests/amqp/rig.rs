//! The tests' routers, and a client that sends exact frames.

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::time::Duration;

use crosstie_amqp::frame::{self, Decoded, FrameKind};
use crosstie_amqp::method::{
    BasicConsume, BasicPublish, ChannelOpen, ConfirmSelect, ConnectionOpen, ConnectionStartOk,
    ConnectionTuneOk, QueueDeclare,
};
use crosstie_amqp::{
    Arguments, BasicProperties, Method, PROTOCOL_HEADER, Properties, Table, TableBuf, Value,
};
use crosstie_config::{
    Amqp, AmqpMechanism, AmqpTransport, Config, Endpoint, Limits, RouterWorker, TcpEndpoint, Tls,
    Transport, TransportKind, Worker,
};
use crosstie_router::{Router, RouterOptions};

/// A router with one AMQP transport, in a directory.
pub(crate) struct Rig {
    pub(crate) router: Router,
    pub(crate) address: SocketAddr,
}

/// The differences between the tests' routers.
#[derive(Clone)]
pub(crate) struct Setting {
    pub(crate) amqp: Amqp,
    pub(crate) transport: AmqpTransport,
    pub(crate) connections_max: Option<usize>,
    pub(crate) tls: Option<Tls>,
    pub(crate) limits: Limits,
}

impl Default for Setting {
    fn default() -> Self {
        Self {
            amqp: Amqp::default(),
            transport: AmqpTransport {
                frame_bytes_max: 131_072,
                channels_max: 2047,
                heartbeat: Some(Duration::from_secs(60)),
                mechanisms: vec![AmqpMechanism::Plain, AmqpMechanism::AmqPlain],
                handshake_timeout: Duration::from_secs(10),
                closing_timeout: Duration::from_secs(10),
            },
            connections_max: None,
            tls: None,
            limits: Config::embedded_default().limits,
        }
    }
}

impl Rig {
    pub(crate) fn start(directory: &Path) -> Self {
        Self::start_with(directory, &Setting::default())
    }

    pub(crate) fn start_with(directory: &Path, setting: &Setting) -> Self {
        let options = RouterOptions {
            directory: directory.to_owned(),
            busy_poll: Duration::ZERO,
            ..RouterOptions::default()
        };
        let router = Router::start(&worker(), &setting.limits, &options).expect("threads");
        router.start_amqp(&setting.amqp).expect("a free directory");
        let urls = router.start_transport(&transport(setting)).expect("a port");
        let (_, address) = urls[0].split_once("://").expect("a URL");
        Self {
            address: address.parse().expect("an address"),
            router,
        }
    }

    /// A client in the vhost `/`.
    pub(crate) fn client(&self) -> Client {
        let mut client = Client::connect(self.address);
        client.enter();
        client
    }
}

pub(crate) fn worker() -> RouterWorker {
    let worker = Config::embedded_default().workers.remove(0);
    let Worker::Router(mut worker) = worker else {
        panic!("the embedded default is a router");
    };
    worker.id = "worker1".to_owned();
    worker.threads = Some(2);
    worker.realms.clear();
    worker.transports.clear();
    worker.amqp = None;
    *worker
}

pub(crate) fn transport(setting: &Setting) -> Transport {
    let Worker::Router(mut worker) = Config::embedded_default().workers.remove(0) else {
        panic!("the embedded default is a router");
    };
    let mut transport = worker.transports.remove(0);
    transport.id = "amqp".to_owned();
    transport.connections_max = setting.connections_max;
    transport.pages.clear();
    if let Endpoint::Tcp(TcpEndpoint { port, tls, .. }) = &mut transport.endpoint {
        *port = 0;
        tls.clone_from(&setting.tls);
    }
    transport.kind = TransportKind::Amqp(setting.transport.clone());
    transport
}

/// A client of frames.
pub(crate) struct Client<S = TcpStream> {
    pub(crate) stream: S,
    input: Vec<u8>,
}

/// A received frame.
#[derive(Debug)]
pub(crate) struct Received {
    pub(crate) kind: FrameKind,
    pub(crate) channel: u16,
    pub(crate) payload: Vec<u8>,
}

impl Received {
    pub(crate) fn method(&self) -> Method<'_> {
        assert_eq!(self.kind, FrameKind::Method, "{self:?}");
        Method::decode(&self.payload).expect("a method")
    }

    /// The method in words: `CHANNEL NAME`, with the code and text of a close.
    pub(crate) fn said(&self) -> String {
        let channel = self.channel;
        let method = match self.kind {
            FrameKind::Method => self.method(),
            kind => return format!("{channel} {kind:?}"),
        };
        match method {
            Method::ConnectionClose(close) => format!(
                "{channel} connection.close {} {}",
                close.reply_code, close.reply_text
            ),
            Method::ChannelClose(close) => format!(
                "{channel} channel.close {} {}",
                close.reply_code, close.reply_text
            ),
            method => format!("{channel} {}", method.name()),
        }
    }
}

impl Client {
    pub(crate) fn connect(address: SocketAddr) -> Self {
        Self::over(connected(address))
    }
}

/// A connected socket.
pub(crate) fn connected(address: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect(address).expect("somebody listens");
    // A test that waits in vain fails instead of hanging.
    let within = Some(Duration::from_secs(30));
    stream.set_read_timeout(within).expect("is open");
    stream
}

impl<S: Read + Write> Client<S> {
    /// A client that has sent nothing yet.
    pub(crate) fn over(stream: S) -> Self {
        Self {
            stream,
            input: Vec::new(),
        }
    }

    /// Negotiates as `guest`, and opens `/`.
    pub(crate) fn enter(&mut self) {
        self.write(&PROTOCOL_HEADER);
        self.expect("0 connection.start");
        self.start_ok("PLAIN", b"\0guest\0guest");
        self.expect("0 connection.tune");
        self.tune_ok(2047, 131_072, 0);
        self.open("/");
        self.expect("0 connection.open-ok");
    }

    pub(crate) fn start_ok(&mut self, mechanism: &str, response: &[u8]) {
        let properties = capabilities();
        self.send(
            0,
            &ConnectionStartOk {
                client_properties: properties.as_table(),
                mechanism,
                response,
                locale: "en_US",
            },
        );
    }

    pub(crate) fn tune_ok(&mut self, channel_max: u16, frame_max: u32, heartbeat: u16) {
        self.send(
            0,
            &ConnectionTuneOk {
                channel_max,
                frame_max,
                heartbeat,
            },
        );
    }

    pub(crate) fn open(&mut self, virtual_host: &str) {
        let open = ConnectionOpen {
            virtual_host,
            ..ConnectionOpen::default()
        };
        self.send(0, &open);
    }

    pub(crate) fn open_channel(&mut self, channel: u16) {
        self.send(channel, &ChannelOpen::default());
        self.expect(&format!("{channel} channel.open-ok"));
    }

    pub(crate) fn declare(&mut self, queue: &str, durable: bool) {
        self.send(
            1,
            &QueueDeclare {
                queue,
                durable,
                ..QueueDeclare::default()
            },
        );
        self.expect("1 queue.declare-ok");
    }

    pub(crate) fn consume(&mut self, queue: &str, no_ack: bool) {
        self.send(
            1,
            &BasicConsume {
                queue,
                no_ack,
                ..BasicConsume::default()
            },
        );
        self.expect("1 basic.consume-ok");
    }

    pub(crate) fn confirms(&mut self) {
        self.send(1, &ConfirmSelect { no_wait: false });
        self.expect("1 confirm.select-ok");
    }

    /// Publishes to a queue.
    pub(crate) fn publish(&mut self, queue: &str, body: &[u8], delivery_mode: u8) {
        let bytes = published(1, queue, body, delivery_mode);
        self.write(&bytes);
    }

    /// Sends a transient message on channel 1.
    pub(crate) fn publish_to(&mut self, publish: &BasicPublish<'_>, body: &[u8]) {
        let mut bytes = framed(1, publish);
        let properties = Properties::EMPTY.bytes();
        frame::write_content(1, properties, body, 131_072, &mut bytes);
        self.write(&bytes);
    }

    pub(crate) fn send(&mut self, channel: u16, method: &impl Arguments) {
        self.write(&framed(channel, method));
    }

    pub(crate) fn write(&mut self, bytes: &[u8]) {
        self.stream.write_all(bytes).expect("is open");
    }

    /// The next frame; `None` at the end.
    pub(crate) fn receive(&mut self) -> Option<Received> {
        loop {
            if let Decoded::Frame { frame, consumed } =
                frame::decode(&self.input, u32::MAX).expect("frames")
            {
                let received = Received {
                    kind: frame.kind,
                    channel: frame.channel,
                    payload: frame.payload.to_vec(),
                };
                self.input.drain(..consumed);
                return Some(received);
            }
            if !self.read() {
                assert!(self.input.is_empty(), "the end within a frame");
                return None;
            }
        }
    }

    /// Expects the next frame that is not a heartbeat to be this.
    pub(crate) fn expect(&mut self, expected: &str) -> Received {
        loop {
            let received = self
                .receive()
                .unwrap_or_else(|| panic!("expected {expected}, got the end"));
            if received.kind != FrameKind::Heartbeat {
                assert_eq!(received.said(), expected);
                return received;
            }
        }
    }

    /// A message with its body.
    pub(crate) fn expect_message(&mut self, method: &str) -> Vec<u8> {
        self.expect(method);
        let header = self.receive().expect("a header");
        let header = crosstie_amqp::ContentHeader::decode(&header.payload).expect("a header");
        let body_bytes = header.body_bytes as usize;
        let mut body = Vec::new();
        while body.len() < body_bytes {
            let part = self.receive().expect("a body");
            assert_eq!(part.kind, FrameKind::Body);
            body.extend(part.payload);
        }
        body
    }

    pub(crate) fn expect_end(&mut self) {
        let received = self.receive();
        assert!(received.is_none(), "expected the end, got {received:?}");
    }

    /// Raw bytes until the end.
    pub(crate) fn read_to_end(&mut self) -> Vec<u8> {
        while self.read() {}
        std::mem::take(&mut self.input)
    }

    /// Whether anything was read.
    fn read(&mut self) -> bool {
        let mut buffer = [0; 65536];
        match self.stream.read(&mut buffer) {
            Ok(count) => {
                self.input.extend_from_slice(&buffer[..count]);
                count > 0
            }
            Err(e)
                if matches!(
                    e.kind(),
                    ErrorKind::ConnectionReset | ErrorKind::UnexpectedEof
                ) =>
            {
                false
            }
            Err(e) => panic!("{e}"),
        }
    }
}

/// The client's capabilities: all of them.
fn capabilities() -> TableBuf {
    let names = [
        "authentication_failure_close",
        "connection.blocked",
        "consumer_cancel_notify",
    ];
    let known = names.iter().fold(TableBuf::new(), |table, name| {
        table.with(name, Value::Bool(true))
    });
    TableBuf::new()
        .with("product", Value::LongString(b"frames"))
        .with("connection_name", Value::LongString(b"a test"))
        .with("capabilities", Value::Table(known.as_table()))
}

/// A method's frame.
pub(crate) fn framed(channel: u16, method: &impl Arguments) -> Vec<u8> {
    let mut bytes = Vec::new();
    frame::write(FrameKind::Method, channel, &mut bytes, |out| {
        method.write(out);
    });
    bytes
}

/// The frames of a message for a queue.
pub(crate) fn published(channel: u16, queue: &str, body: &[u8], delivery_mode: u8) -> Vec<u8> {
    let mut bytes = Vec::new();
    let publish = BasicPublish::to("", queue);
    frame::write(FrameKind::Method, channel, &mut bytes, |out| {
        publish.write(out);
    });
    let mut properties = Vec::new();
    BasicProperties {
        delivery_mode: Some(delivery_mode),
        ..BasicProperties::default()
    }
    .write(&mut properties);
    let properties = Properties::from_bytes(&properties).expect("properties");
    frame::write_content(channel, properties.bytes(), body, 131_072, &mut bytes);
    bytes
}

/// A table without fields.
pub(crate) fn no_arguments() -> Table<'static> {
    Table::default()
}
