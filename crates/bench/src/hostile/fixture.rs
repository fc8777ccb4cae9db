//! The fixture of one attack: an API server with the others' hosts, a controller, and perhaps an Envoy.

use anyhow::Result;
use serde_json::json;
use testbed::apiserver::Front;
use testbed::certs::{Ca, Leaf};
use testbed::{ApiServer, Client, StateDir};

use super::attacker::{NAMESPACE, SERVICE, object};
use super::{Attack, LONGEST, Options};
use crate::fill;
use crate::implementation::{Instance, Running, Sesame, TlsFiles};
use crate::proxy::Proxy;
use crate::world::{FIRST, FIRST_PATH, Object, World};
use crate::writer::Writer;

/// All parts of it. Dropped first to last: who asks before who answers.
pub struct Fixture<'a> {
    /// The Envoy, where there is one.
    pub proxy: Option<Proxy>,
    /// The controller.
    pub controller: Running<'a>,
    /// Where it is.
    pub instance: Instance,
    /// Writes as anybody.
    pub writer: Writer,
    /// What the others have.
    pub world: World,
    identity: Option<Leaf>,
    front: Option<Front>,
    _api: ApiServer,
    _state: StateDir,
}

impl<'a> Fixture<'a> {
    /// Everything at rest, and the others served.
    pub async fn start(attack: Attack, sesame: &'a Sesame, options: &Options) -> Result<Fixture<'a>> {
        let world = World { size: options.hosts, wording: attack.wording() };
        let api = fill::filled(world).await?;
        let writer = Writer::new(api.client()?);
        for object in own_objects() {
            writer.create(&object).await?;
        }
        let front = match attack.faults(options) {
            Some(rule) => Some(Front::start(&api, rule).await?),
            None => None,
        };
        let kubeconfig = front.as_ref().map_or_else(|| api.kubeconfig(), |front| Ok(front.kubeconfig()))?;
        let state = StateDir::new("hostile")?;
        let mut instance = Instance::new(kubeconfig)?;
        let mut identity = None;
        if attack.has_tls() {
            let (files, client) = papers(&state)?;
            instance.tls = Some(files);
            identity = Some(client);
        }
        let controller = Running::start(sesame, &instance)?;
        controller.listening().await?;
        let mut proxy = None;
        if attack.has_envoy() {
            let envoy = Proxy::new(controller.envoy().await?, &instance, world);
            controller.brings("all hosts to be served", LONGEST, envoy.sweep(FIRST_PATH, FIRST)).await?;
            proxy = Some(envoy);
        }
        Ok(Fixture { proxy, controller, instance, writer, world, identity, front, _api: api, _state: state })
    }

    /// How a client that is one of ours reaches the xDS port.
    pub fn xds(&self) -> Client {
        let client = Client::new(self.instance.xds);
        match &self.identity {
            Some(leaf) => client.identity(leaf).sni("sesame"),
            None => client,
        }
    }

    /// What a reader should know of it.
    pub fn notes(&self) -> Vec<String> {
        let faults = self.front.iter().map(|front| format!("{} requests did not reach the API server", front.faults()));
        let answers = self.proxy.iter().flat_map(Proxy::unexpected);
        faults.chain(answers.map(|(what, count)| format!("unexpected answer, {count} times: {what}"))).collect()
    }
}

/// The attacker's namespace, with a Service that its routes lead to.
pub fn own_objects() -> [Object; 2] {
    let namespace =
        Object { folder: "/api/v1/namespaces".to_owned(), body: json!({ "metadata": { "name": NAMESPACE } }) };
    let service = json!({ "spec": { "clusterIP": "None", "ports": [{ "port": 80 }] } });
    [namespace, object("/api/v1", "services", service, SERVICE)]
}

/// A CA, what the server has from it, and what a client has.
pub fn papers(state: &StateDir) -> Result<(TlsFiles, Leaf)> {
    let ca = Ca::new("xds");
    let (server, client) = (ca.leaf("sesame").make(), ca.leaf("envoy").make());
    let files = TlsFiles {
        ca: state.write("ca.pem", ca.pem())?,
        certificate: state.write("sesame.pem", server.chain_pem())?,
        key: state.write("sesame-key.pem", server.key_pem())?,
    };
    Ok((files, client))
}
