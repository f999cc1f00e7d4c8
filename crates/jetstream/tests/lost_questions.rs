//! A server that does not answer its first requests: it has no leader yet, and keeps no requests.

use std::path::Path;
use std::time::Duration;

use crosstie_jetstream::{Connection, Failed, Server, Speaking};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::TcpListener;

const EVERY: Duration = Duration::from_millis(20);

/// Accepts one client, and answers only the request of that number.
async fn serve(listener: TcpListener, answered: usize) {
    let (mut stream, _) = listener.accept().await.expect("a client comes");
    let (reader, mut writer) = stream.split();
    let info = b"INFO {\"server_id\":\"s\",\"version\":\"2.15.3\",\"max_payload\":1000}\r\n";
    writer.write_all(info).await.expect("it is taken");
    let mut lines = BufReader::new(reader).lines();
    let mut asked = 0;
    while let Ok(Some(line)) = lines.next_line().await {
        let words: Vec<_> = line.split(' ').collect();
        match words[..] {
            ["PING"] => writer.write_all(b"PONG\r\n").await.expect("it is taken"),
            ["PUB", "ask", reply, _] => {
                asked += 1;
                if asked == answered {
                    let answer = format!("MSG {reply} 1 2\r\nok\r\n");
                    let said = writer.write_all(answer.as_bytes()).await;
                    said.expect("it is taken");
                }
            }
            _ => {}
        }
    }
}

async fn asked(answered: usize, time: Duration) -> Result<Vec<u8>, Failed> {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let server = Server {
        host: "127.0.0.1".to_owned(),
        port: listener.local_addr().expect("a port").port(),
        is_tls: false,
    };
    let serving = tokio::spawn(serve(listener, answered));
    let speaking = Speaking::read(None, &[], Path::new(".")).expect("it is plain");
    let connection = Connection::dial(&server, &speaking).await;
    let connection = connection.expect("it is taken");
    let answer = connection.request_until("ask", b"?", EVERY, time).await;
    serving.abort();
    answer.map(|answer| answer.payload)
}

#[tokio::test]
async fn a_lost_request_is_repeated() {
    let far = Duration::from_secs(60);
    for answered in [1, 2, 4] {
        assert_eq!(asked(answered, far).await, Ok(b"ok".to_vec()));
    }
    assert_eq!(asked(usize::MAX, 3 * EVERY).await, Err(Failed::Silent));
}
