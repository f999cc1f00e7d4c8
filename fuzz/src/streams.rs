//! The records of a stream's segment.

use crosstie_queues::MessageContent;
use crosstie_streams::{decode_page, encode_record};

/// Records up to the first that is none. Each is a message that can be delivered as it is, and all are within the input.
pub fn page(input: &[u8]) {
    let (page, end) = decode_page(input.to_vec());
    assert!(end <= input.len());
    let mut bytes = 0;
    for at in 0..page.len() {
        let message = page.message(at).expect("is there");
        let names = message.exchange.len() + message.routing_key.len();
        bytes += names + message.properties.bytes().len() + message.body.len();
        let _ = message.properties.parse();
    }
    assert!(bytes <= end);
    assert!(page.message(page.len()).is_none());
}

/// Runs of records.
pub fn page_seeds() -> Vec<Vec<u8>> {
    let mut seeds = Vec::new();
    for count in [1, 2, 5] {
        let mut bytes = Vec::new();
        for number in 0..count {
            let body = vec![b'x'; 10 * number];
            let content = MessageContent::new("exchange", "key", &[0, 0], &body);
            encode_record(number as u64, 1_000, &content, &mut bytes);
        }
        seeds.push(bytes);
    }
    seeds
}
