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
        .env("COLOUR", "blue")
        .label("org.opencontainers.image.version", "3");
    let archive = dir.path().join("image.tar");
    image.write(&archive).unwrap();
    let at = |name: &str| dir.path().join(name).to_str().unwrap().to_owned();
    output("tar", &["-xf", &at("image.tar"), "-C", &at("")]);

    let read = |name: &str| -> serde_json::Value { serde_json::from_slice(&std::fs::read(at(name)).unwrap()).unwrap() };
    let docker = read("manifest.json");
    let blob = docker[0]["Layers"][0].as_str().unwrap().to_owned();
    let layer = output("tar", &["-tvf", &at(&blob)]);
    let line = |end: &str| layer.lines().find(|line| line.ends_with(end)).unwrap_or_else(|| panic!("{end}:\n{layer}"));
    assert!(line(" tmp/").starts_with("drwxrwxrwt 0/0"));
    assert!(line(" bin/sh").starts_with("-rwxr-xr-x 0/0"));
    assert!(line(" etc/greeting -> motd").starts_with("lrwxrwxrwx"));
    assert!(layer.contains("libc.so"), "the shell's libraries come along:\n{layer}");
    assert!(layer.find(" etc/\n").unwrap() < layer.find(" etc/motd").unwrap(), "folders come first:\n{layer}");
    output("tar", &["-xf", &at(&blob), "-C", &at(""), "etc/motd"]);
    assert_eq!(std::fs::read_to_string(at("etc/motd")).unwrap(), "hello\n");

    let digest = output("sha256sum", &[&at(&blob)]);
    let digest = format!("sha256:{}", digest.split(' ').next().unwrap());
    assert_eq!(format!("blobs/{}", digest.replace(':', "/")), blob);
    let config = read(docker[0]["Config"].as_str().unwrap());
    assert_eq!(config["rootfs"]["diff_ids"][0], digest);
    assert_eq!(config["config"]["Entrypoint"], json!(["/bin/sh", "-c"]));
    assert_eq!(config["config"]["User"], "7:8");
    assert_eq!(config["config"]["Env"][1], "COLOUR=blue");
    assert_eq!(config["config"]["Labels"], json!({ "org.opencontainers.image.version": "3" }));
    let names = json!(["example.test/a:1", "example.test/b:1"]);
    assert_eq!(docker[0]["RepoTags"], names);

    // The same as a layout: what the index leads to is there, with the length and the digest that it says.
    let layout = dir.path().join("layout");
    let manifest_digest = image.write_layout(&layout).unwrap();
    let index: serde_json::Value = serde_json::from_slice(&std::fs::read(layout.join("index.json")).unwrap()).unwrap();
    assert_eq!(index, read("index.json"));
    let of = |it: &serde_json::Value| it["annotations"]["io.containerd.image.name"].clone();
    assert_eq!(index["manifests"].as_array().unwrap().iter().map(of).collect::<serde_json::Value>(), names);
    assert_eq!(index["manifests"][0]["digest"], manifest_digest);
    let follow = |descriptor: &serde_json::Value| {
        let name = descriptor["digest"].as_str().unwrap().strip_prefix("sha256:").unwrap().to_owned();
        let bytes = std::fs::read(layout.join("blobs/sha256").join(&name)).unwrap();
        assert_eq!((sha256(&bytes), descriptor["size"].as_u64()), (name, Some(bytes.len() as u64)));
        bytes
    };
    let manifest: serde_json::Value = serde_json::from_slice(&follow(&index["manifests"][0])).unwrap();
    follow(&manifest["config"]);
    follow(&manifest["layers"][0]);
}

