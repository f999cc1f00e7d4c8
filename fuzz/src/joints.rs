//! What joints translate, of any bytes: it must not panic, and what it makes is read as the same.

use crosstie_joints::{
    Arguments, Body, Exceptions, Reply, RequestText, read_reply, read_request, uri_part,
};

/// The body of a message in each form: its arguments, written in that form, are the same arguments.
pub fn bodies(data: &[u8]) {
    for form in [Body::Json, Body::Wamp, Body::Notification, Body::Bytes] {
        let Ok(arguments) = form.read(data, None) else {
            continue;
        };
        let again = Arguments::read(&arguments.args_json(), &arguments.kwargs_json());
        assert_eq!(again.expect("what was written"), arguments);
        let Ok(written) = form.write(arguments.clone()) else {
            continue;
        };
        let read = form.read(&written.body, written.content_encoding);
        let read = read.expect("what was written");
        match form {
            // What a notification has to have and this had not is there now.
            Body::Notification => {
                for (name, value) in &arguments.kwargs {
                    assert_eq!(read.kwargs.get(name), Some(value));
                }
            }
            _ => assert_eq!(read, arguments),
        }
    }
}

/// A request or a reply: a URI and arguments that WAMP takes, and back.
pub fn calls(data: &[u8]) {
    if let Ok(request) = read_request(data) {
        let mut written = Vec::new();
        RequestText::new(&request.call).write_call("0", "q", "1", &mut written);
        let again = read_request(&written).expect("what was written");
        assert_eq!(again.call, request.call);
        check_uri(&uri_part(&request.call.method));
    }
    let Ok(reply) = read_reply(data) else { return };
    let mut written = Vec::new();
    reply.write("1", &mut written);
    let again: Reply = read_reply(&written).expect("what was written");
    assert_eq!(again.is_ending, reply.is_ending);
    if let Err(failure) = reply.outcome {
        let exceptions = Exceptions::default();
        let (uri, arguments) = exceptions.to_wamp(&failure);
        check_uri(&uri);
        let back = exceptions.to_oslo(&uri, arguments);
        let (back, _) = exceptions.to_wamp(&back);
        assert_eq!(back, uri);
    }
}

fn check_uri(uri: &str) {
    assert!(!uri.contains(|c: char| c.is_whitespace() || c.is_control() || c == '#'));
    assert!(uri.split('.').all(|component| !component.is_empty()));
}

/// Bodies as others write them.
pub fn body_seeds() -> Vec<Vec<u8>> {
    let seeds: [&[u8]; 5] = [
        br#"{"uuid": "1", "hostname": "celery@a", "timestamp": 1700000000.5, "type": "task-sent"}"#,
        br#"[1, "\u0000AP9h", null, {"a": [true]}]"#,
        br#"{"args": [1, "a"], "kwargs": {"b": {}}}"#,
        br#"{"oslo.version": "2.0", "oslo.message": "{\"event_type\": \"compute.end\", \"payload\": {\"a\": 1}}"}"#,
        b"\x00\xff",
    ];
    seeds.map(<[u8]>::to_vec).to_vec()
}

/// Requests and replies as oslo.messaging writes them.
pub fn call_seeds() -> Vec<Vec<u8>> {
    let seeds: [&[u8]; 4] = [
        br#"{"oslo.version": "2.0", "oslo.message": "{\"method\": \"echo\", \"args\": {\"a\": \"1\"}, \"namespace\": \"n\", \"version\": \"1.1\", \"_msg_id\": \"0123\", \"_reply_q\": \"reply_4567\", \"_timeout\": null, \"_unique_id\": \"89ab\", \"_context_user\": \"u\"}"}"#,
        br#"{"method": "echo", "args": {}}"#,
        br#"{"oslo.version": "2.0", "oslo.message": "{\"result\": {\"a\": 1}, \"failure\": null, \"ending\": true, \"_msg_id\": \"0123\", \"_unique_id\": \"89ab\"}"}"#,
        br#"{"result": null, "failure": "{\"class\": \"ValueError\", \"module\": \"builtins\", \"message\": \"bad\", \"tb\": [\"l\\n\"], \"args\": [\"bad\"], \"kwargs\": {}}", "ending": true}"#,
    ];
    seeds.map(<[u8]>::to_vec).to_vec()
}
