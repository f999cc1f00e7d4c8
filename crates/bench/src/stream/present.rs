//! What `bench stream` prints: for each test netperf's own result block, one for each server, then
//! what netperf has no place for.

use std::io::{self, Write};

use super::Bench;
use super::case::{Case, Test};
use super::document;
use super::goals::{figure, verdicts};
use super::netperf;
use super::section::{Section, network};
use crate::figures::Series;
use crate::report::table::{known, number, spread, table, thousands};
use crate::subject::case::Socket;
use crate::subject::target::Endpoint;

pub(super) fn print(out: &mut impl Write, bench: &Bench, sections: &[Section]) -> io::Result<()> {
    let options = &bench.options;
    writeln!(out, "Machine: {}", bench.machine.line())?;
    if let Some(network) = bench.network.description() {
        writeln!(out, "Network: {network}")?;
    }
    writeln!(
        out,
        "Load: one connection at a time, {} byte(s) each way, sends of {} bytes; {} round(s) of \
         {} s after {} s; median over rounds, below it smallest–largest",
        options.request_bytes,
        thousands(options.send_bytes as f64),
        options.runs,
        options.seconds,
        options.warm_up_seconds,
    )?;
    for section in sections {
        print_section(out, bench, section)?;
    }
    if options.netserver && bench.netperf.is_none() {
        writeln!(out, "\nnetserver: absent. {}", netperf::INSTALLATION)?;
    }
    if options.netserver && options.network.link.is_some() {
        writeln!(
            out,
            "\nnetserver: not over a link, which its data connections would go around"
        )?;
    }
    Ok(())
}

fn print_section(out: &mut impl Write, bench: &Bench, section: &Section) -> io::Result<()> {
    let Section {
        case,
        placement,
        measured,
        endpoints,
    } = section;
    writeln!(out, "\n{case} · {placement}")?;
    for (at, (series, endpoint)) in measured.iter().zip(endpoints).enumerate() {
        // The floors are nobody's servers; they are in the table.
        if (at == 0 || series.subject == netperf::NAME)
            && let Some(block) = block(bench, case, series, endpoint)
        {
            writeln!(out, "\n{block}")?;
        }
    }
    let mut rows = match case.test.is_transactional() {
        true => table(&TRANSACTIONS),
        false => table(&THROUGHPUT),
    };
    for series in measured {
        rows.add_row(match case.test.is_transactional() {
            true => transactions(section, series),
            false => throughput(bench, section, series),
        });
    }
    writeln!(out, "\n{}", rows.trim_fmt())?;
    if let Some(what) = case.what_counts() {
        writeln!(out, "  {what}")?;
    }
    writeln!(
        out,
        "  floor: an epoll server that does the same system calls and nothing else; beside it one \
         that blocks on one connection"
    )?;
    for series in measured {
        let why = series.why();
        if !why.is_empty() {
            writeln!(out, "  not counted: {}: {why}", series.subject)?;
        }
    }
    print_comparisons(out, bench, section)
}

/// netperf's block, of the medians.
fn block(bench: &Bench, case: &Case, series: &Series, endpoint: &Endpoint) -> Option<String> {
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
    let request = bench.options.request_bytes;
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
            // netperf has the remote one here, which without control nobody knows.
            if case.test == Test::Maerts {
                receive
            } else {
                0.0
            },
            bench.options.send_bytes,
        ),
    })
}

const TRANSACTIONS: [&str; 9] = [
    "subject",
    "transactions",
    "per s",
    "p50 µs",
    "p99 µs",
    "max µs",
    "server CPU µs",
    "driver CPU µs",
    "÷ floor",
];

fn transactions(section: &Section, series: &Series) -> Vec<String> {
    let median = |name| known(series.median(name), number);
    vec![
        series.subject.clone(),
        known(series.median("transactions"), thousands),
        spread(series.spread("transactions_per_s"), thousands),
        spread(series.spread("rtt_p50_us"), number),
        median("rtt_p99_us"),
        median("rtt_max_us"),
        spread(series.spread("server_cpu_us_per_transaction"), number),
        median("driver_cpu_us_per_transaction"),
        spread(section.over_floor(series), number),
    ]
}

const THROUGHPUT: [&str; 7] = [
    "subject",
    "MiB",
    "10^6 bits/s",
    "server CPU ns/byte",
    "driver CPU ns/byte",
    "server busy",
    "÷ floor",
];

fn throughput(bench: &Bench, section: &Section, series: &Series) -> Vec<String> {
    let mut rate = spread(series.spread("megabits_per_s"), thousands);
    if section.driver_bound(series) {
        rate += match bench.options.network.link {
            Some(_) => "\nlink-bound",
            None => "\ndriver-bound",
        };
    }
    let mebibytes = series.median("bytes").map(|bytes| bytes / 1_048_576.0);
    vec![
        series.subject.clone(),
        known(mebibytes, thousands),
        rate,
        spread(series.spread("server_cpu_ns_per_byte"), nanoseconds),
        known(series.median("driver_cpu_ns_per_byte"), nanoseconds),
        known(series.median("server_busy_cores"), number),
        spread(section.over_floor(series), number),
    ]
}

fn nanoseconds(value: f64) -> String {
    format!("{value:.3}")
}

fn print_comparisons(out: &mut impl Write, bench: &Bench, section: &Section) -> io::Result<()> {
    let Some((own, others)) = section.measured.split_first() else {
        return Ok(());
    };
    let case = &section.case;
    let reached = own.median(figure(case.test));
    let unit = match case.test.is_transactional() {
        true => "per s",
        false => "10^6 bits/s",
    };
    let document: Vec<String> = section
        .document(bench)
        .iter()
        .map(|document::Figure { server, per_s }| {
            let ratio = known(reached.map(|reached| reached / per_s), number);
            format!(
                "{server} {} {unit}, this is {ratio} × that",
                thousands(*per_s)
            )
        })
        .collect();
    match document.is_empty() {
        true => writeln!(out, "  document: not given")?,
        false => writeln!(
            out,
            "  document, {}, {}: {}",
            network(bench).map_or("", document::Network::name),
            document::HARDWARE,
            document.join("; ")
        )?,
    }
    let crowd = section
        .measured
        .iter()
        .filter_map(|series| series.median("foreign_busy_cores"));
    let crowd = crowd.fold(0.0, f64::max);
    writeln!(
        out,
        "  the rest of the machine: at most {} cores busy",
        known(Some(crowd), number)
    )?;
    if own.subject != "crosstie" || bench.network.description().is_some() {
        return Ok(());
    }
    let is_bound = section.driver_bound(own)
        || section
            .floor()
            .is_some_and(|floor| section.driver_bound(floor));
    for verdict in verdicts(case, section.placement, own, others, is_bound) {
        writeln!(out, "  goal: {verdict}")?;
    }
    Ok(())
}
