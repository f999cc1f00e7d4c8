//! Real children, as those of a node.
//!
//! This is a program of its own rather than a usual test, for two reasons: children start as this very program with a
//! hidden subcommand, and a child takes the end of the thread that started it for its node's end.
#![expect(clippy::print_stdout, reason = "it reports as the usual tests do")]

use std::ffi::OsString;
use std::future::Future;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::fd::AsFd;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::pin::Pin;
use std::process::{ExitCode, Stdio};
use std::sync::Arc;
use std::time::{Duration, SystemTime};
use std::{env, fs};

use crosstie_config::{ChildEnvironment, Inherit};
use crosstie_node::process::{
    CHILD_GUARD, Child, Children, Command, EXEC_CHILD, Ended, LINE_BYTES_MAX, LINES_PER_SECOND_MAX,
    Level, Line, Output, Stdin, Watch, child_guard, exec_child, output,
};
use rustix::process::{Pid, Signal, kill_process};
use tokio::io::AsyncBufReadExt;
use tokio::net::unix::pipe;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

/// Timeout of all waits.
const PATIENCE: Duration = Duration::from_secs(60);
const A_NODE: &str = "a-node";

type Test = fn() -> Pin<Box<dyn Future<Output = ()>>>;

macro_rules! tests {
    ($($name:ident),* $(,)?) => {
        const TESTS: &[(&str, Test)] = &[$((stringify!($name), || Box::pin($name()))),*];
    };
}

tests![
    lines_and_their_levels,
    output_is_dropped_on_request,
    a_flood_of_lines_is_bounded,
    a_line_without_end_is_bounded,
    sigterm_can_be_refused_and_sigkill_cannot,
    processes_left_in_the_group_are_killed,
    orphans_in_other_groups_end_with_the_child,
    orphans_without_the_mark_end_with_the_node,
    ended_orphans_are_reaped,
    a_dropped_child_is_killed,
    a_child_that_cannot_be_started,
    a_program_that_cannot_be_run,
    cores,
    variables,
    input,
    streams_given_by_the_caller,
    a_child_that_is_asked,
    no_descriptor_is_inherited,
    a_killed_nodes_children_end,
    a_killed_node_without_guard_ends_its_children,
    a_killed_guard_is_replaced,
    changes_are_seen,
    changes_before_the_watch_are_known,
];

fn main() -> ExitCode {
    let arguments: Vec<_> = env::args_os().skip(1).collect();
    match arguments.first().and_then(|argument| argument.to_str()) {
        Some(EXEC_CHILD) => return exec_child(&arguments[1..]),
        Some(CHILD_GUARD) => return child_guard(),
        Some(A_NODE) => return a_node(&arguments[1..]),
        _ => {}
    }
    // Names, or parts of them, as in usual tests; their options are not needed here.
    let wanted: Vec<_> = arguments
        .iter()
        .filter_map(|argument| argument.to_str())
        .filter(|argument| !argument.starts_with('-'))
        .collect();
    let is_wanted = |name: &str| wanted.is_empty() || wanted.iter().any(|part| name.contains(part));
    let (chosen, others): (Vec<_>, Vec<_>) = TESTS.iter().partition(|(name, _)| is_wanted(name));
    let failed = chosen
        .iter()
        .filter(|(name, test)| !passes(name, *test))
        .count();
    println!(
        "test result: {}. {} passed; {failed} failed; 0 ignored; 0 measured; {} filtered out",
        if failed == 0 { "ok" } else { "FAILED" },
        chosen.len() - failed,
        others.len()
    );
    ExitCode::from(u8::from(failed > 0))
}

fn passes(name: &str, test: Test) -> bool {
    let outcome = catch_unwind(AssertUnwindSafe(|| {
        wait_for(async { tokio::time::timeout(PATIENCE, test()).await }).expect("in time");
    }));
    let word = if outcome.is_ok() { "ok" } else { "FAILED" };
    println!("test {name} ... {word}");
    outcome.is_ok()
}

fn wait_for<T>(outcome: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    runtime.expect("a runtime").block_on(outcome)
}

fn children() -> Children {
    Children::new(env::current_exe().expect("this program"))
}

fn sh(script: &str) -> Command {
    let mut command = Command::new("sh", "/");
    command.arguments = vec!["-c".into(), script.into()];
    command
}

