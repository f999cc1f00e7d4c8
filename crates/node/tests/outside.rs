//! A crate outside of this workspace that depends on a node and its client by path, built by plain cargo, offline.

use std::path::Path;
use std::process::Command;

#[test]
fn a_call_through_a_node_inside_a_foreign_program() {
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let workspace = workspace.canonicalize().expect("the workspace");
    let outside = tempfile::tempdir().expect("a directory");
    let write = |name: &str, text: &str| {
        let path = outside.path().join(name);
        std::fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        std::fs::write(path, text).expect("a file");
    };
    let root = workspace.display();
    write(
        "Cargo.toml",
        &format!(
            r#"[package]
name = "outside"
version = "1.0.0"
edition = "2024"

[dependencies]
crosstie-client = {{ path = "{root}/crates/client" }}
crosstie-node = {{ path = "{root}/crates/node" }}
tokio = {{ version = "1", features = ["macros", "rt"] }}

[workspace]

[profile.dev]
debug = false
"#
        ),
    );
    write(
        "src/main.rs",
        r#"use crosstie_client::Client;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let node = crosstie_node::test_node()?;
    let client = Client::connect(node.url()).await?;
    client
        .register("com.example.echo", async |invocation| Ok(invocation.arguments))
        .await?;
    let echo = client.call("com.example.echo", ("from outside",)).await?;
    println!("{}", echo.argument::<String>(0)?);
    client.leave().await;
    node.stop().await;
    Ok(())
}
"#,
    );
    // The same versions, none of which is downloaded.
    let lock = std::fs::read_to_string(workspace.join("Cargo.lock")).expect("Cargo.lock");
    write("Cargo.lock", &lock);
    let output = Command::new(env!("CARGO"))
        .args(["run", "--quiet", "--offline"])
        .current_dir(outside.path())
        .env("CARGO_TARGET_DIR", target(&workspace).join("outside"))
        .output()
        .expect("cargo");
    let (said, complaints) = (
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr),
    );
    assert!(output.status.success(), "{said}{complaints}");
    assert_eq!(said, "from outside\n");
}

/// The workspace's target directory: that of this test's own program, or beside it.
fn target(workspace: &Path) -> std::path::PathBuf {
    let own = std::env::current_exe().expect("this test's program");
    let found = own.ancestors().find(|path| path.ends_with("target"));
    found.map_or_else(|| workspace.join("target"), Path::to_owned)
}
