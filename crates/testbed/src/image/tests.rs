#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::process::Command;

use super::*;

fn output(program: &str, args: &[&str]) -> String {
    let out = Command::new(program).args(args).env("LC_ALL", "C").output().unwrap();
    assert!(out.status.success(), "{program} {args:?}: {}", String::from_utf8_lossy(&out.stderr));
    String::from_utf8(out.stdout).unwrap()
}

#[test]
fn the_archive_is_what_other_tools_read() {
    let dir = tempfile::tempdir().unwrap();
    let image = Image::new("example.test/a:1")
        .also_named("example.test/b:1")
        .program("/bin/sh", "/bin/sh")
        .unwrap()
        .file("/etc/motd", "hello\n")
        .unwrap()
        .link("/etc/greeting", "motd")
        .unwrap()
        .entrypoint(["/bin/sh", "-c"])
        .user("7:8")
        .env("COLOUR", "blue");
    let archive = dir.path().join("image.tar");
    image.write(&archive).unwrap();
    let at = |name: &str| dir.path().join(name).to_str().unwrap().to_owned();
    output("tar", &["-xf", &at("image.tar"), "-C", &at("")]);

    let layer = output("tar", &["-tvf", &at("example-test-a-1.tar")]);
    let line = |end: &str| layer.lines().find(|line| line.ends_with(end)).unwrap_or_else(|| panic!("{end}:\n{layer}"));
    assert!(line(" tmp/").starts_with("drwxrwxrwt 0/0"));
    assert!(line(" bin/sh").starts_with("-rwxr-xr-x 0/0"));
    assert!(line(" etc/greeting -> motd").starts_with("lrwxrwxrwx"));
    assert!(layer.contains("libc.so"), "the shell's libraries come along:\n{layer}");
    assert!(layer.find(" etc/\n").unwrap() < layer.find(" etc/motd").unwrap(), "folders come first:\n{layer}");
    output("tar", &["-xf", &at("example-test-a-1.tar"), "-C", &at(""), "etc/motd"]);
    assert_eq!(std::fs::read_to_string(at("etc/motd")).unwrap(), "hello\n");

    let digest = output("sha256sum", &[&at("example-test-a-1.tar")]);
    let config: serde_json::Value = serde_json::from_slice(&std::fs::read(at("config.json")).unwrap()).unwrap();
    assert_eq!(config["rootfs"]["diff_ids"][0], format!("sha256:{}", digest.split(' ').next().unwrap()));
    assert_eq!(config["config"]["Entrypoint"], json!(["/bin/sh", "-c"]));
    assert_eq!(config["config"]["User"], "7:8");
    assert_eq!(config["config"]["Env"][1], "COLOUR=blue");
    let manifest: serde_json::Value = serde_json::from_slice(&std::fs::read(at("manifest.json")).unwrap()).unwrap();
    assert_eq!(manifest[0]["RepoTags"], json!(["example.test/a:1", "example.test/b:1"]));
}

#[test]
fn equal_images_are_equal_bytes() {
    let dir = tempfile::tempdir().unwrap();
    let write = |name: &str| {
        let path = dir.path().join(name);
        Image::new("example.test/a:1").file("/x", "y").unwrap().write(&path).unwrap();
        std::fs::read(path).unwrap()
    };
    assert_eq!(write("one"), write("two"));
}

#[test]
fn a_long_path_is_split_or_refused() {
    let dir = tempfile::tempdir().unwrap();
    let archive = dir.path().join("image.tar");
    let folder = "d".repeat(90);
    let image = Image::new("example.test/a:1").file(&format!("/{folder}/{folder}"), "x").unwrap();
    image.write(&archive).unwrap();
    let image = Image::new("example.test/a:1").file(&format!("/{}", "f".repeat(101)), "x").unwrap();
    assert!(matches!(image.write(&archive), Err(ImageError::File { .. })));
}

#[test]
fn the_output_of_ldd_is_understood() {
    let program = Path::new("/bin/thing");
    let output =
        "\tlinux-vdso.so.1 (0x00007fff)\n\tlibz.so.1 => /usr/lib/libz.so.1 (0x00007f)\n\t/lib64/ld.so.2 (0x7f)\n";
    assert_eq!(parse_ldd(program, output).unwrap(), [PathBuf::from("/usr/lib/libz.so.1"), "/lib64/ld.so.2".into()]);
    assert!(parse_ldd(program, "\tstatically linked\n").unwrap().is_empty());
    let error = parse_ldd(program, "\tlibodd.so.3 => not found\n").unwrap_err().to_string();
    assert_eq!(error, "/bin/thing needs libodd.so.3, which this machine does not have");
}

#[test]
fn a_file_that_is_not_there_is_named() {
    let error = Image::new("example.test/a:1").program("/no/such/program", "/p").unwrap_err().to_string();
    assert_eq!(error, "cannot use /no/such/program for an image");
    let error = Image::new("example.test/a:1").file("relative", "x").unwrap_err().to_string();
    assert_eq!(error, "relative is no absolute path inside an image");
}
