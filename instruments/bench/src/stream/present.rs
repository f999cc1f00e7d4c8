//! The output of `bench stream`: for each test netperf's own result block, one for each server, then the figures that
//! netperf has no place for.

use super::case::{Case, Test};
use super::goals::figure;
use super::netperf;
use super::options::StreamOptions;
use super::{Listening, document, network};
use crate::figures::Series;
use crate::frame::{Column, Section};
use crate::report::table::{known, number, thousands};
use crate::subject::{Endpoint, Socket};

/// The blocks of the measured server and of netserver; the floors are not servers of interest here.
pub(super) fn blocks(
    options: &StreamOptions,
    listening: &[Listening],
    section: &Section<Case>,
) -> Vec<String> {
    let mut lines = Vec::new();
    for (at, series) in section.series.iter().enumerate() {
        if at > 0 && series.subject != netperf::NAME {
            continue;
        }
        let of = (section.title(), series.subject.clone());
        let listening = listening.iter().find(|one| one.of == of);
        let block = listening.and_then(|one| block(options, &section.case, series, &one.endpoint));
        lines.extend(block.map(|block| format!("\n{block}\n")));
    }
    lines
}

/// netperf's block, of the medians.
fn block(
    options: &StreamOptions,
    case: &Case,
    series: &Series,
    endpoint: &Endpoint,
) -> Option<String> {
    let per_s = series.median(figure(case.test))?;
    let elapsed_s = series.median("elapsed_s").unwrap_or(0.0);
    let send = series.median("send_buffer_bytes").unwrap_or(0.0);
    let receive = series.median("receive_buffer_bytes").unwrap_or(0.0);
    let socket = match case.socket {
        Socket::Tcp => "TCP",
        Socket::Unix => "UDS",
    };
    let test = match case.test {
        Test::RequestResponse => "REQUEST/RESPONSE",
        Test::Stream => "STREAM",
        Test::ConnectRequestResponse => "Connect/Request/Response",
        Test::Maerts => "MAERTS",
    };
    let to = match endpoint {
        Endpoint::Tcp(address) => {
            let family = if address.is_ipv6() { 6 } else { 4 };
            let family = if family == 4 { "AF_INET" } else { "AF_INET6" };
            format!("{} () port {} {family}", address.ip(), address.port())
        }
        Endpoint::Unix(path) => path.display().to_string(),
    };
    let control = match series.subject == netperf::NAME {
        true => "",
        false => " : no control",
    };
    let title = format!("{socket} {test} TEST to {to}{control} : {}", series.subject);
    let request = options.request_bytes;
    Some(match case.test.is_transactional() {
        true => format!(
            "{title}\n\
             Local /Remote\n\
             Socket Size   Request  Resp.   Elapsed  Trans.\n\
             Send   Recv   Size     Size    Time     Rate\n\
             bytes  Bytes  bytes    bytes   secs.    per sec\n\
             \n\
             {send:<6} {receive:<6} {request:<8} {request:<7} {elapsed_s:<8.2} {per_s:.2}\n\
             0      0"
        ),
        false => format!(
            "{title}\n\
             Recv   Send    Send\n\
             Socket Socket  Message  Elapsed\n\
             Size   Size    Size     Time     Throughput\n\
             bytes  bytes   bytes    secs.    10^6bits/sec\n\
             \n\
             {:>6} {send:>6} {:>6}    {elapsed_s:<8.2} {per_s:.2}",
            // netperf has the remote buffer here, which is unknown without a control connection.
            if case.test == Test::Maerts {
                receive
            } else {
                0.0
            },
            options.send_bytes,
        ),
    })
}

pub(super) fn columns(case: &Case) -> Vec<Column> {
    let rate = figure(case.test);
    match case.test.is_transactional() {
        true => vec![
            Column::median("transactions", "transactions", thousands),
            Column::spread("per s", rate, thousands),
            Column::spread("p50 µs", "rtt_p50_us", number),
            Column::median("p99 µs", "rtt_p99_us", number),
            Column::median("max µs", "rtt_max_us", number),
            Column::spread("server CPU µs", "server_cpu_us_per_transaction", number),
            Column::median("driver CPU µs", "driver_cpu_us_per_transaction", number),
            Column::over_floor("÷ floor", rate),
        ],
        false => vec![
            Column::median("MiB", "bytes", |bytes| thousands(bytes / 1_048_576.0)),
            Column::rate("10^6 bits/s", rate, thousands),
            Column::spread("server CPU ns/byte", "server_cpu_ns_per_byte", nanoseconds),
            Column::median("driver CPU ns/byte", "driver_cpu_ns_per_byte", nanoseconds),
            Column::median("server busy", "server_busy_cores", number),
            Column::over_floor("÷ floor", rate),
        ],
    }
}

fn nanoseconds(value: f64) -> String {
    format!("{value:.3}")
}

pub(super) fn below(options: &StreamOptions, section: &Section<Case>) -> Vec<String> {
    let case = &section.case;
    let mut lines: Vec<String> = case
        .what_counts()
        .map(|what| format!("  {what}"))
        .into_iter()
        .collect();
    lines.push(
        "  floor: an epoll server that does the same system calls and nothing else; beside it one \
         that blocks on one connection"
            .to_owned(),
    );
    let own = section.own();
    let reached = own.and_then(|own| own.median(figure(case.test)));
    let unit = match case.test.is_transactional() {
        true => "per s",
        false => "10^6 bits/s",
    };
    let document = super::document_of(options, case).into_iter();
    let document = document.map(|document::Figure { server, per_s }| {
        let ratio = known(reached.map(|reached| reached / per_s), number);
        format!(
            "{server} {} {unit}, this is {ratio} × that",
            thousands(per_s)
        )
    });
    let document: Vec<String> = document.collect();
    lines.push(match document.is_empty() {
        true => "  document: not given".to_owned(),
        false => format!(
            "  document, {}, {}: {}",
            network(options).map_or("", document::Network::name),
            document::HARDWARE,
            document.join("; ")
        ),
    });
    lines.extend(section.crowd());
    lines
}
