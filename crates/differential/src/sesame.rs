//! Sesame's half: the pipeline builds a set, and an Envoy takes it from an xDS server as in production.
//!
//! In: the objects of a set. Out: an Envoy that serves them; one serves all sets, each as the next state of its fleet.

use std::net::Ipv4Addr;

use anyhow::{Context, Result};
use kinds::Object;
use pipeline::settings::{Bind, Packing};
use pipeline::{Pipeline, Settings};
use testbed::Net;
use testbed::cases::{Proxy, object};

use crate::set::Set;

/// The Envoy of all sets.
pub struct Sesame {
    proxy: Proxy,
    settings: Settings,
    /// Where it listens.
    pub address: Ipv4Addr,
}

impl Sesame {
    /// Starts it, without objects.
    pub async fn start(packing: Packing) -> Result<Sesame> {
        let address = Net::here()?.address();
        let bind = |port| Bind { address: address.into(), port };
        let mut settings = Settings { http: bind(8080), https: bind(8443), packing, ..Settings::default() };
        settings.emissary.address = address.into();
        // As Emissary is in it.
        settings.resolve.namespace = "default".into();
        // What Emissary has where its Module says nothing.
        settings.http_settings.merge_slashes = false;
        settings.https_settings.merge_slashes = false;
        Ok(Sesame { proxy: Proxy::start("sesame").await?, settings, address })
    }

    /// Serves a set from now on. Gives what was reported on its objects.
    pub async fn serve(&mut self, set: &Set) -> Result<Vec<String>> {
        let mut pipeline = Pipeline::new(&self.settings);
        for object in set.objects.iter().map(object) {
            put(&mut pipeline, object);
        }
        let output = pipeline.settle();
        let told = output.verdicts.iter().filter_map(|(_, verdicts)| verdicts.as_deref());
        let verdicts = told.flatten().map(|verdict| format!("{verdict:?}")).collect();
        self.proxy.replace(output.xds.upserts).await.context("Envoy does not take what Sesame made")?;
        Ok(verdicts)
    }
}

fn put(pipeline: &mut Pipeline, object: Object) {
    pipeline.put(&object.key(), Some(object));
}
