//! The state of a play between two messages.

use crate::model::{Act, Alternative, Expected};

/// The awaited event.
pub(crate) enum State<'s> {
    Idle,
    Doing,
    Connecting {
        who: char,
    },
    Joining {
        who: char,
    },
    Expecting(&'s Expected),
    Closing {
        who: char,
    },
    Nothing {
        who: char,
        request: u64,
    },
    AnyOrder(Vec<&'s Expected>),
    Either(&'s [Alternative]),
    /// GOODBYE was sent; `at_end` if no line requested it.
    Leaving {
        who: char,
        at_end: bool,
    },
}

impl State<'_> {
    /// The session whose message is awaited.
    pub(crate) fn waits_for(&self) -> Option<char> {
        match self {
            Self::Idle | Self::Doing | Self::Connecting { .. } | Self::Joining { .. } => None,
            Self::Expecting(expected) => Some(expected.who),
            Self::Closing { who } | Self::Nothing { who, .. } | Self::Leaving { who, .. } => {
                Some(*who)
            }
            Self::AnyOrder(left) => left.first().map(|expected| expected.who),
            Self::Either(alternatives) => alternatives.first().and_then(first_session),
        }
    }
}

/// The receiver of the message that determines a course.
pub(crate) fn first_session(alternative: &Alternative) -> Option<char> {
    match &alternative.steps.first()?.act {
        Act::Expect(expected) => Some(expected.who),
        Act::Closed { who } => Some(*who),
        _ => None,
    }
}
