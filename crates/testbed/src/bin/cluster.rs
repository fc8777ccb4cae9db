//! A cluster for a person to play with: `cluster up` leaves one running behind, reachable from this machine; `cluster
//! down` takes it away.
//!
//! The cluster is the one that tests use, held by a process in a sandbox of its own (`cluster hold`, which `up`
//! starts). `up` then puts a link between the host's network and the sandbox's. The link goes with the sandbox's
//! network, and the routes with the link: `down` only has to end the holder.

use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use rustix::process::{Pid, Signal, kill_process};
use testbed::Cluster;
use testbed::cluster::{Nodes, is_root};
use testbed::image::ready;
use tokio::signal::unix::{SignalKind, signal};

const USAGE: &str = "usage: cluster up [--nodes 1|2] [--sesame BINARY] | down";

/// The host's end of the link.
const LINK: &str = "sesame0";

/// How long `down` waits for a good end.
const GRACE: Duration = Duration::from_secs(30);

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let result = match words.split_first().map(|(verb, rest)| (verb.as_str(), rest)) {
        Some(("up", rest)) => Wish::parse(rest).and_then(|wish| up(&wish)),
        Some(("down", [])) => down(),
        Some(("hold", rest)) => Wish::parse(rest).and_then(hold),
        _ => Err(anyhow::anyhow!(USAGE)),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("cluster: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// What the person wants.
#[derive(Debug, Default)]
struct Wish {
    nodes: Nodes,
    sesame: Option<PathBuf>,
}

impl Wish {
    fn parse(words: &[String]) -> Result<Wish> {
        let mut wish = Wish::default();
        for pair in words.chunks(2) {
            match pair.iter().map(String::as_str).collect::<Vec<_>>()[..] {
                ["--nodes", "1"] => wish.nodes = Nodes::One,
                ["--nodes", "2"] => wish.nodes = Nodes::Two,
                ["--sesame", binary] => wish.sesame = Some(fs::canonicalize(binary).context(binary.to_owned())?),
                _ => bail!(USAGE),
            }
        }
        Ok(wish)
    }
}

/// Files of the cluster that runs, if one does.
struct Folder(PathBuf);

impl Folder {
    fn find() -> Result<Folder> {
        let folder = parts::cache()?.join("cluster");
        fs::create_dir_all(&folder).with_context(|| folder.display().to_string())?;
        Ok(Folder(folder))
    }

    fn file(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    /// The lock that the holder has for as long as it lives; nothing if somebody has it.
    fn lock(&self) -> Result<Option<File>> {
        let file = File::options().create(true).append(true).open(self.file("lock"))?;
        Ok(file.try_lock().is_ok().then_some(file))
    }
}

fn up(wish: &Wish) -> Result<()> {
    ensure!(is_root(), "a cluster needs root: its nodes mount file systems and make control groups");
    let folder = Folder::find()?;
    ensure!(
        folder.lock()?.is_some(),
        "a cluster is up already: KUBECONFIG={} (`cluster down` ends it)",
        folder.file("kubeconfig").display()
    );
    let began = Instant::now();
    let log = File::create(folder.file("log"))?;
    let mut holder = holder(wish)?.stderr(log).stdout(Stdio::piped()).spawn().context("cannot start the sandbox")?;
    let Some(reach) = until_ready(&mut holder, began)? else {
        let log = fs::read_to_string(folder.file("log")).unwrap_or_default();
        bail!("the cluster did not come up:\n{}", log.trim_end());
    };
    let pid = holding(holder.id())?;
    fs::write(folder.file("pid"), pid.to_string())?;
    link(pid, &reach)?;

    let kubeconfig = folder.file("kubeconfig");
    println!("{:5.1} s  the cluster is up:", began.elapsed().as_secs_f32());
    println!("  export KUBECONFIG={}", kubeconfig.display());
    println!("  alias kubectl={}", parts::program("kubectl")?.display());
    println!("  kubectl get nodes");
    println!("pods, Services and load balancers are reached from here ({} and {})", reach[2], reach[3]);
    println!("`make cluster-down` ends it");
    Ok(())
}

/// The command that runs `cluster hold` in a sandbox, in a session of its own: it stays when the terminal goes.
fn holder(wish: &Wish) -> Result<Command> {
    let sandbox = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tools/sandbox");
    let mut command = Command::new("setsid");
    command.arg(sandbox).arg("--").arg(std::env::current_exe()?).arg("hold");
    if wish.nodes == Nodes::Two {
        command.args(["--nodes", "2"]);
    }
    if let Some(sesame) = &wish.sesame {
        command.arg("--sesame").arg(sesame);
    }
    command.env_remove("SESAME_SANDBOX").stdin(Stdio::null());
    Ok(command)
}

/// Shows the holder's progress until it says `ready` and how it is reached. Nothing if it ends before.
fn until_ready(holder: &mut Child, began: Instant) -> Result<Option<Vec<String>>> {
    let output = holder.stdout.take().context("the holder has no output")?;
    for line in BufReader::new(output).lines() {
        let line = line?;
        if let Some(reach) = line.strip_prefix("ready ") {
            return Ok(Some(reach.split(' ').map(str::to_owned).collect()));
        }
        println!("{:5.1} s  {line}", began.elapsed().as_secs_f32());
    }
    Ok(None)
}

/// The process that holds the cluster: the last of those that the sandbox started.
fn holding(sandbox: u32) -> Result<u32> {
    let own = fs::read_link("/proc/self/ns/net")?;
    let mut pid = sandbox;
    // The sandbox's shells have one child each; the holder has the parts of the cluster.
    loop {
        let children = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children"))?;
        let child = children.split_whitespace().next().context("the holder is gone")?.parse()?;
        let name = fs::read_to_string(format!("/proc/{child}/comm"))?;
        let apart = fs::read_link(format!("/proc/{child}/ns/net"))? != own;
        pid = child;
        if apart && name.trim() == "cluster" {
            return Ok(pid);
        }
    }
}

/// Links the host's network and the one of `pid`. `reach` says: address here, address there, ranges.
fn link(pid: u32, reach: &[String]) -> Result<()> {
    let [here, there, ranges @ ..] = reach else { bail!("the holder did not say how it is reached") };
    let mut script = format!(
        "ip link add {LINK} type veth peer name uplink netns {pid}
         nsenter --target {pid} --net ip addr add {there}/30 dev uplink
         nsenter --target {pid} --net ip link set uplink up
         ip addr add {here}/30 dev {LINK}
         ip link set {LINK} up\n"
    );
    script.extend(ranges.iter().map(|range| format!("ip route add {range} via {there}\n")));
    let status = Command::new("/bin/sh").arg("-euc").arg(script).status().context("cannot run a shell")?;
    ensure!(status.success(), "cannot link the cluster to this machine's network");
    Ok(())
}

fn down() -> Result<()> {
    let folder = Folder::find()?;
    if folder.lock()?.is_some() {
        println!("no cluster is up");
        return Ok(());
    }
    let pid = fs::read_to_string(folder.file("pid")).context("the cluster is still coming up")?;
    let pid = Pid::from_raw(pid.trim().parse()?).context("no process id")?;
    kill_process(pid, Signal::TERM).context("cannot tell the cluster to end")?;
    let until = Instant::now() + GRACE;
    while folder.lock()?.is_none() {
        ensure!(
            Instant::now() < until,
            "the cluster did not end within {GRACE:?}; its log: {}",
            folder.file("log").display()
        );
        std::thread::sleep(Duration::from_millis(20));
    }
    // The kernel drops the other end, and the link with it, in its own time.
    let _ = Command::new("ip").args(["link", "del", LINK]).output();
    fs::remove_dir_all(&folder.0)?;
    println!("the cluster is gone");
    Ok(())
}

#[tokio::main(flavor = "current_thread")]
async fn hold(wish: Wish) -> Result<()> {
    let folder = Folder::find()?;
    let _lock = folder.lock()?.context("another cluster is coming up")?;
    let mut end = signal(SignalKind::terminate())?;
    let mut config = Cluster::config().nodes(wish.nodes).image(ready::tools()?).image(ready::envoy()?);
    if let Some(sesame) = wish.sesame {
        config = config.image(ready::sesame(&sesame)?).image(ready::echo(&sesame)?);
    }
    let cluster = config.progress(|step| println!("{step}")).start().await?;
    fs::copy(cluster.kubeconfig(), folder.file("kubeconfig"))?;
    let reach = cluster.reach()?;
    println!("ready {} {} {}", reach.host, reach.cluster, reach.ranges.join(" "));
    end.recv().await;
    cluster.stop().await?;
    Ok(())
}