/// One program under two names, no shell, nobody's user, and public CAs.
#[test]
fn the_image_of_sesame_has_what_it_needs_and_no_more() {
    let dir = tempfile::tempdir().unwrap();
    // Any program will do for its place.
    let image = sesame("example.test/sesame:1", "/bin/true").unwrap();
    let layout = dir.path().join("layout");
    image.write_layout(&layout).unwrap();
    let listing = output("tar", &["-tvf", layer_of(&layout).to_str().unwrap()]);
    assert!(listing.contains("usr/local/bin/contour -> sesame"), "{listing}");
    assert!(listing.contains(" bin/contour -> /usr/local/bin/sesame"), "{listing}");
    assert!(listing.contains("etc/ssl/certs/ca-certificates.crt"), "{listing}");
    let programs: Vec<&str> = listing
        .lines()
        .filter(|line| line.starts_with("-rwx"))
        .filter_map(|line| line.split_whitespace().last())
        .filter(|path| !path.contains(".so"))
        .collect();
    assert_eq!(programs, ["usr/local/bin/sesame"]);
    assert!(listing.lines().all(|line| !line.contains("rws") && !line.contains("r-s")), "{listing}");
    assert_eq!(image.user, "65532:65532");
    let labels = json!({
        "org.opencontainers.image.title": "Sesame",
        "org.opencontainers.image.description": "Ingress and Gateway API for Kubernetes, served by fleets of Envoy",
        "org.opencontainers.image.version": env!("CARGO_PKG_VERSION"),
        "org.opencontainers.image.licenses": "Apache-2.0",
        "org.opencontainers.image.source": "https://github.com/projectsesame/sesame",
    });
    assert_eq!(image.config("x")["config"]["Labels"], labels);
}

/// Whatever the order in which things are added.
#[test]
fn equal_images_are_equal_bytes() {
    let dir = tempfile::tempdir().unwrap();
    let write = |name: &str, parts: &[&str]| {
        let image = parts.iter().fold(Image::new("example.test/a:1"), |image, part| {
            let added = match *part {
                "program" => image.program("/bin/sh", "/bin/sh"),
                "file" => image.file("/etc/motd", "hello\n"),
                "file below" => image.file("/etc/app/config", "x: 1\n"),
                "link" => image.link("/etc/greeting", "motd"),
                "absolute link" => image.link("/usr/bin/shell", "/bin/sh"),
                _ => Ok(image.label("version", "3").label("title", "a")),
            };
            added.unwrap()
        });
        let (archive, layout) = (dir.path().join(format!("{name}.tar")), dir.path().join(name));
        image.write(&archive).unwrap();
        let digest = image.write_layout(&layout).unwrap();
        (digest, std::fs::read(archive).unwrap(), std::fs::read(layout.join("index.json")).unwrap())
    };
    let mut parts = ["program", "file", "file below", "link", "absolute link", "labels"];
    let one = write("one", &parts);
    let again = write("again", &parts);
    parts.reverse();
    let backwards = write("backwards", &parts);
    assert!(one == again && one == backwards, "{}, {}, {}", one.0, again.0, backwards.0);
    let other = write("other", &parts[1..]);
    assert_ne!(one.0, other.0);
    let listing = output("tar", &["-tvf", layer_of(&dir.path().join("one")).to_str().unwrap()]);
    for part in ["libc.so", "etc/greeting -> motd", "usr/bin/shell -> /bin/sh", "etc/app/config"] {
        assert!(listing.contains(part), "{part}:\n{listing}");
    }
}

/// The layer of a layout: its largest blob.
fn layer_of(layout: &Path) -> PathBuf {
    let blobs = std::fs::read_dir(layout.join("blobs/sha256")).unwrap().map(|it| it.unwrap().path());
    blobs.max_by_key(|path| std::fs::metadata(path).unwrap().len()).unwrap()
}

#[test]
fn an_image_for_another_architecture_has_its_name_and_the_libraries_that_are_given() {
    let dir = tempfile::tempdir().unwrap();
    let library = dir.path().join("libc.so.6");
    std::fs::write(&library, "a library").unwrap();
    let libraries = [Library { host: library, inside: "/lib/libc.so.6".to_owned() }];
    let image = sesame_for("example.test/sesame:1", "arm64", "/bin/true", &libraries).unwrap();
    let layout = dir.path().join("layout");
    image.write_layout(&layout).unwrap();
    let index: serde_json::Value = serde_json::from_slice(&std::fs::read(layout.join("index.json")).unwrap()).unwrap();
    assert_eq!(index["manifests"][0]["platform"], json!({ "os": "linux", "architecture": "arm64" }));
    assert_eq!(image.config("x")["architecture"], "arm64");
    let listing = output("tar", &["-tvf", layer_of(&layout).to_str().unwrap()]);
    assert!(listing.contains(" lib/libc.so.6") && listing.matches(".so").count() == 1, "{listing}");
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
