//! From the first bytes to an open vhost (section 2.2.4): start, login, tune, open.

use std::net::TcpStream;
use std::time::{Duration, Instant};

use crosstie_amqp::frame::FRAME_MIN_BYTES;
use crosstie_amqp::method::{ConnectionOpen, ConnectionStartOk, ConnectionTuneOk};
use crosstie_amqp::{Method, PROTOCOL_HEADER, TableBuf, Value};

use crate::input::Input;
use crate::url::Host;
use crate::{Connection, ConnectionError, ConnectionOptions, Mechanism};

/// The capabilities in this side's start-ok.
const CAPABILITIES: &[&str] = &[
    "authentication_failure_close",
    "basic.nack",
    "connection.blocked",
    "consumer_cancel_notify",
    "publisher_confirms",
];

impl Connection {
    /// Logs in over a fresh stream, and opens the vhost.
    pub(crate) fn negotiate(
        stream: TcpStream,
        host: &Host,
        virtual_host: &str,
        options: &ConnectionOptions,
    ) -> Result<Self, ConnectionError> {
        let now = Instant::now();
        let mut connection = Self {
            stream,
            host: host.clone(),
            input: Input::default(),
            output: PROTOCOL_HEADER.to_vec(),
            aside: Default::default(),
            handed_out: Vec::new(),
            // Before the negotiation no side may send more.
            frame_bytes_max: FRAME_MIN_BYTES.max(options.frame_bytes_max),
            channel_max: 0,
            heartbeat: None,
            read_at: now,
            written_at: now,
            read_timeout: None,
            // A broker answers at once; a caller without one may want to try another host, or end.
            reply_timeout: options.connect_timeout,
            blocked: None,
            server_properties: TableBuf::new(),
        };
        let mechanism = connection.await_start(options)?;
        connection.login(mechanism, options);
        connection.tune(options)?;
        let open = ConnectionOpen {
            virtual_host,
            ..ConnectionOpen::default()
        };
        connection.call(0, &open)?;
        connection.reply_timeout = options.reply_timeout;
        Ok(connection)
    }

    fn await_start(&mut self, options: &ConnectionOptions) -> Result<Mechanism, ConnectionError> {
        let start = match self.await_method(0, (10, 10), "connection.start") {
            // A broker of another version answers with its own header.
            Err(ConnectionError::Frame(_)) => {
                let bytes = self.input.bytes();
                return Err(ConnectionError::Protocol {
                    bytes: bytes[..bytes.len().min(64)].to_vec(),
                });
            }
            Ok(Method::ConnectionStart(start)) => start,
            Ok(found) => {
                return Err(ConnectionError::Unexpected {
                    found: found.name(),
                    expected: "connection.start",
                });
            }
            Err(error) => return Err(error),
        };
        let properties = TableBuf::from(start.server_properties);
        let offered = String::from_utf8_lossy(start.mechanisms).into_owned();
        self.server_properties = properties;
        let is_offered = |mechanism: Mechanism| {
            options.mechanism.is_none_or(|asked| asked == mechanism)
                && offered.split(' ').any(|name| name == mechanism.name())
        };
        let mut mechanisms = [Mechanism::AmqPlain, Mechanism::Plain].into_iter();
        mechanisms
            .find(|mechanism| is_offered(*mechanism))
            .ok_or(ConnectionError::Mechanisms { offered })
    }

    fn login(&mut self, mechanism: Mechanism, options: &ConnectionOptions) {
        let capabilities = CAPABILITIES.iter().fold(TableBuf::new(), |table, name| {
            table.with(name, Value::Bool(true))
        });
        let text = |text: &'static str| Value::LongString(text.as_bytes());
        let properties = TableBuf::new()
            .with("product", text("Crosstie"))
            .with("product_version", text(env!("CARGO_PKG_VERSION")))
            .with("platform", text("Rust"))
            .with("capabilities", Value::Table(capabilities.as_table()))
            .with(
                "connection_name",
                Value::LongString(options.name.as_bytes()),
            );
        let Host { user, password, .. } = &self.host;
        let response = match mechanism {
            Mechanism::Plain => [b"\0", user.as_bytes(), b"\0", password.as_bytes()].concat(),
            // A table without its length.
            Mechanism::AmqPlain => TableBuf::new()
                .with("LOGIN", Value::LongString(user.as_bytes()))
                .with("PASSWORD", Value::LongString(password.as_bytes()))
                .as_table()
                .bytes()
                .to_vec(),
        };
        let start_ok = ConnectionStartOk {
            client_properties: properties.as_table(),
            mechanism: mechanism.name(),
            response: &response,
            locale: "en_US",
        };
        self.send(0, &start_ok);
    }

    /// Takes the lower of both sides' proposals, where zero means no limit.
    fn tune(&mut self, options: &ConnectionOptions) -> Result<(), ConnectionError> {
        let tune = match self.await_method(0, (10, 30), "connection.tune")? {
            Method::ConnectionTune(tune) => tune,
            found => {
                return Err(ConnectionError::Unexpected {
                    found: found.name(),
                    expected: "connection.tune",
                });
            }
        };
        let lesser = |ours: u32, theirs: u32| match (ours, theirs) {
            (0, limit) | (limit, 0) => limit,
            (ours, theirs) => ours.min(theirs),
        };
        let frame_max = lesser(options.frame_bytes_max, tune.frame_max).max(FRAME_MIN_BYTES);
        let heartbeat = match options.heartbeat_s {
            0 => 0,
            seconds => lesser(seconds.into(), tune.heartbeat.into()) as u16,
        };
        self.channel_max = match tune.channel_max {
            0 => u16::MAX,
            channel_max => channel_max,
        };
        self.frame_bytes_max = frame_max;
        self.heartbeat = (heartbeat > 0).then(|| Duration::from_secs(heartbeat.into()));
        let tune_ok = ConnectionTuneOk {
            channel_max: tune.channel_max,
            frame_max,
            heartbeat,
        };
        self.send(0, &tune_ok);
        Ok(())
    }
}

impl Mechanism {
    fn name(self) -> &'static str {
        match self {
            Self::AmqPlain => "AMQPLAIN",
            Self::Plain => "PLAIN",
        }
    }
}