fn start(children: &Children, command: &Command) -> (Child, UnboundedReceiver<Line>) {
    let (sender, lines) = unbounded_channel();
    let give = move |line| drop(sender.send(line));
    let child = children.spawn(command, give).expect("a child");
    (child, lines)
}

/// Runs a child to its end.
async fn run(command: &Command) -> (Vec<Line>, Ended) {
    let children = children();
    let (mut child, mut lines) = start(&children, command);
    let ended = child.wait().await;
    let mut all = Vec::new();
    while let Ok(line) = lines.try_recv() {
        all.push(line);
    }
    (all, ended)
}

async fn texts(command: &Command) -> Vec<String> {
    let (lines, ended) = run(command).await;
    assert!(ended.is_success(), "{ended}: {lines:?}");
    lines.into_iter().map(|line| line.text).collect()
}

async fn next_text(lines: &mut UnboundedReceiver<Line>) -> String {
    lines.recv().await.expect("a line").text
}

fn process_id(text: &str) -> Pid {
    let number = text.trim().parse().ok().and_then(Pid::from_raw);
    number.unwrap_or_else(|| panic!("not a process id: {text}"))
}

/// Whether a process has ended; it may be a zombie that no process reaps.
fn is_over(pid: Pid) -> bool {
    let Ok(stat) = fs::read_to_string(format!("/proc/{pid}/stat")) else {
        return true;
    };
    stat.rsplit(") ")
        .next()
        .is_some_and(|rest| rest.starts_with(['Z', 'X']))
}

/// Holds a shell's script up until it is opened.
struct Gate(tempfile::TempDir);

impl Gate {
    fn new() -> Self {
        Self(tempfile::tempdir().expect("a directory"))
    }

    /// The command that waits.
    fn awaited(&self) -> String {
        let file = self.0.path().join("open");
        format!("until [ -e {} ]; do sleep 0.02; done", file.display())
    }

    fn open(&self) {
        fs::write(self.0.path().join("open"), "").expect("a file");
    }
}

