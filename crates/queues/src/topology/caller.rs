//! The caller of a method.

use crosstie_amqp::ReplyCode;
use crosstie_auth::{Access, Permissions};

use super::resource::Resource;
use crate::Fault;

/// The user who sent a method: its permissions decide, and faults name the user and the method.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Caller<'a> {
    pub(crate) user: &'a str,
    pub(crate) permissions: &'a Permissions,
    /// The method's class and number; zeros for an operator.
    pub(crate) method: (u16, u16),
}

/// The class and number for operators.
pub(crate) const OPERATOR: (u16, u16) = (0, 0);

impl Caller<'_> {
    /// Whether the caller is an operator.
    pub(crate) fn is_operator(&self) -> bool {
        self.method == OPERATOR
    }

    /// Checks that the user has that access. A vhost's default exchange has the name `amq.default`.
    pub(crate) fn check(&self, access: Access, resource: Resource<'_>) -> Result<(), Fault> {
        let name = match resource.is_default_exchange() {
            true => "amq.default",
            false => resource.name,
        };
        if self.permissions.may(access, resource.kind, name) {
            return Ok(());
        }
        let kind = resource.kind.name();
        let text = format!(
            "access to {kind} '{name}' in vhost '{}' refused for user '{}'{}",
            resource.vhost,
            self.user,
            self.permissions.remark()
        );
        Err(self.fault(ReplyCode::AccessRefused, text))
    }

    pub(crate) fn fault(&self, code: ReplyCode, text: impl AsRef<str>) -> Fault {
        Fault::in_method(code, self.method, text)
    }

    pub(crate) fn not_found(&self, resource: Resource<'_>) -> Fault {
        self.fault(ReplyCode::NotFound, format!("no {resource}"))
    }

    pub(crate) fn precondition_failed(&self, text: impl AsRef<str>) -> Fault {
        self.fault(ReplyCode::PreconditionFailed, text)
    }
}
