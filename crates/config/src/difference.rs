//! The difference between two configurations, key by key, with the effect of each change on a running node.
//!
//! The walk follows the tables: both trees hold what these allow, and each key states its effect. A key that is given
//! with its default equals a key that is not given. Items of a list are matched by their ids or names, others by
//! position. The walk also makes the configuration that applies only the changes that need no restart.

mod change;
mod identity;
mod walk;

pub use self::change::{Change, ChangeKind};
use crate::build;
use crate::catalogue::{CONFIG, Effect};
use crate::checked::Tree;
use crate::files::NamedFiles;
use crate::model::Config;
use crate::problem::{Problem, failed};
use crate::view::View;

/// The difference between a configuration and a newer one.
#[derive(Clone, Debug)]
pub struct Difference {
    pub changes: Vec<Change>,
    /// The newer configuration, with the older values of what needs a restart.
    partial: Tree,
}

impl Difference {
    /// The changes from `old` to `new`, in the order of the tables.
    pub fn between(old: &Tree, new: &Tree) -> Self {
        let mut changes = Vec::new();
        let root = walk::merged(&old.root, &new.root, &CONFIG, &mut changes);
        // Its variables decide what children inherit, so those of both are withheld.
        let secrets = old.secrets.union(&new.secrets).cloned().collect();
        let partial = Tree { root, secrets };
        Self { changes, partial }
    }

    /// The changes that need a restart.
    pub fn restarts(&self) -> impl Iterator<Item = &Change> {
        let changes = self.changes.iter();
        changes.filter(|change| change.effect == Effect::Restart)
    }

    /// The configuration with all changes but those that need a restart; or the reasons why it is none.
    pub fn partial(&self) -> Result<(Config, Tree), Vec<String>> {
        let mut problems = Vec::new();
        let (config, _) = self.partial.build(&mut problems);
        if !failed(&problems) {
            return Ok((config, self.partial.clone()));
        }
        let errors = problems.into_iter().filter(Problem::is_error);
        Err(errors.map(|problem| problem.message).collect())
    }
}

impl Tree {
    pub(crate) fn build(&self, problems: &mut Vec<Problem>) -> (Config, Vec<NamedFiles>) {
        let file = View::new(&self.root, &CONFIG);
        build::build(file, self.secrets.clone(), problems)
    }
}