async fn until(mut is_so: impl FnMut() -> bool) {
    while !is_so() {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

async fn lines_and_their_levels() {
    let (mut lines, ended) = run(&sh(
        "echo plain; echo '<3>bad' >&2; echo '<4>odd'; printf 'r\\303\\244w \\377\\n'; printf last",
    ))
    .await;
    assert!(ended.is_success());
    // The order in which the two streams are read is undefined.
    lines.sort_by_key(|line| line.level != Level::Error);
    let lines: Vec<_> = lines.iter().map(|l| (l.level, l.text.as_str())).collect();
    let expected = [
        (Level::Error, "bad"),
        (Level::Info, "plain"),
        (Level::Warn, "odd"),
        (Level::Info, "räw \u{fffd}"),
        (Level::Info, "last"),
    ];
    assert_eq!(lines, expected);
}

async fn streams_given_by_the_caller() {
    let (input_out, mut input) = std::io::pipe().expect("a pipe");
    let (mut output, output_in) = std::io::pipe().expect("a pipe");
    input.write_all(b"in").expect("room");
    drop(input);
    let mut command = sh("cat; echo told >&2");
    command.streams.stdin = Some(Arc::new(input_out.into()));
    command.streams.stdout = Some(Arc::new(output_in.into()));
    assert_eq!(texts(&command).await, ["told"]);
    drop(command);
    let mut said = String::new();
    output.read_to_string(&mut said).expect("an end");
    assert_eq!(said, "in");
}

async fn a_child_that_is_asked() {
    let executable = env::current_exe().expect("this program");
    let ask = |script: &str, within| {
        let said = output(&executable, &sh(script), within);
        said.map_err(|error| error.to_string())
    };
    assert_eq!(ask("echo said", PATIENCE), Ok("said\n".to_owned()));
    let refused = ask("echo first >&2; echo last >&2; exit 3", PATIENCE);
    let refused = refused.expect_err("no success");
    assert!(refused.ends_with("exit code 3: last"), "{refused}");
    let late = ask("sleep 1000", Duration::ZERO).expect_err("no end");
    assert!(late.ends_with("was not done within 0 s"), "{late}");
    let gone = output(&executable, &Command::new("/no/such", "/"), PATIENCE);
    assert!(gone.is_err());
}

async fn output_is_dropped_on_request() {
    let mut command = sh("echo out; echo err >&2; exit 7");
    (command.stdout, command.stderr) = (Output::Null, Output::Drop);
    let (lines, ended) = run(&command).await;
    assert_eq!(
        (lines, ended.to_string()),
        (Vec::new(), "exit code 7".to_owned())
    );
}

async fn a_flood_of_lines_is_bounded() {
    let children = children();
    let (mut child, mut lines) = start(&children, &Command::new("yes", "/"));
    let (mut passed, mut reports) = (0, 0);
    while reports < 2 {
        match lines.recv().await.expect("it does not end") {
            Line { text, .. } if text == "y" => passed += 1,
            Line {
                level: Level::Warn,
                text,
            } => {
                assert!(text.contains("lines left out"), "{text}");
                reports += 1;
            }
            other => panic!("{other:?}"),
        }
    }
    assert!(passed <= 2 * LINES_PER_SECOND_MAX, "{passed}");
    child.kill();
    assert_eq!(child.wait().await.signal, Some(9));
}

async fn a_line_without_end_is_bounded() {
    let lines = texts(&sh(
        "head -c 6000000 /dev/zero | tr '\\0' x; echo; echo next",
    ))
    .await;
    let lengths: Vec<_> = lines.iter().map(String::len).collect();
    assert!(
        lengths[0] > LINE_BYTES_MAX && lengths[0] < LINE_BYTES_MAX + 100,
        "{lengths:?}"
    );
    assert_eq!(lines[1..], ["next"]);
}

async fn sigterm_can_be_refused_and_sigkill_cannot() {
    let children = children();
    let (mut child, _lines) = start(&children, &sh("exec sleep 1000"));
    child.terminate();
    assert_eq!(child.wait().await.to_string(), "signal 15 (SIGTERM)");
    // The process is gone, and no other is signalled.
    child.terminate();
    child.kill();
    assert_eq!(child.wait().await.signal, Some(15));

    let script = "trap 'echo heard' TERM; echo ready; while :; do sleep 0.05; done";
    let (mut child, mut lines) = start(&children, &sh(script));
    assert_eq!(next_text(&mut lines).await, "ready");
    child.terminate();
    assert_eq!(next_text(&mut lines).await, "heard");
    child.kill();
    assert_eq!(child.wait().await.to_string(), "signal 9 (SIGKILL)");
}

async fn processes_left_in_the_group_are_killed() {
    let (lines, ended) = run(&sh("trap '' TERM; sleep 1000 & echo $!")).await;
    assert!(ended.is_success());
    let left = process_id(&lines[0].text);
    until(|| is_over(left)).await;
}

async fn orphans_in_other_groups_end_with_the_child() {
    // The first holds the pipe open; the others are orphaned only when their parents are killed.
    let gate = Gate::new();
    let script = "setsid sleep 1000 & echo $!; \
                  setsid sh -c 'sleep 1001 & echo $!; setsid sleep 1002 & echo $!; wait' & \
                  (setsid sleep 1003 & echo $!); ";
    let script = format!("{script}{}; exit 3", gate.awaited());
    let children = children();
    let (other, mut others) = start(&children, &sh("(setsid sleep 1004 & echo $!); sleep 1000"));
    let kept = process_id(&next_text(&mut others).await);
    let (mut child, mut lines) = start(&children, &sh(&script));
    let mut left = Vec::new();
    for _ in 0..4 {
        left.push(process_id(&next_text(&mut lines).await));
    }
    gate.open();
    assert_eq!(child.wait().await.code, Some(3));
    for each in left {
        until(|| is_over(each)).await;
    }
    assert!(!is_over(kept), "it is another child's");
    other.kill();
    until(|| is_over(kept)).await;
}

async fn orphans_without_the_mark_end_with_the_node() {
    let children = children();
    let gate = Gate::new();
    let script = format!("(setsid env -i sleep 1000 & echo $!); {}", gate.awaited());
    let (mut child, mut lines) = start(&children, &sh(&script));
    let left = process_id(&next_text(&mut lines).await);
    // By then it has a group of its own, and no environment.
    let arguments = format!("/proc/{}/cmdline", left.as_raw_nonzero());
    until(|| fs::read(&arguments).is_ok_and(|read| read.starts_with(b"sleep\0"))).await;
    gate.open();
    child.wait().await;
    assert!(!is_over(left), "whose it is cannot be told");
    drop(children);
    until(|| is_over(left)).await;
}

async fn ended_orphans_are_reaped() {
    let children = children();
    let script = "(setsid true & echo $!); sleep 1; (setsid true &); echo second; sleep 1000";
    let (_child, mut lines) = start(&children, &sh(script));
    let left = process_id(&next_text(&mut lines).await);
    assert_eq!(next_text(&mut lines).await, "second");
    until(|| !Path::new(&format!("/proc/{left}")).exists()).await;
}

async fn a_dropped_child_is_killed() {
    let children = children();
    let (child, _lines) = start(&children, &Command::new("yes", "/"));
    let id = process_id(&child.id().to_string());
    drop(child);
    until(|| is_over(id)).await;
}

async fn a_child_that_cannot_be_started() {
    let with = |change: fn(&mut Command)| {
        let mut command = sh("true");
        command.environment = ChildEnvironment {
            inherit: Inherit::None,
            variables: vec![("PATH".into(), "/bin".into())],
        };
        change(&mut command);
        children()
            .spawn(&command, drop)
            .err()
            .expect("no child")
            .to_string()
    };
    let text = with(|command| command.program = "no-such-program".into());
    assert!(
        text.starts_with("program 'no-such-program' not found on PATH '/bin:/"),
        "{text}"
    );
    let text = with(|command| command.program = "./no/such".into());
    assert_eq!(text, "program '/no/such' is not there");
    let text = with(|command| command.directory = "/no/such".into());
    assert_eq!(text, "working directory '/no/such' is not there");
    let text = with(|command| command.cpu_affinity = vec![100_000]);
    assert_eq!(text, "no core 100000: expected less than 1024");
    let text = with(|command| command.arguments = vec!["a\0b".into()]);
    assert!(text.contains("nul byte"), "{text}");
    let nowhere = Children::new("/no/such/crosstie".into());
    let text = nowhere
        .spawn(&sh("true"), drop)
        .err()
        .expect("no child")
        .to_string();
    assert!(text.contains("'/no/such/crosstie child-guard'"), "{text}");
}

async fn a_program_that_cannot_be_run() {
    let folder = tempfile::tempdir().expect("a folder");
    let script = folder.path().join("script");
    fs::write(&script, "#!/no/such/interpreter\n").expect("a file");
    executable(&script);
    let (lines, ended) = run(&Command::new(&script, "/")).await;
    assert_eq!(ended.code, Some(127));
    assert_eq!(lines[0].level, Level::Error);
    assert!(
        lines[0].text.contains(&*script.to_string_lossy()),
        "{lines:?}"
    );

    // As in a shell.
    fs::write(&script, "echo a script without its first line").expect("a file");
    let lines = texts(&Command::new(&script, "/")).await;
    assert_eq!(lines, ["a script without its first line"]);
}

fn executable(path: &Path) {
    use std::os::unix::fs::PermissionsExt;
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).expect("a mode");
}

async fn cores() {
    let may = rustix::thread::sched_getaffinity(None).expect("cores");
    let core = (0..rustix::thread::CpuSet::MAX_CPU).find(|&core| may.is_set(core));
    let core = core.expect("a core");
    let mut command = sh("grep Cpus_allowed_list /proc/self/status");
    command.cpu_affinity = vec![core];
    assert_eq!(
        texts(&command).await,
        [format!("Cpus_allowed_list:\t{core}")]
    );
    // A machine with that many cores has this one.
    if !may.is_set(1_023) {
        command.cpu_affinity = vec![1_023];
        let (lines, ended) = run(&command).await;
        assert_eq!((ended.code, lines[0].level), (Some(126), Level::Error));
    }
}

async fn variables() {
    let mut command = sh("echo \"$HOME|$CARGO_PKG_NAME|$OWN\"; echo \"$PATH\"");
    command.more_variables = vec![("OWN".into(), "a b".into())];
    let own = |name| env::var(name).expect("cargo sets it");
    let (home, package) = (own("HOME"), own("CARGO_PKG_NAME"));
    let folder = env::current_exe().expect("this program");
    let folder = folder.parent().expect("a folder").display().to_string();
    let rows = [
        (Inherit::All, format!("{home}|{package}|a b")),
        (Inherit::None, "||a b".to_owned()),
        (
            Inherit::Only(vec!["CARGO_PKG_NAME".into()]),
            format!("|{package}|a b"),
        ),
    ];
    for (inherit, expected) in rows {
        command.environment.inherit = inherit;
        let lines = texts(&command).await;
        assert_eq!(lines[0], expected);
        assert!(lines[1].ends_with(&folder), "{lines:?}");
    }
}

async fn input() {
    let give = |script, bytes: &[u8], close| {
        let mut command = sh(script);
        let bytes = bytes.to_vec();
        command.stdin = Stdin::Text { bytes, close };
        command
    };
    assert_eq!(texts(&sh("wc -c")).await, ["0"]);
    assert_eq!(
        texts(&give("cat", b"{\"a\": 1}", true)).await,
        ["{\"a\": 1}"]
    );
    // More than a pipe holds, whether it is read or not.
    let much = vec![b'x'; 1 << 20];
    assert_eq!(texts(&give("wc -c", &much, true)).await, ["1048576"]);
    assert_eq!(texts(&give("echo done", &much, true)).await, ["done"]);
    assert_eq!(
        texts(&give("exec <&-; echo done", &much, true)).await,
        ["done"]
    );

    let children = children();
    let command = give("head -n 1; cat; echo end", b"first\nsecond\n", false);
    let (child, mut lines) = start(&children, &command);
    assert_eq!(next_text(&mut lines).await, "first");
    // Its input stays open, so that it does not end by itself.
    child.terminate();
    assert_ne!(
        lines.recv().await.map(|line| line.text).as_deref(),
        Some("end")
    );
}

async fn no_descriptor_is_inherited() {
    let list = "ls /proc/self/fd | wc -l";
    let output = std::process::Command::new("sh")
        .args(["-c", list])
        .output()
        .expect("a shell");
    let without = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    let children = children();
    let mut with_input = sh("sleep 1000");
    with_input.stdin = Stdin::Text {
        bytes: Vec::new(),
        close: false,
    };
    let (_child, _lines) = start(&children, &with_input);
    let _file = fs::File::open("/").expect("a file");
    let _watch = Watch::new(&[]).expect("a watch");
    let (mut child, mut lines) = start(&children, &sh(list));
    assert!(child.wait().await.is_success());
    assert_eq!(next_text(&mut lines).await, without);
}

/// A node with two children for each line of its input; it prints their ids.
fn a_node(scripts: &[OsString]) -> ExitCode {
    wait_for(async {
        let children = children();
        let mut kept = Vec::new();
        let input = std::io::stdin().as_fd().try_clone_to_owned();
        let input = pipe::Receiver::from_owned_fd(input.expect("a descriptor")).expect("a pipe");
        let mut orders = tokio::io::BufReader::new(input).lines();
        while let Ok(Some(_)) = orders.next_line().await {
            for script in scripts {
                let mut command = sh("");
                command.arguments[1] = script.clone();
                let (child, mut lines) = start(&children, &command);
                println!("{}", next_text(&mut lines).await);
                kept.push((child, lines));
            }
        }
    });
    ExitCode::SUCCESS
}

struct Node {
    process: std::process::Child,
    answers: BufReader<std::process::ChildStdout>,
}

impl Node {
    fn start(scripts: &[&str]) -> Self {
        let mut process = std::process::Command::new(env::current_exe().expect("this program"))
            .arg(A_NODE)
            .args(scripts)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("a node");
        let answers = BufReader::new(process.stdout.take().expect("is piped"));
        Self { process, answers }
    }

    fn spawn(&mut self, children: usize) -> Vec<Pid> {
        let mut order = self.process.stdin.as_ref().expect("is piped");
        order.write_all(b"\n").expect("it listens");
        let mut answer = || {
            let mut line = String::new();
            self.answers.read_line(&mut line).expect("it answers");
            process_id(&line)
        };
        (0..children).map(|_| answer()).collect()
    }

    fn guard(&self) -> Option<Pid> {
        let id = self.process.id();
        let list = fs::read_to_string(format!("/proc/{id}/task/{id}/children"));
        let list = list.expect("a kernel that lists children");
        list.split_whitespace().map(process_id).find(|pid| {
            let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            line.split(|&byte| byte == 0)
                .any(|word| word == CHILD_GUARD.as_bytes())
        })
    }

    fn kill(&mut self) {
        self.process.kill().expect("it was there");
        self.process.wait().expect("it ended");
    }
}

/// Groups in which every process ignores SIGTERM; they print the id of the process that the node did not start itself.
const STUBBORN: &str = "trap '' TERM; sleep 1000 & echo $!; wait; sleep 1000";

async fn a_killed_nodes_children_end() {
    let mut node = Node::start(&[STUBBORN, "sleep 1000 & echo $!; wait"]);
    let left = node.spawn(2);
    let guard = node.guard().expect("a guard");
    // As when a whole service is stopped.
    kill_process(guard, Signal::TERM).expect("it is there");
    node.kill();
    until(|| left.iter().all(|&pid| is_over(pid))).await;
    until(|| is_over(guard)).await;
}

async fn a_killed_node_without_guard_ends_its_children() {
    let mut node = Node::start(&["echo $$; exec sleep 1000"]);
    let left = node.spawn(1);
    kill_process(node.guard().expect("a guard"), Signal::KILL).expect("it is there");
    node.kill();
    until(|| is_over(left[0])).await;
}

async fn a_killed_guard_is_replaced() {
    let mut node = Node::start(&[STUBBORN]);
    let mut left = node.spawn(1);
    let first = node.guard().expect("a guard");
    kill_process(first, Signal::KILL).expect("it is there");
    until(|| node.guard().is_some_and(|guard| guard != first)).await;
    left.extend(node.spawn(1));
    node.kill();
    until(|| left.iter().all(|&pid| is_over(pid))).await;
}

async fn changes_before_the_watch_are_known() {
    let folder = tempfile::tempdir().expect("a folder");
    let at = |name: &str| folder.path().join(name);
    for name in ["sub", "__pycache__"] {
        fs::create_dir(at(name)).expect("a folder");
    }
    fs::write(at("sub/a.py"), "1").expect("a file");
    fs::write(at("__pycache__/a.pyc"), "1").expect("a file");
    let set = |name: &str, time: SystemTime| {
        let file = fs::File::open(at(name)).expect("is there");
        file.set_modified(time).expect("a time");
    };
    let since = SystemTime::now() - Duration::from_secs(60);
    for name in ["sub", "__pycache__", "sub/a.py"] {
        set(name, since - Duration::from_secs(1));
    }
    let watch = Watch::new(&[folder.path().to_owned()]).expect("a watch");
    // A cache's file is new, and ignored.
    assert_eq!(watch.changed_since(since), None);
    set("sub/a.py", since);
    assert_eq!(watch.changed_since(since), Some(at("sub/a.py")));
}

async fn changes_are_seen() {
    let folder = tempfile::tempdir().expect("a folder");
    let at = |name: &str| folder.path().join(name);
    for name in ["sub", "__pycache__", ".git"] {
        fs::create_dir(at(name)).expect("a folder");
    }
    let mut watch = Watch::new(&[folder.path().to_owned()]).expect("a watch");
    for name in ["__pycache__/x.pyc", ".git/HEAD", "sub/a.py"] {
        fs::write(at(name), "1").expect("a file");
    }
    assert_eq!(watch.changed().await.expect("changes"), [at("sub/a.py")]);
    fs::create_dir(at("new")).expect("a folder");
    assert_eq!(watch.changed().await.expect("changes"), [at("new")]);
    fs::write(at("new/b.py"), "2").expect("a file");
    assert_eq!(watch.changed().await.expect("changes"), [at("new/b.py")]);
    fs::rename(at("new/b.py"), at("b.py")).expect("a new place");
    assert_eq!(
        watch.changed().await.expect("changes"),
        [at("new/b.py"), at("b.py")]
    );
    for number in 0..100 {
        fs::write(at(&format!("sub/{number}")), "").expect("a file");
    }
    assert!(watch.changed().await.expect("changes").len() <= 16);

    let error = Watch::new(&[at("none")])
        .err()
        .expect("no watch")
        .to_string();
    assert!(
        error.starts_with(&format!("cannot watch '{}': ", at("none").display())),
        "{error}"
    );
}
