//! A reader that wants none of what was written holds the vhost's lock no longer than others.

use crosstie_amqp::method::{BasicConsume, BasicQos};
use crosstie_amqp::{TableBuf, Value};

use super::{NOW, Rig};
use crate::{QueueId, StreamExtent, VhostConfig};

#[test]
fn a_page_without_a_wanted_message_is_passed_in_parts() {
    const MESSAGES: u64 = 10_000;
    let mut rig = Rig::new(1);
    let input_steps_max = VhostConfig::named("/").input_steps_max;
    rig.channels += 1;
    let channel = rig.vhost.open_channel(rig.connection, rig.channels);
    let channel = channel.expect("a channel");
    rig.handle(channel, BasicQos::of_each(10));
    let arguments = TableBuf::new()
        .with("x-stream-offset", Value::LongString(b"first"))
        .with("x-stream-filter", Value::LongString(b"c"));
    rig.handle(
        channel,
        BasicConsume {
            queue: "s",
            arguments: arguments.as_table(),
            ..BasicConsume::default()
        },
    );
    let extent = StreamExtent {
        end: MESSAGES,
        ..StreamExtent::default()
    };
    let page = rig.page(0, MESSAGES, None);
    rig.vhost.take_steps();
    let (vhost, sent) = (&mut rig.vhost, &mut rig.sent);
    vhost.handle_written(NOW, QueueId(1), &extent, Some(page), sent);
    let mut parts = vec![vhost.take_steps()];
    assert!(vhost.memory_bytes() > 0, "the page is not passed at once");
    while vhost.has_backlog() {
        vhost.work(NOW, 1_000, sent);
        parts.push(vhost.take_steps());
    }
    assert!(parts.iter().all(|steps| *steps <= input_steps_max + 16));
    assert!(u64::from(parts.iter().sum::<u32>()) >= MESSAGES);
    assert_eq!(vhost.memory_bytes(), 0, "the page is passed");
    assert!(!vhost.has_stream_wants() && sent.deliveries.is_empty());
}
