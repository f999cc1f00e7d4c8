//! Entries of definitions: users, permissions, policies, limits, parameters.

use std::collections::BTreeSet;
use std::sync::Arc;

use crosstie_config::{DefinedSetting, Definitions, SettingKind, Skipped};
use crosstie_metadata::{
    Change, Entry, Layers, Metadata, NewPassword, Origin, PolicyKind, Refusal, RefusalKind,
    VhostAbout,
};
use crosstie_queues::policy::is_without_effect;

use crate::identity::CLUSTER_NAME;

/// Global parameters by which clusters are told apart. A broker keeps its own.
const IDENTITY: [&str; 3] = [CLUSTER_NAME, "cluster_tags", "internal_cluster_id"];

/// Adds the entries of a definitions file to the configuration's. Returns those that are refused, with RabbitMQ's text,
/// and keys of policies that have no effect. Of several with one name the last counts.
pub(crate) fn add(layers: &mut Layers, definitions: &Definitions) -> Vec<Skipped> {
    let mut skipped = Vec::new();
    for setting in &definitions.settings {
        match change_of(setting) {
            Ok(change) => {
                skipped.extend(without_effect(&change));
                layers.add(change, Origin::Configured("amqp.definitions"));
            }
            Err(refusal) => skipped.push(Skipped {
                what: setting.kind.describe(&setting.vhost, &setting.name),
                why: on_one_line(&refusal.to_string()),
                is_wider: is_restriction(setting.kind),
            }),
        }
    }
    skipped
}

/// The changes that bring about the entries of definitions, where they are not so already.
pub(super) fn changes(
    definitions: &Definitions,
    metadata: &Metadata,
    skipped: &mut Vec<Skipped>,
) -> Result<Vec<Change>, Refusal> {
    check_users(definitions, metadata)?;
    let vhosts = definitions.vhosts.iter();
    let vhosts = vhosts.filter(|vhost| !metadata.has_vhost(&vhost.name));
    let mut changes: Vec<_> = vhosts
        .map(|vhost| Change::PutVhost {
            name: vhost.name.as_str().into(),
            about: VhostAbout::default(),
            by: None,
            tracing: None,
        })
        .collect();
    for setting in &definitions.settings {
        let change = change_of(setting).map_err(|refusal| in_place(refusal, setting))?;
        let change = keep_password(change, definitions, metadata);
        skipped.extend(without_effect(&change));
        if metadata.has(&change) {
            continue;
        }
        skipped.extend(without_password(&change));
        if setting.kind == SettingKind::GlobalParameter && IDENTITY.contains(&&*setting.name) {
            skipped.push(Skipped {
                what: setting.kind.describe("", &setting.name),
                why: "a broker keeps its own".to_owned(),
                is_wider: false,
            });
            continue;
        }
        changes.push(change);
    }
    Ok(changes)
}

/// A user whose password the file leaves out keeps the present one.
fn keep_password(mut change: Change, definitions: &Definitions, metadata: &Metadata) -> Change {
    if let Change::PutUser { name, user } = &mut change
        && user.password.is_absent()
        && definitions
            .without_passwords
            .iter()
            .any(|left_out| **left_out == **name)
        && let Some(hash) = metadata.user(name).and_then(|found| found.password.clone())
    {
        user.password = NewPassword::Hash(hash);
    }
    change
}

/// A user that cannot log in by a password afterwards.
fn without_password(change: &Change) -> Option<Skipped> {
    match change {
        Change::PutUser { name, user } if user.password.is_absent() => Some(Skipped {
            what: format!("password of user '{name}'"),
            why: "the file has none: the user cannot log in by a password".to_owned(),
            is_wider: false,
        }),
        _ => None,
    }
}

