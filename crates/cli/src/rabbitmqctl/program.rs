//! RabbitMQ's programs that this one stands for.

/// The name under which the program runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Program {
    Ctl,
    Diagnostics,
}

impl Program {
    pub(super) fn named(name: &str) -> Option<Self> {
        match name {
            "rabbitmqctl" => Some(Self::Ctl),
            "rabbitmq-diagnostics" => Some(Self::Diagnostics),
            _ => None,
        }
    }

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Ctl => "rabbitmqctl",
            Self::Diagnostics => "rabbitmq-diagnostics",
        }
    }
}
