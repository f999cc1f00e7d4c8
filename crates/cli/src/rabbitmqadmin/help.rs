//! The help texts.

use super::objects::{Acted, CLOSED, DECLARED, DELETED, GET, LISTED, PUBLISH, PURGED, SHOWN};

pub(super) const OPTIONS: &str = "\
Usage
=====
  rabbitmqadmin [options] subcommand

Options
=======
  -h, --help                 Show this text
  -c, --config FILE          Read options of a node from this file; by default ~/.rabbitmqadmin.conf
  -N, --node NAME            Use this section of the file; by default `default`
  -H, --host HOST            Host of the management API; by default localhost
  -P, --port PORT            Port of the management API; by default 15672
      --path-prefix PATH     Path in front of /api
  -V, --vhost VHOST          Vhost; by default all for list, / for other verbs
  -u, --username NAME        User; by default guest
  -p, --password PASSWORD    Password; by default guest
  -U, --base-uri URI         Scheme, login, host and port in one
  -q, --quiet                Print no messages of success and no heads of TSV
  -s, --ssl                  Connect by TLS
      --ssl-key-file FILE    Private key of the client, in PEM
      --ssl-cert-file FILE   Certificate of the client, in PEM
      --ssl-ca-cert-file FILE
                             Certificates of authorities to trust, in PEM
  -k, --ssl-insecure         Check no certificate
  -t, --request-timeout SECONDS
                             Maximum time for an answer; by default 120
  -f, --format FORMAT        Format of lists: raw_json, pretty_json, tsv, long, table, kvp, bash
  -S, --sort COLUMN          Sort a list by this column
  -R, --sort-reverse         Reverse the order
  -d, --depth NUMBER         Show nested objects down to this depth
      --version              Print the version

`rabbitmqadmin help subcommands` lists the subcommands, `rabbitmqadmin help config` describes the file.";

pub(super) const FILE: &str = "\
Usage
=====
  rabbitmqadmin [options] subcommand

Configuration File
==================
  [NAME]
  hostname = broker.example
  port = 15671
  username = ada
  password = secret
  vhost = /            # of list, declare and delete
  declare_vhost = /    # of declare and delete alone
  ssl = True

Each option but `--help` and `--version` may be a key: its long name, with _ for -. `--host` is the key
`hostname`. `rabbitmqadmin -c FILE -N NAME …` uses the section NAME.";

/// The verbs with their arguments.
pub(super) fn subcommands() -> String {
    let mut text =
        "Usage\n=====\n  rabbitmqadmin [options] subcommand\n\nSubcommands\n===========\n"
            .to_owned();
    for (verb, known) in [("list", &LISTED[..]), ("show", &SHOWN[..])] {
        for listed in known {
            text.push_str(&format!("  {verb} {} [<column>...]\n", listed.name));
        }
    }
    for (verb, known) in [
        ("declare ", &DECLARED[..]),
        ("delete ", &DELETED[..]),
        ("close ", &CLOSED[..]),
        ("purge ", &PURGED[..]),
        ("", &[PUBLISH, GET][..]),
    ] {
        for acted in known {
            text.push_str(&format!("  {verb}{}\n", with_arguments(acted)));
        }
    }
    text.push_str("  export <file>\n  import <file>\n\n");
    text.push_str("`publish` without payload reads standard input. `get` with payload_file writes the payload there.");
    text
}

fn with_arguments(acted: &Acted) -> String {
    let mut text = acted.name.to_owned();
    for name in acted.required {
        text.push_str(&format!(" {}=...", name.replace('|', "=... OR ")));
    }
    if !acted.optional.is_empty() {
        let names = acted.optional.iter().map(|(name, _)| format!("{name}=..."));
        text.push_str(&format!(" [{}]", names.collect::<Vec<_>>().join(" ")));
    }
    text
}