/// Checks that each user that the file names is in the file, or in the broker.
fn check_users(definitions: &Definitions, metadata: &Metadata) -> Result<(), Refusal> {
    let settings = definitions.settings.iter();
    let defined = settings.filter(|setting| setting.kind == SettingKind::User);
    let defined: BTreeSet<&str> = defined.map(|user| user.name.as_str()).collect();
    let mut named = definitions.settings.iter().filter(|setting| {
        matches!(
            setting.kind,
            SettingKind::Permission | SettingKind::TopicPermission | SettingKind::UserLimits
        )
    });
    let absent = named.find(|setting| {
        let name = setting.name.as_str();
        !defined.contains(name) && metadata.user(name).is_none()
    });
    match absent {
        None => Ok(()),
        Some(setting) => Err(invalid(format!("no_such_user: {}", setting.name))),
    }
}

fn change_of(setting: &DefinedSetting) -> Result<Change, Refusal> {
    let name = || Arc::<str>::from(setting.name.as_str());
    let vhost = || Arc::<str>::from(setting.vhost.as_str());
    let policy = |kind| Entry::Policy {
        kind,
        vhost: vhost(),
        name: name(),
    };
    let entry = match setting.kind {
        SettingKind::GlobalParameter => Entry::GlobalParameter(name()),
        SettingKind::OperatorPolicy => policy(PolicyKind::Operator),
        SettingKind::Permission => Entry::Permission {
            vhost: vhost(),
            user: name(),
        },
        SettingKind::Policy => policy(PolicyKind::User),
        SettingKind::TopicPermission => Entry::TopicPermission {
            vhost: vhost(),
            user: name(),
            exchange: None,
        },
        SettingKind::User => Entry::User(name()),
        SettingKind::UserLimits => Entry::UserLimits {
            user: name(),
            name: None,
        },
        SettingKind::Vhost => Entry::Vhost(vhost()),
        SettingKind::VhostLimits => Entry::VhostLimits {
            vhost: vhost(),
            name: None,
        },
    };
    Change::put(entry, &setting.body, None)
}

/// RabbitMQ appends the place to its text about a policy.
fn in_place(refusal: Refusal, setting: &DefinedSetting) -> Refusal {
    let DefinedSetting {
        kind, vhost, name, ..
    } = setting;
    let reason = match kind {
        SettingKind::Policy | SettingKind::OperatorPolicy => {
            format!("{} ({vhost}/{name})", refusal.reason)
        }
        // RabbitMQ's word.
        SettingKind::User if refusal.reason == "tags_not_present" => refusal.reason,
        _ => format!("{}: {}", kind.describe(vhost, name), refusal.reason),
    };
    Refusal::new(refusal.kind, reason)
}

fn without_effect(change: &Change) -> Vec<Skipped> {
    let Change::PutPolicy {
        kind,
        vhost,
        policy,
    } = change
    else {
        return Vec::new();
    };
    let kind = match kind {
        PolicyKind::Operator => SettingKind::OperatorPolicy,
        PolicyKind::User => SettingKind::Policy,
    };
    let what = kind.describe(vhost, policy.name());
    let unused = policy.definition().iter().map(|(key, _)| key);
    let unused = unused.filter(|key| is_without_effect(key));
    let unused = unused.map(|key| Skipped {
        what: format!("'{key}' of {what}"),
        why: "it is about the place or form of storage, and has no effect here".into(),
        is_wider: false,
    });
    unused.collect()
}

/// Whether a user may do more without such an entry.
fn is_restriction(kind: SettingKind) -> bool {
    matches!(
        kind,
        SettingKind::OperatorPolicy
            | SettingKind::TopicPermission
            | SettingKind::UserLimits
            | SettingKind::VhostLimits
    )
}

pub(super) fn invalid(reason: String) -> Refusal {
    Refusal::new(RefusalKind::Invalid, reason)
}

/// RabbitMQ's text has a line for each fault, and a heading.
fn on_one_line(text: &str) -> String {
    let mut lines = text.lines().filter(|line| !line.is_empty());
    let heading = lines.next().unwrap_or_default();
    let faults: Vec<_> = lines.map(str::trim_start).collect();
    match faults.is_empty() {
        true => heading.to_owned(),
        false => format!("{heading}: {}", faults.join("; ")),
    }
}
