//! The operations on a vhost.

/// A connection's number, never used twice, and a channel's number there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Channel {
    pub connection: u32,
    pub number: u16,
}

/// How a queue is declared.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct QueueKind {
    pub durable: bool,
    pub exclusive: bool,
    pub auto_delete: bool,
    pub is_quorum: bool,
    pub message_ttl_ms: Option<u64>,
    pub length_max: Option<usize>,
    /// Instead of dropping the oldest one.
    pub rejects_publish: bool,
    /// Through the default exchange.
    pub dead_letter_queue: Option<String>,
    /// Until that queue exists.
    pub keeps_letters: bool,
    pub delivery_limit: Option<u32>,
    pub is_single_active: bool,
    /// 0: all messages in one line.
    pub priority_max: u8,
}

/// One step.
#[derive(Clone, Debug)]
pub enum Operation {
    Connect {
        connection: u32,
    },
    Disconnect {
        connection: u32,
    },
    OpenChannel(Channel),
    CloseChannel(Channel),
    DeclareExchange {
        from: Channel,
        name: String,
        kind: &'static str,
        durable: bool,
    },
    DeleteExchange {
        from: Channel,
        name: String,
    },
    DeclareQueue {
        from: Channel,
        name: String,
        kind: QueueKind,
    },
    DeleteQueue {
        from: Channel,
        name: String,
    },
    Purge {
        from: Channel,
        name: String,
    },
    Bind {
        from: Channel,
        exchange: String,
        queue: String,
        key: String,
    },
    Unbind {
        from: Channel,
        exchange: String,
        queue: String,
        key: String,
    },
    ConfirmSelect(Channel),
    TxSelect(Channel),
    TxCommit(Channel),
    TxRollback(Channel),
    Publish {
        from: Channel,
        exchange: String,
        key: String,
        /// Its body: no other message has it.
        message: u64,
        persistent: bool,
        mandatory: bool,
        expiration_ms: Option<u64>,
        priority: Option<u8>,
    },
    Qos {
        from: Channel,
        count: u16,
        global: bool,
    },
    Consume {
        from: Channel,
        queue: String,
        tag: String,
        no_ack: bool,
        priority: Option<i32>,
    },
    Cancel {
        from: Channel,
        tag: String,
    },
    Get {
        from: Channel,
        queue: String,
        no_ack: bool,
    },
    /// `basic.ack`, `basic.nack`, `basic.reject`, by the intended fate of the messages.
    Settle {
        from: Channel,
        tag: u64,
        multiple: bool,
        settlement: Settlement,
    },
    Recover(Channel),
    Pass {
        milliseconds: u64,
    },
    /// The connection takes no messages any more, or takes them again.
    Refuse {
        connection: u32,
        refusing: bool,
    },
    /// The store has written the oldest of its pending records.
    Commit {
        inputs: usize,
    },
    /// The store has failed with them, and keeps them.
    FailCommit {
        inputs: usize,
    },
    /// Everything but the disk is lost.
    Crash,
    /// The vhost ends in good order, and starts again.
    Stop,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Settlement {
    Accept,
    Requeue,
    Reject,
    /// Not answered: its channel is gone.
    Left,
}

impl Operation {
    /// The channel that it is a method or a message on.
    pub fn channel(&self) -> Option<Channel> {
        match self {
            Self::DeclareExchange { from, .. }
            | Self::DeleteExchange { from, .. }
            | Self::DeclareQueue { from, .. }
            | Self::DeleteQueue { from, .. }
            | Self::Purge { from, .. }
            | Self::Bind { from, .. }
            | Self::Unbind { from, .. }
            | Self::ConfirmSelect(from)
            | Self::TxSelect(from)
            | Self::TxCommit(from)
            | Self::TxRollback(from)
            | Self::Publish { from, .. }
            | Self::Qos { from, .. }
            | Self::Consume { from, .. }
            | Self::Cancel { from, .. }
            | Self::Get { from, .. }
            | Self::Settle { from, .. }
            | Self::Recover(from) => Some(*from),
            Self::Connect { .. }
            | Self::Disconnect { .. }
            | Self::OpenChannel(_)
            | Self::CloseChannel(_)
            | Self::Pass { .. }
            | Self::Refuse { .. }
            | Self::Commit { .. }
            | Self::FailCommit { .. }
            | Self::Crash
            | Self::Stop => None,
        }
    }
}
