//! An API server with all objects of a world in it.
//!
//! In: a [`World`]. Out: a running [`ApiServer`] that has them. Writing 150,000 objects takes minutes, so what etcd holds
//! in the end is kept in the cache, and every implementation of every run starts from a copy of it.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use futures::{StreamExt, TryStreamExt, stream};
use testbed::certs::Ca;
use testbed::{ApiServer, StateDir};

use crate::progress::Progress;
use crate::world::{MappingShape, SHAPE, Wording, World};
use crate::writer::Writer;

/// Writes under way at once: enough to keep the API server busy.
const AT_ONCE: usize = 64;
/// How long etcd may take to end.
const GRACE: Duration = Duration::from_secs(60);
/// The folder of etcd's data in that of an API server.
const ETCD: &str = "etcd";

/// A fresh API server with the objects of `world`.
pub async fn filled(world: World) -> Result<ApiServer> {
    let kept = place(world)?;
    if !kept.is_dir() {
        make(world, &kept).await?;
    }
    let state = StateDir::new("apiserver")?;
    copy(&kept, &state.path().join(ETCD)).with_context(|| format!("copying {}", kept.display()))?;
    let api = ApiServer::config().state(state).start().await?;
    let (folder, expected) = world.roots();
    let count = Writer::new(api.client()?).count(folder).await?;
    ensure!(count == expected as u64, "{} holds {count} objects in {folder}; remove it", kept.display());
    Ok(api)
}

/// Where the etcd of a world is kept.
fn place(world: World) -> Result<PathBuf> {
    let version = |part| parts::version(part).unwrap_or("unknown");
    let World { size, wording } = world;
    let kind = match wording {
        Wording::Ingresses => "plain",
        Wording::Certificates => "certificates",
        Wording::Proxies => "proxies",
        Wording::Protected => "protected",
        Wording::Routes => "routes",
        Wording::Mappings(MappingShape::Spread) => "mappings",
        Wording::Mappings(MappingShape::Own) => "mappings-own",
        Wording::Mappings(MappingShape::Every) => "mappings-every",
    };
    let (etcd, kubernetes) = (version("etcd"), version("kube-apiserver"));
    let name = format!("etcd-{etcd}-kubernetes-{kubernetes}-{kind}-{size}-shape-{SHAPE}");
    Ok(parts::cache()?.join("bench").join(name))
}

async fn make(world: World, kept: &Path) -> Result<()> {
    let api = ApiServer::start().await?;
    // Contour does not start without its CRDs; all implementations get them.
    api.install([parts::folder("contour-crds")?]).await?;
    if world.wording == Wording::Routes {
        api.install([parts::folder("gateway-api-crds")?.join("standard")]).await?;
    }
    if matches!(world.wording, Wording::Mappings(_)) {
        let crds = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy/crds");
        let kinds = ["listeners", "hosts", "mappings", "modules", "tlscontexts"];
        api.install(kinds.map(|kind| crds.join(format!("{kind}.getambassador.io.yaml")))).await?;
    }
    let writer = Writer::new(api.client()?);
    let ca = Ca::new("bench");
    for object in world.namespaces().chain(world.shared(&ca)) {
        writer.create(&object).await?;
    }
    let progress = Progress::new(format!("writing the objects of {world}"), world.size);
    let write = async |n: usize| {
        for object in world.objects(n, &ca) {
            writer.create(&object).await?;
        }
        progress.step();
        anyhow::Ok(())
    };
    stream::iter(0..world.size).map(write).buffer_unordered(AT_ONCE).try_collect::<()>().await?;
    drop(progress);
    api.stop().await?;
    api.etcd().stop(GRACE).await?;
    // Whole or not at all.
    let parent = kept.parent().context("the cache has no place for etcds")?;
    fs::create_dir_all(parent).with_context(|| format!("making {}", parent.display()))?;
    let mut unfinished = kept.as_os_str().to_owned();
    unfinished.push(".tmp");
    let unfinished = PathBuf::from(unfinished);
    if unfinished.exists() {
        fs::remove_dir_all(&unfinished).with_context(|| format!("removing {}", unfinished.display()))?;
    }
    let moved = copy(&api.state().path().join(ETCD), &unfinished).and_then(|()| fs::rename(&unfinished, kept));
    moved.with_context(|| format!("keeping {}", kept.display()))
}

fn copy(from: &Path, to: &Path) -> std::io::Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let target = to.join(entry.file_name());
        match entry.file_type()?.is_dir() {
            true => copy(&entry.path(), &target)?,
            false => fs::copy(entry.path(), target).map(drop)?,
        }
    }
    Ok(())
}
