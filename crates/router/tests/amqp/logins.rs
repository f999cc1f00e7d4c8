//! Wrong passwords are answered late, and counted.

use crosstie_amqp::PROTOCOL_HEADER;
use crosstie_amqp::method::ConnectionCloseOk;

use crate::pages::{page, pages};
use crate::rig::{Client, Rig};

#[test]
fn wrong_passwords_are_answered_late_and_counted() {
    let directory = tempfile::tempdir().expect("a directory");
    let rig = Rig::start(directory.path());
    let (_admin, place) = pages(&rig, directory.path());
    let refused = "0 connection.close 403 ACCESS_REFUSED - Login was refused using authentication \
                   mechanism PLAIN. For details see the broker logfile.";
    for name in ["guest", "nobody", "guest", "nobody", "guest"] {
        let mut client = Client::connect(rig.address);
        client.write(&PROTOCOL_HEADER);
        client.expect("0 connection.start");
        client.start_ok("PLAIN", format!("\0{name}\0wrong").as_bytes());
        client.expect(refused);
        client.send(0, &ConnectionCloseOk {});
        client.expect_end();
    }
    // A client that leaves before its answer.
    let mut client = Client::connect(rig.address);
    client.write(&PROTOCOL_HEADER);
    client.start_ok("PLAIN", b"\0guest\0wrong");
    drop(client);
    // The right password of a user that others guess at.
    rig.client().open_channel(1);
    let (_, metrics) = page(&place, "/metrics");
    let count = |name: &str| {
        let line = format!(r#"crosstie_amqp_logins_{name}_total{{worker="worker1"}} "#);
        let mut lines = metrics.lines();
        let count = lines.find_map(|found| found.strip_prefix(&line));
        count.expect("is there").parse::<u32>().expect("a number")
    };
    // The last attempt may not have been read before its client left.
    assert!((5..=6).contains(&count("failed")), "{metrics}");
    assert!(count("delayed") >= 3, "{metrics}");
}
