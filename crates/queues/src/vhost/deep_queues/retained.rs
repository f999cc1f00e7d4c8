//! Retained messages after a restart, which reads many of them page by page.

use crosstie_amqp::method::BasicPublish;
use crosstie_amqp::{Properties, TableBuf};

use super::{Deep, NOW, Sent};
use crate::paper_disk::Disk;
use crate::{ChannelKey, Client, Fault, Paging, QueueId, Record, RetainedMax, Vhost, VhostConfig};

const MAX: RetainedMax = RetainedMax {
    messages: 1_000,
    bytes: 1_000_000,
};

fn retain(deep: &mut Deep, key: &str, body: &[u8]) {
    publish(deep, key, body);
    deep.go_on();
}

fn publish(deep: &mut Deep, key: &str, body: &[u8]) {
    let retained = try_publish(&mut deep.vhost, deep.channel, key, body);
    assert!(retained.expect("is accepted"));
}

fn try_publish(
    vhost: &mut Vhost<()>,
    channel: ChannelKey,
    key: &str,
    body: &[u8],
) -> Result<bool, Fault> {
    let publish = BasicPublish::to("amq.topic", key);
    let content = (Properties::EMPTY, body);
    vhost.publish_retained(NOW, channel, &publish, content, MAX, &mut Sent::default())
}

fn retained(vhost: &Vhost<()>, key: &str) -> Option<u32> {
    let body = vhost.retained(NOW, key)?.body().first_chunk().copied();
    body.map(u32::from_be_bytes)
}

#[test]
fn the_last_message_of_each_topic_comes_back() {
    for seed in 0..20 {
        let mut deep = Deep::new(seed, 0);
        let mut expected = vec![None; 40];
        for number in 0..400_u32 {
            let topic = deep.random.next() as usize % expected.len();
            let is_removed = deep.random.next().is_multiple_of(3);
            let body = number.to_be_bytes();
            let body = if is_removed { &[][..] } else { &body[..] };
            retain(&mut deep, &topic.to_string(), body);
            expected[topic] = (!is_removed).then_some(number);
        }
        // The store has all, and has not been told what the last commits replace.
        deep.commit();
        let mut disk = std::mem::take(&mut deep.disk);
        let (kept, _) = disk.keep(QueueId(1));
        let mut config = VhostConfig::named("/");
        config.paging = Paging {
            memory_bytes: 0,
            messages: 2,
            ..Paging::OFF
        };
        let mut vhost = Vhost::new(config, seed);
        let mut sent = Sent::default();
        let name = "amq.crosstie.retained";
        vhost.restore(
            NOW,
            Record::queue_declared(QueueId(1), name, TableBuf::new()),
        );
        kept.into_iter()
            .for_each(|kept| vhost.restore(NOW, Record::Kept(kept)));
        vhost.restored(NOW, &mut sent);
        assert!(!vhost.has_read_retained());
        let connection = vhost.open_connection((), Client::unrestricted("guest"));
        let channel = vhost.open_channel(connection, 1).expect("a channel");
        // The page with the earlier message would replace it.
        assert!(try_publish(&mut vhost, channel, "0", b"").is_err());
        while let Some(want) = vhost.take_want() {
            let page = disk.read(&want, 1 + seed as usize);
            assert_eq!(vhost.handle_page(NOW, &want, page, &mut sent), 0);
            vhost.work(NOW, u32::MAX, &mut sent);
            vhost.check_invariants();
        }
        assert!(vhost.has_read_retained());
        for (topic, number) in expected.iter().enumerate() {
            assert_eq!(retained(&vhost, &topic.to_string()), *number, "seed {seed}");
        }
        let present = expected.iter().flatten().count();
        assert_eq!(vhost.retained_counts().0, present);
        write(&mut vhost, &mut disk);
        assert_eq!(disk.keep(QueueId(1)).1.len(), present);
        assert!(try_publish(&mut vhost, channel, "0", b"").is_ok());
    }
}

fn write(vhost: &mut Vhost<()>, disk: &mut Disk) {
    let records = std::mem::take(&mut vhost.journal().records);
    records.into_iter().for_each(|record| disk.write(record));
}

#[test]
fn messages_that_waited_for_one_commit_leave_no_room_behind() {
    let mut deep = Deep::new(1, 0);
    for number in 0..5_000_u32 {
        publish(&mut deep, "a", &number.to_be_bytes());
    }
    deep.commit();
    deep.vhost.work(NOW, u32::MAX, &mut deep.sent);
    assert_eq!(retained(&deep.vhost, "a"), Some(4_999));
    // The capacity, too.
    deep.vhost.check_invariants();
}

#[test]
fn a_client_of_amqp_finds_nothing_of_it() {
    let mut deep = Deep::new(1, 0);
    retain(&mut deep, "a", b"1");
    assert_eq!(deep.vhost.queues().count(), 0);
    assert_eq!(deep.vhost.counts().messages_ready, 0);
    let client = Client::unrestricted("guest");
    let connection = deep.vhost.open_connection((), client);
    let channel = deep.vhost.open_channel(connection, 1).expect("a channel");
    let delete = crosstie_amqp::method::QueueDelete {
        queue: "amq.crosstie.retained",
        ..Default::default()
    };
    let deleted = deep
        .vhost
        .handle(NOW, channel, &delete.into(), &mut deep.sent);
    // As that of a queue that does not exist.
    assert!(deleted.is_ok());
    assert!(deep.vhost.retained(NOW, "a").is_some());
}
