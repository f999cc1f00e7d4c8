//! Arguments of present queues.

use crosstie_amqp::TableBuf;
use crosstie_auth::Permissions;

use super::*;

#[test]
fn an_argument_that_was_taken_unread_costs_a_present_queue_no_other_one() {
    let arguments = TableBuf::new()
        .with("x-queue-type", Value::LongString(b"quorum"))
        .with("x-delivery-limit", Value::I32(3))
        .with("x-consumer-timeout", Value::LongString(b"soon"));
    let permissions = Permissions::all();
    let caller = Caller {
        user: "",
        permissions: &permissions,
        method: (50, 10),
    };
    let queue = Resource::queue("q", "/");
    let flags = QueueFlags {
        durable: true,
        exclusive: false,
        auto_delete: false,
    };
    let table = arguments.as_table();
    assert!(QueueArguments::parse(&caller, queue, flags, table).is_err());
    let present = QueueArguments::present(&caller, queue, flags, table);
    assert_eq!(present.kind, QueueKind::Quorum);
    assert_eq!(present.delivery_limit, Some(3));
    assert_eq!(present.consumer_timeout_ms, None);
}
