//! What a test does with a cluster: objects in, logs and answers out.

use std::process::Stdio;

use k8s_openapi::api::core::v1::{Namespace, Pod};
use kube::api::{Api, LogParams, ObjectMeta, PostParams};

use super::{Cluster, Error, wait};
use crate::apiserver::apply;

/// What a command in a pod did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Output {
    /// Its exit code; none if it was killed.
    pub code: Option<i32>,
    /// What it wrote.
    pub stdout: String,
    /// What it complained about.
    pub stderr: String,
}

impl Cluster {
    /// A new namespace whose name begins with `name`, in which pods can be made; gives the full name.
    pub async fn namespace(&self, name: &str) -> Result<String, Error> {
        let client = self.client()?;
        let metadata = ObjectMeta { generate_name: Some(format!("{name}-")), ..ObjectMeta::default() };
        let namespace = Namespace { metadata, ..Namespace::default() };
        let made = Api::<Namespace>::all(client.clone()).create(&PostParams::default(), &namespace).await?;
        let name = made.metadata.name.unwrap_or_default();
        wait::account(&client, &name, wait::LIMIT).await?;
        Ok(name)
    }

    /// Applies the objects of a YAML text, those without a namespace into `default`, and waits until the CRDs among
    /// them can be used.
    pub async fn apply_yaml(&self, yaml: &str) -> Result<(), Error> {
        Ok(apply::apply(self.client()?, apply::parse(yaml, "the given text")?).await?)
    }

    /// What a pod of one container has written so far.
    pub async fn logs(&self, namespace: &str, pod: &str) -> Result<String, Error> {
        Ok(Api::<Pod>::namespaced(self.client()?, namespace).logs(pod, &LogParams::default()).await?)
    }

    /// Runs a command in a pod (in the first of its containers), to its end.
    pub async fn exec(&self, namespace: &str, pod: &str, command: &[&str]) -> Result<Output, Error> {
        let output = tokio::process::Command::new(parts::program("kubectl")?)
            .arg("--kubeconfig")
            .arg(self.kubeconfig())
            .args(["--namespace", namespace, "exec", "--quiet", pod, "--"])
            .args(command)
            .stdin(Stdio::null())
            .kill_on_drop(true)
            .output()
            .await
            .map_err(|source| Error::Spawn { what: "kubectl", source })?;
        let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
        let (code, mut stderr) = (output.status.code(), text(output.stderr));
        // kubectl's own word on the matter, after those of the command.
        let remark = format!("command terminated with exit code {}\n", code.unwrap_or_default());
        stderr.truncate(stderr.strip_suffix(&remark).unwrap_or(&stderr).len());
        Ok(Output { code, stdout: text(output.stdout), stderr })
    }
}
