//! Who guesses passwords waits, and is counted.

use crosstie_amqp::PROTOCOL_HEADER;
use crosstie_amqp::method::ConnectionCloseOk;

use crate::pages::{page, pages};
use crate::rig::{Client, Rig};

#[test]
fn failed_attempts_make_the_next_ones_wait() {
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
    // Who waits and then goes is not waited for.
    let mut client = Client::connect(rig.address);
    client.write(&PROTOCOL_HEADER);
    client.start_ok("PLAIN", b"\0guest\0wrong");
    drop(client);
    // Who knows the password waits as well, and is let in.
    rig.client().open_channel(1);
    let (_, metrics) = page(&place, "/metrics");
    let count = |name: &str| {
        let line = format!(r#"crosstie_amqp_logins_{name}_total{{worker="worker1"}} "#);
        let mut lines = metrics.lines();
        let count = lines.find_map(|found| found.strip_prefix(&line));
        count.expect("is there").parse::<u32>().expect("a number")
    };
    assert_eq!(count("failed"), 5);
    // Three may fail without a consequence.
    assert!((3..=4).contains(&count("delayed")), "{metrics}");
}
