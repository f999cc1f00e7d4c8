//! The counters of a vhost: `counted queue q published=3 sent=2`, of an exchange, a channel, or all queues of a type.

use crosstie_queues::{ChannelTally, Deliveries, QueueKind};
use crosstie_script::pairs;

use super::Player;

pub(super) fn expect(player: &mut Player, rest: &str) -> Result<(), String> {
    let (what, rest) = rest.split_once(' ').unwrap_or((rest, ""));
    let (name, rest) = rest.split_once(' ').unwrap_or((rest, ""));
    let found = match what {
        "queue" => of_queue(player, name),
        "exchange" => of_exchange(player, name),
        "channel" => of_channel(player, name),
        "type" => of_type(player, name),
        _ => {
            return Err(format!(
                "expected queue, exchange, channel or type, got {what}"
            ));
        }
    };
    let found = found.ok_or_else(|| format!("no {what} {name}"))?;
    let found: Vec<_> = found.into_iter().filter(|(_, count)| *count > 0).collect();
    let shown: Vec<_> = found
        .iter()
        .map(|(name, n)| format!("{name}={n}"))
        .collect();
    let expected: Vec<_> = pairs(rest).map(|(name, n)| format!("{name}={n}")).collect();
    match shown == expected {
        true => Ok(()),
        false => Err(format!("{what} {name} has counted {}", shown.join(" "))),
    }
}

type Counted = Vec<(&'static str, u64)>;

fn of_queue(player: &mut Player, name: &str) -> Option<Counted> {
    let mut queues = player.vhost().queues();
    let tally = queues.find(|queue| *queue.name == *name)?.tally;
    Some([vec![("published", tally.published)], deliveries(&tally.out)].concat())
}

fn of_exchange(player: &mut Player, name: &str) -> Option<Counted> {
    let name = name.trim_matches('-');
    let tally = player.vhost().exchange_view(name)?.tally;
    Some(vec![
        ("published", tally.published),
        ("routed", tally.routed),
    ])
}

fn of_channel(player: &mut Player, name: &str) -> Option<Counted> {
    let number = name.get(1..).filter(|number| !number.is_empty());
    let number = number.map_or(Ok(1), str::parse::<u16>).ok()?;
    let connection = player.connections.get(&name.chars().next()?).copied()?;
    let mut channels = player.vhost().channels(connection);
    let ChannelTally {
        published,
        confirmed,
        returned,
        dropped,
        out,
    } = channels.find(|channel| channel.number == number)?.tally;
    let own = vec![
        ("published", published),
        ("confirmed", confirmed),
        ("returned", returned),
        ("dropped", dropped),
    ];
    Some([own, deliveries(&out)].concat())
}

fn of_type(player: &mut Player, name: &str) -> Option<Counted> {
    let kind = QueueKind::ALL
        .iter()
        .position(|kind| kind.module() == name)?;
    Some(deliveries(&player.vhost().counts().deliveries[kind]))
}

fn deliveries(out: &Deliveries) -> Counted {
    vec![
        ("sent", out.sent),
        ("to-ack", out.sent_to_ack),
        ("got", out.got),
        ("got-no-ack", out.got_no_ack),
        ("empty", out.got_empty),
        ("redelivered", out.redelivered),
        ("acknowledged", out.acknowledged),
    ]
}
