//! Finds a folder inside a Python package, by asking Python once.

use std::io;
use std::path::Path;
use std::time::Duration;

use crate::programs::{Executable, Hosting, Program};

/// Timeout for Python to import a package.
const WITHIN: Duration = Duration::from_secs(60);

/// Prints the path of a package's folder, or exits with an error. It searches where the worker's components do.
const QUESTION: &str = "\
import importlib.util, os, sys
package, folder, *paths = sys.argv[1:]
sys.path[:0] = paths
try:
    found = importlib.util.find_spec(package)
except Exception as error:
    sys.exit(f'package {package!r} cannot be imported: {type(error).__name__}: {error}')
if found is None:
    sys.exit(f'there is no package {package!r} in {os.pathsep.join(sys.path)}')
places = found.submodule_search_locations
if places is None:
    sys.exit(f'{package!r} is a module, and no package with folders')
within = [os.path.realpath(place) for place in places]
folders = [os.path.realpath(os.path.join(place, folder)) for place in within]
for place, path in zip(within, folders):
    if os.path.isdir(path) and os.path.commonpath([place, path]) == place:
        print(path)
        sys.exit()
sys.exit(f'package {package!r} has no folder {folder!r} in {os.pathsep.join(within)}')
";

/// The path of a package's folder.
pub(super) fn folder(
    package: &str,
    resource: &str,
    directory: &Path,
    hosting: &Hosting,
) -> io::Result<String> {
    let options = &hosting.options;
    let mut arguments = ["-c", QUESTION, package, resource].map(Into::into).to_vec();
    let paths = options.pythonpath.iter();
    arguments.extend(paths.map(|path| directory.join(path).into_os_string()));
    let program = Program {
        executable: Executable::Python(options.python.clone()),
        arguments,
        directory: directory.to_owned(),
        environment: options.environment.clone(),
        variables: Vec::new(),
        cpu_affinity: Vec::new(),
        title: "Python",
        stdin: None,
        stdout: None,
    };
    let said = hosting.programs()?.ask(program, WITHIN)?;
    Ok(said.trim_end_matches('\n').to_owned())
}
